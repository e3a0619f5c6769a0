//! [`Maker`]: what all kinds of steps are made with.

use super::homes::{Buffer, Homes};
use super::part::{Binding, Label, Part, ResultPlace};
use super::view::View;
use crate::choice::Chooser;
use crate::names::Names;
use crate::target::Target;
use mlc_ir::{Diagnostic, Graph, NodeId, Op, Value};

/// Lowers the body of a loop that hands on so many values.
pub type Lower = fn(&Graph, usize, &mut Chooser, &mut Names) -> Result<Body, Vec<Diagnostic>>;

/// The lowered body of a loop.
#[derive(Debug)]
pub struct Body {
    /// What a turn does, in order.
    pub parts: Vec<Part>,
    /// The buffers that the parts name. Inputs and outputs are the body's.
    pub buffers: Vec<Buffer>,
}

/// A part that has no place in an order yet.
#[derive(Debug)]
pub struct Item {
    /// The node that it computes, of the graph at hand.
    pub node: NodeId,
    /// The part.
    pub part: Part,
}

/// Makes the parts of a graph.
pub(super) struct Maker<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The machine.
    pub target: &'a Target,
    /// Chooses schedules.
    pub chooser: &'a mut Chooser,
    /// Symbols so far.
    pub names: &'a mut Names,
    /// Parts so far.
    pub items: Vec<Item>,
    /// Nodes that the target can't run.
    pub errors: Vec<Diagnostic>,
    /// Lowers the bodies of loops.
    pub lower_body: Lower,
}

impl Maker<'_> {
    /// Adds the part of a node.
    pub fn push_part(&mut self, node: NodeId, part: Part) {
        self.items.push(Item { node, part });
    }

    /// What a part of a node is called.
    pub fn label(&self, id: NodeId, operator: String, macs: u64) -> Label {
        let node = self.graph.node(id);
        let origins = node.origins.iter().map(ToString::to_string).collect();
        let types = self.graph.operand_types(id);
        let bytes = types.iter().chain(&node.results).map(|ty| ty.bytes() as u64).sum();
        Label { node: node.name.to_string(), operator, origins, results: node.results.to_vec(), macs, bytes }
    }

    /// Where a result lies that the binding of this number points at.
    pub fn place(&self, homes: &Homes, value: Value, binding: usize) -> ResultPlace {
        let view = View { offset: 0, ..homes.view(value).1.clone() };
        let node = self.graph.node(value.node).name.to_string();
        ResultPlace { node, slot: value.slot as usize, binding, view }
    }

    /// What is said above the function of a part.
    pub fn comment(&self, id: NodeId, what: &str, macs: u64) -> Vec<String> {
        let node = self.graph.node(id);
        let operands: Vec<String> = self.graph.operand_types(id).iter().map(ToString::to_string).collect();
        let results: Vec<String> = node.results.iter().map(ToString::to_string).collect();
        let mut lines = vec![format!("{}: {what}", node.name)];
        lines.push(format!("{} -> {}", operands.join(", "), results.join(", ")));
        if let Op::Kernel(kernel) = &node.op {
            let fields: Vec<String> =
                kernel.anchor.fields().iter().map(|(name, value)| format!("{name} = {value}")).collect();
            lines.push(fields.join(", "));
            lines.push(format!("epilogue: {}", kernel.expression));
        } else if let Op::Map(map) = &node.op {
            lines.push(format!("y = {}", map.expression));
        }
        if macs > 0 {
            lines.push(format!("{macs} multiply-accumulate operations"));
        }
        if !node.origins.is_empty() {
            let origins: Vec<&str> = node.origins.iter().map(|origin| &**origin).collect();
            lines.push(format!("from {}", origins.join(", ")));
        }
        lines
    }
}

/// What a parameter for a dense value points at.
pub(super) fn bound(homes: &Homes, value: Value, constant: bool) -> Binding {
    let (buffer, view) = homes.view(value);
    Binding::Buffer { buffer: *buffer, offset: view.offset, dtype: view.dtype, constant }
}
