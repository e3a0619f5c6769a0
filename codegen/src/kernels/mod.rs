//! Schedules: from an operator over views to a loop program, one file per family of operators.
//!
//! [`schedules`] lists the ways to compute an operator, [`write`] writes the loops of one. What writes gets its operands and results
//! as [`Argument`]s, writes loops with [`KernelWriter::b`], and hands every element (or vector of elements) of its first result to
//! [`KernelWriter::finish`], which computes the epilogue and stores it.

mod accumulate;
mod ahead;
mod arg_reduce;
mod arithmetic;
pub mod band;
mod bounds;
mod clipped;
mod clipped_rolled;
mod contraction;
mod convolution;
mod cumulative;
mod dense;
mod depthwise;
mod depthwise_quads;
mod depthwise_rolled;
mod depthwise_rows;
mod depthwise_window;
mod direct_dots;
mod dots;
mod elementwise;
mod fold;
mod gather;
mod grain;
mod half_vectors;
mod helium;
mod lines;
mod matmul;
mod normalize;
mod order;
mod packed;
mod pad;
mod pixel_pairs;
mod place;
pub mod planes;
mod pool;
mod products;
mod quads;
mod recurrent;
mod reduce;
mod resize;
mod rolled;
mod round_trips;
mod row_pairs;
mod row_windows;
mod scales;
mod scatter;
pub mod schedule;
mod search_sorted;
mod softmax;
mod sort;
mod space;
mod strips;
mod tile;
mod transposed;
pub mod transposed_convolution;
mod twins;
mod vector_quads;
mod vectors;
mod walk;
mod weights;
mod window;
mod window_sums;
mod winograd;
mod winograd_filter;
mod winograd_numbers;
mod winograd_time;
mod winograd_transforms;
mod winograd_windows;
mod word_weights;
mod writer;

pub use elementwise::fill_border;
pub use packed::Packed;
pub use schedule::Schedule;
pub use writer::{Argument, Epilogue, KernelWriter, PackedOperand};

use mlc_ir::{Diagnostic, Op};
use schedule::Family;

/// The ways to compute an operator over the operands and results of a kernel, which nothing has been written to: at least one,
/// those that have proved better first.
///
/// # Errors
/// When there is no schedule for this operator.
pub fn schedules(op: &Op, kernel: &KernelWriter<'_>) -> Result<Vec<Schedule>, Diagnostic> {
    let mut kernel = kernel.clone();
    let op = prepare(op, &mut kernel);
    Ok(family(&op)?.schedules(&kernel))
}

/// Writes the loops of a schedule that [`schedules`] gave for the same kernel.
///
/// # Errors
/// When there is no schedule for this operator, or no arithmetic for its types.
pub fn write(op: &Op, schedule: &Schedule, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let op = prepare(op, kernel);
    family(&op)?.write(schedule, kernel)
}

/// Numbers of the operands, those of the epilogue behind the operator's own, that the first result may lie over exactly, if
/// nothing else of the kernel lies there.
///
/// # Errors
/// When there is no schedule for this operator.
pub fn overwritable(op: &Op, schedule: &Schedule, kernel: &KernelWriter<'_>) -> Result<Vec<usize>, Diagnostic> {
    let is_in_place = family(op)?.is_in_place(schedule);
    let own = kernel.operands.iter().map(|operand| (operand, is_in_place));
    // What the epilogue reads it reads just before it stores.
    let epilogue = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands).map(|operand| (operand, true));
    let alike = |operand: &Argument| {
        operand.constant.is_none() && kernel.results.first().is_some_and(|result| result.view == operand.view)
    };
    let all = own.chain(epilogue).enumerate();
    Ok(all.filter(|(_, (operand, is_read_first))| *is_read_first && alike(operand)).map(|(number, _)| number).collect())
}

/// Whether routines do all that counts, so that C compilers lose nothing by pointers that may mean the same memory.
pub fn is_by_routines(op: &Op, schedule: &Schedule) -> bool {
    family(op).is_ok_and(|family| family.is_by_routines(schedule))
}

