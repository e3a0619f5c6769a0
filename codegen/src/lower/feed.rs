//! Inputs that are given row by row: why one can't be, and where in a program its rows are taken.

use super::entries::entries;
use super::homes::{BufferId, BufferKind};
use super::part::{Act, Binding, Part};
use super::program::{Feeding, Program};
use super::roles::is_view;
use mlc_ir::{Code, Diagnostic, Graph, Location, NodeId, Value};

/// The node of the input of this number, of those that the caller gives.
pub(super) fn input(graph: &Graph, number: usize) -> Option<NodeId> {
    graph.open_inputs().get(number).map(|&input| graph.inputs()[input])
}

/// Why no program takes an input row by row.
pub(super) fn refusal(graph: &Graph, input: NodeId) -> Diagnostic {
    let mut readers: Vec<(NodeId, Value)> = Vec::new();
    let mut values = vec![Value::from(input)];
    while let Some(value) = values.pop() {
        for (node, _) in graph.uses(value) {
            if is_view(&graph.node(node).op) { values.push(node.into()) } else { readers.push((node, value)) }
        }
    }
    readers.sort_unstable();
    let name = |node: NodeId| &graph.node(node).name;
    let reads_all = |&&(node, value): &&(NodeId, Value)| {
        let reads = graph.node(node).op.by_rows(&graph.operand_types(node)).map(|(_, reads)| reads);
        let alike = graph.operands(node).into_iter().zip(reads.unwrap_or_default());
        let mut own = alike.filter(|(operand, _)| *operand == value).peekable();
        own.peek().is_none() || own.any(|(_, read)| read.is_none())
    };
    let reason = if let Some(&(node, _)) = readers.iter().find(reads_all) {
        format!("'{}' ({}) reads all of it at once", name(node), graph.node(node).op.name())
    } else if let Some((node, value)) = readers.iter().find(|(_, value)| value.node != input) {
        format!("'{}' reads it through '{}', in another order", name(*node), name(value.node))
    } else if readers.is_empty() || graph.outputs().iter().any(|output| output.value.node == input) {
        "it is an output itself, or nothing reads it".to_owned()
    } else {
        let names: Vec<String> = readers.iter().map(|(node, _)| format!("'{}'", name(*node))).collect();
        format!("what reads it, {}, can't be computed row by row together", names.join(", "))
    };
    let message = format!("the input '{}' can't be given row by row: {reason}", name(input));
    Diagnostic::error(Code::InputNotFed, Location::default(), message).with_help(
        "a model can be fed that begins with convolutions, pools and elementwise operators along the rows; leave '--feed' out for others",
    )
}

impl Feeding {
    /// Where the rows of the input of this number are taken; `None` where anything reads more of it than the row of a turn.
    pub fn find(program: &Program, input: usize) -> Option<Feeding> {
        let is_input = |buffer: BufferId| program.buffers[buffer].kind == BufferKind::Input(input);
        let reads = |part: &Part| {
            let all = entries([part], 0).into_iter().flat_map(|entry| entry.part.bindings());
            all.filter_map(Binding::buffer).filter(|&buffer| is_input(buffer)).count()
        };
        let mut readers = program.parts.iter().enumerate().filter(|(_, part)| reads(part) > 0);
        let (number, part) = readers.next().filter(|(_, part)| reads(part) == 1)?;
        let Part::Stripe(stripe) = part else { return None };
        let walks_input =
            |act: &Act| act.walks.iter().any(|walk| stripe.bindings[walk.whole].buffer().is_some_and(is_input));
        let act = stripe.acts.iter().position(walks_input)?;
        readers.next().is_none().then_some(Feeding { part: number, act })
    }
}
