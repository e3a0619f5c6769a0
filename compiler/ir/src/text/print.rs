//! Prints graphs.

use super::constants::constant_text;
use super::lexer::{plain_or_quoted, quote};
use super::values::fields_text;
use super::{VERSION, values};
use crate::attribute::Attribute;
use crate::graph::{Graph, Node, NodeId, Value};
use crate::ops::Op;
use crate::types::TensorType;
use indexmap::IndexMap;
use std::fmt::Write;

/// The text of a graph; large constants appear by name and hash only. Nodes on a cycle, which no sound graph has, are
/// left out.
pub fn print(graph: &Graph) -> String {
    print_with_constants(graph).0
}

/// The text of a graph, and its large constants by the names that the text gives them.
pub fn print_with_constants(graph: &Graph) -> (String, IndexMap<String, Attribute>) {
    let mut constants = IndexMap::new();
    let inputs: Vec<String> = graph.inputs().iter().map(|&input| input_text(graph.node(input))).collect();
    let outputs = graph.outputs().iter();
    let outputs: Vec<String> =
        outputs.map(|output| format!("{}: {}", quote(&output.name), graph.ty(output.value))).collect();
    let (name, inputs, outputs) = (plain_or_quoted(&graph.name), inputs.join(", "), outputs.join(", "));
    let mut text = format!("mlc {VERSION}\ngraph @{name}({inputs}) -> ({outputs}) {{\n");
    for id in graph.topological_order() {
        let node = graph.node(id);
        let body = match &node.op {
            Op::Input(_) => continue,
            Op::Constant(constant) => {
                let (body, stored) = constant_text(&node.name, &constant.value);
                if stored {
                    constants.insert(node.name.to_string(), constant.value.clone());
                }
                format!("constant {} {body}", constant.value.ty())
            }
            op => operator_text(graph, id, op),
        };
        let _ = writeln!(text, "  %{} = {body}{}", plain_or_quoted(&node.name), origins_text(node));
    }
    let results: Vec<String> = graph.outputs().iter().map(|output| value_text(graph, output.value)).collect();
    let _ = writeln!(text, "  {}\n}}", format!("return {}", results.join(", ")).trim_end());
    (text, constants)
}

fn input_text(node: &Node) -> String {
    let types: Vec<String> = node.results.iter().map(TensorType::to_string).collect();
    format!("%{}: {}{}", plain_or_quoted(&node.name), types.join(", "), origins_text(node))
}

/// `%name`, with `:1`, `:2`, … for the second and later results.
fn value_text(graph: &Graph, value: Value) -> String {
    let name = plain_or_quoted(&graph.node(value.node).name);
    if value.slot == 0 { format!("%{name}") } else { format!("%{name}:{}", value.slot) }
}

fn operator_text(graph: &Graph, id: NodeId, op: &Op) -> String {
    let operands: Vec<String> = graph.operands(id).into_iter().map(|operand| value_text(graph, operand)).collect();
    let types: Vec<String> = graph.node(id).results.iter().map(TensorType::to_string).collect();
    let fields = if op.fields().is_empty() { String::new() } else { format!(" {}", fields_text(op)) };
    format!("{} {}{fields} : {}", op.name(), operands.join(", "), types.join(", "))
}

fn origins_text(node: &Node) -> String {
    if node.origins.is_empty() {
        return String::new();
    }
    let origins: Vec<String> = node.origins.iter().map(|origin| quote(origin)).collect();
    format!(" from({})", origins.join(", "))
}

impl std::fmt::Display for crate::fields::FieldValue {
    /// As in the text form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&values::value_text(self))
    }
}
