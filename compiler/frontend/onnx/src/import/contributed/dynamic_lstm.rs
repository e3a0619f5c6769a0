//! `DynamicQuantizeLSTM`: a layer whose weights are bytes. Its input is quantised as a whole, and its hidden state in each step, by their
//! smallest and largest numbers; sums of products are those of integers.

use crate::import::call::{Call, Item, TensorAttributes};
use crate::import::recurrent::{directions, lengths};
use mlc_import::builder::DynamicallyQuantized;
use mlc_import::{Builder, Fault};
use mlc_ir::ops::{Loop, SliceAxis};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, Code, DType, Subgraph, TensorType, Value};

/// Gates in the file's weights: i, o, f, c.
const GATES: usize = 4;

/// A matrix of bytes with an axis of directions in front, by the places of the operands.
struct Bytes {
    weights: usize,
    scale: usize,
    zero_point: usize,
    name: &'static str,
}

const INPUT: Bytes = Bytes { weights: 1, scale: 8, zero_point: 9, name: "W" };
const RECURRENT: Bytes = Bytes { weights: 2, scale: 10, zero_point: 11, name: "R" };

/// The constants of one direction.
struct Matrix {
    weights: Attribute,
    /// One number, or one for each column.
    scale: Attribute,
    zero_point: Option<Attribute>,
}

impl Bytes {
    fn of(&self, call: &mut Call<'_, '_>, direction: usize) -> Result<Matrix, Fault> {
        let own = |call: &mut Call<'_, '_>, value: Value| -> Result<Attribute, Fault> {
            let picked = call.builder.pick(value, 0, direction)?;
            let known = call.builder.graph().constant(picked).cloned();
            known.ok_or_else(|| Fault::variant(format!("{} with its scale isn't constant", self.name)))
        };
        let (weights, scale) = (call.input(self.weights)?, call.input(self.scale)?);
        let zero_point = call.optional(self.zero_point)?;
        let zero_point = zero_point.map(|value| own(call, value)).transpose()?;
        Ok(Matrix { weights: own(call, weights)?, scale: own(call, scale)?, zero_point })
    }
}

impl Matrix {
    /// Checks that the weights are bytes [rows, columns], with a scale and a zero point for all or for each column.
    fn check(&self, name: &str, rows: usize, columns: usize) -> Result<(), Fault> {
        let ty = self.weights.ty();
        let along = |own: &Attribute| own.ty().elements() == 1 || own.ty().shape[..] == [columns];
        let fits = ty.shape[..] == [rows, columns]
            && ty.dtype.is_byte()
            && self.scale.ty().dtype == DType::F32
            && along(&self.scale)
            && self.zero_point.as_ref().is_none_or(|zero| zero.ty().dtype == ty.dtype && along(zero));
        if fits {
            return Ok(());
        }
        let message = format!("{name} is {ty}, bytes of [{rows}, {columns}] in each direction are expected");
        Err(Fault::new(Code::ShapeMismatch, format!("{message}, with scales and zero points that fit")))
    }

    /// x times the matrix, as real numbers.
    fn product(&self, builder: &mut Builder, x: Value) -> Result<Value, Fault> {
        let DynamicallyQuantized { integers, scale, zero_point } = builder.quantize_dynamically(x)?;
        let left = builder.centred(integers, Some(zero_point))?;
        let weights = builder.constant("weights", self.weights.clone());
        let zero = self.zero_point.clone().map(|zero| builder.constant("zero_point", zero));
        let zero = zero.map(|zero| flat(builder, zero)).transpose()?;
        let right = builder.centred(weights, zero)?;
        let sums = builder.matmul(left, right)?;
        let own = builder.constant("scale", self.scale.clone());
        let own = flat(builder, own)?;
        let scale = builder.binary(B::Multiply, own, scale)?;
        let sums = builder.cast(sums, DType::F32)?;
        Ok(builder.binary(B::Multiply, sums, scale)?)
    }
}

