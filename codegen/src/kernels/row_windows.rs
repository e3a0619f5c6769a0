//! Depthwise convolutions of bytes with windows of 3 x 3 that make one row, as in stripes: a routine reads the three rows where they are, channel by
//! channel, and needs no scratch memory. What a border left and right adds to a sum is a constant of its channel.

use super::KernelWriter;
use super::bounds;
use super::dots::take_bias;
use super::planes;
use super::scales::{Scales, Sums, numbers, scales};
use super::schedule::{Preferences, Settings};
use crate::loops::{Index, Nest, Routine, Stmt, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Diagnostic, TensorType};

/// Rows and columns of a window.
const TAPS: usize = 3;

/// The one schedule of this kind.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let has_window = kernel.operands[1].view.shape.get(..2).is_some_and(|taps| taps == [TAPS; 2]);
    let is_there =
        has_window && !planes::list(op, kernel).is_empty() && RowWindows::new(op, &mut kernel.clone()).is_some();
    if is_there { vec![(0, Settings::default())] } else { Preferences::new() }
}

/// Writes the kernel.
///
/// # Errors
/// None: the types are those of [`list`].
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (epilogue, bounds) = (kernel.epilogue.clone(), kernel.bounds.clone());
    if let Some(row) = RowWindows::new(op, kernel) {
        row.write(kernel);
    }
    (kernel.epilogue, kernel.bounds) = (epilogue, bounds);
    Ok(())
}

/// A convolution, and the constants of its channels.
struct RowWindows {
    stride: usize,
    channels: usize,
    /// Whether there is a border on the left, and one that is read on the right.
    borders: [bool; 2],
    dtype: DType,
    weights: Var,
    scales: Scales,
}

impl RowWindows {
    /// `None` where it isn't one row of columns as far apart as those of x, or sums aren't only rescaled.
    fn new(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Option<RowWindows> {
        let dtype = planes::types(kernel)?[0].dtype;
        let [x, result] = [&kernel.operands[0].view, &kernel.results[0].view];
        let (channels, stride, left) = (op.groups, op.strides[1], op.pads[1].0);
        let read = (result.shape[2].checked_sub(1)? * stride + TAPS).checked_sub(left)?;
        let is_row = result.shape[1] == 1 && x.shape[1] == TAPS && op.pads[0] == (0, 0);
        let is_alike = x.strides[2] == result.strides[2] && x.strides[3] == 1 && result.strides[3] == 1;
        let is_narrow = left <= 1 && read <= x.shape[2] + 1 && read >= TAPS;
        if !is_row || !is_alike || !is_narrow || !matches!(stride, 1 | 2) {
            return None;
        }
        let borders = [left > 0, read > x.shape[2]];
        let products = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
        let first = take_bias(kernel, channels).map_or_else(|| vec![0; channels], |(_, values)| values);
        let constant = kernel.operands[1].constant.clone()?;
        let silent = planes::silent(constant.bytes(), channels);
        let known = Sums { products, first: first.clone(), silent };
        let scales = scales(kernel, channels, &known).filter(|scales| scales.limit().is_none())?;
        let ty = TensorType::new(DType::I32, [channels * Routine::ROW_WINDOW_WORDS]);
        let border = op.border;
        let words = move || packed(&constant, &first, border);
        let weights = kernel.pack(kernel.operands[1].operand.unwrap_or(1), "packed", ty, words);
        Some(RowWindows { stride, channels, borders, dtype, weights, scales })
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let (x, result) = (kernel.operands[0].clone(), kernel.results[0].clone());
        kernel.for_each("n", result.view.shape[0], |kernel, item| {
            let origin = [item, Index::default(), Index::default(), Index::default()];
            let at = |pointer: Var| (pointer, Index::default());
            let pointers = vec![
                (x.pointer, x.address(&origin)),
                at(self.weights),
                at(self.scales.table),
                (result.pointer, result.address(&origin)),
            ];
            let [left, right] = self.borders.map(i64::from);
            // Columns that no window reads aren't looked at.
            let columns = (result.view.shape[2] - 1) * self.stride + TAPS - usize::from(self.borders[0]);
            let columns = columns as i64 - right;
            let numbers = vec![self.channels as i64, columns, left, right, x.view.strides[1], x.view.strides[2]];
            let routine = Routine::RowWindows { stride: self.stride, x: self.dtype, result: self.scales.dtype };
            kernel.b.push(Stmt::Routine { routine, pointers, numbers });
        });
    }
}

/// What [`Routine::RowWindows`] takes of each channel, of weights [3, 3, 1, channels], the first terms of the sums, and what is in a border.
fn packed(constant: &Attribute, first: &[i64], border: i64) -> Option<Attribute> {
    let all = constant.to_tensor().to_integers();
    let channels = first.len();
    let mut words = Vec::new();
    for (channel, first) in first.iter().enumerate() {
        let twice =
            |row: usize, column: usize| all.get((row * TAPS + column) * channels + channel).map(|weight| 2 * weight);
        for column in 0..TAPS {
            words.push(planes::joined(twice(0, column)?, twice(1, column)?));
        }
        words.push(planes::joined(twice(2, 0)?, twice(2, 1)?));
        words.push(planes::joined(twice(2, 2)?, 0));
        let column = |column: usize| Some(twice(0, column)? + twice(1, column)? + twice(2, column)?);
        // Of sums that nobody looks at a multiple may wrap.
        let terms = [2 * first, border * column(2)?, 2 * first + border * column(0)?];
        words.extend(terms.map(|term| i64::from(term as i32)));
    }
    Some(numbers(words))
}
