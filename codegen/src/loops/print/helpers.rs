//! Values that are calls of helpers whatever they are made of.

use super::Printer;
use crate::loops::VarKind;
use crate::loops::expression::Expr;
use crate::loops::helper::{Helpers, Intrinsic};
use crate::loops::spelling::unparenthesised;
use mlc_ir::DType;

impl Printer<'_> {
    /// A rescaling, a saturation, a pair of halves, a quad of bytes or their products.
    pub(super) fn helper(&mut self, expr: &Expr) -> String {
        if let Expr::Rescale(rescaling, children) = expr
            && self.intrinsics.is_mve()
            && self.ty(&children[0]).lanes > 1
        {
            return self.rescaled_lanes(rescaling.added, children);
        }
        let (intrinsic, last) = match expr {
            Expr::Rescale(rescaling, _) => {
                let added = rescaling.known.takes_added().then(|| rescaling.added.to_string());
                (Intrinsic::Rescale(*rescaling, self.ty(expr)), added)
            }
            Expr::Pair { pointer, index } => {
                let is_of_halves =
                    matches!(self.vars[*pointer as usize].kind, VarKind::Pointer { dtype: DType::F16, .. });
                let intrinsic = if is_of_halves { Intrinsic::HalfPair } else { Intrinsic::Pair };
                (intrinsic, Some(self.address(*pointer, index)))
            }
            Expr::HalfOf { is_upper, .. } => (Intrinsic::HalfOf { is_upper: *is_upper }, None),
            Expr::WidePairs { pointer, index, lanes } => {
                (Intrinsic::WidePairs(*lanes), Some(self.address(*pointer, index)))
            }
            Expr::Quad { pointer, index } => (Intrinsic::Quad, Some(self.address(*pointer, index))),
            Expr::QuadDot(_) => (Intrinsic::QuadDot(self.ty(expr).lanes), None),
            Expr::Line(integers, _) => (Intrinsic::Line(*integers, self.ty(expr).lanes), None),
            Expr::Saturate(dtype, _) => (Intrinsic::Saturate(*dtype, self.ty(expr).lanes), None),
            _ => (Intrinsic::Dot(self.ty(expr).lanes), None),
        };
        let name = self.intrinsics.call(intrinsic);
        let lanes = self.ty(expr).lanes;
        let mut arguments: Vec<String> = Vec::new();
        for child in expr.children() {
            let text = if lanes > 1 { self.widened(child, lanes, DType::I32) } else { self.expr(child) };
            arguments.push(unparenthesised(&text).to_owned());
        }
        arguments.extend(last);
        format!("{name}({})", arguments.join(", "))
    }

    /// The line before a loop whose turns aren't to be written one after the other; none before others.
    pub(super) fn hint(&mut self, is_rolled: bool) {
        if is_rolled {
            let hint = self.intrinsics.call(Intrinsic::Rolled);
            self.line(&hint);
        }
    }
}
