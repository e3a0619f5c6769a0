//! Recurrent layers. A run starts from zeros; `--stateful` keeps the states of layers that are one operator.

use super::call::{Activation, Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::nearest;

use mlc_import::builder::{RecurrentRun, RecurrentWeights, Stored};
use mlc_ir::ops::{Matmul, Recurrent, RecurrentCell};
use mlc_ir::scalar::{BinaryFunction as B, Expression, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("RNN", One(step_rnn)),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", One(lstm)),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", One(sequence_rnn)),
];

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
    for step in 0..steps {
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
    over_time(call, x, rnn)
}

/// One step.
fn step_rnn(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.real(0)?;
    let sequence = call.builder.insert_axis(x, 0)?;
    let y = rnn(call, sequence)?;
    Ok(call.builder.remove_axis(y, 0)?)
}

/// A layer of one gate over a sequence. Its last operand is the state.
fn rnn(call: &mut Call<'_, '_>, sequence: Value) -> Result<Value, Fault> {
    let weights = RecurrentWeights {
        input: call.real(1)?,
        recurrent: call.real(2)?,
        input_bias: Some(call.real(3)?),
        recurrent_bias: None,
        projection: None,
        peepholes: None,
    };
    call.optional(4)?;
    let mut op = Recurrent::new(RecurrentCell::Rnn);
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

/// Integers are computed with as the real numbers that they stand for, which the format allows to differ by two.
fn lstm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let cell_limit = call.float_or("cell_clip", 0.0)?;
    if call.float_or("proj_clip", 0.0)? != 0.0 {
        return Err(Fault::variant("a limit of the projection isn't supported"));
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
    let y = over_time(call, x, |call, sequence| {
        if cell_limit > 0.0 {
            return written_out(call, &weights, sequence, cell_limit);
        }
        let run = RecurrentRun { sequence, hidden: None, cell: None, lengths: None };
        Ok(call.builder.recurrent(Recurrent::new(RecurrentCell::Lstm), &weights, &run)?[0])
    })?;
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
