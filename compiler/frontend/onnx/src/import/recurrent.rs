//! Recurrent operators: each direction is a layer of its own; its gates are put into the order of the graph's operator.

use super::call::{Call, Item, Table, TensorAttributes};
use mlc_import::Fault;
use mlc_import::Handler::Many;
use mlc_import::builder::{RecurrentRun, RecurrentWeights};
use mlc_ir::ops::{Elu, LeakyRelu, Recurrent, RecurrentCell};
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, UnaryFunction};
use mlc_ir::{Code, DType, Float, Operator, TensorType, Value};

pub(super) const OPERATORS: Table = &[("GRU", 7, Many(gru)), ("LSTM", 7, Many(lstm)), ("RNN", 7, Many(rnn))];

/// A kind of layer, as the file has it.
struct Kind {
    cell: RecurrentCell,
    /// Gates in the file's weights.
    gates: usize,
    /// For each gate of the cell its place in the file.
    order: &'static [usize],
    /// For each peephole of the cell its place in the file.
    peepholes: &'static [usize],
    /// Names of the usual activations.
    activations: &'static [&'static str],
}

fn rnn(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let kind = Kind { cell: RecurrentCell::Rnn, gates: 1, order: &[0], peepholes: &[], activations: &["Tanh"] };
    import(call, &kind)
}

fn gru(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let after = call.flag_or("linear_before_reset", false)?;
    let cell = if after { RecurrentCell::Gru } else { RecurrentCell::ResetFirstGru };
    // The file has z, r, h.
    import(call, &Kind { cell, gates: 3, order: &[1, 0, 2], peepholes: &[], activations: &["Sigmoid", "Tanh"] })
}

fn lstm(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let activations = &["Sigmoid", "Tanh", "Tanh"];
    // The file has i, o, f, c, and peepholes for i, o, f.
    let kind = if call.flag_or("input_forget", false)? {
        Kind { cell: RecurrentCell::CoupledLstm, gates: 4, order: &[0, 3, 1], peepholes: &[0, 1], activations }
    } else {
        Kind { cell: RecurrentCell::Lstm, gates: 4, order: &[0, 2, 3, 1], peepholes: &[0, 2, 1], activations }
    };
    import(call, &kind)
}

/// The operands with an axis of directions.
struct Operands {
    input: Value,
    recurrent: Value,
    bias: Option<Value>,
    hidden: Option<Value>,
    cell: Option<Value>,
    peepholes: Option<Value>,
}

/// Which of a layer's directions goes backwards.
pub(super) fn directions(call: &mut Call<'_, '_>) -> Result<&'static [bool], Fault> {
    match call.word("direction")?.unwrap_or("forward") {
        "forward" => Ok(&[false]),
        "reverse" => Ok(&[true]),
        "bidirectional" => Ok(&[false, true]),
        other => Err(Fault::parameter(format!("there is no direction `{other}`"))),
    }
}

fn import(call: &mut Call<'_, '_>, kind: &Kind) -> Result<Vec<Item>, Fault> {
    let reverse = directions(call)?;
    let batch_first = call.flag_or("layout", false)?;
    let x = call.input(0)?;
    if call.rank(x) != 3 {
        return Err(Fault::operands(format!("the sequence {} must have three axes", call.builder.ty(x))));
    }
    let sequence = if batch_first { call.builder.swap_axes(x, 0, 1)? } else { x };
    let lstm = kind.cell.has_cell_state();
    let operands = Operands {
        input: call.input(1)?,
        recurrent: call.input(2)?,
        bias: call.optional(3)?,
        hidden: call.optional(5)?,
        cell: if lstm { call.optional(6)? } else { None },
        peepholes: if lstm { call.optional(7)? } else { None },
    };
    let units = check_shapes(call, kind, &operands, reverse.len(), batch_first)?;
    let lengths = lengths(call, sequence)?;
    let activations = activations(call, kind, reverse.len(), sequence)?;
    let mut parts: Vec<Vec<Value>> = Vec::new();
    for (direction, (&reverse, activations)) in reverse.iter().zip(activations).enumerate() {
        let weights = weights(call, kind, &operands, direction, units)?;
        let state = |call: &mut Call<'_, '_>, value: Option<Value>| {
            value.map(|value| call.builder.pick(value, usize::from(batch_first), direction)).transpose()
        };
        let (hidden, cell) = (state(call, operands.hidden)?, state(call, operands.cell)?);
        let run = RecurrentRun { sequence, hidden, cell, lengths };
        let op = Recurrent { activations, reverse, ..Recurrent::new(kind.cell) };
        parts.push(call.builder.recurrent(op, &weights, &run)?);
    }
    // The sequence is [T, D, B, H], states are [D, B, H]; with the other layout, the batch comes first in both.
    let mut results = Vec::new();
    for result in 0..parts[0].len() {
        let own: Vec<Value> = parts.iter().map(|part| part[result]).collect();
        let axis = if result == 0 || batch_first { 1 } else { 0 };
        let stacked = call.builder.stack(&own, axis)?;
        let batch_moves = result == 0 && batch_first;
        results.push(if batch_moves { call.builder.move_axis(stacked, 2, 0)? } else { stacked });
    }
    Ok(results.into_iter().map(Item::Tensor).collect())
}

