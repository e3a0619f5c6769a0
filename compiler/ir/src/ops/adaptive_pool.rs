//! `adaptive_pool`: Mean or maximum over cells floor(o * I / O) .. ceil((o + 1) * I / O) of x [N, spatial…, C].

use super::numbers::{Number, dot, expect_values, indices, order_key};
use super::window::spatial_shape;
use crate::tensor::Values;
use crate::types::{Shape, row_major_strides};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

crate::operator_fields! {
    /// Mean or maximum over cells floor(o * I / O) .. ceil((o + 1) * I / O).
    pub struct AdaptivePool {
        /// What is computed in each cell.
        pub function: PoolFunction,
        /// Extents of the result's spatial axes.
        pub sizes: Vec<usize>,
    }
}

crate::word_enum! {
    /// What a pooling cell computes.
    pub enum PoolFunction {
        /// Arithmetic mean.
        Mean = "mean",
        /// Largest element; NaN wins.
        Maximum = "maximum",
    }
}

impl Operator for AdaptivePool {
    const NAME: &'static str = "adaptive_pool";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        if x.rank() != self.sizes.len() + 2 || self.sizes.contains(&0) || x.shape[1..x.rank() - 1].contains(&0) {
            return Err(OperatorError::types(format!("x {x} doesn't have {} spatial axes, none empty", self.sizes.len())));
        }
        if self.function == PoolFunction::Mean && !x.dtype.is_float() {
            return Err(OperatorError::types(format!("a mean isn't defined for {}", x.dtype)));
        }
        let mut shape = x.shape.clone();
        shape[1..=self.sizes.len()].copy_from_slice(&self.sizes);
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let values = match (self.function, x.values()) {
            (PoolFunction::Mean, _) => {
                let values = x.to_floats();
                let mean = |cell: &[f64]| cell.iter().sum::<f64>() / cell.len() as f64;
                Values::Float(self.pool(x.shape(), &values, &results[0].shape, mean))
            }
            (PoolFunction::Maximum, Values::Float(values)) => {
                let largest = |cell: &[f64]| cell.iter().fold(f64::NEG_INFINITY, |largest, &value| largest.larger(value));
                Values::Float(self.pool(x.shape(), values, &results[0].shape, largest))
            }
            (PoolFunction::Maximum, Values::Integer(values)) => {
                let dtype = x.ty().dtype;
                let key = |&value: &i64| order_key(dtype, value);
                let largest = |cell: &[i64]| cell.iter().copied().max_by_key(key).unwrap_or_default();
                Values::Integer(self.pool(x.shape(), values, &results[0].shape, largest))
            }
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let cells = |(axis, &size): (usize, &usize)| -> usize {
            (0..size).map(|output| cell(output, operands[0].shape[axis + 1], size).len()).sum()
        };
        let planes = [operands[0].shape[0], operands[0].shape[self.sizes.len() + 1]];
        let taps = count_product(self.sizes.iter().enumerate().map(cells).chain(planes));
        let means = if self.function == PoolFunction::Mean { results[0].elements() as u64 } else { 0 };
        Work { scalar_operations: taps.saturating_add(means), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let extents: Vec<usize> = (0..spatial).map(|_| generator.extent()).collect();
        let sizes = extents.iter().map(|&extent| if generator.one_in(3) { 1 } else { generator.range(1, extent + 1) });
        let sizes: Vec<usize> = sizes.collect();
        let function = generator.choose(PoolFunction::ALL);
        let channels = generator.extent();
        let x = spatial_shape(generator.range(1, 2), extents, channels);
        let maximum = function == PoolFunction::Maximum;
        let dtype = if maximum { generator.number_dtype() } else { generator.float_dtype() };
        (AdaptivePool { function, sizes }, vec![TensorType::new(dtype, x)])
    }
}

/// The input elements along an axis that belong to an output element.
pub fn cell(output: usize, extent: usize, size: usize) -> Range<usize> {
    output * extent / size..((output + 1) * extent).div_ceil(size)
}

impl AdaptivePool {
    fn pool<T: Copy>(&self, x_shape: &[usize], x: &[T], y_shape: &[usize], combine: impl Fn(&[T]) -> T) -> Vec<T> {
        let spatial = self.sizes.len();
        let strides = row_major_strides(x_shape);
        let pool_one = |index: Shape| {
            let cells: Vec<_> =
                (0..spatial).map(|axis| cell(index[axis + 1], x_shape[axis + 1], self.sizes[axis])).collect();
            let lengths: Shape = cells.iter().map(ExactSizeIterator::len).collect();
            let base = index[0] * strides[0] + index[spatial + 1];
            let start = |axis: usize| cells[axis].start * strides[axis + 1];
            let base = base + (0..spatial).map(start).sum::<usize>();
            let elements: Vec<T> = indices(&lengths).map(|offset| x[base + dot(&offset, &strides[1..])]).collect();
            combine(&elements)
        };
        indices(y_shape).map(pool_one).collect()
    }
}
