//! How far quantised layers and networks are from real ones.

use crate::convert::Conversion;
use crate::kernels::{Operand, Planned};
use crate::layers::Layer;
use crate::model::{Chosen, Model};
use crate::plan::{Plan, quantized, real_numbers};
use crate::report::{Difference, FloatReport, LayerReport, OutputReport, Report, rows};
use mlc_import::builder::{Builder, Scaled};
use mlc_ir::{DType, Diagnostic, Graph, NodeId, Quantization, Tensor, TensorType, Value, evaluate, evaluate_all};
use std::collections::BTreeMap;

/// The results of all nodes of a graph.
type Results = BTreeMap<NodeId, Vec<Tensor>>;

/// A value among results.
fn found(results: &Results, value: Value) -> Option<&Tensor> {
    results.get(&value.node)?.get(value.slot as usize)
}

/// Inputs as a quantised graph takes them.
fn given(conversion: &Conversion, inputs: &[Tensor]) -> Vec<Tensor> {
    let quantization = &conversion.graph.quantization.inputs;
    let given = |(number, input): (usize, &Tensor)| match quantization.get(&number) {
        Some(&quantization) => quantized(input, quantization),
        None => input.clone(),
    };
    inputs.iter().enumerate().map(given).collect()
}

/// An output as the real numbers that it stands for.
fn real_output(conversion: &Conversion, number: usize, output: &Tensor) -> Tensor {
    match conversion.graph.quantization.outputs.get(&number) {
        Some(&quantization) => real_numbers(output, quantization),
        None => output.clone(),
    }
}

/// A layer of integers by itself.
struct Alone {
    graph: Graph,
    result: Quantization,
    /// The operands in the order of its inputs, and what their integers stand for.
    operands: Vec<(Value, Option<Quantization>)>,
}

impl Alone {
    /// `None` where the layer has no form of integers.
    fn new(graph: &Graph, layer: &Layer, plan: &Plan) -> Option<Self> {
        let mut builder = Builder::new("layer");
        builder.compute_constants();
        let (mut operands, mut inputs) = (Vec::new(), Vec::new());
        for &value in &layer.operands {
            let ty = graph.ty(value);
            let quantization = plan.of(value).filter(|_| ty.dtype == DType::F32);
            inputs.push((value, quantization));
            operands.push(match quantization {
                Some(Quantization { scale, zero_point }) => {
                    let integers = builder.input("x", TensorType::new(DType::I8, &ty.shape));
                    Operand::Integers(Scaled { integers, scale: scale.0 as f32, zero_point })
                }
                None => Operand::Plain(builder.input("x", ty.clone())),
            });
        }
        let planned = Planned { graph, layer, plan };
        let value = planned.build(&mut builder, &operands).ok()?;
        builder.output("y", value);
        Some(Alone { graph: builder.finish(), result: planned.result().ok()?, operands: inputs })
    }

    /// Its result for real operands.
    fn run(&self, graph: &Graph, results: &Results) -> Result<Option<Tensor>, Diagnostic> {
        let operand = |(value, quantization): &(Value, Option<Quantization>)| {
            let constant = graph.constant(*value).map(mlc_ir::Attribute::to_tensor);
            let tensor = constant.or_else(|| found(results, *value).cloned())?;
            Some(quantization.map_or(tensor.clone(), |quantization| quantized(&tensor, quantization)))
        };
        let Some(operands) = self.operands.iter().map(operand).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let outputs = evaluate(&self.graph, &operands)?;
        Ok(outputs.first().map(|output| real_numbers(output, self.result)))
    }
}

