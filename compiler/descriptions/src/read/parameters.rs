//! Parameters.

use super::builder::{Builder, slot};
use super::fields::Fields;
use super::names::is_type;
use crate::c::{Function, PARAMETERS, RELATIONS, is_name};
use crate::parameter::{Parameter, ParameterKind, ParameterValue};
use crate::problem::{ProblemKind, Problems};
use crate::program::Step;
use crate::syntax::{Kind, Tree};

const FIELDS: [&str; 15] = [
    "arg_name",
    "ptype",
    "realtype",
    "from_func",
    "len",
    "eq",
    "gt",
    "ge",
    "lt",
    "le",
    "ne",
    "check",
    "checks",
    "custom",
    "default",
];

/// What a parameter is; nothing if its type isn't known.
pub(super) fn parameter(name: &str, fields: &Fields, problems: &mut Problems) -> Option<Parameter> {
    fields.warn_unknown(&FIELDS, problems);
    let (kind, array) = match PARAMETERS[fields.choice("ptype", &PARAMETERS, problems)?] {
        "LN_PARAM_STRING" => (ParameterKind::Text, false),
        "LN_PARAM_NUMBER" => (ParameterKind::Number, false),
        "LN_PARAM_BOOL" => (ParameterKind::Bool, false),
        "LN_PARAM_ARRAY_STRING" => (ParameterKind::Text, true),
        "LN_PARAM_ARRAY_NUMBER" => (ParameterKind::Number, true),
        "LN_PARAM_ARRAY_BOOL" => (ParameterKind::Bool, true),
        _ => (ParameterKind::Null, false),
    };
    let real_type = real_type(kind, fields, problems);
    let from_function = from_function(kind, fields, problems);
    let default = fields.get("default").and_then(|value| default(kind, array, value, fields, problems));
    Some(Parameter { name: name.to_owned(), kind, array, real_type, from_function, default })
}

fn real_type(kind: ParameterKind, fields: &Fields, problems: &mut Problems) -> Option<String> {
    match kind {
        ParameterKind::Number => {
            let text = fields.required_text("realtype", problems)?.as_str();
            fields.chosen("realtype", text, &["int", "float", "double"], problems)?;
            Some(text.to_owned())
        }
        ParameterKind::Text => {
            let text = fields.text("realtype", problems)?.as_str();
            if !is_type(text) {
                let message = format!("the `realtype` of {} is '{text}', which isn't a type of C", fields.subject);
                fields.report(ProblemKind::BadIdentifier, "realtype", message, problems);
                return None;
            }
            Some(text.trim().to_owned())
        }
        ParameterKind::Null | ParameterKind::Bool => None,
    }
}

fn from_function(kind: ParameterKind, fields: &Fields, problems: &mut Problems) -> Option<String> {
    if kind != ParameterKind::Text || !fields.has("realtype") {
        return None;
    }
    let name = fields.required_text("from_func", problems)?.as_str();
    if !is_name(name) {
        let message = format!("the `from_func` of {} is '{name}', which isn't an identifier of C", fields.subject);
        fields.report(ProblemKind::BadIdentifier, "from_func", message, problems);
        return None;
    }
    if Function::named(name).is_none_or(|(_, least, _)| least != 1) {
        let message = format!(
            "the `from_func` of {} is '{name}', which can't be called while shapes are inferred",
            fields.subject
        );
        fields.report(ProblemKind::BadSnippet, "from_func", message, problems);
        return None;
    }
    Some(name.to_owned())
}

/// The value of operators that give none.
fn default(
    kind: ParameterKind,
    array: bool,
    value: &Tree,
    fields: &Fields,
    problems: &mut Problems,
) -> Option<ParameterValue> {
    let found = if array {
        match &value.kind {
            Kind::List(list) => array_value(kind, list),
            _ => None,
        }
    } else {
        match (kind, &value.kind) {
            (ParameterKind::Null, Kind::Null | Kind::Number(0.0)) => Some(ParameterValue::Null),
            (ParameterKind::Text, Kind::Text(text)) => Some(ParameterValue::Text(text.as_str().to_owned())),
            (ParameterKind::Number, Kind::Number(number)) => Some(ParameterValue::Number(*number)),
            (ParameterKind::Bool, value) => truth(value).map(ParameterValue::Bool),
            _ => None,
        }
    };
    if found.is_none() {
        let message = format!("the `default` of {} isn't a value of its `ptype`", fields.subject);
        fields.report(ProblemKind::WrongType, "default", message, problems);
    }
    found
}

fn array_value(kind: ParameterKind, list: &[Tree]) -> Option<ParameterValue> {
    let values = list.iter().map(|tree| &tree.kind);
    match kind {
        ParameterKind::Text => values.map(text).collect::<Option<_>>().map(ParameterValue::Texts),
        ParameterKind::Number => values.map(number).collect::<Option<_>>().map(ParameterValue::Numbers),
        ParameterKind::Bool => values.map(truth).collect::<Option<_>>().map(ParameterValue::Bools),
        ParameterKind::Null => None,
    }
}

fn text(value: &Kind) -> Option<String> {
    match value {
        Kind::Text(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

fn number(value: &Kind) -> Option<f64> {
    match value {
        Kind::Number(number) => Some(*number),
        _ => None,
    }
}

fn truth(value: &Kind) -> Option<bool> {
    match value {
        Kind::Bool(truth) => Some(*truth),
        Kind::Number(number) if *number == 0.0 || *number == 1.0 => Some(*number == 1.0),
        _ => None,
    }
}

/// Adds the checks of a parameter.
pub(super) fn check_parameter(number: usize, parameter: &Parameter, fields: &Fields, builder: &mut Builder) {
    let entry = slot(builder.program.layout.parameters[number].entry);
    builder.program.steps.push(Step::Parameter(number));
    if parameter.array {
        builder.compare(fields, "len", Function::CheckArrayLen, entry.clone());
    }
    if parameter.kind == ParameterKind::Number {
        for (field, relation) in RELATIONS {
            let function =
                if parameter.array { Function::CheckBounds(relation) } else { Function::CheckBound(relation) };
            builder.compare(fields, field, function, entry.clone());
        }
    }
    builder.check(fields, "check");
    builder.checks(fields, true);
    builder.statements(fields, "custom");
}
