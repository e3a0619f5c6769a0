//! Recurrent layers: for each layer and direction the projection of the whole sequence, then the recurrence.
//!
//! The exporter writes the results of some models in another order than PyTorch returns them. Where the shapes in the file
//! prove it, that order is taken.

use super::call::Call;
use super::item::Item;
use super::registry::{Handler::Many, Table};
use crate::builder::{RecurrentRun, RecurrentWeights};
use crate::fault::Fault;
use mlc_ir::ops::{Recurrent, RecurrentCell};
use mlc_ir::scalar::{Expression, UnaryFunction};
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    ("nn.GRU", Many(|call| import(call, Recurrent::new(RecurrentCell::Gru)))),
    ("nn.LSTM", Many(|call| import(call, Recurrent::new(RecurrentCell::Lstm)))),
    ("nn.RNN", Many(plain)),
];

fn plain(call: &mut Call<'_>) -> Result<Vec<Item>, Fault> {
    let activation = match call.word("nonlinearity")?.as_deref() {
        None | Some("tanh") => UnaryFunction::Tanh,
        Some("relu") => UnaryFunction::Relu,
        Some(other) => return Err(Fault::variant(format!("there is no nonlinearity {other}"))),
    };
    let op = Recurrent { activations: vec![Expression::unary(activation)], ..Recurrent::new(RecurrentCell::Rnn) };
    import(call, op)
}

/// The parameters of the module.
struct Module {
    op: Recurrent,
    hidden: usize,
    /// Extent of the hidden state: that of the projection, where there is one.
    state: usize,
    layers: usize,
    directions: usize,
    bias: bool,
    batch_first: bool,
}

fn module(call: &mut Call<'_>, op: Recurrent) -> Result<Module, Fault> {
    let positive = |call: &mut Call<'_>, key: &str, default: Option<i64>| -> Result<usize, Fault> {
        let value = call.int(key)?.or(default);
        let value = call.required(key, value)?;
        let value = usize::try_from(value).ok().filter(|&value| value > 0 && value < 1 << 24);
        value.ok_or_else(|| Fault::parameter(format!("parameter `{key}` must be positive")))
    };
    call.ignore(&["input_size"]);
    let hidden = positive(call, "hidden_size", None)?;
    let layers = positive(call, "num_layers", Some(1))?;
    let state = match call.int_or("proj_size", 0)? {
        0 => hidden,
        _ => positive(call, "proj_size", None)?,
    };
    let directions = if call.flag_or("bidirectional", false)? { 2 } else { 1 };
    let (bias, batch_first) = (call.flag_or("bias", true)?, call.flag_or("batch_first", false)?);
    Ok(Module { op, hidden, state, layers, directions, bias, batch_first })
}

/// The operands: sequence, and initial states where given.
fn operands(call: &mut Call<'_>, cell: RecurrentCell) -> Result<(Value, Option<Value>, Option<Value>), Fault> {
    let mut values = Vec::new();
    for position in 0..call.inputs.len() {
        match call.inputs[position].clone() {
            Item::List(items) => {
                for item in &items {
                    values.push(call.as_tensor("state", item)?);
                }
            }
            Item::None => {}
            item => values.push(call.as_tensor("input", &item)?),
        }
    }
    call.use_all_inputs();
    match (&values[..], cell) {
        ([x], _) => Ok((*x, None, None)),
        ([x, hidden, cell], RecurrentCell::Lstm) => Ok((*x, Some(*hidden), Some(*cell))),
        ([x, hidden], RecurrentCell::Gru | RecurrentCell::Rnn) => Ok((*x, Some(*hidden), None)),
        _ => Err(Fault::new(Code::OperandCount, "expected a sequence, and perhaps all initial states")),
    }
}

