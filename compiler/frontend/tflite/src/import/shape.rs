//! Operators that give elements another shape, or another data type, or say a shape.

use super::call::{Call, Table, Tensors};
use mlc_import::Handler::One;
use mlc_import::{Fault, check_filled};
use mlc_ir::types::broadcast_shapes;
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("BROADCAST_ARGS", One(broadcast_shape)),
    ("BROADCAST_TO", One(broadcast)),
    ("CAST", One(cast)),
    ("EXPAND_DIMS", One(expand)),
    ("FILL", One(fill)),
    ("MATRIX_DIAG", One(matrix_of_diagonal)),
    ("MATRIX_SET_DIAG", One(with_diagonal)),
    ("RANGE", One(|call| call.range())),
    ("RANK", One(rank)),
    ("RESHAPE", One(reshape)),
    ("SHAPE", One(shape)),
    ("SQUEEZE", One(squeeze)),
    ("ZEROS_LIKE", One(zeros_like)),
];

/// Extents, of which one may be -1 for what is left of so many elements.
fn completed(numbers: &[i64], elements: usize) -> Result<Vec<usize>, Fault> {
    let fault = || Fault::operands(format!("{elements} elements don't fit the shape {numbers:?}"));
    let open = numbers.iter().filter(|&&extent| extent == -1).count();
    let known = numbers.iter().filter(|&&extent| extent != -1);
    let known = known
        .map(|&extent| usize::try_from(extent).ok())
        .try_fold(1usize, |product, extent| product.checked_mul(extent?));
    let known = known.ok_or_else(fault)?;
    let rest = match open {
        0 => 1,
        1 if known > 0 && elements.is_multiple_of(known) => elements / known,
        _ => return Err(fault()),
    };
    Ok(numbers.iter().map(|&extent| usize::try_from(extent).unwrap_or(rest)).collect())
}

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let operand = if call.operands() > 1 { call.constant_ints(1, "the shape")? } else { None };
    let option = call.ints("new_shape")?;
    let result = call.result(0)?;
    let own = || result.shape.iter().map(|&extent| extent as i64).collect();
    let numbers = operand.or(option).unwrap_or_else(own);
    let shape = completed(&numbers, call.builder.ty(x).elements())?;
    Ok(call.builder.reshape(x, &shape)?)
}

fn squeeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let named = call.ints("squeeze_dims")?.unwrap_or_default();
    let named = call.axes(x, &named)?;
    let extents = call.shape(x);
    if named.iter().any(|&axis| extents[axis] != 1) {
        return Err(Fault::operands(format!("the axes {named:?} of {} must be of extent 1", call.builder.ty(x))));
    }
    let kept = extents.iter().enumerate().filter(
        |&(axis, &extent)| {
            if named.is_empty() { extent != 1 } else { !named.contains(&axis) }
        },
    );
    let kept: Vec<usize> = kept.map(|(_, &extent)| extent).collect();
    Ok(call.builder.reshape(x, &kept)?)
}

fn expand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let numbers = call.numbers(1, "the axis")?;
    let rank = call.rank(x) as i64;
    let axis = numbers.first().map(|&axis| if axis < 0 { axis.saturating_add(rank + 1) } else { axis });
    let axis = axis.filter(|axis| (0..=rank).contains(axis));
    let axis = axis.ok_or_else(|| Fault::operands(format!("{} can't get an axis {numbers:?}", call.builder.ty(x))))?;
    Ok(call.builder.insert_axis(x, axis as usize)?)
}

fn shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let extents: Vec<i64> = call.shape(x).iter().map(|&extent| extent as i64).collect();
    whole_numbers(call, &[extents.len()], extents)
}

fn rank(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let rank = call.rank(x) as i64;
    whole_numbers(call, &[], vec![rank])
}

fn whole_numbers(call: &mut Call<'_, '_>, shape: &[usize], numbers: Vec<i64>) -> Result<Value, Fault> {
    let dtype = call.result_dtype(0)?;
    if !dtype.is_integer() {
        return Err(Fault::operands(format!("a shape can't be of {dtype}")));
    }
    let numbers = Tensor::from_integers(TensorType::new(dtype, shape), numbers);
    Ok(call.builder.constant("shape", Attribute::from_tensor(&numbers)))
}

/// Whole numbers that are quantised lose their scale: the format says that the numbers are kept.
fn cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.result_dtype(0)?;
    Ok(call.builder.cast(x, dtype)?)
}

/// Positive extents of an operand.
pub(super) fn extents(call: &mut Call<'_, '_>, index: usize, what: &str) -> Result<Vec<usize>, Fault> {
    let numbers = call.numbers(index, what)?;
    let shape: Vec<usize> = mlc_import::extents(&numbers)?.to_vec();
    check_filled(&shape)?;
    Ok(shape)
}

fn broadcast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = extents(call, 1, "the shape")?;
    Ok(call.builder.broadcast(x, &shape)?)
}

/// The shape that two shapes broadcast to.
fn broadcast_shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let shapes = [call.numbers(0, "a shape")?, call.numbers(1, "a shape")?];
    let [left, right] = [mlc_import::extents(&shapes[0])?, mlc_import::extents(&shapes[1])?];
    let fault = || Fault::operands(format!("the shapes {:?} and {:?} don't broadcast", shapes[0], shapes[1]));
    let common = broadcast_shapes([&left[..], &right[..]]).ok_or_else(fault)?;
    whole_numbers(call, &[common.len()], common.iter().map(|&extent| extent as i64).collect())
}

/// Square matrices of zeros beside diagonals along the last axis.
fn matrix_of_diagonal(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let diagonal = call.input(0)?;
    let mut shape = call.shape(diagonal);
    let Some(&extent) = shape.last() else {
        return Err(Fault::operands("a number is no diagonal"));
    };
    shape.push(extent);
    check_filled(&shape)?;
    let zeros = call.builder.zeros(call.builder.ty(diagonal).dtype, &shape)?;
    on_diagonal(call, zeros, diagonal)
}

fn with_diagonal(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, diagonal) = (call.input(0)?, call.input(1)?);
    on_diagonal(call, x, diagonal)
}

/// Matrices along the last two axes with other elements on their diagonals.
fn on_diagonal(call: &mut Call<'_, '_>, x: Value, diagonal: Value) -> Result<Value, Fault> {
    let (shape, given) = (call.shape(x), call.shape(diagonal));
    let fault = || Fault::operands(format!("elements {given:?} aren't the diagonals of matrices {shape:?}"));
    let [outer @ .., rows, columns] = &shape[..] else { return Err(fault()) };
    let is_tall = rows > columns;
    let expected = outer.iter().chain([if is_tall { columns } else { rows }]);
    if !given.iter().eq(expected) {
        return Err(fault());
    }
    let on = call.builder.diagonal_mask(*rows, *columns, 0)?;
    let spread = call.builder.insert_axis(diagonal, if is_tall { outer.len() } else { outer.len() + 1 })?;
    Ok(call.builder.select(on, spread, x)?)
}

fn fill(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let shape = extents(call, 0, "the shape")?;
    let value = call.input(1)?;
    Ok(call.builder.broadcast(value, &shape)?)
}

fn zeros_like(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (dtype, shape) = (call.dtype_of(x), call.shape(x));
    if dtype == DType::Bool {
        let no = call.builder.literal(Literal::integer(DType::Bool, 0));
        return Ok(call.builder.broadcast(no, &shape)?);
    }
    Ok(call.builder.zeros(dtype, &shape)?)
}
