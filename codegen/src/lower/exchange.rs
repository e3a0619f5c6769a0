//! Messages of a lowered graph: where in memory they are, and when something is done with them.

use super::homes::{BufferId, BufferKind, Homes};
use mlc_ir::{DType, Distribution, Graph, NodeId, Transfer, Value};
use std::collections::BTreeMap;

/// A message of the graph's list, and its memory.
#[derive(Debug, Clone)]
pub struct LoweredMessage {
    /// The node whose value is sent; `None` when the message is received.
    pub sent: Option<NodeId>,
    /// The rank at the other end.
    pub peer: usize,
    /// Number of the channel among those of the two ranks in this direction.
    pub channel: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// Name of the output or the input.
    pub name: String,
    /// The buffer that it is in, or is received into.
    pub buffer: BufferId,
    /// The first of its elements in the buffer.
    pub offset: i64,
    /// Type of its elements.
    pub dtype: DType,
}

/// The buffers of values that were copied to be sent, by output.
pub type Copies = BTreeMap<usize, BufferId>;

/// What is done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is sent; its memory must stay as it is.
    Send,
    /// Its memory is ready for it.
    Receive,
    /// It must be complete before what follows.
    Wait,
}

/// Something that is done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// What is done.
    pub action: Action,
    /// Number of the message in the graph's list.
    pub message: usize,
}

/// The graph's messages over the homes of its values. What can't be sent from where it lies was copied: `copies` has the buffers
/// by output.
pub fn messages(graph: &Graph, homes: &Homes, copies: &Copies) -> Vec<LoweredMessage> {
    let Some(distribution) = &graph.distribution else { return Vec::new() };
    let channels = distribution.channel_numbers();
    let lower = |(number, channel): (usize, usize)| lowered(graph, homes, copies, distribution, number, channel);
    channels.into_iter().enumerate().map(lower).collect()
}

fn lowered(
    graph: &Graph,
    homes: &Homes,
    copies: &Copies,
    distribution: &Distribution,
    number: usize,
    channel: usize,
) -> LoweredMessage {
    let message = &distribution.messages[number];
    let (sent, name, value) = match message.transfer {
        Transfer::Send { output } => {
            let output = &graph.outputs()[output];
            (Some(output.value.node), output.name.to_string(), output.value)
        }
        Transfer::Receive { input } => {
            let input = graph.inputs()[input];
            (None, graph.node(input).name.to_string(), Value::from(input))
        }
    };
    let (buffer, view) = homes.view(value);
    let copied = message.transfer.output().and_then(|output| copies.get(&output));
    let (buffer, offset) = copied.map_or((*buffer, view.offset), |&copy| (copy, 0));
    let (dtype, bytes) = (view.dtype, graph.ty(value).bytes());
    LoweredMessage { sent, peer: message.peer, channel, bytes, name, buffer, offset, dtype }
}

/// Whether a value that is sent must be copied: a message is one piece of memory that nothing writes before it has left.
pub fn needs_copy(homes: &Homes, value: Value) -> bool {
    let (buffer, view) = homes.view(value);
    !view.is_dense() || matches!(homes.buffers[*buffer].kind, BufferKind::State(_))
}

/// For each node of a graph, the nodes that it depends on.
pub struct Ancestors {
    sets: BTreeMap<NodeId, Vec<u64>>,
}

impl Ancestors {
    /// Those of a graph.
    pub fn new(graph: &Graph) -> Ancestors {
        let mut sets: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
        for id in graph.topological_order() {
            let mut set = vec![0; id.index() / 64 + 1];
            set[id.index() / 64] |= 1 << (id.index() % 64);
            for operand in graph.operands(id) {
                let inherited = &sets[&operand.node];
                set.resize(set.len().max(inherited.len()), 0);
                set.iter_mut().zip(inherited).for_each(|(own, other)| *own |= other);
            }
            sets.insert(id, set);
        }
        Ancestors { sets }
    }

    /// Whether a node is, or depends on, another one.
    pub fn include(&self, node: NodeId, ancestor: NodeId) -> bool {
        let word = self.sets.get(&node).and_then(|set| set.get(ancestor.index() / 64));
        word.is_some_and(|word| word >> (ancestor.index() % 64) & 1 == 1)
    }
}
