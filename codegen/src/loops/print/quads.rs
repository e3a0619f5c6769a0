//! Vectors of four integers, which are bytes in memory.

use super::Printer;
use crate::loops::expression::{Expr, Index};
use crate::loops::helper::{Helpers, Intrinsic};
use crate::loops::quads::{self, QUAD};
use crate::loops::spelling::unparenthesised;
use crate::loops::{ValueType, Var};
use mlc_ir::DType;

impl Printer<'_> {
    /// Lanes that are rescaled, by one multiplier and shift or each by its own.
    pub(super) fn rescaled_lanes(&mut self, added: i32, [x, multiplier, shift]: &[Expr; 3]) -> String {
        let ty = self.ty(x);
        let own = [multiplier, shift].iter().any(|number| self.ty(number).lanes > 1);
        let name = self.intrinsics.call(Intrinsic::RescaleLanes(own));
        let x = self.expr(x);
        let mut number = |number: &Expr| if own { self.widened(number, ty.lanes, ty.dtype) } else { self.expr(number) };
        let (multiplier, shift) = (number(multiplier), number(shift));
        let arguments = [x, multiplier, shift, added.to_string()];
        let arguments: Vec<&str> = arguments.iter().map(|text| unparenthesised(text)).collect();
        format!("{name}({})", arguments.join(", "))
    }
    /// Bytes as integers of 32 bits, where the machine loads them so.
    pub(super) fn widened_bytes(&mut self, to: DType, x: &Expr) -> Option<String> {
        let ty = self.ty(x);
        if !self.intrinsics.is_mve() || !ty.dtype.is_byte() || (ValueType { dtype: to, ..ty }) != QUAD {
            return None;
        }
        match x {
            Expr::Load { pointer, index, .. } => {
                self.intrinsics.use_type(QUAD);
                Some(quads::widened(ty.dtype, &self.address(*pointer, index)))
            }
            Expr::Splat(number, lanes) => {
                let wide = Expr::Cast(to, number.clone());
                Some(self.expr(&Expr::Splat(Box::new(wide), *lanes)))
            }
            _ => None,
        }
    }

    /// The statement that stores integers of 32 bits as neighbouring bytes, where the machine does.
    pub(super) fn stored_bytes(&mut self, pointer: Var, index: &Index, valid: usize, value: &Expr) -> Option<String> {
        let Expr::Cast(dtype, number) = value else { return None };
        if !self.intrinsics.is_mve() || !dtype.is_byte() || self.ty(number) != QUAD || valid != QUAD.lanes {
            return None;
        }
        let (address, number) = (self.address(pointer, index), self.expr(number));
        // Behind a conversion of its type there is no second operand.
        let number = if *dtype == DType::U8 { number.as_str() } else { unparenthesised(&number) };
        Some(quads::store_bytes(*dtype, &address, number))
    }
}
