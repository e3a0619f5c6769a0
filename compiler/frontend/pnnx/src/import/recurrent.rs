//! Recurrent layers: for each layer and direction the projection of the whole sequence, then the recurrence. `nn.LSTM` and
//! its like have weights of their own; `aten::lstm` and its like, which a model that is nothing but such a layer becomes,
//! take them as a list.
//!
//! The exporter writes those results of a module that its model uses, in the order in which it uses them. Where the shapes
//! in the file prove it, that order is taken.

use super::activation::random;
use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::float_at;
use mlc_import::Fault;
use mlc_import::Handler::Many;
use mlc_import::builder::{RecurrentRun, RecurrentWeights};
use mlc_ir::ops::{Recurrent, RecurrentCell};
use mlc_ir::scalar::{Expression, UnaryFunction};
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::gru", Many(|call| import_function(call, Recurrent::new(RecurrentCell::Gru)))),
    ("aten::lstm", Many(|call| import_function(call, Recurrent::new(RecurrentCell::Lstm)))),
    ("aten::rnn_relu", Many(|call| import_function(call, plain(UnaryFunction::Relu)))),
    ("aten::rnn_tanh", Many(|call| import_function(call, plain(UnaryFunction::Tanh)))),
    ("nn.GRU", Many(|call| import_module(call, Recurrent::new(RecurrentCell::Gru)))),
    ("nn.LSTM", Many(|call| import_module(call, Recurrent::new(RecurrentCell::Lstm)))),
    ("nn.RNN", Many(plain_module)),
];

fn plain(activation: UnaryFunction) -> Recurrent {
    Recurrent { activations: vec![Expression::unary(activation)], ..Recurrent::new(RecurrentCell::Rnn) }
}

fn plain_module(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let activation = match call.word("nonlinearity")?.as_deref() {
        None | Some("tanh") => UnaryFunction::Tanh,
        Some("relu") => UnaryFunction::Relu,
        Some(other) => return Err(Fault::variant(format!("there is no nonlinearity {other}"))),
    };
    import_module(call, plain(activation))
}

/// The layers of a module, each in one direction or two.
struct Layers {
    op: Recurrent,
    directions: usize,
    batch_first: bool,
    /// Of each direction of each layer; directions of one layer stand together.
    weights: Vec<RecurrentWeights>,
}

