//! Determinants and inverses, by elimination with pivots.

use super::call::{Call, Table};
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{ArgFunction, ArgReduce, Matmul};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[("Det", 11, One(determinant))];

/// Operators of com.microsoft.
pub(super) const CONTRIBUTED: Table = &[("Inverse", 1, One(inverse))];

/// Largest matrix; every step of the elimination is written out.
const LARGEST: usize = 32;

/// A matrix [batch, rows, columns] after elimination.
struct Eliminated {
    /// The first columns are those of the identity, if the matrix isn't singular.
    matrix: Value,
    determinant: Value,
}

/// 0, 1, … as i64 [1, count, 1].
fn row_numbers(builder: &mut Builder, count: usize) -> Value {
    let numbers = Tensor::from_integers(TensorType::new(DType::I64, [1, count, 1]), (0..count as i64).collect());
    builder.constant("rows", Attribute::from_tensor(&numbers))
}

/// Element `index` of an axis that stays.
fn kept(builder: &mut Builder, x: Value, axis: usize, index: usize) -> Result<Value, Fault> {
    Ok(builder.slice_axis(x, axis, index, 1, 1)?)
}

/// Where the largest element of a column stands, from row `step` on: i64 [batch, 1, 1].
fn pivot_place(builder: &mut Builder, matrix: Value, numbers: Value, step: usize) -> Result<Value, Fault> {
    let column = kept(builder, matrix, 2, step)?;
    let dtype = builder.dtype(column);
    let candidates = builder.map(&[column, numbers], |b| {
        let (element, number) = (b.operand(0), b.operand(1));
        let magnitude = b.unary(U::Absolute, element);
        let (first, never) = (b.number(DType::I64, step as f64), b.number(dtype, -1.0));
        let done = b.binary(B::Less, number, first);
        b.select(done, never, magnitude)
    })?;
    let op = ArgReduce { function: ArgFunction::Maximum, axis: 1, keep_axis: true, last: false };
    Ok(builder.apply(op, &[candidates])?)
}

/// Gauss-Jordan elimination of the first `rows` columns of x [batch, rows, columns].
fn eliminate(builder: &mut Builder, x: Value) -> Result<Eliminated, Fault> {
    let (shape, dtype) = (builder.shape(x), builder.dtype(x));
    let rows = shape[1];
    let numbers = row_numbers(builder, rows);
    let mut matrix = x;
    let mut determinant = None;
    for step in 0..rows {
        let place = pivot_place(builder, matrix, numbers, step)?;
        let chosen = builder.binary(B::Equal, numbers, place)?;
        let selector = builder.cast(chosen, dtype)?;
        let pivot_row =
            builder.apply(Matmul { transpose_left: true, transpose_right: false, sums: None }, &[selector, matrix])?;
        let own_row = kept(builder, matrix, 1, step)?;
        // The row that stood here goes where the pivot's row was.
        let swapped = builder.select(chosen, own_row, matrix)?;
        let pivot = kept(builder, pivot_row, 2, step)?;
        let normal = builder.binary(B::Divide, pivot_row, pivot)?;
        let factors = kept(builder, swapped, 2, step)?;
        matrix = builder.map(&[swapped, factors, normal, numbers, pivot], |b| {
            let (element, factor, normal) = (b.operand(0), b.operand(1), b.operand(2));
            let (number, pivot) = (b.operand(3), b.operand(4));
            let (own, zero) = (b.number(DType::I64, step as f64), b.number(dtype, 0.0));
            let product = b.binary(B::Multiply, factor, normal);
            let reduced = b.binary(B::Subtract, element, product);
            let is_own = b.binary(B::Equal, number, own);
            let next = b.select(is_own, normal, reduced);
            // A column without a pivot makes the determinant 0; what is left must not become NaN before.
            let singular = b.binary(B::Equal, pivot, zero);
            b.select(singular, element, next)
        })?;
        let signed = builder.map(&[pivot, place], |b| {
            let (pivot, place) = (b.operand(0), b.operand(1));
            let own = b.number(DType::I64, step as f64);
            let stays = b.binary(B::Equal, place, own);
            let negated = b.unary(U::Negate, pivot);
            b.select(stays, pivot, negated)
        })?;
        determinant = Some(builder.multiply_optional(signed, determinant)?);
    }
    let determinant = match determinant {
        Some(determinant) => determinant,
        None => builder.number(dtype, 1.0),
    };
    Ok(Eliminated { matrix, determinant })
}

/// The operand as [batch, n, n], with its shape.
fn matrices(call: &mut Call<'_, '_>) -> Result<(Value, Vec<usize>), Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x).to_vec();
    let [batch @ .., rows, columns] = &shape[..] else {
        return Err(Fault::operands(format!("{} isn't a matrix", call.builder.ty(x))));
    };
    if rows != columns || !call.dtype_of(x).is_float() {
        return Err(Fault::operands(format!("{} isn't a square matrix of floats", call.builder.ty(x))));
    }
    if *rows > LARGEST {
        return Err(Fault::variant(format!("matrices of more than {LARGEST} rows aren't supported, found {rows}")));
    }
    let x = call.builder.reshape(x, &[batch.iter().product(), *rows, *columns])?;
    Ok((x, shape))
}

fn determinant(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, shape) = matrices(call)?;
    let determinant = if shape.ends_with(&[2, 2]) {
        let mut element = |row: usize, column: usize| -> Result<Value, Fault> {
            let row = kept(call.builder, x, 1, row)?;
            kept(call.builder, row, 2, column)
        };
        let (a, b, c, d) = (element(0, 0)?, element(0, 1)?, element(1, 0)?, element(1, 1)?);
        let (main, other) = (call.builder.binary(B::Multiply, a, d)?, call.builder.binary(B::Multiply, b, c)?);
        call.builder.binary(B::Subtract, main, other)?
    } else {
        eliminate(call.builder, x)?.determinant
    };
    let outer = &shape[..shape.len() - 2];
    if call.builder.ty(determinant).elements() == outer.iter().product::<usize>() {
        return Ok(call.builder.reshape(determinant, outer)?);
    }
    // Matrices without elements.
    Ok(call.builder.broadcast(determinant, outer)?)
}

fn inverse(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, shape) = matrices(call)?;
    let (rows, dtype) = (shape[shape.len() - 1], call.dtype_of(x));
    let batch = call.shape(x)[0];
    let identity = call.builder.matrix(dtype, rows, rows, |row, column| f64::from(u8::from(row == column)));
    let identity = call.builder.broadcast(identity, &[batch, rows, rows])?;
    let augmented = call.builder.concat(&[x, identity], 2)?;
    let Eliminated { matrix, determinant } = eliminate(call.builder, augmented)?;
    let inverse = call.builder.slice_axis(matrix, 2, rows, rows, 1)?;
    // A singular matrix has no inverse; its elements must not look like one.
    let singular = call.builder.binary_number(B::Equal, determinant, 0.0)?;
    let nan = call.builder.number(dtype, f64::NAN);
    let inverse = call.builder.select(singular, nan, inverse)?;
    Ok(call.builder.reshape(inverse, &shape)?)
}
