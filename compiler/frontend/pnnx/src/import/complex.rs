//! Complex tensors: a real and an imaginary tensor side by side.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::promotion::operand;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("torch.complex", Many(join)),
    ("torch.imag", One(|call| part(call, false))),
    ("torch.real", One(|call| part(call, true))),
    ("torch.view_as_complex", Many(view_as_complex)),
    ("torch.view_as_real", One(view_as_real)),
];

fn join(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (real, imaginary) = (call.labelled_input("real", 0)?, call.labelled_input("imag", 1)?);
    if call.builder.ty(real) != call.builder.ty(imaginary) {
        return Err(Fault::operands("the real and the imaginary part must be of one type"));
    }
    Ok(vec![Item::Complex(real, imaginary)])
}

fn part(call: &mut Call<'_, '_>, real: bool) -> Result<Value, Fault> {
    match call.labelled_item("input", 0)? {
        Item::Complex(re, im) => Ok(if real { re } else { im }),
        other if real => call.as_tensor("`input`", &other),
        other => Err(Fault::operands(format!("{} has no imaginary part", other.description()))),
    }
}

/// Splits a tensor whose last axis holds real and imaginary part.
pub(super) fn from_pairs(builder: &mut Builder, x: Value) -> Result<Item, Fault> {
    let shape = builder.shape(x);
    if shape.last() != Some(&2) {
        return Err(Fault::operands(format!("the last axis of {} must hold 2 numbers", builder.ty(x))));
    }
    let axis = shape.len() - 1;
    Ok(Item::Complex(builder.pick(x, axis, 0)?, builder.pick(x, axis, 1)?))
}

/// Joins real and imaginary part along a new last axis.
pub(super) fn to_pairs(builder: &mut Builder, re: Value, im: Value) -> Result<Value, Fault> {
    let axis = builder.rank(re);
    Ok(builder.stack(&[re, im], axis)?)
}

fn view_as_complex(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    Ok(vec![from_pairs(call.builder, x)?])
}

fn view_as_real(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    match call.labelled_item("input", 0)? {
        Item::Complex(re, im) => to_pairs(call.builder, re, im),
        other => Err(Fault::operands(format!("{} isn't complex", other.description()))),
    }
}

/// Real and imaginary part of anything that can be computed with; real numbers have no imaginary part.
fn parts(builder: &mut Builder, item: &Item, dtype: DType) -> Result<(Value, Option<Value>), Fault> {
    match item {
        Item::Complex(re, im) => Ok((*re, Some(*im))),
        other => Ok((operand(builder, other, dtype)?, None)),
    }
}

/// Both values where both are there, one alone otherwise; the sign of the second is that of the function.
fn combined(builder: &mut Builder, function: B, x: Option<Value>, y: Option<Value>) -> Result<Option<Value>, Fault> {
    Ok(match (x, y) {
        (Some(x), Some(y)) => Some(builder.binary(function, x, y)?),
        (None, Some(y)) if function == B::Subtract => Some(builder.unary(U::Negate, y)?),
        (x, y) => x.or(y),
    })
}

/// Sum, difference or product of operands of which one is complex.
pub(super) fn binary(builder: &mut Builder, function: B, left: &Item, right: &Item) -> Result<Item, Fault> {
    let dtype = match (left, right) {
        (Item::Complex(re, _), _) | (_, Item::Complex(re, _)) => builder.dtype(*re),
        _ => DType::F32,
    };
    let ((a, b), (c, d)) = (parts(builder, left, dtype)?, parts(builder, right, dtype)?);
    let (re, im) = match function {
        B::Add | B::Subtract => (Some(builder.binary(function, a, c)?), combined(builder, function, b, d)?),
        B::Multiply => {
            let mut times = |x: Option<Value>, y: Option<Value>| -> Result<Option<Value>, Fault> {
                x.zip(y).map(|(x, y)| Ok(builder.binary(B::Multiply, x, y)?)).transpose()
            };
            let (ac, bd) = (times(Some(a), Some(c))?, times(b, d)?);
            let (ad, bc) = (times(Some(a), d)?, times(b, Some(c))?);
            (combined(builder, B::Subtract, ac, bd)?, combined(builder, B::Add, ad, bc)?)
        }
        _ => return Err(Fault::variant(format!("{} of complex numbers isn't supported", function.name()))),
    };
    let (Some(re), Some(im)) = (re, im) else {
        return Err(Fault::operands("neither operand is complex"));
    };
    // A part that only one operand has may be smaller than the other part.
    let shape = builder.shape(re);
    let larger = if builder.ty(im).elements() > builder.ty(re).elements() { builder.shape(im) } else { shape };
    Ok(Item::Complex(builder.broadcast(re, &larger)?, builder.broadcast(im, &larger)?))
}

/// Negation and magnitude of a complex tensor.
pub(super) fn unary(builder: &mut Builder, function: U, re: Value, im: Value) -> Result<Item, Fault> {
    match function {
        U::Negate => Ok(Item::Complex(builder.unary(U::Negate, re)?, builder.unary(U::Negate, im)?)),
        U::Absolute => {
            let (re, im) = (builder.unary(U::Square, re)?, builder.unary(U::Square, im)?);
            let sum = builder.binary(B::Add, re, im)?;
            Ok(Item::Tensor(builder.unary(U::Sqrt, sum)?))
        }
        _ => Err(Fault::variant(format!("{} of complex numbers isn't supported", function.name()))),
    }
}
