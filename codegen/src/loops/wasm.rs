//! What WebAssembly has for vectors of four words, and bytes of as many lanes, where C compilers don't find it ([`super::byte_dots`] has
//! that of x86, [`super::neon`] that of Arm). Each function has a text in GNU vectors beside it, for compilers of other machines.

use super::ValueType;
use super::byte_dots;
use super::expression::{Known, Rescaling};
use super::spelling::{either, value_type_name};
use super::vector_rescaling;
use mlc_ir::DType;
use mlc_ir::scalar::BinaryFunction;

/// What tells that a text uses intrinsics.
pub const INTRINSICS: &str = "defined(__wasm_simd128__)";

/// The lines that declare them.
pub const INCLUDES: &str = "#if defined(__wasm_simd128__)\n#include <wasm_simd128.h>\n#endif\n";

/// Lanes of the vectors.
const LANES: usize = 4;

/// The line that returns a vector of words.
fn returned(value: &str) -> String {
    format!("  return ({}){value};\n", value_type_name(ValueType::vector(DType::I32, LANES)))
}

/// The sum of a vector of words and products of numbers of 16 bits, two for each lane.
fn with_products(sum: &str, x: &str, w: &str) -> String {
    format!("wasm_i32x4_add({sum}, wasm_i32x4_dot_i16x8({x}, {w}))")
}

/// The function that adds the products of pairs.
pub fn pair_dot(name: &str) -> String {
    let own = returned(&with_products("(v128_t)sum", "(v128_t)x", "(v128_t)w"));
    byte_dots::dot_head(name, LANES) + &either(INTRINSICS, &own, &byte_dots::pair_steps(LANES)) + "}\n"
}

/// The function that adds quads: pairs of the even bytes and pairs of the odd ones.
pub fn quad_dot(name: &str) -> String {
    let own = format!(
        "  const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl((v128_t)w, 8), 8), odd = wasm_i16x8_shr((v128_t)w, 8);\n  \
           const v128_t low = wasm_v128_and((v128_t)x, wasm_i16x8_const_splat(255)), high = wasm_u16x8_shr((v128_t)x, 8);\n{}",
        returned(&with_products(&with_products("(v128_t)sum", "low", "even"), "high", "odd"))
    );
    byte_dots::dot_head(name, LANES) + &either(INTRINSICS, &own, &byte_dots::quad_steps(LANES)) + "}\n"
}

/// The function that widens bytes to pairs.
pub fn wide_pairs(name: &str) -> String {
    let [head, steps] = byte_dots::widening(name, LANES);
    head + &either(INTRINSICS, &returned("wasm_i16x8_load8x8(bytes)"), &steps) + "}\n"
}

/// A conversion from bytes to words, `steps` of smaller ones elsewhere; the other way it is these everywhere.
pub fn conversion(name: &str, from: DType, to: ValueType, steps: &str) -> String {
    let (source, target) = (value_type_name(ValueType { dtype: from, ..to }), value_type_name(to));
    let steps = format!("  return {steps};\n");
    let sign = if from.is_signed() { "i" } else { "u" };
    let own = format!(
        "  return ({target})wasm_{sign}32x4_extend_low_{sign}16x8(wasm_{sign}16x8_extend_low_{sign}8x16(wasm_v128_load32_zero(&x)));\n"
    );
    let body = if from.size() == 1 { either(INTRINSICS, &own, &steps) } else { steps };
    format!("static inline {target} {name}({source} x) {{\n{body}}}\n")
}

/// The body of a function that gives the larger or the smaller of two words.
pub fn extreme(function: BinaryFunction, steps: &str) -> String {
    let middle = if function == BinaryFunction::Maximum { "max" } else { "min" };
    either(INTRINSICS, &returned(&format!("wasm_i32x4_{middle}((v128_t)x, (v128_t)y)")), steps)
}

