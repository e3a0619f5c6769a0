//! Recurrent layers. A run starts from zeros; `--stateful` keeps the states of layers that are one operator.

use super::call::{Activation, Call, Table, Tensors};
use mlc_import::Handler::{Many, One};
use mlc_import::builder::nearest;
use mlc_import::{Fault, Operand};

use mlc_import::builder::{RecurrentRun, RecurrentWeights, Stored};
use mlc_ir::ops::{Matmul, Recurrent, RecurrentCell};
use mlc_ir::scalar::{BinaryFunction as B, Expression, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("BIDIRECTIONAL_SEQUENCE_LSTM", Many(bidirectional_lstm)),
    ("BIDIRECTIONAL_SEQUENCE_RNN", Many(bidirectional_rnn)),
    ("RNN", One(step_rnn)),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", One(lstm)),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", One(sequence_rnn)),
];

/// Where the gates i, f, c, o of the file stand in the operator's order i, f, g, o: in the same one.
const GATES: usize = 4;

/// Operands from the weights of an LSTM layer's input on, of each group the first.
const HIDDEN: usize = 4;
const PEEPHOLES: usize = 8;
const BIASES: usize = 11;
const PROJECTION: usize = 15;
const PROJECTION_BIAS: usize = 16;

/// Where the weights of layers begin, and where those of an LSTM layer that runs backwards do.
const WEIGHTS: usize = 1;
const LSTM_BACKWARDS: usize = 18;
const RNN_BACKWARDS: usize = 5;

/// Behind the weights and states of one direction, those that normalise the gates.
const NORMS: usize = 20;

/// Behind those of both directions, another input of the layer that runs backwards, and weights of it.
const LSTM_OTHER_INPUT: usize = 39;
const RNN_OTHER_INPUT: usize = 9;

/// Most steps that are written out.
const MOST_STEPS: usize = 128;

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

/// A layer whose cell state is limited after each step, step by step: the operator for whole layers has no such limit.
fn written_out(
    call: &mut Call<'_, '_>,
    weights: &RecurrentWeights,
    sequence: Value,
    limit: f64,
    reverse: bool,
) -> Result<Value, Fault> {
    let (shape, recurrent) = (call.shape(sequence), call.shape(weights.recurrent));
    let ([steps, batch, _], [rows, state]) = (&shape[..], &recurrent[..]) else {
        return Err(Fault::operands("a sequence of three axes and weights of two are expected"));
    };
    let (steps, batch, units, state) = (*steps, *batch, rows / GATES, *state);
    if weights.peepholes.is_some() {
        return Err(Fault::variant("a limit of the cell state beside weights of it in the gates isn't supported"));
    }
    if !(1..=MOST_STEPS).contains(&steps) {
        let message = format!("a limit of the cell state isn't supported in {steps} steps, up to {MOST_STEPS} are");
        return Err(Fault::variant(message));
    }
    let product = Matmul { transpose_left: false, transpose_right: true, sums: None };
    let projected = call.builder.apply(product.clone(), &[sequence, weights.input])?;
    let projected = call.builder.add_optional(projected, weights.input_bias)?;
    let mut hidden = call.builder.zeros(DType::F32, &[batch, state])?;
    let mut cell = call.builder.zeros(DType::F32, &[batch, units])?;
    let mut sequence = Vec::new();
    for turn in 0..steps {
        let step = if reverse { steps - 1 - turn } else { turn };
        let own = call.builder.pick(projected, 0, step)?;
        let fed_back = call.builder.apply(product.clone(), &[hidden, weights.recurrent])?;
        let gates = call.builder.binary(B::Add, own, fed_back)?;
        let gates = call.builder.split(gates, 1, &[units; GATES])?;
        cell = call.builder.map(&[gates[0], gates[1], gates[2], cell], |b| {
            let [input, forget, new, cell] = [0, 1, 2, 3].map(|operand| b.operand(operand));
            let (input, forget) = (b.unary(U::Sigmoid, input), b.unary(U::Sigmoid, forget));
            let new = b.unary(U::Tanh, new);
            let (kept, added) = (b.binary(B::Multiply, forget, cell), b.binary(B::Multiply, input, new));
            let cell = b.binary(B::Add, kept, added);
            let (low, high) = (b.number(DType::F32, -limit), b.number(DType::F32, limit));
            let cell = b.binary(B::Maximum, cell, low);
            b.binary(B::Minimum, cell, high)
        })?;
        hidden = call.builder.map(&[gates[3], cell], |b| {
            let (output, cell) = (b.operand(0), b.operand(1));
            let (output, cell) = (b.unary(U::Sigmoid, output), b.unary(U::Tanh, cell));
            b.binary(B::Multiply, output, cell)
        })?;
        if let Some(projection) = weights.projection {
            hidden = call.builder.apply(product.clone(), &[hidden, projection])?;
        }
        sequence.push(hidden);
    }
    if reverse {
        sequence.reverse();
    }
    Ok(call.builder.stack(&sequence, 0)?)
}

