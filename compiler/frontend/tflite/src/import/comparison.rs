//! Comparisons, arithmetic of truth values, selection.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::{Binary, One};
use mlc_ir::Value;
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table = &[
    ("EQUAL", One(|call| compared(call, B::Equal))),
    ("GREATER", One(|call| compared(call, B::Greater))),
    ("GREATER_EQUAL", One(|call| compared(call, B::GreaterEqual))),
    ("LESS", One(|call| compared(call, B::Less))),
    ("LESS_EQUAL", One(|call| compared(call, B::LessEqual))),
    ("LOGICAL_AND", Binary(B::And)),
    ("LOGICAL_OR", Binary(B::Or)),
    ("NOT_EQUAL", One(|call| compared(call, B::NotEqual))),
    ("SELECT", One(select)),
    ("SELECT_V2", One(select)),
];

/// Integers of one scale compare as what they stand for.
fn compared(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    if call.is_quantized() && call.operand_affine(0)? != call.operand_affine(1)? {
        return Err(Fault::variant("a comparison of quantised tensors of different scales isn't supported"));
    }
    call.binary(function)
}

/// The old form has a condition of one axis for whole rows, too.
fn select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (mut condition, x, y) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (rank, own) = (call.rank(x), call.shape(condition));
    if call.site.kind == "SELECT" && own.len() == 1 && rank > 1 {
        let mut shape = vec![1; rank];
        shape[0] = own[0];
        condition = call.builder.reshape(condition, &shape)?;
    }
    if call.is_quantized_operand(1) && call.operand_affine(1)? != call.operand_affine(2)? {
        return Err(Fault::variant("a selection from quantised tensors of different scales isn't supported"));
    }
    Ok(call.builder.select(condition, x, y)?)
}
