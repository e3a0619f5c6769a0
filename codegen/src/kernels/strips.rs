//! Depthwise convolutions of bytes by routines of Arm's vector extension for microcontrollers ([`Helium`]): for each row of results, or
//! two of them, the rows that they meet are copied into a strip, 16 channels at a time, where all bytes that a channel's window meets
//! are one vector.

use super::dots::take_bias;
use super::helium::call;
use super::planes;
use super::scales::{Factors, factors, numbers};
use super::schedule::{Preferences, Settings};
use super::{Argument, KernelWriter};
use crate::loops::helium::{COLUMN, Helium, PATCH, Patch, RECORD, STEP};
use crate::loops::{Expr, Index, Nest, Var};
use crate::target::VectorSpelling;
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};

/// The one schedule of this kind.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let taps = &kernel.operands[1].view.shape;
    let bytes = |argument: &Argument| argument.view.last_stride() == 1 && is_i8(argument, kernel);
    let is_there = kernel.target.vectors == VectorSpelling::Mve
        && planes::is_there(op, kernel)
        && (kernel.results[0].view.shape[2] > 1 || !planes::is_in_quads(op, kernel))
        && taps[0] <= PATCH
        && taps[1] <= PATCH
        && bytes(&kernel.operands[0])
        && bytes(&kernel.results[0])
        && scaling(op, &mut kernel.clone()).is_some();
    if is_there { vec![(0, Settings::default())] } else { Preferences::new() }
}

fn is_i8(argument: &Argument, kernel: &KernelWriter<'_>) -> bool {
    kernel.b.element_dtype(argument.pointer) == DType::I8
}

/// The first terms of the channels' sums, and what the sums are rescaled by, if they are only rescaled.
fn scaling(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Option<(Option<Vec<i64>>, Factors)> {
    let bias = take_bias(kernel, op.groups).map(|(_, list)| list);
    let factors = factors(kernel, op.groups).filter(|factors| factors.dtype == DType::I8)?;
    Some((bias, factors))
}

/// Writes the kernel.
///
/// # Errors
/// None: it is one of those that [`list`] knows.
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (epilogue, bounds) = (kernel.epilogue.clone(), kernel.bounds.clone());
    if let Some((bias, factors)) = scaling(op, kernel) {
        Strips::new(op, bias, &factors, kernel).write(kernel);
    }
    (kernel.epilogue, kernel.bounds) = (epilogue, bounds);
    Ok(())
}

/// Rows of results for which strips are filled alike: from a row to before another, by so many, and which of the strip's four rows
/// are rows of x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rows {
    start: usize,
    end: usize,
    skipped: usize,
    valid: usize,
}

/// A convolution, and the memory of its strips.
struct Strips<'o> {
    op: &'o Convolution,
    patch: Patch,
    /// Rows and columns of x, of the result, of the window.
    extents: [usize; 2],
    results: [usize; 2],
    taps: [usize; 2],
    strip: Var,
    /// Columns of the strip behind the one that is all border.
    columns: usize,
    records: Var,
    /// What is added to rescaled sums, and what they aren't below where that is a limit.
    added: i32,
    low: Option<i32>,
}

