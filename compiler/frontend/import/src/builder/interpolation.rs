//! Interpolation by any weights: a gather or a matrix product per axis.

use super::Builder;
use mlc_ir::ops::Matmul;
use mlc_ir::{Attribute, DType, OperatorError, Tensor, TensorType, Value};

/// For each element of the new axis the elements of the old one that it combines, with their weights.
pub type Rows = Vec<Vec<(usize, f64)>>;

/// Most elements of a matrix that interpolates an axis.
const MOST_ELEMENTS: usize = 1 << 24;

impl Builder {
    /// Makes each element of an axis of a few of its old elements.
    ///
    /// # Errors
    /// When the axis isn't there, a row leaves it, the matrix would be too large, or the elements aren't floating-point
    /// numbers, unless every row has one element of weight 1.
    pub fn interpolate_axis(&mut self, x: Value, axis: usize, rows: &Rows) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let extent = shape.get(axis).copied().unwrap_or(0);
        if rows.iter().flatten().any(|&(place, _)| place >= extent) {
            return Err(OperatorError::field(format!("a row leaves axis {axis} of {}", self.ty(x))));
        }
        let single = |row: &Vec<(usize, f64)>| match row[..] {
            [(place, 1.0)] => Some(place as i64),
            _ => None,
        };
        if let Some(places) = rows.iter().map(single).collect::<Option<Vec<i64>>>() {
            if places.iter().copied().eq(0..extent as i64) {
                return Ok(x);
            }
            let places = self.indices(&[places.len()], &places)?;
            return self.gather(x, places, axis);
        }
        let matrix = self.interpolation_matrix(x, extent, rows)?;
        let mut result = shape.clone();
        result[axis] = rows.len();
        let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
        if inner == 1 {
            let flat = self.reshape(x, &[outer, extent])?;
            let product =
                self.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[flat, matrix])?;
            return self.reshape(product, &result);
        }
        let flat = self.reshape(x, &[outer, extent, inner])?;
        let product =
            self.apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[matrix, flat])?;
        self.reshape(product, &result)
    }

    /// A constant [new, old] of the data type of `x`.
    fn interpolation_matrix(&mut self, x: Value, extent: usize, rows: &Rows) -> Result<Value, OperatorError> {
        let dtype = self.dtype(x);
        if !dtype.is_float() {
            return Err(OperatorError::types(format!("interpolation isn't defined for {dtype}")));
        }
        let elements = extent.checked_mul(rows.len()).filter(|&elements| elements <= MOST_ELEMENTS);
        let elements = elements.ok_or_else(|| {
            OperatorError::types(format!("interpolation of {extent} to {} elements is too large", rows.len()))
        })?;
        let mut values = vec![0.0; elements];
        for (row, weights) in values.chunks_exact_mut(extent.max(1)).zip(rows) {
            for &(place, weight) in weights {
                row[place] += weight;
            }
        }
        let tensor = Tensor::from_floats(TensorType::new(dtype, [rows.len(), extent]), values);
        Ok(self.constant("weights", Attribute::from_tensor(&tensor)))
    }

    /// Elements of `x` where the places aren't marked, else a number. Marks are per axis; one is enough.
    ///
    /// # Errors
    /// When the marks don't fit the shape.
    pub fn fill_marked(&mut self, x: Value, marks: &[Vec<bool>], value: f64) -> Result<Value, OperatorError> {
        let mut y = x;
        for (axis, marks) in marks.iter().enumerate().filter(|(_, marks)| marks.contains(&true)) {
            let mut shape = vec![1; self.rank(x)];
            shape[axis] = marks.len();
            let marks = marks.iter().map(|&mark| i64::from(mark)).collect();
            let tensor = Tensor::from_integers(TensorType::new(DType::Bool, &shape), marks);
            let marks = self.constant("outside", Attribute::from_tensor(&tensor));
            let number = self.number(self.dtype(x), value);
            y = self.select(marks, number, y)?;
        }
        Ok(y)
    }
}
