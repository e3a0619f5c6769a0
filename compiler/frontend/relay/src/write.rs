//! Prints graphs as Relay text, so that nothing is lost: each node is a binding, in the order of the graph, with its name and
//! its origins in the comment behind it. `docs/relay.md` says what mlc adds to the language.

mod constants;
mod map;
mod text;

use super::quantization;
use super::ranks::ranks_value;
use super::spelling::{CONSTANT, Store, spell};
use super::syntax::AttributeValue;
use constants::write_metadata;
use mlc_ir::{Attribute, Graph, Node, NodeId, Op, Subgraph, TensorType, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use text::{attribute_text, comment_quoted, literal_text, quoted, type_text};

/// Prints a graph as a full, self-contained Relay text; constants are encoded piece by piece.
///
/// # Errors
/// When the writer refuses.
pub fn write(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let mut printer = Printer { out, constants: Vec::new(), bodies: Vec::new() };
    writeln!(printer.out, "#[version = \"0.0.5\"]")?;
    printer.function("main", graph)?;
    let mut next = 0;
    while let Some(body) = printer.bodies.get(next).cloned() {
        writeln!(printer.out)?;
        printer.function(&body_name(next), body.graph())?;
        next += 1;
    }
    let Printer { out, constants, .. } = printer;
    if !constants.is_empty() {
        write_metadata(&constants, out)?;
    }
    out.flush()
}

/// Name of the function that the body of a loop becomes.
fn body_name(number: usize) -> String {
    format!("mlc_body_{number}")
}

struct Printer<'w> {
    out: &'w mut dyn Write,
    /// Those that the text refers to, in order.
    constants: Vec<Attribute>,
    /// Graphs inside of operators, in order.
    bodies: Vec<Subgraph>,
}

/// How a graph's values are called in the text.
struct Names {
    nodes: BTreeMap<NodeId, String>,
    /// The next number of a binding.
    next: usize,
}

impl Names {
    /// Gives a node the next binding, and returns its name.
    fn bind(&mut self, node: NodeId) -> String {
        let name = self.number();
        self.nodes.insert(node, name.clone());
        name
    }

    fn number(&mut self) -> String {
        let name = format!("%{}", self.next);
        self.next += 1;
        name
    }

    fn of(&self, graph: &Graph, value: Value) -> String {
        let name = self.nodes.get(&value.node).cloned().unwrap_or_default();
        if graph.node(value.node).results.len() == 1 { name } else { format!("{name}.{}", value.slot) }
    }
}

/// The comment behind a node's definition: its name, its origins.
fn comment_text(node: &Node) -> String {
    let mut text = format!("/* mlc {}", comment_quoted(&node.name));
    for (index, origin) in node.origins.iter().enumerate() {
        text += if index == 0 { " from " } else { " " };
        text += &comment_quoted(origin);
    }
    text + " */"
}

/// Names for a function's variables: those of the inputs, where they are plain.
fn variables(graph: &Graph) -> BTreeMap<NodeId, String> {
    let plain = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut names = BTreeMap::new();
    for &input in graph.inputs() {
        let name = &graph.node(input).name;
        if plain(name) {
            taken.insert(name.to_string());
            names.insert(input, format!("%{name}"));
        }
    }
    let mut number = 0;
    for &input in graph.inputs() {
        if names.contains_key(&input) {
            continue;
        }
        while taken.contains(&format!("v{number}")) {
            number += 1;
        }
        names.insert(input, format!("%v{number}"));
        number += 1;
    }
    names
}

impl Store for Printer<'_> {
    fn graph(&mut self, graph: &Subgraph) -> String {
        self.bodies.push(graph.clone());
        body_name(self.bodies.len() - 1)
    }

    /// Operators may share constants, such as the C files of an archive.
    fn constant(&mut self, constant: &Attribute) -> usize {
        let same = |known: &Attribute| {
            known.ty() == constant.ty() && known.bytes().as_ptr_range() == constant.bytes().as_ptr_range()
        };
        self.constants.iter().position(same).unwrap_or_else(|| {
            self.constants.push(constant.clone());
            self.constants.len() - 1
        })
    }
}

