//! Between real numbers and the integers that stand for them.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::fixed_point::{Factor, multiplied, plus};
use mlc_import::builder::{Stored, nearest};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("DEQUANTIZE", One(dequantize)), ("QUANTIZE", One(quantize))];

fn quantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (result, dtype) = (call.result_affine(0)?, call.result_dtype(0)?);
    if !dtype.is_integer() || dtype.size() > 2 {
        return Err(Fault::variant(format!("real numbers as integers of {dtype} aren't supported")));
    }
    let stored = Stored::of(dtype, result.zero_point);
    if call.is_quantized() {
        let own = call.operand_affine(0)?;
        let factor = Factor::of(f64::from(own.scale) / f64::from(result.scale))?;
        return call.builder.integer_function(x, |b, x| {
            let x = plus(b, x, -own.zero_point);
            let y = multiplied(b, x, factor);
            stored.store(b, DType::I64, y)
        });
    }
    let x = call.builder.cast(x, DType::F32)?;
    Ok(call.builder.map(&[x], |b| {
        let (x, scale) = (b.operand(0), b.number(DType::F32, result.scale.into()));
        let y = b.binary(B::Divide, x, scale);
        let y = nearest(b, y);
        let zero_point = b.number(DType::F32, stored.zero_point as f64);
        let y = b.binary(B::Add, y, zero_point);
        let (low, high) = (b.number(DType::F32, stored.low as f64), b.number(DType::F32, stored.high as f64));
        let y = b.binary(B::Maximum, y, low);
        let y = b.binary(B::Minimum, y, high);
        b.cast(stored.dtype, y)
    })?)
}

/// Half-precision weights are real numbers already.
fn dequantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.real(0)
}
