//! Prints graphs.

use super::VERSION;
use super::constants::{constant_text, is_stored};
use super::lexer::{plain_or_quoted, quote};
use crate::attribute::Attribute;
use crate::distribution::Transfer;
use crate::fields::FieldValue;
use crate::graph::{Graph, Node, NodeId, Value};
use crate::ops::Op;
use crate::types::{Quantization, TensorType};
use indexmap::IndexMap;
use std::fmt::Write;

/// Large constants by the names that the text gives them.
type Constants = IndexMap<String, Attribute>;

/// The text of a graph; large constants appear by name and hash only. Nodes on a cycle, which no sound graph has, are
/// left out.
pub fn print(graph: &Graph) -> String {
    print_with_constants(graph).0
}

/// The text of a graph, and its large constants by the names that the text gives them.
pub fn print_with_constants(graph: &Graph) -> (String, IndexMap<String, Attribute>) {
    hash_constants(graph);
    let mut constants = IndexMap::new();
    let text = format!("mlc {VERSION}\n{}\n", graph_text(graph, &mut constants, ""));
    (text, constants)
}

/// Finds the hashes of all constants, which know them from then on: those of large ones at the same time.
fn hash_constants(graph: &Graph) {
    let nodes = graph.node_ids().map(|id| &graph.node(id).op);
    let constants = nodes.filter_map(|op| if let Op::Constant(own) = op { Some(&own.value) } else { None });
    Attribute::hash_together(constants.filter(|value| is_stored(value)).collect());
}

/// The line of one node, as [`print()`] has it; of an input its type.
pub fn print_node(graph: &Graph, id: NodeId) -> String {
    match &graph.node(id).op {
        Op::Input(_) => input_text(graph.node(id)),
        _ => node_text(graph, id, &mut Constants::new(), ""),
    }
}

fn node_text(graph: &Graph, id: NodeId, constants: &mut Constants, indent: &str) -> String {
    let node = graph.node(id);
    let body = match &node.op {
        Op::Constant(constant) => format!("constant {}", stored_text(&node.name, &constant.value, constants)),
        op => operator_text(graph, id, op, constants, indent),
    };
    format!("%{} = {body}{}", plain_or_quoted(&node.name), origins_text(node))
}

/// The graph without the version, its lines behind the first one indented.
fn graph_text(graph: &Graph, constants: &mut Constants, indent: &str) -> String {
    let inputs: Vec<String> = graph.inputs().iter().map(|&input| input_text(graph.node(input))).collect();
    let outputs = graph.outputs().iter();
    let outputs: Vec<String> =
        outputs.map(|output| format!("{}: {}", quote(&output.name), graph.ty(output.value))).collect();
    let (name, inputs, outputs) = (plain_or_quoted(&graph.name), inputs.join(", "), outputs.join(", "));
    let mut text = format!("graph @{name}({inputs}) -> ({outputs}) {{\n");
    for id in graph.topological_order() {
        if !matches!(graph.node(id).op, Op::Input(_)) {
            let _ = writeln!(text, "{indent}  {}", node_text(graph, id, constants, indent));
        }
    }
    for state in &graph.states {
        let (Some(&input), Some(output)) = (graph.inputs().get(state.input), graph.outputs().get(state.output)) else {
            continue;
        };
        let initial = stored_text(&state.name, &state.initial, constants);
        let (name, output, input) = (quote(&state.name), quote(&output.name), plain_or_quoted(&graph.node(input).name));
        let _ = writeln!(text, "{indent}  state {name} from {output} to %{input} = {initial}");
    }
    text += &quantization_text(graph, indent);
    text += &distribution_text(graph, indent);
    let results: Vec<String> = graph.outputs().iter().map(|output| value_text(graph, output.value)).collect();
    let _ = write!(text, "{indent}  {}\n{indent}}}", format!("return {}", results.join(", ")).trim_end());
    text
}

/// The lines of what integers at the graph's inputs and outputs stand for.
fn quantization_text(graph: &Graph, indent: &str) -> String {
    let name_of_input = |&input: &NodeId| format!("%{}", plain_or_quoted(&graph.node(input).name));
    let inputs = graph.quantization.inputs.iter();
    let inputs = inputs.filter_map(|(&number, own)| Some((name_of_input(graph.inputs().get(number)?), own)));
    let outputs = graph.quantization.outputs.iter();
    let outputs = outputs.filter_map(|(&number, own)| Some((quote(&graph.outputs().get(number)?.name), own)));
    let mut text = String::new();
    for (name, Quantization { scale, zero_point }) in inputs.chain(outputs) {
        let _ = writeln!(text, "{indent}  quantization {name} scale {scale} zero_point {zero_point}");
    }
    text
}

