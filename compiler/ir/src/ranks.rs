//! Graphs that run together, one on each rank: whether their messages fit, and what they compute.

use crate::diagnostics::{Code, Diagnostic, Location};
use crate::distribution::{Message, Transfer};
use crate::evaluator::Evaluation;
use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Where messages of one tag go from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The rank that sends.
    pub source: usize,
    /// The rank that receives.
    pub destination: usize,
    /// The tag of all messages.
    pub tag: i32,
}

impl Channel {
    /// The channel of a message of a rank.
    pub fn of(rank: usize, message: &Message) -> Channel {
        let (source, destination) = match message.transfer {
            Transfer::Send { .. } => (rank, message.peer),
            Transfer::Receive { .. } => (message.peer, rank),
        };
        Channel { source, destination, tag: message.tag }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} to rank {}, tag {}", self.source, self.destination, self.tag)
    }
}

/// One end of a message, when its turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The rank.
    pub rank: usize,
    /// Number of the message in the rank's list.
    pub message: usize,
}

/// What doesn't fit the other ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Misfit {
    /// The place of its graph among those that were given.
    pub rank: usize,
    /// What is wrong: `MLC0113`.
    pub fault: Diagnostic,
}

/// Checks that the graphs, in the order of their ranks, can run together, and gives an order in which all messages can be sent
/// and received: each rank's in the order of its list, each received after it was sent. Since it exists, ranks that send as soon
/// as they can, and wait for a message only after they have sent all that comes before it in their list, never wait for ever.
///
/// # Errors
/// `MLC0113`: all that doesn't fit.
pub fn schedule(graphs: &[&Graph]) -> Result<Vec<Event>, Vec<Misfit>> {
    let mut faults = places(graphs);
    if faults.is_empty() {
        faults = unbalanced(graphs);
    }
    if faults.is_empty() { simulate(graphs).map_err(|fault| vec![fault]) } else { Err(faults) }
}

/// Computes what graphs that run together give: for each rank its open outputs, of its open inputs. States are as before the
/// first run.
///
/// # Errors
/// As [`schedule`], and as [`evaluate`](crate::evaluate()).
pub fn evaluate_ranks(graphs: &[&Graph], inputs: &[Vec<Tensor>]) -> Result<Vec<Vec<Tensor>>, Vec<Diagnostic>> {
    let events = schedule(graphs).map_err(|misfits| misfits.into_iter().map(|it| it.fault).collect::<Vec<_>>())?;
    exchange(graphs, inputs, &events).map_err(|fault| vec![fault])
}

