//! [`write()`]: a graph as an ONNX model, with pairs of `QuantizeLinear` and `DequantizeLinear` behind tensors that are integers elsewhere.

mod elementwise;
mod file;
mod operators;

use crate::proto::{GraphProto, ModelProto, OperatorSetIdProto};
use file::{File, integers_attribute};
use mlc_ir::{Attribute, Category, Code, DType, Diagnostic, Graph, Location, NodeId, Quantization, TensorType, Value};
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};

/// Version of the standard operators that files use.
const OPSET: i64 = 19;

/// Version of the file format that goes with it.
const IR_VERSION: i64 = 9;

/// A constant that is stored as integers: `scale * integer`, with one scale or one for each index of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegerConstant {
    /// The integers.
    pub integers: Attribute,
    /// Their scales.
    pub scales: Vec<f32>,
    /// The axis along which there are several.
    pub axis: usize,
}

/// What of a graph is computed with integers.
#[derive(Debug, Clone, Default)]
pub struct Integers {
    /// Nodes whose operands and results are integers, as far as these are among `tensors`.
    pub nodes: BTreeSet<NodeId>,
    /// Tensors that are integers, of 8 bits.
    pub tensors: BTreeMap<Value, Quantization>,
    /// Constants by the node that reads them and the number of the operand.
    pub constants: BTreeMap<(NodeId, usize), IntegerConstant>,
    /// What is added to a result along its last axis, besides what the graph says.
    pub added: BTreeMap<Value, IntegerConstant>,
}

/// The bytes of a model's file.
///
/// # Errors
/// `MLC0201` for each operator that can't be written, `MLC0202` for one that can't in this form.
pub fn write(graph: &Graph, integers: &Integers) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut writer = Writer::new(graph, integers);
    let mut faults = Vec::new();
    for node in graph.topological_order() {
        if let Err(fault) = writer.node(node) {
            faults.push(fault);
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let outputs = graph.outputs().iter().map(|output| {
        let name = writer.operand(None, output.value);
        writer.file.named("Identity", vec![name], Vec::new(), &output.name);
        file::declaration(&output.name, graph.ty(output.value))
    });
    let output = outputs.collect();
    let inputs = graph.inputs().iter();
    let input = inputs.map(|&node| file::declaration(&graph.node(node).name, graph.ty(node.into()))).collect();
    let model = ModelProto {
        ir_version: IR_VERSION,
        producer_name: "mlc".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        graph: Some(GraphProto {
            node: writer.file.nodes,
            name: graph.name.clone(),
            initializer: writer.file.constants,
            input,
            output,
            ..GraphProto::default()
        }),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: OPSET }],
        ..ModelProto::default()
    };
    Ok(model.encode_to_vec())
}

/// A graph while it is written.
struct Writer<'a> {
    graph: &'a Graph,
    integers: &'a Integers,
    file: File,
    /// Names of values as they are computed.
    names: BTreeMap<Value, String>,
    /// Names of what is left of them as integers.
    dequantized: BTreeMap<Value, String>,
}

impl<'a> Writer<'a> {
    fn new(graph: &'a Graph, integers: &'a Integers) -> Self {
        let inputs = graph.inputs().iter().map(|&input| graph.node(input).name.to_string());
        let outputs = graph.outputs().iter().map(|output| output.name.to_string());
        let file = File::new(inputs.chain(outputs));
        Writer { graph, integers, file, names: BTreeMap::new(), dequantized: BTreeMap::new() }
    }

    /// Writes a node, and what makes integers of its results.
    fn node(&mut self, node: NodeId) -> Result<(), Diagnostic> {
        let written = self.graph.node(node);
        if written.op.category() == Category::Source {
            if self.graph.constant(node.into()).is_none() {
                self.names.insert(node.into(), written.name.to_string());
                self.quantize(node.into());
            }
            return Ok(());
        }
        let name = self.write(node).map_err(|(code, message)| {
            Diagnostic::error(code, Location::default().at_operator(written.op.name(), &*written.name), message)
        })?;
        let value = Value::from(node);
        let name = match self.integers.added.get(&value) {
            Some(constant) => {
                let added = self.integer_constant(&format!("{name}.added"), constant);
                self.file.apply("Add", vec![name, added], Vec::new(), &written.name)
            }
            None => name,
        };
        self.names.insert(value, name);
        self.quantize(value);
        Ok(())
    }

