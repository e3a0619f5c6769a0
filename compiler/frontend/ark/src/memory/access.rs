//! Which memory an operation touches.

use crate::model::{Model, Operation, TensorIndex};

/// Whether an operation does something at its place: it is no declaration, no view, and not the mark that something is used.
pub fn is_active(operation: &Operation) -> bool {
    !operation.is_virtual && &*operation.kind != "Noop"
}

/// Whether a tensor is in the memory of this rank.
pub fn is_local(model: &Model, tensor: TensorIndex) -> bool {
    model.buffer_of(tensor).remote.is_none()
}

/// The operands of an operation: the local tensors that it reads values from. Scratch memory holds none; a cache of which one
/// row is written keeps the others.
pub fn operands(model: &Model, operation: &Operation) -> Vec<TensorIndex> {
    let scratch = match &*operation.kind {
        "AllReducePacketFused" | "RecvPacket" | "RecvReduceSend" | "RecvReduceSendPacket" => 1,
        _ => usize::MAX,
    };
    let reads = operation.reads.iter().enumerate().filter(|&(place, _)| place != scratch).map(|(_, &tensor)| tensor);
    let kept = if &*operation.kind == "KvCacheSlot" { &operation.writes[..operation.writes.len().min(1)] } else { &[] };
    reads.chain(kept.iter().copied()).filter(|&tensor| is_local(model, tensor)).collect()
}

/// The local tensors that an operation writes.
pub fn written<'a>(model: &'a Model, operation: &'a Operation) -> impl Iterator<Item = TensorIndex> + 'a {
    operation.writes.iter().copied().filter(|&tensor| is_local(model, tensor))
}
