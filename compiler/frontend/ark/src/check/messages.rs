//! What operations send to other ranks and receive from them. A message's tag stands in the buffers, on both sides of it.

use super::rules::expect_shape;
use super::subject::Subject;
use crate::model::{Argument, DataType, Model, Operation, Tag, Tensor, TensorIndex};
use mlc_ir::{Code, Diagnostic};
use std::collections::{BTreeMap, BTreeSet};

/// Which way a message goes, seen from this rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the peer.
    Send,
    /// From the peer.
    Receive,
}

/// One message of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Which way it goes.
    pub direction: Direction,
    /// The other rank.
    pub peer: u32,
    /// Tells messages between the same ranks apart. `None` for those of sums over all ranks whose memory has no tags: they have
    /// one of their own.
    pub tag: Option<i32>,
    /// A tensor of this rank with the type and shape of what is sent or received.
    pub tensor: TensorIndex,
}

/// The messages of an operation, in their order; none if it doesn't communicate. `RecvReduceSend` and its variant with packets
/// receive one block from each peer, all of them with the type and shape of what is read, before they send;
/// `AllReducePacketFused` sends first.
///
/// # Errors
/// When a message has no tag, or more than one, or memory is of another rank than the operation needs; never for a model that
/// was read.
pub fn messages(model: &Model, operation: &Operation) -> Result<Vec<Message>, Diagnostic> {
    let subject = Subject { model, operation };
    match &*operation.kind {
        "Send" | "SendPacket" => sent(&subject).map(|message| vec![message]),
        "Recv" => received(&subject).map(|message| vec![message]),
        "RecvPacket" => packet_received(&subject).map(|message| vec![message]),
        "RecvReduceSend" | "RecvReduceSendPacket" => exchanged(&subject),
        "AllReducePacketFused" => all_reduced(&subject),
        _ => Ok(Vec::new()),
    }
}

/// The tags of a buffer's messages with a rank; `None` is this one, in the lists of stand-ins.
fn tags(list: &[Tag], rank: Option<u32>) -> BTreeSet<i32> {
    list.iter().filter(|tag| tag.rank == rank).map(|tag| tag.tag).collect()
}

/// The one tag of a message.
fn only(subject: &Subject, tags: &BTreeSet<i32>, field: String, peer: u32) -> Result<i32, Diagnostic> {
    match (tags.len(), tags.first()) {
        (1, Some(tag)) => Ok(*tag),
        (0, _) => {
            let message = format!("the message between this rank and rank {peer} has no tag");
            Err(subject.fault(field, Code::ParameterMissing, message))
        }
        _ => {
            let message = format!("the message between this rank and rank {peer} has {} tags: {tags:?}", tags.len());
            Err(subject.fault(field, Code::ParameterInvalid, message))
        }
    }
}

fn sent(subject: &Subject) -> Result<Message, Diagnostic> {
    let operation = subject.operation;
    subject.local("ReadTensors", &operation.reads, 0)?;
    let peer = subject.remote("WriteTensors", &operation.writes, 0)?;
    let (source, target) = (subject.model.buffer_of(operation.reads[0]), subject.model.buffer_of(operation.writes[0]));
    let mut both = tags(&target.receive_tags, None);
    // Packets don't mark their source.
    if &*operation.kind == "Send" {
        both = &both & &tags(&source.send_tags, Some(peer));
    }
    let tag = only(subject, &both, "WriteTensors[0].Buffer".into(), peer)?;
    Ok(Message { direction: Direction::Send, peer, tag: Some(tag), tensor: operation.reads[0] })
}

fn received(subject: &Subject) -> Result<Message, Diagnostic> {
    let operation = subject.operation;
    let peer = subject.remote("ReadTensors", &operation.reads, 0)?;
    subject.local("WriteTensors", &operation.writes, 0)?;
    let (source, target) = (subject.model.buffer_of(operation.reads[0]), subject.model.buffer_of(operation.writes[0]));
    let both = &tags(&source.send_tags, None) & &tags(&target.receive_tags, Some(peer));
    let tag = only(subject, &both, "WriteTensors[0].Buffer".into(), peer)?;
    Ok(Message { direction: Direction::Receive, peer, tag: Some(tag), tensor: operation.writes[0] })
}

fn packet_received(subject: &Subject) -> Result<Message, Diagnostic> {
    let operation = subject.operation;
    let peer = subject.remote("ReadTensors", &operation.reads, 0)?;
    subject.local("ReadTensors", &operation.reads, 1)?;
    subject.local("WriteTensors", &operation.writes, 0)?;
    let scratch = subject.model.buffer_of(operation.reads[1]);
    let tag = only(subject, &tags(&scratch.receive_tags, Some(peer)), "ReadTensors[1].Buffer".into(), peer)?;
    Ok(Message { direction: Direction::Receive, peer, tag: Some(tag), tensor: operation.writes[0] })
}

