//! Loops over axes of a result: their names, parts of an axis, and whole ones in vectors.

use super::KernelWriter;
use super::tile::Span;
use crate::loops::{Index, Nest};

/// Names of the loops over a result's axes.
pub const AXIS_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];

/// A loop over a part of an axis.
pub fn for_span<'a>(
    kernel: &mut KernelWriter<'a>,
    name: &str,
    span: Span,
    body: impl FnOnce(&mut KernelWriter<'a>, Index),
) {
    kernel.for_range(name, Index::from(span.start), Index::from(span.end), span.step as i64, body);
}

/// Loops over an axis in vectors of `lanes`, and in single elements for the rest of it.
pub fn for_full_vectors(
    kernel: &mut KernelWriter<'_>,
    extent: usize,
    lanes: usize,
    body: impl Fn(&mut KernelWriter<'_>, Index, usize),
) {
    let full = extent / lanes * lanes;
    kernel.for_range("i", Index::default(), Index::from(full), lanes as i64, |kernel, i| body(kernel, i, lanes));
    kernel.for_range("i", Index::from(full), Index::from(extent), 1, |kernel, i| body(kernel, i, 1));
}
