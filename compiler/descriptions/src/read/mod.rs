//! From files to checked descriptions.

mod builder;
mod fields;
mod names;
mod operator;
mod parameters;
mod tensors;
#[cfg(test)]
mod tests;

use crate::description::Description;
use crate::problem::{Problem, ProblemKind, Problems};
use crate::source::Sources;
use crate::syntax::{Document, Kind, Reader, Tree};
use indexmap::IndexMap;
use mlc_ir::{Diagnostic, Location};
use operator::{operator, place_of};

/// Descriptions by operator type.
#[derive(Debug)]
pub struct Library {
    descriptions: IndexMap<String, Description>,
    /// What is suspicious in the files.
    pub warnings: Vec<Diagnostic>,
    pub(crate) sources: Sources,
}

impl Library {
    /// Reads files, each with its name and its contents. Objects of the `.op` grammar may inherit from those of earlier files.
    ///
    /// # Errors
    /// All problems of all files, the warnings among them.
    pub fn read(files: &[(&str, &[u8])]) -> Result<Library, Vec<Diagnostic>> {
        let (mut sources, mut problems, mut reader) = (Sources::default(), Problems::default(), Reader::default());
        let mut descriptions = IndexMap::new();
        for (name, bytes) in files {
            let file = sources.add(name, bytes);
            match reader.read(file, bytes, &mut problems) {
                None => {}
                Some(Document::Json(tree)) => read_json(&tree, &mut descriptions, &mut problems),
                Some(Document::Objects(objects)) => {
                    for (number, (name, tree)) in objects.iter().enumerate() {
                        add(tree, name.clone(), number, &mut descriptions, &mut problems);
                    }
                }
            }
        }
        let failed = problems.errors() > 0;
        let diagnostics = problems.into_diagnostics(&sources);
        if failed { Err(diagnostics) } else { Ok(Library { descriptions, warnings: diagnostics, sources }) }
    }

    /// The description of an operator type.
    pub fn get(&self, optype: &str) -> Option<&Description> {
        self.descriptions.get(optype)
    }

    /// Where an operator is described.
    pub fn location(&self, description: &Description) -> Location {
        self.sources.location(description.place)
    }

    /// All descriptions, in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = &Description> {
        self.descriptions.values()
    }
}

/// An object with a list of operators, or an operator.
fn read_json(tree: &Tree, descriptions: &mut IndexMap<String, Description>, problems: &mut Problems) {
    let member = |name: &str| match &tree.kind {
        Kind::Object(members) => members.iter().find(|member| &*member.name == name).map(|member| &member.value),
        _ => None,
    };
    let fault = |kind, pointer: &str, message: &str| Problem {
        kind,
        place: tree.place,
        pointer: pointer.to_owned(),
        message: message.to_owned(),
        help: None,
    };
    match (member("ops"), member("optype")) {
        (Some(Tree { kind: Kind::List(list), .. }), _) => {
            for (number, tree) in list.iter().enumerate() {
                add(tree, format!("/ops/{number}"), number, descriptions, problems);
            }
        }
        (Some(_), _) => problems.push(fault(ProblemKind::WrongType, "/ops", "`ops` must be an array")),
        (None, Some(_)) => add(tree, String::new(), 0, descriptions, problems),
        (None, None) => {
            problems.push(fault(
                ProblemKind::MissingField,
                "/ops",
                "the file has neither an `ops` nor an `optype` field",
            ));
        }
    }
}

/// Reads a description and adds it under its operator type, which must be new.
fn add(
    tree: &Tree,
    pointer: String,
    number: usize,
    descriptions: &mut IndexMap<String, Description>,
    problems: &mut Problems,
) {
    if problems.full() {
        return;
    }
    let Some(description) = operator(tree, pointer.clone(), number, problems) else { return };
    if descriptions.contains_key(&description.optype) {
        let message = format!("the `optype` '{}' is described twice", description.optype);
        let (kind, pointer) = (ProblemKind::DuplicateName, format!("{pointer}/optype"));
        problems.push(Problem { kind, place: place_of(tree), pointer, message, help: None });
        return;
    }
    descriptions.insert(description.optype.clone(), description);
}
