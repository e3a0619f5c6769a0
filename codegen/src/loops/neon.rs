//! What Arm's NEON has for vectors of four words, and bytes of as many lanes, where C compilers don't find it ([`super::byte_dots`] has
//! that of x86). Each function has a text in GNU vectors beside it, for compilers of other machines.

use super::ValueType;
use super::expression::{Known, Rescaling};
use super::spelling::{either, value_type_name};
use crate::target::ByteDots;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, Rounding};

/// What tells that a text uses intrinsics.
pub const INTRINSICS: &str = "defined(__ARM_NEON)";

/// The lines that declare them.
pub const INCLUDES: &str = "#if defined(__ARM_NEON)\n#include <arm_neon.h>\n#endif\n";

/// Lanes of the vectors.
const LANES: usize = 4;

/// The function that adds the products of signed bytes; pairs of weights are where [`ByteDots`] says.
pub fn dot(name: &str, dots: ByteDots) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, LANES));
    let head = format!("static inline {t} {name}({t} sum, {t} x, {t} w) {{\n");
    let loops = |weight: &str| {
        format!(
            "  const int8_t *left = (const int8_t *)&x, *right = (const int8_t *)&w;\n  \
               for (int place = 0; place < 16; ++place) {{\n    \
                 sum[place / 4] = (int32_t)((uint32_t)sum[place / 4] + (uint32_t)(left[place] * right[{weight}]));\n  \
               }}\n  \
               return sum;\n"
        )
    };
    let body = match dots {
        ByteDots::SwappedQuads => either(
            INTRINSICS,
            &format!(
                "  const int8x16_t turned = vreinterpretq_s8_s16(vrev32q_s16((int16x8_t)x)), all = (int8x16_t)w;\n  \
                   const int16x8_t first = vmull_s8(vget_low_s8((int8x16_t)x), vget_low_s8(all));\n  \
                   return ({t})vpadalq_s16((int32x4_t)sum, vmlal_s8(first, vget_high_s8(turned), vget_high_s8(all)));\n"
            ),
            &loops("(place ^ (place & 4 ? 2 : 0)) % 4 / 2 * 8 + place / 4 * 2 + place % 2"),
        ),
        _ => either(
            &format!("defined(__ARM_FEATURE_DOTPROD) && {INTRINSICS}"),
            &format!("  return ({t})vdotq_s32((int32x4_t)sum, (int8x16_t)x, (int8x16_t)w);\n"),
            &loops("place"),
        ),
    };
    format!("{head}{body}}}\n")
}

/// The function that adds the products of pairs, whose weights are the first numbers of all lanes, then the second ones.
pub fn pair_dot(name: &str) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, LANES));
    let own = format!(
        "  const int16x8_t words = (int16x8_t)w, pair = (int16x8_t)x;\n\
         #if defined(__aarch64__)\n  \
           return ({t})vmlal_high_laneq_s16(vmlal_laneq_s16((int32x4_t)sum, vget_low_s16(words), pair, 0), words, pair, 1);\n\
         #else\n  \
           const int32x4_t first = vmlal_lane_s16((int32x4_t)sum, vget_low_s16(words), vget_low_s16(pair), 0);\n  \
           return ({t})vmlal_lane_s16(first, vget_high_s16(words), vget_low_s16(pair), 1);\n\
         #endif\n"
    );
    let steps = "  int16_t left[8], right[8];\n  \
                 __builtin_memcpy(left, &x, sizeof(left));\n  \
                 __builtin_memcpy(right, &w, sizeof(right));\n  \
                 for (int lane = 0; lane < 4; ++lane) {\n    \
                   const uint32_t first = (uint32_t)(left[0] * right[lane]), second = (uint32_t)(left[1] * right[lane + 4]);\n    \
                   sum[lane] = (int32_t)((uint32_t)sum[lane] + first + second);\n  \
                 }\n  \
                 return sum;\n";
    format!("static inline {t} {name}({t} sum, {t} x, {t} w) {{\n{}}}\n", either(INTRINSICS, &own, steps))
}

/// The lines that return the four bytes that an instruction makes of the lanes of `half`.
fn narrowed(instruction: &str, target: &str) -> String {
    format!(
        "  const uint32_t bytes = vget_lane_u32((uint32x2_t){instruction}(vcombine_s16(half, half)), 0);\n  \
           {target} y;\n  \
           __builtin_memcpy(&y, &bytes, 4);\n  \
           return y;\n"
    )
}

