//! Changes of the scale of integers as C: `x * multiplier / 2^shift`, rounded.

use super::ValueType;
use super::dsp_text::high_product;
use super::expression::{Known, Rescaling};
use super::spelling::{c_type, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::Rounding;

/// The helper's name.
pub fn name(rescaling: Rescaling, ty: ValueType) -> String {
    let known = match rescaling.known {
        Known::Nothing => "",
        Known::Right => "_right",
        Known::Small => "_small",
        Known::Middle => "_middle",
        Known::Near => "_near",
        Known::Cut => "_cut",
    };
    format!("mlc_{}{}{known}_{}", Rounding::PREFIX, rescaling.rounding.name(), value_type_name(ty))
}

/// The helper. Products are of 64 bits, sums wrap.
pub fn definition(name: &str, rescaling: Rescaling, dtype: DType) -> String {
    if rescaling.known == Known::Small {
        return small(name);
    }
    let t = c_type(dtype);
    let unsigned = if dtype == DType::I64 { "uint64_t" } else { "uint32_t" };
    let product = |x: &str| match dtype {
        DType::I64 => format!("(int64_t)((uint64_t){x} * (uint64_t)multiplier)"),
        _ => format!("(int64_t){x} * multiplier"),
    };
    // A sum that may wrap.
    let sum = |x: &str, y: &str| match dtype {
        DType::I64 => format!("(int64_t)((uint64_t){x} + (uint64_t){y})"),
        _ => format!("{x} + {y}"),
    };
    let twice = rescaling.rounding == Rounding::Twice;
    let bits = if twice { "shift - 31" } else { "shift" };
    let mut lines = Vec::new();
    let mut factor = "x";
    if rescaling.known == Known::Nothing {
        let bits = if twice { "shift < -64 ? -95 : shift - 31" } else { "shift" };
        lines.push(format!("const {t} right = {bits};"));
        let width = 8 * dtype.size();
        lines.push(format!(
            "const {t} scaled = right >= 0 ? x : right > -{width} ? ({t})(({unsigned})x << -right) : 0;"
        ));
        factor = "scaled";
    } else {
        lines.push(format!("const {t} right = {bits};"));
    }
    if twice {
        lines.push(format!("const int64_t product = {};", product(factor)));
        lines.push(format!("const int64_t value = {} >> 31;", grouped(&sum("product", "1073741824"))));
    } else {
        lines.push(format!("const int64_t value = {};", product(factor)));
    }
    let down = if twice { " - (value < 0)" } else { "" };
    let half = format!("(((int64_t)1 << (right - 1)){down})");
    let rounded = format!("return ({t})({} >> right);", grouped(&sum("value", &half)));
    if rescaling.known == Known::Nothing {
        lines.push("if (right <= 0) {".to_owned());
        lines.push(format!("  return ({t})value;"));
        lines.push("}".to_owned());
        lines.push("if (right > 62) {".to_owned());
        lines.push("  return 0;".to_owned());
        lines.push("}".to_owned());
    }
    lines.push(rounded);
    format!("static inline {t} {name}({t} x, {t} multiplier, {t} shift) {{\n  {}\n}}\n", lines.join("\n  "))
}

fn grouped(text: &str) -> String {
    format!("({text})")
}

/// Of a number that can be doubled: the upper word of its product, rounded, which the DSP extension has an instruction for. What is
/// added is a part of the half that the second rounding adds.
fn small(name: &str) -> String {
    format!(
        "static inline int32_t {name}(int32_t x, int32_t multiplier, int32_t shift, int32_t added) {{\n\
         {HAS_DSP}  \
           int32_t value;\n  \
           __asm__(\"smmulr %0, %1, %2\" : \"=r\"(value) : \"r\"(x * 2), \"r\"(multiplier));\n\
         #else\n{}\
         #endif\n  \
           value -= value < 0;\n  \
           return ((value >> (shift - 32)) + (2 * added + 1)) >> 1;\n}}\n",
        high_product("x", "multiplier")
    )
}

/// An integer as one of a narrow type: the nearest end of its range where it is outside.
pub fn saturation(name: &str, dtype: DType) -> String {
    let t = c_type(dtype);
    let bits = 8 * dtype.size();
    let (low, high) = dtype.integer_range(bits);
    let instruction = if dtype.is_signed() { "ssat" } else { "usat" };
    format!(
        "static inline {t} {name}(int32_t x) {{\n\
         {HAS_DSP}  \
           int32_t value;\n  \
           __asm__(\"{instruction} %0, #{bits}, %1\" : \"=r\"(value) : \"r\"(x));\n  \
           return ({t})value;\n\
         #else\n  \
           return ({t})(x < {low} ? {low} : x > {high} ? {high} : x);\n\
         #endif\n}}\n"
    )
}

const HAS_DSP: &str = "#if defined(__ARM_FEATURE_DSP) && defined(__GNUC__)\n";