impl Printer<'_> {
    fn function(&mut self, name: &str, graph: &Graph) -> io::Result<()> {
        let order = graph.topological_order();
        let mut names = Names { nodes: variables(graph), next: 0 };
        write!(self.out, "def @{name}(")?;
        for &input in graph.inputs() {
            let (node, variable) = (graph.node(input), names.nodes.get(&input).cloned().unwrap_or_default());
            write!(self.out, "{variable}: {} {}, ", type_text(&node.results[0]), comment_text(node))?;
        }
        self.attributes(graph, &order)?;
        let types: Vec<String> = graph.outputs().iter().map(|output| type_text(graph.ty(output.value))).collect();
        match &types[..] {
            [single] => writeln!(self.out, ") -> {single} {{")?,
            _ => writeln!(self.out, ") -> ({}) {{", types.join(", "))?,
        }
        for &id in &order {
            if !matches!(graph.node(id).op, Op::Input(_)) {
                self.node(graph, id, &mut names)?;
            }
        }
        let outputs = graph.outputs().iter();
        let results: Vec<String> = outputs.map(|output| names.of(graph, output.value)).collect();
        match &results[..] {
            [single] => writeln!(self.out, "  {single}\n}}"),
            _ => writeln!(self.out, "  ({})\n}}", results.join(", ")),
        }
    }

    /// What Relay has no place for: the graph's name, where inputs stand among the other nodes, names of outputs, what
    /// their integers stand for, states and messages.
    fn attributes(&mut self, graph: &Graph, order: &[NodeId]) -> io::Result<()> {
        let text = |text: &str| AttributeValue::Text(text.to_owned());
        let places = graph.inputs().iter().map(|input| order.iter().position(|node| node == input).unwrap_or(0));
        let places: Vec<AttributeValue> = places.map(|place| AttributeValue::Integer(place as i64)).collect();
        let names = graph.outputs().iter().map(|output| text(&output.name)).collect();
        write!(self.out, "mlc_graph={}, ", quoted(&graph.name))?;
        let at_start = places.iter().enumerate().all(|(index, place)| *place == AttributeValue::Integer(index as i64));
        if !at_start {
            write!(self.out, "mlc_places={}, ", attribute_text(&AttributeValue::List(places)))?;
        }
        if !graph.states.is_empty() {
            let mut states = Vec::new();
            for state in &graph.states {
                states.push(AttributeValue::List(vec![
                    text(&state.name),
                    AttributeValue::Integer(state.input as i64),
                    AttributeValue::Integer(state.output as i64),
                    AttributeValue::Meta(CONSTANT.into(), self.constants.len()),
                ]));
                self.constants.push(state.initial.clone());
            }
            write!(self.out, "mlc_states={}, ", attribute_text(&AttributeValue::List(states)))?;
        }
        if let Some(value) = quantization::value(&graph.quantization) {
            write!(self.out, "mlc_quantization={}, ", attribute_text(&value))?;
        }
        if let Some(distribution) = &graph.distribution {
            write!(self.out, "mlc_ranks={}, ", attribute_text(&ranks_value(distribution)))?;
        }
        write!(self.out, "output_tensor_names={}", attribute_text(&AttributeValue::List(names)))
    }

    fn node(&mut self, graph: &Graph, id: NodeId, names: &mut Names) -> io::Result<()> {
        let node = graph.node(id);
        let expression = match &node.op {
            Op::Constant(constant) => self.constant_text(&constant.value),
            op => {
                let operands: Vec<String> =
                    graph.operands(id).into_iter().map(|value| names.of(graph, value)).collect();
                let types = graph.operand_types(id);
                match op {
                    Op::Map(map) if map::is_expressible(&map.expression, &types) => {
                        let function = names.number();
                        write!(self.out, "  {function} = ")?;
                        map::write(&map.expression, &types, &node.results[0], self.out)?;
                        format!("{function}({})", operands.join(", "))
                    }
                    op => self.operator(op, operands, &types),
                }
            }
        };
        let name = names.bind(id);
        writeln!(self.out, "  {name} = {expression} {};", comment_text(node))
    }

    fn constant_text(&mut self, value: &Attribute) -> String {
        let literal = if value.ty().rank() == 0 { value.splat() } else { None };
        let literal = literal.filter(|literal| literal.to_attribute() == *value);
        literal.and_then(literal_text).unwrap_or_else(|| {
            self.constants.push(value.clone());
            format!("meta[{CONSTANT}][{}]", self.constants.len() - 1)
        })
    }

    fn operator(&mut self, op: &Op, mut operands: Vec<String>, types: &[TensorType]) -> String {
        let spelled = spell(op, types, self);
        if spelled.tuple {
            let comma = if operands.len() == 1 { "," } else { "" };
            operands = vec![format!("({}{comma})", operands.join(", "))];
        }
        operands.extend(spelled.literal.map(text::number_text));
        let attributes = spelled.attributes.iter().map(|(name, value)| format!("{name}={}", attribute_text(value)));
        let arguments: Vec<String> = operands.into_iter().chain(attributes).collect();
        format!("{}({})", spelled.name, arguments.join(", "))
    }
}

#[cfg(test)]
mod tests;
