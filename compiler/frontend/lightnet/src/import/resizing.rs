//! Resizing to the nearest element.

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::{Numbers, Text};
use mlc_import::Handler::One;
use mlc_import::builder::Rows;
use mlc_import::{Fault, check_filled};
use mlc_ir::Value;
use mlc_json::shortened;

pub(super) const OPERATORS: Table = &[
    (Signature::new("resize", &["src"], &["dst"], &[("mode", Text), ("dims", Numbers)]), One(resize)),
    (Signature::new("upsample", &["src"], &["dst"], &[("mode", Text), ("scales", Numbers)]), One(upsample)),
];

fn resize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dims = call.list("dims", 1)?;
    apply(call, x, &dims)
}

/// As [`resize`], to a multiple of each extent.
fn upsample(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let scales = call.floats("scales")?;
    let scales = call.required("scales", scales)?;
    let shape = call.shape(x);
    // The format computes them in single.
    let sizes = scales.iter().zip(&shape).map(|(&scale, &extent)| (scale as f32 * extent as f32).floor());
    let sizes: Vec<f32> = sizes.collect();
    if scales.len() != shape.len() || !sizes.iter().all(|size| (1.0..=2e9).contains(size)) {
        let ty = call.builder.ty(x);
        let message = format!(
            "parameter `scales` is {scales:?}, a factor for each axis of {ty} expected that leaves something of it"
        );
        return Err(Fault::parameter(message));
    }
    let sizes: Vec<usize> = sizes.into_iter().map(|size| size as usize).collect();
    apply(call, x, &sizes)
}

/// Most elements of an axis that is resized: where each comes from is a constant.
const LONGEST_AXIS: usize = 1 << 20;

fn apply(call: &mut Call<'_, '_>, x: Value, sizes: &[usize]) -> Result<Value, Fault> {
    let mode = call.required_word("mode")?;
    if mode != "TL_NEAREST" {
        let mode = shortened(mode);
        return Err(Fault::variant(format!("parameter `mode` is `{mode}`, and only TL_NEAREST is defined")));
    }
    let shape = call.shape(x);
    if sizes.len() != shape.len() || sizes.iter().any(|&size| size > LONGEST_AXIS) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("{ty} can't be resized to {sizes:?}")));
    }
    check_filled(sizes)?;
    let mut y = x;
    let changed = shape.iter().zip(sizes).enumerate().filter(|(_, (extent, size))| extent != size);
    for (axis, (&extent, &size)) in changed {
        y = call.builder.interpolate_axis(y, axis, &nearest(extent, size))?;
    }
    Ok(y)
}

/// The nearest element for each of an axis' new ones; of two that are as near the one further on.
fn nearest(extent: usize, size: usize) -> Rows {
    let scale = f64::from(extent as f32 / size as f32);
    let place = |index: usize| {
        // Halves are rounded away from zero, and the place isn't before the first element.
        let place = ((index as f64 + 0.5) * scale - 0.5).round().max(0.0);
        (place as usize).min(extent.saturating_sub(1))
    };
    (0..size).map(|index| vec![(place(index), 1.0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn halves_are_rounded_away_from_zero() {
        let places = |extent, size| nearest(extent, size).into_iter().map(|row| row[0].0).collect::<Vec<_>>();
        assert_eq!(places(4, 2), [1, 3]);
        assert_eq!(places(2, 4), [0, 0, 1, 1]);
        assert_eq!(places(5, 8), [0, 0, 1, 2, 2, 3, 4, 4]);
    }
}
