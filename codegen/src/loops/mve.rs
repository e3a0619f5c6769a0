//! Arm's vector extension for microcontrollers (MVE, "Helium"): where its intrinsics stand in place of operators on GNU vectors.
//! Vectors are four singles, four integers (`quads.rs`), eight halves to compute with, or four halves to convert, each of which is the lower
//! part of a word.

use super::ValueType;
use super::halves::is_half;
use super::helper::Intrinsic;
use super::quads::{QUAD, QUAD_ELEMENT};
use super::spelling::value_type_name;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// The line that declares the intrinsics.
pub const INCLUDES: &str = "#include <arm_mve.h>\n";

const LANES: usize = 4;
/// Four singles.
pub const SINGLES: ValueType = ValueType { dtype: DType::F32, lanes: LANES };
const HALVES: ValueType = ValueType { dtype: DType::F16, lanes: 2 * LANES };

/// Whether it is a vector of halves that are the lower parts of words.
pub fn is_spread(ty: ValueType) -> bool {
    is_half(ty.dtype) && ty.lanes == LANES
}

/// The C type of a vector's lanes where it isn't that of elements in memory, and its bytes.
pub fn lane_type(ty: ValueType) -> Option<(&'static str, usize)> {
    match ty {
        QUAD => Some((QUAD_ELEMENT, 4)),
        ty if is_spread(ty) => Some(("uint32_t", 4)),
        _ => None,
    }
}

/// The intrinsic that adds a product of a vector and a factor of so many lanes.
pub fn multiply_add(vector: ValueType, factor_lanes: usize) -> Option<&'static str> {
    match (vector, factor_lanes) {
        (SINGLES, 1) => Some("vfmaq_n_f32"),
        (SINGLES, LANES) => Some("vfmaq_f32"),
        (HALVES, 1) => Some("vfmaq_n_f16"),
        (HALVES, lanes) if lanes == HALVES.lanes => Some("vfmaq_f16"),
        _ => None,
    }
}

/// The first `valid` lanes from an address on; the others are 0.
pub fn load(ty: ValueType, address: &str, valid: usize) -> String {
    match ty {
        HALVES => format!("vldrhq_z_f16((const __fp16 *)({address}), vctp16q({valid}))"),
        ty if is_spread(ty) && valid == LANES => format!("({})vldrhq_u32({address})", value_type_name(ty)),
        ty if is_spread(ty) => format!("({})vldrhq_z_u32({address}, vctp32q({valid}))", value_type_name(ty)),
        _ => format!("vldrwq_z_f32({address}, vctp32q({valid}))"),
    }
}

/// The statement that stores the first `valid` lanes of a variable. gcc 12 takes it for a store of all lanes, and leaves out earlier
/// ones that it believes to be overwritten, unless something between them may read memory.
pub fn store(ty: ValueType, address: &str, value: &str, valid: usize) -> String {
    let stored = match ty {
        HALVES => format!("vstrhq_p_f16((__fp16 *)({address}), {value}, vctp16q({valid}))"),
        ty if is_spread(ty) && valid == LANES => return format!("vstrhq_u32({address}, (uint32x4_t){value});"),
        ty if is_spread(ty) => format!("vstrhq_p_u32({address}, (uint32x4_t){value}, vctp32q({valid}))"),
        _ => format!("vstrwq_p_f32({address}, {value}, vctp32q({valid}))"),
    };
    format!("{stored}; __asm__ volatile(\"\" ::: \"memory\");")
}

/// Whether there are instructions for vectors of a type whose lanes are so many elements apart in memory.
pub fn reaches(ty: ValueType, stride: i64) -> bool {
    // Offsets are counted in elements and of 32 bits.
    ty == SINGLES && stride > 1 && stride < 1 << 28
}

fn offsets(stride: i64) -> String {
    // Between parentheses, as the intrinsics may be macros.
    format!("((uint32x4_t){{0, {stride}, {}, {}}})", 2 * stride, 3 * stride)
}

/// The first `valid` of four singles that are so many elements apart; the other lanes are 0.
pub fn gather(address: &str, stride: i64, valid: usize) -> String {
    let offsets = offsets(stride);
    match valid {
        LANES => format!("vldrwq_gather_shifted_offset_f32({address}, {offsets})"),
        _ => format!("vldrwq_gather_shifted_offset_z_f32({address}, {offsets}, vctp32q({valid}))"),
    }
}

/// The statement that stores them so.
pub fn scatter(address: &str, stride: i64, value: &str, valid: usize) -> String {
    let offsets = offsets(stride);
    match valid {
        LANES => format!("vstrwq_scatter_shifted_offset_f32({address}, {offsets}, {value});"),
        _ => format!("vstrwq_scatter_shifted_offset_p_f32({address}, {offsets}, {value}, vctp32q({valid}));"),
    }
}

