//! How far a right implementation's outputs may be from the evaluator's: the graph is evaluated again and again with noise of
//! the size of rounding errors on every inexact operator's operands and results, and signs of zeros flipped. Where that moves
//! an output, real rounding may move it as well; where it doesn't, the output must agree to a few units in the last place.
//! Elements that the noise moves far, or to other integers, are badly conditioned and say nothing: they are left out, and
//! counted.

use mlc_ir::foreign::{Foreign, Nobody};
use mlc_ir::ops::{
    Binary, BitCast, Broadcast, Cast, Extern, Map, PoolFunction, RecurrentCell, ReduceFunction, Select, Unary,
};
use mlc_ir::scalar::{BinaryFunction, Expression, ScalarNode, UnaryFunction};
use mlc_ir::types::broadcast_shapes;
use mlc_ir::{
    Attribute, Category, Code, DType, Diagnostic, Generator, Graph, Location, Op, Operator, Tensor, TensorType, Value,
    Values, evaluate_runs_with, evaluation_order, in_a_row, known_operands,
};
use std::collections::BTreeMap;

/// Evaluations with noise.
const ROUNDS: u64 = 6;
/// Evaluations with noise before a difference is believed.
const THOROUGH_ROUNDS: u64 = 60;
/// Noise in units of the last place: generated code sums in single precision what the evaluator sums in double.
const NOISE_UNITS: f64 = 8.0;
/// The same for half precision, which only the results are rounded to.
const HALF_NOISE_UNITS: f64 = 2.0;
/// How many times the largest observed movement is allowed.
const SAFETY: f64 = 6.0;
/// Allowed in any case, in units of the last place.
const FLOOR_UNITS: f64 = 8.0;
/// An element that may differ by more than this share of its tensor's magnitude says nothing.
const USEFUL: f64 = 0.01;

/// What an output element may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// So far from the evaluator's value at most.
    Within(f64),
    /// Anything.
    Loose,
}

impl Bound {
    /// Nothing beyond the tolerance.
    pub const STRICT: Bound = Bound::Within(0.0);

    /// Whether an element may be `found` where `right` is right.
    pub fn allows(self, found: f64, right: f64) -> bool {
        match self {
            Bound::Within(distance) => agree(found, right, distance),
            Bound::Loose => true,
        }
    }
}

/// What the outputs of a run may be.
#[derive(Debug)]
pub struct Bounds {
    expected: Vec<Tensor>,
    bounds: Vec<Vec<Bound>>,
}

/// How many elements were compared, and how many left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compared {
    /// Elements that agree.
    pub agreeing: usize,
    /// Elements whose conditioning is bad.
    pub loose: usize,
}

impl Compared {
    /// Adds what another comparison found.
    pub fn add(&mut self, other: Compared) {
        self.agreeing += other.agreeing;
        self.loose += other.loose;
    }
}

impl Bounds {
    /// The bounds of a graph's outputs for some inputs.
    ///
    /// # Errors
    /// When the evaluator has no value for it.
    pub fn of(graph: &Graph, inputs: &[Tensor]) -> Result<Bounds, Diagnostic> {
        Bounds::from_rounds(graph, inputs, ROUNDS)
    }

    fn from_rounds(graph: &Graph, inputs: &[Tensor], rounds: u64) -> Result<Bounds, Diagnostic> {
        let mut all = Bounds::of_runs_from_rounds(graph, &[inputs.to_vec()], rounds, &Nobody)?;
        Ok(all.remove(0))
    }

    /// The bounds of a graph's open outputs in several runs in a row, each on its open inputs and the states that the one before has
    /// left. `foreign` runs the graph's functions in C.
    ///
    /// # Errors
    /// When the evaluator has no value for it.
    pub fn of_runs(graph: &Graph, runs: &[Vec<Tensor>], foreign: &dyn Foreign) -> Result<Vec<Bounds>, Diagnostic> {
        Bounds::of_runs_from_rounds(graph, runs, ROUNDS, foreign)
    }

