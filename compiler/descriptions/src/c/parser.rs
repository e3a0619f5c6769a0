//! Parses the C subset: what the parts of it share.

use super::names::Names;
use super::token::{Fault, Token, TokenKind, check_brackets, tokens};

/// How deeply expressions and statements may be nested. No description needs a quarter of it, and no stack is too small for it.
const DEEPEST: usize = 64;

/// A parser over the tokens of one text.
pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    /// What is parsed.
    pub text: &'a str,
    index: usize,
    depth: usize,
    /// Number of loops around the current place.
    pub loops: usize,
    /// Whether the text is a function's that returns a value.
    pub returns: bool,
    pub names: &'a mut Names,
    /// The strings of the program.
    pub strings: &'a mut Vec<Vec<u8>>,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, names: &'a mut Names, strings: &'a mut Vec<Vec<u8>>) -> Result<Parser<'a>, Fault> {
        let tokens = tokens(text)?;
        check_brackets(&tokens)?;
        Ok(Parser { tokens, text, index: 0, depth: 0, loops: 0, returns: false, names, strings })
    }

    /// The token that is some places ahead.
    pub fn peek(&self, ahead: usize) -> Option<&TokenKind<'a>> {
        self.tokens.get(self.index + ahead).map(|token| &token.kind)
    }

    /// Where the next token begins.
    pub fn at(&self) -> usize {
        self.tokens.get(self.index).map_or(self.text.len(), |token| token.at)
    }

    /// Goes over the next token.
    pub fn next(&mut self) -> Option<TokenKind<'a>> {
        let token = self.tokens.get(self.index)?;
        self.index += 1;
        Some(token.kind.clone())
    }

    pub fn is_mark(&self, mark: &str) -> bool {
        self.mark() == Some(mark)
    }

    /// The next token, if it is a mark.
    pub fn mark(&self) -> Option<&'static str> {
        match self.peek(0) {
            Some(TokenKind::Mark(mark)) => Some(mark),
            _ => None,
        }
    }

    /// The word some places ahead, if there is one.
    pub fn word(&self, ahead: usize) -> Option<&'a str> {
        match self.peek(ahead) {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        }
    }

    pub fn take(&mut self, mark: &str) -> bool {
        let found = self.is_mark(mark);
        self.index += usize::from(found);
        found
    }

    pub fn expect(&mut self, mark: &str) -> Result<(), Fault> {
        if self.take(mark) { Ok(()) } else { Err(self.unexpected(&format!("`{mark}`"))) }
    }

    pub fn is_end(&self) -> bool {
        self.index >= self.tokens.len()
    }

    pub fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.at(), message)
    }

    pub fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek(0) {
            None => "the end of the text".to_owned(),
            Some(TokenKind::Word(text) | TokenKind::Number(text)) => {
                format!("`{}`", text.chars().take(40).collect::<String>())
            }
            Some(TokenKind::Mark(mark)) => format!("`{mark}`"),
            Some(TokenKind::Text(_)) => "a string".into(),
            Some(TokenKind::Character(_)) => "a character".into(),
        };
        self.fault(format!("{expected} expected, {found} found"))
    }

    /// Does something one level deeper.
    pub fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        if self.depth >= DEEPEST {
            return Err(self.fault(format!("the text is nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let result = what(self);
        self.depth -= 1;
        result
    }

    /// A fault if an operator comes after too many of its kind that each enclose those before.
    pub fn check_row(&self, count: usize) -> Result<(), Fault> {
        if count < DEEPEST {
            Ok(())
        } else {
            Err(self.fault(format!("there are more than {DEEPEST} operators in a row")))
        }
    }
}
