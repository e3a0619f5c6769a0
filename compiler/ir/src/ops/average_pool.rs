//! `average_pool`: Mean of each window of x [N, spatial…, C]: the sum of its elements over the number of those that count, at least 1.

use super::numbers::{expect_values, indices};
use super::window::{SampleAxis, spatial_shape};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::window::{Window, transposed, without_rows};
use std::ops::Range;

crate::operator_fields! {
    /// Mean of each window of x [N, spatial…, C].
    pub struct AveragePool {
        /// Extent of the window per spatial axis.
        pub window: Vec<usize>,
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Padding, of zeros, before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
        /// The part of the padding, next to the tensor, whose elements count in the divisor.
        pub counted_pads: Vec<(usize, usize)>,
    }
}

impl Operator for AveragePool {
    const NAME: &'static str = "average_pool";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Means
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let rows = window.rows(operands.first()?, self.window[0], 0)?;
        // The divisor of a row doesn't depend on which one it is.
        let is_even = self.counted_pads[0] == self.pads[0];
        let (pads, counted_pads) = (without_rows(&self.pads), without_rows(&self.counted_pads));
        is_even.then(|| (AveragePool { pads, counted_pads, ..self.clone() }, vec![Some(rows)]))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let (read, pads) = window.patch(operands.first()?, *self.window.first()?, rows)?;
        let counted = match self.counted_pads[0] {
            (0, 0) => (0, 0),
            counted if counted == self.pads[0] => pads,
            _ => return None,
        };
        let inner = AveragePool {
            window: transposed(&self.window),
            strides: transposed(&self.strides),
            dilations: transposed(&self.dilations),
            pads: vec![self.pads[1], pads],
            counted_pads: vec![self.counted_pads[1], counted],
        };
        Some((inner, vec![PatchRead::Rows(read)]))
    }

    fn share_of_rows(&self, operands: &[TensorType], rows: usize) -> Option<(Self, f64)> {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let covers = window.covers_rows(operands.first()?, self.window[0], rows);
        let taps = [rows].into_iter().chain(self.window.iter().copied().skip(1)).collect();
        let factor = rows as f64 / self.window[0] as f64;
        covers.then(|| (AveragePool { window: taps, ..self.clone() }, factor))
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let counted = self.counted_pads.len() == self.pads.len()
            && self.counted_pads.iter().zip(&self.pads).all(|(counted, pad)| counted.0 <= pad.0 && counted.1 <= pad.1);
        if !counted {
            return Err(OperatorError::field("counted_pads must not exceed pads"));
        }
        if !x.dtype.is_float() {
            return Err(OperatorError::types(format!("average_pool isn't defined for {}", x.dtype)));
        }
        Ok(vec![window.pooled(x, &self.window)?])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let (values, y) = (x.to_floats(), &results[0].shape);
        let spatial = self.window.len();
        let (extents, channels) = (&x.shape()[1..=spatial], y[spatial + 1]);
        let plane: usize = extents.iter().product();
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let mut means = Vec::with_capacity(results[0].elements());
        for position in indices(&y[..=spatial]) {
            let divisor = self.divisor(&position[1..], extents) as f64;
            let mut row = vec![0.0; channels];
            for (_, source) in window.taps(&position[1..], extents, &self.window) {
                let pixel = &values[(position[0] * plane + source) * channels..][..channels];
                row.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
            }
            means.extend(row.into_iter().map(|sum| sum / divisor));
        }
        Ok(vec![Tensor::from_floats(results[0].clone(), means)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let elements = results[0].elements();
        let additions = count_product(self.window.iter().copied().chain([elements]));
        Work { scalar_operations: additions.saturating_add(elements as u64), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let axes: Vec<SampleAxis> = (0..spatial).map(|_| SampleAxis::random_pool(generator, spatial)).collect();
        let channels = generator.extent();
        let x = spatial_shape(generator.range(1, 2), axes.iter().map(|axis| axis.extent), channels);
        let pads: Vec<(usize, usize)> = axes.iter().map(|axis| axis.pads).collect();
        let counted_pads = match generator.range(0, 2) {
            0 => vec![(0, 0); spatial],
            1 => pads.clone(),
            _ => pads.iter().map(|&(before, after)| (before, generator.range(0, after))).collect(),
        };
        let operator = AveragePool {
            window: axes.iter().map(|axis| axis.window).collect(),
            strides: axes.iter().map(|axis| axis.stride).collect(),
            dilations: axes.iter().map(|axis| axis.dilation).collect(),
            pads,
            counted_pads,
        };
        let dtype = generator.float_dtype();
        (operator, vec![TensorType::new(dtype, x)])
    }
}

impl AveragePool {
    /// How many elements the mean at an output position counts: the window's taps in the tensor and in the counted part of
    /// the padding, at least 1.
    pub fn divisor(&self, position: &[usize], extents: &[usize]) -> usize {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let along = |axis: usize| {
            let low = self.pads[axis].0 - self.counted_pads[axis].0;
            let high = self.pads[axis].0 + extents[axis] + self.counted_pads[axis].1;
            window.tap_range(axis, position[axis] * self.strides[axis], self.window[axis], low..high).len()
        };
        (0..position.len()).map(along).fold(1, usize::saturating_mul).max(1)
    }
}
