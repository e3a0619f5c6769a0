//! Normalisations along the last axis.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::LocalResponse;
use mlc_import::builder::fixed_point::{inverse_square_root, plus, product, rounded_right_by, whole};
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table =
    &[("L2_NORMALIZATION", One(l2_normalization)), ("LOCAL_RESPONSE_NORMALIZATION", One(local_response))];

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

/// The sum of squares, where other formats have their mean. The format's kernels leave the last neighbour out: of a radius of 2 the channels
/// from two before to one behind count.
fn local_response(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let radius = call.int_or("radius", 0)?;
    let neighbours = usize::try_from(radius).ok().filter(|&radius| (1..1 << 30).contains(&radius));
    let neighbours = neighbours.ok_or_else(|| Fault::parameter(format!("the radius {radius} must be positive")))?;
    let alpha = call.float_or("alpha", 0.0)? * (2 * neighbours) as f64;
    let (beta, bias) = (call.float_or("beta", 0.0)?, call.float_or("bias", 0.0)?);
    let axis = call.axis(x, -1)?;
    let response = LocalResponse { axis, neighbours: (neighbours, neighbours - 1), alpha, beta, bias };
    Ok(call.builder.local_response(x, response)?)
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
