//! [`corrections`]: what rounding weights changes in the mean, which biases make up for.

use crate::layers::Layer;
use crate::plan::{Plan, Seen};
use crate::weights::{self, IntegerWeights};
use mlc_ir::{DType, Graph, IntegerForm, OperatorError, Tensor, TensorType, Value};
use std::collections::BTreeMap;

/// For each layer of products by known weights what has to be added to its bias, by its result. A sum of products is linear: the mean of
/// what rounding changes is the product of the mean operand and the change of the weights, borders included.
///
/// # Errors
/// When an operator doesn't accept its weights, which is a defect.
pub fn corrections(
    graph: &Graph,
    layers: &[&Layer],
    plan: &Plan,
    seen: &Seen,
) -> Result<BTreeMap<Value, Vec<f64>>, OperatorError> {
    let mut corrections = BTreeMap::new();
    for layer in layers.iter().filter(|layer| layer.form == IntegerForm::Products) {
        let node = graph.node(layer.nodes[0]);
        let known = layer.weights.and_then(|weights| graph.constant(weights));
        let statistics = layer.operands.first().and_then(|x| Some((seen.get(x)?, plan.of(*x)?, graph.ty(*x))));
        let (Some(constant), Some((statistics, quantization, ty))) = (known, statistics) else { continue };
        let bias = weights::bias(graph, layer, None);
        let rounded = IntegerWeights::of(&node.op, constant, bias.as_deref(), quantization.scale.0).real_numbers();
        let exact = constant.to_tensor().to_floats();
        let change = exact.iter().zip(rounded.to_floats()).map(|(exact, rounded)| exact - rounded).collect();
        let change = Tensor::from_floats(TensorType::new(DType::F32, rounded.shape()), change);
        let mean = Tensor::from_floats(ty.clone(), statistics.mean());
        let lost = node.op.evaluate(&[&mean, &change], &node.results)?;
        let channels = node.results[0].shape.last().copied().unwrap_or(1).max(1);
        let mut sums = vec![0.0; channels];
        let numbers = lost[0].to_floats();
        for (place, number) in numbers.iter().enumerate() {
            sums[place % channels] += number;
        }
        let each = (numbers.len() / channels).max(1) as f64;
        corrections.insert(layer.result, sums.into_iter().map(|sum| sum / each).collect());
    }
    Ok(corrections)
}