/// The lines of the graph's place among the ranks and of its messages.
fn distribution_text(graph: &Graph, indent: &str) -> String {
    let Some(distribution) = &graph.distribution else { return String::new() };
    let mut text = format!("{indent}  rank {} of {}\n", distribution.rank, distribution.count);
    for message in &distribution.messages {
        let what = match message.transfer {
            Transfer::Send { output } => {
                graph.outputs().get(output).map(|output| format!("send {} to", quote(&output.name)))
            }
            Transfer::Receive { input } => {
                let input = graph.inputs().get(input);
                input.map(|&input| format!("receive %{} from", plain_or_quoted(&graph.node(input).name)))
            }
        };
        if let Some(what) = what {
            let _ = writeln!(text, "{indent}  {what} {} tag {}", message.peer, message.tag);
        }
    }
    text
}

/// The type and values of a constant; large ones go to the side table.
fn stored_text(name: &str, value: &Attribute, constants: &mut Constants) -> String {
    let name = stored_name(name, value, constants);
    let (body, stored) = constant_text(&name, value);
    if stored {
        constants.insert(name, value.clone());
    }
    format!("{} {body}", value.ty())
}

/// A constant's name in the side table, which the graphs inside of operators share.
fn stored_name(name: &str, value: &Attribute, constants: &Constants) -> String {
    let mut unique = name.to_owned();
    let mut number = 1;
    while constants.get(&unique).is_some_and(|other| other != value) {
        number += 1;
        unique = format!("{name}.{number}");
    }
    unique
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

fn operator_text(graph: &Graph, id: NodeId, op: &Op, constants: &mut Constants, indent: &str) -> String {
    let operands: Vec<String> = graph.operands(id).into_iter().map(|operand| value_text(graph, operand)).collect();
    let types: Vec<String> = graph.node(id).results.iter().map(TensorType::to_string).collect();
    let fields = if op.fields().is_empty() {
        String::new()
    } else {
        format!(" {}", fields_text(op, constants, &format!("{indent}  ")))
    };
    format!("{} {}{fields} : {}", op.name(), operands.join(", "), types.join(", "))
}

/// The text of a field's value; lines of a graph behind its first one are indented.
fn field_text(value: &FieldValue, constants: &mut Constants, indent: &str) -> String {
    match value {
        FieldValue::Bool(value) => value.to_string(),
        FieldValue::Integer(value) => value.to_string(),
        FieldValue::Float(value) => value.to_string(),
        FieldValue::Word(word) => word.clone(),
        FieldValue::Text(text) => quote(text),
        FieldValue::List(values) => {
            let values: Vec<String> = values.iter().map(|value| field_text(value, constants, indent)).collect();
            format!("[{}]", values.join(", "))
        }
        FieldValue::Literal(literal) => literal.to_string(),
        FieldValue::Expression(expression) => expression.to_string(),
        FieldValue::Type(ty) => ty.to_string(),
        FieldValue::Attribute(attribute) => stored_text("data", attribute, constants),
        FieldValue::Nested(_) => {
            let operator =
                value.as_operator().map(|op| format!("{} {}", op.name(), fields_text(op, constants, indent)));
            let graph = || value.as_graph().map(|graph| graph_text(graph, constants, indent));
            operator.or_else(graph).unwrap_or_default()
        }
    }
}

/// The text of an operator's fields, in braces.
fn fields_text(op: &Op, constants: &mut Constants, indent: &str) -> String {
    let fields = op.fields();
    let fields = fields.iter().map(|(name, value)| format!("{name} = {}", field_text(value, constants, indent)));
    let fields: Vec<String> = fields.collect();
    format!("{{{}}}", fields.join(", "))
}

fn origins_text(node: &Node) -> String {
    if node.origins.is_empty() {
        return String::new();
    }
    let origins: Vec<String> = node.origins.iter().map(|origin| quote(origin)).collect();
    format!(" from({})", origins.join(", "))
}

impl std::fmt::Display for FieldValue {
    /// As in the text form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&field_text(self, &mut Constants::new(), ""))
    }
}
