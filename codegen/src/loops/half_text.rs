//! Conversions between half and single precision as C: bit-exact, to the nearest and ties to even, with denormal numbers,
//! infinities and NaN, whatever the modes of the machine's floating-point unit but its rounding. Integers do the work, so that
//! no instruction for halves is needed; where the C compiler's machine has one, and code may have more than C99, it is used.

use super::ValueType;
use super::halves::is_half;
use super::helper::{Helpers, Intrinsic};
use super::spelling::{c_type, value_type_name};
use mlc_ir::DType;

/// What the conversions include.
pub const INCLUDES: &str = "#include <string.h>\n#if defined(__F16C__)\n#include <immintrin.h>\n#endif\n\
                            #if defined(__aarch64__)\n#include <arm_neon.h>\n#endif\n";

/// What conversions in strict C99 include.
pub const PLAIN_INCLUDES: &str = "#include <string.h>\n";

/// Whether the helper of a name is a conversion from or to halves.
pub fn is_conversion(name: &str) -> bool {
    name.strip_prefix("mlc_cast_").is_some_and(|types| types.contains("f16"))
}

/// The definition of a conversion from or to halves, in strict C99 if it is to be `plain`. The other type is f32, or f64 for scalars that
/// become halves.
pub fn conversion(helpers: &mut dyn Helpers, name: &str, from: DType, to: ValueType, plain: bool) -> String {
    let source = ValueType { dtype: from, ..to };
    if to.lanes > 1 {
        for dtype in [DType::U32, DType::I32, DType::F32] {
            helpers.use_type(ValueType { dtype, ..to });
        }
        let body = if is_half(from) { widened_vector(from, to.lanes) } else { narrowed_vector(to.dtype, to.lanes) };
        let (x, y) = (value_type_name(source), value_type_name(to));
        return format!("static inline {y} {name}({x} x) {{\n{body}}}\n");
    }
    let by_instructions = |instructions: [(&str, &str); 3], portable: &str| match plain {
        true => portable.to_owned(),
        false => alternatives(&instructions, portable),
    };
    let body = match (from, to.dtype) {
        (DType::F16, _) => by_instructions(WIDENING, WIDENED_F16),
        (DType::Bf16, _) => WIDENED_BF16.to_owned(),
        (DType::F64, half) => {
            let single = helpers.call(Intrinsic::Cast(DType::F32, ValueType::scalar(half)));
            format!("{TO_ODD}  return {single}(y);\n")
        }
        (_, DType::F16) => by_instructions(NARROWING, NARROWED_F16),
        _ => NARROWED_BF16.to_owned(),
    };
    format!("static inline {} {name}({} x) {{\n{body}}}\n", c_type(to.dtype), c_type(from))
}

const WIDENED_F16: &str = "  const uint32_t sign = (x & 0x8000u) << 16;
  const uint32_t magnitude = x & 0x7fffu;
  const float tiny = (float)magnitude * 5.9604644775390625e-8f;
  uint32_t bits = (magnitude << 13) + (magnitude > 0x7bffu ? 0x70000000u : 0x38000000u);
  float y;
  if (magnitude < 0x0400u) {
    memcpy(&bits, &tiny, sizeof(bits));
  }
  bits |= sign;
  memcpy(&y, &bits, sizeof(y));
  return y;
";

const WIDENED_BF16: &str = "  const uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof(y));
  return y;
";

/// Adding 0.5 rounds a magnitude below 2^-14 to multiples of 2^-24, which are the denormal halves.
const NARROWED_F16: &str = "  uint32_t bits, magnitude, half;
  float y;
  memcpy(&bits, &x, sizeof(bits));
  magnitude = bits & 0x7fffffffu;
  memcpy(&y, &magnitude, sizeof(y));
  y += 0.5f;
  memcpy(&half, &y, sizeof(half));
  half = magnitude < 0x38800000u ? half - 0x3f000000u
                                 : (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  half = magnitude > 0x477fefffu ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? 0x7e00u : half;
  return (uint16_t)(half | ((bits >> 16) & 0x8000u));
";

const NARROWED_BF16: &str = "  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return (uint16_t)((bits >> 16) | 0x40u);
  }
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
";

