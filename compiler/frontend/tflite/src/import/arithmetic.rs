//! Arithmetic on the elements of two tensors, which broadcast.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::{Binary, One};
use mlc_import::builder::{Scaled, Stored};
use mlc_ir::Value;
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table = &[
    ("ADD", One(|call| sum(call, B::Add))),
    ("ADD_N", One(add_n)),
    ("ATAN2", Binary(B::Atan2)),
    ("BITWISE_XOR", One(|call| bits(call, B::Xor))),
    ("DIV", One(quotient)),
    ("FLOOR_DIV", Binary(B::FloorDivide)),
    ("FLOOR_MOD", Binary(B::Modulo)),
    ("MAXIMUM", One(|call| extreme(call, B::Maximum))),
    ("MINIMUM", One(|call| extreme(call, B::Minimum))),
    ("MUL", One(product)),
    ("POW", Binary(B::Power)),
    ("RIGHT_SHIFT", One(right_shift)),
    ("SQUARED_DIFFERENCE", One(squared_difference)),
    ("SUB", One(|call| sum(call, B::Subtract))),
];

/// Two quantised tensors and their result.
struct Pair {
    operands: [Scaled; 2],
    scale: f32,
    stored: Stored,
}

impl Pair {
    /// `None` where the operands are numbers that stand for themselves.
    fn read(call: &mut Call<'_, '_>) -> Result<Option<Self>, Fault> {
        let (x, y) = (call.input(0)?, call.input(1)?);
        if !call.is_quantized() {
            return Ok(None);
        }
        let operands = [call.operand_affine(0)?.of(x), call.operand_affine(1)?.of(y)];
        Ok(Some(Pair { operands, scale: call.result_affine(0)?.scale, stored: call.stored()? }))
    }
}

fn sum(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let Some(Pair { operands, scale, stored }) = Pair::read(call)? else {
        let y = call.binary(function)?;
        return call.activated(y);
    };
    call.builder.add_integers(function, operands, scale, stored)
}

fn product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(Pair { operands, scale, stored }) = Pair::read(call)? else {
        let y = call.binary(B::Multiply)?;
        return call.activated(y);
    };
    call.builder.multiply_integers(operands, scale, stored)
}

fn squared_difference(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(Pair { operands, scale, stored }) = Pair::read(call)? else {
        let difference = call.binary(B::Subtract)?;
        return Ok(call.builder.binary(B::Multiply, difference, difference)?);
    };
    call.builder.square_difference_of_integers(operands, scale, stored)
}

/// Integers whose scales are all one are compared as they are.
fn extreme(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    call.check_same_scale(&[0, 1])?;
    call.binary(function)
}

fn quotient(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the quotient of quantised tensors isn't supported"));
    }
    let y = call.binary(B::Divide)?;
    call.activated(y)
}

/// Integers that stand for themselves.
fn bits(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the bits of quantised tensors aren't supported"));
    }
    call.binary(function)
}

/// A shift by less than nothing is none, one by all bits and more is by all but one.
fn right_shift(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, count) = (call.input(0)?, call.input(1)?);
    if call.is_quantized() {
        return Err(Fault::variant("the bits of quantised tensors aren't supported"));
    }
    let most = 8 * call.dtype_of(x).size() - 1;
    let count = call.builder.clamp(count, 0.0, most as f64)?;
    Ok(call.builder.binary(B::ShiftRight, x, count)?)
}

fn add_n(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the sum of several quantised tensors isn't supported"));
    }
    let mut operands = call.all_inputs()?.into_iter();
    let first = operands.next().ok_or_else(|| Fault::operands("there is nothing to be added"))?;
    operands.try_fold(first, |sum, operand| Ok(call.builder.binary(B::Add, sum, operand)?))
}
