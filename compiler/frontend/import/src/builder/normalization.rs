//! Normalisations of channels-first tensors. Those with stored statistics become one factor and one term per channel,
//! computed in double precision.

use super::Builder;
use mlc_ir::ops::{AveragePool, Normalize};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, DType, Float, OperatorError, Tensor, TensorType, Value};

/// Factor and term of a normalisation, where they are there.
#[derive(Debug, Clone, Copy)]
pub struct Affine {
    /// The factor.
    pub weight: Option<Value>,
    /// The term.
    pub bias: Option<Value>,
}

/// Mean and variance that a model has stored.
#[derive(Debug, Clone, Copy)]
pub struct Statistics {
    /// The mean.
    pub mean: Value,
    /// The variance.
    pub variance: Value,
    /// Added to the variance.
    pub epsilon: f64,
}

/// x / (bias + alpha * mean of the squares of neighbouring channels)^beta
#[derive(Debug, Clone, Copy)]
pub struct LocalResponse {
    /// The axis of channels.
    pub axis: usize,
    /// Channels before and after that count as neighbours.
    pub neighbours: (usize, usize),
    /// Factor of the mean.
    pub alpha: f64,
    /// Exponent.
    pub beta: f64,
    /// Term beside the mean.
    pub bias: f64,
}

impl Builder {
    /// Reshapes a tensor [C] so that it broadcasts along axis 1 of a tensor of this rank.
    ///
    /// # Errors
    /// When the rank is too small.
    pub fn per_channel(&mut self, value: Value, rank: usize) -> Result<Value, OperatorError> {
        let channels = self.ty(value).elements();
        let mut shape = vec![1; rank.saturating_sub(1)];
        if let Some(first) = shape.first_mut() {
            *first = channels;
        }
        self.reshape(value, &shape)
    }

