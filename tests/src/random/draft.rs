//! [`Draft`]: a graph that is being drawn together with the values of everything in it, so that what an operator makes of
//! its operands is known before it is added: values that leave the range of well-behaved numbers never enter the graph.

use mlc_ir::ops::Unary;
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{Attribute, Category, DType, Generator, Graph, Op, Tensor, TensorType, Value, Values};
use std::collections::BTreeMap;

/// Results of more elements aren't made.
const MAXIMUM_ELEMENTS: usize = 3000;
/// Operators of more multiplications or scalar operations aren't applied.
const MAXIMUM_WORK: u64 = 300_000;
/// Floats beyond this aren't made.
const MAXIMUM_MAGNITUDE: f64 = 1e4;
/// Floats beyond this are mostly brought back by a bounded function.
const TAME_MAGNITUDE: f64 = 16.0;

/// A graph with a seeded input for it.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The graph.
    pub graph: Graph,
    /// Inputs for it, in order.
    pub inputs: Vec<Tensor>,
}

/// A graph that is being drawn.
pub struct Draft<'p> {
    /// What there is of it.
    pub graph: Graph,
    /// Where random numbers come from.
    pub random: Generator,
    /// The data types that may occur.
    pub dtypes: &'p [DType],
    values: Vec<Value>,
    tensors: BTreeMap<Value, Tensor>,
    inputs: Vec<Tensor>,
    operators: usize,
}

impl<'p> Draft<'p> {
    /// An empty graph.
    pub fn new(seed: u64, dtypes: &'p [DType]) -> Self {
        Draft {
            graph: Graph::new(format!("g{seed}")),
            random: Generator::new(seed),
            dtypes,
            values: Vec::new(),
            tensors: BTreeMap::new(),
            inputs: Vec::new(),
            operators: 0,
        }
    }

    /// How many operators there are, without inputs and constants.
    pub fn operators(&self) -> usize {
        self.operators
    }

    /// How many inputs there are.
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> TensorType {
        self.graph.ty(value).clone()
    }

    /// Extents of a value.
    pub fn shape(&self, value: Value) -> Vec<usize> {
        self.graph.ty(value).shape.to_vec()
    }

    /// Data type of a value.
    pub fn dtype(&self, value: Value) -> DType {
        self.graph.ty(value).dtype
    }

    /// Appends an input with random values.
    pub fn input(&mut self, ty: &TensorType) -> Value {
        let tensor = self.random.tensor(ty);
        let value = self.graph.add_input(&format!("x{}", self.inputs.len()), ty.clone());
        self.inputs.push(tensor.clone());
        self.tensors.insert(value, tensor);
        self.values.push(value);
        value
    }

    /// Adds a random constant. It is what the text form calls `random`, so that [`constant_seed`] finds it in its name.
    pub fn constant(&mut self, ty: &TensorType) -> Value {
        let seed = self.random.bits() >> 44;
        let tensor = Generator::new(seed).tensor(ty);
        self.add_constant(&format!("random{seed}"), tensor)
    }

    /// Adds a constant of equal elements.
    pub fn splat(&mut self, ty: TensorType, number: f64) -> Value {
        let literal = mlc_ir::Literal::of(ty.dtype, number);
        self.add_constant("splat", Tensor::splat(ty, literal))
    }

    fn add_constant(&mut self, name: &str, tensor: Tensor) -> Value {
        let value = self.graph.add_constant(name, Attribute::from_tensor(&tensor));
        self.tensors.insert(value, tensor);
        value
    }

