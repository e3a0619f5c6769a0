//! [`convert`]: the graph with layers of integers in the place of those of real numbers.

use crate::kernels::{Operand, Planned};
use crate::layers::Layer;
use crate::plan::{Plan, is_real};
use mlc_import::Fault;
use mlc_import::builder::{Builder, QuantizedType, Scaled};
use mlc_ir::{Category, DType, Graph, Literal, NodeId, OperatorError, Quantization, TensorType, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the model's inputs and outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interface {
    /// Real numbers, from which integers are made inside.
    #[default]
    Float,
    /// Integers of 8 bits, whose scales and zero points the graph says.
    Integers,
}

/// A graph of integers.
#[derive(Debug, Clone)]
pub struct Conversion {
    /// The graph.
    pub graph: Graph,
    /// Where the results of layers are in it, by the results of the layers, and what their integers stand for.
    pub results: BTreeMap<Value, (Value, Quantization)>,
    /// Layers that have no form of integers after all, by their results, and why.
    pub refused: Vec<(Value, Fault)>,
}

/// What is known of a value of the old graph in the new one.
#[derive(Clone, Copy, Default)]
struct Held {
    plain: Option<Value>,
    integers: Option<Scaled>,
}

struct Converter<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    builder: Builder,
    held: BTreeMap<Value, Held>,
    /// From which number of a node on nodes stand for these source operators.
    origins: Vec<(usize, BTreeSet<Arc<str>>)>,
}

/// Makes a graph whose layers are those of integers; what is between them and anything else is quantised and dequantised.
///
/// # Errors
/// When an operator doesn't accept its operands any more, which is a defect.
pub fn convert(
    graph: &Graph,
    layers: &[&Layer],
    plan: &Plan,
    interface: Interface,
) -> Result<Conversion, OperatorError> {
    let mut builder = Builder::new(&graph.name);
    builder.compute_constants();
    let mut converter = Converter { graph, plan, builder, held: BTreeMap::new(), origins: Vec::new() };
    converter.inputs(interface);
    let last: BTreeMap<NodeId, &Layer> = layers.iter().map(|&layer| (layer.result.node, layer)).collect();
    let inner: BTreeSet<NodeId> = layers.iter().flat_map(|layer| layer.nodes.iter().copied()).collect();
    let (mut results, mut refused) = (BTreeMap::new(), Vec::new());
    for node in graph.topological_order() {
        match last.get(&node) {
            Some(layer) => match converter.layer(layer) {
                Ok((value, quantization)) => drop(results.insert(layer.result, (value, quantization))),
                Err(fault) => {
                    refused.push((layer.result, fault));
                    layer.nodes.iter().try_for_each(|&node| converter.copy(node))?;
                }
            },
            None if inner.contains(&node) => {}
            None => converter.copy(node)?,
        }
    }
    converter.outputs(interface)?;
    let graph = converter.finish();
    Ok(Conversion { graph, results, refused })
}

