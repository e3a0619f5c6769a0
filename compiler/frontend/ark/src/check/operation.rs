//! One operation: its operator, counts, arguments, rule, and what its results are names of.

use super::product::{DERIVED, check_derived};
use super::signature::{Renames, Signature, kinds, signature};
use super::subject::Subject;
use crate::model::{Tensor, TensorIndex};
use mlc_import::nearest;
use mlc_ir::{Code, Diagnostic};
use mlc_json::shortened;

/// What is wrong with an operation, or strange. `is_described` says of operators that aren't ARK's whether somebody else knows them.
pub(crate) fn check_operation(subject: &Subject, is_described: &dyn Fn(&str) -> bool) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let own =
        |tensor: &TensorIndex| subject.operation.reads.contains(tensor) || subject.operation.writes.contains(tensor);
    if let Some(position) = subject.operation.results.iter().position(own) {
        let tensor = subject.model.tensor(subject.operation.results[position]);
        let message = format!("tensor {} is a result, and read or written here", tensor.id);
        found.push(subject.fault(format!("ResultTensors[{position}]"), Code::DuplicateDefinition, message));
    }
    let checked = if subject.operation.is_virtual {
        check_virtual(subject, &mut found)
    } else {
        match signature(&subject.operation.kind) {
            Some(signature) => check_computing(subject, signature, &mut found),
            None if is_described(&subject.operation.kind) => Ok(()),
            None => Err(unknown(subject)),
        }
    };
    found.extend(checked.err());
    found
}

fn unknown(subject: &Subject) -> Diagnostic {
    let kind = &subject.operation.kind;
    if ["Tensor", "Placeholder"].contains(&&**kind) {
        return subject.fault(
            "IsVirtual",
            Code::ParameterInvalid,
            format!("{kind} computes nothing, and must be virtual"),
        );
    }
    let finding =
        subject.fault("Type", Code::OperatorUnsupported, format!("the operator {:?} isn't known", shortened(kind)));
    match nearest(&shortened(kind), kinds()) {
        Some(nearest) => finding.with_note(format!("the nearest known operator is {nearest}")),
        None => finding,
    }
}

fn check_virtual(subject: &Subject, found: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let operation = subject.operation;
    let kind = &operation.kind;
    if signature(kind).is_some() {
        return Err(subject.fault(
            "IsVirtual",
            Code::ParameterInvalid,
            format!("{kind} computes, and can't be virtual"),
        ));
    }
    counts(subject, "WriteTensors", operation.writes.len(), (0, 0))?;
    counts(subject, "ResultTensors", operation.results.len(), (1, 1))?;
    let result = subject.model.buffer_of(operation.results[0]);
    match &**kind {
        "Tensor" => {}
        "Placeholder" => {
            counts(subject, "ReadTensors", operation.reads.len(), (0, 0))?;
            if !(result.is_external && result.send_tags.is_empty() && result.receive_tags.is_empty()) {
                let message = "a placeholder's buffer must be external and without messages";
                return Err(subject.fault("ResultTensors[0].Buffer", Code::ParameterInvalid, message));
            }
        }
        _ => {
            let meaning = if operation.reads.is_empty() { "a declaration" } else { "a view" };
            let message = format!("the virtual operator {:?} isn't known, and taken for {meaning}", shortened(kind));
            found.push(Diagnostic::warning(Code::OperatorUnsupported, subject.location("Type"), message));
        }
    }
    let source = operation.view_of().map(|source| subject.model.buffer_of(source));
    if let Some(source) = source.filter(|source| source.id != result.id) {
        let message = format!("a view of buffer {} lies in buffer {}", source.id, result.id);
        return Err(subject.fault("ResultTensors[0].Buffer", Code::ParameterInvalid, message));
    }
    Ok(())
}

