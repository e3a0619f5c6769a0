//! [`Place`]: where an operator stands: a path in JSON, or a line and column of a text and the macros that brought it there.

use mlc_ir::{Diagnostic, Location};
use std::rc::Rc;

/// Where something stands in a file.
#[derive(Debug, Clone)]
pub enum Place {
    /// An operator of a JSON file, by its number.
    Json(usize),
    /// A word of a text.
    Text(Spot, Option<Rc<Expansion>>),
}

/// A line and a column of a text, both from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The file, if it isn't the model's own but one that it includes.
    pub file: Option<Rc<str>>,
    /// The line.
    pub line: u32,
    /// The column, in bytes.
    pub column: u32,
}

/// The use of a macro, for which a part of its definition stands.
#[derive(Debug)]
pub struct Expansion {
    /// The macro.
    pub name: Rc<str>,
    /// Where it is used.
    pub spot: Spot,
    /// The macro whose text uses it, if it stands in one.
    pub outer: Option<Rc<Expansion>>,
    /// How many macros it is inside of, itself included.
    pub depth: usize,
}

impl Spot {
    /// The place for messages.
    pub fn location(&self) -> Location {
        let location = Location::line_column(self.line, self.column);
        Location { file: self.file.as_deref().map(str::to_owned), ..location }
    }
}

impl Place {
    /// The place for messages.
    pub fn location(&self) -> Location {
        match self {
            Place::Json(index) => Location { json_path: Some(format!("$.ops[{index}]")), ..Location::default() },
            Place::Text(spot, _) => spot.location(),
        }
    }

    /// The finding with the macros that brought what it is about to its place.
    pub fn explain(&self, mut finding: Diagnostic) -> Diagnostic {
        let Place::Text(_, expansion) = self else { return finding };
        let mut next = expansion.as_deref();
        while let Some(expansion) = next {
            let message = format!("the macro `{}` is used here", expansion.name);
            finding.related.push((expansion.spot.location(), message));
            next = expansion.outer.as_deref();
        }
        finding
    }
}
