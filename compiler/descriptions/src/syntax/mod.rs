//! The three syntaxes of descriptions, told by content: JSON, relaxed JSON, and the `.op` grammar.

mod cursor;
mod inherit;
mod json;
mod objects;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use tree::{Kind, Member, Text, TextBuilder, Tree};

use crate::problem::{Problem, ProblemKind, Problems};
use crate::source::Place;
use cursor::Cursor;
use indexmap::IndexMap;
use inherit::Heirs;
use objects::NamedObject;

/// The most bytes of a file. Texts take many times as much memory while they are parsed.
const LARGEST: usize = 4 << 20;

/// What a file holds.
pub(crate) enum Document {
    /// A value of JSON.
    Json(Tree),
    /// Named objects of the `.op` grammar, with what they inherit.
    Objects(Vec<(String, Tree)>),
}

/// Reads files. Named objects may inherit from those of earlier files.
#[derive(Default)]
pub(crate) struct Reader {
    /// The objects so far by name; `None` for one that couldn't be made.
    objects: IndexMap<String, Option<Tree>>,
    heirs: Heirs,
}

impl Reader {
    /// Reads a file; nothing if its grammar is broken.
    pub fn read(&mut self, file: u32, bytes: &[u8], problems: &mut Problems) -> Option<Document> {
        match self.parse(file, bytes, problems) {
            Ok(document) => Some(document),
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    }

    fn parse(&mut self, file: u32, bytes: &[u8], problems: &mut Problems) -> Result<Document, Problem> {
        let start = Place { file, offset: 0 };
        if bytes.len() > LARGEST {
            let message =
                format!("a description has at most {} MiB, this file has {} bytes", LARGEST >> 20, bytes.len());
            return Err(Problem::syntax(start, message));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let place = Place { file, offset: error.valid_up_to() as u32 };
            Problem::syntax(place, "the text isn't UTF-8")
        })?;
        let mut cursor = Cursor { text, file, at: 0, hash_comments: true };
        cursor.skip_space();
        if cursor.peek().is_none() {
            return Err(Problem::syntax(start, "the file holds no description"));
        }
        if cursor.word().is_empty() {
            return json::parse(text, file).map(Document::Json);
        }
        let objects = objects::parse(text, file)?;
        Ok(Document::Objects(objects.into_iter().filter_map(|object| self.define(object, problems)).collect()))
    }

    /// Lets an object inherit, and remembers it for its heirs.
    fn define(&mut self, object: NamedObject, problems: &mut Problems) -> Option<(String, Tree)> {
        let NamedObject { name, place, base, tree } = object;
        let mut fault = |kind, place, message| {
            problems.push(Problem { kind, place, pointer: name.clone(), message, help: None });
        };
        if self.objects.contains_key(&name) {
            fault(ProblemKind::DuplicateName, place, format!("the object '{name}' is defined twice"));
            return None;
        }
        let made = match &base {
            None => Some(inherit::closed(tree)),
            Some((base, place)) => match self.objects.get(base) {
                // Why the base couldn't be made has been said.
                Some(None) => None,
                Some(Some(base)) => {
                    let made = self.heirs.inherit(base, tree);
                    if made.is_none() {
                        fault(
                            ProblemKind::Syntax,
                            *place,
                            "objects inherit more text than any description needs".into(),
                        );
                    }
                    made
                }
                None => {
                    let message = format!("'{name}' inherits from '{base}', which isn't defined before it");
                    fault(ProblemKind::UnknownReference, *place, message);
                    None
                }
            },
        };
        self.objects.insert(name.clone(), made.clone());
        made.map(|tree| (name, tree))
    }
}
