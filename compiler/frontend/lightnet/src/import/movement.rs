//! Operators that move elements, or show them in another shape.

use super::call::{Call, Parameters, Table};
use super::signature::Type::{Number, Numbers};
use super::signature::{Memory, Signature};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand};
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    (Signature::new("concat", &["src1", "src2"], &["dst"], &[("axis", Number)]), One(concat)),
    (Signature::new("forward", &["src"], &["dst"], &[]).lying(Memory::View), One(forward)),
    (Signature::new("gather", &["src*"], &["dst"], &[]), One(gather)),
    (Signature::new("gather_nocopy_cpu", &["src*"], &["dst"], &[]).lying(Memory::Parts), One(gather)),
    (Signature::new("reshape", &["src"], &["dst"], &[("dims", Numbers)]).lying(Memory::View), One(reshape)),
    (Signature::new("scatter", &["src"], &["dst*"], &[]), Many(scatter)),
    (Signature::new("scatter_nocopy_cpu", &["src"], &["dst*"], &[]).lying(Memory::Parts), Many(scatter)),
    (Signature::new("slice", &["src"], &["dst"], &[("axis", Number), ("start", Number), ("len", Number)]), One(slice)),
    (Signature::new("transpose", &["src"], &["dst"], &[("axes", Numbers)]), One(transpose)),
];

fn forward(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.input(0)
}

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dims = call.list("dims", 1)?;
    let elements = dims.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    if elements != Some(call.builder.ty(x).elements()) {
        let ty = call.builder.ty(x);
        return Err(Fault::new(Code::ShapeMismatch, format!("the elements of {ty} don't fill the shape {dims:?}")));
    }
    Ok(call.builder.reshape(x, &dims)?)
}

fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.plain_axis(x, "axis")?;
    let (start, length, extent) = (call.count("start", 0)?, call.count("len", 1)?, call.shape(x)[axis]);
    if start >= extent || length > extent - start {
        let ty = call.builder.ty(x);
        let message = format!("{length} elements from {start} on (`start`, `len`) leave axis {axis} of {ty}");
        return Err(Fault::parameter(message));
    }
    Ok(call.builder.slice_axis(x, axis, start, length, 1)?)
}

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.list("axes", 0)?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..call.rank(x)) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("parameter `axes` is {axes:?}, every axis of {ty} once expected")));
    }
    Ok(call.builder.transpose(x, &axes)?)
}

fn concat(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    call.check_same_type(x, y)?;
    let axis = call.plain_axis(x, "axis")?;
    let (mut first, second) = (call.shape(x), call.shape(y));
    if second.len() == first.len() {
        first[axis] = second[axis];
    }
    if first != second {
        let (x, y, axis) = (call.builder.ty(x), call.builder.ty(y), axis);
        let message = format!("{x} and {y} must have the same extents but for axis {axis}");
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    Ok(call.builder.concat(&[x, y], axis)?)
}

fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.all_inputs()?;
    for (place, &part) in parts.iter().enumerate() {
        call.check_same_type(parts[0], part)?;
        call.check_same_shape((0, parts[0]), (place, part))?;
    }
    Ok(call.builder.stack(&parts, 0)?)
}

fn scatter(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let x = call.input(0)?;
    let (shape, results) = (call.shape(x), call.results());
    if shape.len() < 2 || shape[0] != results {
        let (title, ty) = (call.title(0), call.builder.ty(x));
        let message = format!(
            "{title} is {ty}; two axes or more expected, the first one with as many elements as there are results ({results})"
        );
        return Err(Fault::operands(message));
    }
    (0..results).map(|place| Ok(Operand::Tensor(call.builder.pick(x, 0, place)?))).collect()
}