/// Computes a layer over sequences [T, B, I] of what has its axis of time there, or second, as an option says.
fn over_time<'c, 'm>(
    call: &mut Call<'c, 'm>,
    x: Value,
    layer: impl FnOnce(&mut Call<'c, 'm>, Value) -> Result<Value, Fault>,
) -> Result<Value, Fault> {
    let time_major = call.flag_or("time_major", false)?;
    let sequence = if time_major { x } else { call.builder.swap_axes(x, 0, 1)? };
    let y = layer(call, sequence)?;
    Ok(if time_major { y } else { call.builder.swap_axes(y, 0, 1)? })
}

fn sequence_rnn(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.real(0)?;
    over_time(call, x, |call, sequence| rnn(call, sequence, WEIGHTS, false))
}

/// One step.
fn step_rnn(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.real(0)?;
    let sequence = call.builder.insert_axis(x, 0)?;
    let y = rnn(call, sequence, WEIGHTS, false)?;
    Ok(call.builder.remove_axis(y, 0)?)
}

/// A layer of one gate over a sequence, whose operands are from number `first` on. The last one is the state.
fn rnn(call: &mut Call<'_, '_>, sequence: Value, first: usize, reverse: bool) -> Result<Value, Fault> {
    let weights = RecurrentWeights {
        input: call.real(first)?,
        recurrent: call.real(first + 1)?,
        input_bias: Some(call.real(first + 2)?),
        recurrent_bias: None,
        projection: None,
        peepholes: None,
    };
    call.optional(first + 3)?;
    let mut op = Recurrent { reverse, ..Recurrent::new(RecurrentCell::Rnn) };
    let activation = call.activation()?;
    if activation != Activation::Tanh {
        op.activations = vec![limited(activation)];
    }
    let run = RecurrentRun { sequence, hidden: None, cell: None, lengths: None };
    Ok(call.builder.recurrent(op, &weights, &run)?[0])
}

/// An activation that limits real numbers, if anything.
fn limited(activation: Activation) -> Expression {
    let (low, high) = activation.limits();
    Expression::build(|b| {
        let mut x = b.operand(0);
        if low.is_finite() {
            let low = b.number(DType::F32, low.into());
            x = b.binary(B::Maximum, x, low);
        }
        if high.is_finite() {
            let high = b.number(DType::F32, high.into());
            x = b.binary(B::Minimum, x, high);
        }
        x
    })
}

