//! Matrix products.

use super::Builder;
use mlc_ir::ops::Matmul;
use mlc_ir::{OperatorError, Value};

impl Builder {
    /// The product of numpy's `matmul`: an operand with one axis gets a second one for a moment.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn matmul(&mut self, left: Value, right: Value) -> Result<Value, OperatorError> {
        let (row, column) = (self.rank(left) == 1, self.rank(right) == 1);
        let left = if row { self.insert_axis(left, 0)? } else { left };
        let right = if column { self.insert_axis(right, 1)? } else { right };
        let mut y = self.apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[left, right])?;
        if column {
            y = self.remove_axis(y, self.rank(y) - 1)?;
        }
        if row {
            let rank = self.rank(y);
            y = self.remove_axis(y, if column { rank - 1 } else { rank - 2 })?;
        }
        Ok(y)
    }
}