fn check_computing(subject: &Subject, signature: &Signature, found: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let operation = subject.operation;
    counts(subject, "ReadTensors", operation.reads.len(), signature.reads)?;
    counts(subject, "WriteTensors", operation.writes.len(), signature.writes)?;
    let results = usize::from(signature.renames != Renames::Nothing);
    counts(subject, "ResultTensors", operation.results.len(), (results, results))?;
    check_arguments(subject, signature, found);
    if found.iter().any(Diagnostic::is_error) {
        return Ok(());
    }
    let renamed = match signature.renames {
        Renames::Nothing => None,
        Renames::Written(position) => Some(("WriteTensors", position, subject.written(position))),
        Renames::Read => Some(("ReadTensors", 0, subject.read(0))),
    };
    if let Some((field, position, renamed)) = renamed
        && !same_but_for_id(renamed, subject.model.tensor(operation.results[0]))
    {
        let message =
            format!("the result must be {field}[{position}] under a new number: same buffer, type and window");
        found.push(subject.fault("ResultTensors[0]", Code::ShapeMismatch, message));
    }
    if !signature.communicates {
        for (field, tensors) in [("ReadTensors", &operation.reads), ("WriteTensors", &operation.writes)] {
            for position in 0..tensors.len() {
                subject.local(field, tensors, position)?;
            }
        }
    }
    check_overlap(subject)?;
    (signature.rule)(subject)?;
    if signature.kind == "Matmul" {
        found.extend(check_derived(subject));
    }
    Ok(())
}

fn same_but_for_id(a: &Tensor, b: &Tensor) -> bool {
    a.same_window(b) && a.data_type == b.data_type && a.padded_shape == b.padded_shape
}

fn counts(subject: &Subject, field: &str, found: usize, (least, most): (usize, usize)) -> Result<(), Diagnostic> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let expected = match (least, most) {
        (least, usize::MAX) => format!("at least {least}"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let message = format!("{field} has {found} tensors, {expected} expected");
    Err(subject.fault(field, Code::OperandCount, message))
}

fn check_arguments(subject: &Subject, signature: &Signature, found: &mut Vec<Diagnostic>) {
    for (name, kind) in signature.arguments.iter().chain(signature.optional) {
        match subject.operation.argument(name) {
            None if signature.optional.contains(&(name, kind)) => {}
            None => {
                let message = format!("the argument {name}, {kind}, is missing");
                found.push(subject.fault("Args", Code::ParameterMissing, message));
            }
            Some(argument) if argument.kind() != *kind => {
                let message = format!("the argument {name} is {}, {kind} expected", argument.kind());
                found.push(subject.fault(format_args!("Args[{name:?}]"), Code::ParameterInvalid, message));
            }
            Some(_) => {}
        }
    }
    let own = || signature.arguments.iter().chain(signature.optional).map(|(name, _)| *name);
    let known = |name: &str| own().any(|known| known == name) || DERIVED.contains(&name);
    for name in subject.operation.arguments.keys().filter(|name| !known(name)) {
        if !signature.optional.is_empty() {
            let names = own().collect::<Vec<_>>().join(", ");
            let message = format!("nothing is known of an argument {:?}: {names} are known", shortened(name));
            let place = format!("Args[{:?}]", shortened(name));
            found.push(subject.fault(place, Code::ParameterInvalid, message));
            continue;
        }
        let message = format!("{} has no argument {:?}; it is passed over", signature.kind, shortened(name));
        found.push(Diagnostic::warning(Code::Unused, subject.location("Args"), message));
    }
}

/// Elements are read before any is written, but kernels needn't do all of one before the other: a tensor that is written is one
/// that is read, wholly, or has nothing of it.
fn check_overlap(subject: &Subject) -> Result<(), Diagnostic> {
    for (position, &written) in subject.operation.writes.iter().enumerate() {
        let written = subject.model.tensor(written);
        for (other, &read) in subject.operation.reads.iter().enumerate() {
            let read = subject.model.tensor(read);
            if read.overlaps(written) && !read.same_window(written) {
                let message = format!(
                    "tensor {} that is written has a part of tensor {}, ReadTensors[{other}]",
                    written.id, read.id
                );
                return Err(subject.fault(format!("WriteTensors[{position}]"), Code::VariantUnsupported, message));
            }
        }
    }
    Ok(())
}
