//! The stream of lists and nodes, before references mean anything.

use super::budget::Budget;
use super::cursor::Cursor;
use super::header::HEADER;
use super::parameters;
use crate::tensor::Tensor;
use bytes::Bytes;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};
use std::collections::BTreeMap;

/// A reference to a node, by its number in the file, and where it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    pub number: i32,
    pub offset: u64,
}

/// A node with references by number.
pub(super) struct RawNode {
    pub kind: String,
    pub name: String,
    pub parameters: BTreeMap<String, Tensor>,
    pub inputs: Vec<i32>,
    pub offset: u64,
    /// Where the first of the inputs stands.
    pub inputs_offset: u64,
}

/// A file taken apart.
pub(super) struct Parts {
    pub inputs: Vec<Reference>,
    pub outputs: Vec<Reference>,
    pub nodes: Vec<RawNode>,
}

/// Reads the stream behind the header.
///
/// # Errors
/// Damage after which nothing can be read.
pub(super) fn read(bytes: &Bytes, report: &mut Report) -> Result<Parts, Diagnostic> {
    let mut cursor = Cursor::new(bytes, HEADER);
    let mut budget = Budget::default();
    let inputs = references(&mut cursor, &mut budget, "the number of module inputs")?;
    let outputs = references(&mut cursor, &mut budget, "the number of module outputs")?;
    let count = cursor.count("the number of nodes", 8)?;
    let mut nodes = Vec::new();
    for number in 0..count {
        budget.take(&cursor, 1)?;
        nodes.push(node(&mut cursor, &mut budget, report, number)?);
    }
    if cursor.left() > 0 {
        let message = format!("{} bytes follow the last node, which don't count", cursor.left());
        report.push(Diagnostic::note(Code::Unused, Location::byte_offset(cursor.place() as u64), message));
    }
    Ok(Parts { inputs, outputs, nodes })
}

fn references(cursor: &mut Cursor<'_>, budget: &mut Budget, what: &str) -> Result<Vec<Reference>, Diagnostic> {
    let count = cursor.count(what, 4)?;
    budget.take(cursor, count)?;
    let read = |_| {
        let offset = cursor.place() as u64;
        Ok(Reference { number: cursor.int("a list of nodes")?, offset })
    };
    (0..count).map(read).collect()
}

fn node(
    cursor: &mut Cursor<'_>,
    budget: &mut Budget,
    report: &mut Report,
    number: usize,
) -> Result<RawNode, Diagnostic> {
    cursor.node = (None, Some(format!("node {number}")));
    let offset = cursor.place() as u64;
    let mut parameters = parameters::read(cursor, budget, report)?;
    let (name, kind) = parameters::take_own(cursor, offset, &mut parameters, report);
    parameters::check_hints(cursor, offset, &parameters, report);
    let count = cursor.count("the number of a node's inputs", 4)?;
    let inputs_offset = cursor.place() as u64;
    let inputs = (0..count).map(|_| cursor.int("the inputs of a node")).collect::<Result<_, _>>()?;
    cursor.node = (None, None);
    Ok(RawNode { kind, name, parameters, inputs, offset, inputs_offset })
}
