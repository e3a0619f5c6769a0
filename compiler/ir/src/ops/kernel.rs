//! `kernel`: an anchor with its epilogue, a scalar expression over the anchor's first result and further operands, computed
//! while the result is still in registers. The anchor's operands come first; in the expression, x0 is the anchor's result and
//! x1, x2, … are the operands behind the anchor's own. The expression's shape must be that of the anchor's result.

use super::Op;
use super::elementwise;
use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work};
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// An anchor with its epilogue.
    pub struct Kernel {
        /// The operator that computes, of category anchor.
        pub anchor: Box<Op>,
        /// How many of the operands are the anchor's.
        pub anchor_operands: usize,
        /// What is computed from each element of the anchor's result.
        pub expression: Expression,
    }
}

impl Kernel {
    /// Types of the anchor's results for the operands of the kernel.
    ///
    /// # Errors
    /// When the operands don't fit the anchor.
    pub fn anchor_results(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let own = operands.get(..self.anchor_operands).ok_or_else(|| OperatorError::OperandCount {
            expected: format!("at least {}", self.anchor_operands),
            found: operands.len(),
        })?;
        self.anchor.infer(own)
    }
}

impl Operator for Kernel {
    const NAME: &'static str = "kernel";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        if self.anchor.category() != Category::Anchor || matches!(*self.anchor, Op::Kernel(_)) {
            return Err(OperatorError::field(format!("{} can't be a kernel's anchor", self.anchor.name())));
        }
        let mut results = self.anchor_results(operands)?;
        let mut types = vec![results[0].clone()];
        types.extend_from_slice(&operands[self.anchor_operands..]);
        let mut epilogue = elementwise::infer(&self.expression, &types)?;
        if epilogue[0].shape != results[0].shape {
            return Err(OperatorError::types(format!("the epilogue widens {} to {}", results[0], epilogue[0])));
        }
        results[0] = epilogue.remove(0);
        Ok(results)
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
        let mut values = self.anchor.evaluate(&operands[..self.anchor_operands], &self.anchor_results(&types)?)?;
        let first = values.remove(0);
        let mut epilogue = vec![&first];
        epilogue.extend_from_slice(&operands[self.anchor_operands..]);
        let mut result = elementwise::evaluate(&self.expression, &epilogue, &results[..1])?;
        result.append(&mut values);
        Ok(result)
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let Ok(inner) = self.anchor_results(operands) else { return Work::moving(operands, results) };
        let anchor = self.anchor.work(&operands[..self.anchor_operands], &inner);
        let mut types = vec![inner[0].clone()];
        types.extend_from_slice(&operands[self.anchor_operands..]);
        let epilogue = elementwise::work(&self.expression, &types, &results[..1]);
        Work {
            macs: anchor.macs,
            scalar_operations: anchor.scalar_operations + epilogue.scalar_operations,
            ..Work::moving(operands, results)
        }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let (anchor, mut operands) = super::matmul::Matmul::sample(generator);
        let anchor_operands = operands.len();
        let Ok(results) = anchor.infer(&operands) else { return Self::sample(generator) };
        let (dtype, columns) = (results[0].dtype, results[0].shape[results[0].rank() - 1]);
        operands.push(TensorType::new(dtype, [columns]));
        let expression = Expression::build(|b| {
            let (x, bias) = (b.operand(0), b.operand(1));
            let sum = b.binary(BinaryFunction::Add, x, bias);
            b.unary(if dtype == DType::F32 { UnaryFunction::Relu } else { UnaryFunction::Negate }, sum)
        });
        (Kernel { anchor: Box::new(anchor.into()), anchor_operands, expression }, operands)
    }
}