    /// The name of a node's result, once it is written; or why it can't be.
    fn write(&mut self, node: NodeId) -> Result<String, (Code, String)> {
        if self.graph.node(node).results.len() != 1 {
            let name = self.graph.node(node).op.name();
            return Err((
                Code::OperatorUnsupported,
                format!("{name} can't be written as ONNX: it has several results"),
            ));
        }
        let types = self.graph.operand_types(node);
        match self.graph.node(node).op.expression(&types) {
            Some(expression) => self.elementwise(node, &expression, &types),
            None => self.operator(node),
        }
    }

    /// Writes the pair behind a value that is integers.
    fn quantize(&mut self, value: Value) {
        let Some(&Quantization { scale, zero_point }) = self.integers.tensors.get(&value) else { return };
        let Some(name) = self.names.get(&value).cloned() else { return };
        let scale = self.file.number(&name, "scale", DType::F32, scale.0);
        let zero_point = self.file.number(&name, "zero_point", DType::I8, zero_point as f64);
        let operands = vec![name.clone(), scale.clone(), zero_point.clone()];
        let integers = self.file.apply("QuantizeLinear", operands, Vec::new(), &format!("{name}.quantized"));
        let operands = vec![integers, scale, zero_point];
        let real = self.file.apply("DequantizeLinear", operands, Vec::new(), &format!("{name}.dequantized"));
        self.dequantized.insert(value, real);
    }

    /// The name of a value as a node reads it, `None` for the outputs of the graph. Constants are written anew for each.
    fn operand(&mut self, reader: Option<NodeId>, value: Value) -> String {
        if let Some(constant) = self.graph.constant(value) {
            let name = self.graph.node(value.node).name.to_string();
            return self.file.constant(&name, constant);
        }
        let is_integers = |node: &NodeId| self.integers.nodes.contains(node);
        let reads_integers = reader.as_ref().is_some_and(is_integers) || is_integers(&value.node);
        let dequantized = self.dequantized.get(&value).filter(|_| reads_integers);
        dequantized.or(self.names.get(&value)).cloned().unwrap_or_default()
    }

    /// The name of an operand of a node with its axes permuted.
    fn permuted(&mut self, node: NodeId, place: usize, permutation: &[usize]) -> Result<String, (Code, String)> {
        let value = self.graph.operands(node)[place];
        let name = self.graph.node(value.node).name.to_string();
        let fault = |error: mlc_ir::AttributeError| (Code::ParameterInvalid, error.to_string());
        if let Some(constant) = self.integers.constants.get(&(node, place)) {
            let axis = permutation.iter().position(|&axis| axis == constant.axis).unwrap_or(constant.axis);
            let integers = constant.integers.transpose(permutation).map_err(fault)?;
            let constant = IntegerConstant { integers, axis, scales: constant.scales.clone() };
            return Ok(self.integer_constant(&name, &constant));
        }
        if let Some(constant) = self.graph.constant(value) {
            let moved = constant.transpose(permutation).map_err(fault)?;
            return Ok(self.file.constant(&name, &moved));
        }
        let operand = self.operand(Some(node), value);
        Ok(self.file.transpose(operand, permutation))
    }

    /// Writes integers, and what makes real numbers of them.
    fn integer_constant(&mut self, name: &str, constant: &IntegerConstant) -> String {
        let integers = self.file.constant(name, &constant.integers);
        let single = constant.scales.len() == 1;
        let bytes: Vec<u8> = constant.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let shape: &[usize] = if single { &[] } else { &[constant.scales.len()] };
        let scales = Attribute::new(TensorType::new(DType::F32, shape), bytes);
        let scales = scales.map(|scales| self.file.constant(&format!("{name}.scale"), &scales)).unwrap_or_default();
        let axis = if single { Vec::new() } else { vec![integers_attribute("axis", constant.axis)] };
        self.file.apply("DequantizeLinear", vec![integers, scales], axis, &format!("{name}.dequantized"))
    }
}

#[cfg(test)]
mod tests;
