//! Changes of the scale of vectors of integers as C ([`super::rescaling_text`] has those of single ones): two products of 32 by 32 bits
//! at a time, of the even and of the odd lanes.

use super::ValueType;
use super::byte_dots::{Width, width};
use super::expression::{Known, Rescaling};
use super::spelling::value_type_name;
use mlc_ir::DType;
use mlc_ir::scalar::Rounding;

/// How single lanes are rescaled.
pub fn of_lanes(rescaling: Rescaling) -> Rescaling {
    let known = if rescaling.known == Known::Middle { Known::Nothing } else { rescaling.known };
    Rescaling { known, ..rescaling }
}

/// The function; lane by lane by the function `scalar` where nothing better is known.
pub fn definition(name: &str, scalar: &str, rescaling: Rescaling, ty: ValueType) -> String {
    let t = value_type_name(ty);
    let (parameter, added) = if rescaling.known == Known::Small { (", int32_t added", ", added") } else { ("", "") };
    let mut text = format!("static inline {t} {name}({t} x, {t} multiplier, {t} shift{parameter}) {{\n");
    // Lanes that don't exist have zeros.
    let bit = if matches!(rescaling.known, Known::Small | Known::Right) { " | 32" } else { "" };
    let own = width(ty.lanes).filter(|_| rescaling.known != Known::Nothing && ty.dtype == DType::I32);
    if let Some(width) = own {
        text += &format!("#if {}\n{}#else\n", width.integers, by_halves(width, rescaling, ty));
    }
    text += &format!(
        "  {t} y = x;\n  \
           for (int lane = 0; lane < {}; ++lane) {{\n    \
             y[lane] = {scalar}(x[lane], multiplier[lane], shift[lane]{bit}{added});\n  \
           }}\n  \
           return y;\n",
        ty.lanes
    );
    text + if own.is_some() { "#endif\n}\n" } else { "}\n" }
}

/// By shifts of 32 bits at least. Of each product of 64 bits the 32 from number 31 on are taken, and all but one of the bits that are left
/// to shift; then half of what is left is rounded, which is the same as rounding all of it at once. Only where both factors are the
/// least number are 32 bits one too few, and what wraps then wraps back.
fn by_halves(width: &Width, rescaling: Rescaling, ty: ValueType) -> String {
    let Width { prefix, register, bits, .. } = width;
    let (t, unsigned) = (value_type_name(ty), value_type_name(ValueType { dtype: DType::U32, ..ty }));
    let is_middle = rescaling.known == Known::Middle;
    // Rounded once, half of what the shift drops is added; rounded twice, half of the first 31 bits.
    let twice = rescaling.rounding == Rounding::Twice;
    let adds_half = twice || is_middle;
    let odd = |value: &str| format!("{prefix}_srli_epi64(({register}){value}, 32)");
    let blend = match bits {
        512 => format!("{prefix}_mask_blend_epi32(0xaaaa, low, high)"),
        256 => format!("{prefix}_blend_epi32(low, high, 0xaa)"),
        _ => format!("{prefix}_blend_epi32(low, high, 0xa)"),
    };
    let suffix = if *bits == 512 { "" } else { "x" };
    let product = |name: &str, x: &str, multiplier: &str| {
        let product = format!("{prefix}_mul_epi32({x}, {multiplier})");
        let value = if adds_half { format!("{prefix}_add_epi64({product}, half)") } else { product };
        format!("  const {register} {name} = {value};\n")
    };
    let half = if adds_half {
        format!("  const {register} half = {prefix}_set1_epi64{suffix}(1073741824);\n")
    } else {
        String::new()
    };
    let even = product("even", &format!("({register})x"), &format!("({register})multiplier"));
    let odd = product("odd", &odd("x"), &odd("multiplier"));
    let negative = if twice && !is_middle {
        format!("  value = ({t})(({unsigned})value + ({unsigned})(value >> 31));\n")
    } else {
        String::new()
    };
    let rounded = match rescaling.known {
        Known::Middle => "value",
        Known::Small => "((value >> (shift & 31)) + (2 * added + 1)) >> 1",
        _ => "(value >> 1) + (value & 1)",
    };
    let shifted = if is_middle {
        "  (void)shift;\n"
    } else if rescaling.known == Known::Small {
        ""
    } else {
        "  value = value >> (shift & 31);\n"
    };
    format!(
        "{half}{even}{odd}  \
           const {register} low = {prefix}_srli_epi64(even, 31);\n  \
           const {register} high = {prefix}_slli_epi64(odd, 1);\n  \
           {t} value = ({t}){blend};\n\
         {negative}{shifted}  return {rounded};\n",
    )
}
