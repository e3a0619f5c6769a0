//! The nodes of a model.

use super::faults::at;
use super::operation::Reading;
use super::raw::{self, Members};
use super::unknown;
use crate::model::{Node, Operation, Place};
use mlc_ir::{Code, Diagnostic};
use mlc_json::Json;
use serde_json::value::RawValue;

/// The keys of a node.
const NODE_KEYS: [&str; 5] = ["Id", "ProducerNodeIds", "ConsumerNodeIds", "Op", "Ops"];

impl Reading {
    /// The nodes that could be read, and whether that is all of them.
    pub fn nodes(&mut self, file: &Members) -> (Vec<Node>, bool) {
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
                operations = self.operations(list, &path, |index| place(position, Some(index)));
            }
            (None, None) => self.faults.push(syntax("the node has neither Op nor Ops".into())),
            (Some(_), Some(_)) => self.faults.push(syntax("the node has both Op and Ops".into())),
        }
        Some(Node { id: id?, producers: producers?, consumers: consumers?, operations })
    }

    /// Reads a list of operations: those that could be read.
    pub fn operations(&mut self, list: &RawValue, path: &str, place: impl Fn(u32) -> Place) -> Vec<Operation> {
        let mut operations = Vec::new();
        let mut count = 0;
        let walked = raw::walk_list(list, |index, text| {
            count += 1;
            operations.extend(self.operation(text, place(index as u32)));
            !self.faults.many()
        });
        let fault = match walked {
            Err(error) => format!("Ops: {}", raw::without_place(&error)),
            Ok(()) if count == 0 => "Ops is empty".into(),
            Ok(()) => return operations,
        };
        self.faults.push(Diagnostic::error(Code::Syntax, at(path), fault));
        operations
    }

    /// Reads a member of an object that isn't an operation.
    pub fn member<T>(
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
