//! Functions that round singles to integers, exact in every bit. Of vectors: below 2^23 the addition of 2^23 leaves no fraction,
//! above there is none.

use super::ValueType;
use super::instruction_set::InstructionSet;
use super::spelling::value_type_name;
use mlc_ir::DType;
use mlc_ir::scalar::UnaryFunction;

/// The definition of a vector function as C, or `None` for other functions and types.
pub fn definition(name: &str, function: UnaryFunction, ty: ValueType, set: InstructionSet) -> Option<String> {
    if ty.dtype != DType::F32 {
        return None;
    }
    let t = value_type_name(ty);
    let mask = value_type_name(ValueType::vector(DType::I32, ty.lanes));
    if function == UnaryFunction::RoundToInteger {
        return Some(lanes_to_integer(name, ty, [&t, &mask], set));
    }
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

/// [`to_integer`] of the lanes of vectors: the limits by their bits, and NaN as 0.
fn lanes_to_integer(name: &str, ty: ValueType, [t, integers]: [&str; 2], set: InstructionSet) -> String {
    let steps = format!(
        "  const {integers} low = x < -4194304.0f, high = x > 4194303.0f;\n  \
         const {t} y = ({t})((~(low | high) & ({integers})x) | (low & -897581056) | (high & 0x4a7ffffc));\n  \
         return (x == x) & (({integers})(y + 12582912.0f) - 0x4b400000);\n"
    );
    let body = set.rounded(ty, &steps);
    format!("static inline {integers} {name}({t} x) {{\n{body}}}\n")
}

/// The helper that rounds a single to an integer of 23 bits; `bits` is the one that gives a single's bits. The instruction of ARM
/// rounds halves to even, and NaN to 0. Where singles are computed by functions, their bits are looked at instead. All else adds
/// what leaves no bits for a fraction; the limits before that keep C compilers from joining it with a product.
pub fn to_integer(name: &str, bits: &str) -> String {
    format!(
        "static inline int32_t {name}(float x) {{\n\
         #if defined(__ARM_FEATURE_DSP) && defined(__ARM_FP) && defined(__GNUC__)\n  \
           float whole;\n  \
           int32_t value;\n  \
           __asm__(\"vcvtr.s32.f32 %0, %1\" : \"=t\"(whole) : \"t\"(x));\n  \
           __asm__(\"ssat %0, #23, %1\" : \"=r\"(value) : \"r\"({bits}(whole)));\n  \
           return value;\n\
         #elif (defined(__arm__) && !defined(__ARM_FP)) || (defined(__riscv) && !defined(__riscv_flen))\n  \
           const int32_t bits = {bits}(x), magnitude = bits & 0x7fffffff, right = 150 - (magnitude >> 23);\n  \
           int32_t value = (magnitude & 0x7fffff) | 0x800000;\n  \
           if (right < 2) {{\n    \
             return magnitude > 0x7f800000 ? 0 : bits < 0 ? -4194304 : 4194303;\n  \
           }}\n  \
           if (right > 25) {{\n    \
             return 0;\n  \
           }}\n  \
           value += ((int32_t)1 << (right - 1)) - 1 + ((value >> right) & 1);\n  \
           value >>= right;\n  \
           return bits < 0 ? -value : value < 4194303 ? value : 4194303;\n\
         #else\n  \
           float y = x > -4194304.0f ? x : -4194304.0f;\n  \
           y = y < 4194303.0f ? y : 4194303.0f;\n  \
           return x == x ? {bits}(y + 12582912.0f) - 0x4b400000 : 0;\n\
         #endif\n}}\n"
    )
}
