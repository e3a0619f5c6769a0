//! The scalar functions of elementwise operators: names and result types.

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
    /// How `x * multiplier / 2^shift` of integers is rounded. The product is one of 64 bits; a negative shift of x to the right is one
    /// to the left, which wraps to its type. Shifts by 63 bits and more give 0.
    Rounding {
        /// twice, as the micro reference kernels of TensorFlow Lite do: the product by 2^31 to the nearest number, halves upwards,
        /// and that by 2^(shift - 31) to the nearest, halves away from zero
        Twice = "twice",
        /// once, halves upwards
        Once = "once",
    }
}

impl Rounding {
    /// What the name of the scalar function begins with; the rounding's name follows.
    pub const PREFIX: &'static str = "rescale_";
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
        /// nearest integer of 23 bits as i32, halves to even: the first or the last of them where x is beyond; 0 for NaN
        RoundToInteger = "round_to_integer",
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
            U::RoundToInteger => (dtype == DType::F32).then_some(DType::I32),
            U::Not => (!dtype.is_float()).then_some(dtype),
            U::Negate | U::Absolute | U::Sign | U::Square | U::Relu | U::Relu6 => {
                (dtype != DType::Bool).then_some(dtype)
            }
            U::Ceil | U::Floor | U::Round | U::Truncate => (dtype != DType::Bool).then_some(dtype),
            _ => dtype.is_float().then_some(dtype),
        }
    }
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