/// The layers of an operator that has its weights as attributes.
fn module_layers(call: &mut Call<'_, '_>, op: Recurrent) -> Result<Layers, Fault> {
    let positive = |call: &mut Call<'_, '_>, key: &str, default: Option<i64>| -> Result<usize, Fault> {
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
    let mut weights = Vec::new();
    for layer in 0..layers {
        for direction in 0..directions {
            let suffix = format!("l{layer}{}", if direction == 1 { "_reverse" } else { "" });
            let own = module_weights(call, &suffix, bias)?;
            let expected = [hidden * op.cell.gates(), state];
            if call.shape(own.recurrent)[..] != expected {
                let ty = call.builder.ty(own.recurrent);
                let message = format!("weight_hh_{suffix} is {ty}, {expected:?} expected");
                return Err(Fault::new(Code::ShapeMismatch, message));
            }
            weights.push(own);
        }
    }
    Ok(Layers { op, directions, batch_first, weights })
}

fn module_weights(call: &mut Call<'_, '_>, suffix: &str, bias: bool) -> Result<RecurrentWeights, Fault> {
    let input = call.weight(&format!("weight_ih_{suffix}"))?;
    let recurrent = call.weight(&format!("weight_hh_{suffix}"))?;
    let (mut input_bias, mut recurrent_bias) = (None, None);
    if bias {
        input_bias = Some(call.weight(&format!("bias_ih_{suffix}"))?);
        recurrent_bias = Some(call.weight(&format!("bias_hh_{suffix}"))?);
    }
    let projection = call.optional_weight(&format!("weight_hr_{suffix}"))?;
    Ok(RecurrentWeights { input, recurrent, input_bias, recurrent_bias, projection, peepholes: None })
}

/// The layers of an operator that takes its weights, as a list, and its options as operands: sequence, states, weights,
/// has_biases, num_layers, dropout, train, bidirectional, batch_first.
fn function_layers(call: &mut Call<'_, '_>, op: Recurrent) -> Result<Layers, Fault> {
    let Item::List(items) = call.labelled_item("params", 2)? else {
        return Err(Fault::operands("the weights must be a list"));
    };
    let values = items.iter().map(|item| call.as_tensor("`params`", item)).collect::<Result<Vec<Value>, Fault>>()?;
    let flag = |call: &mut Call<'_, '_>, key: &str, position: usize| match call.labelled_item(key, position)? {
        Item::Bool(value) => Ok(value),
        other => Err(Fault::operands(format!("operand `{key}` must be True or False, found {}", other.description()))),
    };
    let bias = flag(call, "has_biases", 3)?;
    let layers = call.labelled_item("num_layers", 4)?.int().and_then(|layers| usize::try_from(layers).ok());
    if flag(call, "train", 6)? && float_at(call, "dropout", 5, 0.0)? != 0.0 {
        return Err(random());
    }
    let directions = if flag(call, "bidirectional", 7)? { 2 } else { 1 };
    let batch_first = flag(call, "batch_first", 8)?;
    let runs = layers.unwrap_or(0).saturating_mul(directions);
    let plain = if bias { 4 } else { 2 };
    let each = values.len().checked_div(runs).filter(|each| each * runs == values.len()).unwrap_or(0);
    if each != plain && each != plain + 1 {
        let message = format!("{} weights don't make {runs} recurrences", values.len());
        return Err(Fault::new(Code::OperandCount, message));
    }
    let of_one = |values: &[Value]| RecurrentWeights {
        input: values[0],
        recurrent: values[1],
        input_bias: bias.then(|| values[2]),
        recurrent_bias: bias.then(|| values[3]),
        projection: values.get(plain).copied(),
        peepholes: None,
    };
    Ok(Layers { op, directions, batch_first, weights: values.chunks(each).map(of_one).collect() })
}

/// A sequence, and the first hidden and cell state where given.
type SequenceAndStates = (Value, Option<Value>, Option<Value>);

/// The first operands, of which lists count as their items.
fn operands(call: &mut Call<'_, '_>, count: usize, cell: RecurrentCell) -> Result<SequenceAndStates, Fault> {
    let mut values = Vec::new();
    for position in 0..call.inputs.len().min(count) {
        match call.inputs[position].clone() {
            Item::List(items) => {
                for item in &items {
                    values.push(call.as_tensor("`state`", item)?);
                }
            }
            Item::None => {}
            item => values.push(call.as_tensor("`input`", &item)?),
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

fn import_module(call: &mut Call<'_, '_>, op: Recurrent) -> Result<Vec<Item>, Fault> {
    let operands = operands(call, usize::MAX, op.cell)?;
    let layers = module_layers(call, op)?;
    let results = run(call, &layers, operands)?;
    Ok(ordered(call, results).into_iter().map(Item::Tensor).collect())
}

fn import_function(call: &mut Call<'_, '_>, op: Recurrent) -> Result<Vec<Item>, Fault> {
    let operands = operands(call, 2, op.cell)?;
    let layers = function_layers(call, op)?;
    Ok(run(call, &layers, operands)?.into_iter().map(Item::Tensor).collect())
}

/// The sequence of the last layer, then the last hidden and cell states of all layers.
fn run(call: &mut Call<'_, '_>, layers: &Layers, (x, hidden, cell): SequenceAndStates) -> Result<Vec<Value>, Fault> {
    let unbatched = call.builder.rank(x) == 2;
    let mut sequence = match (call.builder.rank(x), layers.batch_first) {
        (2, _) => call.builder.insert_axis(x, 1)?,
        (3, false) => x,
        (3, true) => call.builder.swap_axes(x, 0, 1)?,
        _ => {
            let ty = call.builder.ty(x);
            return Err(Fault::operands(format!("the input {ty} must have three axes, or two without a batch")));
        }
    };
    let batch = call.shape(sequence)[1];
    let count = layers.weights.len();
    let first = |call: &mut Call<'_, '_>, value: Option<Value>, index: usize| -> Result<Option<Value>, Fault> {
        let Some(value) = value else { return Ok(None) };
        let width = call.shape(value).last().copied().unwrap_or(1);
        let stacked = call.builder.reshape(value, &[count, batch, width])?;
        Ok(Some(call.builder.pick(stacked, 0, index)?))
    };
    let (mut last_hidden, mut last_cell) = (Vec::new(), Vec::new());
    for (layer, weights) in layers.weights.chunks(layers.directions).enumerate() {
        let mut parts = Vec::new();
        for (direction, weights) in weights.iter().enumerate() {
            let index = layer * layers.directions + direction;
            let run = RecurrentRun {
                sequence,
                hidden: first(call, hidden, index)?,
                cell: first(call, cell, index)?,
                lengths: None,
            };
            let op = Recurrent { reverse: direction == 1, ..layers.op.clone() };
            let results = call.builder.recurrent(op, weights, &run)?;
            parts.push(results[0]);
            last_hidden.push(results[1]);
            last_cell.extend(results.get(2));
        }
        sequence = call.builder.concat(&parts, 2)?;
    }
    let mut results = vec![match (unbatched, layers.batch_first) {
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
    Ok(results)
}

/// The results that the file names: all, or some, in the first order that the shapes in the file allow; the sequence comes
/// before the hidden state and that before the cell state where they allow several.
fn ordered(call: &mut Call<'_, '_>, results: Vec<Value>) -> Vec<Value> {
    let count = call.declared().len();
    let fits = |order: &&Vec<usize>| {
        call.declared().iter().zip(*order).all(|(declared, &index)| {
            let shape = call.shape(results[index]);
            declared.as_ref().is_none_or(|declared| {
                declared.len() == shape.len()
                    && declared
                        .iter()
                        .zip(&shape)
                        .all(|(declared, extent)| declared.is_none_or(|found| found == *extent))
            })
        })
    };
    let orders = arrangements(results.len(), count);
    let fitting: Vec<&Vec<usize>> = orders.iter().filter(fits).collect();
    let Some(&taken) = fitting.first() else { return results };
    let place_of_sequence = |order: &[usize]| order.iter().position(|&index| index == 0);
    let sequence_is_told = fitting.iter().all(|order| place_of_sequence(order) == place_of_sequence(taken));
    let states_are_told = fitting.len() == 1 || taken.iter().copied().eq(0..results.len());
    let warning = match (sequence_is_told, states_are_told) {
        _ if call.declared().iter().any(Option::is_none) => None,
        (false, _) => Some("the shapes don't tell in which order the results are; the sequence is taken to come first"),
        (true, false) => Some(
            "the file doesn't tell the hidden state from the cell state; the hidden state is taken, or taken to come \
             first; if the model uses the cell state, return both states from it in the order (hidden, cell)",
        ),
        (true, true) => None,
    };
    if let Some(warning) = warning {
        call.warn(Code::ShapeMismatch, warning);
    }
    taken.iter().map(|&index| results[index]).collect()
}

/// All ordered choices of `count` of the first numbers, in lexicographic order.
fn arrangements(numbers: usize, count: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new()];
    for _ in 0..count {
        let longer = |order: &Vec<usize>| {
            let rest = (0..numbers).filter(|number| !order.contains(number));
            rest.map(|number| order.iter().copied().chain([number]).collect()).collect::<Vec<Vec<usize>>>()
        };
        found = found.iter().flat_map(longer).collect();
    }
    found
}
