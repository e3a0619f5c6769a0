//! What becomes of the sums of a layer's gates: one step after the other, in registers, or in memory where other work is between them.

use super::super::KernelWriter;
use crate::loops::{Expr, Index, ValueType, Var};
use mlc_ir::DType;

/// A value for each group of columns, of some columns: its sum, or what steps have made of it.
pub(super) struct Gates {
    /// Columns.
    pub lanes: usize,
    values: Values,
}

enum Values {
    Registers(Vec<Expr>),
    /// Vectors behind a pointer, from an element on.
    Memory {
        pointer: Var,
        first: Index,
        dtype: DType,
    },
}

impl Gates {
    /// Values that are at hand.
    pub fn in_registers(values: Vec<Expr>, lanes: usize) -> Gates {
        Gates { lanes, values: Values::Registers(values) }
    }

    /// Values behind a pointer, a vector each, from an element on.
    pub fn in_memory(pointer: Var, first: Index, dtype: DType, lanes: usize) -> Gates {
        Gates { lanes, values: Values::Memory { pointer, first, dtype } }
    }

    /// The value of a group.
    pub fn get(&self, group: usize) -> Expr {
        match &self.values {
            Values::Registers(values) => values[group].clone(),
            Values::Memory { pointer, first, dtype } => Expr::Load {
                pointer: *pointer,
                index: first.offset((group * self.lanes) as i64),
                ty: ValueType::vector(*dtype, self.lanes),
            },
        }
    }

    /// Names a value, and makes it that of a group.
    pub fn set(&mut self, kernel: &mut KernelWriter<'_>, group: usize, name: &str, value: Expr) -> Expr {
        let value = kernel.b.define(name, value);
        let lanes = self.lanes;
        match &mut self.values {
            Values::Registers(values) => values[group] = value.clone(),
            Values::Memory { pointer, first, .. } => {
                kernel.b.store(*pointer, first.offset((group * lanes) as i64), value.clone());
            }
        }
        value
    }
}