/// Words as bytes: the nearest end of their range where they are outside.
pub fn saturation(name: &str, to: ValueType, limited: &str) -> String {
    let (wide, target) = (value_type_name(ValueType { dtype: DType::I32, ..to }), value_type_name(to));
    let sign = if to.dtype.is_signed() { "i" } else { "u" };
    let own = format!(
        "  const v128_t half = wasm_i16x8_narrow_i32x4((v128_t)x, (v128_t)x);\n  \
           {target} y;\n  \
           wasm_v128_store32_lane(&y, wasm_{sign}8x16_narrow_i16x8(half, half), 0);\n  \
           return y;\n"
    );
    format!("static inline {target} {name}({wide} x) {{\n{}}}\n", either(INTRINSICS, &own, limited))
}

/// The body of a function that rounds singles to integers of 23 bits; NaN becomes 0.
pub fn rounded(steps: &str) -> String {
    let limited = "  const v128_t y = wasm_f32x4_min(wasm_f32x4_max((v128_t)x, wasm_f32x4_const_splat(-4194304.0f)), \
                   wasm_f32x4_const_splat(4194303.0f));\n";
    let own = limited.to_owned() + &returned("wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(y))");
    either(INTRINSICS, &own, steps)
}

/// The body of a function that changes the scale of words, of which more is known than nothing; `steps` do it elsewhere.
pub fn rescaling(rescaling: Rescaling, ty: ValueType, steps: &str) -> String {
    let own = match rescaling.known {
        Known::Near | Known::Cut => at_once(rescaling.known, ty),
        _ => by_halves(rescaling, ty),
    };
    either(INTRINSICS, &own, steps)
}

/// The body of the function that rescales by the nearest integers of lines; `steps` do it elsewhere.
pub fn line(steps: &str) -> String {
    let own = "  const v128_t line = wasm_f32x4_add(wasm_f32x4_mul((v128_t)slope, wasm_f32x4_convert_i32x4((v128_t)x)),\n    \
               (v128_t)offset);\n  \
               return (i32x4)wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest(line));\n";
    either(INTRINSICS, own, steps)
}

/// The lines of the products of the lower and of the upper lanes of `x`, each with `added` to it.
fn products(x: &str, added: Option<&str>) -> String {
    let one = |part: &str| {
        let product = format!("wasm_i64x2_extmul_{part}_i32x4((v128_t){x}, (v128_t)multiplier)");
        let sum = added.map(|_| format!("wasm_i64x2_add({product}, half)"));
        format!("  const v128_t {part} = {};\n", sum.unwrap_or(product))
    };
    let half = added.map_or_else(String::new, |added| format!("  const v128_t half = wasm_i64x2_splat({added});\n"));
    half + &one("low") + &one("high")
}

/// What [`vector_rescaling`] has of that name, in which the constants of a lane that don't reach below its upper word are added there.
fn at_once(known: Known, ty: ValueType) -> String {
    let (t, unsigned) = (value_type_name(ty), value_type_name(ValueType { dtype: DType::U32, ..ty }));
    let negative = if known == Known::Near { format!(" + ({unsigned})(x >> 31)") } else { String::new() };
    format!(
        "  const {t} twice = ({t})(({unsigned})x + ({unsigned})x), places = shift & 31;\n\
         {}  \
           const {unsigned} added_twice = ({unsigned})wasm_i32x4_splat(2 * added + 1) << ({unsigned})places;\n  \
           const {unsigned} value = ({unsigned})wasm_i32x4_shuffle(low, high, 1, 3, 5, 7) + added_twice{negative};\n  \
           return ({t})value >> (places + 1);\n",
        products("twice", Some("2147483648"))
    )
}

/// What [`vector_rescaling`] has of that name.
fn by_halves(rescaling: Rescaling, ty: ValueType) -> String {
    let t = value_type_name(ty);
    let half = vector_rescaling::adds_half(rescaling).then_some("1073741824");
    format!(
        "{}  \
           {t} value = ({t})wasm_i32x4_shuffle(wasm_u64x2_shr(low, 31), wasm_u64x2_shr(high, 31), 0, 2, 4, 6);\n{}",
        products("x", half),
        vector_rescaling::rounded(rescaling, ty)
    )
}
