//! Vector versions of circular and hyperbolic functions and their inverses in single precision, within 4 units in the last
//! place. Coefficients are the published ones of Cephes (S. Moshier).
//!
//! Sine, cosine and tangent subtract multiples of pi / 2 in double precision, in two parts; arguments beyond 2^20, for which
//! that isn't enough, go to the C library one by one.

use super::ValueType;
use super::helper::{Helpers, Intrinsic};
use super::spelling::{polynomial, value_type_name};
use mlc_ir::DType;
use mlc_ir::scalar::UnaryFunction;

/// Names of the types and helpers that the texts are made of.
struct Words {
    /// The vector of singles.
    t: String,
    /// The vector of integers that holds comparisons.
    mask: String,
    /// The vector of doubles.
    wide: String,
    lanes: usize,
}

/// The body of a vector function of `x`, or `None` where there is no polynomial version of it.
pub fn body(helpers: &mut dyn Helpers, function: UnaryFunction, ty: ValueType) -> Option<String> {
    use UnaryFunction as U;
    let name = |dtype| value_type_name(ValueType { dtype, ..ty });
    let words = Words { t: name(DType::F32), mask: name(DType::I32), wide: name(DType::F64), lanes: ty.lanes };
    let mut call = |function| helpers.call(Intrinsic::Unary(function, ty));
    let text = match function {
        U::Sin | U::Cos | U::Tan => words.periodic(function),
        U::Asin => words.arc_sine(&call(U::Sqrt)),
        U::Acos => words.arc_cosine(&call(U::Sqrt)),
        U::Atan => words.arc_tangent(),
        U::Sinh => words.hyperbolic_sine(&call(U::Exp)),
        U::Cosh => words.hyperbolic_cosine(&call(U::Exp)),
        U::Asinh => words.inverse_hyperbolic_sine(&call(U::Sqrt), &call(U::Log1p), &call(U::Log)),
        U::Acosh => words.inverse_hyperbolic_cosine(&call(U::Sqrt), &call(U::Log1p), &call(U::Log)),
        U::Atanh => words.inverse_hyperbolic_tangent(&call(U::Log)),
        _ => return None,
    };
    if matches!(function, U::Sin | U::Cos | U::Tan) {
        helpers.use_type(ValueType { dtype: DType::F64, ..ty });
    }
    Some(text)
}

impl Words {
    /// Defines `magnitude` and `sign`, whose union is x.
    fn parts(&self) -> String {
        let Words { t, mask, .. } = self;
        format!(
            "  const {t} magnitude = ({t})(({mask})x & 0x7fffffff);\n  const {mask} sign = ({mask})x & ~0x7fffffff;\n"
        )
    }

    /// `condition ? yes : no` of vectors, by lanes.
    fn choice(&self, condition: &str, yes: &str, no: &str) -> String {
        let Words { t, mask, .. } = self;
        format!("({t})(({condition} & ({mask}){yes}) | (~{condition} & ({mask}){no}))")
    }

