//! Changes of the scale of vectors of integers as C ([`super::rescaling_text`] has those of single ones): two products of 32 by 32 bits
//! at a time, of the even and of the odd lanes.

use super::ValueType;
use super::byte_dots::{Width, name, width};
use super::expression::{Integers, Known, Rescaling};
use super::spelling::{either, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::Rounding;

/// How single lanes are rescaled.
pub fn of_lanes(rescaling: Rescaling) -> Rescaling {
    let known = match rescaling.known {
        Known::Middle => Known::Nothing,
        Known::Near | Known::Cut => Known::Small,
        known => known,
    };
    Rescaling { known, ..rescaling }
}

/// The body of a function that changes the scale of words, of which more is known than nothing, by the instructions of x86; `lanes`
/// elsewhere.
pub fn of_x86(rescaling: Rescaling, ty: ValueType, lanes: &str) -> String {
    let Some(width) = width(ty.lanes) else { return lanes.to_owned() };
    let own = match rescaling.known {
        Known::Near | Known::Cut => at_once(width, rescaling.known, ty),
        _ => by_halves(width, rescaling, ty),
    };
    either(width.integers, &own, lanes)
}

/// The lines that round what is left of a product, a `value` of words, and return it: by the second rounding or by one alone.
pub fn rounded(rescaling: Rescaling, ty: ValueType) -> String {
    let (t, unsigned) = (value_type_name(ty), value_type_name(ValueType { dtype: DType::U32, ..ty }));
    let is_middle = rescaling.known == Known::Middle;
    let negative = if rescaling.rounding == Rounding::Twice && !is_middle {
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
    format!("{negative}{shifted}  return {rounded};\n")
}

/// Whether half of the first 31 bits is added to a product: it is rounded there. Rounded once, half of what all of the shift drops is.
pub fn adds_half(rescaling: Rescaling) -> bool {
    rescaling.rounding == Rounding::Twice || rescaling.known == Known::Middle
}

/// By shifts of 32 bits at least. Of each product of 64 bits the 32 from number 31 on are taken, and all but one of the bits that are left
/// to shift; then half of what is left is rounded, which is the same as rounding all of it at once. Only where both factors are the
/// least number are 32 bits one too few, and what wraps then wraps back.
fn by_halves(width: &Width, rescaling: Rescaling, ty: ValueType) -> String {
    let Width { prefix, register, bits, .. } = width;
    let t = value_type_name(ty);
    let adds_half = adds_half(rescaling);
    let odd = |value: &str| format!("{prefix}_srli_epi64(({register}){value}, 32)");
    let blend = match bits {
        512 => format!("{prefix}_mask_blend_epi32(0xaaaa, low, high)"),
        256 => format!("{prefix}_blend_epi32(low, high, 0xaa)"),
        _ => format!("{prefix}_blend_epi16(low, high, 0xcc)"),
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
    format!(
        "{half}{even}{odd}  \
           const {register} low = {prefix}_srli_epi64(even, 31);\n  \
           const {register} high = {prefix}_slli_epi64(odd, 1);\n  \
           {t} value = ({t}){blend};\n{}",
        rounded(rescaling, ty)
    )
}

/// Both halves that are rounded by and what is added to the result are one constant of a lane, which its product of 64 bits gets; the
/// upper words of these sums are shifted by what is left. A half below 0 is rounded down, for which the second half has one less of
/// the units that the first rounding leaves: where x is below 0, for if it is and the product is rounded to 0, both give 0. Where
/// that doesn't matter, what is cut off twice is cut off at once, and the number needn't be doubled to leave such a unit.
fn at_once(width: &Width, known: Known, ty: ValueType) -> String {
    let Width { prefix, register, bits, .. } = width;
    let (t, unsigned) = (value_type_name(ty), value_type_name(ValueType { dtype: DType::U32, ..ty }));
    let suffix = if *bits == 512 { "" } else { "x" };
    let all = |number: &str| format!("{prefix}_set1_epi64{suffix}({number})");
    let (half, number, places, twice, result) = match known {
        Known::Cut => (
            "1073741824",
            "x",
            format!("({t})(({unsigned})shift - 1)"),
            String::new(),
            "value >> (shift & 31)".to_owned(),
        ),
        _ => (
            "2147483648",
            "twice",
            "shift".to_owned(),
            format!("  const {t} twice = ({t})(({unsigned})x + ({unsigned})x);\n"),
            format!("({t})(({unsigned})value + ({unsigned})(x >> 31)) >> ((shift & 31) + 1)"),
        ),
    };
    let odd = |value: &str| format!("{prefix}_srli_epi64(({register}){value}, 32)");
    // Before AVX2, both lanes are shifted by the lower count.
    let shifted = |places: &str| match bits {
        128 => format!(
            "{prefix}_blend_epi16({prefix}_sll_epi64(both, {places}),\n      \
             {prefix}_sll_epi64(both, {prefix}_srli_si128({places}, 8)), 0xf0)"
        ),
        _ => format!("{prefix}_sllv_epi64(both, {places})"),
    };
    let even = format!("{prefix}_and_si{bits}(({register})places, {})", all("4294967295"));
    let sum = |name: &str, x: &str, multiplier: &str, places: &str| {
        format!(
            "  const {register} {name} = {prefix}_add_epi64({prefix}_mul_epi32({x}, {multiplier}),\n    \
             {prefix}_add_epi64(half, {}));\n",
            shifted(places)
        )
    };
    let upper = match bits {
        512 => format!("{prefix}_mask_shuffle_epi32(odd, 0x5555, even, (_MM_PERM_ENUM)0xf5)"),
        256 => format!("{prefix}_blend_epi32({prefix}_srli_epi64(even, 32), odd, 0xaa)"),
        _ => format!("{prefix}_blend_epi16({prefix}_srli_epi64(even, 32), odd, 0xcc)"),
    };
    format!(
        "  const {register} half = {}, both = {};\n  const {t} places = {places};\n{twice}{}{}  \
           const {t} value = ({t}){upper};\n  return {result};\n",
        all(half),
        all("2 * (int64_t)added + 1"),
        sum("even", &format!("({register}){number}"), &format!("({register})multiplier"), &even),
        sum("odd", &odd(number), &odd("multiplier"), &odd("places")),
    )
}

/// The name of the function that rescales so many lanes by lines.
pub fn line_name(integers: Integers, lanes: usize) -> String {
    let what = match integers {
        Integers::Below => "line",
        Integers::Nearest => "nearest_line",
    };
    name(what, lanes)
}

/// The body of that function in doubles, which hold lines exactly.
pub fn line_steps(integers: Integers, lanes: usize) -> String {
    let half = if integers == Integers::Nearest { " + 0.5" } else { "" };
    format!(
        "  {} y = x;\n  \
           for (int lane = 0; lane < {lanes}; ++lane) {{\n    \
             const double value = (double)slope[lane] * (double)x[lane] + (double)offset[lane]{half};\n    \
             const int32_t cut = (int32_t)value;\n    \
             y[lane] = cut - (value < (double)cut);\n  \
           }}\n  \
           return y;\n",
        value_type_name(ValueType::vector(DType::I32, lanes))
    )
}

/// The same by the instructions of x86; `steps` elsewhere.
pub fn line(integers: Integers, lanes: usize, steps: &str) -> String {
    match (width(lanes), integers) {
        (None, _) => steps.to_owned(),
        (Some(width), Integers::Below) => either("defined(__AVX512F__)", &line_below(width, lanes), steps),
        (Some(Width { prefix, register, bits, integers, .. }), Integers::Nearest) => {
            let [t, f] = [DType::I32, DType::F32].map(|dtype| value_type_name(ValueType::vector(dtype, lanes)));
            let own = format!(
                "  const {f} sums = ({f}){prefix}_cvtepi32_ps(({register})x);\n  \
                   return ({t}){prefix}_cvtps_epi32((__m{bits})(slope * sums + offset));\n"
            );
            either(integers, &own, steps)
        }
    }
}

/// The lines that give the integers below. Narrow vectors are parts of the widest, whose instructions alone say how they round.
fn line_below(Width { bits, .. }: &Width, lanes: usize) -> String {
    let wide = |text: &str, kind: &str| match bits {
        512 => format!("(__m512{})({text})", if kind == "si" { "i" } else { "" }),
        _ => format!("_mm512_zext{kind}{bits}_{kind}512((__m{bits}{})({text}))", if kind == "si" { "i" } else { "" }),
    };
    let down = "_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC";
    let result = match bits {
        512 => "value".to_owned(),
        _ => format!("_mm512_castsi512_si{bits}(value)"),
    };
    format!(
        "  const __m512 sums = _mm512_cvt_roundepi32_ps({}, {down});\n  \
           const __m512 line = _mm512_fmadd_round_ps(sums, {}, {}, {down});\n  \
           const __m512i value = _mm512_cvt_roundps_epi32(line, {down});\n  \
           return ({})({result});\n",
        wide("x", "si"),
        wide("slope", "ps"),
        wide("offset", "ps"),
        value_type_name(ValueType::vector(DType::I32, lanes)),
    )
}
