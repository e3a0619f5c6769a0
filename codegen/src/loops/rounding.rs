//! Vector versions of the functions that round singles to integers, exact in every bit: below 2^23 the addition of 2^23 leaves
//! no fraction, above there is none.

use super::ValueType;
use super::spelling::value_type_name;
use mlc_ir::DType;
use mlc_ir::scalar::UnaryFunction;

/// The definition of a vector function as C, or `None` for other functions and types.
pub fn definition(name: &str, function: UnaryFunction, ty: ValueType) -> Option<String> {
    if ty.dtype != DType::F32 {
        return None;
    }
    let t = value_type_name(ty);
    let mask = value_type_name(ValueType::vector(DType::I32, ty.lanes));
    // The nearest integer may be one too far.
    let step =
        |condition: &str, operator: &str| format!("  whole = whole {operator} ({t})(({condition}) & 0x3f800000);\n");
    let (rounded, correction) = match function {
        UnaryFunction::Round => ("magnitude", String::new()),
        UnaryFunction::Truncate => ("magnitude", step("whole > magnitude", "-")),
        UnaryFunction::Floor => ("x", step("whole > x", "-")),
        UnaryFunction::Ceil => ("x", step("whole < x", "+")),
        _ => return None,
    };
    // The magic number has the sign of what is rounded; the sign of x is that of the result, even of zero.
    let magic = if rounded == "x" { format!("({t})(sign | 0x4b000000)") } else { format!("({t}){{0}} + 8388608.0f") };
    Some(format!(
        "static inline {t} {name}({t} x) {{\n  \
         const {mask} bits = ({mask})x & 0x7fffffff, sign = ({mask})x & ~0x7fffffff;\n  \
         const {t} magnitude = ({t})bits, magic = {magic};\n  \
         const {mask} small = magnitude < 8388608.0f;\n  \
         {t} whole = ({rounded} + magic) - magic;\n{correction}  \
         return ({t})((small & (({mask})whole | sign)) | (~small & ({mask})x));\n}}\n"
    ))
}