/// One number without axes.
fn flat(builder: &mut Builder, value: Value) -> Result<Value, Fault> {
    Ok(if builder.ty(value).elements() == 1 { builder.reshape(value, &[])? } else { value })
}

/// Numbers of steps, items of the batch and units.
#[derive(Clone, Copy)]
struct Sizes {
    steps: usize,
    batch: usize,
    units: usize,
}

/// What a step does: the next hidden and cell states of the present ones and of the gates that the input gives.
fn body(name: &str, recurrent: &Matrix, Sizes { batch, units, .. }: Sizes) -> Result<Subgraph, Fault> {
    let mut builder = Builder::new(name);
    builder.compute_constants();
    let ty = |columns: usize| TensorType::new(DType::F32, [batch, columns]);
    builder.input("turn", TensorType::new(DType::I64, []));
    let (hidden, cell) = (builder.input("hidden", ty(units)), builder.input("cell", ty(units)));
    let given = builder.input("gates", ty(units * GATES));
    builder.begin(name);
    let fed_back = recurrent.product(&mut builder, hidden)?;
    let gates = builder.binary(B::Add, given, fed_back)?;
    let gates = builder.split(gates, 1, &[units; GATES])?;
    let cell = builder.map(&[gates[0], gates[2], gates[3], cell], |b| {
        let [input, forget, new, cell] = [0, 1, 2, 3].map(|operand| b.operand(operand));
        let (input, forget) = (b.unary(U::Sigmoid, input), b.unary(U::Sigmoid, forget));
        let new = b.unary(U::Tanh, new);
        let (kept, added) = (b.binary(B::Multiply, forget, cell), b.binary(B::Multiply, input, new));
        b.binary(B::Add, kept, added)
    })?;
    let hidden = builder.map(&[gates[1], cell], |b| {
        let (output, cell) = (b.operand(0), b.operand(1));
        let (output, cell) = (b.unary(U::Sigmoid, output), b.unary(U::Tanh, cell));
        b.binary(B::Multiply, output, cell)
    })?;
    for (number, value) in [hidden, cell, hidden].into_iter().enumerate() {
        builder.output(&format!("{number}"), value);
    }
    Ok(Subgraph::new(builder.finish()))
}

/// Refuses what the steps don't do.
fn check_plain(call: &mut Call<'_, '_>, x: Value) -> Result<(), Fault> {
    let usual = ["sigmoid", "tanh", "tanh"];
    let names = call.words("activations")?.unwrap_or_default();
    if names.iter().enumerate().any(|(place, name)| !name.eq_ignore_ascii_case(usual[place % usual.len()])) {
        return Err(Fault::variant("activations other than Sigmoid, Tanh, Tanh aren't supported"));
    }
    if call.float("clip")?.is_some_and(|limit| limit > 0.0) || call.flag_or("input_forget", false)? {
        return Err(Fault::variant("`clip` and `input_forget` aren't supported"));
    }
    if call.optional(7)?.is_some() {
        return Err(Fault::variant("weights of the cell state in the gates (P) aren't supported"));
    }
    if lengths(call, x)?.is_some() {
        return Err(Fault::variant("sequences of different lengths (sequence_lens) aren't supported"));
    }
    Ok(())
}

