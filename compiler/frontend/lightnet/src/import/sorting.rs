//! Sorting and picking.

use super::call::{Call, Parameters, Table};
use super::signature::Type::{Number, Text};
use super::signature::{Memory, Signature};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand};
use mlc_ir::{DType, Value};
use mlc_json::shortened;

pub(super) const OPERATORS: Table = &[
    (Signature::new("pick1d", &["src", "src_index"], &["dst"], &[("len", Number), ("stride", Number)]), One(pick)),
    (Signature::new("sort1d", &["src_key"], &["dst_key"], &[("dir", Text)]).lying(Memory::InPlace), One(sort)),
    (
        Signature::new("sort1d_by_key", &["src_key", "src_val"], &["dst_key", "dst_val"], &[("dir", Text)])
            .lying(Memory::InPlace),
        Many(sort_by_key),
    ),
];

/// The sorted keys, and where each was.
fn sorted(call: &mut Call<'_, '_>) -> Result<[Value; 2], Fault> {
    let keys = call.input(0)?;
    call.check_rank(0, keys, 1)?;
    let descending = match call.required_word("dir")? {
        "TL_SORT_DIR_ASCENDING" => false,
        "TL_SORT_DIR_DESCENDING" => true,
        other => {
            let other = shortened(other);
            let message =
                format!("parameter `dir` is `{other}`; TL_SORT_DIR_ASCENDING or TL_SORT_DIR_DESCENDING expected");
            return Err(Fault::parameter(message));
        }
    };
    let length = call.shape(keys)[0];
    Ok(call.builder.sort(keys, 0, length, descending)?)
}

fn sort(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    Ok(sorted(call)?[0])
}

fn sort_by_key(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let (keys, values) = (call.input(0)?, call.input(1)?);
    call.check_rank(1, values, 1)?;
    call.check_dtype(1, values, DType::I32)?;
    call.check_same_shape((0, keys), (1, values))?;
    let [keys, places] = sorted(call)?;
    let values = call.builder.gather(values, places, 0)?;
    Ok(vec![Operand::Tensor(keys), Operand::Tensor(values)])
}

/// Blocks of a vector, by their numbers.
fn pick(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, index) = (call.input(0)?, call.input(1)?);
    call.check_rank(0, x, 1)?;
    call.check_rank(1, index, 1)?;
    call.check_dtype(1, index, DType::I32)?;
    let (length, stride) = (call.count("len", 1)?, call.count("stride", 1)?);
    if length > call.shape(index)[0] {
        let (title, ty) = (call.title(1), call.builder.ty(index));
        return Err(Fault::parameter(format!("parameter `len` is {length}, but {title} is {ty}")));
    }
    // No number names what is left behind the last whole block.
    let blocks = call.shape(x)[0] / stride;
    if blocks == 0 {
        let (title, ty) = (call.title(0), call.builder.ty(x));
        return Err(Fault::parameter(format!("parameter `stride` is {stride}, but {title} is {ty}")));
    }
    let whole = call.builder.slice_axis(x, 0, 0, blocks * stride, 1)?;
    let rows = call.builder.reshape(whole, &[blocks, stride])?;
    let index = call.builder.slice_axis(index, 0, 0, length, 1)?;
    let picked = call.builder.gather(rows, index, 0)?;
    Ok(call.builder.reshape(picked, &[length * stride])?)
}
