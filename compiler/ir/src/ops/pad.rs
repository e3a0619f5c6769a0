//! `pad`: Adds elements before and after each axis.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use crate::attribute::Literal;

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

    fn category(&self) -> Category {
        Category::Movement
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
            shape[axis] += before + after;
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
