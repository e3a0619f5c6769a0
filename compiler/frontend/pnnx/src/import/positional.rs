//! Options that stand among the operands, as TorchScript has them: by position, without labels. One of another kind than
//! expected means that the operator has other operands than its importer knows, so it is an error, never a default.

use super::call::{Call, Operands};
use super::item::{Item, dtype_of_code, dtype_of_word};
use mlc_import::Fault;
use mlc_ir::DType;

fn other_kind(key: &str, kind: &str, found: &Item) -> Fault {
    Fault::operands(format!("operand `{key}` must be {kind}, found {}", found.description()))
}

fn read<T>(
    call: &mut Call<'_, '_>,
    key: &str,
    position: usize,
    kind: &str,
    read: impl Fn(&Item) -> Option<T>,
) -> Result<Option<T>, Fault> {
    let Some(item) = call.labelled(key, position) else { return Ok(None) };
    let item = call.host_number(item);
    read(&item).map(Some).ok_or_else(|| other_kind(key, kind, &item))
}

/// A whole number among the operands.
pub(super) fn int_at(call: &mut Call<'_, '_>, key: &str, position: usize) -> Result<Option<i64>, Fault> {
    let number = |item: &Item| if let Item::Bool(_) = item { None } else { item.int() };
    read(call, key, position, "a whole number", number)
}

/// A number among the operands.
pub(super) fn float_at(call: &mut Call<'_, '_>, key: &str, position: usize, default: f64) -> Result<f64, Fault> {
    let number = |item: &Item| if let Item::Bool(_) = item { None } else { item.float() };
    Ok(read(call, key, position, "a number", number)?.unwrap_or(default))
}

/// True or False among the operands.
pub(super) fn flag_at(call: &mut Call<'_, '_>, key: &str, position: usize, default: bool) -> Result<bool, Fault> {
    let flag = |item: &Item| if let Item::Bool(value) = item { Some(*value) } else { None };
    Ok(read(call, key, position, "True or False", flag)?.unwrap_or(default))
}

/// A data type among the operands, by its name or by TorchScript's number of it.
pub(super) fn dtype_at(call: &mut Call<'_, '_>, key: &str, position: usize) -> Result<Option<DType>, Fault> {
    let dtype = |item: &Item| match item {
        Item::Word(word) => dtype_of_word(word),
        Item::Int(code) => dtype_of_code(*code),
        _ => None,
    };
    read(call, key, position, "a data type that is supported", dtype)
}
