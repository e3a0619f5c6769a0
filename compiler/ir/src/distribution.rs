//! [`Distribution`]: the place of a model among several that run together, one on each rank, and exchange values.

use std::collections::{BTreeMap, BTreeSet};

/// What makes a model one of several that run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// Which one of them it is, from 0 on.
    pub rank: usize,
    /// How many there are.
    pub count: usize,
    /// What it exchanges with the others, in the order of the model. Where other ranks' messages allow it, the model may be
    /// run by sending as it goes along, and waiting at each message that is received.
    pub messages: Vec<Message>,
}

impl Distribution {
    /// For each message the number of its channel: the place of its tag among those of all messages between the same two ranks in
    /// the same direction, in ascending order. Both ends come to the same numbers, which any transport can use as tags.
    pub fn channel_numbers(&self) -> Vec<usize> {
        let way = |message: &Message| (message.peer, message.transfer.input().is_some());
        let mut tags: BTreeMap<(usize, bool), BTreeSet<i32>> = BTreeMap::new();
        for message in &self.messages {
            tags.entry(way(message)).or_default().insert(message.tag);
        }
        let numbers: BTreeMap<(usize, bool), BTreeMap<i32, usize>> =
            tags.into_iter().map(|(way, tags)| (way, tags.into_iter().zip(0..).collect())).collect();
        self.messages.iter().map(|message| numbers[&way(message)][&message.tag]).collect()
    }
}

/// A value that goes from one rank to another. To the evaluator and to passes what is received is an input and what is sent is
/// an output like any other; generated code exchanges them with the other ranks, not with its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Which way it goes, and which value it is.
    pub transfer: Transfer,
    /// The rank at the other end.
    pub peer: usize,
    /// Tells the channels between two ranks apart. Messages of one channel arrive in the order in which they are sent.
    pub tag: i32,
}

/// Which way a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// The value of the output of this number goes to the peer. An output may be sent more than once.
    Send {
        /// Number of the output.
        output: usize,
    },
    /// The input of this number gets its value from the peer.
    Receive {
        /// Number of the input.
        input: usize,
    },
}

impl Transfer {
    /// The output that is sent.
    pub fn output(self) -> Option<usize> {
        match self {
            Transfer::Send { output } => Some(output),
            Transfer::Receive { .. } => None,
        }
    }

    /// The input that is received.
    pub fn input(self) -> Option<usize> {
        match self {
            Transfer::Receive { input } => Some(input),
            Transfer::Send { .. } => None,
        }
    }
}
