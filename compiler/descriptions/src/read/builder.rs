//! Builds the program of a description from the texts of its fields.

use super::fields::Fields;
use crate::c::{
    Binary, Expr, ExprKind, Fault, Function, IntType, Names, Statement, Type, parse_check, parse_expression,
    parse_statements,
};
use crate::problem::{ProblemKind, Problems};
use crate::program::{Program, Snippet, Step};
use crate::source::Place;
use crate::syntax::{Kind, Text, TextBuilder, Tree};

/// The program so far, and where its problems go.
pub(super) struct Builder<'p> {
    pub program: Program,
    pub problems: &'p mut Problems,
}

/// A text that is none of the file's: the number that an expression is.
fn number_text(number: f64, place: Place) -> Text {
    // As C writes it: whole numbers are integers, others are of type double.
    let text =
        if number.fract() == 0.0 && number.abs() < 1e15 { format!("{number:.0}") } else { format!("{number:e}") };
    let mut builder = TextBuilder::new(place.file);
    builder.push_str(&text, place.offset as usize);
    builder.finish(place.offset as usize)
}

/// A variable as an expression.
pub(super) fn slot(number: usize) -> Expr {
    Expr { kind: ExprKind::Slot(number), at: 0 }
}

/// A number as an expression.
pub(super) fn int(number: usize) -> Expr {
    Expr { kind: ExprKind::Int(number as i64, IntType::INT), at: 0 }
}

/// A call as a statement.
pub(super) fn call(function: Function, arguments: Vec<Expr>) -> Statement {
    let at = arguments.last().map_or(0, |argument| argument.at);
    Statement::Expression(Expr { kind: ExprKind::Call(function, arguments), at })
}

/// An assignment as a statement.
pub(super) fn assign(target: Expr, value: Expr) -> Statement {
    let at = value.at;
    Statement::Expression(Expr { kind: ExprKind::Assign(Box::new(target), None::<Binary>, Box::new(value)), at })
}

/// Tells that a text of a field can't be parsed.
pub(super) fn report_fault(fields: &Fields, field: &str, text: &Text, fault: &Fault, problems: &mut Problems) {
    let line = if text.lines() > 1 { format!(", line {}", text.line(fault.at)) } else { String::new() };
    let message = format!("`{field}` of {}{line}: {}", fields.subject, fault.message);
    fields.report_at(ProblemKind::BadSnippet, field, text.place(fault.at), message, problems);
}

impl Builder<'_> {
    /// Adds a step that runs statements of a field.
    pub fn run(&mut self, fields: &Fields, field: &str, text: &Text, statements: Vec<Statement>) {
        let field = format!("`{field}` of {}", fields.subject);
        self.program.steps.push(Step::Run(Snippet { statements, text: text.clone(), field }));
    }

    /// Adds a step for a field that must be met by what no text says.
    pub fn run_plain(&mut self, fields: &Fields, field: &str, statement: Statement) {
        self.run(fields, field, &Text::default(), vec![statement]);
    }

    /// Parses a text of a field; what can't be is told.
    fn parsed<T>(
        &mut self,
        fields: &Fields,
        field: &str,
        text: &Text,
        parse: impl FnOnce(&str, &mut Names, &mut Vec<Vec<u8>>) -> Result<T, Fault>,
    ) -> Option<T> {
        let Program { names, strings, .. } = &mut self.program;
        match parse(text.as_str(), names, strings) {
            Ok(parsed) => Some(parsed),
            Err(fault) => {
                report_fault(fields, field, text, &fault, self.problems);
                None
            }
        }
    }

    /// The expression that a value is: a number, or a string.
    pub fn expression(&mut self, fields: &Fields, field: &str, value: &Tree) -> Option<(Expr, Text)> {
        let text = match &value.kind {
            Kind::Text(text) => text.clone(),
            Kind::Number(number) => number_text(*number, value.place),
            other => {
                let message = format!(
                    "the `{field}` of {} must be a number or a C expression, not {}",
                    fields.subject,
                    other.describe()
                );
                fields.report_at(ProblemKind::WrongType, field, value.place, message, self.problems);
                return None;
            }
        };
        let expr = self.parsed(fields, field, &text, parse_expression)?;
        Some((expr, text))
    }

    /// Adds a check that compares something with the expression of a field, if the field is there.
    pub fn compare(&mut self, fields: &Fields, field: &str, function: Function, with: Expr) {
        let Some(value) = fields.get(field) else { return };
        if let Some((expr, text)) = self.expression(fields, field, value) {
            self.run(fields, field, &text, vec![call(function, vec![with, expr])]);
        }
    }

    /// Adds the assignment of a field's expression to a variable, if the field is there.
    pub fn define(&mut self, fields: &Fields, field: &str, target: usize) {
        let Some(value) = fields.get(field) else { return };
        if let Some((expr, text)) = self.expression(fields, field, value) {
            self.run(fields, field, &text, vec![assign(slot(target), expr)]);
        }
    }

    /// Adds the assignment of a field's expression, if the field is there, to a whole number without a name.
    pub fn figure(&mut self, fields: &Fields, field: &str) -> Option<usize> {
        fields.get(field)?;
        let target = self.program.names.unnamed(Type::int(IntType::LONG), false)?;
        self.define(fields, field, target);
        Some(target)
    }

    /// Adds the assignment of a list of extents to a variable.
    pub fn define_list(&mut self, fields: &Fields, field: &str, list: &[Tree], target: usize) {
        let bytes = int(list.len().max(1) * 4);
        let memory = Expr { kind: ExprKind::Call(Function::Allocate, vec![bytes]), at: 0 };
        let memory = Expr { kind: ExprKind::Cast(Type::INT.pointer(), Box::new(memory)), at: 0 };
        self.run_plain(fields, field, assign(slot(target), memory));
        for (number, value) in list.iter().enumerate() {
            let field = format!("{field}/{number}");
            if let Some((expr, text)) = self.expression(fields, &field, value) {
                let kind = ExprKind::Index(Box::new(slot(target)), Box::new(int(number)));
                self.run(fields, &field, &text, vec![assign(Expr { kind, at: 0 }, expr)]);
            }
        }
    }

    /// Adds statements of a field, if it is there.
    pub fn statements(&mut self, fields: &Fields, field: &str) {
        let Some(text) = fields.text(field, self.problems) else { return };
        let parse =
            |text: &str, names: &mut Names, strings: &mut Vec<Vec<u8>>| parse_statements(text, false, names, strings);
        if let Some(code) = self.parsed(fields, field, text, parse) {
            self.run(fields, field, text, code.statements);
        }
    }

    /// Adds the check of a field, if it is there.
    pub fn check(&mut self, fields: &Fields, field: &str) {
        let Some(text) = fields.text(field, self.problems) else { return };
        if let Some(check) = self.parsed(fields, field, text, parse_check) {
            self.run(fields, field, text, vec![Statement::Expression(check)]);
        }
    }

    /// Adds the checks of a list; `required` says whether each entry must have one.
    pub fn checks(&mut self, fields: &Fields, required: bool) {
        let list = fields.list("checks", self.problems);
        for mut entry in fields.objects("checks", list, "an entry of `checks`", self.problems) {
            entry.subject = format!("an entry of the `checks` of {}", fields.subject);
            entry.warn_unknown(&["check"], self.problems);
            if required {
                entry.require("check", self.problems);
            }
            self.check(&entry, "check");
        }
    }
}
