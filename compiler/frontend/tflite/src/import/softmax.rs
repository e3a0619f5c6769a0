//! Softmax of the last axis.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::nearest;
use mlc_ir::ops::Softmax;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("LOG_SOFTMAX", One(log_softmax)), ("SOFTMAX", One(softmax))];

fn last_axis(call: &Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    call.axis(x, -1)
}

fn log_softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the logarithm of a quantised softmax isn't supported"));
    }
    let x = call.input(0)?;
    let axis = last_axis(call, x)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: true }, &[x])?)
}

fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = last_axis(call, x)?;
    let beta = call.float_or("beta", 1.0)?;
    if call.is_quantized() && call.dtype_of(x).is_byte() {
        let (own, stored) = (call.operand_affine(0)?, call.stored()?);
        return call.builder.softmax_of_integers(own.of(x), axis, beta, stored);
    }
    let real = call.real(0)?;
    let scaled = if beta == 1.0 { real } else { call.builder.binary_number(B::Multiply, real, beta)? };
    let y = call.builder.apply(Softmax { axis, logarithm: false }, &[scaled])?;
    if !call.is_quantized() {
        return Ok(y);
    }
    let (stored, result) = (call.stored()?, call.result_affine(0)?);
    Ok(call.builder.map(&[y], |b| {
        let (y, inverse) = (b.operand(0), b.number(DType::F32, (1.0 / result.scale).into()));
        let y = b.binary(B::Multiply, y, inverse);
        let y = nearest(b, y);
        let y = b.cast(DType::I64, y);
        stored.store(b, DType::I64, y)
    })?)
}