/// What the name of the helper that takes the bits of a half for a number is.
pub const NUMBER: &str = "mlc_half";

/// The helper of that name.
pub fn number() -> String {
    format!(
        "static inline __fp16 {NUMBER}(uint16_t x) {{\n  __fp16 y;\n  memcpy(&y, &x, sizeof(y));\n  return y;\n}}\n"
    )
}

/// The definition of a helper, or `None` where that of GNU vectors does. Comparisons that choose lanes go by way of general registers in
/// gcc 12, four instructions each: where order by bits will do, it does. A sum with 0 leaves of all that is not a number the one that Arm's
/// vectors make, whose sign is clear.
pub fn definition(name: &str, intrinsic: Intrinsic) -> Option<String> {
    let (result, parameters, body) = match intrinsic {
        Intrinsic::Unary(UnaryFunction::Relu, SINGLES) => {
            ("f32x4", "f32x4 x", "(f32x4)vmaxq_s32((int32x4_t)vaddq_n_f32(x, 0.0f), vdupq_n_s32(0))".to_owned())
        }
        Intrinsic::Unary(UnaryFunction::Relu, HALVES) => {
            ("f16x8", "f16x8 x", "(f16x8)vmaxq_s16((int16x8_t)vaddq_n_f16(x, 0), vdupq_n_s16(0))".to_owned())
        }
        Intrinsic::Binary(BinaryFunction::Maximum, QUAD) => ("i32x4", "i32x4 x, i32x4 y", "vmaxq_s32(x, y)".to_owned()),
        Intrinsic::Binary(BinaryFunction::Minimum, QUAD) => ("i32x4", "i32x4 x, i32x4 y", "vminq_s32(x, y)".to_owned()),
        Intrinsic::Binary(BinaryFunction::ShiftLeft, QUAD) => {
            ("i32x4", "i32x4 x, i32x4 y", "vshlq_s32(x, y)".to_owned())
        }
        // A negative number of bits is a shift to the right.
        Intrinsic::Binary(BinaryFunction::ShiftRight, QUAD) => {
            ("i32x4", "i32x4 x, i32x4 y", "vshlq_s32(x, -y)".to_owned())
        }
        Intrinsic::Binary(BinaryFunction::Maximum, SINGLES) => ("f32x4", "f32x4 x, f32x4 y", chosen("x, y", "f32")),
        Intrinsic::Binary(BinaryFunction::Minimum, SINGLES) => ("f32x4", "f32x4 x, f32x4 y", chosen("y, x", "f32")),
        Intrinsic::Binary(BinaryFunction::Maximum, HALVES) => ("f16x8", "f16x8 x, f16x8 y", chosen("x, y", "f16")),
        Intrinsic::Binary(BinaryFunction::Minimum, HALVES) => ("f16x8", "f16x8 x, f16x8 y", chosen("y, x", "f16")),
        Intrinsic::Bounded(function, SINGLES) => return Some(bounded(name, function, SINGLES)),
        Intrinsic::Bounded(function, HALVES) => return Some(bounded(name, function, HALVES)),
        Intrinsic::Splat(SINGLES) => ("f32x4", "float x", "vdupq_n_f32(x)".to_owned()),
        Intrinsic::Splat(HALVES) => ("f16x8", "uint16_t x", "(f16x8)vdupq_n_u16(x)".to_owned()),
        Intrinsic::Cast(DType::I32, SINGLES) => ("f32x4", "i32x4 x", "vcvtq_f32_s32(x)".to_owned()),
        Intrinsic::Unary(UnaryFunction::RoundToInteger, SINGLES) => ("i32x4", "f32x4 x", rounded()),
        Intrinsic::Binary(BinaryFunction::Divide, SINGLES) => return Some(quotients(name)),
        Intrinsic::Cast(DType::F16, SINGLES) => return Some(converted(name, ("f16x4", "f32x4"), "f32.f16")),
        Intrinsic::Cast(DType::F32, ValueType { dtype: DType::F16, lanes: LANES }) => {
            return Some(converted(name, ("f32x4", "f16x4"), "f16.f32"));
        }
        Intrinsic::Cast(DType::Bf16, SINGLES) => ("f32x4", "bf16x4 x", "(f32x4)(x << 16)".to_owned()),
        Intrinsic::Cast(DType::F32, ValueType { dtype: DType::Bf16, lanes: LANES }) => {
            return Some(BRAIN_HALVES.replace("NAME", name));
        }
        Intrinsic::Fold(BinaryFunction::Add, SINGLES) => ("float", "f32x4 x", folded("+")),
        Intrinsic::Fold(BinaryFunction::Multiply, SINGLES) => ("float", "f32x4 x", folded("*")),
        Intrinsic::Fold(BinaryFunction::Maximum, SINGLES) => return Some(extreme(name, ">")),
        Intrinsic::Fold(BinaryFunction::Minimum, SINGLES) => return Some(extreme(name, "<")),
        _ => return None,
    };
    Some(format!("static inline {result} {name}({parameters}) {{\n  return {body};\n}}\n"))
}

