//! The scalar functions of elementwise operators: names, result types, reference evaluation.
//! Composite ones say how they expand to primitive ones, so that a code generator needs the primitives only.

use super::expression::{Expression, ExpressionBuilder, ScalarId};
use crate::types::DType;

macro_rules! functions {
    ($(#[$meta:meta])* $enum:ident { $($(#[doc = $doc:literal])+ $name:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $($(#[doc = $doc])+ $name,)+ }

        impl $enum {
            /// Every function, in a fixed order.
            pub const ALL: &'static [$enum] = &[$($enum::$name,)+];

            /// The spelling in the text form.
            pub fn name(self) -> &'static str {
                match self { $($enum::$name => $text,)+ }
            }

            /// What it computes.
            pub fn summary(self) -> &'static str {
                match self { $($enum::$name => concat!($($doc,)+).trim_ascii(),)+ }
            }

            /// The function of a spelling.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|function| function.name() == text)
            }
        }
    };
}

functions! {
    /// Functions of one number.
    UnaryFunction {
        /// -x
        Negate = "negate",
        /// |x|
        Absolute = "absolute",
        /// -1, 0 or 1; NaN stays
        Sign = "sign",
        /// smallest integer not below x
        Ceil = "ceil",
        /// largest integer not above x
        Floor = "floor",
        /// nearest integer, halves to even
        Round = "round",
        /// x without its fraction
        Truncate = "truncate",
        /// e^x
        Exp = "exp",
        /// e^x - 1
        Expm1 = "expm1",
        /// natural logarithm
        Log = "log",
        /// log(1 + x)
        Log1p = "log1p",
        /// square root
        Sqrt = "sqrt",
        /// sine
        Sin = "sin",
        /// cosine
        Cos = "cos",
        /// tangent
        Tan = "tan",
        /// inverse sine
        Asin = "asin",
        /// inverse cosine
        Acos = "acos",
        /// inverse tangent
        Atan = "atan",
        /// hyperbolic sine
        Sinh = "sinh",
        /// hyperbolic cosine
        Cosh = "cosh",
        /// hyperbolic tangent
        Tanh = "tanh",
        /// inverse hyperbolic sine
        Asinh = "asinh",
        /// inverse hyperbolic cosine
        Acosh = "acosh",
        /// inverse hyperbolic tangent
        Atanh = "atanh",
        /// error function
        Erf = "erf",
        /// log of |gamma(x)|
        LogGamma = "log_gamma",
        /// logical not of a bool, bitwise not of an integer
        Not = "not",
        /// whether x is NaN
        IsNan = "is_nan",
        /// whether x is an infinity
        IsInfinite = "is_infinite",
        /// max(x, 0); NaN stays
        Relu = "relu",
        /// 1 / x
        Reciprocal = "reciprocal",
        /// 1 / sqrt(x)
        Rsqrt = "rsqrt",
        /// 2^x
        Exp2 = "exp2",
        /// logarithm to base 2
        Log2 = "log2",
        /// logarithm to base 10
        Log10 = "log10",
        /// x * x
        Square = "square",
        /// 1 / (1 + e^-x)
        Sigmoid = "sigmoid",
        /// min(max(x, 0), 6)
        Relu6 = "relu6",
        /// x * sigmoid(x)
        Silu = "silu",
        /// x / 2 * (1 + erf(x / sqrt 2))
        Gelu = "gelu",
        /// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
        GeluTanh = "gelu_tanh",
        /// min(max(x + 3, 0), 6) / 6
        HardSigmoid = "hard_sigmoid",
        /// x * min(max(x + 3, 0), 6) / 6
        HardSwish = "hard_swish",
        /// log(1 + e^x), stable
        Softplus = "softplus",
        /// x * tanh(softplus(x))
        Mish = "mish",
        /// x / (1 + |x|)
        Softsign = "softsign",
        /// log(sigmoid(x)), stable
        LogSigmoid = "log_sigmoid",
    }
}