    fn of_runs_from_rounds(
        graph: &Graph,
        runs: &[Vec<Tensor>],
        rounds: u64,
        foreign: &dyn Foreign,
    ) -> Result<Vec<Bounds>, Diagnostic> {
        let mut noisy: Vec<Option<Vec<Vec<Tensor>>>> = Vec::new();
        for round in 0..rounds {
            let mut random = Generator::new(round ^ 0x6e6f_6973_6500);
            let no_value = || Diagnostic::error(Code::Evaluation, Location::default(), "noise leaves no value");
            foreign.restart();
            let mut compute = |inputs: &[Tensor]| with_noise(graph, inputs, &mut random, foreign).ok_or_else(no_value);
            let outputs = in_a_row(graph, runs, &mut compute);
            noisy.push(outputs.ok());
        }
        let all = evaluate_runs_with(graph, runs, foreign)?.into_iter().enumerate().map(|(run, expected)| {
            let rounds: Option<Vec<&[Tensor]>> =
                noisy.iter().map(|runs| Some(runs.as_ref()?[run].as_slice())).collect();
            let bounds = expected.iter().enumerate().map(|(output, right)| bounds(right, output, rounds.as_deref()));
            let bounds = bounds.collect();
            Bounds { expected, bounds }
        });
        Ok(all.collect())
    }

    /// What the elements of an output may be; none of an output that there isn't.
    pub fn of_output(&self, output: usize) -> &[Bound] {
        self.bounds.get(output).map_or(&[], Vec::as_slice)
    }

    /// The same; none where noise moves every element, which would say nothing of a program.
    pub fn telling(&self, output: usize) -> Vec<Bound> {
        let bounds = self.of_output(output);
        if bounds.iter().all(|bound| *bound == Bound::Loose) { Vec::new() } else { bounds.to_vec() }
    }

    /// Compares outputs with the evaluator's.
    ///
    /// # Errors
    /// What differs, in words.
    pub fn compare(&self, outputs: &[Tensor]) -> Result<Compared, String> {
        let mut compared = Compared::default();
        let mut messages = Vec::new();
        for (number, (right, bounds)) in self.expected.iter().zip(&self.bounds).enumerate() {
            let Some(found) = outputs.get(number) else { return Err(format!("output {number} is missing")) };
            if found.ty() != right.ty() {
                return Err(format!("output {number} is {} instead of {}", found.ty(), right.ty()));
            }
            let (found, right) = (found.to_floats(), right.to_floats());
            let mut wrong = Vec::new();
            for (element, bound) in bounds.iter().enumerate() {
                match bound {
                    Bound::Loose => compared.loose += 1,
                    bound if bound.allows(found[element], right[element]) => compared.agreeing += 1,
                    Bound::Within(_) => wrong.push(element),
                }
            }
            if let Some(&first) = wrong.first() {
                let shown: Vec<String> = wrong
                    .iter()
                    .take(4)
                    .map(|&element| format!("[{element}] {} instead of {}", found[element], right[element]))
                    .collect();
                let Bound::Within(distance) = bounds[first] else { continue };
                messages.push(format!(
                    "output {number}: {} of {} elements differ: {} (allowed at the first: {distance:.3e})",
                    wrong.len(),
                    right.len(),
                    shown.join(", "),
                ));
            }
        }
        if messages.is_empty() { Ok(compared) } else { Err(messages.join("; ")) }
    }
}

/// Compares a graph's outputs with the evaluator's; looks more closely at the conditioning before it reports a difference.
///
/// # Errors
/// What differs, in words.
pub fn judge(graph: &Graph, inputs: &[Tensor], bounds: &Bounds, outputs: &[Tensor]) -> Result<Compared, String> {
    if let Ok(compared) = bounds.compare(outputs) {
        return Ok(compared);
    }
    Bounds::from_rounds(graph, inputs, THOROUGH_ROUNDS).map_err(|error| error.to_string())?.compare(outputs)
}

fn agree(found: f64, right: f64, distance: f64) -> bool {
    found == right || (found.is_nan() && right.is_nan()) || (found - right).abs() <= distance
}

/// The distance of two neighbouring values at 1.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::Bf16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

/// How far noise moves a value of 1.
fn noise(dtype: DType) -> f64 {
    unit(dtype) * if matches!(dtype, DType::F16 | DType::Bf16) { HALF_NOISE_UNITS } else { NOISE_UNITS }
}

