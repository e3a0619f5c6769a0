//! Elementwise functions and reductions that the exporter leaves as they are in TorchScript: their operands have no labels,
//! and their options are operands, too.

use super::arithmetic::{binary, unary};
use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::{flag_at, float_at, int_at};
use super::reduction::{deviation, norm, reduce};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};
use std::f64::consts::PI;

pub(super) const OPERATORS: Table = &[
    ("aten::aminmax", Many(extremes)),
    ("aten::clamp_max", One(|call| pair(call, B::Minimum))),
    ("aten::clamp_min", One(|call| pair(call, B::Maximum))),
    ("aten::count_nonzero", One(count_nonzero)),
    ("aten::deg2rad", One(|call| scaled(call, PI / 180.0))),
    ("aten::diff", One(difference)),
    ("aten::erfc", One(complementary_error)),
    ("aten::frac", One(fraction)),
    ("aten::hypot", One(hypotenuse)),
    ("aten::isclose", One(is_close)),
    ("aten::isfinite", One(is_finite)),
    ("aten::kthvalue", Many(kth_value)),
    ("aten::linalg_norm", One(linalg_norm)),
    ("aten::logit", One(logit)),
    ("aten::median", Many(median)),
    ("aten::nan_to_num", One(replace_infinities)),
    ("aten::rad2deg", One(|call| scaled(call, 180.0 / PI))),
    ("aten::std", One(|call| Ok(spread(call, true)?.0))),
    ("aten::std_mean", Many(|call| spread_and_mean(call, true))),
    ("aten::var", One(|call| Ok(spread(call, false)?.0))),
    ("aten::var_mean", Many(|call| spread_and_mean(call, false))),
];

/// Functions of one number, for a chain of them over items.
fn of(call: &mut Call<'_, '_>, function: U, x: &Item) -> Result<Item, Fault> {
    unary(call.builder, function, x)
}

fn with(call: &mut Call<'_, '_>, function: B, x: &Item, y: &Item) -> Result<Item, Fault> {
    binary(call.builder, function, x, y)
}

fn result(call: &mut Call<'_, '_>, item: &Item) -> Result<Value, Fault> {
    call.as_tensor("`result`", item)
}

/// Axes among the operands, ascending; all of them when there are none.
fn axes_at(call: &mut Call<'_, '_>, x: Value, position: usize) -> Result<Vec<usize>, Fault> {
    let all = (0..call.builder.rank(x)).collect();
    let Some(item) = call.labelled("dim", position) else { return Ok(all) };
    let axes = item.ints().ok_or_else(|| Fault::operands("operand `dim` must be whole numbers"))?;
    if axes.is_empty() {
        return Ok(all);
    }
    let mut axes = axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<Vec<usize>, Fault>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

fn pair(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, y) = (call.labelled_item("input", 0)?, call.labelled_item("other", 1)?);
    let y = call.host_number(y);
    let y = with(call, function, &x, &y)?;
    result(call, &y)
}

fn scaled(call: &mut Call<'_, '_>, scale: f64) -> Result<Value, Fault> {
    let x = call.labelled_item("input", 0)?;
    let y = with(call, B::Multiply, &x, &Item::Float(scale))?;
    result(call, &y)
}

/// 1 - erf(x)
fn complementary_error(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.labelled_item("input", 0)?;
    let erf = of(call, U::Erf, &x)?;
    let y = with(call, B::Subtract, &Item::Int(1), &erf)?;
    result(call, &y)
}

/// What truncation takes away.
fn fraction(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.labelled_item("input", 0)?;
    let whole = of(call, U::Truncate, &x)?;
    let y = with(call, B::Subtract, &x, &whole)?;
    result(call, &y)
}

/// sqrt(x^2 + y^2)
fn hypotenuse(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.labelled_item("input", 0)?, call.labelled_item("other", 1)?);
    let (x, y) = (of(call, U::Square, &x)?, of(call, U::Square, &y)?);
    let sum = with(call, B::Add, &x, &y)?;
    let y = of(call, U::Sqrt, &sum)?;
    result(call, &y)
}

/// log(x / (1 - x)), of x within epsilon and 1 - epsilon where an epsilon is given
fn logit(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = call.labelled_item("input", 0)?;
    if call.labelled("eps", 1).is_some() {
        let epsilon = float_at(call, "eps", 1, 0.0)?;
        let value = result(call, &x)?;
        x = Item::Tensor(call.builder.clamp(value, epsilon, 1.0 - epsilon)?);
    }
    let rest = with(call, B::Subtract, &Item::Int(1), &x)?;
    let odds = with(call, B::Divide, &x, &rest)?;
    let y = of(call, U::Log, &odds)?;
    result(call, &y)
}

