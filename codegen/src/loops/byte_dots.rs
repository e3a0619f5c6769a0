//! Sums of products of bytes in vectors as C: by the intrinsics of x86 where there are any, the same in GNU vectors anywhere else.
//!
//! A *quad* is a word of four bytes, the first in its lowest bits. A lane's sum gets four products at once: unsigned bytes times signed
//! ones, exact, wrapping as 32 bits. A *pair* is a word of two numbers of 16 bits, of which a lane gets two products at once.

use super::ValueType;
use super::spelling::{either, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::BinaryFunction;

/// What names of intrinsics begin with.
pub const INTRINSICS: &str = "_mm";

/// The lines that declare them.
pub const INCLUDES: &str = "#if defined(__SSE4_1__)\n#include <immintrin.h>\n#endif\n";

/// A width of registers: what names of intrinsics and types begin with, and how C compilers say which instructions there are.
pub struct Width {
    /// What intrinsics begin with.
    pub prefix: &'static str,
    /// The type of registers of integers.
    pub register: &'static str,
    /// Bits, as names of intrinsics end.
    pub bits: usize,
    /// The condition on which there are quads, and the middle of the intrinsic's name.
    quads: &'static [(&'static str, &'static str)],
    /// The condition on which there are integers of all sizes.
    pub integers: &'static str,
}

const WIDTHS: [Width; 3] = [
    Width {
        prefix: "_mm",
        register: "__m128i",
        bits: 128,
        quads: &[
            ("defined(__AVX512VNNI__) && defined(__AVX512VL__)", "dpbusd"),
            ("defined(__AVXVNNI__)", "dpbusd_avx"),
        ],
        integers: "defined(__SSE4_1__)",
    },
    Width {
        prefix: "_mm256",
        register: "__m256i",
        bits: 256,
        quads: &[
            ("defined(__AVX512VNNI__) && defined(__AVX512VL__)", "dpbusd"),
            ("defined(__AVXVNNI__)", "dpbusd_avx"),
        ],
        integers: "defined(__AVX2__)",
    },
    Width {
        prefix: "_mm512",
        register: "__m512i",
        bits: 512,
        quads: &[("defined(__AVX512VNNI__)", "dpbusd")],
        integers: "defined(__AVX512BW__)",
    },
];

/// The width of vectors of so many lanes of 32 bits, if machines have such registers.
pub fn width(lanes: usize) -> Option<&'static Width> {
    WIDTHS.iter().find(|width| width.bits == 32 * lanes)
}

/// The name of the function that does something with vectors of so many lanes.
pub fn name(what: &str, lanes: usize) -> String {
    format!("mlc_{what}_{}", value_type_name(ValueType::vector(DType::I32, lanes)))
}

/// Four bytes as a word.
pub fn quad(name: &str) -> String {
    format!(
        "static inline int32_t {name}(const void *bytes) {{\n  \
           int32_t word;\n  \
           __builtin_memcpy(&word, bytes, 4);\n  \
           return word;\n}}\n"
    )
}

/// The first line of the function that adds the products of quads or pairs.
pub fn dot_head(name: &str, lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    format!("static inline {t} {name}({t} sum, {t} x, {t} w) {{\n")
}

/// The body of the function that adds quads, where there is no instruction for it.
pub fn quad_steps(lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let u = value_type_name(ValueType::vector(DType::U32, lanes));
    let product = |byte: usize| {
        let (up, down) = (24 - 8 * byte, 8 * byte);
        let left = if down == 0 { format!("(({u})x & 0xffu)") } else { format!("((({u})x >> {down}) & 0xffu)") };
        let right = if up == 0 { format!("({u})(w >> 24)") } else { format!("({u})(({t})(({u})w << {up}) >> 24)") };
        format!("{left} * {right}")
    };
    let products: Vec<String> = (0..4).map(product).collect();
    format!("  return ({t})(({u})sum + {});\n", products.join("\n    + "))
}

/// The function that adds quads. Even and odd bytes of a word are two pairs of 16 bits each, whose sums of products don't saturate.
pub fn dot(name: &str, lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let u = value_type_name(ValueType::vector(DType::U32, lanes));
    let mut text = dot_head(name, lanes);
    let mut opening = "#if";
    if let Some(Width { prefix, register, quads, integers, .. }) = width(lanes) {
        for (condition, middle) in *quads {
            text += &format!(
                "{opening} {condition}\n  return ({t}){prefix}_{middle}_epi32(({register})sum, ({register})x, ({register})w);\n"
            );
            opening = "#elif";
        }
        text += &format!(
            "{opening} {integers}\n  \
               const {register} even = {prefix}_srai_epi16({prefix}_slli_epi16(({register})w, 8), 8);\n  \
               const {register} odd = {prefix}_srai_epi16(({register})w, 8);\n  \
               const {u} low = ({u})x & 0xff00ffu, high = (({u})x >> 8) & 0xff00ffu;\n  \
               const {u} first = ({u}){prefix}_madd_epi16(({register})low, even);\n  \
               const {u} second = ({u}){prefix}_madd_epi16(({register})high, odd);\n  \
               {t} y = ({t})(({u})sum + first + second);\n{KEPT_APART}  return y;\n\
             #else\n"
        );
    }
    text += &quad_steps(lanes);
    text + if opening == "#elif" { "#endif\n}\n" } else { "}\n" }
}

