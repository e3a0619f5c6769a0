//! [`Parser`]: the tokens of a text, one after the other.

use crate::lexer::{Kind, Place, Token};
use crate::syntax::Module;
use mlc_ir::Diagnostic;

/// How deep expressions, blocks, types and lists may nest.
pub(crate) const MOST_DEEP: usize = 120;

pub(super) struct Parser<'a> {
    pub tokens: Vec<Token<'a>>,
    pub at: usize,
    pub depth: usize,
    pub module: Module<'a>,
}

/// Boxed, so that the stack of deep texts stays small.
pub(super) type Parsed<T> = Result<T, Box<Diagnostic>>;

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> &Kind<'a> {
        &self.tokens[self.at].kind
    }

    pub(super) fn second(&self) -> &Kind<'a> {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    pub(super) fn place(&self) -> Place {
        self.tokens[self.at].place
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// The comment behind the token before this one.
    pub(super) fn comment(&self) -> Option<&'a str> {
        self.tokens[self.at.saturating_sub(1)].comment
    }

    pub(super) fn unexpected(&self, expected: &str) -> Box<Diagnostic> {
        self.place().error(format!("{} found, {expected} expected", self.peek().describe()))
    }

    pub(super) fn at_mark(&self, mark: &str) -> bool {
        matches!(self.peek(), Kind::Mark(found) if *found == mark)
    }

    pub(super) fn accept(&mut self, mark: &str) -> bool {
        let found = self.at_mark(mark);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: &str) -> Parsed<()> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Kind::Word(found) if *found == word);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn word(&mut self, expected: &str) -> Parsed<&'a str> {
        let Kind::Word(word) = *self.peek() else { return Err(self.unexpected(expected)) };
        self.next();
        Ok(word)
    }

    pub(super) fn index(&mut self, expected: &str) -> Parsed<usize> {
        let Kind::Number(digits) = *self.peek() else { return Err(self.unexpected(expected)) };
        let index = digits.parse().map_err(|_| self.unexpected(expected))?;
        self.next();
        Ok(index)
    }

    /// Parses something that may hold the like of itself.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MOST_DEEP {
            return Err(self.place().error(format!("the text nests deeper than {MOST_DEEP} levels")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}
