//! Sums of products of quantised operands: of narrow integers as they are stored, whose zero points go where they cost nothing.

use super::Builder;
use crate::fault::Fault;
use mlc_ir::ops::{Convolution, Matmul, ReduceFunction, TransposedConvolution};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Literal, Op, Value};
use std::collections::BTreeSet;

/// An operator that sums up products of its two operands. Its types of sums and its border are those of [`Builder::sum_products`].
#[derive(Debug, Clone)]
pub enum Products {
    /// Of an image by weights.
    Convolution(Convolution),
    /// Of a left matrix by a right one.
    Matmul(Matmul),
    /// Of an image by weights, which is wider afterwards.
    TransposedConvolution(TransposedConvolution),
}

/// A quantised operand whose integers have one zero point.
#[derive(Debug, Clone, Copy)]
pub struct Centred {
    /// The integers as they are stored.
    pub integers: Value,
    /// What stands for zero.
    pub zero_point: i64,
}

/// Sums of products, and what has to be added to them along their last axis.
#[derive(Debug, Clone, Copy)]
pub struct Sums {
    /// The sums.
    pub sums: Value,
    /// What their operand's zero point takes away from all of them: a constant.
    pub correction: Option<Value>,
}

impl TryFrom<&Op> for Products {
    type Error = Fault;

    /// The operator, if it sums up products.
    fn try_from(op: &Op) -> Result<Self, Fault> {
        match op {
            Op::Convolution(op) => Ok(Products::Convolution(op.clone())),
            Op::Matmul(op) => Ok(Products::Matmul(op.clone())),
            Op::TransposedConvolution(op) => Ok(Products::TransposedConvolution(op.clone())),
            other => Err(Fault::operands(format!("{} doesn't sum up products", other.name()))),
        }
    }
}

impl Products {
    fn with(self, sums: Option<DType>, border: i64) -> Op {
        match self {
            Products::Convolution(op) => Convolution { sums, border, ..op }.into(),
            Products::Matmul(op) => Matmul { sums, ..op }.into(),
            Products::TransposedConvolution(op) => TransposedConvolution { sums, ..op }.into(),
        }
    }

    /// The axes of weights of some rank that each result sums over, if all results sum over all of them, and share what is left.
    fn summed(&self, rank: usize) -> Option<Vec<usize>> {
        match self {
            Products::Convolution(_) => Some((0..rank.checked_sub(1)?).collect()),
            Products::Matmul(op) if rank == 2 => Some(vec![usize::from(op.transpose_right)]),
            Products::Matmul(_) | Products::TransposedConvolution(_) => None,
        }
    }
}

impl Builder {
    /// The sums, of type `sums`, of `(x - zero point) * weights`. By constant weights they are those of `x * weights`, with a border
    /// of zero points, and a correction.
    ///
    /// # Errors
    /// When the types don't fit the operator.
    pub fn sum_products(&mut self, op: Products, x: Centred, weights: Value, sums: DType) -> Result<Sums, Fault> {
        let is_narrow = |value: Value| self.dtype(value).size() <= 2;
        let Centred { integers, zero_point } = x;
        if !is_narrow(integers) || !is_narrow(weights) {
            let (x, weights) = (self.less(integers, zero_point, sums)?, self.cast(weights, sums)?);
            return Ok(Sums { sums: self.apply(op.with(None, 0), &[x, weights])?, correction: None });
        }
        let rank = self.rank(weights);
        let summed = op.summed(rank).filter(|_| self.is_constant(weights));
        match summed {
            _ if zero_point == 0 => {
                let sums = self.apply(op.with(Some(sums), 0), &[integers, weights])?;
                Ok(Sums { sums, correction: None })
            }
            Some(axes) => {
                let wide = self.cast(weights, sums)?;
                let total = self.reduce(ReduceFunction::Sum, wide, &axes, false)?;
                let zero = self.literal(Literal::integer(sums, -zero_point));
                let correction = self.binary(B::Multiply, total, zero)?;
                let sums = self.apply(op.with(Some(sums), zero_point), &[integers, weights])?;
                Ok(Sums { sums, correction: Some(correction) })
            }
            None if self.dtype(integers).is_byte() => {
                let x = self.less(integers, zero_point, DType::I16)?;
                Ok(Sums { sums: self.apply(op.with(Some(sums), 0), &[x, weights])?, correction: None })
            }
            None => {
                let (x, weights) = (self.less(integers, zero_point, sums)?, self.cast(weights, sums)?);
                Ok(Sums { sums: self.apply(op.with(None, 0), &[x, weights])?, correction: None })
            }
        }
    }

