//! Matrix products.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::BinaryFunction;

pub(super) const OPERATORS: Table = &[("Gemm", 1, One(gemm)), ("MatMul", 1, One(matmul))];

fn matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.input(0)?, call.input(1)?);
    Ok(call.builder.matmul(left, right)?)
}

/// alpha * A B + beta * C of matrices A and B, each possibly transposed; C broadcasts to the product.
pub(super) fn gemm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right, term) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let (transpose_left, transpose_right) = (call.flag_or("transA", false)?, call.flag_or("transB", false)?);
    let (alpha, beta) = (call.float_or("alpha", 1.0)?, call.float_or("beta", 1.0)?);
    // Said whether C may broadcast, before that went without saying.
    call.ignore(&["broadcast"]);
    expect_matrices(call, left, right)?;
    let product = call.builder.apply(Matmul { transpose_left, transpose_right, sums: None }, &[left, right])?;
    let scaled = scaled(call, product, alpha)?;
    let Some(term) = term.filter(|_| beta != 0.0) else { return Ok(scaled) };
    let term = self::scaled(call, term, beta)?;
    let sum = call.builder.binary(BinaryFunction::Add, scaled, term)?;
    if call.shape(sum) != call.shape(product) {
        let (term, product) = (call.builder.ty(term), call.builder.ty(product));
        return Err(Fault::operands(format!("operand C {term} doesn't broadcast to the product {product}")));
    }
    Ok(sum)
}

/// Refuses operands of a product that aren't matrices.
pub(super) fn expect_matrices(call: &Call<'_, '_>, left: Value, right: Value) -> Result<(), Fault> {
    if call.rank(left) != 2 || call.rank(right) != 2 {
        let (left, right) = (call.builder.ty(left), call.builder.ty(right));
        return Err(Fault::operands(format!("the operands {left} and {right} must be matrices")));
    }
    Ok(())
}

fn scaled(call: &mut Call<'_, '_>, x: Value, factor: f64) -> Result<Value, Fault> {
    if factor == 1.0 {
        return Ok(x);
    }
    if !call.dtype_of(x).is_float() && factor.fract() != 0.0 {
        return Err(Fault::variant(format!("{} can't be multiplied by {factor}", call.builder.ty(x))));
    }
    Ok(call.builder.binary_number(BinaryFunction::Multiply, x, factor)?)
}
