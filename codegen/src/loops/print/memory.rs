//! How elements are loaded and stored, one by one and in vectors.

use super::Printer;
use crate::loops::expression::{Expr, Index};
use crate::loops::helper::{Helpers, Intrinsic};
use crate::loops::spelling::{unparenthesised, value_type_name};
use crate::loops::{ValueType, Var, mve};
use mlc_ir::DType;

impl Printer<'_> {
    /// A vector of neighbours.
    pub(super) fn load(&mut self, pointer: Var, index: &Index, ty: ValueType) -> String {
        self.intrinsics.use_type(ty);
        let address = self.address(pointer, index);
        if self.intrinsics.is_mve() && mve::is_spread(ty) {
            return mve::load(ty, &address, ty.lanes);
        }
        format!("*(const {}_unaligned *)({address})", value_type_name(ty))
    }

    /// A vector that is read once.
    pub(super) fn held(&mut self, vector: &Expr) -> String {
        let (ty, text) = (self.ty(vector), self.expr(vector));
        format!("{}({})", self.intrinsics.call(Intrinsic::Held(ty)), unparenthesised(&text))
    }

    /// A lane of a vector; of halves, its bits.
    pub(super) fn lane(&mut self, vector: &Expr, lane: usize) -> String {
        let text = self.expr(vector);
        match self.intrinsics.half_bits(self.ty(vector)) {
            Some(bits) => {
                self.intrinsics.use_type(bits);
                format!("(({}){text})[{lane}]", value_type_name(bits))
            }
            None => format!("{text}[{lane}]"),
        }
    }

    /// A half as a number of C's, not its bits.
    pub(super) fn half(&mut self, value: &Expr) -> String {
        let bits = self.expr(value);
        format!("{}({})", self.intrinsics.call(Intrinsic::Half), unparenthesised(&bits))
    }

    pub(super) fn gather(&mut self, pointer: Var, index: &Index, stride: i64, valid: usize, ty: ValueType) -> String {
        self.intrinsics.use_type(ty);
        if self.intrinsics.is_mve() && stride == 1 && ty.lanes > 1 {
            let address = self.address(pointer, index);
            return mve::load(ty, &address, valid);
        }
        if self.intrinsics.is_mve() && mve::reaches(ty, stride) {
            return mve::gather(&self.address(pointer, index), stride, valid);
        }
        let lanes: Vec<String> = (0..ty.lanes)
            .map(|lane| {
                if lane >= valid {
                    return "0".to_owned();
                }
                let at = self.index(&index.offset(lane as i64 * stride));
                format!("{}[{at}]", self.name(pointer))
            })
            .collect();
        if ty.lanes == 1 {
            return lanes[0].clone();
        }
        let (name, lanes) = (value_type_name(ty), lanes.join(", "));
        match self.intrinsics.half_bits(ty) {
            Some(bits) => {
                self.intrinsics.use_type(bits);
                format!("({name})({}){{{lanes}}}", value_type_name(bits))
            }
            None => format!("({name}){{{lanes}}}"),
        }
    }

    pub(super) fn store(&mut self, pointer: Var, index: &Index, stride: i64, valid: usize, value: &Expr) {
        let ty = self.ty(value);
        let target = self.name(pointer).to_owned();
        if stride == 1
            && let Some(line) = self.stored_bytes(pointer, index, valid, value)
        {
            return self.line(&line);
        }
        let is_spread = self.intrinsics.is_mve() && mve::is_spread(ty);
        if ty.lanes > 1 && stride == 1 && valid == ty.lanes && !is_spread {
            self.intrinsics.use_type(ty);
            let address = self.address(pointer, index);
            let value = self.expr(value);
            return self.line(&format!(
                "*({}_unaligned *)({address}) = {};",
                value_type_name(ty),
                unparenthesised(&value)
            ));
        }
        if ty.lanes == 1 {
            let at = self.index(index);
            let value = self.expr(value);
            let value = if ty.dtype == DType::Bool {
                format!("(uint8_t)({value})")
            } else {
                unparenthesised(&value).to_owned()
            };
            return self.line(&format!("{target}[{at}] = {value};"));
        }
        if is_spread && stride == 1 && valid == ty.lanes {
            let (address, value) = (self.address(pointer, index), self.expr(value));
            return self.line(&mve::store(ty, &address, &value, valid));
        }
        if let (1, Expr::Var(var)) = (stride, value) {
            let address = self.address(pointer, index);
            let value = self.name(*var).to_owned();
            if self.intrinsics.is_mve() {
                return self.line(&mve::store(ty, &address, &value, valid));
            }
            let bytes = valid * ty.dtype.size();
            return self.line(&format!("__builtin_memcpy({address}, &{value}, {bytes});"));
        }
        if self.intrinsics.is_mve() && mve::reaches(ty, stride) {
            let (address, value) = (self.address(pointer, index), self.expr(value));
            return self.line(&mve::scatter(&address, stride, unparenthesised(&value), valid));
        }
        for lane in 0..valid {
            let at = self.index(&index.offset(lane as i64 * stride));
            let value = self.lane(value, lane);
            self.line(&format!("{target}[{at}] = {value};"));
        }
    }
}