fn exchanged(subject: &Subject) -> Result<Vec<Message>, Diagnostic> {
    let operation = subject.operation;
    for position in 0..2 {
        subject.local("ReadTensors", &operation.reads, position)?;
    }
    subject.local("WriteTensors", &operation.writes, 0)?;
    let scratch = subject.model.buffer_of(operation.reads[1]);
    let mut receives = Vec::new();
    let mut sends = Vec::new();
    for position in 1..operation.writes.len() {
        let peer = subject.remote("WriteTensors", &operation.writes, position)?;
        let tag = only(subject, &tags(&scratch.receive_tags, Some(peer)), "ReadTensors[1].Buffer".into(), peer)?;
        receives.push(Message { direction: Direction::Receive, peer, tag: Some(tag), tensor: operation.reads[0] });
        let target = subject.model.buffer_of(operation.writes[position]);
        let field = format!("WriteTensors[{position}].Buffer");
        let tag = only(subject, &tags(&target.receive_tags, None), field, peer)?;
        sends.push(Message { direction: Direction::Send, peer, tag: Some(tag), tensor: operation.writes[0] });
    }
    receives.append(&mut sends);
    Ok(receives)
}

/// Most ranks of a program whose sums over all of them don't name the others by memory.
const MOST_UNNAMED_RANKS: u32 = 64;

/// What is read to every other rank, and what they read from them, both in the order of ranks. The format says that there may be
/// memory of the others, as it is for the other operators with packets; without it, all of them are meant.
fn all_reduced(subject: &Subject) -> Result<Vec<Message>, Diagnostic> {
    let Subject { model, operation } = *subject;
    for position in 0..operation.reads.len() {
        subject.local("ReadTensors", &operation.reads, position)?;
    }
    subject.local("WriteTensors", &operation.writes, 0)?;
    let peers = other_ranks(subject)?;
    let scratch = operation.reads.get(1).map(|&scratch| model.buffer_of(scratch));
    let received = |peer| scratch.map_or_else(BTreeSet::new, |scratch| tags(&scratch.receive_tags, Some(peer)));
    let sent = |place: Option<usize>| {
        place.map_or_else(BTreeSet::new, |place| tags(&model.buffer_of(operation.writes[place]).receive_tags, None))
    };
    let has_tags = peers.iter().any(|(&peer, &place)| !(received(peer).is_empty() && sent(place).is_empty()));
    let mut messages = Vec::new();
    let mut exchange = |direction, peer, tags: &BTreeSet<i32>, field: String| -> Result<(), Diagnostic> {
        let tag = has_tags.then(|| only(subject, tags, field, peer)).transpose()?;
        messages.push(Message { direction, peer, tag, tensor: operation.reads[0] });
        Ok(())
    };
    for (&peer, &place) in &peers {
        let field = place.map_or_else(|| "WriteTensors".into(), |place| format!("WriteTensors[{place}].Buffer"));
        exchange(Direction::Send, peer, &sent(place), field)?;
    }
    for &peer in peers.keys() {
        let field = if scratch.is_some() { "ReadTensors[1].Buffer" } else { "ReadTensors" };
        exchange(Direction::Receive, peer, &received(peer), field.into())?;
    }
    Ok(messages)
}

/// The other ranks of a sum over all of them, each with the place of its memory among what is written, if there is some.
fn other_ranks(subject: &Subject) -> Result<BTreeMap<u32, Option<usize>>, Diagnostic> {
    let Subject { model, operation } = *subject;
    let count = operation.writes.len() - 1;
    if count == 0 {
        if model.world_size > MOST_UNNAMED_RANKS {
            let message = format!(
                "memory of the {} other ranks expected, which may be left out for {MOST_UNNAMED_RANKS} ranks at most",
                model.world_size - 1
            );
            return Err(subject.fault("WriteTensors", Code::OperandCount, message));
        }
        return Ok((0..model.world_size).filter(|&rank| rank != model.rank).map(|rank| (rank, None)).collect());
    }
    let mut peers = BTreeMap::new();
    for position in 1..=count {
        peers.insert(subject.remote("WriteTensors", &operation.writes, position)?, Some(position));
    }
    // Ranks of buffers are those of the program: as many different ones as there are others are all of them.
    if peers.len() == count && count == model.world_size as usize - 1 {
        return Ok(peers);
    }
    let message = format!(
        "memory of each of the {} other ranks expected, once, {count} tensors of the ranks {:?} found",
        model.world_size - 1,
        peers.keys().collect::<Vec<_>>()
    );
    Err(subject.fault("WriteTensors", Code::OperandTypes, message))
}

/// Both have the same type and shape, as what is sent and what it becomes.
fn same_value(subject: &Subject, field: &str, a: &Tensor, b: &Tensor) -> Result<(), Diagnostic> {
    if a.data_type == b.data_type && a.shape == b.shape {
        return Ok(());
    }
    let message = format!("{} {:?} found, {} {:?} expected", a.data_type, a.shape, b.data_type, b.shape);
    Err(subject.fault(field, Code::OperandTypes, message))
}

/// Room for packets: bytes, two for each byte of the message.
fn packets(subject: &Subject, field: String, room: &Tensor, bytes: usize) -> Result<(), Diagnostic> {
    let needed = bytes.saturating_mul(2);
    if room.data_type == DataType::Uint8 && room.elements() == needed {
        return Ok(());
    }
    let message = format!("UINT8 [{needed}] expected for packets, {} {:?} found", room.data_type, room.shape);
    Err(subject.fault(field, Code::OperandTypes, message))
}

