//! A place in the tokens, with the checks that every part of the parser needs.

use super::lexer::{Kind, Token};
use crate::diagnostics::Diagnostic;

/// Walks over tokens. The last token is always [`Kind::End`], and is never left behind.
pub(super) struct Cursor<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Precondition: the last token is [`Kind::End`].
    pub fn new(tokens: Vec<Token<'a>>) -> Self {
        Cursor { tokens, at: 0 }
    }

    /// The token here.
    pub fn peek(&self) -> &Token<'a> {
        &self.tokens[self.at]
    }

    /// The kind of the token here.
    pub fn kind(&self) -> &Kind<'a> {
        &self.peek().kind
    }

    /// The kind of the token behind this one.
    pub fn second(&self) -> &Kind<'a> {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    /// Takes the token here.
    pub fn next(&mut self) -> Token<'a> {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// Whether a mark is here.
    pub fn at_mark(&self, mark: char) -> bool {
        *self.kind() == Kind::Mark(mark)
    }

    /// Takes a mark if it is here.
    pub fn accept(&mut self, mark: char) -> bool {
        let found = self.at_mark(mark);
        if found {
            self.next();
        }
        found
    }

    /// Takes a word if it is here.
    pub fn accept_word(&mut self, word: &str) -> bool {
        let found = *self.kind() == Kind::Word(word);
        if found {
            self.next();
        }
        found
    }

    /// The error that something else should be here.
    pub fn unexpected(&self, expected: &str) -> Diagnostic {
        self.peek().error(format!("{} found, {expected} expected", self.kind().describe()))
    }

    /// Takes a mark.
    pub fn expect(&mut self, mark: char) -> Result<(), Diagnostic> {
        if self.accept(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    /// Takes a given word.
    pub fn expect_word(&mut self, word: &str) -> Result<(), Diagnostic> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    /// Takes any word.
    pub fn word(&mut self, expected: &str) -> Result<&'a str, Diagnostic> {
        let Kind::Word(word) = *self.kind() else { return Err(self.unexpected(expected)) };
        self.next();
        Ok(word)
    }

    /// Takes a quoted string.
    pub fn text(&mut self, expected: &str) -> Result<String, Diagnostic> {
        let Kind::Text(text) = self.kind() else { return Err(self.unexpected(expected)) };
        let text = text.clone();
        self.next();
        Ok(text)
    }

    /// Takes elements between commas up to a closing mark, which it takes too.
    pub fn list<T>(
        &mut self,
        close: char,
        mut element: impl FnMut(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<Vec<T>, Diagnostic> {
        let mut elements = Vec::new();
        if self.accept(close) {
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.accept(close) {
                return Ok(elements);
            }
            if !self.accept(',') {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// How many tokens are behind.
    pub fn position(&self) -> usize {
        self.at
    }

    /// After a fault in what started at a position, goes to the next line that looks like a statement, or to the end.
    pub fn skip_to_statement(&mut self, start: usize) {
        if self.at == start {
            self.next();
        }
        let stops = |token: &Token<'_>| match &token.kind {
            Kind::End => true,
            Kind::Value(..) | Kind::Word("return" | "state" | "rank") | Kind::Mark('}') => token.first,
            _ => false,
        };
        while !stops(self.peek()) {
            self.next();
        }
    }
}
