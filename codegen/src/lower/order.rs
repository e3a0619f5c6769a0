//! Orders of parts and messages: the graph's own, and a greedy one that frees memory early. The caller plans both and keeps the
//! better.
//!
//! Each value is sent right after it has been computed, and a receive begins as soon as what comes before it in the list of
//! messages has been sent. A message is waited for before the first step that reads it, and such steps wait while others can run.

use super::exchange::{Action, Ancestors, Exchange, LoweredMessage};
use super::homes::{Buffer, BufferId, BufferKind};
use super::maker::Item;
use super::part::{Part, Routine};
use mlc_ir::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The steps in the order in which they run, and what is done with messages in between.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Numbers of items.
    pub order: Vec<usize>,
    /// What is done with messages, each with how many items come before it.
    pub exchanges: Vec<(usize, Exchange)>,
}

/// Candidate orders; without messages and calls with effects, the first is the one given. None when these can't be kept in order.
pub fn candidates(graph: &Graph, items: &[Item], buffers: &[Buffer], messages: &[LoweredMessage]) -> Vec<Schedule> {
    let works =
        |schedule: &Schedule| schedule.order.len() == items.len() && schedule.exchanges.len() == 2 * messages.len();
    let dependencies = dependencies(graph, items, buffers, messages);
    let greedy = Queue::new(items, buffers, messages, &dependencies).run(true);
    let given = match messages {
        [] if effects(graph, items).len() < 2 => Schedule { order: (0..items.len()).collect(), exchanges: Vec::new() },
        _ => Queue::new(items, buffers, messages, &dependencies).run(false),
    };
    [given, greedy].into_iter().filter(works).collect()
}

/// For each step, and behind them each message, those that it must follow. Steps follow writers of what they read, and earlier
/// writers of what they write (so that a value is computed before its border is drawn, and can overwrite an operand). A state is
/// read before it is overwritten. Calls with effects follow each other.
fn dependencies(
    graph: &Graph,
    items: &[Item],
    buffers: &[Buffer],
    messages: &[LoweredMessage],
) -> Vec<BTreeSet<usize>> {
    // Among messages, what other values in a buffer depend on is no concern of one: waiting for them might be for ever.
    let ancestors = (!messages.is_empty()).then(|| Ancestors::new(graph));
    let concerns = |writer: usize, node| ancestors.as_ref().is_none_or(|all| all.include(node, items[writer].node));
    let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let mut readers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let received = received(messages);
    let mut result = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let touched = item.part.touched();
        let reads = || touched.iter().filter(|(_, is_read)| *is_read).map(|(buffer, _)| *buffer);
        let writes = || touched.iter().filter(|(_, is_read)| !*is_read).map(|(buffer, _)| *buffer);
        let before = reads().chain(writes()).flat_map(|buffer| writers.get(&buffer).into_iter().flatten());
        let before = before.copied().filter(|&writer| concerns(writer, item.node));
        let overwritten = writes().flat_map(|buffer| readers.get(&buffer).into_iter().flatten()).copied();
        let begun = reads().filter_map(|buffer| received.get(&buffer).map(|message| items.len() + message));
        result.push(before.chain(overwritten).chain(begun).collect::<BTreeSet<usize>>());
        for buffer in reads().filter(|&id| matches!(buffers[id].kind, BufferKind::State(_))) {
            readers.entry(buffer).or_default().push(index);
        }
        for buffer in writes() {
            writers.entry(buffer).or_default().push(index);
        }
    }
    for pair in effects(graph, items).windows(2) {
        result[pair[1]].insert(pair[0]);
    }
    let mut channels: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut before_next_receive: BTreeSet<usize> = BTreeSet::new();
    for (number, message) in messages.iter().enumerate() {
        let own = items.len() + number;
        match message.sent {
            None => {
                result.push(std::mem::take(&mut before_next_receive));
            }
            Some(node) => {
                let written = writers.get(&message.buffer).into_iter().flatten().copied();
                let written = written.filter(|&writer| concerns(writer, node));
                let begun = received.get(&message.buffer).map(|message| items.len() + message);
                let earlier = channels.insert((message.peer, message.channel), own);
                result.push(written.chain(begun).chain(earlier).collect());
            }
        }
        before_next_receive.insert(own);
    }
    result
}

/// The steps that call functions with effects, in the order in which they must run.
fn effects(graph: &Graph, items: &[Item]) -> Vec<usize> {
    let place = |index: usize| match &items[index].part {
        Part::Step(step) if matches!(step.routine, Routine::Kernel(_)) => None,
        _ => Some((graph.node(items[index].node).op.effects()?, index)),
    };
    let mut places: Vec<_> = (0..items.len()).filter_map(place).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, index)| index).collect()
}

/// The messages that are received, by the buffers that they fill.
fn received(messages: &[LoweredMessage]) -> BTreeMap<BufferId, usize> {
    let numbered = messages.iter().enumerate().filter(|(_, message)| message.sent.is_none());
    numbered.map(|(number, message)| (message.buffer, number)).collect()
}