    /// `x - number` in another type of integers.
    fn less(&mut self, x: Value, number: i64, dtype: DType) -> Result<Value, Fault> {
        let x = self.cast(x, dtype)?;
        if number == 0 {
            return Ok(x);
        }
        let number = self.literal(Literal::integer(dtype, number));
        Ok(self.binary(B::Subtract, x, number)?)
    }

    /// Whether a value is computed of constants only.
    fn is_constant(&self, value: Value) -> bool {
        let (mut pending, mut seen) = (vec![value.node], BTreeSet::new());
        while let Some(node) = pending.pop() {
            if !seen.insert(node) {
                continue;
            }
            if matches!(self.graph().node(node).op, Op::Input(_)) {
                return false;
            }
            pending.extend(self.graph().operands(node).iter().map(|operand| operand.node));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{Attribute, Tensor, TensorType};

    fn bytes(builder: &mut Builder, shape: &[usize], values: &[i64]) -> Value {
        let tensor = Tensor::from_integers(TensorType::new(DType::I8, shape), values.to_vec());
        builder.constant("bytes", Attribute::from_tensor(&tensor))
    }

    fn integers(builder: &Builder, value: Value) -> Vec<i64> {
        builder.graph().constant(value).unwrap().to_tensor().to_integers()
    }

    fn corrected(builder: &mut Builder, Sums { sums, correction }: Sums) -> Vec<i64> {
        let y = builder.add_optional(sums, correction).unwrap();
        integers(builder, y)
    }

    #[test]
    fn zero_points_become_borders_and_corrections() {
        let mut builder = Builder::new("t");
        builder.compute_constants();
        let x = bytes(&mut builder, &[1, 3, 1], &[-128, 5, 127]);
        let weights = bytes(&mut builder, &[3, 1, 2], &[1, -2, 3, 4, -5, 6]);
        let op =
            Convolution { strides: vec![1], dilations: vec![1], pads: vec![(1, 1)], groups: 1, border: 0, sums: None };
        let x = Centred { integers: x, zero_point: -7 };
        let sums = builder.sum_products(Products::Convolution(op), x, weights, DType::I32).unwrap();
        assert_eq!(builder.dtype(sums.sums), DType::I32);
        assert!(sums.correction.is_some());
        // x without its zero point is [-121, 12, 134], between zeros.
        assert_eq!(corrected(&mut builder, sums), [-423, -412, -755, 1094, 414, 512]);
    }

    #[test]
    fn operands_that_vary_are_centred_in_sixteen_bits() {
        let mut builder = Builder::new("t");
        let x = builder.input("x", TensorType::new(DType::I8, [2, 3]));
        let y = builder.input("y", TensorType::new(DType::I8, [3, 2]));
        let op = Matmul { transpose_left: false, transpose_right: false, sums: None };
        let x = Centred { integers: x, zero_point: 3 };
        let sums = builder.sum_products(Products::Matmul(op), x, y, DType::I32).unwrap();
        assert!(sums.correction.is_none());
        let operands = builder.graph().operands(sums.sums.node).to_vec();
        let dtypes: Vec<DType> = operands.iter().map(|&operand| builder.dtype(operand)).collect();
        assert_eq!(dtypes, [DType::I16, DType::I8]);
    }
}
