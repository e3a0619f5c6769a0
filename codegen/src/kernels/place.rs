//! What gathers and scatters share: from an index in the data to a place along an axis. Generated code never leaves its
//! buffers, whatever the data: reads go to the nearest place of the axis, writes beside the axis don't happen.

use super::KernelWriter;
use crate::loops::{Expr, Index};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// A place along an axis, which may still lie beside it.
pub struct Place {
    value: Expr,
    extent: usize,
}

impl Place {
    /// The place that an index means; negative ones count from the end.
    pub fn new(kernel: &mut KernelWriter<'_>, index: Expr, extent: usize) -> Place {
        let dtype = kernel.b.ty(&index).dtype;
        let index = kernel.b.define("index", index);
        // Narrow types may not hold the extent.
        let wide = if dtype.size() < 4 { Expr::Cast(DType::I32, Box::new(index)) } else { index };
        if !dtype.is_signed() {
            return Place { value: wide, extent };
        }
        let wide = kernel.b.define("wide", wide);
        let dtype = kernel.b.ty(&wide).dtype;
        let number = |value: usize| Expr::Literal(Literal::integer(dtype, value as i64));
        let negative = Expr::binary(BinaryFunction::Less, wide.clone(), number(0));
        let from_end = wide.clone().plus(number(extent));
        Place { value: Expr::Select(Box::new(negative), Box::new(from_end), Box::new(wide)), extent }
    }

    fn number(&self, kernel: &KernelWriter<'_>, value: usize) -> Expr {
        Expr::Literal(Literal::integer(kernel.b.ty(&self.value).dtype, value as i64))
    }

    /// The nearest place of the axis.
    pub fn clamped(self, kernel: &mut KernelWriter<'_>) -> Index {
        let (first, last) = (self.number(kernel, 0), self.number(kernel, self.extent - 1));
        let signed = kernel.b.ty(&self.value).dtype.is_signed();
        let below = Expr::binary(BinaryFunction::Minimum, self.value, last);
        let bounded = if signed { Expr::binary(BinaryFunction::Maximum, below, first) } else { below };
        kernel.b.define_index("place", Index::value(bounded))
    }

    /// The place, and whether it is one of the axis.
    pub fn checked(self, kernel: &mut KernelWriter<'_>) -> (Index, Expr) {
        let (first, end) = (self.number(kernel, 0), self.number(kernel, self.extent));
        let value = kernel.b.define("place", self.value);
        let below = Expr::binary(BinaryFunction::Less, value.clone(), end);
        let inside = if kernel.b.ty(&value).dtype.is_signed() {
            let above = Expr::binary(BinaryFunction::GreaterEqual, value.clone(), first);
            Expr::binary(BinaryFunction::And, above, below)
        } else {
            below
        };
        (Index::value(value), inside)
    }
}