    /// Multiplies and adds per channel, axis 1.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn apply_affine(&mut self, x: Value, affine: Affine) -> Result<Value, OperatorError> {
        let rank = self.rank(x);
        let weight = affine.weight.map(|weight| self.per_channel(weight, rank)).transpose()?;
        let bias = affine.bias.map(|bias| self.per_channel(bias, rank)).transpose()?;
        let scaled = self.multiply_optional(x, weight)?;
        self.add_optional(scaled, bias)
    }

    /// (x - mean) / sqrt(variance + epsilon) * weight + bias, per channel of x [N, C, spatial…].
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn stored_statistics(
        &mut self,
        x: Value,
        statistics: Statistics,
        affine: Affine,
    ) -> Result<Value, OperatorError> {
        let Statistics { mean, variance, epsilon } = statistics;
        if self.rank(x) < 2 {
            return Err(OperatorError::types(format!("the input {} has no channel axis", self.ty(x))));
        }
        let channels = self.shape(x)[1];
        let parts = [Some(mean), Some(variance), affine.weight, affine.bias];
        if let Some(&wrong) = parts.iter().flatten().find(|&&part| self.ty(part).elements() != channels) {
            let (found, x) = (self.ty(wrong), self.ty(x));
            return Err(OperatorError::types(format!("a statistic or weight {found} doesn't fit the channels of {x}")));
        }
        if let Some(folded) = self.folded_statistics(x, statistics, affine) {
            return self.apply_affine(x, folded);
        }
        let rank = self.rank(x);
        let (mean, variance) = (self.per_channel(mean, rank)?, self.per_channel(variance, rank)?);
        let centred = self.binary(BinaryFunction::Subtract, x, mean)?;
        let sum = self.binary_number(BinaryFunction::Add, variance, epsilon)?;
        let factor = self.unary(UnaryFunction::Rsqrt, sum)?;
        let scaled = self.binary(BinaryFunction::Multiply, centred, factor)?;
        self.apply_affine(scaled, affine)
    }

    /// Factor and term that stand for statistics and an affine map, when all of them are constants.
    fn folded_statistics(&mut self, x: Value, statistics: Statistics, affine: Affine) -> Option<Affine> {
        let channels = self.shape(x)[1];
        let constant = |value: Option<Value>, default: f64| match value {
            Some(value) => self.graph.constant(value).map(|value| value.to_tensor().to_floats()),
            None => Some(vec![default; channels]),
        };
        let (weight, bias) = (constant(affine.weight, 1.0)?, constant(affine.bias, 0.0)?);
        let (mean, variance) = (constant(Some(statistics.mean), 0.0)?, constant(Some(statistics.variance), 1.0)?);
        let deviations = variance.iter().map(|variance| (variance + statistics.epsilon).sqrt());
        let scale: Vec<f64> = weight.iter().zip(deviations).map(|(weight, deviation)| weight / deviation).collect();
        let shift = bias.iter().zip(&mean).zip(&scale).map(|((bias, mean), scale)| bias - mean * scale).collect();
        let scale = self.float_constant("scale", x, scale);
        let shift = self.float_constant("shift", x, shift);
        Some(Affine { weight: Some(scale), bias: Some(shift) })
    }

    /// A constant of one axis, of the data type of `x`.
    fn float_constant(&mut self, key: &str, x: Value, values: Vec<f64>) -> Value {
        let dtype = self.dtype(x);
        let dtype = if dtype.is_float() { dtype } else { DType::F32 };
        let ty = TensorType::new(dtype, [values.len()]);
        self.constant(key, Attribute::from_tensor(&Tensor::from_floats(ty, values)))
    }

    /// Normalises over axes.
    ///
    /// # Errors
    /// When the axes aren't there or aren't ascending.
    pub fn normalize(
        &mut self,
        x: Value,
        axes: Vec<usize>,
        epsilon: f64,
        center: bool,
    ) -> Result<Value, OperatorError> {
        self.apply(Normalize { axes, epsilon: Float(epsilon), center }, &[x])
    }

    /// Normalises x [N, C, spatial…] over the channels of each group and all positions; without groups, over the positions.
    ///
    /// # Errors
    /// When the channels don't split into the groups.
    pub fn normalize_groups(&mut self, x: Value, groups: Option<usize>, epsilon: f64) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let fits = shape.len() >= 2 && groups.is_none_or(|groups| groups > 0 && shape[1].is_multiple_of(groups));
        if !fits {
            let ty = self.ty(x);
            return Err(OperatorError::types(format!(
                "the channels of the input {ty} don't split into {groups:?} groups"
            )));
        }
        let Some(groups) = groups else {
            return self.normalize(x, (2..shape.len()).collect(), epsilon, true);
        };
        let mut split = vec![shape[0], groups, shape[1] / groups];
        split.extend_from_slice(&shape[2..]);
        let axes = (2..split.len()).collect();
        let x = self.reshape(x, &split)?;
        let y = self.normalize(x, axes, epsilon, true)?;
        self.reshape(y, &shape)
    }

    /// Local response normalisation, with zeros beyond the channels.
    ///
    /// # Errors
    /// When there is no such axis.
    pub fn local_response(&mut self, x: Value, response: LocalResponse) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let Some(&channels) = shape.get(response.axis) else {
            return Err(OperatorError::types(format!("the input {} has no channel axis", self.ty(x))));
        };
        let squares = self.unary(UnaryFunction::Square, x)?;
        // A pool along the channels: [before, C, behind] is a channels-last tensor whose spatial axis is C.
        let [before, behind] =
            [&shape[..response.axis], &shape[response.axis + 1..]].map(|part| part.iter().product::<usize>());
        let flat = self.reshape(squares, &[before, channels, behind])?;
        let pads = vec![response.neighbours];
        let window = vec![response.neighbours.0 + 1 + response.neighbours.1];
        let pool = AveragePool { window, strides: vec![1], dilations: vec![1], counted_pads: pads.clone(), pads };
        let mean = self.apply(pool, &[flat])?;
        let mean = self.reshape(mean, &shape)?;
        let scaled = self.binary_number(BinaryFunction::Multiply, mean, response.alpha)?;
        let sum = self.binary_number(BinaryFunction::Add, scaled, response.bias)?;
        let power = self.binary_number(BinaryFunction::Power, sum, response.beta)?;
        self.binary(BinaryFunction::Divide, x, power)
    }
}