/// The layers of both directions, by where the weights of each begin and whether it runs backwards. What the second one reads may be an
/// operand of its own, `other`; weights of that in both layers aren't supported. Results are along each other if one is asked for.
fn bidirectional<'c, 'm>(
    call: &mut Call<'c, 'm>,
    backwards: usize,
    other: usize,
    layer: impl Fn(&mut Call<'c, 'm>, Value, usize, bool) -> Result<Value, Fault>,
) -> Result<Vec<Operand>, Fault> {
    let x = call.real(0)?;
    let own = if call.optional(other)?.is_some() { call.real(other)? } else { x };
    for index in other + 1..call.operands() {
        if call.optional(index)?.is_some() {
            return Err(Fault::variant("weights of a second input aren't supported"));
        }
    }
    let forwards = over_time(call, x, |call, sequence| layer(call, sequence, WEIGHTS, false))?;
    let backwards = over_time(call, own, |call, sequence| layer(call, sequence, backwards, true))?;
    if call.flag_or("merge_outputs", false)? {
        let axis = call.axis(forwards, -1)?;
        return Ok(vec![Operand::Tensor(call.builder.concat(&[forwards, backwards], axis)?)]);
    }
    Ok([forwards, backwards].map(Operand::Tensor).to_vec())
}

fn bidirectional_rnn(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    // The format's kernels read the other input only where time comes first.
    if call.optional(RNN_OTHER_INPUT)?.is_some() && !call.flag_or("time_major", false)? {
        return Err(Fault::variant("a second input of layers whose batch comes first isn't supported"));
    }
    bidirectional(call, RNN_BACKWARDS, RNN_OTHER_INPUT, rnn)
}

fn bidirectional_lstm(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let limit = lstm_limit(call)?;
    for state in LSTM_OTHER_INPUT - 4..LSTM_OTHER_INPUT {
        call.optional(state)?;
    }
    bidirectional(call, LSTM_BACKWARDS, LSTM_OTHER_INPUT, |call, sequence, first, reverse| {
        let weights = lstm_weights(call, first)?;
        lstm_layer(call, &weights, sequence, limit, reverse)
    })
}

/// The limit of the cell state, 0 for none; refuses options that no layer has here.
fn lstm_limit(call: &mut Call<'_, '_>) -> Result<f64, Fault> {
    if call.float_or("proj_clip", 0.0)? != 0.0 {
        return Err(Fault::variant("a limit of the projection isn't supported"));
    }
    if call.int_or("fused_activation_function", 0)? != 4 {
        return Err(Fault::variant("an activation other than tanh isn't supported"));
    }
    call.float_or("cell_clip", 0.0)
}

/// The weights of a layer, from operand `first` on.
fn lstm_weights(call: &mut Call<'_, '_>, first: usize) -> Result<RecurrentWeights, Fault> {
    if call.optional(first + PROJECTION_BIAS)?.is_some() {
        return Err(Fault::variant("a bias of the projection isn't supported"));
    }
    let missing = || Fault::operands("the weights aren't there");
    Ok(RecurrentWeights {
        input: joined(call, first, GATES)?.ok_or_else(missing)?,
        recurrent: joined(call, first + HIDDEN, GATES)?.ok_or_else(missing)?,
        input_bias: joined(call, first + BIASES, GATES)?,
        recurrent_bias: None,
        projection: joined(call, first + PROJECTION, 1)?,
        peepholes: joined(call, first + PEEPHOLES, 3)?,
    })
}

fn lstm_layer(
    call: &mut Call<'_, '_>,
    weights: &RecurrentWeights,
    sequence: Value,
    limit: f64,
    reverse: bool,
) -> Result<Value, Fault> {
    if limit > 0.0 {
        return written_out(call, weights, sequence, limit, reverse);
    }
    let run = RecurrentRun { sequence, hidden: None, cell: None, lengths: None };
    let op = Recurrent { reverse, ..Recurrent::new(RecurrentCell::Lstm) };
    Ok(call.builder.recurrent(op, weights, &run)?[0])
}

/// Integers are computed with as the real numbers that they stand for, which the format allows to differ by two.
fn lstm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let limit = lstm_limit(call)?;
    if call.optional(NORMS)?.is_some() {
        return Err(Fault::variant("a normalisation of the gates isn't supported"));
    }
    for index in [18, 19, 21, 22, 23] {
        call.optional(index)?;
    }
    let weights = lstm_weights(call, WEIGHTS)?;
    let x = call.real(0)?;
    let y = over_time(call, x, |call, sequence| lstm_layer(call, &weights, sequence, limit, false))?;
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
        stored.store(b, DType::I64, y)
    })?)
}
