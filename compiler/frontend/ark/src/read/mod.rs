//! Bytes to a [`Model`]: JSON, the dialects, and what the format demands of every file. Everything in a file is untrusted, and one
//! run tells all that is wrong with it.

mod evidence;
mod faults;
mod operation;
mod raw;
mod tables;
mod unknown;

#[cfg(test)]
mod tests;

use super::check::{DERIVED, Subject, check_graph, check_operation};
use super::model::{Dialect, Model, Node, Place};
use evidence::Evidence;
use faults::Faults;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::Json;
use operation::Reading;
use raw::Members;
use serde_json::value::RawValue;
use tables::Tables;

/// Reads a model file of any dialect.
///
/// # Errors
/// All that is wrong with the file, up to a bound: each with its JSON path and operation, or line and column where the text isn't
/// JSON.
pub fn read(bytes: &[u8]) -> Result<Model, Vec<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = Location::byte_offset(error.valid_up_to() as u64);
        vec![Diagnostic::error(Code::Syntax, place, "the file is damaged: it isn't UTF-8")]
    })?;
    let file: Members = serde_json::from_str(text).map_err(|error| {
        let place = Location::line_column(error.line() as u32, error.column() as u32);
        let message = format!("the file is damaged: {}", raw::without_place(&error));
        vec![Diagnostic::error(Code::Syntax, place, message)]
    })?;
    let mut faults = Faults::default();
    let rank = number(&file, "Rank", &mut faults);
    let world_size = number(&file, "WorldSize", &mut faults);
    let (first, count) = (rank.unwrap_or(0), world_size.unwrap_or(1));
    if first >= count {
        let message = format!("the rank {first} isn't one of {count} ranks");
        faults.push(Diagnostic::error(Code::NumberOutOfRange, at("$.Rank"), message));
    }
    let mut reading = Reading { tables: Tables::new(first, count), evidence: Evidence::default(), faults };
    let (nodes, complete) = reading.nodes(&file);
    for (key, value) in file.0.iter().filter(|(key, _)| !["Rank", "WorldSize", "Nodes"].contains(&&***key)) {
        reading.faults.push(unknown::finding(key, at("$")));
        if let Err(error) = mlc_json::check(value.get().as_bytes()) {
            let location = at(&format!("$[{key:?}]"));
            reading.faults.push(Diagnostic::error(Code::Syntax, location, raw::without_place(&error)));
        }
    }
    let dialect = reading.evidence.dialect(&mut reading.faults);
    for (key, found) in [("Rank", rank), ("WorldSize", world_size)] {
        if found.is_none() && dialect != Dialect::Seed && !file.0.contains_key(key) {
            let message = format!("the key '{key}' is missing");
            reading.faults.push(Diagnostic::error(Code::ParameterMissing, at("$"), message));
        }
    }
    let Reading { tables, mut faults, .. } = reading;
    let mut model = Model {
        dialect,
        rank: first,
        world_size: count,
        nodes,
        tensors: tables.tensors.into_values().collect(),
        buffers: tables.buffers.into_values().collect(),
        warnings: Vec::new(),
    };
    check(&mut model, complete, &mut faults);
    if faults.failed() { Err(faults.finish()) } else { Ok(Model { warnings: faults.finish(), ..model }) }
}

/// What must hold beyond the schema. The graph is only looked at when all of its nodes could be read.
fn check(model: &mut Model, complete: bool, faults: &mut Faults) {
    if complete {
        check_graph(model).into_iter().for_each(|finding| faults.push(finding));
    }
    for operation in model.nodes.iter().flat_map(|node| &node.operations) {
        if faults.many() {
            return;
        }
        check_operation(&Subject { model, operation }).into_iter().for_each(|finding| faults.push(finding));
    }
    for operation in model.nodes.iter_mut().flat_map(|node| &mut node.operations) {
        if &*operation.kind == "Matmul" {
            operation.arguments.retain(|name, _| !DERIVED.contains(&&**name));
        }
    }
}

/// The keys of a node.
const NODE_KEYS: [&str; 5] = ["Id", "ProducerNodeIds", "ConsumerNodeIds", "Op", "Ops"];

/// A place given by its path alone.
fn at(path: &str) -> Location {
    Location { json_path: Some(path.to_owned()), ..Location::default() }
}