    fn periodic(&self, function: UnaryFunction) -> String {
        let Words { t, mask, wide, lanes } = self;
        let mut text = self.parts();
        text += &format!(
            "  const {mask} near = magnitude <= 1048576.0f;\n  \
             const {wide} exact = __builtin_convertvector(({t})(near & ({mask})x), {wide});\n  \
             const {wide} turns = (exact * 0.63661977236758134308 + 6755399441055744.0) - 6755399441055744.0;\n  \
             const {wide} rest = (exact - turns * 1.57079632673412561417) - turns * 6.07710050650619224932e-11;\n  \
             const {mask} quadrant = __builtin_convertvector(turns, {mask});\n  \
             const {t} r = __builtin_convertvector(rest, {t});\n  const {t} square = r * r;\n"
        );
        if function == UnaryFunction::Tan {
            text += &format!("  {t} p = square * 9.38540185543e-3f + 3.11992232697e-3f;\n");
            let rest = ["2.44301354525e-2", "5.34112807005e-2", "1.33387994085e-1", "3.33331568548e-1"];
            text += &polynomial("p", "square", &rest);
            let value = self.choice("odd", "inverse", "p");
            text += &format!(
                "  p = p * square * r + r;\n  const {mask} odd = -(quadrant & 1);\n  \
                 const {t} inverse = -1.0f / p;\n  {t} y = {value};\n"
            );
        } else {
            let shifted = if function == UnaryFunction::Cos { "(quadrant + 1)" } else { "quadrant" };
            text += &format!("  {t} s = square * -1.9515295891e-4f + 8.3321608736e-3f;\n");
            text += &polynomial("s", "square", &["-1.6666654611e-1"]);
            text += &format!(
                "  s = s * square * r + r;\n  {t} c = square * 2.443315711809948e-5f - 1.388731625493765e-3f;\n"
            );
            text += &polynomial("c", "square", &["4.166664568298827e-2"]);
            let value = self.choice("odd", "c", "s");
            text += &format!(
                "  c = c * square * square - 0.5f * square + 1.0f;\n  const {mask} turned = {shifted};\n  \
                 const {mask} odd = -(turned & 1);\n  const {t} absolute = {value};\n  \
                 {t} y = ({t})(({mask})absolute ^ ((turned >> 1) << 31));\n"
            );
        }
        // The sign of zero is the argument's.
        if function != UnaryFunction::Cos {
            text += &format!("  y = ({t})(({mask})y | ((magnitude == 0.0f) & sign));\n");
        } else {
            text += "  (void)sign;\n";
        }
        text += &format!(
            "  int32_t far = 0;\n  for (int lane = 0; lane < {lanes}; ++lane) {{\n    far |= ~near[lane];\n  }}\n  \
             if (far != 0) {{\n    for (int lane = 0; lane < {lanes}; ++lane) {{\n      \
             y[lane] = near[lane] ? y[lane] : {}f(x[lane]);\n    }}\n  }}\n  return y;\n",
            function.name()
        );
        text
    }

    /// `p`, the arc sine of `root`, whose square is `square`, up to 0.5; above, the half of that of a half angle.
    fn half_angle(&self, sqrt: &str) -> String {
        let Words { t, mask, .. } = self;
        let mut text = self.parts();
        let square = self.choice("large", "halved", "squared");
        let root = self.choice("large", "root", "magnitude");
        text += &format!(
            "  const {mask} large = magnitude > 0.5f;\n  const {t} halved = 0.5f * (1.0f - magnitude);\n  \
             const {t} squared = magnitude * magnitude;\n  const {t} root = {sqrt}(halved);\n  \
             const {t} square = {square};\n  const {t} r = {root};\n  \
             {t} p = square * 4.2163199048e-2f + 2.4181311049e-2f;\n"
        );
        text += &polynomial("p", "square", &["4.5470025998e-2", "7.4953002686e-2", "1.6666752422e-1"]);
        text + "  p = p * square * r + r;\n"
    }

    fn arc_sine(&self, sqrt: &str) -> String {
        let Words { t, mask, .. } = self;
        let value = self.choice("large", "other", "p");
        format!(
            "{}  const {t} other = 1.57079632679489661923f - (p + p);\n  return ({t})(({mask}){value} | sign);\n",
            self.half_angle(sqrt)
        )
    }

    fn arc_cosine(&self, sqrt: &str) -> String {
        let Words { t, mask, .. } = self;
        let far = self.choice("negative", "behind", "twice");
        let value = self.choice("large", "far", "near");
        format!(
            "{}  const {t} twice = p + p;\n  const {t} behind = 3.14159265358979323846f - twice;\n  \
             const {mask} negative = x < 0.0f;\n  const {t} far = {far};\n  \
             const {t} near = 1.57079632679489661923f - ({t})(({mask})p | sign);\n  return {value};\n",
            self.half_angle(sqrt)
        )
    }

    fn arc_tangent(&self) -> String {
        let Words { t, mask, .. } = self;
        let mut text = self.parts();
        let inner = self.choice("middle", "shifted", "magnitude");
        let reduced = self.choice("far", "inverse", "inner");
        text += &format!(
            "  const {mask} far = magnitude > 2.414213562373095f;\n  \
             const {mask} middle = magnitude > 0.4142135623730950f;\n  \
             const {t} inverse = -1.0f / magnitude;\n  const {t} shifted = (magnitude - 1.0f) / (magnitude + 1.0f);\n  \
             const {t} inner = {inner};\n  const {t} r = {reduced};\n  const {t} square = r * r;\n  \
             const {mask} quarter = ({mask})(({t}){{0}} + 0.785398163397448309616f);\n  \
             const {mask} half = ({mask})(({t}){{0}} + 1.57079632679489661923f);\n  \
             const {t} angle = ({t})((far & half) | (~far & middle & quarter));\n  \
             {t} p = square * 8.05374449538e-2f - 1.38776856032e-1f;\n"
        );
        text += &polynomial("p", "square", &["1.99777106478e-1", "-3.33329491539e-1"]);
        text + &format!("  p = angle + (p * square * r + r);\n  return ({t})((({mask})p & 0x7fffffff) | sign);\n")
    }

