//! The rules for the operators of the format itself.

use super::lines::{OperatorLine, Prefix};
use super::report::Report;
use crate::expression::{Expression, ExpressionErrorKind};
use crate::model::{Model, Operator};
use mlc_ir::{Code, Diagnostic, Location};

/// Checks one operator on its own.
pub(super) fn check_operator(line: &OperatorLine<'_>, operator: &Operator, attributes: usize, report: &mut Report) {
    match operator.kind.as_str() {
        "pnnx.Input" => {
            check_counts(line, "no inputs and one output", |inputs, outputs| inputs == 0 && outputs == 1, report)
        }
        "pnnx.Output" => {
            check_counts(line, "some inputs and no outputs", |inputs, outputs| inputs > 0 && outputs == 0, report)
        }
        "pnnx.Attribute" => {
            check_counts(line, "no inputs and one output", |inputs, outputs| inputs == 0 && outputs == 1, report);
            if attributes != 1 {
                let message = format!("a pnnx.Attribute holds one weight, found {attributes}");
                let diagnostic = Diagnostic::error(Code::ParameterMissing, line.at(line.kind.column), message);
                report.push(diagnostic.with_help("the weight is declared as in @data=(1,16)f32"));
            }
        }
        "pnnx.Expression" => {
            check_counts(line, "one output", |_, outputs| outputs == 1, report);
            check_expression(line, report);
        }
        _ => {}
    }
}

fn check_counts(line: &OperatorLine<'_>, expected: &str, admissible: fn(usize, usize) -> bool, report: &mut Report) {
    let (inputs, outputs) = (line.inputs.len(), line.outputs.len());
    if !admissible(inputs, outputs) {
        let message = format!("a {} has {expected}, found {inputs} and {outputs}", line.kind.text);
        report.push(Diagnostic::error(Code::OperandCount, line.at(line.kind.column), message));
    }
}

fn check_expression(line: &OperatorLine<'_>, report: &mut Report) {
    let is_expression = |prefix, key| prefix == Prefix::Parameter && key == "expr";
    let Some(key_value) = line.key_values.iter().find(|found| is_expression(found.prefix, found.key)) else {
        let message = "a pnnx.Expression needs the parameter `expr`";
        report.push(Diagnostic::error(Code::ParameterMissing, line.at(line.kind.column), message));
        return;
    };
    match Expression::parse(key_value.value) {
        Ok(expression) => {
            if let Some(highest) = expression.highest_input().filter(|&input| input as usize >= line.inputs.len()) {
                let message = format!("the expression uses input @{highest} of {}", line.inputs.len());
                let diagnostic = Diagnostic::error(Code::UndefinedValue, line.at(key_value.value_column), message);
                report.push(diagnostic.with_help("@0 is the operator's first input"));
            }
        }
        Err(error) => {
            let code = match error.kind {
                ExpressionErrorKind::UnknownFunction(_) => Code::OperatorUnsupported,
                _ => Code::Syntax,
            };
            let column = key_value.value_column + error.column as u32 - 1;
            report.push(Diagnostic::error(code, line.at(column), format!("in the expression: {error}")));
        }
    }
}

/// Checks the graph as a whole.
pub(super) fn check_graph(model: &Model, report: &mut Report) {
    if !model.operators.iter().any(|operator| operator.kind == "pnnx.Output") {
        let message = "the model has no pnnx.Output";
        let last = model.operators.last().map_or(2, |operator| operator.line);
        let diagnostic = Diagnostic::warning(Code::NoOutput, Location::line(last), message);
        report.push(diagnostic.with_note("the operands that nothing uses can stand in for the outputs"));
    }
}