fn arena_buffers(touched: &[(BufferId, bool)], buffers: &[Buffer]) -> BTreeSet<BufferId> {
    touched.iter().map(|(id, _)| *id).filter(|&id| buffers[id].kind == BufferKind::Arena).collect()
}

/// Items and messages that wait for their turn.
struct Queue<'a> {
    /// The number of items.
    count: usize,
    buffers: &'a [Buffer],
    messages: &'a [LoweredMessage],
    received: BTreeMap<BufferId, usize>,
    /// The buffers that each item reads.
    read: Vec<Vec<BufferId>>,
    /// Arena buffers of each item.
    touched: Vec<BTreeSet<BufferId>>,
    /// How many items touch each buffer, and how many of them are still to come.
    totals: BTreeMap<BufferId, usize>,
    left: BTreeMap<BufferId, usize>,
    /// How many of those that it must follow each still waits for, and who waits for it.
    missing: Vec<usize>,
    users: Vec<Vec<usize>>,
    ready: BTreeSet<usize>,
    /// Messages that have been waited for.
    complete: BTreeSet<usize>,
    result: Schedule,
}

impl<'a> Queue<'a> {
    fn new(
        items: &'a [Item],
        buffers: &'a [Buffer],
        messages: &'a [LoweredMessage],
        dependencies: &[BTreeSet<usize>],
    ) -> Self {
        let all: Vec<Vec<(BufferId, bool)>> = items.iter().map(|item| item.part.touched()).collect();
        let read = |touched: &Vec<(BufferId, bool)>| {
            touched.iter().filter(|(_, is_read)| *is_read).map(|(buffer, _)| *buffer).collect()
        };
        let read = all.iter().map(read).collect();
        let touched: Vec<BTreeSet<BufferId>> = all.iter().map(|touched| arena_buffers(touched, buffers)).collect();
        let mut totals: BTreeMap<BufferId, usize> = BTreeMap::new();
        touched.iter().flatten().for_each(|&id| *totals.entry(id).or_insert(0) += 1);
        let missing: Vec<usize> = dependencies.iter().map(BTreeSet::len).collect();
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); dependencies.len()];
        for (index, list) in dependencies.iter().enumerate() {
            list.iter().for_each(|&earlier| users[earlier].push(index));
        }
        let ready = (0..missing.len()).filter(|&index| missing[index] == 0).collect();
        let (left, received) = (totals.clone(), received(messages));
        let (complete, result) = (BTreeSet::new(), Schedule::default());
        Queue {
            count: items.len(),
            read,
            buffers,
            messages,
            received,
            touched,
            totals,
            left,
            missing,
            users,
            ready,
            complete,
            result,
        }
    }

    fn run(mut self, greedy: bool) -> Schedule {
        let rank = |queue: &Queue<'_>, index: usize| {
            let growth = if greedy && index < queue.count { queue.growth(index) } else { 0 };
            (!queue.awaited(index).is_empty(), index < queue.count, growth, index)
        };
        while let Some(next) = self.ready.iter().copied().min_by_key(|&index| rank(&self, index)) {
            self.ready.remove(&next);
            for message in self.awaited(next) {
                self.exchange(Action::Wait, message);
                self.complete.insert(message);
            }
            match next.checked_sub(self.count) {
                None => self.step(next),
                Some(message) if self.messages[message].sent.is_some() => self.exchange(Action::Send, message),
                Some(message) => self.exchange(Action::Receive, message),
            }
            for user in std::mem::take(&mut self.users[next]) {
                self.missing[user] -= 1;
                if self.missing[user] == 0 {
                    self.ready.insert(user);
                }
            }
        }
        for message in (0..self.messages.len()).filter(|message| !self.complete.contains(message)).collect::<Vec<_>>() {
            self.exchange(Action::Wait, message);
        }
        self.result
    }

    /// The messages that must be waited for before a step or a message.
    fn awaited(&self, index: usize) -> BTreeSet<usize> {
        let arrives = |buffer: BufferId| self.received.get(&buffer).copied();
        let messages: BTreeSet<usize> = match index.checked_sub(self.count) {
            None => self.read[index].iter().copied().filter_map(arrives).collect(),
            Some(message) if self.messages[message].sent.is_none() => BTreeSet::new(),
            Some(message) => arrives(self.messages[message].buffer).into_iter().collect(),
        };
        messages.difference(&self.complete).copied().collect()
    }

    /// By how many bytes more is alive after a step than before it.
    fn growth(&self, index: usize) -> i64 {
        let change = |id: &BufferId| {
            let bytes = self.buffers[*id].bytes as i64;
            let fresh = if self.left[id] == self.totals[id] { bytes } else { 0 };
            fresh - if self.left[id] == 1 { bytes } else { 0 }
        };
        self.touched[index].iter().map(change).sum::<i64>()
    }

    fn step(&mut self, index: usize) {
        self.result.order.push(index);
        for id in &self.touched[index] {
            self.left.entry(*id).and_modify(|count| *count -= 1);
        }
    }

    fn exchange(&mut self, action: Action, message: usize) {
        self.result.exchanges.push((self.result.order.len(), Exchange { action, message }));
    }
}