/// Below this, results may be rounded to 0.
fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 2f64.powi(-14),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// The bounds of one output's elements, from the outputs of each round, if all have some.
fn bounds(right: &Tensor, output: usize, noisy: Option<&[&[Tensor]]>) -> Vec<Bound> {
    let values = right.to_floats();
    let Some(noisy) = noisy else { return vec![Bound::Loose; values.len()] };
    let rounds: Vec<Vec<f64>> = noisy.iter().map(|tensors| tensors[output].to_floats()).collect();
    let is_float = right.ty().dtype.is_float();
    let unit = unit(right.ty().dtype);
    let smallest = 2.0 * smallest_normal(right.ty().dtype);
    let largest = values.iter().filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    let bound = |(element, &value): (usize, &f64)| {
        let spread = rounds
            .iter()
            .map(|round| if agree(round[element], value, 0.0) { 0.0 } else { (round[element] - value).abs() });
        let spread = spread.fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) });
        if !is_float {
            return if spread == 0.0 { Bound::Within(0.0) } else { Bound::Loose };
        }
        let distance = SAFETY * spread + FLOOR_UNITS * unit * value.abs() + smallest;
        // Half precision alone moves elements that far.
        let useful = USEFUL.max(SAFETY * noise(right.ty().dtype)) * largest.max(f64::MIN_POSITIVE);
        if distance <= useful || spread == 0.0 { Bound::Within(distance) } else { Bound::Loose }
    };
    values.iter().enumerate().map(bound).collect()
}

/// The outputs of an evaluation with noise; `None` when a value has no result then.
fn with_noise(graph: &Graph, inputs: &[Tensor], random: &mut Generator, foreign: &dyn Foreign) -> Option<Vec<Tensor>> {
    let mut values: BTreeMap<Value, Tensor> = BTreeMap::new();
    for (&input, tensor) in graph.inputs().iter().zip(inputs) {
        values.insert(input.into(), tensor.clone());
    }
    for id in evaluation_order(graph) {
        let node = graph.node(id);
        if matches!(node.op, Op::Input(_)) {
            continue;
        }
        let operands = graph.operands(id);
        // Of functions in C, what is the same at every call stays so.
        let exact = |operand: &Value| match node.op {
            Op::Extern(_) => graph.constant(*operand).map(Attribute::to_tensor),
            _ => None,
        };
        let tensors = operands.iter().map(|operand| exact(operand).unwrap_or_else(|| values[operand].clone()));
        let tensors: Vec<Tensor> = tensors.collect();
        // An operator of one value twice sees the same noise twice.
        let twice =
            |k: u32| operands.iter().position(|operand| *operand == operands[k as usize]).map_or(k, |k| k as u32);
        let op = match node.op.expression(&graph.operand_types(id)) {
            Some(expression) => Map { expression: expression.renumber(twice) }.into(),
            None => node.op.clone(),
        };
        let results = match &op {
            Op::Extern(op) => called(op, tensors, &known_operands(graph, id), random, foreign)?,
            op => applied(op, tensors, random, foreign)?,
        };
        for (slot, result) in results.into_iter().enumerate() {
            values.insert(Value { node: id, slot: slot as u32 }, result);
        }
    }
    graph.outputs().iter().map(|output| values.get(&output.value).cloned()).collect()
}

/// The results of a function in C with noise, but for what it computes once.
fn called(
    op: &Extern,
    operands: Vec<Tensor>,
    known: &[bool],
    random: &mut Generator,
    foreign: &dyn Foreign,
) -> Option<Vec<Tensor>> {
    let moved = operands.into_iter().zip(known);
    let moved: Vec<Tensor> =
        moved.map(|(operand, known)| if *known { operand } else { disturbed(&operand, random) }).collect();
    let results = foreign.call(op, &moved.iter().collect::<Vec<_>>(), known).ok()?;
    let result = |(slot, result): (usize, Tensor)| match op.persistent.contains(&slot) {
        true => result,
        false => disturbed(&result, random),
    };
    Some(results.into_iter().enumerate().map(result).collect())
}

