//! Reductions over axes.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::ReduceFunction as R;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

/// What a reduction computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reduction {
    /// Sum of magnitudes.
    L1,
    /// Root of the sum of squares.
    L2,
    /// Logarithm of the sum.
    LogSum,
    /// Logarithm of the sum of exponentials.
    LogSumExp,
    Max,
    Mean,
    Min,
    Product,
    Sum,
    SumSquare,
}

pub(super) const OPERATORS: Table = &[
    ("ReduceL1", 1, One(|call| reduction(call, Reduction::L1))),
    ("ReduceL2", 1, One(|call| reduction(call, Reduction::L2))),
    ("ReduceLogSum", 1, One(|call| reduction(call, Reduction::LogSum))),
    ("ReduceLogSumExp", 1, One(|call| reduction(call, Reduction::LogSumExp))),
    ("ReduceMax", 1, One(|call| reduction(call, Reduction::Max))),
    ("ReduceMean", 1, One(|call| reduction(call, Reduction::Mean))),
    ("ReduceMin", 1, One(|call| reduction(call, Reduction::Min))),
    ("ReduceProd", 1, One(|call| reduction(call, Reduction::Product))),
    ("ReduceSum", 1, One(|call| reduction(call, Reduction::Sum))),
    ("ReduceSumSquare", 1, One(|call| reduction(call, Reduction::SumSquare))),
];

fn reduction(call: &mut Call<'_, '_>, kind: Reduction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = axes(call, x, if kind == Reduction::Sum { 13 } else { 18 })?;
    let keep_axes = call.flag_or("keepdims", true)?;
    let dtype = call.dtype_of(x);
    // What has no whole result is computed with fractions and cut off in the end.
    let fractional = matches!(kind, Reduction::L2 | Reduction::LogSum | Reduction::LogSumExp);
    let x = if fractional && dtype.is_integer() { call.builder.cast(x, DType::F64)? } else { x };
    let y = reduced(call, kind, x, &axes, keep_axes)?;
    Ok(call.builder.cast(y, dtype)?)
}

/// The axes: an attribute, or an operand in newer versions. Without any, all of them, or none when an attribute says so.
fn axes(call: &mut Call<'_, '_>, x: Value, operand_since: i64) -> Result<Vec<usize>, Fault> {
    let none = call.version() >= operand_since && call.flag_or("noop_with_empty_axes", false)?;
    match call.ints_or_input("axes", 1, operand_since)? {
        Some(axes) if !axes.is_empty() => call.axes(x, &axes),
        _ if none => Ok(Vec::new()),
        _ => Ok((0..call.rank(x)).collect()),
    }
}

fn reduced(
    call: &mut Call<'_, '_>,
    kind: Reduction,
    x: Value,
    axes: &[usize],
    keep_axes: bool,
) -> Result<Value, Fault> {
    let builder = &mut *call.builder;
    Ok(match kind {
        Reduction::L1 => {
            let magnitudes = builder.unary(U::Absolute, x)?;
            builder.reduce(R::Sum, magnitudes, axes, keep_axes)?
        }
        Reduction::L2 => {
            let squares = builder.unary(U::Square, x)?;
            let sum = builder.reduce(R::Sum, squares, axes, keep_axes)?;
            builder.unary(U::Sqrt, sum)?
        }
        Reduction::LogSum => {
            let sum = builder.reduce(R::Sum, x, axes, keep_axes)?;
            builder.unary(U::Log, sum)?
        }
        Reduction::LogSumExp => builder.log_sum_exp(x, axes, keep_axes)?,
        Reduction::Max if builder.dtype(x) == DType::Bool => builder.reduce(R::Any, x, axes, keep_axes)?,
        Reduction::Max => builder.reduce(R::Maximum, x, axes, keep_axes)?,
        Reduction::Mean if builder.dtype(x).is_integer() => return integer_mean(call, x, axes, keep_axes),
        Reduction::Mean => builder.reduce(R::Mean, x, axes, keep_axes)?,
        Reduction::Min if builder.dtype(x) == DType::Bool => builder.reduce(R::All, x, axes, keep_axes)?,
        Reduction::Min => builder.reduce(R::Minimum, x, axes, keep_axes)?,
        Reduction::Product => builder.reduce(R::Product, x, axes, keep_axes)?,
        Reduction::Sum => builder.reduce(R::Sum, x, axes, keep_axes)?,
        Reduction::SumSquare => {
            let squares = builder.unary(U::Square, x)?;
            builder.reduce(R::Sum, squares, axes, keep_axes)?
        }
    })
}

/// The mean without its fraction, summed up in 64 bits.
fn integer_mean(call: &mut Call<'_, '_>, x: Value, axes: &[usize], keep_axes: bool) -> Result<Value, Fault> {
    let wide = if call.dtype_of(x) == DType::U64 { DType::U64 } else { DType::I64 };
    let count: usize = axes.iter().map(|&axis| call.shape(x)[axis]).product();
    let x = call.builder.cast(x, wide)?;
    let sum = call.builder.reduce(R::Sum, x, axes, keep_axes)?;
    Ok(call.builder.binary_number(B::Divide, sum, count as f64)?)
}
