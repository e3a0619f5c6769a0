//! [`CostModel`]: what a target pays for an operator. Integers, so that sums are the same on every machine.

use mlc_ir::ops::Slice;
use mlc_ir::{Category, Op, TensorType, Work};

/// Costs in a unit of the caller's choice; only their ratios matter. The defaults count quarters of a cycle of a processor
/// with vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostModel {
    /// Of a multiply-accumulate operation.
    pub mac: u64,
    /// Of any other scalar operation.
    pub scalar_operation: u64,
    /// Of a byte read or written.
    pub byte: u64,
    /// Of starting a kernel.
    pub kernel: u64,
    /// Of a value that is a view of another buffer and moves nothing.
    pub view: u64,
    /// Whether a slice of step 1 can be a view even if its elements aren't contiguous.
    pub strided_views: bool,
}

impl Default for CostModel {
    fn default() -> Self {
        CostModel { mac: 1, scalar_operation: 1, byte: 1, kernel: 1000, view: 10, strided_views: true }
    }
}

impl CostModel {
    /// Cost of one application.
    pub fn application(&self, op: &Op, operands: &[TensorType], results: &[TensorType]) -> u64 {
        match op {
            _ if op.category() == Category::Source => return 0,
            Op::Reshape(_) => return self.view,
            Op::Slice(slice) if self.is_view(slice, &operands[0]) => return self.view,
            _ => {}
        }
        let Work { macs, scalar_operations, bytes_read, bytes_written } = op.work(operands, results);
        let parts = [
            (macs, self.mac),
            (scalar_operations, self.scalar_operation),
            (bytes_read.saturating_add(bytes_written), self.byte),
            (1, self.kernel),
        ];
        parts.iter().fold(0u64, |sum, (count, each)| sum.saturating_add(count.saturating_mul(*each)))
    }

    /// Cost of keeping a constant: so much a kernel must save before it gets a copy of its own. A number in all elements is
    /// kept once.
    pub fn constant(&self, ty: &TensorType, is_splat: bool) -> u64 {
        let bytes = if is_splat { ty.dtype.size() } else { ty.bytes() };
        self.byte.saturating_mul(bytes as u64)
    }

    fn is_view(&self, slice: &Slice, x: &TensorType) -> bool {
        if slice.steps.iter().any(|&step| step != 1) {
            return false;
        }
        let cut = |axis: &usize| slice.sizes[*axis] != x.shape[*axis];
        let contiguous = match (0..x.rank()).rev().find(cut) {
            Some(axis) => slice.sizes[..axis].iter().all(|&size| size == 1),
            None => true,
        };
        self.strided_views || contiguous
    }
}
