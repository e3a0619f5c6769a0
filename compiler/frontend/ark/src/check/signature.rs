//! The operators of the format: how many tensors each has, which arguments it needs, and its rule.

use super::rules::{self, Rule};

/// An operator.
#[derive(Debug)]
pub(super) struct Signature {
    /// Its type in the file.
    pub kind: &'static str,
    /// How many tensors it reads, at least and at most.
    pub reads: (usize, usize),
    /// How many it writes.
    pub writes: (usize, usize),
    /// Which of the tensors that it has each result is another name of.
    pub renames: Renames,
    /// Arguments that must be there, with their types.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Arguments that may be there, with their types. An operator that has some has no others; elsewhere those are passed over.
    pub optional: &'static [(&'static str, &'static str)],
    /// Whether tensors of other ranks are its business.
    pub communicates: bool,
    /// What else must hold.
    pub rule: Rule,
}

/// What the results of an operator are other names of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renames {
    /// There is no result.
    Nothing,
    /// One result, of the written tensor at this position.
    Written(usize),
    /// One result, of the tensor that is read.
    Read,
}

const ANY: usize = usize::MAX;
const TRANSPOSITIONS: &[(&str, &str)] = &[("TransposeInput", "BOOL"), ("TransposeOther", "BOOL")];

/// An operator that computes one tensor from some.
const fn compute(kind: &'static str, reads: usize, rule: Rule) -> Signature {
    with_arguments(kind, reads, &[], rule)
}

const fn with_arguments(
    kind: &'static str,
    reads: usize,
    arguments: &'static [(&'static str, &'static str)],
    rule: Rule,
) -> Signature {
    Signature {
        kind,
        reads: (reads, reads),
        writes: (1, 1),
        renames: Renames::Written(0),
        arguments,
        optional: &[],
        communicates: false,
        rule,
    }
}

/// An operator that sends or receives.
const fn communication(
    kind: &'static str,
    reads: (usize, usize),
    writes: (usize, usize),
    arguments: &'static [(&'static str, &'static str)],
    rule: Rule,
) -> Signature {
    Signature { kind, reads, writes, renames: Renames::Written(0), arguments, optional: &[], communicates: true, rule }
}

/// Every operator that computes or communicates.
static SIGNATURES: &[Signature] = &[
    Signature { writes: (0, 0), renames: Renames::Nothing, ..compute("Noop", 1, rules::anything) },
    compute("Add", 2, rules::broadcast_pair),
    compute("Sub", 2, rules::broadcast_pair),
    compute("Mul", 2, rules::broadcast_pair),
    compute("Div", 2, rules::broadcast_pair),
    compute("Rope", 2, rules::rotation),
    compute("Exp", 1, rules::broadcast),
    compute("Sqrt", 1, rules::broadcast),
    compute("Rsqrt", 1, rules::broadcast),
    compute("Relu", 1, rules::broadcast),
    compute("Gelu", 1, rules::broadcast),
    compute("Sigmoid", 1, rules::broadcast),
    compute("Copy", 1, rules::broadcast),
    compute("Store", 1, rules::broadcast),
    compute("Cast", 1, rules::broadcast_any_type),
    with_arguments("ScalarAdd", 1, &[("Factor", "FLOAT")], rules::broadcast),
    with_arguments("ScalarMul", 1, &[("Factor", "FLOAT")], rules::broadcast),
    with_arguments("ScalarAssign", 0, &[("Value", "FLOAT")], rules::anything),
    with_arguments("Matmul", 2, TRANSPOSITIONS, rules::product),
    with_arguments("Mma", 2, TRANSPOSITIONS, rules::product),
    with_arguments("MatmulGelu", 2, TRANSPOSITIONS, rules::product),
    with_arguments(
        "MatmulScale",
        2,
        &[("TransposeInput", "BOOL"), ("TransposeOther", "BOOL"), ("Scale", "FLOAT")],
        rules::product,
    ),
    with_arguments("MatmulAdd", 3, TRANSPOSITIONS, rules::product_and_residual),
    with_arguments("ReduceSum", 1, &[("Axis", "INT"), ("KeepDim", "BOOL")], rules::reduction),
    with_arguments("ReduceMax", 1, &[("Axis", "INT"), ("KeepDim", "BOOL")], rules::reduction),
    with_arguments("ReduceMean", 1, &[("Axis", "INT"), ("KeepDim", "BOOL")], rules::reduction),
    with_arguments("Transpose", 1, &[("Permutation", "DIMS")], rules::transposition),
    compute("Embedding", 2, rules::embedding),
    compute("Softmax", 1, rules::same_shape),
    compute("LayerNorm", 3, rules::layer_norm),
    Signature { writes: (3, 3), renames: Renames::Written(2), ..compute("KvCacheSlot", 2, rules::cache_slot) },
    communication("Send", (1, 1), (1, 1), &[], rules::send),
    Signature { renames: Renames::Read, ..communication("SendDone", (1, 1), (0, 0), &[], rules::send_done) },
    communication("Recv", (1, 1), (1, 1), &[], rules::receive),
    communication("SendPacket", (1, 1), (1, 1), &[("Flag", "UINT32")], rules::send_packet),
    communication("RecvPacket", (2, 2), (1, 1), &[("Flag", "UINT32")], rules::receive_packet),
    communication(
        "RecvReduceSend",
        (2, 2),
        (2, ANY),
        &[("NPeers", "UINT32"), ("Rank", "INT")],
        rules::receive_reduce_send,
    ),
    communication(
        "RecvReduceSendPacket",
        (2, 2),
        (2, ANY),
        &[("Flag", "UINT32"), ("NPeers", "UINT32"), ("Rank", "INT")],
        rules::receive_reduce_send,
    ),
    communication("DeviceSync", (1, 1), (1, 1), &[("Rank", "INT"), ("PeerNum", "INT")], rules::barrier),
    // The format's description knows tensors and meaning, not the arguments: those of its kin are taken where they agree.
    Signature {
        optional: &[("Flag", "UINT32"), ("NPeers", "UINT32"), ("PeerNum", "INT"), ("Rank", "INT")],
        ..communication("AllReducePacketFused", (1, 2), (1, ANY), &[], rules::all_reduce)
    },
];

/// What is known of an operator that isn't virtual.
pub(super) fn signature(kind: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.kind == kind)
}

/// The known operators' types.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    SIGNATURES.iter().map(|signature| signature.kind)
}
