//! `convolution`: N-D cross-correlation. x [N, spatial…, C], weights [window…, C / groups, O] give [N, spatial…, O].

use super::numbers::{Number, expect_values, indices, mixed_kinds};
use super::sums::{self, sums_dtype};
use super::window::{SampleAxis, spatial_shape};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::rounding::wrap_integer;
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType};
use super::window::{Window, transposed, without_rows};
use std::ops::Range;

crate::operator_fields! {
    /// N-D cross-correlation.
    pub struct Convolution {
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Elements of the border before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
        /// Groups that split input and output channels; depthwise when equal to C.
        pub groups: usize,
        /// What the border consists of, 0 unless given: the zero point of integers that have one.
        pub border: i64 = 0,
        /// Type of the sums where x and weights are integers of 8 or 16 bits, of types of their own, or `f32` where x is `f32` and the
        /// weights are halves; `none` for sums of the operands' type.
        pub sums: Option<DType> = None,
    }
}

impl Operator for Convolution {
    const NAME: &'static str = "convolution";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x", "weights"]
    }

    fn reads_rows(&self) -> bool {
        self.groups > 1
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Products
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let [x, weights] = operands else { return None };
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let rows = window.rows(x, weights.shape[0], self.border)?;
        let inner = Convolution { pads: without_rows(&self.pads), ..self.clone() };
        Some((inner, vec![Some(rows), None]))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let [x, weights] = operands else { return None };
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let (read, pads) = window.patch(x, weights.shape[0], rows)?;
        let inner = Convolution {
            strides: transposed(&self.strides),
            dilations: transposed(&self.dilations),
            pads: vec![self.pads[1], pads],
            ..self.clone()
        };
        Some((inner, vec![PatchRead::Rows(read), PatchRead::Taps]))
    }

    fn share_of_rows(&self, operands: &[TensorType], rows: usize) -> Option<(Self, f64)> {
        let [x, weights] = operands else { return None };
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        window.covers_rows(x, weights.shape[0], rows).then(|| (self.clone(), 1.0))
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x, weights] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let spatial = window.spatial_rank(x, weights, self.groups)?;
        let (channels, outputs) = (x.shape[spatial + 1], weights.shape[spatial + 1]);
        if weights.shape[spatial].checked_mul(self.groups) != Some(channels) {
            return Err(OperatorError::types(format!(
                "weights {weights} take {} channels in each of {} groups, x {x} has {channels}",
                weights.shape[spatial], self.groups
            )));
        }
        if !outputs.is_multiple_of(self.groups) {
            return Err(OperatorError::types(format!("{outputs} output channels don't split into {} groups", self.groups)));
        }
        let mut shape = Shape::from_slice(&[x.shape[0]]);
        for axis in 0..spatial {
            shape.push(window.output_extent(axis, x.shape[axis + 1], weights.shape[axis])?);
        }
        shape.push(outputs);
        if x.dtype.is_integer() && wrap_integer(x.dtype, self.border) != self.border {
            return Err(OperatorError::field(format!("x {x} can't have a border of {}", self.border)));
        }
        Ok(vec![TensorType::new(sums_dtype(self.sums, x, weights)?, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x, weights] = expect_values(operands)?;
        let values = match (x.values(), weights.values()) {
            (Values::Float(x_values), Values::Float(w)) => {
                Values::Float(self.accumulate(x.shape(), x_values, weights.shape(), w, &results[0].shape))
            }
            (Values::Integer(x_values), Values::Integer(w)) => {
                Values::Integer(self.accumulate(x.shape(), x_values, weights.shape(), w, &results[0].shape))
            }
            _ => return Err(mixed_kinds()),
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let weights = &operands[1].shape;
        let per_element = weights[..weights.len() - 1].iter().copied();
        Work { macs: count_product(per_element.chain([results[0].elements()])), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let axes: Vec<SampleAxis> = (0..spatial).map(|_| SampleAxis::random(generator, spatial)).collect();
        let groups = generator.choose(&[1, 1, 1, 2, 3, 4]);
        let per_group = if generator.one_in(2) { 1 } else { generator.range(1, 3) };
        let outputs = groups * generator.range(1, 4);
        let (x_dtype, weights_dtype, sums) = sums::sample(generator);
        let x = spatial_shape(generator.range(1, 2), axes.iter().map(|axis| axis.extent), groups * per_group);
        let mut weights: Shape = axes.iter().map(|axis| axis.window).collect();
        weights.extend([per_group, outputs]);
        let operator = Convolution {
            strides: axes.iter().map(|axis| axis.stride).collect(),
            dilations: axes.iter().map(|axis| axis.dilation).collect(),
            pads: axes.iter().map(|axis| axis.pads).collect(),
            groups,
            border: if sums.is_some() && generator.one_in(2) { generator.range(1, 5) as i64 } else { 0 },
            sums,
        };
        (operator, vec![TensorType::new(x_dtype, x), TensorType::new(weights_dtype, weights)])
    }
}

impl Convolution {
    /// For each output position and each tap adds x * w for every channel and output of every group. Taps that don't meet the
    /// tensor meet the border.
    fn accumulate<T: Number>(&self, x_shape: &[usize], x: &[T], w_shape: &[usize], w: &[T], y_shape: &[usize]) -> Vec<T> {
        let spatial = x_shape.len() - 2;
        let (extents, taps) = (&x_shape[1..=spatial], &w_shape[..spatial]);
        let (channels, outputs) = (x_shape[spatial + 1], y_shape[spatial + 1]);
        let (group_channels, group_outputs) = (channels / self.groups, outputs / self.groups);
        let plane: usize = extents.iter().product();
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let border = vec![T::of(self.border); channels];
        let window_taps: usize = taps.iter().product();
        let mut y = Vec::with_capacity(y_shape.iter().product());
        for position in indices(&y_shape[..=spatial]) {
            let mut row = vec![T::ZERO; outputs];
            let met = window.taps(&position[1..], extents, taps);
            let inside =
                met.iter().map(|&(tap, source)| (tap, &x[(position[0] * plane + source) * channels..][..channels]));
            let mut pixels: Vec<(usize, &[T])> = inside.collect();
            if self.border != 0 {
                let is_outside = |tap: &usize| met.iter().all(|(number, _)| number != tap);
                pixels.extend((0..window_taps).filter(is_outside).map(|tap| (tap, &border[..])));
                pixels.sort_by_key(|&(tap, _)| tap);
            }
            for (tap, pixel) in pixels {
                let matrix = &w[tap * group_channels * outputs..][..group_channels * outputs];
                for (channel, &value) in pixel.iter().enumerate() {
                    let (group, inner) = (channel / group_channels, channel % group_channels);
                    let first = group * group_outputs;
                    let factors = &matrix[inner * outputs + first..][..group_outputs];
                    for (sum, &factor) in row[first..first + group_outputs].iter_mut().zip(factors) {
                        *sum = sum.add(value.multiply(factor));
                    }
                }
            }
            y.extend(row);
        }
        y
    }
}
