//! Helpers that give the lesser or the greater of two floats, or of a float and a number: what isn't a number stays. C compilers make
//! several instructions of the comparison and the choice; of a known number, fewer. gcc finds the instructions of x86 by their names only.

use super::ValueType;
use super::expression::Expr;
use super::lane_types::mask_name;
use super::mve;
use super::spelling::{c_type, either, value_type_name};
use crate::target::Target;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// The number, if [`Intrinsic::Bounded`](super::helper::Intrinsic::Bounded) gives the lesser or greater of values of a type and it.
pub fn bound(function: BinaryFunction, ty: ValueType, number: &Expr, is_mve: bool) -> Option<Literal> {
    let number = if let Expr::Splat(number, _) = number { number } else { number };
    let Expr::Literal(literal @ Literal::Float(_, value)) = number else { return None };
    let is_known = match is_mve && ty.lanes > 1 {
        true => mve::is_ordered(function, ty, value.0),
        false => matches!(ty.dtype, DType::F32 | DType::F64) && is_extreme(function),
    };
    (is_known && !value.0.is_nan()).then_some(*literal)
}

fn is_extreme(function: BinaryFunction) -> bool {
    matches!(function, BinaryFunction::Minimum | BinaryFunction::Maximum)
}

/// Whether code for a target gives the greater of a vector and a number by one instruction of x86.
pub fn has_instruction(ty: ValueType, target: &Target) -> bool {
    target.may_be_x86() && instruction(BinaryFunction::Maximum, ty).is_some()
}

/// What x86 has for vectors of a type, as gcc names it, and the macro that says so: the second operand where either isn't a number.
fn instruction(function: BinaryFunction, ty: ValueType) -> Option<(&'static str, String)> {
    let (macro_name, suffix) = match (ty.dtype, ty.lanes) {
        (DType::F32, 4) => ("__SSE__", "ps"),
        (DType::F32, 8) => ("__AVX__", "ps256"),
        (DType::F64, 2) => ("__SSE2__", "pd"),
        (DType::F64, 4) => ("__AVX__", "pd256"),
        _ => return None,
    };
    let name = match function {
        BinaryFunction::Minimum => "min",
        BinaryFunction::Maximum => "max",
        _ => return None,
    };
    Some((macro_name, format!("__builtin_ia32_{name}{suffix}")))
}

/// The text of a body that takes `steps`: for gcc another one by the instruction, if code may be compiled for x86 and it has one.
pub fn by_instruction(
    function: BinaryFunction,
    ty: ValueType,
    steps: &str,
    is_x86: bool,
    own: impl FnOnce(&str) -> String,
) -> String {
    match instruction(function, ty).filter(|_| is_x86) {
        Some((macro_name, name)) => {
            either(&format!("defined({macro_name}) && defined(__GNUC__) && !defined(__clang__)"), &own(&name), steps)
        }
        None => steps.to_owned(),
    }
}

/// The body of a function that gives the lesser or greater of vectors `x` and `y`, for x86 by the instruction.
pub fn of_vectors(function: BinaryFunction, ty: ValueType, steps: &str, is_x86: bool) -> String {
    let (t, mask) = (value_type_name(ty), mask_name(ty));
    by_instruction(function, ty, steps, is_x86, |name| {
        format!(
            "  const {t} z = {name}(x, y);\n  const {mask} first = x != x;\n  \
             return ({t})((first & ({mask})x) | (~first & ({mask})z));\n"
        )
    })
}

/// A function that gives the lesser or greater of a value and a number; that of vectors has it in all lanes by `splat`.
pub fn bounded(name: &str, function: BinaryFunction, ty: ValueType, splat: &str, is_x86: bool) -> String {
    let (t, element) = (value_type_name(ty), c_type(ty.dtype));
    let order = if function == BinaryFunction::Maximum { ">" } else { "<" };
    if ty.lanes == 1 {
        return format!(
            "static inline {element} {name}({element} x, {element} bound) {{\n  return bound {order} x ? bound : x;\n}}\n"
        );
    }
    let mask = mask_name(ty);
    let steps = format!(
        "  const {mask} beyond = y {order} x;\n  return ({t})((beyond & ({mask})y) | (~beyond & ({mask})x));\n"
    );
    let body = by_instruction(function, ty, &steps, is_x86, |name| format!("  return {name}(y, x);\n"));
    format!("static inline {t} {name}({t} x, {element} bound) {{\n  const {t} y = {splat}(bound);\n{body}}}\n")
}