fn exchange(graphs: &[&Graph], inputs: &[Vec<Tensor>], events: &[Event]) -> Result<Vec<Vec<Tensor>>, Diagnostic> {
    let mut evaluations = Vec::new();
    for (rank, graph) in graphs.iter().enumerate() {
        evaluations.push(begin(rank, graph, inputs.get(rank).map_or(&[], Vec::as_slice))?);
    }
    let mut boxes: BTreeMap<Channel, VecDeque<Tensor>> = BTreeMap::new();
    for &Event { rank, message } in events {
        let message = &graphs[rank].messages()[message];
        let mailbox = boxes.entry(Channel::of(rank, message)).or_default();
        match message.transfer {
            Transfer::Send { output } => {
                let output = &graphs[rank].outputs()[output];
                mailbox.push_back(evaluations[rank].demand(output.value, &output.name)?.clone());
            }
            Transfer::Receive { input } => {
                let ty = graphs[rank].ty(graphs[rank].inputs()[input].into()).clone();
                if let Some(tensor) = mailbox.pop_front() {
                    // The ends may see the elements in other shapes.
                    evaluations[rank].give(input, Tensor::from_values(ty, tensor.values().clone()))?;
                }
            }
        }
    }
    let mut all = Vec::new();
    for (graph, mut evaluation) in graphs.iter().zip(evaluations) {
        let outputs = graph.open_outputs().into_iter().map(|number| &graph.outputs()[number]);
        let outputs = outputs.map(|output| evaluation.demand(output.value, &output.name).cloned());
        all.push(outputs.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

/// An evaluation with all inputs but those that are received.
fn begin<'a>(rank: usize, graph: &'a Graph, given: &[Tensor]) -> Result<Evaluation<'a>, Diagnostic> {
    let open = graph.open_inputs();
    if open.len() != given.len() {
        let message = format!("{} inputs given to rank {rank}, it takes {}", given.len(), open.len());
        return Err(Diagnostic::error(Code::Evaluation, Location::default(), message));
    }
    let mut evaluation = Evaluation::begin(graph);
    for state in &graph.states {
        evaluation.give(state.input, state.initial.to_tensor())?;
    }
    for (number, value) in open.into_iter().zip(given) {
        evaluation.give(number, value.clone())?;
    }
    Ok(evaluation)
}

/// Whether each graph says that it is what it is: the rank of its place, of as many as there are.
fn places(graphs: &[&Graph]) -> Vec<Misfit> {
    let mut faults = Vec::new();
    for (number, graph) in graphs.iter().enumerate() {
        let (rank, count) = match &graph.distribution {
            Some(distribution) => (distribution.rank, distribution.count),
            None => (0, 1),
        };
        if rank != number || count != graphs.len() {
            let message = format!("rank {rank} of {count} is in the place of rank {number} of {}", graphs.len());
            faults.push(mismatch(graphs, number, None, message));
        }
    }
    faults
}

/// Channels whose ends don't agree about number or types of the messages.
fn unbalanced(graphs: &[&Graph]) -> Vec<Misfit> {
    type Ends<'a> = (Vec<(&'a TensorType, String)>, Vec<(&'a TensorType, String)>);
    let mut channels: BTreeMap<Channel, Ends<'_>> = BTreeMap::new();
    for (rank, graph) in graphs.iter().enumerate() {
        for message in graph.messages() {
            let (sent, received) = channels.entry(Channel::of(rank, message)).or_default();
            match message.transfer {
                Transfer::Send { output } => {
                    let output = &graph.outputs()[output];
                    sent.push((graph.ty(output.value), output.name.to_string()));
                }
                Transfer::Receive { input } => {
                    let input = graph.inputs()[input];
                    received.push((graph.ty(input.into()), graph.node(input).name.to_string()));
                }
            }
        }
    }
    let mut faults = Vec::new();
    for (channel, (sent, received)) in channels {
        let Channel { source, destination, .. } = channel;
        for ((left, from), (right, to)) in sent.iter().zip(&received) {
            if (left.dtype, left.elements()) != (right.dtype, right.elements()) {
                let message =
                    format!("\"{from}\" of rank {source} is {left}, and arrives as \"{to}\", which is {right}");
                let misfit = mismatch(graphs, destination, Some(to), message);
                faults.push(misfit.with_note(format!("the channel is {channel}")));
            }
        }
        let (rank, what, (_, name)) = match (sent.get(received.len()), received.get(sent.len())) {
            (Some(extra), _) => (source, "is sent and not received", extra),
            (None, Some(extra)) => (destination, "is received and not sent", extra),
            (None, None) => continue,
        };
        let counts = format!("{} sent, {} received on the channel {channel}", sent.len(), received.len());
        let message = format!("\"{name}\" of rank {rank} {what}");
        faults.push(mismatch(graphs, rank, Some(name), message).with_note(counts));
    }
    faults
}

/// Lets all ranks send and receive in the order of their lists, with mailboxes without bounds.
fn simulate(graphs: &[&Graph]) -> Result<Vec<Event>, Misfit> {
    let mut next = vec![0; graphs.len()];
    let mut boxes: BTreeMap<Channel, usize> = BTreeMap::new();
    let mut awake: VecDeque<usize> = (0..graphs.len()).collect();
    let mut events = Vec::new();
    while let Some(rank) = awake.pop_front() {
        while let Some(message) = graphs[rank].messages().get(next[rank]) {
            let mailbox = boxes.entry(Channel::of(rank, message)).or_default();
            match message.transfer {
                Transfer::Send { .. } => {
                    *mailbox += 1;
                    awake.push_back(message.peer);
                }
                Transfer::Receive { .. } if *mailbox == 0 => break,
                Transfer::Receive { .. } => *mailbox -= 1,
            }
            events.push(Event { rank, message: next[rank] });
            next[rank] += 1;
        }
    }
    match (0..graphs.len()).find(|&rank| next[rank] < graphs[rank].messages().len()) {
        None => Ok(events),
        Some(stuck) => Err(circle(graphs, &next, stuck)),
    }
}

/// Who waits for whom, from a rank that waits for ever. What it waits for is sent by one that waits too.
fn circle(graphs: &[&Graph], next: &[usize], stuck: usize) -> Misfit {
    let mut path = vec![stuck];
    let start = loop {
        let rank = path[path.len() - 1];
        let peer = graphs[rank].messages()[next[rank]].peer;
        if let Some(place) = path.iter().position(|&known| known == peer) {
            break place;
        }
        path.push(peer);
    };
    let waits = path[start..].iter().map(|&rank| {
        let message = &graphs[rank].messages()[next[rank]];
        let input = message.transfer.input().and_then(|input| graphs[rank].inputs().get(input));
        let name = input.map_or("", |&input| &*graphs[rank].node(input).name);
        format!("rank {rank} waits for \"{name}\" from rank {}", message.peer)
    });
    let waits: Vec<String> = waits.collect();
    let misfit = mismatch(graphs, path[start], None, "ranks wait for each other, and none of them goes on");
    waits.into_iter().fold(misfit, Misfit::with_note)
}

fn mismatch(graphs: &[&Graph], rank: usize, node: Option<&str>, message: impl Into<String>) -> Misfit {
    let node = node.unwrap_or(&graphs[rank].name).to_owned();
    let location = Location { node: Some(node), ..Location::default() };
    Misfit { rank, fault: Diagnostic::error(Code::RanksMismatch, location, message) }
}

impl Misfit {
    fn with_note(self, note: String) -> Misfit {
        Misfit { fault: self.fault.with_note(note), ..self }
    }
}

#[cfg(test)]
mod tests;
