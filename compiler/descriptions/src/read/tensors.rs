//! Inputs and outputs.

use super::builder::{Builder, call, int, slot};
use super::fields::Fields;
use crate::c::{ELEMENTS, Function, MEMORIES};
use crate::description::{Input, Output};
use crate::problem::{ProblemKind, Problems};
use crate::program::Step;
use crate::syntax::Kind;

const INPUT_FIELDS: [&str; 11] =
    ["arg_name", "mtype", "dtype", "ndim", "len", "sametype", "sameshape", "static", "check", "checks", "custom"];

const OUTPUT_FIELDS: [&str; 11] =
    ["arg_name", "ndim", "dims", "dtype", "custom", "owner", "static", "mtype", "cleanup", "len", "overwrites"];

/// Adds the checks of an input. `known` are the names of all inputs.
pub(super) fn input(number: usize, known: &[Input], fields: &Fields, builder: &mut Builder) {
    fields.warn_unknown(&INPUT_FIELDS, builder.problems);
    let entry = slot(builder.program.layout.tensors[number].entry);
    builder.program.steps.push(Step::Input(number));
    if let Some(memory) = fields.choice("mtype", &MEMORIES, builder.problems)
        && memory > 0
    {
        builder.run_plain(fields, "mtype", call(Function::CheckMtype, vec![entry.clone(), int(memory)]));
    }
    if element_type_is_known(fields, builder.problems) {
        builder.compare(fields, "dtype", Function::CheckDtype, entry.clone());
    }
    builder.compare(fields, "ndim", Function::CheckNdim, entry.clone());
    builder.compare(fields, "len", Function::CheckLen, entry.clone());
    for (field, function) in [("sametype", Function::CheckSameType), ("sameshape", Function::CheckSameShape)] {
        if let Some(other) = earlier_input(field, number, known, fields, builder.problems) {
            let other = slot(builder.program.layout.tensors[other].entry);
            builder.run_plain(fields, field, call(function, vec![entry.clone(), other]));
        }
    }
    if let Some(is_static) = fields.truth("static", builder.problems) {
        let function = if is_static { Function::CheckStatic } else { Function::CheckNotStatic };
        builder.run_plain(fields, "static", call(function, vec![entry]));
    }
    builder.check(fields, "check");
    builder.checks(fields, true);
    builder.statements(fields, "custom");
}

/// Whether an element type that is a name is one that exists.
fn element_type_is_known(fields: &Fields, problems: &mut Problems) -> bool {
    match fields.get("dtype").map(|value| &value.kind) {
        Some(Kind::Text(text)) if is_element_name(text.as_str()) => {
            fields.chosen("dtype", text.as_str().trim(), &ELEMENTS, problems).is_some()
        }
        _ => true,
    }
}

/// Whether a text is a name that only an element type has.
fn is_element_name(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("TL_") && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The number of the input that a field names, which must come before this one.
fn earlier_input(
    field: &str,
    number: usize,
    known: &[Input],
    fields: &Fields,
    problems: &mut Problems,
) -> Option<usize> {
    let name = fields.text(field, problems)?.as_str();
    let found = known.iter().position(|input| input.name == name);
    let reason = match found {
        Some(found) if found < number => return Some(found),
        Some(_) => "which doesn't come before it",
        None => "which isn't an input",
    };
    let message = format!("the `{field}` of {} names '{name}', {reason}", fields.subject);
    fields.report(ProblemKind::UnknownReference, field, message, problems);
    None
}

/// What an output is, apart from its type, which a later step of the program says.
pub(super) fn output(name: &str, inputs: &[Input], fields: &Fields, problems: &mut Problems) -> Output {
    fields.warn_unknown(&OUTPUT_FIELDS, problems);
    let memory = fields.choice("mtype", &MEMORIES, problems).unwrap_or(0);
    Output {
        name: name.to_owned(),
        owner: named_input("owner", inputs, fields, problems),
        overwrites: named_input("overwrites", inputs, fields, problems),
        is_static: fields.truth("static", problems).unwrap_or(false),
        memory: memory as u8,
    }
}

/// The input that a field of an output names: `src_name`, or `src`.
fn named_input(field: &str, inputs: &[Input], fields: &Fields, problems: &mut Problems) -> Option<usize> {
    let text = fields.text(field, problems)?.as_str().trim();
    let named = |name: &str| inputs.iter().position(|input| input.name == name);
    let found = named(text).or_else(|| named(text.strip_suffix("_name")?));
    if found.is_none() {
        let message = format!("the `{field}` of {} is '{text}', which isn't an input", fields.subject);
        fields.report(ProblemKind::UnknownReference, field, message, problems);
    }
    found
}

/// Adds the definition of an output.
pub(super) fn define_output(number: usize, inputs: usize, fields: &Fields, builder: &mut Builder) {
    let types = builder.program.types[number];
    if !fields.has("custom") {
        for field in ["ndim", "dims", "dtype"] {
            if !fields.has(field) {
                let message = format!("{} needs `{field}`, or `custom` that defines it", fields.subject);
                fields.report(ProblemKind::MissingField, field, message, builder.problems);
            }
        }
    }
    builder.define(fields, "ndim", types.ndim);
    match fields.get("dims").map(|value| &value.kind) {
        Some(Kind::List(list)) => builder.define_list(fields, "dims", list, types.dims),
        _ => builder.define(fields, "dims", types.dims),
    }
    if element_type_is_known(fields, builder.problems) {
        builder.define(fields, "dtype", types.dtype);
    }
    builder.statements(fields, "custom");
    builder.program.steps.push(Step::Define(number));
    let entry = slot(builder.program.layout.tensors[inputs + number].entry);
    builder.compare(fields, "len", Function::CheckLen, entry);
    builder.statements(fields, "cleanup");
}
