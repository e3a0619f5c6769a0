//! Reductions, norms, extreme elements and running sums.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::{dtype_at, flag_at, float_at, int_at};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{ArgFunction, ArgReduce, Cumulative, CumulativeFunction, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.pairwise_distance", One(pairwise_distance)),
    ("aten::all", One(|call| truth(call, ReduceFunction::All))),
    ("aten::any", One(|call| truth(call, ReduceFunction::Any))),
    ("aten::cosine_similarity", One(cosine_similarity)),
    ("aten::prod", One(whole_product)),
    ("torch.amax", One(|call| axes_reduction(call, ReduceFunction::Maximum))),
    ("torch.amin", One(|call| axes_reduction(call, ReduceFunction::Minimum))),
    ("torch.argmax", One(|call| arg(call, ArgFunction::Maximum))),
    ("torch.argmin", One(|call| arg(call, ArgFunction::Minimum))),
    ("torch.cumprod", One(|call| cumulative(call, CumulativeFunction::Product))),
    ("torch.cumsum", One(|call| cumulative(call, CumulativeFunction::Sum))),
    ("torch.logsumexp", One(logsumexp)),
    ("torch.max", Many(|call| extreme(call, ReduceFunction::Maximum, ArgFunction::Maximum))),
    ("torch.mean", One(|call| axes_reduction(call, ReduceFunction::Mean))),
    ("torch.min", Many(|call| extreme(call, ReduceFunction::Minimum, ArgFunction::Minimum))),
    ("torch.norm", One(torch_norm)),
    ("torch.prod", One(|call| axes_reduction(call, ReduceFunction::Product))),
    ("torch.std", One(|call| variance(call, true))),
    ("torch.sum", One(|call| axes_reduction(call, ReduceFunction::Sum))),
    ("torch.var", One(|call| variance(call, false))),
];

pub(super) fn reduce(
    call: &mut Call<'_, '_>,
    x: Value,
    function: ReduceFunction,
    axes: Vec<usize>,
    keep_axes: bool,
) -> Result<Value, Fault> {
    // PyTorch sums up integers and bools in 64 bits.
    let wide = matches!(function, ReduceFunction::Sum | ReduceFunction::Product);
    let dtype = call.builder.dtype(x);
    let x = match dtype {
        _ if dtype.is_float() => x,
        DType::Bool if matches!(function, ReduceFunction::Maximum) => {
            return Ok(call.builder.apply(Reduce { function: ReduceFunction::Any, axes, keep_axes }, &[x])?);
        }
        DType::Bool if matches!(function, ReduceFunction::Minimum) => {
            return Ok(call.builder.apply(Reduce { function: ReduceFunction::All, axes, keep_axes }, &[x])?);
        }
        _ if wide => call.builder.cast(x, DType::I64)?,
        _ => x,
    };
    Ok(call.builder.apply(Reduce { function, axes, keep_axes }, &[x])?)
}

fn axes_reduction(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.x()?;
    let x = match call.dtype("dtype")? {
        Some(dtype) => call.builder.cast(x, dtype)?,
        None => x,
    };
    let axes = call.axes_or_all(x, "dim")?;
    let keep_axes = call.flag_or("keepdim", false)?;
    reduce(call, x, function, axes, keep_axes)
}

/// `aten::prod (x, dtype)`
fn whole_product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let x = match dtype_at(call, "dtype", 1)? {
        Some(dtype) => call.builder.cast(x, dtype)?,
        None => x,
    };
    let axes = (0..call.builder.rank(x)).collect();
    reduce(call, x, ReduceFunction::Product, axes, false)
}

/// `aten::any (x)` or `(x, dim, keepdim)`
fn truth(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.x()?;
    let x = call.builder.cast(x, DType::Bool)?;
    let axes = match call.labelled("dim", 1) {
        Some(item) => {
            let axes = item.ints().ok_or_else(|| Fault::parameter("`dim` must be a whole number"))?;
            let mut axes = axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<Vec<_>, _>>()?;
            axes.sort_unstable();
            axes.dedup();
            axes
        }
        None => (0..call.builder.rank(x)).collect(),
    };
    let keep_axes = flag_at(call, "keepdim", 2, false)?;
    Ok(call.builder.apply(Reduce { function, axes, keep_axes }, &[x])?)
}

