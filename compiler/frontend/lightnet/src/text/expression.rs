//! [`Parser`]: expressions of numbers, by the strengths of their operators.

use super::budget::MOST_DEPTH;
use super::token::{Kind, Token};
use mlc_ir::{Code, Diagnostic};

/// What is computed with: which operators there are, and what they do.
pub trait Arithmetic {
    /// The numbers.
    type Number: Copy;

    /// How strong an operator between two operands is, and whether the right one of two equal ones comes first.
    fn strength(&self, operator: &str) -> Option<(u8, bool)>;

    /// How strong an operator before its operand is.
    fn prefix_strength(&self, operator: &str) -> Option<u8>;

    /// A number of the text.
    fn number(&self, text: &str) -> Option<Self::Number>;

    /// A name that isn't a function.
    ///
    /// # Errors
    /// When it stands for no number.
    fn name(&self, name: &str) -> Result<Self::Number, String>;

    /// A function of one number; `None` when there is none of that name.
    fn call(&self, name: &str, x: Self::Number) -> Option<Result<Self::Number, String>>;

    /// An operator before its operand.
    fn prefix(&self, operator: &str, x: Self::Number) -> Self::Number;

    /// An operator between its operands.
    ///
    /// # Errors
    /// When it has no value.
    fn binary(&self, operator: &str, x: Self::Number, y: Self::Number) -> Result<Self::Number, String>;
}

/// Computes an expression.
///
/// # Errors
/// When it is none, or has no value. `start` is where it is, if there is nothing of it.
pub fn compute<A: Arithmetic>(arithmetic: &A, tokens: &[Token], start: &Token) -> Result<A::Number, Diagnostic> {
    let mut parser = Parser { arithmetic, tokens, at: 0, start };
    let value = parser.expression(0, 0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(value),
        Some(token) => {
            Err(token.syntax(format!("an operator or the end of the expression expected, {} found", token.shown())))
        }
    }
}

struct Parser<'a, A> {
    arithmetic: &'a A,
    tokens: &'a [Token],
    at: usize,
    start: &'a Token,
}

impl<A: Arithmetic> Parser<'_, A> {
    /// An expression of operators that are at least so strong.
    fn expression(&mut self, least: u8, depth: usize) -> Result<A::Number, Diagnostic> {
        let mut value = self.operand(depth)?;
        while let Some((operator, token)) = self.operator() {
            let Some((strength, is_right)) = self.arithmetic.strength(&operator) else { break };
            if strength < least {
                break;
            }
            self.at += operator.len();
            let right = self.expression(if is_right { strength } else { strength + 1 }, depth + 1)?;
            let result = self.arithmetic.binary(&operator, value, right);
            value = result.map_err(|message| token.fault(Code::NumberOutOfRange, message))?;
        }
        Ok(value)
    }

    /// The longest operator between operands that comes next.
    fn operator(&self) -> Option<(String, Token)> {
        let first = self.tokens.get(self.at).filter(|token| token.kind == Kind::Mark)?;
        let second = self.tokens.get(self.at + 1).filter(|token| token.kind == Kind::Mark && !token.follows_space);
        let both = second.map(|second| format!("{}{}", first.text, second.text));
        let both = both.filter(|both| both.is_ascii() && self.arithmetic.strength(both).is_some());
        Some((both.unwrap_or_else(|| first.text.to_string()), first.clone()))
    }

    fn operand(&mut self, depth: usize) -> Result<A::Number, Diagnostic> {
        let Some(token) = self.tokens.get(self.at) else {
            return Err(self.start.syntax("the expression ends where a number is expected"));
        };
        if depth > MOST_DEPTH {
            let message = format!("the expression is nested more than {MOST_DEPTH} deep");
            return Err(token.fault(Code::NumberOutOfRange, message));
        }
        self.at += 1;
        let fault = |message: String| token.fault(Code::NumberOutOfRange, message);
        match token.kind {
            Kind::Number => {
                let number = self.arithmetic.number(&token.text);
                number.ok_or_else(|| token.syntax(format!("{} isn't a number", token.shown())))
            }
            Kind::Name if self.tokens.get(self.at).is_some_and(|next| next.is("(")) => {
                let argument = self.parenthesis(depth)?;
                match self.arithmetic.call(&token.text, argument) {
                    Some(result) => result.map_err(fault),
                    None => Err(token.syntax(format!("there is no function {}", token.shown()))),
                }
            }
            Kind::Name => self.arithmetic.name(&token.text).map_err(|message| token.syntax(message)),
            Kind::Mark if token.is("(") => {
                self.at -= 1;
                self.parenthesis(depth)
            }
            Kind::Mark | Kind::String => match self.arithmetic.prefix_strength(&token.text) {
                Some(strength) => {
                    let operand = self.expression(strength, depth + 1)?;
                    Ok(self.arithmetic.prefix(&token.text, operand))
                }
                None => Err(token.syntax(format!("a number expected, {} found", token.shown()))),
            },
        }
    }

    /// An expression between parentheses. Precondition: the first one comes next.
    fn parenthesis(&mut self, depth: usize) -> Result<A::Number, Diagnostic> {
        let open = &self.tokens[self.at];
        self.at += 1;
        let value = self.expression(0, depth + 1)?;
        match self.tokens.get(self.at) {
            Some(close) if close.is(")") => {
                self.at += 1;
                Ok(value)
            }
            Some(other) => Err(other.syntax(format!("`)` expected, {} found", other.shown()))),
            None => Err(open.syntax("the parenthesis isn't closed")),
        }
    }
}
