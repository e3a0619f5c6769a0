//! [`Maker`]: what all kinds of steps are made with.

use super::homes::Homes;
use super::program::{Binding, Program, Step};
use crate::choice::Chooser;
use crate::names::Names;
use crate::target::Target;
use mlc_ir::{Diagnostic, Graph, NodeId, Op, Value};

/// Lowers a graph.
pub type Lower = fn(&Graph, &mut Chooser, &mut Names) -> Result<Program, Vec<Diagnostic>>;

/// Makes the steps of a graph.
pub(super) struct Maker<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The machine.
    pub target: &'a Target,
    /// Chooses schedules.
    pub chooser: &'a mut Chooser,
    /// Symbols so far.
    pub names: &'a mut Names,
    /// Steps so far.
    pub steps: Vec<Step>,
    /// Nodes that the target can't run.
    pub errors: Vec<Diagnostic>,
    /// Alignment of inputs and outputs in bytes, where the elements' isn't larger.
    pub interface_alignment: usize,
    /// Lowers the bodies of loops.
    pub lower_body: Lower,
}

impl Maker<'_> {
    /// What is said above the function of a step.
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