fn import(call: &mut Call<'_>, op: Recurrent) -> Result<Vec<Item>, Fault> {
    let module = module(call, op)?;
    let (x, hidden, cell) = operands(call, module.op.cell)?;
    let unbatched = call.builder.rank(x) == 2;
    let mut sequence = match (call.builder.rank(x), module.batch_first) {
        (2, _) => call.builder.insert_axis(x, 1)?,
        (3, false) => x,
        (3, true) => call.builder.swap_axes(x, 0, 1)?,
        _ => {
            let ty = call.builder.ty(x);
            return Err(Fault::operands(format!("the input {ty} must have three axes, or two without a batch")));
        }
    };
    let batch = call.shape(sequence)[1];
    let state =
        |call: &mut Call<'_>, value: Option<Value>, index: usize, width: usize| -> Result<Option<Value>, Fault> {
            let Some(value) = value else { return Ok(None) };
            let shape = [module.layers * module.directions, batch, width];
            let stacked = call.builder.reshape(value, &shape)?;
            Ok(Some(call.builder.pick(stacked, 0, index)?))
        };
    let (mut last_hidden, mut last_cell) = (Vec::new(), Vec::new());
    for layer in 0..module.layers {
        let mut parts = Vec::new();
        for direction in 0..module.directions {
            let index = layer * module.directions + direction;
            let run = RecurrentRun {
                sequence,
                hidden: state(call, hidden, index, module.state)?,
                cell: state(call, cell, index, module.hidden)?,
                lengths: None,
            };
            let results = one_direction(call, &module, (layer, direction), &run)?;
            parts.push(results[0]);
            last_hidden.push(results[1]);
            last_cell.extend(results.get(2));
        }
        sequence = call.builder.concat(&parts, 2)?;
    }
    let mut results = vec![match (unbatched, module.batch_first) {
        (true, _) => call.builder.remove_axis(sequence, 1)?,
        (false, true) => call.builder.swap_axes(sequence, 0, 1)?,
        (false, false) => sequence,
    }];
    for states in [last_hidden, last_cell] {
        if !states.is_empty() {
            let stacked = call.builder.stack(&states, 0)?;
            results.push(if unbatched { call.builder.remove_axis(stacked, 1)? } else { stacked });
        }
    }
    Ok(ordered(call, results).into_iter().map(Item::Tensor).collect())
}

/// One direction of one layer; gives the sequence and the last states.
fn one_direction(
    call: &mut Call<'_>,
    module: &Module,
    (layer, direction): (usize, usize),
    run: &RecurrentRun,
) -> Result<Vec<Value>, Fault> {
    let suffix = format!("l{layer}{}", if direction == 1 { "_reverse" } else { "" });
    let input = call.weight(&format!("weight_ih_{suffix}"))?;
    let recurrent = call.weight(&format!("weight_hh_{suffix}"))?;
    let (input_bias, recurrent_bias) = if module.bias {
        let input_bias = call.weight(&format!("bias_ih_{suffix}"))?;
        (Some(input_bias), Some(call.weight(&format!("bias_hh_{suffix}"))?))
    } else {
        (None, None)
    };
    let expected = [module.hidden * module.op.cell.gates(), module.state];
    if call.shape(recurrent)[..] != expected {
        let ty = call.builder.ty(recurrent);
        return Err(Fault::new(Code::ShapeMismatch, format!("weight_hh_{suffix} is {ty}, {expected:?} expected")));
    }
    let projection = call.optional_weight(&format!("weight_hr_{suffix}"))?;
    let weights = RecurrentWeights { input, recurrent, input_bias, recurrent_bias, projection, peepholes: None };
    let op = Recurrent { reverse: direction == 1, ..module.op.clone() };
    Ok(call.builder.recurrent(op, &weights, run)?)
}

/// The results in the order of the file: sequence first, as documented, or last, as some exports have it.
fn ordered(call: &mut Call<'_>, results: Vec<Value>) -> Vec<Value> {
    let count = call.declared.len();
    let fits = |call: &Call<'_>, order: &[Value]| {
        call.declared.iter().zip(order).all(|(declared, &value)| {
            let shape = call.shape(value);
            declared.as_ref().is_none_or(|declared| {
                declared.len() == shape.len()
                    && declared
                        .iter()
                        .zip(&shape)
                        .all(|(declared, extent)| declared.is_none_or(|found| found == *extent))
            })
        })
    };
    let mut rotated = results[1..].to_vec();
    rotated.push(results[0]);
    let possible = count == 1 || count == results.len();
    match (fits(call, &results), possible && fits(call, &rotated)) {
        (false, true) => rotated,
        (true, true) if call.declared.iter().all(Option::is_some) => {
            call.warnings.push(
                "the shapes don't tell in which order the results are; the sequence is taken to come first".to_owned(),
            );
            results
        }
        _ => results,
    }
}
