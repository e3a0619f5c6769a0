//! [`Diagram`]: a graph as a picture shows it.

use mlc_ir::{Category, FieldValue, Graph, NodeId, Op, TensorType};
use serde::Serialize;
use std::collections::BTreeMap;

/// The nodes of a graph in the order of computation, without constants, and an operand's way for each edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Diagram {
    /// The nodes; outputs of the graph are nodes too.
    pub nodes: Vec<DiagramNode>,
    /// The edges, by where they end.
    pub edges: Vec<DiagramEdge>,
}

/// A node of a [`Diagram`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DiagramNode {
    /// Its name in the model.
    pub name: String,
    /// The operator; of a kernel its anchor.
    pub operator: String,
    /// What kind of operator it is: `source`, `elementwise`, `view`, `movement`, `accumulation`, `anchor`, `control` or `output`.
    pub kind: &'static str,
    /// Types of the results.
    pub results: Vec<String>,
    /// Its line of the graph's text.
    pub text: String,
    /// The source operators that it stands for.
    pub origins: Vec<String>,
    /// Constants among its operands, with their types.
    pub constants: Vec<String>,
    /// The rules of the optimiser that made it, in their order.
    pub rules: Vec<String>,
    /// Numbers of the kernels that compute it.
    pub kernels: Vec<usize>,
}

/// An edge of a [`Diagram`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiagramEdge {
    /// Number of the node that computes the value.
    pub from: usize,
    /// Number of the node that reads it.
    pub to: usize,
    /// The value's type.
    pub r#type: String,
}

impl Diagram {
    /// What a picture shows of a graph. No node has rules or kernels yet.
    pub fn of(graph: &Graph) -> Diagram {
        let mut diagram = Diagram::default();
        let mut numbers: BTreeMap<NodeId, usize> = BTreeMap::new();
        for id in graph.topological_order() {
            if matches!(graph.node(id).op, Op::Constant(_)) {
                continue;
            }
            let number = diagram.nodes.len();
            numbers.insert(id, number);
            for operand in graph.operands(id) {
                if let Some(&from) = numbers.get(&operand.node) {
                    diagram.edges.push(DiagramEdge { from, to: number, r#type: graph.ty(operand).to_string() });
                }
            }
            diagram.nodes.push(DiagramNode::of(graph, id));
        }
        for output in graph.outputs() {
            let ty = graph.ty(output.value).to_string();
            // An output that is a constant has no node to come from.
            if let Some(&from) = numbers.get(&output.value.node) {
                diagram.edges.push(DiagramEdge { from, to: diagram.nodes.len(), r#type: ty.clone() });
            }
            diagram.nodes.push(DiagramNode::output(&output.name, ty));
        }
        diagram
    }
}

impl DiagramNode {
    fn of(graph: &Graph, id: NodeId) -> DiagramNode {
        let node = graph.node(id);
        let operands = graph.operands(id);
        let constants = operands.iter().filter(|&&operand| graph.constant(operand).is_some());
        DiagramNode {
            name: node.name.to_string(),
            operator: operator(&node.op),
            kind: kind(main_operator(&node.op).category()),
            results: node.results.iter().map(TensorType::to_string).collect(),
            text: mlc_ir::text::print_node(graph, id),
            origins: node.origins.iter().map(ToString::to_string).collect(),
            constants: constants
                .map(|&value| format!("{}: {}", graph.node(value.node).name, graph.ty(value)))
                .collect(),
            rules: Vec::new(),
            kernels: Vec::new(),
        }
    }

    /// An output of a graph.
    pub fn output(name: &str, ty: String) -> DiagramNode {
        DiagramNode {
            name: name.to_owned(),
            operator: "output".into(),
            kind: "output",
            results: vec![ty],
            ..DiagramNode::default()
        }
    }
}

/// The operator's name with what it applies, if that is a word; of a kernel that of its anchor, with a sign that there is more.
fn operator(op: &Op) -> String {
    match op {
        Op::Kernel(kernel) => format!("{} +", operator(&kernel.anchor)),
        _ => match op.fields().first() {
            Some((_, FieldValue::Word(word))) => format!("{} {word}", op.name()),
            _ => op.name().to_owned(),
        },
    }
}

/// The operator that decides what kind of node it is in.
fn main_operator(op: &Op) -> &Op {
    match op {
        Op::Kernel(kernel) => &kernel.anchor,
        _ => op,
    }
}

fn kind(category: Category) -> &'static str {
    match category {
        Category::Source => "source",
        Category::Elementwise => "elementwise",
        Category::View => "view",
        Category::Movement => "movement",
        Category::Accumulation => "accumulation",
        Category::Anchor => "anchor",
        Category::Control => "control",
    }
}
