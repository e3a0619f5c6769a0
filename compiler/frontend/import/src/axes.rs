//! Axes by number and parts of them: negative numbers count from the end.

use crate::fault::Fault;
use mlc_ir::{Code, Shape};

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

/// Most elements of a tensor that is made from a shape: larger ones are mistakes, or attacks.
pub const MOST_ELEMENTS: usize = 1 << 28;

/// Refuses shapes of tensors that are filled by few numbers, when nobody means them.
///
/// # Errors
/// When the tensor would have more than 2^28 elements.
pub fn check_filled(shape: &[usize]) -> Result<(), Fault> {
    let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent.max(1)));
    match elements {
        Some(elements) if elements <= MOST_ELEMENTS => Ok(()),
        _ => Err(Fault::new(Code::NumberOutOfRange, format!("a tensor of shape {shape:?} is too large to be filled"))),
    }
}

/// First element, number of elements and step of an axis; start and end count from the end when negative, and are clamped.
/// `None` for a step of 0.
pub fn slice_part(extent: usize, start: i64, end: i64, step: i64) -> Option<(usize, usize, i64)> {
    let extent = i64::try_from(extent).ok()?;
    let absolute = |place: i64| if place < 0 { place.saturating_add(extent) } else { place };
    let (start, end) = (absolute(start), absolute(end));
    let (start, distance) = match step {
        0 => return None,
        1.. => {
            let start = start.clamp(0, extent);
            (start, end.clamp(0, extent) - start)
        }
        _ => {
            let start = start.clamp(0, (extent - 1).max(0));
            // Before the first element there is one more place to end at.
            (start, start - end.clamp(-1, extent - 1))
        }
    };
    let size = (distance.max(0) as u64).div_ceil(step.unsigned_abs());
    let size = if extent == 0 { 0 } else { size as usize };
    Some(if size == 0 { (0, 0, 1) } else { (start as usize, size, if size == 1 { 1 } else { step }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_clamped() {
        assert_eq!(slice_part(5, 1, i64::MAX, 2), Some((1, 2, 2)));
        assert_eq!(slice_part(5, -2, i64::MAX, 1), Some((3, 2, 1)));
        assert_eq!(slice_part(5, i64::MAX, i64::MIN, -1), Some((4, 5, -1)));
        assert_eq!(slice_part(5, 3, 0, -2), Some((3, 2, -2)));
        assert_eq!(slice_part(5, -1, -6, -1), Some((4, 5, -1)));
        assert_eq!(slice_part(5, 3, 3, 1), Some((0, 0, 1)));
        assert_eq!(slice_part(5, 9, 12, 1), Some((0, 0, 1)));
        assert_eq!(slice_part(0, 0, i64::MAX, 1), Some((0, 0, 1)));
        assert_eq!(slice_part(0, -1, i64::MIN, -1), Some((0, 0, 1)));
        assert_eq!(slice_part(5, 0, 5, i64::MIN), Some((0, 0, 1)));
        assert_eq!(slice_part(5, 0, 5, 0), None);
    }
}
