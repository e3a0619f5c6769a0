//! [`Plan`]: what the integers of each tensor stand for.

use crate::layers::Layer;
use crate::range::{self, Method};
use crate::statistics::Statistics;
use mlc_ir::{Code, Diagnostic, Float, Graph, IntegerForm, Location, Quantization, Tensor, Value, evaluate_all};
use std::collections::{BTreeMap, BTreeSet};

/// What calibration has seen of tensors.
pub type Seen = BTreeMap<Value, Statistics>;

/// What the softmax of integers gives: steps of a 256th from 0 on.
const SOFTMAX: Quantization = Quantization { scale: Float(1.0 / 256.0), zero_point: -128 };

/// What the integers of each tensor stand for, and what is added to biases.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    tensors: BTreeMap<Value, Quantization>,
    /// What makes up for the mean error of rounded weights, for each channel of a layer's result.
    pub corrections: BTreeMap<Value, Vec<f64>>,
}

/// Runs a graph on each input of a list, and sees what the tensors of layers, and its inputs and outputs, are like.
///
/// # Errors
/// What the evaluator says, and when a tensor has numbers that aren't finite.
pub fn calibrate(graph: &Graph, layers: &[Layer], runs: &[Vec<Tensor>]) -> Result<Seen, Diagnostic> {
    let of_layers = layers.iter().flat_map(|layer| layer.operands.iter().copied().chain([layer.result]));
    let outputs = graph.outputs().iter().map(|output| output.value);
    let inputs = graph.inputs().iter().map(|&input| input.into());
    let watched: BTreeSet<Value> =
        of_layers.chain(outputs).chain(inputs).filter(|&value| is_real(graph, value)).collect();
    let mut seen: Seen = watched.iter().map(|&value| (value, Statistics::new())).collect();
    for run in runs {
        let results = evaluate_all(graph, run)?;
        for (value, statistics) in &mut seen {
            let Some(tensor) = results.get(&value.node).and_then(|results| results.get(value.slot as usize)) else {
                continue;
            };
            if !statistics.add(tensor) {
                let node = graph.node(value.node);
                let location = Location::default().at_operator(node.op.name(), &*node.name);
                let message = "the calibration data make numbers here that aren't finite";
                return Err(Diagnostic::error(Code::CalibrationUnfit, location, message));
            }
        }
    }
    Ok(seen)
}

/// Whether a value is one of singles that varies.
pub fn is_real(graph: &Graph, value: Value) -> bool {
    graph.ty(value).dtype == mlc_ir::DType::F32 && graph.constant(value).is_none()
}

impl Plan {
    /// A plan for layers that are computed with integers. Tensors whose elements are moved or joined get one range.
    pub fn new(graph: &Graph, layers: &[&Layer], seen: &Seen, method: Method) -> Plan {
        let mut ranges: BTreeMap<Value, (f64, f64)> =
            seen.iter().map(|(&value, statistics)| (value, method.range(statistics))).collect();
        let mut fixed: BTreeMap<Value, Quantization> = BTreeMap::new();
        let mut shared = Shared::default();
        for layer in layers {
            for &operand in &layer.operands {
                if let Some(range) = constant_range(graph, operand) {
                    ranges.insert(operand, range);
                }
            }
            match layer.form {
                IntegerForm::Softmax => drop(fixed.insert(layer.result, SOFTMAX)),
                IntegerForm::Elements => {
                    for &operand in layer.operands.iter().filter(|operand| ranges.contains_key(operand)) {
                        shared.join(operand, layer.result);
                    }
                }
                _ => {}
            }
        }
        let mut hulls: BTreeMap<Value, (f64, f64)> = BTreeMap::new();
        let mut fixed_of: BTreeMap<Value, Quantization> = BTreeMap::new();
        for (&value, &(low, high)) in &ranges {
            let hull = hulls.entry(shared.root(value)).or_insert((low, high));
            *hull = (hull.0.min(low), hull.1.max(high));
        }
        for (value, quantization) in fixed {
            fixed_of.insert(shared.root(value), quantization);
        }
        let of = |value: Value| {
            let root = shared.root(value);
            fixed_of.get(&root).copied().unwrap_or_else(|| range::quantization(hulls[&root]))
        };
        Plan { tensors: ranges.keys().map(|&value| (value, of(value))).collect(), corrections: BTreeMap::new() }
    }

    /// What the integers of a tensor stand for.
    pub fn of(&self, value: Value) -> Option<Quantization> {
        self.tensors.get(&value).copied()
    }
}

/// The extremes of a constant of singles.
fn constant_range(graph: &Graph, value: Value) -> Option<(f64, f64)> {
    let constant = graph.constant(value).filter(|constant| constant.ty().dtype == mlc_ir::DType::F32)?;
    let numbers = constant.to_tensor().to_floats();
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (low.is_finite() && high.is_finite()).then_some((low, high))
}

/// Tensors that have one scale.
#[derive(Default)]
struct Shared(BTreeMap<Value, Value>);

impl Shared {
    /// One of them that stands for all.
    fn root(&self, value: Value) -> Value {
        let mut root = value;
        while let Some(&parent) = self.0.get(&root) {
            root = parent;
        }
        root
    }

    fn join(&mut self, one: Value, other: Value) {
        let (one, other) = (self.root(one), self.root(other));
        if one != other {
            self.0.insert(one, other);
        }
    }
}

/// The integers of 8 bits of real numbers, as the quantised graph makes them of its inputs.
pub fn quantized(tensor: &Tensor, quantization: Quantization) -> Tensor {
    let (scale, zero_point) = (quantization.scale.0 as f32, quantization.zero_point as f32);
    let integer = |number: f64| {
        let rounded = (number as f32 / scale).round_ties_even() + zero_point;
        rounded.clamp(i8::MIN.into(), i8::MAX.into()) as i64
    };
    let values = tensor.to_floats().into_iter().map(integer).collect();
    Tensor::from_integers(mlc_ir::TensorType::new(mlc_ir::DType::I8, tensor.shape()), values)
}

/// The real numbers that integers stand for.
pub fn real_numbers(tensor: &Tensor, quantization: Quantization) -> Tensor {
    let Quantization { scale, zero_point } = quantization;
    let values = tensor.to_integers().into_iter().map(|integer| scale.0 * (integer - zero_point) as f64).collect();
    Tensor::from_floats(mlc_ir::TensorType::new(mlc_ir::DType::F32, tensor.shape()), values)
}