/// Checks that all operands agree on directions, gates and units; gives the number of units.
fn check_shapes(
    call: &mut Call<'_, '_>,
    kind: &Kind,
    operands: &Operands,
    directions: usize,
    batch_first: bool,
) -> Result<usize, Fault> {
    let recurrent = call.shape(operands.recurrent);
    let units = recurrent.last().copied().unwrap_or(0);
    if let Some(hidden_size) = call.int("hidden_size")?
        && usize::try_from(hidden_size) != Ok(units)
    {
        let ty = call.builder.ty(operands.recurrent);
        return Err(Fault::parameter(format!("`hidden_size` is {hidden_size}, the recurrent weights are {ty}")));
    }
    let gates = units.saturating_mul(kind.gates);
    let inputs = call.shape(operands.input).get(2).copied().unwrap_or(0);
    let state_axis = usize::from(batch_first);
    let expected = [
        ("W", Some(operands.input), 0, Some(vec![gates, inputs])),
        ("R", Some(operands.recurrent), 0, Some(vec![gates, units])),
        ("B", operands.bias, 0, Some(vec![gates.saturating_mul(2)])),
        ("P", operands.peepholes, 0, Some(vec![units.saturating_mul(3)])),
        ("initial_h", operands.hidden, state_axis, None),
        ("initial_c", operands.cell, state_axis, None),
    ];
    for (name, value, axis, rest) in expected {
        let Some(value) = value else { continue };
        let mut shape = call.shape(value).to_vec();
        let found = (axis < shape.len()).then(|| shape.remove(axis));
        if found != Some(directions) || rest.is_some_and(|rest| rest != shape) {
            let (ty, noun) = (call.builder.ty(value), if directions == 1 { "direction" } else { "directions" });
            let message = format!("{name} is {ty}, which doesn't fit {directions} {noun} of {units} units");
            return Err(Fault::new(Code::ShapeMismatch, message));
        }
    }
    Ok(units)
}

/// The steps of each item of the batch, unless all items have all of them.
pub(super) fn lengths(call: &mut Call<'_, '_>, sequence: Value) -> Result<Option<Value>, Fault> {
    let time = call.shape(sequence)[0] as i64;
    match call.known(4)? {
        Some(known)
            if known.ty().dtype.is_integer() && known.to_tensor().to_integers().iter().all(|&own| own == time) =>
        {
            Ok(None)
        }
        _ => call.optional(4),
    }
}

/// One direction's weights, with the gates in the order of the cell.
fn weights(
    call: &mut Call<'_, '_>,
    kind: &Kind,
    operands: &Operands,
    direction: usize,
    units: usize,
) -> Result<RecurrentWeights, Fault> {
    let own = |call: &mut Call<'_, '_>, value: Value| call.builder.pick(value, 0, direction);
    let (input, recurrent) = (own(call, operands.input)?, own(call, operands.recurrent)?);
    let (mut input_bias, mut recurrent_bias) = (None, None);
    if let Some(bias) = operands.bias {
        let bias = own(call, bias)?;
        let halves = call.builder.split(bias, 0, &[kind.gates * units; 2])?;
        input_bias = Some(call.builder.reordered_groups(halves[0], kind.order, units)?);
        recurrent_bias = Some(call.builder.reordered_groups(halves[1], kind.order, units)?);
    }
    let peepholes = match operands.peepholes {
        Some(peepholes) => {
            let peepholes = own(call, peepholes)?;
            Some(call.builder.reordered_groups(peepholes, kind.peepholes, units)?)
        }
        None => None,
    };
    let input = call.builder.reordered_groups(input, kind.order, units)?;
    let recurrent = call.builder.reordered_groups(recurrent, kind.order, units)?;
    Ok(RecurrentWeights { input, recurrent, input_bias, recurrent_bias, projection: None, peepholes })
}

