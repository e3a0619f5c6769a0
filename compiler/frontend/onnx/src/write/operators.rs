//! Operators that aren't elementwise. Images are channels-first in ONNX: transposes go around what works on them.

use super::Writer;
use super::file::{integers_attribute, list_attribute, word_attribute};
use crate::proto::AttributeProto;
use mlc_ir::ops::{PadMode, ReduceFunction};
use mlc_ir::{Code, NodeId, Op};

/// What a node can't be written for.
type Fault = (Code, String);

/// The axes of an image with its channels behind the batch.
fn channels_first(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

/// The axes of such an image with its channels last.
fn channels_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The spatial axes of weights behind two others.
fn spatial_last(rank: usize, first: [usize; 2]) -> Vec<usize> {
    first.into_iter().chain(0..rank - 2).collect()
}

/// All pads before the axes, then all behind them.
fn pads_of(pads: &[(usize, usize)]) -> Vec<usize> {
    pads.iter().map(|pad| pad.0).chain(pads.iter().map(|pad| pad.1)).collect()
}

impl Writer<'_> {
    /// Writes a node.
    pub(super) fn operator(&mut self, node: NodeId) -> Result<String, Fault> {
        let graph = self.graph;
        let name = graph.node(node).name.to_string();
        let operands = graph.operands(node);
        let (kind, input, attributes): (&str, Vec<String>, Vec<AttributeProto>) = match &graph.node(node).op {
            Op::Convolution(op) => {
                let rank = graph.ty(operands[1]).rank();
                let weights = self.permuted(node, 1, &spatial_last(rank, [rank - 1, rank - 2]))?;
                let attributes = vec![
                    list_attribute("strides", op.strides.iter().copied()),
                    list_attribute("dilations", op.dilations.iter().copied()),
                    list_attribute("pads", pads_of(&op.pads)),
                    integers_attribute("group", op.groups),
                ];
                return self.on_image(node, "Conv", vec![weights], attributes);
            }
            Op::TransposedConvolution(op) => {
                let rank = graph.ty(operands[1]).rank();
                let weights = self.permuted(node, 1, &spatial_last(rank, [rank - 2, rank - 1]))?;
                let attributes = vec![
                    list_attribute("strides", op.strides.iter().copied()),
                    list_attribute("dilations", op.dilations.iter().copied()),
                    list_attribute("pads", pads_of(&op.pads)),
                    list_attribute("output_padding", op.output_pads.iter().copied()),
                    integers_attribute("group", op.groups),
                ];
                return self.on_image(node, "ConvTranspose", vec![weights], attributes);
            }
            Op::MaxPool(op) => {
                let attributes = vec![
                    list_attribute("kernel_shape", op.window.iter().copied()),
                    list_attribute("strides", op.strides.iter().copied()),
                    list_attribute("dilations", op.dilations.iter().copied()),
                    list_attribute("pads", pads_of(&op.pads)),
                ];
                return self.on_image(node, "MaxPool", Vec::new(), attributes);
            }
            Op::AveragePool(op) => {
                let uncounted = op.counted_pads.iter().all(|pad| *pad == (0, 0));
                if !uncounted && op.counted_pads != op.pads {
                    let message = "a pool whose padding counts in part can't be written as ONNX";
                    return Err((Code::VariantUnsupported, message.into()));
                }
                let mut attributes = vec![
                    list_attribute("kernel_shape", op.window.iter().copied()),
                    list_attribute("strides", op.strides.iter().copied()),
                    list_attribute("pads", pads_of(&op.pads)),
                    integers_attribute("count_include_pad", usize::from(!uncounted)),
                ];
                // onnxruntime's pool of integers refuses dilations, even those of 1.
                if op.dilations.iter().any(|&dilation| dilation != 1) {
                    attributes.push(list_attribute("dilations", op.dilations.iter().copied()));
                }
                return self.on_image(node, "AveragePool", Vec::new(), attributes);
            }
            Op::Matmul(op) => {
                let mut input = Vec::new();
                for (place, is_transposed) in [(0, op.transpose_left), (1, op.transpose_right)] {
                    let rank = graph.ty(operands[place]).rank();
                    let mut permutation: Vec<usize> = (0..rank).collect();
                    if is_transposed {
                        permutation.swap(rank - 2, rank - 1);
                    }
                    input.push(self.permuted(node, place, &permutation)?);
                }
                ("MatMul", input, Vec::new())
            }
            Op::Reduce(op) => {
                let kind = match op.function {
                    ReduceFunction::Sum => "ReduceSum",
                    ReduceFunction::Mean => "ReduceMean",
                    ReduceFunction::Maximum => "ReduceMax",
                    ReduceFunction::Minimum => "ReduceMin",
                    ReduceFunction::Product => "ReduceProd",
                    _ => return Err(unsupported("this reduction")),
                };
                let axes: Vec<i64> = op.axes.iter().map(|&axis| axis as i64).collect();
                let input = vec![self.operand(Some(node), operands[0]), self.file.list(&name, "axes", &axes)];
                (kind, input, vec![integers_attribute("keepdims", usize::from(op.keep_axes))])
            }
            Op::Softmax(op) => {
                let kind = if op.logarithm { "LogSoftmax" } else { "Softmax" };
                (kind, vec![self.operand(Some(node), operands[0])], vec![integers_attribute("axis", op.axis)])
            }
            Op::Reshape(op) => {
                let shape: Vec<i64> = op.shape.iter().map(|&extent| extent as i64).collect();
                let input = vec![self.operand(Some(node), operands[0]), self.file.list(&name, "shape", &shape)];
                ("Reshape", input, vec![integers_attribute("allowzero", 1)])
            }
            Op::Broadcast(op) => {
                let shape: Vec<i64> = op.shape.iter().map(|&extent| extent as i64).collect();
                let input = vec![self.operand(Some(node), operands[0]), self.file.list(&name, "shape", &shape)];
                ("Expand", input, Vec::new())
            }
            Op::Transpose(op) => {
                let input = vec![self.operand(Some(node), operands[0])];
                ("Transpose", input, vec![list_attribute("perm", op.permutation.iter().copied())])
            }
            Op::Slice(op) => {
                let starts: Vec<i64> = op.starts.iter().map(|&start| start as i64).collect();
                let end = |((&start, &size), &step): ((&usize, &usize), &i64)| match start as i64 + size as i64 * step {
                    // A negative number would be counted from the end.
                    ..0 => i64::MIN,
                    end => end,
                };
                let ends: Vec<i64> = op.starts.iter().zip(&op.sizes).zip(&op.steps).map(end).collect();
                let axes: Vec<i64> = (0..starts.len() as i64).collect();
                let mut input = vec![self.operand(Some(node), operands[0])];
                for (what, list) in [("starts", &starts), ("ends", &ends), ("axes", &axes), ("steps", &op.steps)] {
                    input.push(self.file.list(&name, what, list));
                }
                ("Slice", input, Vec::new())
            }
            Op::Pad(op) => {
                let mode = match op.mode {
                    PadMode::Constant => "constant",
                    PadMode::Reflect => "reflect",
                    PadMode::Replicate => "edge",
                    PadMode::Circular => "wrap",
                };
                let pads: Vec<i64> = pads_of(&op.pads).into_iter().map(|pad| pad as i64).collect();
                let value = self.file.constant(&format!("{name}.value"), &op.value.to_attribute());
                let input = vec![self.operand(Some(node), operands[0]), self.file.list(&name, "pads", &pads), value];
                ("Pad", input, vec![word_attribute("mode", mode)])
            }
            Op::Concat(op) => {
                let input = operands.iter().map(|&operand| self.operand(Some(node), operand)).collect();
                ("Concat", input, vec![integers_attribute("axis", op.axis)])
            }
            Op::Gather(op) => {
                let input = operands.iter().map(|&operand| self.operand(Some(node), operand)).collect();
                ("Gather", input, vec![integers_attribute("axis", op.axis)])
            }
            other => return Err(unsupported(other.name())),
        };
        Ok(self.file.apply(kind, input, attributes, &name))
    }

    /// Writes an operator whose first operand and result are images, between transposes.
    fn on_image(
        &mut self,
        node: NodeId,
        kind: &str,
        further: Vec<String>,
        attributes: Vec<AttributeProto>,
    ) -> Result<String, Fault> {
        let rank = self.graph.ty(node.into()).rank();
        let name = self.graph.node(node).name.to_string();
        let image = self.permuted(node, 0, &channels_first(rank))?;
        let input = std::iter::once(image).chain(further).collect();
        let result = self.file.apply(kind, input, attributes, &name);
        Ok(self.file.transpose(result, &channels_last(rank)))
    }
}

fn unsupported(what: &str) -> Fault {
    (Code::OperatorUnsupported, format!("{what} can't be written as ONNX"))
}