/// A double as the single beside it whose last bit is set, unless it is exact: rounding that to a half rounds the double.
const TO_ODD: &str = "  float y = (float)x;
  uint32_t bits;
  memcpy(&bits, &y, sizeof(bits));
  if (x == x && (double)y != x) {
    bits -= fabs((double)y) > fabs(x) ? 1u : 0u;
    bits |= 1u;
  }
  memcpy(&y, &bits, sizeof(y));
";

/// Arm's C compilers know the type of halves on some machines and not on others that have the instructions, as all have that multiply
/// and add at once.
const ARM_TYPE: &str = "defined(__ARM_FP16_FORMAT_IEEE) && defined(__ARM_FP)";
const ARM_INSTRUCTION: &str = "defined(__ARM_FP) && defined(__ARM_FEATURE_FMA)";

/// The instructions for scalars: where they are, and the body that widens by them.
const WIDENING: [(&str, &str); 3] = [
    (ARM_TYPE, "  __fp16 half;\n  memcpy(&half, &x, sizeof(half));\n  return half;\n"),
    (
        ARM_INSTRUCTION,
        "  float y;\n  __asm__(\"vcvtb.f32.f16 %0, %1\" : \"=t\"(y) : \"t\"((uint32_t)x));\n  return y;\n",
    ),
    ("defined(__F16C__)", "  return _cvtsh_ss(x);\n"),
];

/// The same that narrows.
const NARROWING: [(&str, &str); 3] = [
    (ARM_TYPE, "  const __fp16 half = (__fp16)x;\n  uint16_t y;\n  memcpy(&y, &half, sizeof(y));\n  return y;\n"),
    (
        ARM_INSTRUCTION,
        "  uint32_t y;\n  __asm__(\"vcvtb.f16.f32 %0, %1\" : \"=t\"(y) : \"t\"(x));\n  return (uint16_t)y;\n",
    ),
    ("defined(__F16C__)", "  return (uint16_t)_cvtss_sh(x, 0);\n"),
];

/// Two neighbouring halves as a word, which C compilers load into a floating-point register.
pub fn pair(name: &str) -> String {
    format!(
        "static inline int32_t {name}(const uint16_t *x) {{\n  int32_t y;\n  \
         __builtin_memcpy(&y, __builtin_assume_aligned(x, 4), sizeof(y));\n  return y;\n}}\n"
    )
}

/// The name of the helper that makes a single of a part of such a word.
pub fn part_name(is_upper: bool) -> &'static str {
    if is_upper { "mlc_upper_half" } else { "mlc_lower_half" }
}

/// That helper.
pub fn part(helpers: &mut dyn Helpers, name: &str, is_upper: bool) -> String {
    let single = helpers.call(Intrinsic::Cast(DType::F16, ValueType::scalar(DType::F32)));
    let (letter, bits) = if is_upper { ("t", "(uint32_t)x >> 16") } else { ("b", "(uint32_t)x") };
    format!(
        "static inline float {name}(int32_t x) {{\n#if {ARM_INSTRUCTION}\n  float y;\n  \
         __asm__(\"vcvt{letter}.f32.f16 %0, %1\" : \"=t\"(y) : \"t\"(x));\n  return y;\n\
         #else\n  return {single}((uint16_t)({bits}));\n#endif\n}}\n"
    )
}

/// The first body whose condition holds, else the portable one.
fn alternatives(bodies: &[(&str, &str)], portable: &str) -> String {
    let mut text = String::new();
    for (number, (condition, body)) in bodies.iter().enumerate() {
        text += &format!("#{} {condition}\n{body}", if number == 0 { "if" } else { "elif" });
    }
    if bodies.is_empty() { portable.to_owned() } else { format!("{text}#else\n{portable}#endif\n") }
}