/// A number of the whole file, if it is there and right.
fn number(file: &Members, key: &str, faults: &mut Faults) -> Option<u32> {
    let text = file.0.get(key)?;
    let value = raw::value(text).map_err(|message| Diagnostic::error(Code::Syntax, at("$"), message));
    let value = faults.note(value)?;
    faults.note(Json::root(format!("$.{key}"), "", &value).integer())
}

impl Reading {
    /// The nodes that could be read, and whether that is all of them.
    fn nodes(&mut self, file: &Members) -> (Vec<Node>, bool) {
        let mut nodes = Vec::new();
        let mut count = 0;
        let Some(list) = file.0.get("Nodes") else {
            let message = "the key 'Nodes' is missing";
            self.faults.push(Diagnostic::error(Code::ParameterMissing, at("$"), message));
            return (nodes, false);
        };
        let walked = raw::walk_list(list, |position, text| {
            nodes.extend(self.node(text, position as u32));
            count = position + 1;
            !self.faults.many()
        });
        if let Err(error) = walked {
            self.faults.push(Diagnostic::error(Code::Syntax, at("$.Nodes"), raw::without_place(&error)));
        }
        let complete = nodes.len() == count && !self.faults.many();
        (nodes, complete)
    }

    /// Reads a node; its operations are those that could be read.
    fn node(&mut self, text: &RawValue, position: u32) -> Option<Node> {
        let path = format!("$.Nodes[{position}]");
        let syntax = |message: String| Diagnostic::error(Code::Syntax, at(&path), message);
        let members = serde_json::from_str::<Members>(text.get()).map_err(|error| syntax(raw::without_place(&error)));
        let members = self.faults.note(members)?;
        for key in members.0.keys().filter(|key| !NODE_KEYS.contains(&&***key)) {
            self.faults.push(unknown::finding(key, at(&path)));
        }
        let id = self.member(&members, &path, "Id", |id| id.integer());
        let producers = self.member(&members, &path, "ProducerNodeIds", neighbours);
        let consumers = self.member(&members, &path, "ConsumerNodeIds", neighbours);
        let mut operations = Vec::new();
        match (members.0.get("Op"), members.0.get("Ops")) {
            (Some(text), None) => {
                self.evidence.node(&path, false);
                operations.extend(self.operation(text, place(position, None)));
            }
            (None, Some(list)) => {
                self.evidence.node(&path, true);
                let mut count = 0;
                let walked = raw::walk_list(list, |index, text| {
                    count += 1;
                    operations.extend(self.operation(text, place(position, Some(index as u32))));
                    !self.faults.many()
                });
                if let Err(error) = walked {
                    self.faults.push(syntax(format!("Ops: {}", raw::without_place(&error))));
                } else if count == 0 {
                    self.faults.push(syntax("Ops is empty".into()));
                }
            }
            (None, None) => self.faults.push(syntax("the node has neither Op nor Ops".into())),
            (Some(_), Some(_)) => self.faults.push(syntax("the node has both Op and Ops".into())),
        }
        Some(Node { id: id?, producers: producers?, consumers: consumers?, operations })
    }

    /// Reads a member of an object that isn't an operation.
    fn member<T>(
        &mut self,
        members: &Members,
        path: &str,
        key: &str,
        read: impl FnOnce(&Json) -> Result<T, Diagnostic>,
    ) -> Option<T> {
        let Some(text) = members.0.get(key) else {
            let message = format!("the key '{key}' is missing");
            self.faults.push(Diagnostic::error(Code::ParameterMissing, at(path), message));
            return None;
        };
        let path = format!("{path}.{key}");
        let value = raw::value(text).map_err(|message| Diagnostic::error(Code::Syntax, at(&path), message));
        let value = self.faults.note(value)?;
        self.faults.note(read(&Json::root(path, "", &value)))
    }
}

/// A list of nodes, each once.
fn neighbours(json: &Json) -> Result<Vec<u32>, Diagnostic> {
    let ids: Vec<u32> = json.list()?.iter().map(Json::integer).collect::<Result<_, _>>()?;
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(json.fault(Code::DuplicateDefinition, format!("node {} is there twice", pair[0]))),
        None => Ok(ids),
    }
}

fn place(node: u32, operation: Option<u32>) -> Place {
    Place { list: "Nodes", node, operation }
}