/// An operator's results with noise.
fn applied(op: &Op, operands: Vec<Tensor>, random: &mut Generator, foreign: &dyn Foreign) -> Option<Vec<Tensor>> {
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
    if let Some(expression) = op.expression(&types) {
        return Some(vec![stepped(&expression, operands, random)?]);
    }
    if let Op::Kernel(kernel) = op {
        let (own, others) = operands.split_at_checked(kernel.anchor_operands)?;
        let mut results = applied(&kernel.anchor, own.to_vec(), random, foreign)?;
        let operands = results.iter().take(1).chain(others).cloned().collect();
        results[0] = stepped(&kernel.expression, operands, random)?;
        return Some(results);
    }
    let results = op.infer(&types).ok()?;
    if is_exact(op, &types, &results) {
        let results = op.evaluate_with(&operands.iter().collect::<Vec<_>>(), &[], &results, foreign).ok()?;
        return Some(results.into_iter().map(|result| flipped_zeros(result, random)).collect());
    }
    let moved: Vec<Tensor> = operands.iter().map(|operand| disturbed(operand, random)).collect();
    let results = op.evaluate_with(&moved.iter().collect::<Vec<_>>(), &[], &results, foreign).ok()?;
    let results = results.iter().map(|result| {
        let mut result = disturbed(result, random);
        if rounds_at_one(op) {
            result = shifted(&result, random);
        }
        flipped_zeros(result, random)
    });
    Some(results.collect())
}

/// Whether results keep the rounding of a number around 1, however small they are. A cell's `1 - gate` does, where the evaluator
/// computes gates exactly; a logarithm of a softmax subtracts that of a sum of 1 and what is little beside it.
fn rounds_at_one(op: &Op) -> bool {
    match op {
        Op::Recurrent(recurrent) => recurrent.cell != RecurrentCell::Rnn,
        Op::Softmax(softmax) => softmax.logarithm,
        _ => false,
    }
}

/// A scalar expression with noise on every step of its primitive form, which is what generated code computes.
fn stepped(expression: &Expression, operands: Vec<Tensor>, random: &mut Generator) -> Option<Tensor> {
    let dtypes: Vec<DType> = operands.iter().map(|operand| operand.ty().dtype).collect();
    let mut steps: Vec<Tensor> = Vec::new();
    for node in expression.primitive(&dtypes).nodes() {
        let apply = |op: Op, children: &[u32], random: &mut Generator| -> Option<Tensor> {
            let operands: Vec<&Tensor> = children.iter().map(|&child| &steps[child as usize]).collect();
            let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
            let results = op.infer(&types).ok()?;
            if chooses(node) || !types[0].dtype.is_float() {
                return Some(flipped_zeros(op.evaluate(&operands, &results).ok()?.remove(0), random));
            }
            let mut moved: Vec<Tensor> = operands.iter().map(|operand| disturbed(operand, random)).collect();
            if let [first, second] = children
                && first == second
            {
                moved[1] = moved[0].clone();
            }
            let result = op.evaluate(&moved.iter().collect::<Vec<_>>(), &results).ok()?.remove(0);
            let mut result = disturbed(&result, random);
            if let (ScalarNode::Binary(BinaryFunction::Add | BinaryFunction::Subtract, ..), [a, b]) = (node, &*moved) {
                result = cancelled(result, [a, b], random);
            }
            Some(flipped_zeros(result, random))
        };
        let step = match *node {
            ScalarNode::Operand(k) => operands.get(k as usize)?.clone(),
            ScalarNode::Literal(literal) => Tensor::splat(TensorType::new(literal.dtype(), []), literal),
            ScalarNode::Unary(function, x) => apply(Unary { function }.into(), &[x], random)?,
            ScalarNode::Binary(function, x, y) => apply(Binary { function }.into(), &[x, y], random)?,
            ScalarNode::Select(condition, x, y) => apply(Select {}.into(), &[condition, x, y], random)?,
            ScalarNode::Cast(dtype, x) => apply(Cast { dtype }.into(), &[x], random)?,
            ScalarNode::BitCast(dtype, x) => apply(BitCast { dtype }.into(), &[x], random)?,
            ScalarNode::Rescale(rounding, children) => {
                apply(Map { expression: Expression::rescale(rounding) }.into(), &children, random)?
            }
        };
        steps.push(step);
    }
    let result = steps.pop()?;
    // An operand that the expression doesn't read widens the result all the same.
    let shape = broadcast_shapes(operands.iter().map(|operand| operand.shape()).chain([result.shape()]))?;
    let widened = TensorType::new(result.ty().dtype, &shape);
    if *result.ty() == widened {
        return Some(result);
    }
    Broadcast { shape }.evaluate(&[&result], &[widened]).ok().map(|mut results| results.remove(0))
}

