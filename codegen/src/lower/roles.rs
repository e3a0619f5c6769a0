//! What nodes of a legal graph become: views of others' memory, or something that is computed.

use mlc_ir::ops::PadMode;
use mlc_ir::{Category, Op};

/// Whether a node only says where elements lie.
pub fn is_view(op: &Op) -> bool {
    op.category() == Category::View
}

/// Whether a node computes, rather than places, its results.
pub fn is_computed(op: &Op) -> bool {
    match op {
        Op::Pad(pad) => pad.mode != PadMode::Constant,
        other => other.category().is_anchor() || matches!(other.category(), Category::Elementwise | Category::Control),
    }
}