/// What keeps gcc from adding the products of several words before they are added to a sum: there would be more of them than registers.
const KEPT_APART: &str = "  __asm__(\"\" : \"+v\"(y));\n";

/// The body of the function that adds the products of pairs, where there is no instruction for it.
pub fn pair_steps(lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let u = value_type_name(ValueType::vector(DType::U32, lanes));
    let low = |word: &str| format!("({u})(({t})(({u}){word} << 16) >> 16)");
    let high = |word: &str| format!("({u})({word} >> 16)");
    format!("  return ({t})(({u})sum + {} * {} + {} * {});\n", low("x"), low("w"), high("x"), high("w"))
}

/// The function that adds the products of pairs.
pub fn pair_dot(name: &str, lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let u = value_type_name(ValueType::vector(DType::U32, lanes));
    let (head, steps) = (dot_head(name, lanes), pair_steps(lanes));
    let Some(Width { prefix, register, integers, .. }) = width(lanes) else { return format!("{head}{steps}}}\n") };
    let own = format!(
        "  {t} y = ({t})(({u})sum + ({u}){prefix}_madd_epi16(({register})x, ({register})w));\n{KEPT_APART}  return y;\n"
    );
    format!("{head}{}}}\n", either(integers, &own, &steps))
}

/// The first line of the function that widens bytes to pairs, and its body where there is no instruction for it.
pub fn widening(name: &str, lanes: usize) -> [String; 2] {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let bytes = value_type_name(ValueType::vector(DType::I8, 2 * lanes));
    let wide = value_type_name(ValueType::vector(DType::I16, 2 * lanes));
    [
        format!("static inline {t} {name}(const int8_t *bytes) {{\n"),
        format!("  return ({t})__builtin_convertvector(*(const {bytes}_unaligned *)bytes, {wide});\n"),
    ]
}

/// The function that widens bytes to pairs.
pub fn wide_pairs(name: &str, lanes: usize) -> String {
    let t = value_type_name(ValueType::vector(DType::I32, lanes));
    let [head, steps] = widening(name, lanes);
    let Some(Width { prefix, bits, integers, .. }) = width(lanes) else { return format!("{head}{steps}}}\n") };
    let load = match bits {
        128 => "_mm_loadl_epi64((const __m128i *)(const void *)bytes)",
        256 => "_mm_loadu_si128((const __m128i *)(const void *)bytes)",
        _ => "_mm256_loadu_si256((const __m256i *)(const void *)bytes)",
    };
    let own = format!("  return ({t}){prefix}_cvtepi8_epi16({load});\n");
    format!("{head}{}}}\n", either(integers, &own, &steps))
}

/// A conversion between vectors of bytes and of words, `steps` of smaller ones where there is no instruction for it.
pub fn conversion(name: &str, from: DType, to: ValueType, steps: &str) -> String {
    let (source, target) = (value_type_name(ValueType { dtype: from, ..to }), value_type_name(to));
    let steps = format!("  return {steps};\n");
    let body = match width(to.lanes) {
        None => steps,
        Some(Width { prefix, bits, integers, .. }) if from.size() == 1 => {
            let sign = if from.is_signed() { "i" } else { "u" };
            let bytes = if *bits == 512 { "(__m128i)x".to_owned() } else { format!("_mm_loadu_si{}(&x)", bits / 4) };
            either(integers, &format!("  return ({target}){prefix}_cvtep{sign}8_epi32({bytes});\n"), &steps)
        }
        Some(_) => {
            either("defined(__AVX512VL__)", &format!("  return __builtin_convertvector(x, {target});\n"), &steps)
        }
    };
    format!("static inline {target} {name}({source} x) {{\n{body}}}\n")
}

/// The body of a function that gives the larger or the smaller of two words, `steps` where there is no instruction for it.
pub fn extreme(function: BinaryFunction, ty: ValueType, steps: &str) -> String {
    let Some(Width { prefix, register, integers, .. }) = width(ty.lanes) else { return steps.to_owned() };
    let middle = if function == BinaryFunction::Maximum { "max" } else { "min" };
    let t = value_type_name(ty);
    either(integers, &format!("  return ({t}){prefix}_{middle}_epi32(({register})x, ({register})y);\n"), steps)
}

