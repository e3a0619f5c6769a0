//! What the preprocessor leaves, statement by statement. One that is wrong costs nothing but itself.

use super::token::{Kind, Token};
use crate::model::{Argument, Model, Operator, Parameter, ParameterValue};
use indexmap::{IndexMap, IndexSet};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};

/// The model that the words describe.
pub fn model(tokens: Vec<Token>, report: &mut Report) -> Model {
    let mut model = Model::default();
    let mut names = Names::default();
    for statement in tokens.split(|token| token.is(";")).filter(|statement| !statement.is_empty()) {
        if report.is_full() {
            break;
        }
        let mut parser = Parser { tokens: statement, at: 0 };
        match parser.statement() {
            Ok(operator) => model.operators.push(names.named(operator)),
            Err(finding) => {
                let line = statement[0].spot.line;
                let message = format!("in the statement of line {line}: {}", finding.message);
                report.push(Diagnostic { message, ..finding });
            }
        }
    }
    model
}

/// Names of operators: the type, and a number for each type.
#[derive(Default)]
struct Names {
    numbers: IndexMap<String, usize>,
    taken: IndexSet<String>,
}

impl Names {
    fn named(&mut self, mut operator: Operator) -> Operator {
        let number = self.numbers.entry(operator.kind.clone()).or_default();
        operator.name = format!("{}{number}", operator.kind);
        // The tenth `foo` isn't the first `foo1`.
        while !self.taken.insert(operator.name.clone()) {
            operator.name = format!("{}_{number}", operator.name);
        }
        *number += 1;
        operator
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    /// A break of the grammar at what comes next.
    fn unexpected(&self, expected: &str) -> Diagnostic {
        match self.peek() {
            Some(token) => token.syntax(format!("{expected} expected, {} found", token.shown())),
            None => self.tokens[self.tokens.len() - 1].syntax(format!("{expected} expected behind this")),
        }
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = self.peek().is_some_and(|token| token.is(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str, expected: &str) -> Result<(), Diagnostic> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn name(&mut self, expected: &str) -> Result<&'a Token, Diagnostic> {
        let name = self.peek().filter(|token| token.kind == Kind::Name && !token.text.contains('$'));
        let name = name.ok_or_else(|| self.unexpected(expected))?;
        self.at += 1;
        Ok(name)
    }

    fn statement(&mut self) -> Result<Operator, Diagnostic> {
        const BARS: &str = "`,`, or the second of the two `|` between inputs, outputs and parameters";
        let kind = self.name("the type of an operator")?;
        self.expect("(", "`(`")?;
        let inputs = self.arguments(Self::tensor)?;
        self.expect("|", "`,`, or the first of the two `|` between inputs, outputs and parameters")?;
        let outputs = self.arguments(Self::tensor)?;
        self.expect("|", BARS)?;
        let parameters = self.arguments(Self::parameter)?;
        self.expect(")", "`,` or `)`")?;
        if self.peek().is_some() {
            return Err(self.unexpected("`;`"));
        }
        let (kind, place) = (kind.text.to_string(), kind.place());
        Ok(Operator { name: String::new(), kind, inputs, outputs, parameters, place })
    }

    /// The arguments up to what can't be one.
    fn arguments<T>(
        &mut self,
        read: impl Fn(&mut Self, String) -> Result<T, Diagnostic>,
    ) -> Result<Vec<T>, Diagnostic> {
        let mut arguments = Vec::new();
        while self.peek().is_some_and(|token| token.kind == Kind::Name) {
            let name = self.name("the name of an argument")?.text.to_string();
            self.expect("=", "`=`")?;
            arguments.push(read(self, name)?);
            if !self.take(",") {
                break;
            }
        }
        Ok(arguments)
    }

    fn tensor(&mut self, name: String) -> Result<Argument, Diagnostic> {
        let tensor = self.name("the name of a tensor")?.text.to_string();
        Ok(Argument { name, tensor })
    }

    fn parameter(&mut self, name: String) -> Result<Parameter, Diagnostic> {
        let value = if self.take("[") { self.list()? } else { self.value()? };
        Ok(Parameter { name, value })
    }

    /// A list behind its bracket.
    fn list(&mut self) -> Result<ParameterValue, Diagnostic> {
        let first = self.scalar()?;
        let mut found = match first {
            ParameterValue::Bool(value) => ParameterValue::Bools(vec![value]),
            ParameterValue::Number(value) => ParameterValue::Numbers(vec![value]),
            ParameterValue::Text(text) => ParameterValue::Texts(vec![text]),
            _ => return Err(self.unexpected("a number, a text, true or false before this")),
        };
        while self.take(",") && !self.peek().is_some_and(|token| token.is("]")) {
            let start = self.at;
            match (&mut found, self.scalar()?) {
                (ParameterValue::Bools(values), ParameterValue::Bool(value)) => values.push(value),
                (ParameterValue::Numbers(values), ParameterValue::Number(value)) => values.push(value),
                (ParameterValue::Texts(texts), ParameterValue::Text(text)) => texts.push(text),
                _ => {
                    self.at = start;
                    return Err(self.unexpected("a value of the same kind as the list's first"));
                }
            }
        }
        self.expect("]", "`,` or `]`")?;
        Ok(found)
    }

    /// A value that isn't a list. A name that means nothing else is a text.
    fn value(&mut self) -> Result<ParameterValue, Diagnostic> {
        let word = self.peek().filter(|token| token.kind == Kind::Name && !token.text.contains('$'));
        match word.map(|word| &*word.text) {
            None | Some("true" | "false" | "null") => self.scalar(),
            Some(text) => {
                self.at += 1;
                Ok(ParameterValue::Text(text.to_owned()))
            }
        }
    }

    fn scalar(&mut self) -> Result<ParameterValue, Diagnostic> {
        let is_negative = self.take("-");
        let has_sign = is_negative || self.take("+");
        let Some(token) = self.peek() else { return Err(self.unexpected("a value")) };
        let value = match token.kind {
            Kind::Number => {
                let number = token.text.parse().ok();
                let number: f64 = number.ok_or_else(|| token.syntax(format!("{} isn't a number", token.shown())))?;
                if !number.is_finite() {
                    let message = format!("{} is beyond what a double holds", token.shown());
                    return Err(token.fault(Code::NumberOutOfRange, message));
                }
                ParameterValue::Number(if is_negative { -number } else { number })
            }
            _ if has_sign => return Err(self.unexpected("a number")),
            Kind::String => ParameterValue::Text(token.text[1..token.text.len() - 1].to_owned()),
            Kind::Name if token.is_name("true") => ParameterValue::Bool(true),
            Kind::Name if token.is_name("false") => ParameterValue::Bool(false),
            Kind::Name if token.is_name("null") => ParameterValue::Null,
            Kind::Name | Kind::Mark => return Err(self.unexpected("a number, a text in quotes, true, false or null")),
        };
        self.at += 1;
        Ok(value)
    }
}
