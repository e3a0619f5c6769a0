//! Recurrent layers. One run starts from zeros; `--stateful` keeps the states.

use super::call::{Call, Table, Tensors};
use super::quantization::nearest;
use mlc_import::Fault;
use mlc_import::Handler::One;

use mlc_import::builder::{RecurrentRun, RecurrentWeights, Stored};
use mlc_ir::ops::{Recurrent, RecurrentCell};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("UNIDIRECTIONAL_SEQUENCE_LSTM", One(lstm))];

/// Where the gates i, f, c, o of the file stand in the operator's order i, f, g, o: in the same one.
const GATES: usize = 4;

/// Places of the first operand of each group.
const INPUT: usize = 1;
const HIDDEN: usize = 5;
const PEEPHOLES: usize = 9;
const BIASES: usize = 12;
const PROJECTION: usize = 16;
const PROJECTION_BIAS: usize = 17;
const NORMS: usize = 20;

/// Some operands joined along their first axis; `None` where none of them is there.
fn joined(call: &mut Call<'_, '_>, first: usize, count: usize) -> Result<Option<Value>, Fault> {
    let mut parts = Vec::new();
    for index in first..first + count {
        if call.optional(index)?.is_some() {
            parts.push(call.real(index)?);
        }
    }
    match parts.len() {
        0 => Ok(None),
        given if given == count => Ok(Some(call.builder.concat(&parts, 0)?)),
        given => Err(Fault::variant(format!("{given} of the {count} operands from {first} on are there"))),
    }
}

/// Integers are computed with as the real numbers that they stand for, which the format allows to differ by two.
fn lstm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (cell_clip, projection_clip) = (call.float_or("cell_clip", 0.0)?, call.float_or("proj_clip", 0.0)?);
    if cell_clip != 0.0 || projection_clip != 0.0 {
        return Err(Fault::variant("limits of states aren't supported"));
    }
    if call.int_or("fused_activation_function", 0)? != 4 {
        return Err(Fault::variant("an activation other than tanh isn't supported"));
    }
    for (index, what) in [(PROJECTION_BIAS, "a bias of the projection"), (NORMS, "a normalisation of the gates")] {
        if call.optional(index)?.is_some() {
            return Err(Fault::variant(format!("{what} isn't supported")));
        }
    }
    for index in [18, 19, 21, 22, 23] {
        call.optional(index)?;
    }
    let missing = || Fault::operands("the weights aren't there");
    let weights = RecurrentWeights {
        input: joined(call, INPUT, GATES)?.ok_or_else(missing)?,
        recurrent: joined(call, HIDDEN, GATES)?.ok_or_else(missing)?,
        input_bias: joined(call, BIASES, GATES)?,
        recurrent_bias: None,
        projection: joined(call, PROJECTION, 1)?,
        peepholes: joined(call, PEEPHOLES, 3)?,
    };
    let x = call.real(0)?;
    let time_major = call.flag_or("time_major", false)?;
    let sequence = if time_major { x } else { call.builder.swap_axes(x, 0, 1)? };
    let run = RecurrentRun { sequence, hidden: None, cell: None, lengths: None };
    let results = call.builder.recurrent(Recurrent::new(RecurrentCell::Lstm), &weights, &run)?;
    let y = if time_major { results[0] } else { call.builder.swap_axes(results[0], 0, 1)? };
    let dtype = call.result_dtype(0)?;
    if dtype.is_float() {
        return Ok(y);
    }
    let affine = call.result_affine(0)?;
    let stored = Stored::of(dtype, affine.zero_point);
    Ok(call.builder.map(&[y], |b| {
        let (y, scale) = (b.operand(0), b.number(DType::F32, affine.scale.into()));
        let y = b.binary(B::Divide, y, scale);
        let y = nearest(b, y);
        let y = b.cast(DType::I64, y);
        stored.store(b, y)
    })?)
}
