//! Weights and biases as integers.

use mlc_ir::{Attribute, DType, Graph, Op, Tensor, TensorType};

/// Largest magnitude of a weight: the smallest number of 8 bits isn't used, so that no sum of two products leaves 16 bits.
const MOST: f64 = 127.0;

/// Largest magnitude of a bias, with room for the sums.
const MOST_BIAS: f64 = (1 << 29) as f64;

/// Weights as integers of 8 bits without zero points.
#[derive(Debug, Clone)]
pub struct IntegerWeights {
    /// The integers.
    pub integers: Tensor,
    /// One scale, or one for each index of an axis.
    pub scales: Vec<f32>,
    /// That axis.
    axis: Option<usize>,
}

/// The axis of weights along which the channels of the result lie, where each of the result's last axis is one index of it.
pub fn channel_axis(op: &Op, weights: &TensorType) -> Option<usize> {
    let rank = weights.rank();
    match op {
        Op::Convolution(_) => rank.checked_sub(1),
        Op::TransposedConvolution(op) if op.groups == 1 => rank.checked_sub(1),
        Op::Matmul(op) if rank == 2 => Some(usize::from(!op.transpose_right)),
        _ => None,
    }
}

/// The axis of weights along which the channels of the operand lie, where each is one index of it: the axis, and whether every index has
/// weights of its own channel of the result only.
pub fn operand_axis(op: &Op, weights: &TensorType) -> Option<(usize, bool)> {
    let rank = weights.rank();
    match op {
        Op::Convolution(op) if op.groups == 1 => Some((rank.checked_sub(2)?, false)),
        Op::Convolution(op) if weights.shape[rank - 1] == op.groups && weights.shape[rank - 2] == 1 => {
            Some((rank - 1, true))
        }
        Op::Matmul(op) if rank == 2 && !op.transpose_left => Some((usize::from(op.transpose_right), false)),
        _ => None,
    }
}

/// For each element of a tensor, row-major, its index along an axis.
pub fn indices_along(shape: &[usize], axis: usize) -> impl Iterator<Item = usize> + use<> {
    let inner: usize = shape[axis + 1..].iter().product();
    let (extent, elements) = (shape[axis], shape.iter().product::<usize>());
    (0..elements).map(move |place| place / inner.max(1) % extent.max(1))
}

/// The largest magnitude for each index of an axis.
pub fn magnitudes(tensor: &Tensor, axis: usize) -> Vec<f64> {
    let mut magnitudes = vec![0.0; tensor.shape()[axis]];
    for (index, number) in indices_along(tensor.shape(), axis).zip(tensor.to_floats()) {
        magnitudes[index] = number.abs().max(magnitudes[index]);
    }
    magnitudes
}

impl IntegerWeights {
    /// Weights of an operator. Each scale is so large that the bias fits, which is added to sums of products with an operand of scale
    /// `operand`.
    pub fn of(op: &Op, weights: &Attribute, bias: Option<&[f64]>, operand: f64) -> Self {
        let weights = weights.to_tensor();
        let axis = channel_axis(op, weights.ty());
        let numbers = weights.to_floats();
        let largest = match axis {
            Some(axis) => magnitudes(&weights, axis),
            None => vec![numbers.iter().fold(0.0, |largest, number| number.abs().max(largest))],
        };
        let scale = |(index, largest): (usize, &f64)| {
            let bias = bias.map_or(0.0, |bias| match axis {
                Some(_) if bias.len() > 1 => bias[index].abs(),
                _ => bias.iter().fold(0.0, |largest, number| number.abs().max(largest)),
            });
            let scale = (largest / MOST).max(bias / (MOST_BIAS * operand)) as f32;
            if scale < f32::MIN_POSITIVE { 1.0 } else { scale }
        };
        let scales: Vec<f32> = largest.iter().enumerate().map(scale).collect();
        let places: Vec<usize> = match axis {
            Some(axis) => indices_along(weights.shape(), axis).collect(),
            None => vec![0; numbers.len()],
        };
        let integer = |(number, &place): (&f64, &usize)| (number / f64::from(scales[place])).round().clamp(-MOST, MOST);
        let integers = numbers.iter().zip(&places).map(integer).map(|integer| integer as i64).collect();
        let ty = TensorType::new(DType::I8, weights.shape());
        IntegerWeights { integers: Tensor::from_integers(ty, integers), scales, axis }
    }

    /// The real numbers that the integers stand for.
    pub fn real_numbers(&self) -> Tensor {
        let shape = self.integers.shape();
        let places: Vec<usize> = match self.axis {
            Some(axis) => indices_along(shape, axis).collect(),
            None => vec![0; self.integers.ty().elements()],
        };
        let integers = self.integers.to_integers();
        let values =
            integers.iter().zip(places).map(|(&integer, place)| integer as f64 * f64::from(self.scales[place]));
        Tensor::from_floats(TensorType::new(DType::F32, shape), values.collect())
    }
}

/// The numbers of a layer's bias for each channel of its result, with what corrects it.
pub fn bias(graph: &Graph, layer: &crate::layers::Layer, correction: Option<&Vec<f64>>) -> Option<Vec<f64>> {
    let channels = graph.ty(layer.result).shape.last().copied()?;
    let numbers = layer.bias.and_then(|bias| graph.constant(bias)).map(|bias| bias.to_tensor().to_floats());
    let numbers = numbers.map(|numbers| if numbers.len() == 1 { vec![numbers[0]; channels] } else { numbers });
    match (numbers, correction) {
        (Some(numbers), Some(correction)) => {
            Some(numbers.iter().zip(correction).map(|(number, correction)| number + correction).collect())
        }
        (numbers, correction) => numbers.or_else(|| correction.cloned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::ops::Matmul;

    #[test]
    fn each_channel_has_a_scale_of_its_own() {
        let op = Op::from(Matmul { transpose_left: false, transpose_right: true, sums: None });
        let weights = Attribute::from_f32(&[3, 2], &[127.0, -1.0, 0.5, 0.25, 0.0, 0.0]).unwrap();
        let integers = IntegerWeights::of(&op, &weights, None, 1.0);
        assert_eq!(integers.integers.to_integers(), [127, -1, 127, 64, 0, 0]);
        assert_eq!(integers.scales, [1.0, 0.5 / 127.0, 1.0]);
        let real = integers.real_numbers().to_floats();
        assert_eq!((real[0], real[2]), (127.0, 0.5));
        // A bias that is large beside the weights makes their scale larger, so that it has 32 bits.
        let integers = IntegerWeights::of(&op, &weights, Some(&[0.0, 2f64.powi(29), 0.0]), 1.0);
        assert_eq!(integers.scales[1], 1.0);
    }
}