    /// Applies an operator, unless it doesn't accept the operands, has no result for their values, or its result is too large,
    /// too much work or no tame number.
    pub fn apply(&mut self, op: impl Into<Op>, operands: &[Value]) -> Option<Vec<Value>> {
        let op = op.into();
        let types: Vec<TensorType> = operands.iter().map(|&operand| self.ty(operand)).collect();
        let results = op.infer(&types).ok()?;
        let allowed = |ty: &TensorType| {
            ty.checked_bytes().is_some() && ty.elements() <= MAXIMUM_ELEMENTS && self.dtypes.contains(&ty.dtype)
        };
        let work = op.work(&types, &results);
        if !results.iter().all(allowed) || work.macs.max(work.scalar_operations) > MAXIMUM_WORK {
            return None;
        }
        let references: Vec<&Tensor> = operands.iter().map(|operand| &self.tensors[operand]).collect();
        let tensors = op.evaluate(&references, &results).ok()?;
        if !tensors.iter().all(|tensor| magnitude(tensor) <= MAXIMUM_MAGNITUDE) {
            return None;
        }
        let name = op.name();
        let node = self.graph.add(op, operands, name).ok()?;
        self.operators += 1;
        let mut values = Vec::new();
        for (slot, tensor) in tensors.into_iter().enumerate() {
            let value = Value { node, slot: slot as u32 };
            self.tensors.insert(value, tensor);
            values.push(value);
        }
        self.values.extend(&values);
        Some(values)
    }

    /// Applies an operator and takes its first result; where it can't be applied, the first operand stays as it is.
    pub fn try_apply(&mut self, op: impl Into<Op>, operands: &[Value]) -> Value {
        self.apply(op, operands).map_or(operands[0], |results| results[0])
    }

    /// The value itself, or a bounded function of it where its numbers have grown large.
    pub fn tame(&mut self, value: Value) -> Value {
        let large = self.dtype(value).is_float() && magnitude(&self.tensors[&value]) > TAME_MAGNITUDE;
        if !large || self.random.one_in(8) {
            return value;
        }
        let function = self.random.choose(&[
            UnaryFunction::Tanh,
            UnaryFunction::Softsign,
            UnaryFunction::Sigmoid,
            UnaryFunction::Atan,
        ]);
        self.try_apply(Unary { function }, &[value])
    }

    /// One of the values, the later the likelier.
    pub fn pick(&mut self) -> Option<Value> {
        let last = self.values.len().checked_sub(1)?;
        let first = if self.random.one_in(3) { 0 } else { last.saturating_sub(4) };
        Some(self.values[self.random.range(first, last)])
    }

    /// One of the values that fit, the later the likelier.
    pub fn pick_where(&mut self, fits: impl Fn(&TensorType) -> bool) -> Option<Value> {
        let fitting: Vec<Value> = self.values.iter().copied().filter(|&value| fits(self.graph.ty(value))).collect();
        let last = fitting.len().checked_sub(1)?;
        let first = if self.random.one_in(3) { 0 } else { last.saturating_sub(3) };
        Some(fitting[self.random.range(first, last)])
    }

    /// The graph with all unused results as outputs, and some that are used.
    pub fn finish(mut self) -> Sample {
        let mut outputs: Vec<Value> = self
            .values
            .iter()
            .copied()
            .filter(|&value| self.graph.uses(value).is_empty())
            .filter(|&value| self.graph.node(value.node).op.category() != Category::Source)
            .collect();
        for _ in 0..self.random.choose(&[0, 0, 1, 2]) {
            let any = self.random.choose(&self.values);
            let place = self.random.range(0, outputs.len());
            outputs.insert(place, any);
        }
        for (number, &output) in outputs.iter().enumerate() {
            self.graph.add_output(&format!("y{number}"), output);
        }
        self.graph.remove_dead();
        Sample { graph: self.graph, inputs: self.inputs }
    }
}

/// The seed of a constant that [`Draft::constant`] made.
pub fn constant_seed(name: &str) -> Option<u64> {
    name.strip_prefix("random")?.split('.').next()?.parse().ok()
}

/// The largest magnitude of a float tensor, infinite where it holds a NaN; 0 for integers.
fn magnitude(tensor: &Tensor) -> f64 {
    let Values::Float(values) = tensor.values() else { return 0.0 };
    values.iter().fold(0.0, |largest: f64, value| if value.is_nan() { f64::INFINITY } else { largest.max(value.abs()) })
}
