//! Normalisation of the last axis.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::fixed_point::{inverse_square_root, plus, product, rounded_right_by, whole};
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("L2_NORMALIZATION", One(l2_normalization))];

/// The lower bound of the norm.
const LEAST_NORM: f64 = 1e-6;

fn l2_normalization(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.axis(x, -1)?;
    if call.is_quantized() {
        return integers(call, x, axis);
    }
    let squares = call.builder.unary(U::Square, x)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, squares, &[axis], true)?;
    let norm = call.builder.unary(U::Sqrt, sum)?;
    let norm = call.builder.clamp(norm, LEAST_NORM, f64::INFINITY)?;
    let y = call.builder.binary(B::Divide, x, norm)?;
    call.activated(y)
}

fn integers(call: &mut Call<'_, '_>, x: Value, axis: usize) -> Result<Value, Fault> {
    let (own, stored) = (call.operand_affine(0)?, call.stored()?);
    if call.dtype_of(x) != DType::I8 || call.shape(x)[axis] > 1 << 14 {
        let ty = call.builder.ty(x);
        return Err(Fault::variant(format!("the norm of integers of {ty} isn't supported")));
    }
    let wide = call.builder.map(&[x], |b| {
        let x = b.operand(0);
        let x = b.cast(DType::I64, x);
        let x = plus(b, x, -own.zero_point);
        b.cast(DType::I32, x)
    })?;
    let squares = call.builder.unary(U::Square, wide)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, squares, &[axis], true)?;
    Ok(call.builder.map(&[wide, sum], |b| {
        let [x, sum] = [0, 1].map(|operand| {
            let operand = b.operand(operand);
            b.cast(DType::I64, operand)
        });
        let (number, shift) = inverse_square_root(b, sum);
        // The result has seven fractional bits: as many as its scale says.
        let (zero, seven) = (whole(b, 0), whole(b, 7));
        let left = b.binary(B::Subtract, seven, shift);
        let left = b.binary(B::Maximum, left, zero);
        let x = b.binary(B::ShiftLeft, x, left);
        let upper = product(b, x, number);
        let right = b.binary(B::Subtract, shift, seven);
        let right = b.binary(B::Maximum, right, zero);
        let y = rounded_right_by(b, upper, right);
        stored.store(b, DType::I64, y)
    })?)
}
