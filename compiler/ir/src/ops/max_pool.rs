//! `max_pool`: Largest element of each window of x [N, spatial…, C]; padding is never chosen, NaN always.

use super::numbers::{Number, expect_values, indices, lowest_integer, order_key};
use super::window::{SampleAxis, spatial_shape};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::window::{Window, transposed};
use std::ops::Range;

crate::operator_fields! {
    /// Largest element of each window of x [N, spatial…, C]; padding is never chosen, NaN always.
    pub struct MaxPool {
        /// Extent of the window per spatial axis.
        pub window: Vec<usize>,
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Padding before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
    }
}

impl Operator for MaxPool {
    const NAME: &'static str = "max_pool";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Elements
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let rows = window.rows(operands.first()?, self.window[0], 0)?;
        // No element that stands for padding is the least of all types.
        (self.pads[0] == (0, 0)).then(|| (self.clone(), vec![Some(rows)]))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let (read, pads) = window.patch(operands.first()?, *self.window.first()?, rows)?;
        let inner = MaxPool {
            window: transposed(&self.window),
            strides: transposed(&self.strides),
            dilations: transposed(&self.dilations),
            pads: vec![self.pads[1], pads],
        };
        Some((inner, vec![PatchRead::Rows(read)]))
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        Ok(vec![window.pooled(x, &self.window)?])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let values = match x.values() {
            Values::Float(values) => Values::Float(self.largest(x.shape(), values, &results[0].shape, |value| value)),
            Values::Integer(values) => {
                let dtype = x.ty().dtype;
                let keys: Vec<i64> = values.iter().map(|&value| order_key(dtype, value)).collect();
                let lowest = lowest_integer(dtype);
                let largest = self.largest(x.shape(), &keys, &results[0].shape, |key| key.max(order_key(dtype, lowest)));
                Values::Integer(largest.into_iter().map(|key| order_key(dtype, key)).collect())
            }
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let comparisons = count_product(self.window.iter().copied().chain([results[0].elements()]));
        Work { scalar_operations: comparisons, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let axes: Vec<SampleAxis> = (0..spatial).map(|_| SampleAxis::random_pool(generator, spatial)).collect();
        let channels = generator.extent();
        let x = spatial_shape(generator.range(1, 2), axes.iter().map(|axis| axis.extent), channels);
        let operator = MaxPool {
            window: axes.iter().map(|axis| axis.window).collect(),
            strides: axes.iter().map(|axis| axis.stride).collect(),
            dilations: axes.iter().map(|axis| axis.dilation).collect(),
            pads: axes.iter().map(|axis| axis.pads).collect(),
        };
        let dtype = generator.number_dtype();
        (operator, vec![TensorType::new(dtype, x)])
    }
}

impl MaxPool {
    fn largest<T: Number>(&self, x_shape: &[usize], x: &[T], y_shape: &[usize], finish: impl Fn(T) -> T) -> Vec<T> {
        let spatial = self.window.len();
        let (extents, channels) = (&x_shape[1..=spatial], y_shape[spatial + 1]);
        let plane: usize = extents.iter().product();
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let mut y = Vec::with_capacity(y_shape.iter().product());
        for position in indices(&y_shape[..=spatial]) {
            let mut row = vec![T::LOWEST; channels];
            for (_, source) in window.taps(&position[1..], extents, &self.window) {
                let pixel = &x[(position[0] * plane + source) * channels..][..channels];
                row.iter_mut().zip(pixel).for_each(|(largest, &value)| *largest = largest.larger(value));
            }
            y.extend(row.into_iter().map(&finish));
        }
        y
    }
}