impl<'o> Strips<'o> {
    fn new(
        op: &'o Convolution,
        bias: Option<Vec<i64>>,
        factors: &Factors,
        kernel: &mut KernelWriter<'_>,
    ) -> Strips<'o> {
        let two = |argument: &Argument, first: usize| [argument.view.shape[first], argument.view.shape[first + 1]];
        let (extents, taps, results) =
            (two(&kernel.operands[0], 1), two(&kernel.operands[1], 0), two(&kernel.results[0], 1));
        let is_square = op.strides == [1, 1] && taps.iter().all(|&taps| taps < PATCH);
        let patch = match is_square && results.iter().all(|&extent| extent > 1) {
            true => Patch::Square,
            false => Patch::Single { stride: op.strides[1] },
        };
        let channels = op.groups;
        let constant = kernel.operands[1].constant.clone();
        let first = bias.unwrap_or_else(|| vec![0; channels]);
        let terms: Vec<[i64; 3]> = (first.iter().zip(factors.list(channels)))
            .map(|(&first, (multiplier, shift))| [first, multiplier, 31 - shift])
            .collect();
        let packed = move || packed(constant.as_ref()?, taps, &terms);
        let ty = TensorType::new(DType::I32, [channels * RECORD]);
        let records = kernel.pack(kernel.operands[1].operand.unwrap_or(1), "records", ty, packed);
        let read = match patch {
            Patch::Square => results[1] + 2,
            Patch::Single { stride } => (results[1].next_multiple_of(PATCH) - 1) * stride + PATCH,
        };
        let columns = read.max(extents[1] + op.pads[1].0);
        let strip = kernel.scratch("strip", DType::I8, (1 + columns) * COLUMN);
        let low = factors.is_limited().then_some(factors.low);
        Strips { op, patch, extents, results, taps, strip, columns, records, added: factors.added, low }
    }

    /// Rows of results that a strip is for.
    fn height(&self) -> usize {
        if self.patch == Patch::Square { 2 } else { 1 }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let border = Expr::Literal(Literal::integer(DType::I8, self.op.border));
        kernel.for_each("k", (1 + self.columns) * COLUMN, |kernel, k| kernel.b.store(self.strip, k, border));
        let batch = kernel.results[0].view.shape[0];
        let blocks = self.op.groups / STEP;
        kernel.for_each("n", batch, |kernel, item| {
            for rows in self.rows() {
                let (start, end) = (Index::from(rows.start), Index::from(rows.end));
                kernel.for_range("row", start, end, self.height() as i64, |kernel, row| {
                    kernel.for_each("block", blocks, |kernel, block| {
                        self.block(kernel, (&item, &row, &block.times(STEP as i64)), rows, STEP);
                    });
                    let first = Index::from(blocks * STEP);
                    match self.op.groups % STEP {
                        0 => {}
                        rest => self.block(kernel, (&item, &row, &first), rows, rest),
                    }
                });
            }
        });
    }

    /// All rows of results. Where the last two overlap with those before, a row is computed twice.
    fn rows(&self) -> Vec<Rows> {
        let height = self.height();
        let needed = self.taps[0] + height - 1;
        let mut list: Vec<Rows> = Vec::new();
        for start in (0..self.results[0]).step_by(height).map(|start| start.min(self.results[0] - height)) {
            let (first, top) = (start * self.op.strides[0], self.op.pads[0].0);
            let skipped = top.saturating_sub(first).min(needed);
            let last = (first + needed).saturating_sub(top).min(self.extents[0]);
            let valid = last.saturating_sub(first.saturating_sub(top));
            let rows = Rows { start, end: start + 1, skipped, valid };
            match list.last_mut() {
                Some(before)
                    if (before.skipped, before.valid) == (skipped, valid)
                        && before.end + height - 1 == start
                        && (start - before.start).is_multiple_of(height) =>
                {
                    before.end = start + 1;
                }
                _ => list.push(rows),
            }
        }
        list
    }

    /// Some channels of one row of results or two, by item, row and channel.
    fn block(
        &self,
        kernel: &mut KernelWriter<'_>,
        (item, row, channel): (&Index, &Index, &Index),
        rows: Rows,
        channels: usize,
    ) {
        let (x, y) = (kernel.operands[0].clone(), kernel.results[0].clone());
        let top = self.op.pads[0].0 as i64;
        // The first row that is there; of the border alone, any.
        let first = row.times(self.op.strides[0] as i64).offset(rows.skipped as i64 - top);
        let first = if rows.valid == 0 { Index::default() } else { first };
        let from = x.address(&[item.clone(), first, Index::default(), channel.clone()]);
        let left = self.op.pads[1].0;
        let pointers =
            vec![(x.pointer, from), (self.strip, Index::default()), (self.strip, Index::from((1 + left) * COLUMN))];
        let columns = self.extents[1].min(self.columns - left);
        let (pitch, step) = (x.view.strides[1], x.view.strides[2]);
        let numbers = [rows.skipped as i64, rows.valid as i64, pitch, step, columns as i64, channels as i64];
        call(kernel, Helium::Strip, pointers, numbers.to_vec());
        let to = y.address(&[item.clone(), row.clone(), Index::default(), channel.clone()]);
        let pointers =
            vec![(self.strip, Index::from(COLUMN)), (self.records, channel.times(RECORD as i64)), (y.pointer, to)];
        let (pitch, step) = (y.view.strides[1], y.view.strides[2]);
        let mut numbers = vec![self.results[1] as i64, channels as i64, step, pitch, self.added.into()];
        numbers.extend(self.low.map(i64::from));
        call(kernel, Helium::Patches { patch: self.patch, limited: self.low.is_some() }, pointers, numbers);
    }
}

/// Weights [rows, columns, 1, channels] and what a channel's sums are rescaled by as records.
fn packed(constant: &Attribute, taps: [usize; 2], terms: &[[i64; 3]]) -> Option<Attribute> {
    let bytes = constant.bytes();
    let mut words = Vec::with_capacity(terms.len() * RECORD);
    for (channel, terms) in terms.iter().enumerate() {
        let mut patch = [[0; PATCH]; PATCH];
        for (column, words) in patch.iter_mut().enumerate().take(taps[1]) {
            for (row, byte) in words.iter_mut().enumerate().take(taps[0]) {
                *byte = *bytes.get((row * taps[1] + column) * constant.ty().shape[3] + channel)?;
            }
        }
        words.extend(patch.map(|bytes| i64::from(i32::from_le_bytes(bytes))));
        words.extend(terms);
    }
    Some(numbers(words))
}