functions! {
    /// Functions of two numbers of one type.
    BinaryFunction {
        /// x + y
        Add = "add",
        /// x - y
        Subtract = "subtract",
        /// x * y
        Multiply = "multiply",
        /// x / y; integers truncate, and give 0 for y = 0
        Divide = "divide",
        /// floor(x / y); integers give 0 for y = 0
        FloorDivide = "floor_divide",
        /// x - y * floor(x / y), the sign of the divisor; integers give 0 for y = 0
        Modulo = "modulo",
        /// x - y * truncate(x / y), the sign of the dividend; integers give 0 for y = 0
        Remainder = "remainder",
        /// x^y; integers with y < 0 give 1 / x^-y truncated
        Power = "power",
        /// larger of the two; NaN wins
        Maximum = "maximum",
        /// smaller of the two; NaN wins
        Minimum = "minimum",
        /// angle of the point (y, x)
        Atan2 = "atan2",
        /// log(e^x + e^y), stable
        LogAddExp = "log_add_exp",
        /// and, of bools or of bits
        And = "and",
        /// or, of bools or of bits
        Or = "or",
        /// exclusive or, of bools or of bits
        Xor = "xor",
        /// x * 2^y; 0 for y outside the type's width
        ShiftLeft = "shift_left",
        /// x / 2^y rounded down; y outside the type's width leaves the sign only
        ShiftRight = "shift_right",
        /// x == y
        Equal = "equal",
        /// x != y
        NotEqual = "not_equal",
        /// x < y
        Less = "less",
        /// x <= y
        LessEqual = "less_equal",
        /// x > y
        Greater = "greater",
        /// x >= y
        GreaterEqual = "greater_equal",
    }
}

impl UnaryFunction {
    /// The result's type, or `None` where the function isn't defined for the operand's type.
    pub fn result_dtype(self, dtype: DType) -> Option<DType> {
        use UnaryFunction as U;
        match self {
            U::IsNan | U::IsInfinite => dtype.is_float().then_some(DType::Bool),
            U::Not => (!dtype.is_float()).then_some(dtype),
            U::Negate | U::Absolute | U::Sign | U::Square | U::Relu | U::Relu6 => {
                (dtype != DType::Bool).then_some(dtype)
            }
            U::Ceil | U::Floor | U::Round | U::Truncate => (dtype != DType::Bool).then_some(dtype),
            _ => dtype.is_float().then_some(dtype),
        }
    }

