//! Half-precision elements. A value of `f16` or `bf16` is its bits, an unsigned 16-bit integer: it can be moved and converted,
//! nothing else. Schedules compute with such elements in single precision and say so by loading and storing values of type
//! `f32` through a pointer to halves; [`convert`] makes the conversions explicit. Narrow integers are loaded as wide ones in the same
//! way.

use super::{Expr, Stmt, ValueType, Var, VarInfo, VarKind, value_type};
use mlc_ir::DType;

/// The type in which generated code computes with elements of a type.
pub fn arithmetic_dtype(dtype: DType) -> DType {
    if is_half(dtype) { DType::F32 } else { dtype }
}

/// Whether it is a floating-point type of 16 bits.
pub fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16)
}

/// Puts conversions between memory in half precision and values in single precision, and where integers are loaded as wider ones.
pub fn convert(vars: &mut Vec<VarInfo>, body: &mut Vec<Stmt>) {
    let is_narrow = |dtype: DType| is_half(dtype) || dtype.is_integer() && dtype.size() <= 2;
    if vars.iter().any(|var| matches!(var.kind, VarKind::Pointer { dtype, .. } if is_narrow(dtype))) {
        block(vars, body);
    }
}

/// The type of the elements behind a pointer where they are loaded as ones of another.
fn stored_dtype(vars: &[VarInfo], pointer: Var, loaded: DType) -> Option<DType> {
    match vars[pointer as usize].kind {
        VarKind::Pointer { dtype, .. } if is_half(dtype) && loaded == DType::F32 => Some(dtype),
        VarKind::Pointer { dtype, .. } => {
            (dtype.is_integer() && loaded.is_integer() && dtype.size() < loaded.size()).then_some(dtype)
        }
        _ => None,
    }
}

/// The type of the halves that a pointer points at.
fn half_behind(vars: &[VarInfo], pointer: Var) -> Option<DType> {
    match vars[pointer as usize].kind {
        VarKind::Pointer { dtype, .. } if is_half(dtype) => Some(dtype),
        _ => None,
    }
}

fn block(vars: &mut Vec<VarInfo>, body: &mut Vec<Stmt>) {
    for mut statement in std::mem::take(body) {
        match &mut statement {
            Stmt::For { body, .. } => block(vars, body),
            Stmt::Define { value, .. } | Stmt::Assign { value, .. } => loads(vars, value),
            Stmt::If { then, otherwise, .. } => {
                block(vars, then);
                block(vars, otherwise);
            }
            Stmt::IfValue { condition, then } => {
                loads(vars, condition);
                block(vars, then);
            }
            Stmt::Store { pointer, value, stride, valid, .. } => {
                loads(vars, value);
                let ty = value_type(vars, value);
                if let Some(half) = half_behind(vars, *pointer).filter(|_| ty.dtype == DType::F32) {
                    *value = narrowed(vars, half, value.clone());
                    // Lanes that are stored one by one are those of a variable, so that they are converted once.
                    if ty.lanes > 1 && (*stride != 1 || *valid < ty.lanes) {
                        let var = variable(vars, ValueType { dtype: half, ..ty });
                        let halves = std::mem::replace(value, Expr::Var(var));
                        body.push(Stmt::Define { var, value: halves, mutable: false });
                    }
                }
            }
            Stmt::DefineIndex { .. }
            | Stmt::Pointer { .. }
            | Stmt::Array { .. }
            | Stmt::Routine { .. }
            | Stmt::Launch { .. }
            | Stmt::Comment(_) => {}
        }
        body.push(statement);
    }
}

fn variable(vars: &mut Vec<VarInfo>, ty: ValueType) -> Var {
    vars.push(VarInfo { name: format!("halves_{}", vars.len()), kind: VarKind::Value(ty) });
    vars.len() as Var - 1
}

/// The value in half precision; one that was just made of halves is those.
fn narrowed(vars: &[VarInfo], half: DType, value: Expr) -> Expr {
    match value {
        Expr::Cast(DType::F32, inner) if value_type(vars, &inner).dtype == half => *inner,
        value => Expr::Cast(half, Box::new(value)),
    }
}

fn loads(vars: &[VarInfo], expr: &mut Expr) {
    match expr {
        Expr::Load { pointer, ty, .. } | Expr::Gather { pointer, ty, .. } => {
            let wide = ty.dtype;
            let Some(stored) = stored_dtype(vars, *pointer, wide) else { return };
            ty.dtype = stored;
            *expr = Expr::Cast(wide, Box::new(expr.clone()));
        }
        other => other.children_mut().for_each(|child| loads(vars, child)),
    }
}