pub(super) fn send(subject: &Subject) -> Result<(), Diagnostic> {
    sent(subject)?;
    same_value(subject, "WriteTensors[0]", subject.written(0), subject.read(0))
}

pub(super) fn send_done(subject: &Subject) -> Result<(), Diagnostic> {
    subject.remote("ReadTensors", &subject.operation.reads, 0).map(|_| ())
}

pub(super) fn receive(subject: &Subject) -> Result<(), Diagnostic> {
    received(subject)?;
    same_value(subject, "ReadTensors[0]", subject.read(0), subject.written(0))
}

pub(super) fn send_packet(subject: &Subject) -> Result<(), Diagnostic> {
    sent(subject)?;
    packets(subject, "WriteTensors[0]".into(), subject.written(0), subject.read(0).bytes())
}

pub(super) fn receive_packet(subject: &Subject) -> Result<(), Diagnostic> {
    packet_received(subject)?;
    same_value(subject, "ReadTensors[0]", subject.read(0), subject.written(0))?;
    packets(subject, "ReadTensors[1]".into(), subject.read(1), subject.written(0).bytes())
}

pub(super) fn receive_reduce_send(subject: &Subject) -> Result<(), Diagnostic> {
    let exchanged = exchanged(subject)?;
    let (value, scratch) = (subject.read(0), subject.read(1));
    same_value(subject, "WriteTensors[0]", subject.written(0), value)?;
    own_rank(subject)?;
    let peers: BTreeSet<u32> = exchanged.iter().map(|message| message.peer).collect();
    let count = subject.operation.writes.len() - 1;
    let said = matches!(subject.operation.argument("NPeers"), Some(Argument::Uint32(said)) if *said as usize == count);
    if !said || peers.len() != count {
        let message = format!("NPeers must be the number of tensors of other ranks, {count}, and these ranks distinct");
        return Err(subject.fault("Args[\"NPeers\"]", Code::ParameterInvalid, message));
    }
    let packed = &*subject.operation.kind == "RecvReduceSendPacket";
    for position in 1..=count {
        let field = format!("WriteTensors[{position}]");
        if packed {
            packets(subject, field, subject.written(position), value.bytes())?;
        } else {
            same_value(subject, &field, subject.written(position), value)?;
        }
    }
    if packed {
        return packets(subject, "ReadTensors[1]".into(), scratch, value.bytes().saturating_mul(count));
    }
    if scratch.data_type == value.data_type && scratch.elements() == value.elements().saturating_mul(count) {
        return Ok(());
    }
    let message = format!("room for {count} blocks of {} {:?} expected", value.data_type, value.shape);
    Err(subject.fault("ReadTensors[1]", Code::OperandTypes, message))
}

/// How packets lie in scratch memory is the affair of ARK's own kernels.
pub(super) fn all_reduce(subject: &Subject) -> Result<(), Diagnostic> {
    all_reduced(subject)?;
    same_value(subject, "WriteTensors[0]", subject.written(0), subject.read(0))?;
    if subject.operation.argument("Rank").is_some() {
        own_rank(subject)?;
    }
    let others = i64::from(subject.model.world_size) - 1;
    for name in ["NPeers", "PeerNum"] {
        let said = match subject.operation.argument(name) {
            Some(Argument::Uint32(said)) => i64::from(*said),
            Some(Argument::Int(said)) => i64::from(*said),
            _ => continue,
        };
        if said != others {
            let message = format!("a sum over all ranks has {others} others, {name} is {said}");
            return Err(subject.fault(format_args!("Args[{name:?}]"), Code::ParameterInvalid, message));
        }
    }
    Ok(())
}

/// The argument `Rank` is the rank of the file.
fn own_rank(subject: &Subject) -> Result<(), Diagnostic> {
    let own = subject.model.rank;
    if matches!(subject.operation.argument("Rank"), Some(Argument::Int(rank)) if i64::from(*rank) == i64::from(own)) {
        return Ok(());
    }
    Err(subject.fault(
        "Args[\"Rank\"]",
        Code::ParameterInvalid,
        format!("the argument Rank isn't the file's rank, {own}"),
    ))
}

pub(super) fn barrier(subject: &Subject) -> Result<(), Diagnostic> {
    own_rank(subject)?;
    let (input, output) = (subject.read(0), subject.output());
    if input.buffer != output.buffer {
        return Err(subject.fault(
            "WriteTensors[0].Buffer",
            Code::ParameterInvalid,
            "the buffer of ReadTensors[0] expected",
        ));
    }
    let count = subject.model.world_size;
    match subject.operation.argument("PeerNum") {
        Some(Argument::Int(peers)) if (0..i64::from(count)).contains(&i64::from(*peers)) => {
            expect_shape(subject, &input.shape)
        }
        _ => {
            let message = format!("the argument PeerNum isn't in the range of {count} ranks");
            Err(subject.fault("Args[\"PeerNum\"]", Code::ParameterInvalid, message))
        }
    }
}
