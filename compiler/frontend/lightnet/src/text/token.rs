//! [`Token`]: a word of a text.

use crate::place::{Expansion, Place, Spot};
use mlc_ir::{Code, Diagnostic};
use std::rc::Rc;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name; `$` counts as a letter.
    Name,
    /// What starts with a digit, or with a point and a digit.
    Number,
    /// A string with its quotes.
    String,
    /// Any other letter by itself.
    Mark,
}

/// A word of a text, with the macros that brought it to its place.
#[derive(Debug, Clone)]
pub struct Token {
    pub kind: Kind,
    pub text: Rc<str>,
    /// Whether there is space or a comment before it.
    pub follows_space: bool,
    /// Where it is written, which may be in a macro's definition.
    pub spot: Spot,
    /// The use of a macro that brought it, the innermost one.
    pub expansion: Option<Rc<Expansion>>,
}

impl Token {
    /// Whether it is this mark.
    pub fn is(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && &*self.text == mark
    }

    /// Whether it is this name.
    pub fn is_name(&self, name: &str) -> bool {
        self.kind == Kind::Name && &*self.text == name
    }

    /// Where it is, and how it came there.
    pub fn place(&self) -> Place {
        Place::Text(self.spot.clone(), self.expansion.clone())
    }

    /// An error at it.
    pub fn fault(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        let place = self.place();
        place.explain(Diagnostic::error(code, place.location(), message))
    }

    /// A break of the grammar at it.
    pub fn syntax(&self, message: impl Into<String>) -> Diagnostic {
        self.fault(Code::Syntax, message)
    }

    /// How messages show it.
    pub fn shown(&self) -> String {
        format!("`{}`", mlc_json::shortened(&self.text))
    }
}
