//! Arithmetic on the elements of two tensors, which broadcast.

use super::call::{Affine, Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::{Binary, One};
use mlc_import::builder::Stored;
use mlc_import::builder::fixed_point::Factor;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId};
use mlc_ir::{DType, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("ADD", One(|call| sum(call, B::Add))),
    ("ADD_N", One(add_n)),
    ("ATAN2", Binary(B::Atan2)),
    ("DIV", One(quotient)),
    ("FLOOR_DIV", Binary(B::FloorDivide)),
    ("FLOOR_MOD", Binary(B::Modulo)),
    ("MAXIMUM", One(|call| extreme(call, B::Maximum))),
    ("MINIMUM", One(|call| extreme(call, B::Minimum))),
    ("MUL", One(product)),
    ("POW", Binary(B::Power)),
    ("SQUARED_DIFFERENCE", One(squared_difference)),
    ("SUB", One(|call| sum(call, B::Subtract))),
];

/// What integers of 8 and 16 bits are computed in.
const WIDE: DType = DType::I32;

fn by(b: &mut ExpressionBuilder, function: B, x: ScalarId, number: i64) -> ScalarId {
    let number = b.literal(Literal::integer(WIDE, number));
    b.binary(function, x, number)
}

/// Both operands without their zero points.
fn operands(b: &mut ExpressionBuilder, zero_points: [i64; 2]) -> [ScalarId; 2] {
    [0, 1].map(|operand| {
        let x = b.operand(operand);
        let x = b.cast(WIDE, x);
        match zero_points[operand as usize] {
            0 => x,
            zero_point => by(b, B::Subtract, x, zero_point),
        }
    })
}

/// Two quantised tensors and their result.
struct Pair {
    x: Value,
    y: Value,
    affine: [Affine; 2],
    result: Affine,
    stored: Stored,
}

impl Pair {
    /// `None` where the operands are numbers that stand for themselves.
    fn read(call: &mut Call<'_, '_>) -> Result<Option<Self>, Fault> {
        let (x, y) = (call.input(0)?, call.input(1)?);
        if !call.is_quantized() {
            return Ok(None);
        }
        let affine = [call.operand_affine(0)?, call.operand_affine(1)?];
        Ok(Some(Pair { x, y, affine, result: call.result_affine(0)?, stored: call.stored()? }))
    }

    fn zero_points(&self) -> [i64; 2] {
        self.affine.map(|affine| affine.zero_point)
    }

    /// The scales as real numbers, and twice the larger of the operands'.
    fn scales(&self) -> ([f64; 2], f64, f64) {
        let scales = self.affine.map(|affine| f64::from(affine.scale));
        (scales, f64::from(self.result.scale), 2.0 * scales[0].max(scales[1]))
    }
}

fn sum(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let Some(pair) = Pair::read(call)? else {
        let y = call.binary(function)?;
        return call.activated(y);
    };
    let bits = if call.dtype_of(pair.x).size() > 1 { 15 } else { 20 };
    let (scales, result, double) = pair.scales();
    let factors = [Factor::of(scales[0] / double)?, Factor::of(scales[1] / double)?];
    let last = Factor::of(double / (f64::from(1 << bits) * result))?;
    let (zero_points, stored) = (pair.zero_points(), pair.stored);
    Ok(call.builder.map(&[pair.x, pair.y], |b| {
        let operands = operands(b, zero_points);
        let [x, y] = [0, 1].map(|index| {
            let shifted = by(b, B::ShiftLeft, operands[index], bits);
            factors[index].multiply(b, WIDE, shifted)
        });
        let sum = b.binary(function, x, y);
        let sum = last.multiply(b, WIDE, sum);
        stored.store(b, WIDE, sum)
    })?)
}

fn product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(pair) = Pair::read(call)? else {
        let y = call.binary(B::Multiply)?;
        return call.activated(y);
    };
    let (scales, result, _) = pair.scales();
    let factor = Factor::of(scales[0] * scales[1] / result)?;
    let (zero_points, stored) = (pair.zero_points(), pair.stored);
    Ok(call.builder.map(&[pair.x, pair.y], |b| {
        let [x, y] = operands(b, zero_points);
        let product = b.binary(B::Multiply, x, y);
        let product = factor.multiply(b, WIDE, product);
        stored.store(b, WIDE, product)
    })?)
}

fn squared_difference(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    const BITS: i64 = 7;
    let Some(pair) = Pair::read(call)? else {
        let difference = call.binary(B::Subtract)?;
        return Ok(call.builder.binary(B::Multiply, difference, difference)?);
    };
    let (scales, result, double) = pair.scales();
    let factors = [Factor::of(scales[0] / double)?, Factor::of(scales[1] / double)?];
    let last = Factor::of(double * double / (f64::from(1 << (2 * BITS)) * result))?;
    let (zero_points, stored) = (pair.zero_points(), pair.stored);
    Ok(call.builder.map(&[pair.x, pair.y], |b| {
        let operands = operands(b, zero_points);
        let [x, y] = [0, 1].map(|index| {
            let shifted = by(b, B::ShiftLeft, operands[index], BITS);
            factors[index].multiply(b, WIDE, shifted)
        });
        let difference = b.binary(B::Subtract, x, y);
        let square = b.binary(B::Multiply, difference, difference);
        let square = last.multiply(b, WIDE, square);
        stored.store(b, WIDE, square)
    })?)
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

fn add_n(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the sum of several quantised tensors isn't supported"));
    }
    let mut operands = call.all_inputs()?.into_iter();
    let first = operands.next().ok_or_else(|| Fault::operands("there is nothing to be added"))?;
    operands.try_fold(first, |sum, operand| Ok(call.builder.binary(B::Add, sum, operand)?))
}