impl Converter<'_> {
    /// Notes which source operators the nodes that follow stand for, and what they are named after.
    fn begin(&mut self, name: &str, nodes: &[NodeId]) {
        let origins = nodes.iter().flat_map(|&node| self.graph.node(node).origins.iter().cloned()).collect();
        self.origins.push((self.builder.graph().len(), origins));
        self.builder.begin(name);
    }

    fn inputs(&mut self, interface: Interface) {
        let open = self.graph.open_inputs();
        for (number, &input) in self.graph.inputs().iter().enumerate() {
            let (name, ty) = (&self.graph.node(input).name, self.graph.ty(input.into()));
            let planned = self.plan.of(input.into()).filter(|_| ty.dtype == DType::F32 && open.contains(&number));
            let held = match planned.filter(|_| interface == Interface::Integers) {
                Some(quantization) => {
                    let integers = self.builder.input(name, TensorType::new(DType::I8, &ty.shape));
                    self.builder.quantize_input(quantization);
                    Held { plain: None, integers: Some(scaled(integers, quantization)) }
                }
                None => Held { plain: Some(self.builder.input(name, ty.clone())), integers: None },
            };
            self.held.insert(input.into(), held);
        }
    }

    fn outputs(&mut self, interface: Interface) -> Result<(), OperatorError> {
        let open = self.graph.open_outputs();
        for (number, output) in self.graph.outputs().iter().enumerate() {
            let planned = self.plan.of(output.value).filter(|_| open.contains(&number));
            self.begin(&output.name, &[output.value.node]);
            if planned.is_some() && interface == Interface::Integers {
                let integers = self.integers(output.value).map_err(|fault| OperatorError::types(fault.message))?;
                self.builder.output(&output.name, integers.integers);
                let Scaled { scale, zero_point, .. } = integers;
                self.builder.quantize_output(Quantization { scale: mlc_ir::Float(scale.into()), zero_point });
            } else {
                let plain = self.plain(output.value)?;
                self.builder.output(&output.name, plain);
            }
        }
        Ok(())
    }

    /// The value as it is in the old graph.
    fn plain(&mut self, value: Value) -> Result<Value, OperatorError> {
        let held = self.held.get(&value).copied().unwrap_or_default();
        let plain = match held {
            Held { plain: Some(plain), .. } => return Ok(plain),
            Held { integers: Some(Scaled { integers, scale, zero_point }), .. } => {
                let scale = self.builder.number(DType::F32, scale.into());
                let zero_point = self.builder.literal(Literal::integer(DType::I8, zero_point));
                let real = self.builder.dequantize(integers, scale, Some(zero_point), DType::F32);
                real.map_err(|fault| OperatorError::types(fault.message))?
            }
            Held { plain: None, integers: None } => match self.graph.constant(value) {
                Some(constant) => {
                    self.builder.named_constant(&self.graph.node(value.node).name.clone(), constant.clone())
                }
                None => return Err(OperatorError::types("a value is used before it is computed")),
            },
        };
        self.held.entry(value).or_default().plain = Some(plain);
        Ok(plain)
    }

    /// The integers that stand for a value of singles.
    fn integers(&mut self, value: Value) -> Result<Scaled, Fault> {
        if let Some(integers) = self.held.get(&value).and_then(|held| held.integers) {
            return Ok(integers);
        }
        let found = self.plan.of(value);
        let quantization = found.ok_or_else(|| Fault::operands("calibration hasn't seen an operand"))?;
        let plain = self.plain(value)?;
        let scale = self.builder.number(DType::F32, quantization.scale.0);
        let zero_point = self.builder.literal(Literal::integer(DType::I8, quantization.zero_point));
        let integers = self.builder.quantize(plain, scale, Some(zero_point), QuantizedType::from(DType::I8))?;
        let scaled = scaled(integers, quantization);
        self.held.entry(value).or_default().integers = Some(scaled);
        Ok(scaled)
    }

    /// Builds a layer of integers.
    fn layer(&mut self, layer: &Layer) -> Result<(Value, Quantization), Fault> {
        self.begin(&layer.name, &layer.nodes);
        let mut operands = Vec::new();
        for &operand in &layer.operands {
            let is_single = is_real(self.graph, operand) || self.plan.of(operand).is_some();
            operands.push(if is_single {
                Operand::Integers(self.integers(operand)?)
            } else {
                Operand::Plain(self.plain(operand)?)
            });
        }
        let planned = Planned { graph: self.graph, layer, plan: self.plan };
        let value = planned.build(&mut self.builder, &operands)?;
        if self.builder.ty(value).shape != self.graph.ty(layer.result).shape {
            return Err(Fault::operands("the integers' result would have another shape"));
        }
        let quantization = planned.result()?;
        self.held.insert(layer.result, Held { plain: None, integers: Some(scaled(value, quantization)) });
        Ok((value, quantization))
    }

    /// Copies a node of anything but integers for real numbers.
    fn copy(&mut self, node: NodeId) -> Result<(), OperatorError> {
        let old = self.graph.node(node);
        if old.op.category() == Category::Source {
            return Ok(());
        }
        let operands = self.graph.operands(node).into_iter().map(|operand| self.plain(operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        // The builder puts the operator's name behind what only moves.
        let name = old.name.strip_suffix(&format!(".{}", old.op.name())).unwrap_or(&old.name);
        self.begin(name, &[node]);
        let results = self.builder.apply_all(old.op.clone(), &operands)?;
        for (slot, value) in results.into_iter().enumerate() {
            let held = Held { plain: Some(value), integers: None };
            self.held.insert(Value { node, slot: slot as u32 }, held);
        }
        Ok(())
    }

    fn finish(self) -> Graph {
        let mut graph = self.builder.finish();
        graph.states.clone_from(&self.graph.states);
        let nodes: Vec<NodeId> = graph.node_ids().collect();
        for node in nodes {
            let number = self.origins.partition_point(|(first, _)| *first <= node.index());
            if let Some((_, origins)) = number.checked_sub(1).map(|number| &self.origins[number]) {
                graph.origins_mut(node).clone_from(origins);
            }
        }
        graph
    }
}

fn scaled(integers: Value, quantization: Quantization) -> Scaled {
    Scaled { integers, scale: quantization.scale.0 as f32, zero_point: quantization.zero_point }
}