/// The activations of each direction. Those of gates see sums that `clip` limits.
fn activations(
    call: &mut Call<'_, '_>,
    kind: &Kind,
    directions: usize,
    sequence: Value,
) -> Result<Vec<Vec<Expression>>, Fault> {
    let usual = || kind.activations.repeat(directions);
    let names = call.words("activations")?.filter(|names| !names.is_empty()).unwrap_or_else(usual);
    if names.len() != kind.activations.len() * directions {
        let (expected, found) = (kind.activations.len() * directions, names.len());
        return Err(Fault::parameter(format!("`activations` has {found} names, {expected} expected")));
    }
    let clip = call.float("clip")?.filter(|&limit| limit > 0.0);
    let (alphas, betas) = (call.floats("activation_alpha")?, call.floats("activation_beta")?);
    let mut numbers = Numbers {
        alphas: alphas.unwrap_or_default().into_iter(),
        betas: betas.unwrap_or_default().into_iter(),
        dtype: call.dtype_of(sequence),
    };
    let mut list = Vec::new();
    for own in names.chunks(kind.activations.len()) {
        let mut expressions = Vec::new();
        for (place, name) in own.iter().enumerate() {
            let function = numbers.activation(name)?;
            // An lstm's third function is of the cell state, which isn't a gate.
            let limit = clip.filter(|_| place < 2);
            expressions.push(match limit {
                Some(limit) => function.substitute(&[limited(limit, numbers.dtype)]),
                None => function,
            });
        }
        list.push(expressions);
    }
    Ok(list)
}

/// x between -limit and limit.
fn limited(limit: f64, dtype: DType) -> Expression {
    Expression::build(|b| {
        let (x, low, high) = (b.operand(0), b.number(dtype, -limit), b.number(dtype, limit));
        let raised = b.binary(BinaryFunction::Maximum, x, low);
        b.binary(BinaryFunction::Minimum, raised, high)
    })
}

/// The numbers of activations, which take them in their order: only those that have such a number.
struct Numbers {
    alphas: std::vec::IntoIter<f64>,
    betas: std::vec::IntoIter<f64>,
    dtype: DType,
}

impl Numbers {
    fn activation(&mut self, name: &str) -> Result<Expression, Fault> {
        let mut alpha = |default: f64| self.alphas.next().unwrap_or(default);
        let mut beta = |default: f64| self.betas.next().unwrap_or(default);
        let dtype = self.dtype;
        let operand = TensorType::new(dtype, []);
        let expression = match name.to_ascii_lowercase().as_str() {
            "relu" => Some(Expression::unary(UnaryFunction::Relu)),
            "tanh" => Some(Expression::unary(UnaryFunction::Tanh)),
            "sigmoid" => Some(Expression::unary(UnaryFunction::Sigmoid)),
            "softsign" => Some(Expression::unary(UnaryFunction::Softsign)),
            "softplus" => Some(Expression::unary(UnaryFunction::Softplus)),
            "affine" => Some(line(dtype, alpha(1.0), beta(0.0), |_, y| y)),
            "scaledtanh" => {
                let (alpha, beta) = (alpha(1.0), beta(1.0));
                Some(Expression::build(|b| {
                    let (x, beta) = (b.operand(0), b.number(dtype, beta));
                    let scaled = b.binary(BinaryFunction::Multiply, x, beta);
                    let tanh = b.unary(UnaryFunction::Tanh, scaled);
                    let alpha = b.number(dtype, alpha);
                    b.binary(BinaryFunction::Multiply, tanh, alpha)
                }))
            }
            "hardsigmoid" => Some(line(dtype, alpha(0.2), beta(0.5), |b, y| {
                let one = b.number(dtype, 1.0);
                let positive = b.unary(UnaryFunction::Relu, y);
                b.binary(BinaryFunction::Minimum, positive, one)
            })),
            "leakyrelu" => LeakyRelu { slope: Float(alpha(0.01)) }.expression(&[operand]),
            "elu" => Elu { alpha: Float(alpha(1.0)) }.expression(&[operand]),
            "thresholdedrelu" => {
                let alpha = alpha(1.0);
                Some(Expression::build(|b| {
                    let (x, alpha, zero) = (b.operand(0), b.number(dtype, alpha), b.number(dtype, 0.0));
                    let above = b.binary(BinaryFunction::Greater, x, alpha);
                    b.select(above, x, zero)
                }))
            }
            _ => return Err(Fault::variant(format!("there is no activation `{name}`"))),
        };
        expression.ok_or_else(|| Fault::operands(format!("{name} isn't defined for {dtype}")))
    }
}

/// A function of alpha * x + beta.
fn line(
    dtype: DType,
    alpha: f64,
    beta: f64,
    then: impl FnOnce(&mut ExpressionBuilder, ScalarId) -> ScalarId,
) -> Expression {
    Expression::build(|b| {
        let (x, alpha, beta) = (b.operand(0), b.number(dtype, alpha), b.number(dtype, beta));
        let scaled = b.binary(BinaryFunction::Multiply, x, alpha);
        let sum = b.binary(BinaryFunction::Add, scaled, beta);
        then(b, sum)
    })
}
