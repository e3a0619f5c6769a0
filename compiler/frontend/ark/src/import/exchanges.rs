//! What a rank sends and receives: inputs and outputs of its graph that aren't the caller's.

use super::call::{Call, Importer, Table};
use crate::check::Direction;
use crate::memory::{Exchange, Program, ValueId};
use crate::model::Model;
use indexmap::{IndexMap, IndexSet};
use mlc_import::Handler::One;
use mlc_import::{Fault, Item, Operand};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Distribution, Message, TensorType, Transfer, Value};
use std::collections::BTreeSet;

pub(super) const OPERATORS: Table =
    &[("AllReducePacketFused", One(sum_of_ranks)), ("RecvReduceSend", One(sum)), ("RecvReduceSendPacket", One(sum))];

/// The operation types that only exchange tensors, and those that only wait.
pub(super) const EXCHANGES: [&str; 6] = ["DeviceSync", "Recv", "RecvPacket", "Send", "SendDone", "SendPacket"];

/// The value of this rank and those of its peers, in their order.
fn sum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let blocks = call.all_inputs()?;
    call.ignore(&["Flag", "NPeers", "Rank"]);
    let (&first, others) = blocks.split_first().ok_or_else(|| Fault::operands("there is nothing to add up"))?;
    let mut sum = first;
    for &block in others {
        let block = call.builder.reshape(block, &call.shape(first))?;
        sum = call.builder.binary(B::Add, sum, block)?;
    }
    Ok(sum)
}

/// The values of all ranks, in their order. It is one operation: sums of halves are rounded once.
fn sum_of_ranks(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let values = call.all_inputs()?;
    call.ignore(&["Flag", "NPeers", "PeerNum", "Rank"]);
    let (&first, others) = values.split_first().ok_or_else(|| Fault::operands("there is nothing to add up"))?;
    let dtype = call.dtype_of(first);
    let wide = if dtype.is_float() { DType::F32 } else { dtype };
    let mut sum = call.builder.cast(first, wide)?;
    for &value in others {
        let value = call.builder.cast(value, wide)?;
        sum = call.builder.binary(B::Add, sum, value)?;
    }
    Ok(call.builder.cast(sum, dtype)?)
}

/// Makes inputs of the values that other ranks send. Gives their numbers.
pub(super) fn import_received(importer: &mut Importer<'_>, program: &Program<'_>) -> IndexMap<ValueId, usize> {
    let mut inputs = IndexMap::new();
    for exchange in program.exchanges.iter().filter(|exchange| exchange.message.direction == Direction::Receive) {
        let ty = program.ty(exchange.value);
        let ty = TensorType::new(ty.data_type.dtype(), ty.shape.clone());
        let value = importer.builder.input(&exchange.name, ty);
        inputs.insert(exchange.value, importer.builder.graph().inputs().len() - 1);
        if let Err(fault) = importer.define(exchange.value, Operand::Tensor(value)) {
            importer.report_value(&exchange.name, fault);
        }
    }
    inputs
}

/// Makes outputs of the values that other ranks get. Gives the place of the model among its ranks; `None` when it is the only one.
pub(super) fn distribution(
    importer: &mut Importer<'_>,
    model: &Model,
    program: &Program<'_>,
    received: &IndexMap<ValueId, usize>,
) -> Option<Distribution> {
    if model.world_size == 1 {
        return None;
    }
    let mut outputs: IndexMap<ValueId, usize> = IndexMap::new();
    let mut messages = Vec::new();
    let free = free_tags(program);
    for exchange in &program.exchanges {
        let (peer, direction) = (exchange.message.peer, exchange.message.direction);
        let Some(tag) = exchange.message.tag.or_else(|| free.get(&(peer, direction)).copied()) else { continue };
        let peer = peer as usize;
        let transfer = match (exchange.message.direction, outputs.get(&exchange.value)) {
            (Direction::Receive, _) => received.get(&exchange.value).map(|&input| Transfer::Receive { input }),
            (Direction::Send, Some(&output)) => Some(Transfer::Send { output }),
            (Direction::Send, None) => {
                let output = send(importer, &exchange.name, exchange.value);
                outputs.extend(output.map(|output| (exchange.value, output)));
                output.map(|output| Transfer::Send { output })
            }
        };
        messages.extend(transfer.map(|transfer| Message { transfer, peer, tag }));
    }
    Some(Distribution { rank: model.rank as usize, count: model.world_size as usize, messages })
}

/// A tag for each way to or from a rank that no message with one of its own has. Both ends know the same messages and come to the
/// same tag. ARK counts tags up from the lowest number, so it is the highest that is free.
fn free_tags(program: &Program<'_>) -> IndexMap<(u32, Direction), i32> {
    let mut taken: IndexMap<(u32, Direction), BTreeSet<i32>> = IndexMap::new();
    for Exchange { message, .. } in &program.exchanges {
        taken.entry((message.peer, message.direction)).or_default().extend(message.tag);
    }
    let highest = |tags: &BTreeSet<i32>| (i32::MIN..=i32::MAX).rev().find(|tag| !tags.contains(tag));
    taken.iter().filter_map(|(&way, tags)| Some((way, highest(tags)?))).collect()
}

/// Makes an output of a value, under a name that no other output has. Gives its number.
fn send(importer: &mut Importer<'_>, name: &str, value: ValueId) -> Option<usize> {
    let item = match importer.resolve(value) {
        Ok(item) => item.tensor()?,
        Err(fault) => {
            importer.report_value(name, fault);
            return None;
        }
    };
    let graph = importer.builder.graph();
    let taken: IndexSet<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
    let name = if name.is_empty() { "send" } else { name };
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let name = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(&**name))?;
    let number = graph.outputs().len();
    importer.builder.output(&name, item);
    Some(number)
}
