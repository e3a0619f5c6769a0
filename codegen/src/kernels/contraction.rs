//! [`Contraction`]: sums of products over strided operands, as convolutions and matrix products have them. For each position
//! of its outer axes and each output it is the sum of `x * weights` over its reduction axes.

use super::band::Band;
use super::products::machine;
use super::tile::Machine;
use super::twins;
use super::winograd_windows::{Group, Windows};
use super::{Argument, KernelWriter};
use crate::loops::Index;
use crate::lower::view::{View, merge_axes};
use crate::target::Target;
use mlc_ir::DType;

/// An axis of a contraction: elements that `x` and the weights move along it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Positions.
    pub extent: usize,
    /// Elements of `x` between positions.
    pub x: i64,
    /// Elements of the weights between positions.
    pub weights: i64,
}

/// Sums of products over strided operands. The first result of the kernel must have the outer axes' extents, and one more
/// axis for the outputs.
#[derive(Debug, Clone)]
pub struct Contraction {
    /// The operand that is read element by element.
    pub x: Argument,
    /// Element of `x` at the origin of all axes.
    pub x_offset: i64,
    /// The operand that is read in vectors along the outputs.
    pub weights: Argument,
    /// Element of the weights at the origin of all axes. Strides and offset of constant weights are those of the dense tensor.
    pub weights_offset: i64,
    /// What constant weights are transformed by before they are packed; strides are those of transformed ones then.
    pub transform: Option<(Windows, Group)>,
    /// One axis for each axis of the result but the last. Those along which the weights move come first.
    pub outer: Vec<Axis>,
    /// Axes that are summed over, outermost first.
    pub reduction: Vec<Axis>,
    /// Number of outputs.
    pub outputs: usize,
    /// Elements of the weights between outputs.
    pub output_stride: i64,
    /// Where x is a band: what brings its rows.
    pub band: Option<Band>,
}

impl Contraction {
    /// Number of products in each sum.
    pub fn steps(&self) -> usize {
        self.reduction.iter().map(|axis| axis.extent).product()
    }

    /// Before what a pixel reads is gathered, by the pixel's number among all positions of the outer axes: has that be in the band, if there is one.
    pub fn bring(&self, kernel: &mut KernelWriter<'_>, pixel: &Index) {
        if let Some(band) = &self.band {
            band.bring(kernel, pixel);
        }
    }

    /// Whether the weights are packed in pairs of steps, two of which the machine loads at once: constant halves.
    pub fn pairs(&self, target: &Target) -> bool {
        let is_packed = self.weights.operand.is_some();
        let halves = self.weights.constant.as_ref().is_some_and(|constant| constant.ty().dtype == DType::F16);
        target.half_pairs
            && is_packed
            && halves
            && self.reduction.last().is_some_and(|axis| axis.extent.is_multiple_of(2))
    }

    /// Whether two pixels share a product ([`twins`]): those of bytes, so few that no sum takes more than 32 bits.
    pub fn has_twins(&self, kernel: &KernelWriter<'_>) -> bool {
        let of_bytes = [self.x.pointer, self.weights.pointer].iter().all(|&of| kernel.b.element_dtype(of).is_byte());
        kernel.target.wide_registers && self.x.view.dtype == DType::I32 && of_bytes && self.steps() <= twins::MOST_TERMS
    }

    /// The machine as tiles of the contraction see it.
    pub fn machine(&self, kernel: &KernelWriter<'_>) -> Machine {
        let (pairs, twins) = (self.pairs(kernel.target), self.has_twins(kernel));
        Machine { pairs, twins, ..machine(self.x.view.dtype, kernel) }
    }
}

/// Reduction axes merged where x and weights continue from one to the next.
pub fn merged_reduction(axes: &[Axis]) -> Vec<Axis> {
    let shape: Vec<usize> = axes.iter().map(|axis| axis.extent).collect();
    let of = |stride: fn(&Axis) -> i64| View {
        dtype: DType::F32,
        shape: shape.as_slice().into(),
        strides: axes.iter().map(stride).collect(),
        offset: 0,
    };
    let merged = merge_axes(&[of(|axis| axis.x), of(|axis| axis.weights)]);
    (0..merged[0].rank())
        .map(|axis| Axis {
            extent: merged[0].shape[axis],
            x: merged[0].strides[axis],
            weights: merged[1].strides[axis],
        })
        .collect()
}