/// Whether a schedule computes all outputs of a tile of pixels before it begins the next one, so that results can lie over operands.
pub fn is_by_pixels(schedule: &Schedule) -> bool {
    order::is_by_pixels(&schedule.settings)
}

/// Whether a schedule gives up time for small code.
pub fn is_small(op: &Op, schedule: &Schedule) -> bool {
    family(op).is_ok_and(|family| family.is_small(schedule))
}

/// Whether a schedule does without some of the products.
pub fn saves_products(op: &Op, schedule: &Schedule) -> bool {
    family(op).is_ok_and(|family| family.saves_products(schedule))
}

/// Whether a schedule takes a multiple of the weights' flash to be fast.
pub fn spends_flash(op: &Op, schedule: &Schedule) -> bool {
    schedule.settings.is("weights", "wide") || saves_products(op, schedule)
}

/// Gives a kernel's arguments the types in which it is computed, and the operator in terms of them.
fn prepare(op: &Op, kernel: &mut KernelWriter<'_>) -> Op {
    let sums = sums_bounds(op, kernel);
    kernel.halves = half_vectors::computes_in_halves(op, kernel);
    let op = if kernel.halves { op.clone() } else { arithmetic::in_arithmetic(op, kernel) };
    let of = |operand: &Argument| bounds::of_elements(operand.view.dtype, operand.constant.as_ref());
    kernel.bounds = match &kernel.epilogue {
        Some(epilogue) => {
            let first = sums.unwrap_or(bounds::ANYTHING);
            std::iter::once(first).chain(epilogue.operands.iter().map(of)).collect()
        }
        None => kernel.operands.iter().map(of).collect(),
    };
    let op = round_trips::without_round_trips(op, kernel);
    kernel.scalar = !vectors::has_operator(kernel.target, &op);
    op
}

/// Bounds of an operator's sums of products of narrow integers by constant weights.
fn sums_bounds(op: &Op, kernel: &KernelWriter<'_>) -> Option<bounds::Bounds> {
    let (x, weights) = (kernel.operands.first()?, kernel.operands.get(1)?);
    if !x.view.dtype.is_integer() {
        return None;
    }
    let steps: usize = match op {
        Op::Convolution(op) if op.sums.is_some() => weights.view.shape.iter().rev().skip(1).product(),
        Op::Matmul(op) if op.sums.is_some() => x.view.shape[x.view.rank() - if op.transpose_left { 2 } else { 1 }],
        _ => return None,
    };
    let of = |operand: &Argument| bounds::of_elements(operand.view.dtype, operand.constant.as_ref());
    weights.constant.as_ref()?;
    bounds::of_sums(steps, of(x), of(weights))
}

fn family(op: &Op) -> Result<&dyn Family, Diagnostic> {
    Ok(match op {
        Op::AdaptivePool(op) => op,
        Op::ArgReduce(op) => op,
        Op::AveragePool(op) => op,
        Op::Convolution(op) => op,
        Op::Cumulative(op) => op,
        Op::Gather(op) => op,
        Op::GatherElements(op) => op,
        Op::Map(op) => op,
        Op::Matmul(op) => op,
        Op::MaxPool(op) => op,
        Op::Normalize(op) => op,
        Op::Pad(op) => op,
        Op::Recurrent(op) => op,
        Op::Reduce(op) => op,
        Op::Resize(op) => op,
        Op::Scatter(op) => op,
        Op::SearchSorted(op) => op,
        Op::Softmax(op) => op,
        Op::Sort(op) => op,
        Op::TransposedConvolution(op) => op,
        _ => return Err(unsupported(op)),
    })
}

fn unsupported(op: &Op) -> Diagnostic {
    let place = mlc_ir::Location::default();
    Diagnostic::error(mlc_ir::Code::TargetLimit, place, format!("no schedule for operator {}", op.name()))
}