/// The body of a function that rounds singles to integers of 23 bits, `steps` where there is no instruction for it. The larger of NaN and
/// a limit is the limit, so that lanes of NaN are taken out.
pub fn rounded(ty: ValueType, steps: &str) -> String {
    let Some(Width { prefix, bits, integers, .. }) = width(ty.lanes) else { return steps.to_owned() };
    let t = value_type_name(ValueType { dtype: DType::I32, ..ty });
    let register = format!("__m{bits}");
    let limited = format!(
        "  const {register} y = {prefix}_min_ps({prefix}_max_ps(({register})x, {prefix}_set1_ps(-4194304.0f)), \
         {prefix}_set1_ps(4194303.0f));\n"
    );
    let value = match bits {
        512 => format!("{prefix}_maskz_cvtps_epi32({prefix}_cmp_ps_mask(({register})x, ({register})x, _CMP_ORD_Q), y)"),
        _ => {
            let ordered = match bits {
                128 => "_mm_cmpord_ps((__m128)x, (__m128)x)".to_owned(),
                _ => format!("{prefix}_cmp_ps(({register})x, ({register})x, _CMP_ORD_Q)"),
            };
            format!("{prefix}_and_si{bits}({prefix}_cvtps_epi32(y), {prefix}_castps_si{bits}({ordered}))")
        }
    };
    either(integers, &format!("{limited}  return ({t}){value};\n"), steps)
}

/// The lines that limit words to the range of a type and convert them by `steps`.
pub fn limited(to: ValueType, (least, most): (&str, &str), steps: &str) -> String {
    let wide = value_type_name(ValueType { dtype: DType::I32, ..to });
    let (low, high) = to.dtype.integer_range(8);
    let splat = |number: f64| format!("({wide}){{0}} + ({number})");
    format!("  const {wide} limited = {most}({least}(x, {}), {});\n  return {steps};\n", splat(low), splat(high))
}

/// Words as bytes: the nearest end of their range where they are outside. `least` and `most` name the functions that give the larger and
/// the smaller of two vectors, `steps` converts what is `limited`.
pub fn saturation(name: &str, to: ValueType, extremes: (&str, &str), steps: &str) -> String {
    let wide = value_type_name(ValueType { dtype: DType::I32, ..to });
    let target = value_type_name(to);
    let limited = limited(to, extremes, steps);
    let head = format!("static inline {target} {name}({wide} x) {{\n");
    let Some(Width { register, integers, .. }) = width(to.lanes).filter(|_| to.dtype.is_byte()) else {
        return format!("{head}{limited}}}\n");
    };
    let end = if to.dtype.is_signed() { "s" } else { "us" };
    let stored = format!("  {target} y;\n  __builtin_memcpy(&y, &bytes, sizeof(y));\n  return y;\n");
    let halves = match to.lanes {
        4 => "(__m128i)x, (__m128i)x",
        _ => "_mm256_castsi256_si128((__m256i)x), _mm256_extracti128_si256((__m256i)x, 1)",
    };
    // Words become signed numbers of 16 bits first, which have all that is in a byte's range.
    let packed = format!(
        "  const __m128i half = _mm_packs_epi32({halves});\n  \
           const __m128i bytes = _mm_pack{end}_epi16(half, half);\n{stored}"
    );
    let body = match to.lanes {
        16 if to.dtype.is_signed() => {
            let bytes = format!("  return ({target})_mm512_cvtsepi32_epi8(({register})x);\n");
            either("defined(__AVX512VL__)", &bytes, &limited)
        }
        16 => limited,
        _ => either(integers, &packed, &limited),
    };
    format!("{head}{body}}}\n")
}

/// A shift of the lanes of a vector by those of another; by more bits than there are, all are lost.
pub fn shift_left(name: &str, ty: ValueType, unsigned: &str) -> String {
    let (t, bits) = (value_type_name(ty), 8 * ty.dtype.size());
    format!(
        "static inline {t} {name}({t} x, {t} y) {{\n  const {unsigned} shift = ({unsigned})y;\n  \
         return ({t})((({unsigned})x << (shift & {})) & ({unsigned})(shift < {bits}));\n}}\n",
        bits - 1
    )
}

/// A shift of the lanes of a vector of signed integers to the right by those of another; by more bits than there are, only signs are left.
pub fn shift_right(name: &str, ty: ValueType, unsigned: &str) -> String {
    let (t, bits) = (value_type_name(ty), 8 * ty.dtype.size());
    let last = bits - 1;
    format!(
        "static inline {t} {name}({t} x, {t} y) {{\n  const {unsigned} shift = ({unsigned})y;\n  \
         return x >> ({t})((shift & {last}) | (({unsigned})(shift > {last}) & {last}));\n}}\n"
    )
}