fn arg_reduce(
    call: &mut Call<'_, '_>,
    x: Value,
    function: ArgFunction,
    axis: usize,
    keep_axis: bool,
) -> Result<Value, Fault> {
    Ok(call.builder.apply(ArgReduce { function, axis, keep_axis, last: false }, &[x])?)
}

/// Values and positions along an axis, or the whole tensor's extreme.
fn extreme(call: &mut Call<'_, '_>, function: ReduceFunction, arg: ArgFunction) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let keep_axis = call.flag_or("keepdim", false)?;
    let Some(axis) = call.int("dim")? else {
        let axes = (0..call.builder.rank(x)).collect();
        return Ok(vec![Item::Tensor(reduce(call, x, function, axes, false)?)]);
    };
    let axis = call.axis(x, axis)?;
    let values = reduce(call, x, function, vec![axis], keep_axis)?;
    let mut results = vec![Item::Tensor(values)];
    if call.used_results().len() > 1 {
        results.push(Item::Tensor(arg_reduce(call, x, arg, axis, keep_axis)?));
    }
    Ok(results)
}

/// Position of an extreme element along an axis, or in the flat tensor.
fn arg(call: &mut Call<'_, '_>, function: ArgFunction) -> Result<Value, Fault> {
    let x = call.x()?;
    let keep_axis = call.flag_or("keepdim", false)?;
    if let Some(axis) = call.int("dim")? {
        let axis = call.axis(x, axis)?;
        return arg_reduce(call, x, function, axis, keep_axis);
    }
    let rank = call.builder.rank(x);
    let flat = call.builder.reshape(x, &[call.builder.ty(x).elements()])?;
    let position = arg_reduce(call, flat, function, 0, false)?;
    if keep_axis {
        return Ok(call.builder.reshape(position, &vec![1; rank])?);
    }
    Ok(position)
}

fn cumulative(call: &mut Call<'_, '_>, function: CumulativeFunction) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.int("dim")?;
    let axis = call.required("dim", axis)?;
    let axis = call.axis(x, axis)?;
    let dtype = call.dtype("dtype")?.unwrap_or_else(|| match call.builder.dtype(x) {
        dtype if dtype.is_float() => dtype,
        _ => DType::I64,
    });
    let x = call.builder.cast(x, dtype)?;
    Ok(call.builder.apply(Cumulative { function, axis, exclusive: false, reverse: false }, &[x])?)
}

fn logsumexp(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = call.axes_or_all(x, "dim")?;
    let keep_axes = call.flag_or("keepdim", false)?;
    let x = if call.builder.dtype(x).is_float() { x } else { call.builder.cast(x, DType::F32)? };
    Ok(call.builder.log_sum_exp(x, &axes, keep_axes)?)
}

/// Mean of the squared distances from the mean, with a divisor that counts fewer than the elements.
fn variance(call: &mut Call<'_, '_>, root: bool) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = call.axes_or_all(x, "dim")?;
    let keep_axes = call.flag_or("keepdim", false)?;
    let unbiased = call.flag_or("unbiased", true)?;
    let correction = call.float("correction")?.unwrap_or(if unbiased { 1.0 } else { 0.0 });
    deviation(call, x, axes, keep_axes, correction, root)
}

/// Variance over axes, or its root; the divisor is `correction` less than the number of elements.
pub(super) fn deviation(
    call: &mut Call<'_, '_>,
    x: Value,
    axes: Vec<usize>,
    keep_axes: bool,
    correction: f64,
    root: bool,
) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    let mean = reduce(call, x, ReduceFunction::Mean, axes.clone(), true)?;
    let centred = call.builder.binary(BinaryFunction::Subtract, x, mean)?;
    let squares = call.builder.unary(UnaryFunction::Square, centred)?;
    let sum = reduce(call, squares, ReduceFunction::Sum, axes, keep_axes)?;
    let divisor = (count as f64 - correction).max(0.0);
    let variance = call.builder.binary_number(BinaryFunction::Divide, sum, divisor)?;
    Ok(if root { call.builder.unary(UnaryFunction::Sqrt, variance)? } else { variance })
}