fn is_finite(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let dtype = call.builder.dtype(x);
    if !dtype.is_float() {
        let truth = call.builder.number(DType::Bool, 1.0);
        let shape = call.shape(x);
        return Ok(call.builder.broadcast(truth, &shape)?);
    }
    let (nan, infinite) = (call.builder.unary(U::IsNan, x)?, call.builder.unary(U::IsInfinite, x)?);
    let either = call.builder.binary(B::Or, nan, infinite)?;
    Ok(call.builder.unary(U::Not, either)?)
}

/// |x - y| <= atol + rtol * |y|, or x = y
fn is_close(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.labelled_item("input", 0)?, call.labelled_item("other", 1)?);
    let (relative, absolute) = (float_at(call, "rtol", 2, 1e-5)?, float_at(call, "atol", 3, 1e-8)?);
    if flag_at(call, "equal_nan", 4, false)? {
        return Err(Fault::variant("`equal_nan=True` isn't supported"));
    }
    let difference = with(call, B::Subtract, &x, &y)?;
    let distance = of(call, U::Absolute, &difference)?;
    let size = of(call, U::Absolute, &y)?;
    let allowed = with(call, B::Multiply, &size, &Item::Float(relative))?;
    let allowed = with(call, B::Add, &allowed, &Item::Float(absolute))?;
    let near = with(call, B::LessEqual, &distance, &allowed)?;
    // An infinite y allows any distance but its own.
    let finite = with(call, B::Less, &size, &Item::Float(f64::INFINITY))?;
    let near = with(call, B::And, &near, &finite)?;
    let equal = with(call, B::Equal, &x, &y)?;
    let close = with(call, B::Or, &near, &equal)?;
    result(call, &close)
}

/// `aten::nan_to_num (x, nan, posinf, neginf)`; infinities become the largest numbers unless others are given.
fn replace_infinities(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let dtype = call.builder.dtype(x);
    let largest = match dtype {
        DType::F16 => 65504.0,
        // The upper half of the largest f32.
        DType::Bf16 => f64::from(f32::from_bits(0x7f7f_0000)),
        DType::F32 => f64::from(f32::MAX),
        DType::F64 => f64::MAX,
        _ => return Ok(x),
    };
    let nan = float_at(call, "nan", 1, 0.0)?;
    let (high, low) = (float_at(call, "posinf", 2, largest)?, float_at(call, "neginf", 3, -largest)?);
    let mut y = x;
    for (limit, replacement) in [(f64::INFINITY, high), (f64::NEG_INFINITY, low)] {
        let meets = call.builder.binary_number(B::Equal, x, limit)?;
        let replacement = call.builder.number(dtype, replacement);
        y = call.builder.select(meets, replacement, y)?;
    }
    let is_nan = call.builder.unary(U::IsNan, x)?;
    let nan = call.builder.number(dtype, nan);
    Ok(call.builder.select(is_nan, nan, y)?)
}

/// `aten::diff (x, n, dim, prepend, append)`: differences of neighbours along an axis.
fn difference(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = call.x()?;
    let count = int_at(call, "n", 1)?.unwrap_or(1);
    let axis = int_at(call, "dim", 2)?.unwrap_or(-1);
    let axis = call.axis(x, axis)?;
    if call.labelled("prepend", 3).is_some() || call.labelled("append", 4).is_some() {
        return Err(Fault::variant("`prepend` and `append` aren't supported; join the tensors in the source model"));
    }
    let extent = call.shape(x)[axis];
    let count = usize::try_from(count).ok().filter(|&count| count < extent);
    for done in 0..count.ok_or_else(|| Fault::operands("there are too few elements for so many differences"))? {
        let size = extent - done - 1;
        let later = call.builder.slice_axis(x, axis, 1, size, 1)?;
        let earlier = call.builder.slice_axis(x, axis, 0, size, 1)?;
        x = call.builder.binary(B::Subtract, later, earlier)?;
    }
    Ok(x)
}

/// `aten::count_nonzero (x, dim)`
fn count_nonzero(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = axes_at(call, x, 1)?;
    let x = call.builder.cast(x, DType::Bool)?;
    reduce(call, x, ReduceFunction::Sum, axes, false)
}

