//! [`Builder`]: what importers build graphs with, whatever the format they read.
//!
//! It names nodes after the source operator that is being imported and notes their origin, computes on constants at once
//! where only bytes move (so that a transposed weight stays a weight), and leaves out operators that change nothing. It
//! knows no file format and never optimises beyond that.

mod attention;
mod einsum;
mod elementwise;
pub mod fixed_point;
mod fourier;
mod indexing;
mod integer_arithmetic;
mod integer_products;
mod integer_softmax;
mod interpolation;
mod linear;
mod movement;
mod normalization;
pub mod positions;
mod quantization;
mod recurrent;
mod reduction;
mod regions;
mod rescaling;
mod sampling;
mod suppression;
mod window;

pub use attention::{Band, Offset};
pub use elementwise::promoted;
pub use fourier::{Complex, LONGEST_TRANSFORM};
pub use integer_arithmetic::{Scaled, nearest};
pub use integer_products::{Centred, Products, Sums};
pub use integer_softmax::operand_of_softmax;
pub use interpolation::Rows;
pub use normalization::{Affine, LocalResponse, Statistics};
pub use quantization::{DynamicallyQuantized, FixedPoint, QuantizedResult, QuantizedType};
pub use recurrent::{RecurrentRun, RecurrentWeights};
pub use regions::RegionPool;
pub use rescaling::{Halves, Stored};
pub use sampling::{SampleMode, SampleRim};
pub use suppression::{Corners, KeptBoxes, Suppression};
pub use window::{PoolWindow, SlidingWindow, ceil_mode_pads};

