//! Schedules: from an operator over views to a loop program, one file per family of operators.
//!
//! A schedule gets its operands and results as [`Argument`]s, writes loops with [`KernelWriter::b`], and hands every element (or
//! vector of elements) of its first result to [`KernelWriter::finish`], which computes the epilogue and stores it.

mod accumulate;
mod arg_reduce;
mod arithmetic;
mod clipped;
mod contraction;
mod convolution;
mod cumulative;
mod dense;
mod depthwise;
mod depthwise_rows;
mod depthwise_window;
mod elementwise;
mod fold;
mod gather;
mod matmul;
mod normalize;
mod pad;
mod place;
mod pool;
mod products;
mod recurrent;
mod reduce;
mod resize;
mod round_trips;
mod scatter;
mod search_sorted;
mod softmax;
mod sort;
mod space;
mod tile;
mod transposed;
pub mod transposed_convolution;
mod vectors;
mod walk;
mod weights;
mod window;
mod writer;

pub use elementwise::{copy, fill_border, map};
pub use writer::{Argument, Epilogue, KernelWriter, PackedOperand};

use mlc_ir::{Diagnostic, Op};

/// Writes the loops of an operator.
///
/// # Errors
/// When there is no schedule for this operator with these types.
pub fn schedule(op: &Op, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let op = arithmetic::in_arithmetic(op, kernel);
    let op = &round_trips::without_round_trips(op, kernel);
    kernel.scalar = !vectors::has_operator(kernel.target, op);
    match op {
        Op::Map(map_op) => map(kernel, &map_op.expression),
        Op::MaxPool(max_pool_op) => pool::max_pool(kernel, max_pool_op)?,
        Op::AveragePool(average_pool_op) => pool::average_pool(kernel, average_pool_op)?,
        Op::AdaptivePool(adaptive_pool_op) => pool::adaptive_pool(kernel, adaptive_pool_op)?,
        Op::Cumulative(cumulative_op) => cumulative::cumulative(kernel, cumulative_op)?,
        Op::Gather(gather_op) => gather::gather(kernel, gather_op)?,
        Op::GatherElements(gather_op) => gather::gather_elements(kernel, gather_op)?,
        Op::Pad(pad_op) => pad::pad(kernel, pad_op)?,
        Op::Recurrent(recurrent_op) => recurrent::recurrent(kernel, recurrent_op)?,
        Op::Resize(resize_op) => resize::resize(kernel, resize_op)?,
        Op::Reduce(reduce_op) => reduce::reduce(kernel, reduce_op)?,
        Op::ArgReduce(arg_reduce_op) => arg_reduce::arg_reduce(kernel, arg_reduce_op)?,
        Op::Scatter(scatter_op) => scatter::scatter(kernel, scatter_op)?,
        Op::SearchSorted(search_sorted_op) => search_sorted::search_sorted(kernel, search_sorted_op)?,
        Op::Sort(sort_op) => sort::sort(kernel, sort_op)?,
        Op::Softmax(softmax_op) => softmax::softmax(kernel, softmax_op)?,
        Op::Normalize(normalize_op) => normalize::normalize(kernel, normalize_op)?,
        Op::Convolution(convolution_op) => convolution::convolution(kernel, convolution_op)?,
        Op::TransposedConvolution(op) => transposed_convolution::transposed_convolution(kernel, op)?,
        Op::Matmul(matmul_op) => matmul::matmul(kernel, matmul_op)?,
        _ => return Err(unsupported(op)),
    }
    Ok(())
}

fn unsupported(op: &Op) -> Diagnostic {
    let place = mlc_ir::Location::default();
    Diagnostic::error(mlc_ir::Code::TargetLimit, place, format!("no schedule for operator {}", op.name()))
}
