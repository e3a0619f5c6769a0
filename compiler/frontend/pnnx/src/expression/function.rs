//! The functions of the expression language: names and numbers of arguments.

use std::ops::RangeInclusive;

macro_rules! functions {
    ($($variant:ident $name:literal $least:literal..=$most:literal, $doc:literal;)+) => {
        /// A function of the expression language.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function { $(#[doc = $doc] $variant,)+ }

        impl Function {
            /// All functions.
            pub const ALL: &'static [Function] = &[$(Function::$variant,)+];

            /// The name in the text.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name,)+ }
            }

            /// How many arguments it takes.
            pub fn arity(self) -> RangeInclusive<usize> {
                match self { $(Function::$variant => $least..=$most,)+ }
            }

            /// Finds a function by its name.
            pub fn from_name(name: &str) -> Option<Function> {
                match name { $($name => Some(Function::$variant),)+ _ => None }
            }
        }
    };
}

functions! {
    Size "size" 1..=2, "Extent of one dimension of an input, or its whole shape.";
    Int "int" 1..=1, "Truncation to an integer.";
    ToBool "torch.bool" 1..=1, "Cast to bool.";
    ToFloat "torch.float" 1..=1, "Cast to 32-bit float.";
    ToLong "torch.long" 1..=1, "Cast to 64-bit integer.";
    Abs "abs" 1..=1, "Absolute value.";
    Neg "neg" 1..=1, "Negation.";
    Sign "sign" 1..=1, "-1, 0 or 1.";
    Square "square" 1..=1, "Product with itself.";
    Ceil "ceil" 1..=1, "Rounding up.";
    Floor "floor" 1..=1, "Rounding down.";
    Round "round" 1..=1, "Rounding to nearest, halves to even.";
    Trunc "trunc" 1..=1, "Rounding toward zero.";
    Acos "acos" 1..=1, "Arc cosine.";
    Acosh "acosh" 1..=1, "Area hyperbolic cosine.";
    Asin "asin" 1..=1, "Arc sine.";
    Asinh "asinh" 1..=1, "Area hyperbolic sine.";
    Atan "atan" 1..=1, "Arc tangent.";
    Atanh "atanh" 1..=1, "Area hyperbolic tangent.";
    Cos "cos" 1..=1, "Cosine.";
    Cosh "cosh" 1..=1, "Hyperbolic cosine.";
    Erf "erf" 1..=1, "Error function.";
    Exp "exp" 1..=1, "Exponential.";
    Expm1 "expm1" 1..=1, "exp(x) - 1.";
    Log "log" 1..=1, "Natural logarithm.";
    Log10 "log10" 1..=1, "Decimal logarithm.";
    Log1p "log1p" 1..=1, "log(1 + x).";
    Reciprocal "reciprocal" 1..=1, "1 / x.";
    Rsqrt "rsqrt" 1..=1, "1 / sqrt(x).";
    Sin "sin" 1..=1, "Sine.";
    Sinh "sinh" 1..=1, "Hyperbolic sine.";
    Sqrt "sqrt" 1..=1, "Square root.";
    Tan "tan" 1..=1, "Tangent.";
    Tanh "tanh" 1..=1, "Hyperbolic tangent.";
    Add "add" 2..=2, "Sum.";
    Sub "sub" 2..=2, "Difference.";
    Mul "mul" 2..=2, "Product.";
    Max "max" 2..=2, "The larger, elementwise; NaN wins.";
    Min "min" 2..=2, "The smaller, elementwise; NaN wins.";
    Maximum "maximum" 2..=2, "The larger, elementwise; NaN wins.";
    Minimum "minimum" 2..=2, "The smaller, elementwise; NaN wins.";
    Div "div" 2..=2, "True division.";
    FloorDivide "floor_divide" 2..=2, "Quotient rounded down.";
    Remainder "remainder" 2..=2, "Remainder with the divisor's sign.";
    Fmod "fmod" 2..=2, "Remainder with the dividend's sign.";
    Pow "pow" 2..=2, "Power.";
    Atan2 "atan2" 2..=2, "Angle of a point.";
    Logaddexp "logaddexp" 2..=2, "log(exp(a) + exp(b)).";
    And "and" 2..=2, "Bitwise and.";
    Or "or" 2..=2, "Bitwise or.";
    Xor "xor" 2..=2, "Bitwise exclusive or.";
    LeftShift "lshift" 2..=2, "Left shift.";
    RightShift "rshift" 2..=2, "Right shift.";
}