/// Every float moved by some units of its last place.
fn disturbed(tensor: &Tensor, random: &mut Generator) -> Tensor {
    moved(tensor, random, |value, noise| value * (1.0 + noise))
}

/// Every float moved by as much as [`disturbed`] moves 1.
fn shifted(tensor: &Tensor, random: &mut Generator) -> Tensor {
    moved(tensor, random, |value, noise| value + noise)
}

/// Every float moved by a random noise, which is given as it is at 1.
fn moved(tensor: &Tensor, random: &mut Generator, moved: fn(f64, f64) -> f64) -> Tensor {
    let Values::Float(values) = tensor.values() else { return tensor.clone() };
    let noise = noise(tensor.ty().dtype);
    let values = values.iter().map(|&value| moved(value, noise * random.unit())).collect();
    Tensor::from_floats(tensor.ty().clone(), values)
}

/// A sum or difference that is no larger than the rounding of its two terms may be exactly zero, which matters where a truth
/// value is made of it. Terms that are single elements or have the sum's shape are looked at.
fn cancelled(sum: Tensor, terms: [&Tensor; 2], random: &mut Generator) -> Tensor {
    let (Values::Float(values), Values::Float(a), Values::Float(b)) =
        (sum.values(), terms[0].values(), terms[1].values())
    else {
        return sum;
    };
    let noise = noise(sum.ty().dtype);
    let at = |term: &[f64], element: usize| match term {
        [one] => one.abs(),
        term if term.len() == values.len() => term[element].abs(),
        _ => 0.0,
    };
    let zero_or = |(element, &value): (usize, &f64)| {
        let largest = at(a, element).max(at(b, element));
        if value.abs() <= noise * largest && random.one_in(2) { 0.0 } else { value }
    };
    let values = values.iter().enumerate().map(zero_or).collect();
    Tensor::from_floats(sum.ty().clone(), values)
}

/// The sign of a zero is anybody's.
fn flipped_zeros(tensor: Tensor, random: &mut Generator) -> Tensor {
    let Values::Float(values) = tensor.values() else { return tensor };
    if values.iter().all(|&value| value != 0.0) {
        return tensor;
    }
    let flipped = |&value: &f64| if value == 0.0 && random.one_in(2) { -value } else { value };
    let values: Vec<f64> = values.iter().map(flipped).collect();
    Tensor::from_floats(tensor.ty().clone(), values)
}

/// Whether an operator's results are exact for its operands: it moves, compares or chooses elements, or has no floats.
fn is_exact(op: &Op, operands: &[TensorType], results: &[TensorType]) -> bool {
    let without_floats = operands.iter().chain(results).all(|ty| !ty.dtype.is_float());
    without_floats
        || match op {
            Op::AdaptivePool(pool) => pool.function == PoolFunction::Maximum,
            Op::Reduce(reduce) => matches!(reduce.function, ReduceFunction::Maximum | ReduceFunction::Minimum),
            Op::MaxPool(_) | Op::ArgReduce(_) | Op::Gather(_) | Op::GatherElements(_) | Op::Sort(_) => true,
            op => matches!(op.category(), Category::Source | Category::View | Category::Movement),
        }
}

/// Whether a step of an expression doesn't round.
fn chooses(node: &ScalarNode) -> bool {
    use BinaryFunction as B;
    use UnaryFunction as U;
    match node {
        ScalarNode::Unary(function, _) => matches!(
            function,
            U::Negate
                | U::Absolute
                | U::Sign
                | U::Ceil
                | U::Floor
                | U::Round
                | U::Truncate
                | U::RoundToInteger
                | U::Relu
                | U::Not
                | U::IsNan
                | U::IsInfinite
        ),
        ScalarNode::Binary(function, ..) => {
            function.is_comparison() || matches!(function, B::Maximum | B::Minimum | B::And | B::Or | B::Xor)
        }
        _ => true,
    }
}

#[cfg(test)]
#[path = "conditioning_tests.rs"]
mod tests;
