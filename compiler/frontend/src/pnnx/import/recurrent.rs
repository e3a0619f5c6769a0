//! Recurrent layers: for each layer and direction the projection of the whole sequence, then the recurrence.
//!
//! The exporter writes the results of some models in another order than PyTorch returns them. Where the shapes in the file
//! prove it, that order is taken.

use super::call::Call;
use super::item::Item;
use super::linear::linear;
use super::registry::{Handler::Many, Table};
use crate::fault::Fault;
use mlc_ir::ops::{Recurrent, RecurrentCell};
use mlc_ir::{Attribute, Code, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("nn.GRU", Many(|call| import(call, RecurrentCell::Gru))),
    ("nn.LSTM", Many(|call| import(call, RecurrentCell::Lstm))),
    ("nn.RNN", Many(plain)),
];

fn plain(call: &mut Call<'_>) -> Result<Vec<Item>, Fault> {
    let cell = match call.word("nonlinearity")?.as_deref() {
        None | Some("tanh") => RecurrentCell::RnnTanh,
        Some("relu") => RecurrentCell::RnnRelu,
        Some(other) => return Err(Fault::variant(format!("there is no nonlinearity {other}"))),
    };
    import(call, cell)
}

/// The parameters of the module.
struct Module {
    cell: RecurrentCell,
    hidden: usize,
    /// Extent of the hidden state: that of the projection, where there is one.
    state: usize,
    layers: usize,
    directions: usize,
    bias: bool,
    batch_first: bool,
}

fn module(call: &mut Call<'_>, cell: RecurrentCell) -> Result<Module, Fault> {
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
    Ok(Module { cell, hidden, state, layers, directions, bias, batch_first })
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
        ([x, hidden], RecurrentCell::Gru | RecurrentCell::RnnTanh | RecurrentCell::RnnRelu) => {
            Ok((*x, Some(*hidden), None))
        }
        _ => Err(Fault::new(Code::OperandCount, "expected a sequence, and perhaps all initial states")),
    }
}

fn import(call: &mut Call<'_>, cell: RecurrentCell) -> Result<Vec<Item>, Fault> {
    let module = module(call, cell)?;
    let (x, hidden, memory) = operands(call, cell)?;
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
    let state = |call: &mut Call<'_>, value: Option<Value>, index: usize, width: usize| -> Result<Value, Fault> {
        let Some(value) = value else { return zeros(call, x, &[batch, width]) };
        let shape = [module.layers * module.directions, batch, width];
        let stacked = call.builder.reshape(value, &shape)?;
        Ok(call.builder.pick(stacked, 0, index)?)
    };
    let (mut last_hidden, mut last_memory) = (Vec::new(), Vec::new());
    for layer in 0..module.layers {
        let mut parts = Vec::new();
        for direction in 0..module.directions {
            let index = layer * module.directions + direction;
            let initial_hidden = state(call, hidden, index, module.state)?;
            let initial_memory = match cell {
                RecurrentCell::Lstm => Some(state(call, memory, index, module.hidden)?),
                _ => None,
            };
            let results = one_direction(call, &module, sequence, (layer, direction), initial_hidden, initial_memory)?;
            parts.push(results[0]);
            last_hidden.push(results[1]);
            last_memory.extend(results.get(2));
        }
        sequence = call.builder.concat(&parts, 2)?;
    }
    let mut results = vec![match (unbatched, module.batch_first) {
        (true, _) => call.builder.remove_axis(sequence, 1)?,
        (false, true) => call.builder.swap_axes(sequence, 0, 1)?,
        (false, false) => sequence,
    }];
    for states in [last_hidden, last_memory] {
        if !states.is_empty() {
            let stacked = call.builder.stack(&states, 0)?;
            results.push(if unbatched { call.builder.remove_axis(stacked, 1)? } else { stacked });
        }
    }
    Ok(ordered(call, results).into_iter().map(Item::Tensor).collect())
}

/// Zeros of the data type of `x`; many of them as a repetition, so that a number in a file can't make them take memory.
fn zeros(call: &mut Call<'_>, x: Value, shape: &[usize]) -> Result<Value, Fault> {
    let dtype = call.builder.dtype(x);
    let dtype = if dtype.is_float() { dtype } else { DType::F32 };
    let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    if elements.is_none_or(|elements| elements > 1 << 20) {
        let zero = call.builder.number(dtype, 0.0);
        return Ok(call.builder.broadcast(zero, shape)?);
    }
    let zeros = Tensor::splat(TensorType::new(dtype, shape), mlc_ir::Literal::float(dtype, 0.0));
    Ok(call.builder.constant("zeros", Attribute::from_tensor(&zeros)))
}

/// One direction of one layer; gives the sequence and the last states.
fn one_direction(
    call: &mut Call<'_>,
    module: &Module,
    sequence: Value,
    (layer, direction): (usize, usize),
    hidden: Value,
    memory: Option<Value>,
) -> Result<Vec<Value>, Fault> {
    let suffix = format!("l{layer}{}", if direction == 1 { "_reverse" } else { "" });
    let input_weights = call.weight(&format!("weight_ih_{suffix}"))?;
    let recurrent_weights = call.weight(&format!("weight_hh_{suffix}"))?;
    let (input_bias, recurrent_bias) = if module.bias {
        let input_bias = call.weight(&format!("bias_ih_{suffix}"))?;
        (Some(input_bias), call.weight(&format!("bias_hh_{suffix}"))?)
    } else {
        let width = module.hidden * module.cell.gates();
        (None, zeros(call, sequence, &[width])?)
    };
    let expected = [module.hidden * module.cell.gates(), module.state];
    if call.shape(recurrent_weights)[..] != expected {
        let ty = call.builder.ty(recurrent_weights);
        return Err(Fault::new(Code::ShapeMismatch, format!("weight_hh_{suffix} is {ty}, {expected:?} expected")));
    }
    let projected = linear(call, sequence, input_weights, input_bias)?;
    let recurrent_weights = call.builder.transpose(recurrent_weights, &[1, 0])?;
    let mut operands = vec![projected, recurrent_weights, recurrent_bias, hidden];
    operands.extend(memory);
    let projection = call.optional_weight(&format!("weight_hr_{suffix}"))?;
    if let Some(projection) = projection {
        operands.push(call.builder.transpose(projection, &[1, 0])?);
    }
    let op = Recurrent { cell: module.cell, reverse: direction == 1, projection: projection.is_some() };
    Ok(call.builder.apply_all(op, &operands)?)
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