impl Model<'_> {
    /// The relative error of each output of a choice.
    pub(crate) fn relative_error(&self, chosen: &Chosen, expected: &[Vec<Tensor>]) -> Result<f64, Diagnostic> {
        let mut differences = vec![Difference::default(); self.graph.outputs().len()];
        for (inputs, expected) in self.runs.iter().zip(expected) {
            let outputs = evaluate(&chosen.conversion.graph, &given(&chosen.conversion, inputs))?;
            for (number, (output, expected)) in outputs.iter().zip(expected).enumerate() {
                differences[number].add(&real_output(&chosen.conversion, number, output), expected);
            }
        }
        Ok(differences.iter().map(|difference| difference.error().relative).fold(0.0, f64::max))
    }

    /// What each layer of a choice adds to the error by itself, by the results of the layers.
    pub(crate) fn own_errors(&self, chosen: &Chosen) -> Result<BTreeMap<Value, Difference>, Diagnostic> {
        let alone = self.alone(chosen);
        let mut own = BTreeMap::new();
        for inputs in self.runs {
            let expected = evaluate_all(&self.graph, inputs)?;
            self.add_own(&alone, &expected, &mut own)?;
        }
        Ok(own)
    }

    fn alone(&self, chosen: &Chosen) -> Vec<(Value, Alone)> {
        let layers = self.layers.iter().filter(|layer| chosen.conversion.results.contains_key(&layer.result));
        let alone = layers.filter_map(|layer| Some((layer.result, Alone::new(&self.graph, layer, &chosen.plan)?)));
        alone.collect()
    }

    fn add_own(
        &self,
        alone: &[(Value, Alone)],
        expected: &Results,
        own: &mut BTreeMap<Value, Difference>,
    ) -> Result<(), Diagnostic> {
        for (result, alone) in alone {
            let actual = alone.run(&self.graph, expected)?;
            if let (Some(actual), Some(expected)) = (actual, found(expected, *result)) {
                own.entry(*result).or_default().add(&actual, expected);
            }
        }
        Ok(())
    }

    /// The report on a choice.
    pub(crate) fn report(&self, chosen: &Chosen, float: Vec<FloatReport>) -> Result<Report, Diagnostic> {
        let Chosen { conversion, .. } = chosen;
        let alone = self.alone(chosen);
        let (mut own, mut network): (BTreeMap<Value, Difference>, BTreeMap<Value, Difference>) = Default::default();
        let mut outputs = vec![(Difference::default(), (0, 0)); self.graph.outputs().len()];
        for inputs in self.runs {
            let expected = evaluate_all(&self.graph, inputs)?;
            self.add_own(&alone, &expected, &mut own)?;
            let actual = evaluate_all(&conversion.graph, &given(conversion, inputs))?;
            for (&result, &(value, quantization)) in &conversion.results {
                if let (Some(actual), Some(expected)) = (found(&actual, value), found(&expected, result)) {
                    network.entry(result).or_default().add(&real_numbers(actual, quantization), expected);
                }
            }
            let pairs = conversion.graph.outputs().iter().zip(self.graph.outputs());
            for (number, (new, old)) in pairs.enumerate() {
                if let (Some(actual), Some(expected)) = (found(&actual, new.value), found(&expected, old.value)) {
                    let actual = real_output(conversion, number, actual);
                    let (difference, counts) = &mut outputs[number];
                    difference.add(&actual, expected);
                    let (all, agreeing) = rows(&actual, expected);
                    *counts = (counts.0 + all, counts.1 + agreeing);
                }
            }
        }
        let outputs =
            outputs.into_iter().zip(self.graph.outputs()).map(|((difference, (rows, argmax_agrees)), output)| {
                OutputReport { name: output.name.to_string(), error: difference.error(), rows, argmax_agrees }
            });
        let mut layers: Vec<LayerReport> = self
            .layers
            .iter()
            .filter_map(|layer| {
                let (own, in_network) = (own.get(&layer.result)?.error(), network.get(&layer.result)?.error());
                Some(LayerReport { name: layer.name.to_string(), operator: self.operator(layer), own, in_network })
            })
            .collect();
        layers.sort_by(|one, other| one.own.sqnr_db.total_cmp(&other.own.sqnr_db));
        let (outputs, equalised) = (outputs.collect(), self.equalised);
        Ok(Report { runs: self.runs.len(), equalised, outputs, layers, float })
    }

    /// The outputs of the graph of real numbers, run by run.
    pub(crate) fn expected(&self) -> Result<Vec<Vec<Tensor>>, Diagnostic> {
        self.runs.iter().map(|inputs| evaluate(&self.graph, inputs)).collect()
    }
}