/// Singles as integers of 23 bits, to the nearest and ties to even; what is not a number as 0.
fn rounded() -> String {
    "vminq_s32(vmaxq_s32(vcvtnq_s32_f32(x), vdupq_n_s32(-4194304)), vdupq_n_s32(4194303))".to_owned()
}

/// There is no instruction that divides vectors: their registers are those of scalars, which gcc 12 would move about.
fn quotients(name: &str) -> String {
    let steps: String = (0..LANES).map(|lane| format!("vdiv.f32 s{lane}, s{lane}, s{}\\n", lane + LANES)).collect();
    format!(
        "static inline f32x4 {name}(f32x4 x, f32x4 y) {{\n  register f32x4 dividend __asm__(\"q0\") = x;\n  \
         register f32x4 divisor __asm__(\"q1\") = y;\n  \
         __asm__(\"{steps}\" : \"+w\"(dividend) : \"w\"(divisor));\n  return dividend;\n}}\n"
    )
}

/// Singles and the halves in the lower parts of words. The assembler of binutils 2.40 takes other registers than the first for ones of
/// twice their number.
fn converted(name: &str, (from, to): (&str, &str), types: &str) -> String {
    format!(
        "static inline {to} {name}({from} x) {{\n  register {to} y __asm__(\"q0\") = ({to})x;\n  \
         __asm__(\"vcvtb.{types} q0, q0\" : \"+w\"(y));\n  return y;\n}}\n"
    )
}

/// Singles rounded to halves with the exponent of singles, to the nearest and ties to even.
const BRAIN_HALVES: &str = "static inline bf16x4 NAME(f32x4 x) {
  const uint32x4_t bits = (uint32x4_t)x;
  const uint32x4_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (bf16x4)vpselq_u32((bits >> 16) | 0x40u, rounded, vcmpneq_f32(x, x));
}
";

/// `x` where the first of two is greater or `x` is not a number, else `y`. A comparison for less would hold with what is not a number.
fn chosen(compared: &str, dtype: &str) -> String {
    format!("vpselq_{dtype}(x, y, (mve_pred16_t)(vcmpgtq_{dtype}({compared}) | vcmpneq_{dtype}(x, x)))")
}

/// Whether vectors of a type and a number are in the order of their bits, see [`bounded`].
pub fn is_ordered(function: BinaryFunction, ty: ValueType, number: f64) -> bool {
    let is_ordered = match function {
        BinaryFunction::Minimum => number.is_sign_positive(),
        BinaryFunction::Maximum => number.is_sign_negative(),
        _ => false,
    };
    is_ordered && matches!(ty, SINGLES | HALVES)
}

/// The lesser of a vector and a number with a clear sign, or the greater of it and one with a set sign. The bits of numbers are in their
/// order among those of the same sign, and the others are on the side that stays: so it is by signed integers for the one and by unsigned
/// ones for the other. What comes behind the infinities isn't a number; bits moved on by its count wrap to that side, too.
fn bounded(name: &str, function: BinaryFunction, ty: ValueType) -> String {
    let (element, bits, beyond) = match ty {
        HALVES => ("uint16_t", 16, "0x3ff"),
        _ => ("float", 32, "0x7fffff"),
    };
    // The greater of two negative numbers has the lesser bits.
    let (signed, suffix) = match function {
        BinaryFunction::Maximum => ("uint", format!("u{bits}")),
        _ => ("int", format!("s{bits}")),
    };
    let (t, vector) = (value_type_name(ty), format!("{signed}{bits}x{}_t", ty.lanes));
    format!(
        "static inline {t} {name}({t} x, {element} bound) {{
  uint{bits}_t bits;
  __builtin_memcpy(&bits, &bound, sizeof(bits));
  const {vector} most = vdupq_n_{suffix}(({signed}{bits}_t)(bits + {beyond}u));
  return ({t})vsubq_n_{suffix}(vminq_{suffix}(vaddq_n_{suffix}(({vector})x, {beyond}), most), {beyond});
}}
"
    )
}

fn folded(operator: &str) -> String {
    format!("(x[0] {operator} x[2]) {operator} (x[1] {operator} x[3])")
}

/// The extreme lane; one that is not a number wins.
fn extreme(name: &str, order: &str) -> String {
    format!(
        "static inline float {name}(f32x4 x) {{\n  float y = x[0];\n  \
         for (int lane = 1; lane < {LANES}; ++lane) {{\n    \
         y = y {order} x[lane] || y != y ? y : x[lane];\n  }}\n  return y;\n}}\n"
    )
}
