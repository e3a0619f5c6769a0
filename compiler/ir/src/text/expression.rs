//! Parses scalar expressions: `multiply(x0, sigmoid(x0))`, with named steps `t0 = add(x0, x1); multiply(t0, tanh(t0))`.

use super::cursor::Cursor;
use super::lexer::{Kind, Token, lex};
use super::suggest::nearest;
use super::values;
use crate::diagnostics::Diagnostic;
use crate::fields::FieldValue;
use crate::literal::Literal;
use crate::scalar::{BinaryFunction, Expression, ExpressionBuilder, Rounding, ScalarId, ScalarNode, UnaryFunction};
use crate::types::DType;
use std::collections::BTreeMap;

/// How deep calls may nest; printed expressions name a step before that.
const MAXIMUM_DEPTH: usize = 128;

/// Operands are numbered up to this, so that hostile text can't make lists of operands huge.
const MAXIMUM_OPERAND: u32 = 1 << 16;

/// Parses an expression that is all of a text.
///
/// # Errors
/// A diagnostic with line and column.
pub fn parse_expression(text: &str) -> Result<Expression, Diagnostic> {
    let mut cursor = Cursor::new(lex(text)?);
    let expression = parse(&mut cursor)?;
    if *cursor.kind() == Kind::End { Ok(expression) } else { Err(cursor.unexpected("the end of the expression")) }
}

/// Parses an expression and stops behind it.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Expression, Diagnostic> {
    let mut parser = Parser { cursor, builder: ExpressionBuilder::default(), steps: BTreeMap::new() };
    loop {
        let named = match (parser.cursor.kind(), parser.cursor.second()) {
            (Kind::Word(name), Kind::Mark('=')) => Some((*name).to_owned()),
            _ => None,
        };
        let Some(name) = named else {
            let result = parser.term(0)?;
            return Ok(parser.builder.finish(result));
        };
        let token = parser.cursor.next();
        if numbered(&name, 't').is_none() {
            return Err(token.error(format!("{name} found, the name of a step expected, such as t0")));
        }
        parser.cursor.next();
        let step = parser.term(0)?;
        parser.cursor.expect(';')?;
        if parser.steps.insert(name.clone(), step).is_some() {
            return Err(token.error(format!("step {name} is defined twice")));
        }
    }
}

struct Parser<'a, 'text> {
    cursor: &'a mut Cursor<'text>,
    builder: ExpressionBuilder,
    steps: BTreeMap<String, ScalarId>,
}

impl Parser<'_, '_> {
    fn term(&mut self, depth: usize) -> Result<ScalarId, Diagnostic> {
        let token = self.cursor.peek().clone();
        if depth >= MAXIMUM_DEPTH {
            return Err(token.error(format!("calls nest deeper than {MAXIMUM_DEPTH}; name a step: `t0 = …; …`")));
        }
        if let Kind::Number(_) = token.kind {
            let value = values::number(self.cursor)?;
            return self.literal(&token, value);
        }
        if let Some(value) = values::special_number(self.cursor)? {
            return self.literal(&token, value);
        }
        let word = self.cursor.word("an expression")?;
        if self.cursor.accept('(') {
            let arguments = self.cursor_list(depth)?;
            return self.call(&token, word, &arguments);
        }
        if let Some(&step) = self.steps.get(word) {
            return Ok(step);
        }
        match (word, numbered(word, 'x')) {
            ("true" | "false", _) => Ok(self.builder.literal(Literal::integer(DType::Bool, i64::from(word == "true")))),
            (_, Some(operand)) if operand <= MAXIMUM_OPERAND => Ok(self.builder.operand(operand)),
            _ => Err(token.error(format!("{word} isn't defined: operands are x0, x1, …"))),
        }
    }

    fn cursor_list(&mut self, depth: usize) -> Result<Vec<ScalarId>, Diagnostic> {
        let mut arguments = Vec::new();
        if self.cursor.accept(')') {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.term(depth + 1)?);
            if self.cursor.accept(')') {
                return Ok(arguments);
            }
            self.cursor.expect(',')?;
        }
    }

    fn literal(&mut self, token: &Token<'_>, value: FieldValue) -> Result<ScalarId, Diagnostic> {
        match value {
            FieldValue::Literal(literal) => Ok(self.builder.literal(literal)),
            _ => Err(token.error("numbers in expressions have a type, such as 0.5_f32 or 7_i64")),
        }
    }

    fn call(&mut self, token: &Token<'_>, name: &str, arguments: &[ScalarId]) -> Result<ScalarId, Diagnostic> {
        let (node, expected) = if let Some(function) = UnaryFunction::parse(name) {
            (arguments.first().map(|&x| ScalarNode::Unary(function, x)), 1)
        } else if let Some(function) = BinaryFunction::parse(name) {
            let node = |pair: &[ScalarId]| ScalarNode::Binary(function, pair[0], pair[1]);
            (arguments.get(..2).map(node), 2)
        } else if name == "select" {
            (arguments.get(..3).map(|list| ScalarNode::Select(list[0], list[1], list[2])), 3)
        } else if let Some(dtype) = name.strip_prefix("cast_").and_then(DType::parse) {
            (arguments.first().map(|&x| ScalarNode::Cast(dtype, x)), 1)
        } else if let Some(dtype) = name.strip_prefix("bit_cast_").and_then(DType::parse) {
            (arguments.first().map(|&x| ScalarNode::BitCast(dtype, x)), 1)
        } else if let Some(rounding) = name.strip_prefix(Rounding::PREFIX).and_then(Rounding::parse) {
            (arguments.first_chunk().map(|list| ScalarNode::Rescale(rounding, *list)), 3)
        } else {
            return Err(unknown(token, name));
        };
        match node {
            Some(node) if arguments.len() == expected => Ok(self.builder.push(node)),
            _ => Err(token.error(format!("{name} takes {expected} arguments, {} given", arguments.len()))),
        }
    }
}

/// The number of a name such as `x3`; leading zeros aren't allowed, so that each has one spelling.
fn numbered(word: &str, letter: char) -> Option<u32> {
    let digits = word.strip_prefix(letter)?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

fn unknown(token: &Token<'_>, name: &str) -> Diagnostic {
    let unary = UnaryFunction::ALL.iter().map(|function| function.name());
    let binary = BinaryFunction::ALL.iter().map(|function| function.name());
    let fault = token.error(format!("there is no function {name}"));
    match nearest(name, unary.chain(binary).chain(["select"])) {
        Some(near) => fault.with_help(format!("is {near} meant?")),
        None => fault,
    }
}
