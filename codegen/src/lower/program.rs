//! [`Program`]: what lowering makes of a graph, a tree of parts over the buffers of one memory plan.

use super::considered::Considered;
use super::entries::{Entry, calls, entries};
use super::exchange::{Exchange, LoweredMessage};
use super::homes::{Buffer, BufferId};
use super::layout::Layout;
use super::part::{Binding, ExternRoutine, Part, Step};

/// Parts in the order in which they run, over buffers with offsets.
#[derive(Debug)]
pub struct Program {
    /// What runs, one after the other.
    pub parts: Vec<Part>,
    /// The graph's messages.
    pub messages: Vec<LoweredMessage>,
    /// The buffers that the bindings of all parts name.
    pub buffers: Vec<Buffer>,
    /// Where in the arena they are.
    pub layout: Layout,
    /// What it was chosen from.
    pub considered: Considered,
    /// Where the rows of an input are taken that are given one after the other, if it has such an input.
    pub feeding: Option<Feeding>,
}

/// Where a program takes the rows of an input.
#[derive(Debug, Clone, Copy)]
pub struct Feeding {
    /// Number of the stripe among the outermost parts.
    pub part: usize,
    /// Number of the act that takes the rows.
    pub act: usize,
}

impl Program {
    /// All steps and loops, see [`entries`].
    pub fn entries(&self) -> Vec<Entry<'_>> {
        entries(&self.parts, 0)
    }

    /// What is done with messages, each with the position of the part before which it is done.
    pub fn exchanges(&self) -> Vec<(usize, Exchange)> {
        let mut position = 0;
        let mut result = Vec::new();
        for part in &self.parts {
            if let Part::Exchange(exchange) = part {
                result.push((position, *exchange));
            }
            position += part.positions();
        }
        result
    }

    /// Whether the stripe that takes rows one after the other is at this position.
    pub fn is_at(&self, feeding: Feeding, position: usize) -> bool {
        self.parts[..feeding.part].iter().map(Part::positions).sum::<usize>() == position
    }

    /// Whether a part returns a status.
    pub fn can_fail(&self) -> bool {
        self.parts.iter().any(Part::can_fail)
    }

    /// Its calls of functions that aren't mlc's own, in order, each with its position.
    pub fn calls(&self) -> Vec<(usize, &Step, &ExternRoutine)> {
        calls(&self.parts, 0)
    }

    /// C symbol of the memory of a persistent result.
    pub fn persistent_symbol(&self, buffer: BufferId) -> Option<&str> {
        self.calls().into_iter().find_map(|(_, step, code)| {
            let result = |result: usize| step.bindings.get(code.op.operands.len() + result);
            let place =
                code.op.persistent.iter().position(|&own| result(own).and_then(Binding::buffer) == Some(buffer))?;
            code.persistent.get(place).map(String::as_str)
        })
    }
}
