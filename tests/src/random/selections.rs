//! Layers of selections and truth values: conditions that are constant, broadcast or compared, divisions in arms, and extents
//! that vectors don't divide.

use super::adapt::{binary, unary};
use super::draft::Draft;
use mlc_ir::ops::{Binary, Cast, Reduce, ReduceFunction, Select};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, TensorType, Value};

const COMPARISONS: [BinaryFunction; 6] = [
    BinaryFunction::Less,
    BinaryFunction::LessEqual,
    BinaryFunction::Greater,
    BinaryFunction::GreaterEqual,
    BinaryFunction::Equal,
    BinaryFunction::NotEqual,
];

/// Innermost extents around those of vectors.
const EXTENTS: [usize; 7] = [3, 9, 16, 17, 16, 33, 64];

/// Numbers to choose from: an earlier value, or a new input with an innermost extent that vectors may not divide.
fn numbers(draft: &mut Draft<'_>) -> Option<Value> {
    if draft.input_count() >= 6 || draft.random.one_in(3) {
        return draft.pick_where(|ty| ty.dtype != DType::Bool);
    }
    let rows = draft.random.shape(0, 2);
    let innermost = draft.random.choose(&EXTENTS);
    let shape: Vec<usize> = rows.iter().copied().chain([innermost]).collect();
    let dtype = if draft.random.one_in(2) { DType::F32 } else { draft.random.choose(draft.dtypes) };
    Some(draft.input(&TensorType::new(dtype, shape))).filter(|_| dtype != DType::Bool)
}

/// Truth values that broadcast to a shape: a constant, an input, or a comparison.
fn condition(draft: &mut Draft<'_>, x: Value) -> Option<Value> {
    let TensorType { dtype, shape, .. } = draft.ty(x);
    let narrow = if draft.random.one_in(2) { shape.clone() } else { draft.random.broadcastable(&shape) };
    let bools = TensorType::new(DType::Bool, narrow.clone());
    let condition = match draft.random.range(0, 4) {
        0 => draft.constant(&bools),
        1 if draft.input_count() < 6 => draft.input(&bools),
        2 => {
            let (left, right) =
                (draft.constant(&TensorType::new(dtype, narrow.clone())), draft.constant(&TensorType::new(dtype, [])));
            compared(draft, left, right)?
        }
        _ => {
            let bound = draft.constant(&TensorType::new(dtype, narrow.clone()));
            compared(draft, x, bound)?
        }
    };
    Some(if draft.random.one_in(3) { unary(draft, UnaryFunction::Not, condition) } else { condition })
}

fn compared(draft: &mut Draft<'_>, left: Value, right: Value) -> Option<Value> {
    let function = draft.random.choose(&COMPARISONS);
    draft.apply(Binary { function }, &[left, right]).map(|results| results[0])
}

/// What is chosen: the value, another one of its type, or a quotient, also by a row or a single number.
fn arm(draft: &mut Draft<'_>, x: Value) -> Value {
    let ty = draft.ty(x);
    match draft.random.range(0, 4) {
        0 => x,
        1 => draft.pick_where(|other| *other == ty).unwrap_or(x),
        2 => {
            let row = TensorType::new(ty.dtype, draft.random.broadcastable(&ty.shape));
            draft.constant(&row)
        }
        _ => {
            let row = TensorType::new(ty.dtype, draft.random.broadcastable(&ty.shape));
            let other = draft.constant(&row);
            let operands = if draft.random.one_in(3) { [other, x] } else { [x, other] };
            binary(draft, BinaryFunction::Divide, operands[0], operands[1])
        }
    }
}

/// One of two values where a condition holds, the other elsewhere.
pub fn masked(draft: &mut Draft<'_>) -> Option<()> {
    let x = numbers(draft)?;
    let condition = condition(draft, x)?;
    let (one, other) = (arm(draft, x), arm(draft, x));
    let chosen = draft.apply(Select {}, &[condition, one, other])?[0];
    draft.tame(chosen);
    Some(())
}

/// Truth values combined, and what is made of them: numbers, or whether all or any are true.
pub fn truths(draft: &mut Draft<'_>) -> Option<()> {
    let x = numbers(draft)?;
    let mut truth = condition(draft, x)?;
    for _ in 0..draft.random.range(1, 3) {
        let other = condition(draft, x)?;
        let function = draft.random.choose(&[BinaryFunction::And, BinaryFunction::Or, BinaryFunction::Xor]);
        truth = binary(draft, function, truth, other);
    }
    let rank = draft.shape(truth).len();
    match draft.random.range(0, 3) {
        0 if rank > 0 => {
            let function = draft.random.choose(&[ReduceFunction::All, ReduceFunction::Any]);
            let (axes, keep_axes) = (draft.random.axes(rank), draft.random.one_in(2));
            draft.apply(Reduce { function, axes, keep_axes }, &[truth])?;
        }
        1 => {
            let dtype = draft.dtype(x);
            let number = draft.apply(Cast { dtype }, &[truth])?[0];
            binary(draft, BinaryFunction::Multiply, x, number);
        }
        _ => {
            draft.apply(Select {}, &[truth, x, x])?;
        }
    }
    Some(())
}