/// A conversion between vectors of bytes and of words, `steps` of smaller ones elsewhere.
pub fn conversion(name: &str, from: DType, to: ValueType, steps: &str) -> String {
    let (source, target) = (value_type_name(ValueType { dtype: from, ..to }), value_type_name(to));
    let own = if from.size() == 1 {
        let (sign, kind) = if from.is_signed() { ("s", "int") } else { ("u", "uint") };
        format!(
            "  uint32_t bytes;\n  \
               __builtin_memcpy(&bytes, &x, 4);\n  \
               const {kind}8x8_t narrow = ({kind}8x8_t)vdup_n_u32(bytes);\n  \
               return ({target})vmovl_{sign}16(vget_low_{sign}16(vmovl_{sign}8(narrow)));\n"
        )
    } else {
        // Words that are cut: of each the lowest byte.
        format!("  const int16x4_t half = vmovn_s32((int32x4_t)x);\n{}", narrowed("vmovn_s16", &target))
    };
    format!(
        "static inline {target} {name}({source} x) {{\n{}}}\n",
        either(INTRINSICS, &own, &format!("  return {steps};\n"))
    )
}

/// The body of a function that gives the larger or the smaller of two words.
pub fn extreme(function: BinaryFunction, ty: ValueType, steps: &str) -> String {
    let middle = if function == BinaryFunction::Maximum { "max" } else { "min" };
    let t = value_type_name(ty);
    either(INTRINSICS, &format!("  return ({t})v{middle}q_s32((int32x4_t)x, (int32x4_t)y);\n"), steps)
}

/// The body of a function that rounds singles to integers of 23 bits; NaN becomes 0. NEON of 32 bits only cuts.
pub fn rounded(steps: &str) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, LANES));
    let own = format!(
        "  const float32x4_t y = vminq_f32(vmaxq_f32((float32x4_t)x, vdupq_n_f32(-4194304.0f)), vdupq_n_f32(4194303.0f));\n  \
           return ({t})vcvtnq_s32_f32(y);\n"
    );
    either(&format!("{INTRINSICS} && defined(__aarch64__)"), &own, steps)
}

/// Words as bytes: the nearest end of their range where they are outside.
pub fn saturation(name: &str, to: ValueType, limited: &str) -> String {
    let (wide, target) = (value_type_name(ValueType { dtype: DType::I32, ..to }), value_type_name(to));
    let narrow = if to.dtype.is_signed() { "vqmovn_s16" } else { "vqmovun_s16" };
    let own = format!("  const int16x4_t half = vqmovn_s32((int32x4_t)x);\n{}", narrowed(narrow, &target));
    format!("static inline {target} {name}({wide} x) {{\n{}}}\n", either(INTRINSICS, &own, limited))
}

/// The body of a function that changes the scale of words, of which more is known than nothing; `steps` do it elsewhere. Instructions take
/// the 32 bits of a doubled product from number 32 on, rounded or cut, and shift what that gives with a rounding of its own.
pub fn rescaling(rescaling: Rescaling, ty: ValueType, steps: &str) -> String {
    let t = value_type_name(ty);
    let twice = rescaling.rounding == Rounding::Twice;
    let own = match rescaling.known {
        // Saturated, the product of the least numbers would be another one.
        Known::Middle => format!(
            "  const int32x4_t number = (int32x4_t)x, factor = (int32x4_t)multiplier;\n  \
               const int64x2_t low = vmull_s32(vget_low_s32(number), vget_low_s32(factor));\n  \
               const int64x2_t high = vmull_s32(vget_high_s32(number), vget_high_s32(factor));\n  \
               (void)shift;\n  \
               return ({t})vcombine_s32(vrshrn_n_s64(low, 31), vrshrn_n_s64(high, 31));\n"
        ),
        known => {
            let product = if twice { "vqrdmulhq_s32" } else { "vqdmulhq_s32" };
            let negative = if twice { "  value = vsraq_n_s32(value, value, 31);\n" } else { "" };
            let added = if known.takes_added() {
                format!("({t})vaddq_s32(value, vdupq_n_s32(added))")
            } else {
                format!("({t})value")
            };
            format!(
                "  int32x4_t value = {product}((int32x4_t)x, (int32x4_t)multiplier);\n\
                 {negative}  \
                   value = vrshlq_s32(value, vsubq_s32(vdupq_n_s32(31), (int32x4_t)shift));\n  \
                   return {added};\n"
            )
        }
    };
    either(INTRINSICS, &own, steps)
}
