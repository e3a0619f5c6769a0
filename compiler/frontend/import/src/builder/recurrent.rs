//! Recurrent layers: one direction of one layer is the projection of the whole sequence, and the recurrence over it.

use super::Builder;
use mlc_ir::ops::{Matmul, Recurrent, RecurrentOperand};
use mlc_ir::{Attribute, DType, Literal, OperatorError, Tensor, TensorType, Value};

/// The weights of one direction of a layer, by output and input; G gates of H units in the order of the operator, a hidden
/// state of P.
pub struct RecurrentWeights {
    /// Of the sequence, [G * H, I].
    pub input: Value,
    /// Of the hidden state, [G * H, P].
    pub recurrent: Value,
    /// Bias on the side of the sequence, [G * H].
    pub input_bias: Option<Value>,
    /// Bias on the side of the hidden state, [G * H].
    pub recurrent_bias: Option<Value>,
    /// From the units to the hidden state, [P, H].
    pub projection: Option<Value>,
    /// Of the cell state in the gates, as the operator has them.
    pub peepholes: Option<Value>,
}

/// What one direction of a layer runs over.
pub struct RecurrentRun {
    /// The sequence, [T, B, I].
    pub sequence: Value,
    /// Initial hidden state, [B, P]; zeros where there is none.
    pub hidden: Option<Value>,
    /// Initial cell state, [B, H]; zeros where there is none.
    pub cell: Option<Value>,
    /// Steps of each item of the batch, i32 or i64 [B]; all of them where there are none.
    pub lengths: Option<Value>,
}

impl Builder {
    /// One direction of a recurrent layer; which optional operands `op` has follows from the weights. Gives the sequence
    /// [T, B, P], the last hidden state, and the last cell state where there is one.
    ///
    /// # Errors
    /// When types and shapes don't fit.
    pub fn recurrent(
        &mut self,
        op: Recurrent,
        weights: &RecurrentWeights,
        run: &RecurrentRun,
    ) -> Result<Vec<Value>, OperatorError> {
        let dtype = self.dtype(run.sequence);
        let dtype = if dtype.is_float() { dtype } else { DType::F32 };
        let [gates, state] = self.shape(weights.recurrent)[..] else {
            let ty = self.ty(weights.recurrent);
            return Err(OperatorError::types(format!("the recurrent weights {ty} must have two axes")));
        };
        let batch = self.shape(run.sequence).get(1).copied().unwrap_or(1);
        let product = Matmul { transpose_left: false, transpose_right: true, sums: None };
        let projected = self.apply(product, &[run.sequence, weights.input])?;
        let projected = self.add_optional(projected, weights.input_bias)?;
        let mut operands = vec![projected, self.transpose(weights.recurrent, &[1, 0])?];
        operands.push(self.given_or_zeros(weights.recurrent_bias, dtype, &[gates])?);
        operands.push(self.given_or_zeros(run.hidden, dtype, &[batch, state])?);
        if op.cell.has_cell_state() {
            operands.push(self.given_or_zeros(run.cell, dtype, &[batch, gates / op.cell.gates()])?);
        }
        let projection = weights.projection.map(|projection| self.transpose(projection, &[1, 0])).transpose()?;
        let optional = [
            (RecurrentOperand::Projection, projection),
            (RecurrentOperand::Peepholes, weights.peepholes),
            (RecurrentOperand::Lengths, run.lengths),
        ];
        let present = optional.into_iter().filter_map(|(operand, value)| Some((operand, value?)));
        let (with, values): (Vec<RecurrentOperand>, Vec<Value>) = present.unzip();
        operands.extend(values);
        self.apply_all(Recurrent { with, ..op }, &operands)
    }

    fn given_or_zeros(&mut self, value: Option<Value>, dtype: DType, shape: &[usize]) -> Result<Value, OperatorError> {
        value.map_or_else(|| self.zeros(dtype, shape), Ok)
    }

    /// Groups of `extent` elements of axis 0, such as the gates of a layer, in another order.
    ///
    /// # Errors
    /// When a group isn't there.
    pub fn reordered_groups(&mut self, x: Value, order: &[usize], extent: usize) -> Result<Value, OperatorError> {
        let groups = self.shape(x).first().map_or(0, |rows| rows / extent.max(1));
        if order.iter().copied().eq(0..groups) {
            return Ok(x);
        }
        let group = |&place: &usize| self.slice_axis(x, 0, place * extent, extent, 1);
        let groups = order.iter().map(group).collect::<Result<Vec<Value>, _>>()?;
        self.concat(&groups, 0)
    }

    /// Zeros; many of them as a repetition, so that a number in a file can't make them take memory.
    ///
    /// # Errors
    /// When there are more than a tensor may have.
    pub fn zeros(&mut self, dtype: DType, shape: &[usize]) -> Result<Value, OperatorError> {
        let elements = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
        if elements.is_none_or(|elements| elements > 1 << 20) {
            let zero = self.number(dtype, 0.0);
            return self.broadcast(zero, shape);
        }
        let zeros = Tensor::splat(TensorType::new(dtype, shape), Literal::of(dtype, 0.0));
        Ok(self.constant("zeros", Attribute::from_tensor(&zeros)))
    }
}
