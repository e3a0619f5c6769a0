//! `resize`: Interpolation along axes. Element o of a resized axis reads around source coordinate f(o).

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::reduce::reduced_shape;
use crate::types::Float;

crate::operator_fields! {
    /// Interpolation along axes.
    pub struct Resize {
        /// The resized axes, ascending.
        pub axes: Vec<usize>,
        /// Their new extents.
        pub sizes: Vec<usize>,
        /// Input elements per output element (single precision), per axis.
        pub ratios: Vec<Float>,
        /// Which elements are combined.
        pub mode: ResizeMode,
        /// The source coordinate f(o), with ratio r, old extent I and new extent O.
        pub coordinates: ResizeCoordinates,
    }
}

crate::word_enum! {
    /// Which elements an interpolation combines.
    pub enum ResizeMode {
        /// The element at floor(f(o)), clamped to the axis.
        Nearest = "nearest",
        /// The two neighbours of f(o), weighted by distance; the coordinate is clamped to 0 from below.
        Linear = "linear",
        /// Four neighbours by cubic convolution with a = -0.75, clamped at the rim.
        Cubic = "cubic",
    }
}

crate::word_enum! {
    /// The source coordinate of output element o.
    pub enum ResizeCoordinates {
        /// (o + 0.5) * r - 0.5; for nearest (o + 0.5) * r
        HalfPixel = "half_pixel",
        /// o * r
        Asymmetric = "asymmetric",
        /// o * (I - 1) / (O - 1); 0 for O = 1
        AlignCorners = "align_corners",
    }
}

impl Operator for Resize {
    const NAME: &'static str = "resize";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        reduced_shape(x, &self.axes, true)?;
        if self.sizes.len() != self.axes.len() || self.ratios.len() != self.axes.len() {
            return Err(OperatorError::field("sizes and ratios need an entry per axis"));
        }
        if !x.dtype.is_float() && self.mode != ResizeMode::Nearest {
            return Err(OperatorError::types(format!("{} interpolation isn't defined for {}", self.mode.name(), x.dtype)));
        }
        let mut shape = x.shape.clone();
        for (&axis, &size) in self.axes.iter().zip(&self.sizes) {
            if shape[axis] == 0 && size > 0 {
                return Err(OperatorError::types(format!("axis {axis} of {x} has nothing to interpolate")));
            }
            shape[axis] = size;
        }
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation("no evaluation yet".into()))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(_generator: &mut Generator) -> (Self, Vec<TensorType>) {
        todo!()
    }
}