/// x [T, B, I], W [D, I, 4 H], R [D, H, 4 H], B [D, 8 H]: Y [T, D, B, H], and the last states [D, B, H].
pub(super) fn lstm(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let reverse = directions(call)?;
    let (x, recurrent) = (call.input(0)?, call.input(2)?);
    let (&[steps, batch, inputs], &[_, units, _]) = (&call.shape(x)[..], &call.shape(recurrent)[..]) else {
        return Err(Fault::operands("a sequence and weights of three axes are expected"));
    };
    let sizes = Sizes { steps, batch, units };
    if steps == 0 || call.dtype_of(x) != DType::F32 {
        return Err(Fault::operands(format!("the sequence {} has no numbers in single precision", call.builder.ty(x))));
    }
    if let Some(hidden) = call.int("hidden_size")?
        && usize::try_from(hidden) != Ok(units)
    {
        return Err(Fault::parameter(format!("`hidden_size` is {hidden}, the recurrent weights have {units}")));
    }
    check_plain(call, x)?;
    let bias = call.optional(3)?;
    let states = [call.optional(5)?, call.optional(6)?];
    let columns = units.saturating_mul(GATES);
    let mut parts: Vec<Vec<Value>> = Vec::new();
    for (direction, &reverse) in reverse.iter().enumerate() {
        let (input, recurrent) = (INPUT.of(call, direction)?, RECURRENT.of(call, direction)?);
        input.check(INPUT.name, inputs, columns)?;
        recurrent.check(RECURRENT.name, units, columns)?;
        let mut gates = input.product(call.builder, x)?;
        if let Some(bias) = bias {
            let own = call.builder.pick(bias, 0, direction)?;
            let halves = call.builder.split(own, 0, &[columns; 2])?;
            let sum = call.builder.binary(B::Add, halves[0], halves[1])?;
            gates = call.builder.binary(B::Add, gates, sum)?;
        }
        let mut operands = Vec::new();
        for state in states {
            operands.push(match state {
                Some(state) => call.builder.pick(state, 0, direction)?,
                None => call.builder.zeros(DType::F32, &[batch, units])?,
            });
        }
        operands.push(gates);
        parts.push(call.builder.apply_all(steps_of(call, &recurrent, sizes, reverse)?, &operands)?);
    }
    let mut results = Vec::new();
    for (result, axis) in [(2, 1), (0, 0), (1, 0)] {
        let own: Vec<Value> = parts.iter().map(|part| part[result]).collect();
        results.push(Item::Tensor(call.builder.stack(&own, axis)?));
    }
    Ok(results)
}

fn steps_of(call: &Call<'_, '_>, recurrent: &Matrix, sizes: Sizes, reverse: bool) -> Result<Loop, Fault> {
    let way = vec![SliceAxis { axis: 0, reverse }];
    Ok(Loop {
        body: body(&call.site.name, recurrent, sizes)?,
        trip_count: Some(sizes.steps),
        carried: 2,
        scanned: way.clone(),
        stacked: way,
        conditional: false,
    })
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{import_with, input, int, messages, model, node, opset};
    use crate::proto::ModelProto;
    use mlc_import::ImportOptions;

    /// A layer of real numbers, whose operands have these shapes.
    fn layer(operands: &[&str]) -> ModelProto {
        let own = node("DynamicQuantizeLSTM", operands, &["y"]);
        let own =
            crate::proto::NodeProto { domain: "com.microsoft".into(), attribute: vec![int("hidden_size", 2)], ..own };
        let inputs =
            [("x", vec!["3", "1", "4"]), ("w", vec!["1", "4", "8"]), ("r", vec!["1", "2", "8"]), ("p", vec!["1", "6"])];
        let inputs = inputs.iter().map(|(name, shape)| input(name, shape)).collect();
        let mut model = model(inputs, vec![own], &["y"]);
        model.opset_import.push(opset("com.microsoft", 1));
        model
    }

    #[test]
    fn what_the_steps_lack_is_refused_by_name() {
        let refused = |operands: &[&str]| messages(import_with(&layer(operands), &ImportOptions::default())).concat();
        let said = refused(&["x", "w", "r", "", "", "", "", "p", "w", "", "r", ""]);
        assert!(said.contains("weights of the cell state in the gates (P) aren't supported"), "{said}");
        let said = refused(&["x", "w", "r", "", "", "", "", "", "w", "", "r", ""]);
        assert!(said.contains("W with its scale isn't constant"), "{said}");
    }
}