use mlc_ir::folding;
use mlc_ir::ops::{Binary, Cast, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{
    Attribute, Category, DType, Graph, InterfaceQuantization, Literal, Op, OperatorError, Quantization, Shape,
    TensorType, Value,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Builds a graph, operator by operator of the source.
pub struct Builder {
    graph: Graph,
    source: Arc<str>,
    /// Whether operators of constants are computed at once, where [`folding`] does so early.
    computes_constants: bool,
}

impl Builder {
    /// Starts an empty graph.
    pub fn new(name: &str) -> Self {
        Builder { graph: Graph::new(name), source: "graph".into(), computes_constants: false }
    }

    /// From now on, computes operators of constants at once, by the one rule of [`folding`]: for formats whose files compute
    /// shapes by operators.
    pub fn compute_constants(&mut self) {
        self.computes_constants = true;
    }

    /// Says which source operator the nodes that follow stand for.
    pub fn begin(&mut self, source: &str) {
        self.source = source.into();
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph, without nodes that no output needs. Inputs stay.
    pub fn finish(mut self) -> Graph {
        self.graph.remove_dead();
        self.graph
    }

    /// Appends an input of the graph.
    pub fn input(&mut self, name: &str, ty: TensorType) -> Value {
        self.graph.add_input(name, ty)
    }

    /// Appends an output of the graph.
    pub fn output(&mut self, name: &str, value: Value) {
        self.graph.add_output(name, value);
    }

    /// Says what the integers of the last input stand for.
    pub fn quantize_input(&mut self, quantization: Quantization) {
        let number = self.graph.inputs().len().saturating_sub(1);
        self.graph.quantization.inputs.insert(number, quantization);
    }

    /// Says what the integers of the last output stand for.
    pub fn quantize_output(&mut self, quantization: Quantization) {
        let number = self.graph.outputs().len().saturating_sub(1);
        self.graph.quantization.outputs.insert(number, quantization);
    }

    /// What the integers of inputs and outputs stand for, by their numbers.
    pub fn quantization(&mut self) -> &mut InterfaceQuantization {
        &mut self.graph.quantization
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> &TensorType {
        self.graph.ty(value)
    }

    /// Shape of a value.
    pub fn shape(&self, value: Value) -> Shape {
        self.ty(value).shape.clone()
    }

    /// Data type of a value.
    pub fn dtype(&self, value: Value) -> DType {
        self.ty(value).dtype
    }

    /// Number of axes of a value.
    pub fn rank(&self, value: Value) -> usize {
        self.ty(value).rank()
    }

    /// Adds a constant, named after the source operator and a key of it.
    pub fn constant(&mut self, key: &str, attribute: Attribute) -> Value {
        let name = format!("{}.{key}", self.source);
        self.graph.add_constant(&name, attribute)
    }

    /// Adds a constant that has a name in the model.
    pub fn named_constant(&mut self, name: &str, attribute: Attribute) -> Value {
        self.graph.add_constant(name, attribute)
    }

    /// Adds a number as a constant of rank 0. Integer types truncate it.
    pub fn number(&mut self, dtype: DType, value: f64) -> Value {
        self.literal(Literal::of(dtype, value))
    }

    /// Adds a typed number as a constant of rank 0.
    pub fn literal(&mut self, literal: Literal) -> Value {
        self.constant("number", literal.to_attribute())
    }

    /// Applies an operator that has one result.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    pub fn apply(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Value, OperatorError> {
        Ok(self.apply_all(op, operands)?[0])
    }

    /// Applies an operator that has several results.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    pub fn apply_all(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Vec<Value>, OperatorError> {
        let op = op.into();
        if let Some(values) = self.computed(&op, operands)? {
            let name = self.name_of(&op);
            let constants = values.into_iter().map(|value| self.graph.add_constant(&name, value));
            return Ok(constants.collect());
        }
        self.add(op, operands)
    }

    /// Applies an operator that has one result, and doesn't compute it even of constants.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    fn apply_uncomputed(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Value, OperatorError> {
        Ok(self.add(op.into(), operands)?[0])
    }

    fn add(&mut self, op: Op, operands: &[Value]) -> Result<Vec<Value>, OperatorError> {
        let (name, origins) = (self.name_of(&op), BTreeSet::from([self.source.clone()]));
        let node = self.graph.add_with_origins(op, operands, &name, origins)?;
        let results = self.graph.node(node).results.len() as u32;
        Ok((0..results).map(|slot| Value { node, slot }).collect())
    }

    /// What a node is called.
    fn name_of(&self, op: &Op) -> String {
        // A number of copies and constants surrounds what the source operator is about; that one gets the plain name.
        match op.category() {
            Category::View | Category::Movement | Category::Source => format!("{}.{}", self.source, op.name()),
            Category::Elementwise | Category::Accumulation | Category::Anchor | Category::Control => {
                self.source.to_string()
            }
        }
    }

    /// The results of an operator of constants, when those are to be computed at once.
    fn computed(&self, op: &Op, operands: &[Value]) -> Result<Option<Vec<Attribute>>, OperatorError> {
        let constants: Option<Vec<&Attribute>> = operands.iter().map(|&value| self.graph.constant(value)).collect();
        match constants {
            Some(constants) if self.computes_constants => folding::compute_early(op, &constants),
            _ => Ok(None),
        }
    }

    /// A function of each element.
    ///
    /// # Errors
    /// When the function isn't defined for the data type.
    pub fn unary(&mut self, function: UnaryFunction, x: Value) -> Result<Value, OperatorError> {
        self.apply(Unary { function }, &[x])
    }

    /// A function of the elements of two tensors of one data type, which broadcast.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn binary(&mut self, function: BinaryFunction, x: Value, y: Value) -> Result<Value, OperatorError> {
        self.apply(Binary { function }, &[x, y])
    }

    /// A function of each element and a number, which takes the tensor's data type.
    ///
    /// # Errors
    /// When the function isn't defined for the data type.
    pub fn binary_number(&mut self, function: BinaryFunction, x: Value, number: f64) -> Result<Value, OperatorError> {
        let number = self.number(self.dtype(x), number);
        self.binary(function, x, number)
    }

    /// Converts to a data type, unless the value has it already.
    ///
    /// # Errors
    /// When the value is quantised.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Result<Value, OperatorError> {
        if self.dtype(x) == dtype {
            return Ok(x);
        }
        self.apply(Cast { dtype }, &[x])
    }
}

#[cfg(test)]
mod indexing_tests;
#[cfg(test)]
mod tests;
