//! Axes by number: negative ones count from the end.

use crate::fault::Fault;
use mlc_ir::Shape;

/// The axis that a number means among so many.
pub fn normalized_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis.checked_add(rank)? } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}

/// Extents of numbers.
///
/// # Errors
/// When one is negative.
pub fn extents(numbers: &[i64]) -> Result<Shape, Fault> {
    let extents: Option<Shape> = numbers.iter().map(|&number| usize::try_from(number).ok()).collect();
    extents.ok_or_else(|| Fault::parameter(format!("{numbers:?} has negative numbers")))
}
