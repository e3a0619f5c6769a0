//! Writing a PNNX model, in the current exporter's form.
//!
//! What an exporter of the current release wrote comes back byte for byte, both files. Text and archive are built in
//! memory; nothing is written to disk here.

mod archive;

pub use archive::to_bin;

use super::model::{Model, Operator};
use super::value::format_parameter;
use std::fmt::Write;

/// Why a model can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The text has no quotes, so nothing in it can hold a blank, and no name can be empty.
    #[error("operator \"{operator}\": {what} `{text}` is empty or holds a blank, which the text can't express")]
    NotExpressible {
        /// Name of the operator.
        operator: String,
        /// What the text is.
        what: &'static str,
        /// The text.
        text: String,
    },
    /// A ZIP entry's name has at most 65535 bytes.
    #[error("the weight `{0}` has a name of more than 65535 bytes")]
    NameTooLong(String),
}

/// Writes the `.param` file.
///
/// Operand names are kept, keys are sorted, and floats are spelled so that the same bits are read back. Labels are
/// written if there is one (perhaps absent) for every input.
pub fn to_param_text(model: &Model) -> Result<String, WriteError> {
    let mut text = format!("7767517\n{} {}\n", model.operators.len(), model.operands.len());
    for operator in &model.operators {
        write_operator(&mut text, model, operator)?;
    }
    Ok(text)
}

fn write_operator(text: &mut String, model: &Model, operator: &Operator) -> Result<(), WriteError> {
    let mut line = Line { text, operator };
    line.check("type", &operator.kind)?;
    line.check("name", &operator.name)?;
    let (inputs, outputs) = (operator.inputs.len(), operator.outputs.len());
    line.push(format_args!("{:<24} {:<24} {inputs} {outputs}", operator.kind, operator.name));
    let operands = || operator.inputs.iter().chain(&operator.outputs).map(|&id| model.operand(id));
    for operand in operands() {
        line.check("operand", &operand.name)?;
        line.push(format_args!(" {}", operand.name));
    }
    for (key, parameter) in &operator.parameters {
        line.check("key", key)?;
        let value = format_parameter(parameter);
        line.check_blanks("value", &value)?;
        line.push(format_args!(" {key}={value}"));
    }
    for (key, attribute) in &operator.attributes {
        line.check("key", key)?;
        line.push(format_args!(" @{key}={}", attribute.type_text()));
    }
    if operator.input_names.len() == operator.inputs.len() {
        for (name, &input) in operator.input_names.iter().zip(&operator.inputs) {
            if let Some(name) = name {
                line.check("key", name)?;
                line.push(format_args!(" ${name}={}", model.operand(input).name));
            }
        }
    }
    for operand in operands() {
        if let Some(ty) = &operand.ty {
            line.push(format_args!(" #{}={ty}", operand.name));
        }
    }
    text.push('\n');
    Ok(())
}

struct Line<'a> {
    text: &'a mut String,
    operator: &'a Operator,
}

impl Line<'_> {
    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(piece);
    }

    fn check(&self, what: &'static str, text: &str) -> Result<(), WriteError> {
        if text.is_empty() { self.fail(what, text) } else { self.check_blanks(what, text) }
    }

    fn check_blanks(&self, what: &'static str, text: &str) -> Result<(), WriteError> {
        let breaks = text.contains(|character: char| character == ' ' || character.is_control());
        if breaks { self.fail(what, text) } else { Ok(()) }
    }

    fn fail(&self, what: &'static str, text: &str) -> Result<(), WriteError> {
        Err(WriteError::NotExpressible { operator: self.operator.name.clone(), what, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