/// `aten::aminmax (x, dim, keepdim)`
fn extremes(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let axes = axes_at(call, x, 1)?;
    let keep_axes = flag_at(call, "keepdim", 2, false)?;
    let low = reduce(call, x, ReduceFunction::Minimum, axes.clone(), keep_axes)?;
    let high = reduce(call, x, ReduceFunction::Maximum, axes, keep_axes)?;
    Ok(vec![Item::Tensor(low), Item::Tensor(high)])
}

/// `(x, unbiased)`, `(x, dim, unbiased, keepdim)` or `(x, dim, correction, keepdim)`: variance or its root, and mean.
fn spread(call: &mut Call<'_, '_>, root: bool) -> Result<(Value, Value), Fault> {
    let x = call.x()?;
    let unbiased = |item: Option<Item>| match item {
        None | Some(Item::Bool(true)) => Ok(1.0),
        Some(Item::Bool(false)) => Ok(0.0),
        Some(other) => other.float().ok_or_else(|| Fault::operands("operand `correction` must be a number")),
    };
    let (axes, correction, keep_axes) = if call.inputs.len() == 2 {
        ((0..call.builder.rank(x)).collect(), unbiased(call.labelled("unbiased", 1))?, false)
    } else {
        let correction = unbiased(call.labelled("correction", 2))?;
        (axes_at(call, x, 1)?, correction, flag_at(call, "keepdim", 3, false)?)
    };
    let spread = deviation(call, x, axes.clone(), keep_axes, correction, root)?;
    Ok((spread, reduce(call, x, ReduceFunction::Mean, axes, keep_axes)?))
}

fn spread_and_mean(call: &mut Call<'_, '_>, root: bool) -> Result<Vec<Item>, Fault> {
    let (spread, mean) = spread(call, root)?;
    Ok(vec![Item::Tensor(spread), Item::Tensor(mean)])
}

/// `aten::linalg_norm (x, ord, dim, keepdim, dtype)` of vectors, and the Frobenius norm of anything.
fn linalg_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = axes_at(call, x, 2)?;
    let keep_axes = flag_at(call, "keepdim", 3, false)?;
    if call.labelled("dtype", 4).is_some() {
        return Err(Fault::variant("`dtype` isn't supported; convert the tensor in the source model"));
    }
    let order = call.labelled("ord", 1);
    match (&order, axes.len()) {
        (None, _) => norm(call, x, 2.0, axes, keep_axes),
        (Some(Item::Word(word)), _) if word == "fro" => norm(call, x, 2.0, axes, keep_axes),
        (Some(_), 1) => {
            let p = float_at(call, "ord", 1, 2.0)?;
            norm(call, x, p, axes, keep_axes)
        }
        _ => Err(Fault::variant("norms of matrices other than Frobenius' aren't supported")),
    }
}

/// The element with this number in ascending order along an axis, and its position.
fn ranked(call: &mut Call<'_, '_>, x: Value, axis: usize, rank: usize, keep_axis: bool) -> Result<Vec<Item>, Fault> {
    let sorted = call.builder.sort(x, axis, rank + 1, false)?;
    let mut results = Vec::new();
    for part in sorted {
        let element = call.builder.slice_axis(part, axis, rank, 1, 1)?;
        let element = if keep_axis { element } else { call.builder.remove_axis(element, axis)? };
        results.push(Item::Tensor(element));
    }
    Ok(results)
}

/// `aten::median (x)` or `(x, dim, keepdim)`: the lower one of two middle elements.
fn median(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let whole = call.inputs.len() == 1;
    let x = if whole { call.builder.reshape(x, &[call.builder.ty(x).elements()])? } else { x };
    let axis = int_at(call, "dim", 1)?.unwrap_or(0);
    let axis = call.axis(x, axis)?;
    let last = call.shape(x)[axis].checked_sub(1).ok_or_else(|| Fault::operands("there are no elements"))?;
    let keep_axis = flag_at(call, "keepdim", 2, false)?;
    let mut results = ranked(call, x, axis, last / 2, keep_axis)?;
    if whole {
        results.truncate(1);
    }
    Ok(results)
}

/// `aten::kthvalue (x, k, dim, keepdim)`, with k from 1
fn kth_value(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let axis = int_at(call, "dim", 2)?.unwrap_or(-1);
    let axis = call.axis(x, axis)?;
    let extent = call.shape(x)[axis];
    let rank = int_at(call, "k", 1)?.and_then(|k| usize::try_from(k - 1).ok()).filter(|&rank| rank < extent);
    let rank = rank.ok_or_else(|| Fault::operands(format!("`k` must be from 1 to {extent}")))?;
    let keep_axis = flag_at(call, "keepdim", 3, false)?;
    ranked(call, x, axis, rank, keep_axis)
}
