//! Elementwise operators over operands that are transposed against the result, in blocks of two axes: every cache line of the
//! operand and of the result is used whole while it is near.

use super::KernelWriter;
use super::tile::spans;
use super::walk::{AXIS_NAMES, for_full_vectors};
use crate::loops::{Index, Nest};
use crate::lower::view::View;
use crate::target::Target;
use mlc_ir::Shape;

/// Bytes of a cache line, which blocks are as wide as.
const LINE_BYTES: usize = 64;

/// Neighbours that share a line of the operand, below which blocks gain nothing.
const FEW: usize = 8;

/// A walk over all positions of a result in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Extents of the result.
    shape: Shape,
    /// The axis along which an operand is contiguous, not the last one.
    rows: usize,
    /// Elements of a cache line.
    line: usize,
}

impl Blocks {
    /// The blocks for views of the result and of operands, with the same axes; `None` where there is nothing to cut: of short
    /// axes, and where no operand is transposed.
    pub fn new(views: &[View], lanes: usize) -> Option<Blocks> {
        let (result, operands) = views.split_first()?;
        let bytes = result.dtype.size();
        if result.strides.last() != Some(&1) {
            return None;
        }
        let rows = operands.iter().find_map(contiguous_axis)?;
        let columns = *result.shape.last()?;
        let is_wide = result.shape[rows] >= FEW && columns >= FEW.max(lanes);
        is_wide.then(|| Blocks { shape: result.shape.clone(), rows, line: LINE_BYTES / bytes })
    }

    /// Whether a result is so large that blocks gain something.
    pub fn pay(target: &Target, result: &View, lanes: usize) -> bool {
        result.elements() * result.dtype.size() >= target.machine.tuning.near_bytes[usize::from(lanes == 1)]
    }

    /// Calls `body` with indices and lanes for all positions, in vectors of `lanes` along the last axis and single elements
    /// for the rest of it. The longer one of the two axes is cut into blocks, so that little lies between neighbouring lines.
    pub fn nest(
        &self,
        kernel: &mut KernelWriter<'_>,
        lanes: usize,
        body: impl Fn(&mut KernelWriter<'_>, &[Index], usize),
    ) {
        let last = self.shape.len() - 1;
        let (rows, columns) = (self.shape[self.rows], self.shape[last]);
        let outer: Vec<usize> = (0..last).filter(|&axis| axis != self.rows).map(|axis| self.shape[axis]).collect();
        kernel.for_shape(&AXIS_NAMES, &outer, &mut |kernel, indices| {
            let body = |kernel: &mut KernelWriter<'_>, row: Index, column: Index, lanes: usize| {
                let mut all = indices.to_vec();
                all.insert(self.rows, row);
                all.push(column);
                body(kernel, &all, lanes);
            };
            if rows > columns {
                self.blocks(kernel, rows, |kernel, block, extent| {
                    for_full_vectors(kernel, columns, lanes, |kernel, column, lanes| {
                        kernel.for_each("row", extent, |kernel, row| {
                            body(kernel, block.plus(&row), column.clone(), lanes);
                        });
                    });
                });
            } else {
                self.blocks(kernel, columns, |kernel, block, extent| {
                    kernel.for_each("row", rows, |kernel, row| {
                        for_full_vectors(kernel, extent, lanes, |kernel, column, lanes| {
                            body(kernel, row.clone(), block.plus(&column), lanes);
                        });
                    });
                });
            }
        });
    }

    /// Loops over blocks of an axis; the body gets the first index of one and its extent.
    fn blocks(&self, kernel: &mut KernelWriter<'_>, extent: usize, body: impl Fn(&mut KernelWriter<'_>, Index, usize)) {
        for span in spans(extent, self.line) {
            kernel.for_range("block", span.start.into(), span.end.into(), span.step as i64, |kernel, block| {
                body(kernel, block, span.step);
            });
        }
    }
}

/// The axis along which neighbours of an operand are nearest, where the last axis leads further away.
fn contiguous_axis(operand: &View) -> Option<usize> {
    let moving = (0..operand.rank()).filter(|&axis| operand.strides[axis] != 0);
    let nearest = moving.min_by_key(|&axis| operand.strides[axis].abs())?;
    let last = operand.last_stride().abs();
    (last != 0 && operand.strides[nearest].abs() < last).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::VectorSpelling;
    use mlc_ir::DType;

    fn blocks(shape: &[usize], permutation: &[usize], target: &Target) -> Option<Blocks> {
        let operand = View::dense(DType::F32, shape).transpose(permutation);
        let result = View::dense(DType::F32, &operand.shape);
        let lanes = if target.vectors == VectorSpelling::Gnu { target.lanes(4) } else { 1 };
        let pay = Blocks::pay(target, &result, lanes);
        Blocks::new(&[result, operand], lanes).filter(|_| pay)
    }

    #[test]
    fn blocks_are_for_large_transposed_operands() {
        let host = Target::host(32);
        let found = blocks(&[64, 999], &[1, 0], &host).unwrap();
        assert_eq!((found.rows, found.line), (0, 16));
        assert_eq!(blocks(&[20, 4, 3, 50], &[3, 2, 1, 0], &host).map(|found| found.rows), Some(0));
        assert_eq!(blocks(&[64, 99], &[1, 0], &host), None, "small");
        assert_eq!(blocks(&[4, 9999], &[1, 0], &host), None, "short rows of the result");
        assert_eq!(blocks(&[9999, 4], &[1, 0], &host), None, "short runs of the operand");
        assert_eq!(blocks(&[64, 99, 8], &[1, 0, 2], &host), None, "contiguous runs stay whole");
        assert_eq!(blocks(&[64, 999], &[1, 0], &Target::generic()), None, "small for single elements");
        assert!(blocks(&[64, 9999], &[1, 0], &Target::generic()).is_some());
        for target in Target::embedded() {
            assert_eq!(blocks(&[64, 9999], &[1, 0], &target), None, "{}", target.name);
        }
    }

    #[test]
    fn repeated_operands_are_not_transposed() {
        let result = View::dense(DType::F32, &[999, 64]);
        let column = View::dense(DType::F32, &[999, 1]).broadcast(&[999, 64]);
        assert_eq!(Blocks::new(&[result, column], 8), None);
    }
}
