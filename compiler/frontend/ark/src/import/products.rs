//! Matrix products, and what the newest dialect does with them in one go.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

pub(super) const OPERATORS: Table = &[
    ("Matmul", One(product)),
    ("MatmulAdd", One(product_and_sum)),
    ("MatmulGelu", One(product_and_gelu)),
    ("MatmulScale", One(product_and_scale)),
    ("Mma", One(product)),
];

/// The product of the last two axes; the others broadcast. A vector on the left is a row, one on the right a column, and stays
/// one in the result.
fn product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (mut left, mut right) = (call.input(0)?, call.input(1)?);
    let mut op = Matmul {
        transpose_left: call.flag_or("TransposeInput", false)?,
        transpose_right: call.flag_or("TransposeOther", false)?,
        sums: None,
    };
    if call.rank(left) == 1 {
        left = call.builder.insert_axis(left, 0)?;
        op.transpose_left = false;
    }
    if call.rank(right) == 1 {
        right = call.builder.insert_axis(right, 1)?;
        op.transpose_right = false;
    }
    Ok(call.builder.apply(op, &[left, right])?)
}

fn product_and_sum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (y, residual) = (product(call)?, call.input(2)?);
    if call.builder.ty(residual) != call.builder.ty(y) {
        let (residual, y) = (call.builder.ty(residual), call.builder.ty(y));
        return Err(Fault::operands(format!("{residual} can't be added to a product that is {y}")));
    }
    Ok(call.builder.binary(B::Add, y, residual)?)
}

fn product_and_gelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let y = product(call)?;
    Ok(call.builder.unary(U::GeluTanh, y)?)
}

fn product_and_scale(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let y = product(call)?;
    let scale = call.float("Scale")?;
    let scale = call.required("Scale", scale)?;
    Ok(call.builder.binary_number(B::Multiply, y, scale)?)
}