    /// Defines `power`, e to the magnitude or, where that might overflow (`large`), to its half.
    fn power(&self, exp: &str) -> String {
        let Words { t, mask, .. } = self;
        let argument = self.choice("large", "halved", "magnitude");
        format!(
            "{}  const {mask} large = magnitude > 88.0f;\n  const {t} halved = 0.5f * magnitude;\n  \
             const {t} power = {exp}({argument});\n  const {t} half = 0.5f * power;\n  const {t} huge = half * power;\n",
            self.parts()
        )
    }

    fn hyperbolic_sine(&self, exp: &str) -> String {
        let Words { t, mask, .. } = self;
        let mut text = self.power(exp);
        text += &format!("  const {t} square = x * x;\n  {t} p = square * 2.03721912945e-4f + 8.33028376239e-3f;\n");
        text += &polynomial("p", "square", &["1.66667160211e-1"]);
        let usual = self.choice("small", "p", "usual");
        let value = self.choice("large", "huge", "bounded");
        text + &format!(
            "  p = p * square * magnitude + magnitude;\n  const {mask} small = magnitude <= 1.0f;\n  \
             const {t} usual = half - 0.5f / power;\n  const {t} bounded = {usual};\n  \
             return ({t})((({mask}){value} & 0x7fffffff) | sign);\n"
        )
    }

    fn hyperbolic_cosine(&self, exp: &str) -> String {
        let Words { t, .. } = self;
        let value = self.choice("large", "huge", "usual");
        format!("{}  const {t} usual = half + 0.5f / power;\n  (void)sign;\n  return {value};\n", self.power(exp))
    }

    /// log(1 + |x| + x^2 / (1 + sqrt(x^2 + 1))); far out log(2 |x|).
    fn inverse_hyperbolic_sine(&self, sqrt: &str, log1p: &str, log: &str) -> String {
        let Words { t, mask, .. } = self;
        let value = self.choice("large", "far", "near");
        format!(
            "{}  const {mask} large = ~(magnitude <= 1.0e4f);\n  const {t} square = magnitude * magnitude;\n  \
             const {t} near = {log1p}(magnitude + square / (1.0f + {sqrt}(square + 1.0f)));\n  \
             const {t} far = {log}(magnitude) + 0.693147180559945309417f;\n  \
             return ({t})((({mask}){value} & 0x7fffffff) | sign);\n",
            self.parts()
        )
    }

    /// log(1 + z + sqrt(z (z + 2))) with z = x - 1; far out log(2 x). All bits set are a NaN.
    fn inverse_hyperbolic_cosine(&self, sqrt: &str, log1p: &str, log: &str) -> String {
        let Words { t, mask, .. } = self;
        let value = self.choice("large", "far", "near");
        format!(
            "  const {mask} large = x > 1.0e4f;\n  const {t} z = x - 1.0f;\n  \
             const {t} near = {log1p}(z + {sqrt}(z * (z + 2.0f)));\n  \
             const {t} far = {log}(x) + 0.693147180559945309417f;\n  \
             return ({t})(({mask}){value} | (x < 1.0f));\n"
        )
    }

    fn inverse_hyperbolic_tangent(&self, log: &str) -> String {
        let Words { t, mask, .. } = self;
        let mut text = self.parts();
        text += &format!("  const {t} square = x * x;\n  {t} p = square * 1.81740078349e-1f + 8.24370301058e-2f;\n");
        text += &polynomial("p", "square", &["1.46691431730e-1", "1.99782164500e-1", "3.33337300303e-1"]);
        let value = self.choice("small", "p", "other");
        text + &format!(
            "  p = p * square * magnitude + magnitude;\n  const {mask} small = magnitude < 0.5f;\n  \
             const {t} other = 0.5f * {log}((1.0f + magnitude) / (1.0f - magnitude));\n  \
             return ({t})(({mask}){value} | sign);\n"
        )
    }
}