    /// How a composite function is made of primitive ones; `None` for a primitive.
    pub fn expand(self, b: &mut ExpressionBuilder, x: ScalarId, dtype: DType) -> Option<ScalarId> {
        use BinaryFunction as B;
        use UnaryFunction as U;
        let literal = |b: &mut ExpressionBuilder, value: f64| b.number(dtype, value);
        Some(match self {
            U::Reciprocal => {
                let one = literal(b, 1.0);
                b.binary(B::Divide, one, x)
            }
            U::Rsqrt => {
                let root = b.unary(U::Sqrt, x);
                let one = literal(b, 1.0);
                b.binary(B::Divide, one, root)
            }
            U::Square => b.binary(B::Multiply, x, x),
            U::Exp2 => {
                let log2 = literal(b, std::f64::consts::LN_2);
                let scaled = b.binary(B::Multiply, x, log2);
                b.unary(U::Exp, scaled)
            }
            U::Log2 | U::Log10 => {
                let factor = if self == U::Log2 { std::f64::consts::LOG2_E } else { std::f64::consts::LOG10_E };
                let log = b.unary(U::Log, x);
                let factor = literal(b, factor);
                b.binary(B::Multiply, log, factor)
            }
            U::Sigmoid => {
                let negated = b.unary(U::Negate, x);
                let exp = b.unary(U::Exp, negated);
                let one = literal(b, 1.0);
                let sum = b.binary(B::Add, one, exp);
                b.binary(B::Divide, one, sum)
            }
            U::Relu6 => {
                let relu = b.unary(U::Relu, x);
                let six = literal(b, 6.0);
                b.binary(B::Minimum, relu, six)
            }
            U::Silu => {
                let sigmoid = b.unary(U::Sigmoid, x);
                b.binary(B::Multiply, x, sigmoid)
            }
            U::Gelu => {
                let factor = literal(b, std::f64::consts::FRAC_1_SQRT_2);
                let scaled = b.binary(B::Multiply, x, factor);
                let erf = b.unary(U::Erf, scaled);
                half_of_one_plus(b, x, erf, dtype)
            }
            U::GeluTanh => {
                let square = b.binary(B::Multiply, x, x);
                let cube = b.binary(B::Multiply, square, x);
                let factor = literal(b, 0.044715);
                let cubic = b.binary(B::Multiply, cube, factor);
                let sum = b.binary(B::Add, x, cubic);
                let scale = literal(b, (2.0 / std::f64::consts::PI).sqrt());
                let scaled = b.binary(B::Multiply, sum, scale);
                let tanh = b.unary(U::Tanh, scaled);
                half_of_one_plus(b, x, tanh, dtype)
            }
            U::HardSigmoid => {
                let three = literal(b, 3.0);
                let shifted = b.binary(B::Add, x, three);
                let clipped = b.unary(U::Relu6, shifted);
                let six = literal(b, 6.0);
                b.binary(B::Divide, clipped, six)
            }
            U::HardSwish => {
                let gate = b.unary(U::HardSigmoid, x);
                b.binary(B::Multiply, x, gate)
            }
            U::Softplus => {
                let magnitude = b.unary(U::Absolute, x);
                let negated = b.unary(U::Negate, magnitude);
                let exp = b.unary(U::Exp, negated);
                let log = b.unary(U::Log1p, exp);
                let relu = b.unary(U::Relu, x);
                b.binary(B::Add, relu, log)
            }
            U::Mish => {
                let softplus = b.unary(U::Softplus, x);
                let tanh = b.unary(U::Tanh, softplus);
                b.binary(B::Multiply, x, tanh)
            }
            U::Softsign => {
                let magnitude = b.unary(U::Absolute, x);
                let one = literal(b, 1.0);
                let sum = b.binary(B::Add, one, magnitude);
                b.binary(B::Divide, x, sum)
            }
            U::LogSigmoid => {
                let negated = b.unary(U::Negate, x);
                let softplus = b.unary(U::Softplus, negated);
                b.unary(U::Negate, softplus)
            }
            _ => return None,
        })
    }

    /// Whether [`UnaryFunction::expand`] gives an expansion.
    pub fn is_composite(self) -> bool {
        Expression::unary(self).primitive(&[DType::F32]) != Expression::unary(self)
    }
}

fn half_of_one_plus(b: &mut ExpressionBuilder, x: ScalarId, y: ScalarId, dtype: DType) -> ScalarId {
    let one = b.number(dtype, 1.0);
    let sum = b.binary(BinaryFunction::Add, one, y);
    let half = b.number(dtype, 0.5);
    let halved = b.binary(BinaryFunction::Multiply, x, half);
    b.binary(BinaryFunction::Multiply, halved, sum)
}

impl BinaryFunction {
    /// Whether the result is a bool whatever the operands are.
    pub fn is_comparison(self) -> bool {
        use BinaryFunction as B;
        matches!(self, B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual)
    }

    /// Whether `f(x, y) = f(y, x)`.
    pub fn is_commutative(self) -> bool {
        use BinaryFunction as B;
        matches!(
            self,
            B::Add
                | B::Multiply
                | B::Maximum
                | B::Minimum
                | B::LogAddExp
                | B::And
                | B::Or
                | B::Xor
                | B::Equal
                | B::NotEqual
        )
    }

    /// The result's type for two operands of one type, or `None` where the function isn't defined for it.
    pub fn result_dtype(self, dtype: DType) -> Option<DType> {
        use BinaryFunction as B;
        match self {
            _ if self.is_comparison() => Some(DType::Bool),
            B::And | B::Or | B::Xor => (!dtype.is_float()).then_some(dtype),
            B::ShiftLeft | B::ShiftRight => dtype.is_integer().then_some(dtype),
            B::Atan2 | B::LogAddExp => dtype.is_float().then_some(dtype),
            _ => (dtype != DType::Bool).then_some(dtype),
        }
    }
}
