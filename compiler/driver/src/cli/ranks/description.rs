//! `dist.json`: what the archives of several ranks have to do with each other.

use crate::pipeline::Compiled;
use mlc_codegen::Port;
use mlc_ir::Graph;
use mlc_ir::ranks::Channel;
use serde::Serialize;
use std::collections::BTreeMap;

/// The text of the file, of the models as they were loaded and of what they became: the archive of each, by its name.
pub fn description(graphs: &[&Graph], archives: &[(String, Compiled)]) -> String {
    let ranks =
        archives.iter().enumerate().map(|(rank, (archive, compiled))| described(rank, archive.clone(), compiled));
    let description = Description { channels: channels(graphs), count: graphs.len(), ranks: ranks.collect() };
    // Structures of strings, numbers and lists: writing them to memory can't fail.
    serde_json::to_string_pretty(&description).unwrap_or_default() + "\n"
}

/// `dist.json`.
#[derive(Serialize)]
struct Description {
    channels: Vec<ChannelEntry>,
    count: usize,
    ranks: Vec<RankEntry>,
}

#[derive(Serialize)]
struct RankEntry {
    archive: String,
    inputs: Vec<PortEntry>,
    model_name: String,
    outputs: Vec<PortEntry>,
    rank: usize,
}

#[derive(Serialize)]
struct PortEntry {
    dtype: &'static str,
    name: String,
    shape: Vec<usize>,
}

/// A channel, the number that it has among those of its two ranks, and its messages.
#[derive(Serialize)]
struct ChannelEntry {
    channel: usize,
    destination: usize,
    messages: Vec<MessageEntry>,
    source: usize,
    tag: i32,
}

#[derive(Serialize)]
struct MessageEntry {
    bytes: usize,
    dtype: &'static str,
    output: String,
}

fn described(rank: usize, archive: String, compiled: &Compiled) -> RankEntry {
    let entry =
        |port: &Port| PortEntry { dtype: port.ty.dtype.name(), name: port.name.clone(), shape: port.ty.shape.to_vec() };
    let module = &compiled.module;
    RankEntry {
        archive,
        inputs: module.inputs.iter().map(entry).collect(),
        model_name: module.model_name.clone(),
        outputs: module.outputs.iter().map(entry).collect(),
        rank,
    }
}

fn channels(graphs: &[&Graph]) -> Vec<ChannelEntry> {
    let mut channels: BTreeMap<Channel, ChannelEntry> = BTreeMap::new();
    for (rank, graph) in graphs.iter().enumerate() {
        let numbers = graph.distribution.as_ref().map(mlc_ir::Distribution::channel_numbers).unwrap_or_default();
        for (message, number) in graph.messages().iter().zip(numbers) {
            // Both ends have the same messages: the sender's are told.
            let Some(output) = message.transfer.output().map(|output| &graph.outputs()[output]) else { continue };
            let ty = graph.ty(output.value);
            let channel = Channel::of(rank, message);
            let Channel { source, destination, tag } = channel;
            let new = ChannelEntry { channel: number, destination, messages: Vec::new(), source, tag };
            let entry = MessageEntry { bytes: ty.bytes(), dtype: ty.dtype.name(), output: output.name.to_string() };
            channels.entry(channel).or_insert(new).messages.push(entry);
        }
    }
    channels.into_values().collect()
}
