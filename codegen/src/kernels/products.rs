//! What all schedules of sums of products share: the machine as they see it, the operands' views, and the way from a sum to the
//! epilogue.

use super::quads::{QUAD, finishes_quads};
use super::tile::{Lanes, Machine};
use super::{Argument, Epilogue, KernelWriter};
use crate::loops::{Expr, Index, Var};
use crate::lower::view::View;
use crate::target::{Target, VectorSpelling};
use mlc_ir::types::row_major_strides;
use mlc_ir::{Code, DType, Diagnostic, Location};

/// Refuses types without multiplication.
pub fn require_products(dtype: DType) -> Result<(), Diagnostic> {
    if dtype != DType::Bool {
        return Ok(());
    }
    let message = format!("no sums of products of {dtype}");
    Err(Diagnostic::error(Code::TargetLimit, Location::default(), message))
}

/// What tiles for elements of a type can use.
pub fn machine(dtype: DType, kernel: &KernelWriter<'_>) -> Machine {
    let lanes = kernel.lanes(dtype);
    let narrowest = match dtype {
        _ if lanes == 1 => 1,
        // Narrower vectors of halves are bits to convert, no numbers.
        DType::F16 => lanes,
        _ => (16 / dtype.size()).min(lanes),
    };
    let Target { in_order, .. } = *kernel.target;
    // Sums of integers are in general registers where there are no vectors.
    let is_general =
        dtype.is_integer() && matches!(kernel.target.vectors, VectorSpelling::None | VectorSpelling::Either);
    let registers = if is_general { kernel.target.general_registers } else { kernel.target.registers };
    let mut tuning = kernel.target.machine.tuning;
    if kernel.target.memory_operands {
        // They share the weights, whatever gcc is tuned for ([`KernelWriter::shared`]).
        tuning.step.unshared_pixels = 0;
    }
    let sums = registers * 3 / 4;
    let whole = lanes > 1 && kernel.target.vectors == VectorSpelling::Either;
    Machine {
        lanes,
        narrowest,
        registers,
        sums,
        neighbours: usize::MAX,
        pairs: false,
        whole,
        twins: false,
        in_order,
        tuning,
    }
}

/// What vectors of integers of 32 bits that are loaded from bytes can use, where the machine has such loads alone.
pub fn with_quads(machine: Machine, dtypes: &[DType], kernel: &KernelWriter<'_>) -> Machine {
    let is_wide = kernel.target.vectors == VectorSpelling::Mve && dtypes.iter().all(|dtype| dtype.is_byte());
    if is_wide { Machine { lanes: QUAD, narrowest: QUAD, ..machine } } else { machine }
}

/// Strides of the weights as schedules see them: of the dense tensor for constants, of the view otherwise.
pub fn weight_strides(weights: &Argument) -> Vec<i64> {
    match weights.constant {
        Some(_) => row_major_strides(&weights.view.shape).iter().map(|&stride| stride as i64).collect(),
        None => weights.view.strides.to_vec(),
    }
}

/// Replaces the first result's and the epilogue operands' views, which all get the result's shape, while `body` writes.
pub fn with_views<'a, T>(
    kernel: &mut KernelWriter<'a>,
    transform: impl Fn(&View) -> View,
    body: impl FnOnce(&mut KernelWriter<'a>) -> T,
) -> T {
    let shape = kernel.results[0].view.shape.clone();
    let (result, epilogue) = (kernel.results[0].clone(), kernel.epilogue.clone());
    let change = |kernel: &mut KernelWriter<'a>, argument: &Argument| {
        let view = transform(&argument.view.broadcast(&shape));
        let moved = view.offset - argument.view.offset;
        let pointer = kernel.b.pointer("part", argument.pointer, Index::from(moved));
        Argument { view, pointer, ..argument.clone() }
    };
    kernel.results[0] = change(kernel, &result);
    kernel.epilogue = epilogue.as_ref().map(|epilogue| Epilogue {
        expression: epilogue.expression.clone(),
        operands: epilogue.operands.iter().map(|operand| change(kernel, operand)).collect(),
    });
    let value = body(kernel);
    kernel.results[0] = result;
    kernel.epilogue = epilogue;
    value
}

/// Hands a vector of sums to the epilogue: as a whole, or lane by lane where the epilogue can't do vectors.
pub fn finish(kernel: &mut KernelWriter<'_>, sum: Var, indices: &[Index], output: &Index, vector: Lanes) {
    let at = |output: Index| indices.iter().cloned().chain([output]).collect::<Vec<_>>();
    let dtype = kernel.b.ty(&Expr::Var(sum)).dtype;
    let in_quads = dtype == DType::I32 && vector.width == QUAD && finishes_quads(kernel);
    if vector.width == 1 || in_quads || kernel.epilogue_lanes(dtype) > 1 {
        return kernel.finish(Expr::Var(sum), &at(output.clone()), vector.valid);
    }
    for lane in 0..vector.valid {
        let value = Expr::Lane(Box::new(Expr::Var(sum)), lane);
        kernel.finish(value, &at(output.offset(lane as i64)), 1);
    }
}
