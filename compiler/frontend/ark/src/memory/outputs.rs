//! What the program leaves for the user: tensors that nothing uses afterwards. The file doesn't say which they are.

use super::access::{is_active, operands, written};
use super::content::Content;
use crate::model::{Model, Operation, TensorIndex};
use indexmap::IndexMap;

/// The tensors that are read when the run is over, each with its name, in the order of execution.
pub fn outputs(model: &Model) -> Vec<(String, TensorIndex)> {
    let found = unused_results(model);
    let count = |name: &str| found.iter().filter(|(operation, _)| &*operation.name == name).count();
    let named = found.iter().map(|&(operation, result)| {
        let id = model.tensor(result).id;
        let name = match &*operation.name {
            "" => format!("tensor.{id}"),
            name if count(name) == 1 => name.to_owned(),
            name => format!("{name}.{id}"),
        };
        (name, result)
    });
    named.collect()
}

/// Results of written memory that no later operation touches.
fn unused_results(model: &Model) -> Vec<(&Operation, TensorIndex)> {
    let is_noop: IndexMap<u32, bool> =
        model.nodes.iter().map(|node| (node.id, node.operations.iter().all(|it| &*it.kind == "Noop"))).collect();
    let first_writes = first_writes(model);
    let mut touched: Vec<Content<()>> = model.buffers.iter().map(|_| Content::default()).collect();
    let mut found = Vec::new();
    let mut place = model.operations().count();
    for node in model.nodes.iter().rev() {
        let used = node.consumers.iter().any(|consumer| !is_noop.get(consumer).copied().unwrap_or(false));
        for (number, operation) in node.operations.iter().enumerate().rev() {
            place -= 1;
            let later = &node.operations[number + 1..];
            for &result in operation.results.iter().rev() {
                let tensor = model.tensor(result);
                let buffer = tensor.buffer.0 as usize;
                let is_written = first_writes[buffer].is_some_and(|first| first <= place);
                let used_later = later.iter().any(|it| is_active(it) && uses(it, result));
                if !used
                    && !operation.is_declaration()
                    && is_written
                    && !used_later
                    && model.buffer(tensor.buffer).remote.is_none()
                    && !touched[buffer].touches(tensor)
                {
                    found.push((operation, result));
                }
            }
            if is_active(operation) {
                for tensor in operands(model, operation).into_iter().chain(written(model, operation)) {
                    let tensor = model.tensor(tensor);
                    touched[tensor.buffer.0 as usize].write(tensor.clone(), ());
                }
            }
        }
    }
    found.reverse();
    found
}

fn uses(operation: &Operation, tensor: TensorIndex) -> bool {
    operation.reads.contains(&tensor) || operation.writes.contains(&tensor)
}

/// Where each buffer is written first, as the number of the operation.
fn first_writes(model: &Model) -> Vec<Option<usize>> {
    let mut first = vec![None; model.buffers.len()];
    for (place, operation) in model.operations().enumerate().filter(|(_, operation)| is_active(operation)) {
        for tensor in written(model, operation) {
            first[model.tensor(tensor).buffer.0 as usize].get_or_insert(place);
        }
    }
    first
}