fn torch_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let p = match call.argument("p") {
        None => 2.0,
        Some(Item::Word(word)) if word == "fro" => 2.0,
        Some(item) => item.float().ok_or_else(|| Fault::variant(format!("there is no norm {}", item.description())))?,
    };
    let axes = call.axes_or_all(x, "dim")?;
    let keep_axes = call.flag_or("keepdim", false)?;
    norm(call, x, p, axes, keep_axes)
}

/// The p-norm over axes.
pub(super) fn norm(
    call: &mut Call<'_, '_>,
    x: Value,
    p: f64,
    axes: Vec<usize>,
    keep_axes: bool,
) -> Result<Value, Fault> {
    let magnitude = |call: &mut Call<'_, '_>| call.builder.unary(UnaryFunction::Absolute, x);
    if p.is_infinite() {
        let magnitude = magnitude(call)?;
        let function = if p > 0.0 { ReduceFunction::Maximum } else { ReduceFunction::Minimum };
        return reduce(call, magnitude, function, axes, keep_axes);
    }
    if p == 1.0 {
        let magnitude = magnitude(call)?;
        return reduce(call, magnitude, ReduceFunction::Sum, axes, keep_axes);
    }
    if p == 2.0 {
        let squares = call.builder.unary(UnaryFunction::Square, x)?;
        let sum = reduce(call, squares, ReduceFunction::Sum, axes, keep_axes)?;
        return Ok(call.builder.unary(UnaryFunction::Sqrt, sum)?);
    }
    if p == 0.0 {
        let nonzero = call.builder.binary_number(BinaryFunction::NotEqual, x, 0.0)?;
        let ones = call.builder.cast(nonzero, call.builder.dtype(x))?;
        return reduce(call, ones, ReduceFunction::Sum, axes, keep_axes);
    }
    let magnitude = magnitude(call)?;
    let powers = call.builder.binary_number(BinaryFunction::Power, magnitude, p)?;
    let sum = reduce(call, powers, ReduceFunction::Sum, axes, keep_axes)?;
    Ok(call.builder.binary_number(BinaryFunction::Power, sum, 1.0 / p)?)
}

/// Norm of the difference along the last axis; epsilon is added to every element before.
fn pairwise_distance(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.labelled_input("x1", 0)?, call.labelled_input("x2", 1)?);
    let (p, epsilon) = (call.float_or("p", 2.0)?, call.float_or("eps", 1e-6)?);
    let keep_axes = call.flag_or("keepdim", false)?;
    let difference = call.builder.binary(BinaryFunction::Subtract, left, right)?;
    let shifted = call.builder.binary_number(BinaryFunction::Add, difference, epsilon)?;
    let axis = call.axis(shifted, -1)?;
    norm(call, shifted, p, vec![axis], keep_axes)
}

/// `aten::cosine_similarity (a, b, dim, eps)`: each norm is at least epsilon.
fn cosine_similarity(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.labelled_input("x1", 0)?, call.labelled_input("x2", 1)?);
    let axis = int_at(call, "dim", 2)?.unwrap_or(1);
    let epsilon = float_at(call, "eps", 3, 1e-8)?;
    let product = call.builder.binary(BinaryFunction::Multiply, left, right)?;
    let axis = call.axis(product, axis)?;
    let mut normalized = |x: Value| -> Result<Value, Fault> {
        let shape = call.shape(product);
        let x = call.builder.broadcast(x, &shape)?;
        let norm = norm(call, x, 2.0, vec![axis], true)?;
        let norm = call.builder.clamp(norm, epsilon, f64::INFINITY)?;
        Ok(call.builder.binary(BinaryFunction::Divide, x, norm)?)
    };
    let (left, right) = (normalized(left)?, normalized(right)?);
    let product = call.builder.binary(BinaryFunction::Multiply, left, right)?;
    reduce(call, product, ReduceFunction::Sum, vec![axis], false)
}
