//! Recurrent layers.

use super::call::{Call, Parameters, Table};
use super::item::Item;
use super::promotion::check_equal;
use mlc_import::Fault;
use mlc_import::Handler::Many;
use mlc_import::builder::{RecurrentRun, RecurrentWeights};
use mlc_ir::Value;
use mlc_ir::ops::{Recurrent, RecurrentCell};

pub(super) const OPERATORS: Table = &[("LSTM", Many(lstm))];

/// For each gate of the cell its place in the file, which has i, o, f, c.
const ORDER: [usize; 4] = [0, 2, 3, 1];

/// x [T, B, D]; w [dirs, 4H, D], r [dirs, 4H, H], b [dirs, 8H], initial states [dirs, B, H]. Y, Y_h and Y_c as a tuple.
fn lstm(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let sequence = call.floats_input(0)?;
    let [w, r, b] = [1, 2, 3].map(|index| call.input(index));
    let (w, r, b) = (w?, r?, b?);
    check_equal(call.builder, &[sequence, w, r, b])?;
    let units = call.count_or("hidden_size", 0)?;
    // Every other word runs forward.
    let directions: &[bool] =
        if call.required_word("direction")? == "bidirectional" { &[false, true] } else { &[false] };
    let shape = call.shape(sequence);
    let fits = |value: Value, expected: &[usize]| call.shape(value)[..] == *expected;
    let (count, gates) = (directions.len(), units.saturating_mul(4));
    let sound = shape.len() == 3
        && units > 0
        && fits(w, &[count, gates, shape[2]])
        && fits(r, &[count, gates, units])
        && fits(b, &[count, gates.saturating_mul(2)]);
    if !sound {
        let types = [sequence, w, r, b].map(|value| call.builder.ty(value).to_string()).join(", ");
        return Err(Fault::operands(format!("{types} don't fit {count} directions of {units} units")));
    }
    let (hidden, cell) = (state(call, 4, &[count, shape[1], units])?, state(call, 5, &[count, shape[1], units])?);
    let mut parts: Vec<Vec<Value>> = Vec::new();
    for (direction, &reverse) in directions.iter().enumerate() {
        let own = |call: &mut Call<'_, '_>, value: Value| call.builder.pick(value, 0, direction);
        let (input, recurrent, bias) = (own(call, w)?, own(call, r)?, own(call, b)?);
        let halves = call.builder.split(bias, 0, &[gates; 2])?;
        let mut ordered = |value: Value| call.builder.reordered_groups(value, &ORDER, units);
        let weights = RecurrentWeights {
            input: ordered(input)?,
            recurrent: ordered(recurrent)?,
            input_bias: Some(ordered(halves[0])?),
            recurrent_bias: Some(ordered(halves[1])?),
            projection: None,
            peepholes: None,
        };
        let hidden = hidden.map(|value| own(call, value)).transpose()?;
        let cell = cell.map(|value| own(call, value)).transpose()?;
        let run = RecurrentRun { sequence, hidden, cell, lengths: None };
        let op = Recurrent { reverse, ..Recurrent::new(RecurrentCell::Lstm) };
        parts.push(call.builder.recurrent(op, &weights, &run)?);
    }
    let mut results = Vec::new();
    for (result, axis) in [1, 0, 0].into_iter().enumerate() {
        let own: Vec<Value> = parts.iter().map(|part| part[result]).collect();
        results.push(call.builder.stack(&own, axis)?);
    }
    Ok(vec![Item::packed(results)])
}

/// An initial state; one of fewer than three axes stands for zeros.
fn state(call: &mut Call<'_, '_>, index: usize, expected: &[usize]) -> Result<Option<Value>, Fault> {
    let state = call.input(index)?;
    if call.rank(state) < 3 {
        return Ok(None);
    }
    if call.shape(state)[..] != *expected {
        let ty = call.builder.ty(state);
        return Err(Fault::operands(format!("the initial state {ty} must have the extents {expected:?}")));
    }
    Ok(Some(state))
}