/// The instructions for vectors of so many lanes: where they are, and the bodies that widen to `f` and narrow to `h` by them.
fn instructions(lanes: usize, f: &str, h: &str) -> Vec<(&'static str, [String; 2])> {
    match lanes {
        4 => vec![
            (
                "defined(__F16C__)",
                [
                    format!("  return ({f})_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)&x));\n"),
                    format!(
                        "  {h} y;\n  _mm_storel_epi64((__m128i *)(void *)&y, _mm_cvtps_ph((__m128)x, 0));\n  return y;\n"
                    ),
                ],
            ),
            (
                "defined(__aarch64__)",
                [
                    format!("  return ({f})vcvt_f32_f16((float16x4_t)x);\n"),
                    format!("  return ({h})vcvt_f16_f32((float32x4_t)x);\n"),
                ],
            ),
            (
                "defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)",
                [
                    format!("  {f} y;\n  __asm__(\"vcvt.f32.f16 %q0, %P1\" : \"=w\"(y) : \"w\"(x));\n  return y;\n"),
                    format!("  {h} y;\n  __asm__(\"vcvt.f16.f32 %P0, %q1\" : \"=w\"(y) : \"w\"(x));\n  return y;\n"),
                ],
            ),
        ],
        8 => vec![(
            "defined(__F16C__)",
            [
                format!("  return ({f})_mm256_cvtph_ps((__m128i)x);\n"),
                format!("  return ({h})_mm256_cvtps_ph((__m256)x, 0);\n"),
            ],
        )],
        16 => vec![(
            "defined(__AVX512F__)",
            [
                format!("  return ({f})_mm512_cvtph_ps((__m256i)x);\n"),
                format!("  return ({h})_mm512_cvtps_ph((__m512)x, 0);\n"),
            ],
        )],
        _ => Vec::new(),
    }
}

fn widened_vector(half: DType, lanes: usize) -> String {
    let [f, u, i] = [DType::F32, DType::U32, DType::I32].map(|dtype| value_type_name(ValueType::vector(dtype, lanes)));
    if half == DType::Bf16 {
        return format!("  return ({f})(__builtin_convertvector(x, {u}) << 16);\n");
    }
    let portable = format!(
        "  const {i} bits = __builtin_convertvector(x, {i});\n  const {i} magnitude = bits & 0x7fff;\n  \
         const {f} tiny = __builtin_convertvector(magnitude, {f}) * 5.9604644775390625e-8f;\n  \
         const {u} normal = ({u})((magnitude << 13) + 0x38000000) + (({u})(magnitude > 0x7bff) & 0x38000000u);\n  \
         const {u} small = ({u})(magnitude < 0x0400);\n  \
         return ({f})((small & ({u})tiny) | (~small & normal) | (({u})(bits & 0x8000) << 16));\n"
    );
    let found = instructions(lanes, &f, "");
    let bodies: Vec<(&str, &str)> = found.iter().map(|(condition, [widen, _])| (*condition, widen.as_str())).collect();
    alternatives(&bodies, &portable)
}

fn narrowed_vector(half: DType, lanes: usize) -> String {
    let [f, u, i] = [DType::F32, DType::U32, DType::I32].map(|dtype| value_type_name(ValueType::vector(dtype, lanes)));
    let h = value_type_name(ValueType::vector(half, lanes));
    let head = format!("  const {u} bits = ({u})x;\n  const {i} magnitude = ({i})(bits & 0x7fffffffu);\n");
    if half == DType::Bf16 {
        return format!(
            "{head}  const {u} nan = ({u})(magnitude > 0x7f800000);\n  \
             const {u} rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;\n  \
             return __builtin_convertvector((nan & ((bits >> 16) | 0x40u)) | (~nan & rounded), {h});\n"
        );
    }
    let portable = format!(
        "{head}  const {u} tiny = ({u})(({f})magnitude + 0.5f) - 0x3f000000u;\n  \
         const {u} normal = (({u})magnitude - 0x38000000u + 0xfffu + ((({u})magnitude >> 13) & 1u)) >> 13;\n  \
         const {u} small = ({u})(magnitude < 0x38800000);\n  const {u} large = ({u})(magnitude > 0x477fefff);\n  \
         const {u} nan = ({u})(magnitude > 0x7f800000);\n  \
         const {u} finite = (small & tiny) | (~small & normal);\n  \
         const {u} limit = (large & (0x7c00u | (nan & 0x0200u))) | (~large & finite);\n  \
         return __builtin_convertvector(limit | ((bits >> 16) & 0x8000u), {h});\n"
    );
    let found = instructions(lanes, "", &h);
    let bodies: Vec<(&str, &str)> =
        found.iter().map(|(condition, [_, narrow])| (*condition, narrow.as_str())).collect();
    alternatives(&bodies, &portable)
}
