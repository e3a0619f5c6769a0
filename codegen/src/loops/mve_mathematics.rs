//! The functions of `mathematics.rs` in Arm's vectors: with the same coefficients, but products and sums with numbers from general registers
//! (eight vector registers have no room for a polynomial's), bounds by bits, and `2^n` without a conversion, all of which gcc 12 would
//! take apart into lanes or through memory.

use super::ValueType;
use super::helper::{Helpers, Intrinsic};
use super::mathematics::{ERF_LARGE, ERF_SMALL, EXP, TANH};
use super::mve::SINGLES;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// The functions that have a body here.
pub fn has(function: UnaryFunction) -> bool {
    matches!(function, UnaryFunction::Exp | UnaryFunction::Tanh | UnaryFunction::Erf)
}

/// The definition of a vector function of `x`, or `None` where there is none here.
pub fn definition(helpers: &mut dyn Helpers, name: &str, function: UnaryFunction, ty: ValueType) -> Option<String> {
    if ty != SINGLES || !has(function) {
        return None;
    }
    let body = match function {
        UnaryFunction::Exp => {
            let mut bound = |function| helpers.call(Intrinsic::Bounded(function, SINGLES));
            exp(&bound(BinaryFunction::Maximum), &bound(BinaryFunction::Minimum))
        }
        UnaryFunction::Tanh => tanh(&helpers.call(Intrinsic::Unary(UnaryFunction::Exp, SINGLES))),
        _ => erf(&helpers.call(Intrinsic::Unary(UnaryFunction::Exp, SINGLES))),
    };
    Some(format!("static inline f32x4 {name}(f32x4 x) {{\n{body}}}\n"))
}

/// A polynomial from its highest coefficient on.
fn polynomial(name: &str, variable: &str, coefficients: &[&str]) -> String {
    let (first, rest) = coefficients.split_at(2);
    let mut text = format!("  f32x4 {name} = vaddq_n_f32(vmulq_n_f32({variable}, {}f), {}f);\n", first[0], first[1]);
    for coefficient in rest {
        text += &format!("  {name} = vfmasq_n_f32({name}, {variable}, {coefficient}f);\n");
    }
    text
}

/// The sum of a number and 1.5 * 2^23 has the number's nearest integer in its lowest bits.
fn exp(at_least: &str, at_most: &str) -> String {
    format!(
        "  const f32x4 bounded = {at_most}({at_least}(x, -104.0f), 89.0f);
  const f32x4 sum = vfmaq_n_f32(vdupq_n_f32(12582912.0f), bounded, 1.44269504f);
  const f32x4 n = vsubq_n_f32(sum, 12582912.0f);
  const f32x4 r = vfmaq_n_f32(vfmaq_n_f32(bounded, n, -0.693359375f), n, 2.12194440e-4f);
{}  p = vaddq_n_f32(vfmaq_f32(r, p, vmulq_f32(r, r)), 1.0f);
  const int32x4_t exponent = vsubq_n_s32((int32x4_t)sum, 0x4b400000);
  const int32x4_t half = vshrq_n_s32(exponent, 1);
  const f32x4 first = (f32x4)vshlq_n_s32(vaddq_n_s32(half, 127), 23);
  const f32x4 second = (f32x4)vshlq_n_s32(vaddq_n_s32(vsubq_s32(exponent, half), 127), 23);
  return vmulq_f32(vmulq_f32(p, first), second);
",
        polynomial("p", "r", &EXP)
    )
}

const SIGN: &str = "vandq_u32((uint32x4_t)x, vdupq_n_u32(0x80000000u))";

fn tanh(exp: &str) -> String {
    format!(
        "  const f32x4 magnitude = vabsq_f32(x);
  const f32x4 large = 1.0f - 2.0f / vaddq_n_f32({exp}(vaddq_f32(magnitude, magnitude)), 1.0f);
  const f32x4 square = vmulq_f32(x, x);
{}  p = vfmaq_f32(x, vmulq_f32(p, square), x);
  const f32x4 outside = (f32x4)vorrq_u32((uint32x4_t)large, {SIGN});
  return vpselq_f32(outside, p, vcmpgeq_n_f32(magnitude, 0.625f));
",
        polynomial("p", "square", &TANH)
    )
}

fn erf(exp: &str) -> String {
    format!(
        "  const f32x4 magnitude = vabsq_f32(x);
  const f32x4 square = vmulq_f32(x, x);
{}  const f32x4 tail = vnegq_f32(vsubq_n_f32({exp}(vsubq_f32(vmulq_f32(r, magnitude), magnitude)), 1.0f));
  const f32x4 large = vpselq_f32(vdupq_n_f32(1.0f), tail, vcmpgtq_n_f32(magnitude, 3.919206f));
{}  p = vfmaq_f32(x, p, x);
  const f32x4 outside = (f32x4)vorrq_u32((uint32x4_t)large, {SIGN});
  return vpselq_f32(outside, p, vcmpgtq_n_f32(magnitude, 0.921875f));
",
        polynomial("r", "magnitude", &ERF_LARGE),
        polynomial("p", "square", &ERF_SMALL)
    )
}
