//! `executor-config/graph/<model>.graph`: the graph executor's description of a model (Model Library Format, section 4).

use crate::graph::{Entry, ExecutorGraph, ExecutorNode};
use serde_json::{Value, json};

/// The type of the device of every entry: a CPU.
const CPU: u32 = 1;

/// The text of the file: one node, or one table, to a line.
pub(super) fn graph_json(graph: &ExecutorGraph) -> String {
    let entries: Vec<&Entry> = graph.entries().collect();
    let mut row_pointers = vec![0];
    let mut positions = Vec::new();
    for (number, node) in graph.nodes.iter().enumerate() {
        positions.extend((0..node.outputs.len()).map(|output| (number, output)));
        row_pointers.push(positions.len());
    }
    let reference = |entry: &usize| json!([positions[*entry].0, positions[*entry].1, 0]);
    let nodes: Vec<String> = graph.nodes.iter().map(|node| describe(node, &reference).to_string()).collect();
    let given = graph.nodes.iter().enumerate().filter(|(_, node)| !node.calls);
    let arguments: Vec<usize> = given.map(|(number, _)| number).collect();
    let heads: Vec<Value> = graph.heads.iter().map(&reference).collect();
    let tables = [
        ("dltype", table("list_str", entries.iter().map(|entry| entry.dtype.long_name().into()))),
        ("device_index", table("list_int", entries.iter().map(|_| CPU.into()))),
        ("storage_id", table("list_int", entries.iter().map(|entry| entry.storage.into()))),
        ("shape", table("list_shape", entries.iter().map(|entry| entry.shape.clone().into()))),
    ];
    let tables: Vec<String> = tables.iter().map(|(name, table)| format!("    \"{name}\": {table}")).collect();
    format!(
        "{{\n  \"nodes\": [\n    {}\n  ],\n  \"arg_nodes\": {},\n  \"heads\": {},\n  \"attrs\": {{\n{}\n  }},\n  \"node_row_ptr\": {}\n}}\n",
        nodes.join(",\n    "),
        json!(arguments),
        json!(heads),
        tables.join(",\n"),
        json!(row_pointers),
    )
}

fn table(kind: &str, values: impl Iterator<Item = Value>) -> Value {
    json!([kind, values.collect::<Vec<_>>()])
}

fn describe(node: &ExecutorNode, reference: &impl Fn(&usize) -> Value) -> Value {
    let inputs: Vec<Value> = node.inputs.iter().map(reference).collect();
    if !node.calls {
        return json!({ "op": "null", "name": node.name, "inputs": inputs });
    }
    let attributes = json!({
        "func_name": node.name,
        "num_inputs": node.inputs.len().to_string(),
        "num_outputs": node.outputs.len().to_string(),
        "flatten_data": "0",
    });
    json!({ "op": "tvm_op", "name": node.name, "attrs": attributes, "inputs": inputs })
}
