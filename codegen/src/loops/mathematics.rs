//! Vector versions of transcendental functions in single precision: polynomials in plain C on GNU vectors, within 4 units in the
//! last place of the exact value (`codegen/tests/code/mathematics.rs` measures it). Coefficients are the published ones of Cephes
//! (`exp`, `log`, `tanh`; S. Moshier) and of N. Juffa's minimax fits (`erf`).

use super::ValueType;
use super::helper::{Helpers, Intrinsic};
use super::spelling::{polynomial, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::UnaryFunction;

/// Coefficients of `(e^r - 1 - r) / r^2`, from the highest on.
pub const EXP: [&str; 6] =
    ["1.9875691500e-4", "1.3981999507e-3", "8.3334519073e-3", "4.1665795894e-2", "1.6666665459e-1", "5.0000001201e-1"];
/// The same of `tanh(x) / x^3 - 1 / x^2` in `x^2`, for small `x`.
pub const TANH: [&str; 5] =
    ["-5.70498872745e-3", "2.06390887954e-2", "-5.37397155531e-2", "1.33314422036e-1", "-3.33332819422e-1"];
/// The same of `log(1 - erf(x)) / x + 1`.
pub const ERF_LARGE: [&str; 7] = [
    "-1.72853470e-5",
    "3.83197126e-4",
    "-3.88396438e-3",
    "2.42546219e-2",
    "-1.06777877e-1",
    "-6.34846687e-1",
    "-1.28717512e-1",
];
/// The same of `erf(x) / x - 1` in `x^2`, for small `x`.
pub const ERF_SMALL: [&str; 6] =
    ["-5.96761703e-4", "4.99119423e-3", "-2.67681349e-2", "1.12819925e-1", "-3.76125336e-1", "1.28379166e-1"];

/// The body of a vector function of `x`, or `None` where there is no polynomial version of it here.
pub fn body(helpers: &mut dyn Helpers, function: UnaryFunction, ty: ValueType) -> Option<String> {
    let t = value_type_name(ty);
    let mask = value_type_name(ValueType::vector(DType::I32, ty.lanes));
    let mut call = |function| helpers.call(Intrinsic::Unary(function, ty));
    let body = match function {
        UnaryFunction::Exp => exp(&t, &mask),
        UnaryFunction::Log => log(&t, &mask),
        UnaryFunction::Tanh => {
            let exp = call(UnaryFunction::Exp);
            tanh(&t, &mask, &exp)
        }
        UnaryFunction::Erf => {
            let exp = call(UnaryFunction::Exp);
            erf(&t, &mask, &exp)
        }
        UnaryFunction::Log1p => {
            let log = call(UnaryFunction::Log);
            log1p(&t, &mask, &log)
        }
        UnaryFunction::Expm1 => {
            let (exp, log) = (call(UnaryFunction::Exp), call(UnaryFunction::Log));
            expm1(&t, &mask, &exp, &log)
        }
        _ => return None,
    };
    Some(body)
}

/// `x = n ln 2 + r`; `e^r` by a polynomial, `2^n` in two halves so that results may be infinite or denormal.
fn exp(t: &str, mask: &str) -> String {
    let mut text = format!(
        "  const {mask} low = x < -104.0f, high = x > 89.0f;\n  \
         const {t} floor_104 = ({t}){{0}} - 104.0f, ceil_89 = ({t}){{0}} + 89.0f;\n  \
         {t} bounded = ({t})((low & ({mask})floor_104) | (~low & ({mask})x));\n  \
         bounded = ({t})((high & ({mask})ceil_89) | (~high & ({mask})bounded));\n  \
         const {t} n = (bounded * 1.44269504f + 12582912.0f) - 12582912.0f;\n  \
         const {t} r = (bounded - n * 0.693359375f) - n * -2.12194440e-4f;\n  \
         {t} p = r * {}f + {}f;\n",
        EXP[0], EXP[1]
    );
    text += &polynomial("p", "r", &EXP[2..]);
    text += &format!(
        "  p = (p * (r * r) + r) + 1.0f;\n  const {mask} exponent = __builtin_convertvector(n, {mask});\n  \
         const {mask} half = exponent >> 1;\n  const {t} first = ({t})((half + 127) << 23);\n  \
         const {t} second = ({t})((exponent - half + 127) << 23);\n  return p * first * second;\n"
    );
    text
}

/// `x = m 2^e` with `m` around 1; `log m` by a polynomial.
fn log(t: &str, mask: &str) -> String {
    let mut text = format!(
        "  const {mask} tiny = x < 1.17549435e-38f;\n  const {t} scaled = ({t})((tiny & ({mask})(x * 8388608.0f)) | (~tiny & ({mask})x));\n  \
         const {mask} bits = ({mask})scaled;\n  {mask} exponent = ((bits >> 23) & 255) - 126 - (tiny & 23);\n  \
         {t} m = ({t})((bits & 0x007fffff) | 0x3f000000);\n  const {mask} small = m < 0.707106781f;\n  exponent += small;\n  \
         m = m + ({t})(small & ({mask})m) - 1.0f;\n  const {t} e = __builtin_convertvector(exponent, {t});\n  \
         const {t} square = m * m;\n  {t} p = m * 7.0376836292e-2f - 1.1514610310e-1f;\n"
    );
    let rest = [
        "1.1676998740e-1",
        "-1.2420140846e-1",
        "1.4249322787e-1",
        "-1.6668057665e-1",
        "2.0000714765e-1",
        "-2.4999993993e-1",
        "3.3333331174e-1",
    ];
    text += &polynomial("p", "m", &rest);
    text += &format!(
        "  p = p * m * square + e * -2.12194440e-4f - 0.5f * square;\n  const {t} y = (m + p) + e * 0.693359375f;\n  \
         const {t} nan = ({t}){{0}} + NAN, infinite = ({t}){{0}} - INFINITY;\n  \
         const {mask} zero = x == 0.0f, negative = x < 0.0f, ordinary = (x > 0.0f) & (x < INFINITY);\n  \
         {t} limit = ({t})((zero & ({mask})infinite) | (~zero & ({mask})x));\n  \
         limit = ({t})((negative & ({mask})nan) | (~negative & ({mask})limit));\n  \
         return ({t})((ordinary & ({mask})y) | (~ordinary & ({mask})limit));\n"
    );
    text
}

fn tanh(t: &str, mask: &str, exp: &str) -> String {
    let mut text = format!(
        "  const {t} magnitude = ({t})(({mask})x & 0x7fffffff);\n  const {mask} sign = ({mask})x & ~0x7fffffff;\n  \
         const {t} large = 1.0f - 2.0f / ({exp}(magnitude + magnitude) + 1.0f);\n  const {t} square = x * x;\n  \
         {t} p = square * {}f + {}f;\n",
        TANH[0], TANH[1]
    );
    text += &polynomial("p", "square", &TANH[2..]);
    text += &format!(
        "  p = p * square * x + x;\n  const {mask} outside = magnitude >= 0.625f;\n  \
         return ({t})((outside & (({mask})large | sign)) | (~outside & ({mask})p));\n"
    );
    text
}

fn erf(t: &str, mask: &str, exp: &str) -> String {
    let mut text = format!(
        "  const {t} magnitude = ({t})(({mask})x & 0x7fffffff);\n  const {mask} sign = ({mask})x & ~0x7fffffff;\n  \
         const {t} square = x * x;\n  {t} r = magnitude * {}f + {}f;\n  \
         r = r * square + (magnitude * {}f + {}f);\n",
        ERF_LARGE[0], ERF_LARGE[1], ERF_LARGE[2], ERF_LARGE[3]
    );
    text += &polynomial("r", "magnitude", &ERF_LARGE[4..]);
    text += &format!(
        "  const {t} large = 1.0f - {exp}(r * magnitude - magnitude);\n  {t} p = square * {}f + {}f;\n",
        ERF_SMALL[0], ERF_SMALL[1]
    );
    text += &polynomial("p", "square", &ERF_SMALL[2..]);
    text += &format!(
        "  p = p * x + x;\n  const {mask} outside = magnitude > 0.921875f;\n  const {mask} far = magnitude > 3.919206f;\n  \
         const {mask} one = ({mask})(({t}){{0}} + 1.0f);\n  const {mask} tail = (far & one) | (~far & ({mask})large);\n  \
         return ({t})((outside & (tail | sign)) | (~outside & ({mask})p));\n"
    );
    text
}

/// Kahan's correction of `log(1 + x)` for the rounding of the sum.
fn log1p(t: &str, mask: &str, log: &str) -> String {
    format!(
        "  const {t} sum = 1.0f + x;\n  const {t} rest = sum - 1.0f;\n  const {mask} same = (rest == 0.0f) | ~(sum < INFINITY);\n  \
         const {mask} whole = ~(sum < INFINITY);\n  const {t} logarithm = {log}(sum);\n  \
         const {t} corrected = logarithm * (x / rest);\n  \
         const {t} edge = ({t})((whole & ({mask})logarithm) | (~whole & ({mask})x));\n  \
         return ({t})((same & ({mask})edge) | (~same & ({mask})corrected));\n"
    )
}

/// Kahan's correction of `e^x - 1` for the cancellation of the difference.
fn expm1(t: &str, mask: &str, exp: &str, log: &str) -> String {
    format!(
        "  const {t} power = {exp}(x);\n  const {t} difference = power - 1.0f;\n  \
         const {mask} unit = power == 1.0f;\n  const {mask} plain = (x < -1.0f) | (x > 1.0f);\n  \
         const {t} corrected = difference * (x / {log}(power));\n  \
         {t} y = ({t})((plain & ({mask})difference) | (~plain & ({mask})corrected));\n  \
         y = ({t})((unit & ({mask})x) | (~unit & ({mask})y));\n  return y;\n"
    )
}
