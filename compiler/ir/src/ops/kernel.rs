//! `kernel`: an anchor with its epilogue, a scalar expression over the anchor's first result and further operands, computed
//! while the result is still in registers. The anchor's operands come first; in the expression, x0 is the anchor's result and
//! x1, x2, … are the operands behind the anchor's own. The expression's shape must be that of the anchor's result.

use super::{Op, OpKind};
use super::elementwise;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work};
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use std::ops::Range;

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
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        self.anchor.roles()
    }

    fn reads_rows(&self) -> bool {
        self.anchor.reads_rows()
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let results = self.anchor_results(operands).ok()?;
        let (own, others) = operands.split_at(self.anchor_operands);
        let (anchor, mut reads) = self.anchor.by_rows(own)?;
        reads.extend(elementwise::rows(others, &results.first()?.shape)?);
        Some((Kernel { anchor: Box::new(anchor), ..self.clone() }, reads))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let results = self.anchor_results(operands).ok()?;
        let (own, others) = operands.split_at(self.anchor_operands);
        let (anchor, mut reads) = self.anchor.patch(own, rows.clone())?;
        reads.extend(elementwise::patch(others, &results.first()?.shape, &rows)?);
        Some((Kernel { anchor: Box::new(anchor), ..self.clone() }, reads))
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        if !self.anchor.category().is_anchor() || matches!(*self.anchor, Op::Kernel(_)) {
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
        const ANCHORS: [OpKind; 9] = [
            OpKind::Convolution,
            OpKind::Convolution,
            OpKind::Matmul,
            OpKind::Matmul,
            OpKind::TransposedConvolution,
            OpKind::AveragePool,
            OpKind::MaxPool,
            OpKind::Reduce,
            OpKind::Recurrent,
        ];
        let (anchor, mut operands) = generator.choose(&ANCHORS).sample(generator);
        let anchor_operands = operands.len();
        // Epilogues of other types than f32 would need other functions; and every sample's types fit.
        let Some(first) = anchor.infer(&operands).ok().and_then(|types| types.first().cloned()) else {
            return Self::sample(generator);
        };
        if first.dtype != DType::F32 {
            return Self::sample(generator);
        }
        operands.push(TensorType::new(DType::F32, generator.broadcastable(&first.shape)));
        let activation = generator.choose(&[UnaryFunction::Relu, UnaryFunction::Sigmoid, UnaryFunction::Negate]);
        let residual = generator.one_in(2);
        if residual {
            operands.push(TensorType::new(DType::F32, first.shape));
        }
        let expression = Expression::build(|b| {
            let (x, bias) = (b.operand(0), b.operand(1));
            let sum = b.binary(BinaryFunction::Add, x, bias);
            let activated = b.unary(activation, sum);
            if !residual {
                return activated;
            }
            let other = b.operand(2);
            b.binary(BinaryFunction::Add, activated, other)
        });
        (Kernel { anchor: Box::new(anchor), anchor_operands, expression }, operands)
    }
}
