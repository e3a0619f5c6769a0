//! `pad`: Adds elements before and after each axis.

use super::numbers::{dot, expect_values, indices};
use crate::tensor::Values;
use crate::types::{Shape, row_major_strides};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use crate::literal::Literal;
use std::ops::Range;

crate::operator_fields! {
    /// Adds elements before and after each axis.
    pub struct Pad {
        /// Elements before and after, per axis.
        pub pads: Vec<(usize, usize)>,
        /// What the new elements are.
        pub mode: PadMode,
        /// The constant of mode constant, of the tensor's data type.
        pub value: Literal,
    }
}

crate::word_enum! {
    /// What padding consists of.
    pub enum PadMode {
        /// A constant.
        Constant = "constant",
        /// The tensor mirrored at its first and last element, which aren't repeated.
        Reflect = "reflect",
        /// The nearest element.
        Replicate = "replicate",
        /// The tensor repeated.
        Circular = "circular",
    }
}

impl Operator for Pad {
    const NAME: &'static str = "pad";
    const CATEGORY: Category = Category::Movement;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Elements
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
        if self.pads.len() != x.rank() || self.value.dtype() != x.dtype {
            return Err(OperatorError::field(format!("pads needs an entry per axis of {x}, value {} its type", self.value)));
        }
        let mut shape = x.shape.clone();
        for (axis, &(before, after)) in self.pads.iter().enumerate() {
            let reach = match self.mode {
                PadMode::Constant => usize::MAX,
                PadMode::Reflect => x.shape[axis].saturating_sub(1),
                PadMode::Circular => x.shape[axis],
                PadMode::Replicate if x.shape[axis] == 0 => 0,
                PadMode::Replicate => usize::MAX,
            };
            if before.max(after) > reach {
                return Err(OperatorError::field(format!("{} pads ({before}, {after}) exceed axis {axis} of {x}", self.mode.name())));
            }
            let extent = shape[axis].checked_add(before).and_then(|sum| sum.checked_add(after));
            shape[axis] = extent.ok_or_else(|| OperatorError::field(format!("pads ({before}, {after}) are too large")))?;
        }
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let strides = row_major_strides(x.shape());
        let source = |index: Shape| -> Option<usize> {
            let places = (0..index.len()).map(|axis| self.source(axis, index[axis], x.shape()[axis]));
            let places: Option<Shape> = places.collect();
            places.map(|places| dot(&places, &strides))
        };
        let sources = indices(&results[0].shape).map(source);
        let values = match x.values() {
            Values::Float(values) => {
                let fill = self.value.to_f64();
                Values::Float(sources.map(|source| source.map_or(fill, |source| values[source])).collect())
            }
            Values::Integer(values) => {
                let fill = Tensor::splat(TensorType::new(x.ty().dtype, []), self.value).to_integers()[0];
                Values::Integer(sources.map(|source| source.map_or(fill, |source| values[source])).collect())
            }
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let mode = generator.choose(PadMode::ALL);
        let pad = |&extent: &usize| {
            let reach = match mode {
                PadMode::Reflect => extent - 1,
                PadMode::Circular => extent,
                PadMode::Constant | PadMode::Replicate => 3,
            };
            if generator.one_in(2) { (0, 0) } else { (generator.range(0, reach.min(3)), generator.range(0, reach.min(3))) }
        };
        let pads = shape.iter().map(pad).collect();
        let dtype = generator.movement_dtype();
        let value = Literal::of(dtype, if generator.one_in(2) { 0.0 } else { generator.unit() * 3.0 });
        (Pad { pads, mode, value }, vec![TensorType::new(dtype, shape)])
    }
}

impl Pad {
    /// The element along an axis that a result's element shows; `None` for the constant.
    fn source(&self, axis: usize, place: usize, extent: usize) -> Option<usize> {
        let place = place as i64 - self.pads[axis].0 as i64;
        let last = extent as i64 - 1;
        if (0..=last).contains(&place) {
            return Some(place as usize);
        }
        match self.mode {
            PadMode::Constant => None,
            PadMode::Reflect if place < 0 => Some(-place as usize),
            PadMode::Reflect => Some((2 * last - place) as usize),
            PadMode::Replicate => Some(place.clamp(0, last) as usize),
            PadMode::Circular => Some(place.rem_euclid(last + 1) as usize),
        }
    }
}
