//! Reference evaluation of scalar expressions: every step is computed in double (or 64-bit integer) arithmetic and rounded to
//! its type. Transcendental functions are libm's, not the system's, so that folded constants are the same on every machine.

use super::expression::{Expression, ScalarNode};
use super::functions::{BinaryFunction, Rounding, UnaryFunction};
use crate::literal::Literal;
use crate::rounding::{float_bits, float_of_bits, round_float, saturate, wrap_integer};
use crate::types::DType;

/// One number during evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// Of a floating-point type.
    Float(f64),
    /// Of an integer type, or a bool as 0 and 1.
    Integer(i64),
}

impl From<Literal> for Scalar {
    fn from(literal: Literal) -> Scalar {
        match literal {
            Literal::Float(_, value) => Scalar::Float(value.0),
            Literal::Integer(_, value) => Scalar::Integer(value),
        }
    }
}

impl Scalar {
    /// As a literal of the type that it is of.
    pub fn literal(self, dtype: DType) -> Literal {
        match self {
            Scalar::Float(value) => Literal::float(dtype, value),
            Scalar::Integer(value) => Literal::integer(dtype, value),
        }
    }

    fn float(self) -> f64 {
        match self {
            Scalar::Float(value) => value,
            Scalar::Integer(value) => value as f64,
        }
    }

    fn integer(self) -> i64 {
        match self {
            Scalar::Float(value) => value as i64,
            Scalar::Integer(value) => value,
        }
    }
}

/// Evaluates an expression; `dtypes` are those of [`Expression::dtypes`], `steps` is scratch space that is cleared first.
pub fn evaluate_scalar(
    expression: &Expression,
    dtypes: &[DType],
    operands: &[Scalar],
    steps: &mut Vec<Scalar>,
) -> Scalar {
    steps.clear();
    for (node, &dtype) in expression.nodes().iter().zip(dtypes) {
        let value = evaluate_step(*node, dtype, dtypes, operands, steps);
        steps.push(value);
    }
    steps.last().copied().unwrap_or(Scalar::Integer(0))
}

/// Evaluates one step of an expression, which has a type, by the values of those before it; `dtypes` as for [`evaluate_scalar`].
pub fn evaluate_step(
    node: ScalarNode,
    dtype: DType,
    dtypes: &[DType],
    operands: &[Scalar],
    steps: &[Scalar],
) -> Scalar {
    let value = match node {
        ScalarNode::Operand(k) => operands[k as usize],
        ScalarNode::Literal(literal) => literal.into(),
        ScalarNode::Unary(function, x) => unary(function, dtypes[x as usize], steps[x as usize]),
        ScalarNode::Binary(function, x, y) => {
            binary(function, dtypes[x as usize], steps[x as usize], steps[y as usize])
        }
        ScalarNode::Select(c, x, y) => steps[if steps[c as usize].integer() != 0 { x } else { y } as usize],
        ScalarNode::Cast(to, x) => cast(dtypes[x as usize], to, steps[x as usize]),
        ScalarNode::BitCast(to, x) => bit_cast(dtypes[x as usize], to, steps[x as usize]),
        ScalarNode::Rescale(rounding, children) => {
            let [x, multiplier, shift] = children.map(|child| steps[child as usize].integer());
            Scalar::Integer(rescale(rounding, dtype, x, multiplier, shift))
        }
    };
    match value {
        Scalar::Float(value) => Scalar::Float(round_float(dtype, value)),
        Scalar::Integer(value) => Scalar::Integer(wrap_integer(dtype, value)),
    }
}

/// See [`Rounding`]. The result isn't wrapped to the integer type yet.
fn rescale(rounding: Rounding, dtype: DType, x: i64, multiplier: i64, shift: i64) -> i64 {
    let right = match rounding {
        Rounding::Twice => shift.saturating_sub(31),
        Rounding::Once => shift,
    };
    let left = if right < 0 { u32::try_from(right.saturating_neg()).unwrap_or(u32::MAX) } else { 0 };
    let scaled = wrap_integer(dtype, x.checked_shl(left).unwrap_or(0)).wrapping_mul(multiplier);
    let (value, is_down) = match rounding {
        Rounding::Twice => {
            let upper = scaled.wrapping_add(1 << 30) >> 31;
            (upper, upper < 0)
        }
        Rounding::Once => (scaled, false),
    };
    match right {
        ..=0 => value,
        1..=62 => value.wrapping_add((1 << (right - 1)) - i64::from(is_down)) >> right,
        _ => 0,
    }
}

/// Float to integer truncates and saturates, NaN gives 0; integers wrap; to bool is `!= 0`.
fn cast(from: DType, to: DType, value: Scalar) -> Scalar {
    match (value, to) {
        (Scalar::Float(value), DType::Bool) => Scalar::Integer(i64::from(value != 0.0)),
        (Scalar::Float(value), _) if to.is_float() => Scalar::Float(value),
        (Scalar::Float(value), _) => Scalar::Integer(saturate(to, value)),
        (Scalar::Integer(value), _) if to.is_float() => Scalar::Float(integer_to_float(from, to, value)),
        (Scalar::Integer(value), _) => Scalar::Integer(value),
    }
}

/// The result isn't wrapped to an integer type yet.
fn bit_cast(from: DType, to: DType, value: Scalar) -> Scalar {
    let bits = match value {
        Scalar::Float(value) => float_bits(from, value),
        Scalar::Integer(value) => value as u64,
    };
    if to.is_float() { Scalar::Float(float_of_bits(to, bits)) } else { Scalar::Integer(bits as i64) }
}

/// Rounded once: by way of a double, a large integer would be rounded twice to single precision.
fn integer_to_float(from: DType, to: DType, value: i64) -> f64 {
    match (from, to) {
        (DType::U64, DType::F32) => f64::from(value as u64 as f32),
        (DType::U64, _) => value as u64 as f64,
        (_, DType::F32) => f64::from(value as f32),
        _ => value as f64,
    }
}

fn unary(function: UnaryFunction, dtype: DType, x: Scalar) -> Scalar {
    match x {
        Scalar::Float(x) => float_unary(function, x),
        Scalar::Integer(x) => Scalar::Integer(integer_unary(function, dtype, x)),
    }
}

fn integer_unary(function: UnaryFunction, dtype: DType, x: i64) -> i64 {
    use UnaryFunction as U;
    match function {
        U::Negate => x.wrapping_neg(),
        U::Absolute if dtype.is_signed() => x.wrapping_abs(),
        U::Sign if dtype.is_signed() => x.signum(),
        U::Sign => i64::from(x != 0),
        U::Not if dtype == DType::Bool => i64::from(x == 0),
        U::Not => !x,
        U::Relu if dtype.is_signed() => x.max(0),
        U::Relu6 if dtype == DType::U64 => (x as u64).min(6) as i64,
        U::Relu6 => x.clamp(0, 6),
        U::Square => x.wrapping_mul(x),
        _ => x,
    }
}

fn float_unary(function: UnaryFunction, x: f64) -> Scalar {
    use UnaryFunction as U;
    let sigmoid = |x: f64| 1.0 / (1.0 + libm::exp(-x));
    let softplus = |x: f64| x.max(0.0) + libm::log1p(libm::exp(-x.abs()));
    Scalar::Float(match function {
        U::IsNan => return Scalar::Integer(i64::from(x.is_nan())),
        U::IsInfinite => return Scalar::Integer(i64::from(x.is_infinite())),
        U::RoundToInteger => return Scalar::Integer(x.round_ties_even().clamp(-4194304.0, 4194303.0) as i64),
        U::Negate => -x,
        U::Absolute => x.abs(),
        U::Sign => {
            if x > 0.0 {
                1.0
            } else if x < 0.0 {
                -1.0
            } else {
                x
            }
        }
        U::Ceil => x.ceil(),
        U::Floor => x.floor(),
        U::Round => x.round_ties_even(),
        U::Truncate => x.trunc(),
        U::Exp => libm::exp(x),
        U::Expm1 => libm::expm1(x),
        U::Log => libm::log(x),
        U::Log1p => libm::log1p(x),
        U::Sqrt => x.sqrt(),
        U::Sin => libm::sin(x),
        U::Cos => libm::cos(x),
        U::Tan => libm::tan(x),
        U::Asin => libm::asin(x),
        U::Acos => libm::acos(x),
        U::Atan => libm::atan(x),
        U::Sinh => libm::sinh(x),
        U::Cosh => libm::cosh(x),
        U::Tanh => libm::tanh(x),
        U::Asinh => libm::asinh(x),
        // libm gives numbers for arguments far below its domain.
        U::Acosh if x < 1.0 => f64::NAN,
        U::Acosh => libm::acosh(x),
        U::Atanh => libm::atanh(x),
        U::Erf => libm::erf(x),
        U::LogGamma => libm::lgamma(x),
        U::Relu => relu(x),
        U::Reciprocal => 1.0 / x,
        U::Rsqrt => 1.0 / x.sqrt(),
        U::Exp2 => libm::exp2(x),
        U::Log2 => libm::log2(x),
        U::Log10 => libm::log10(x),
        U::Square => x * x,
        U::Sigmoid => sigmoid(x),
        U::Relu6 => minimum(relu(x), 6.0),
        U::Silu => x * sigmoid(x),
        U::Gelu => 0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        U::GeluTanh => 0.5 * x * (1.0 + libm::tanh((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x))),
        U::HardSigmoid => minimum(relu(x + 3.0), 6.0) / 6.0,
        U::HardSwish => x * minimum(relu(x + 3.0), 6.0) / 6.0,
        U::Softplus => softplus(x),
        U::Mish => x * libm::tanh(softplus(x)),
        U::Softsign => x / (1.0 + x.abs()),
        U::LogSigmoid => -softplus(-x),
        U::Not => x,
    })
}

fn relu(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

fn minimum(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }
}

fn maximum(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }
}

fn binary(function: BinaryFunction, dtype: DType, x: Scalar, y: Scalar) -> Scalar {
    use BinaryFunction as B;
    let comparison = match (x, y) {
        (Scalar::Float(x), Scalar::Float(y)) => x.partial_cmp(&y),
        _ if dtype == DType::U64 => Some((x.integer() as u64).cmp(&(y.integer() as u64))),
        _ => Some(x.integer().cmp(&y.integer())),
    };
    let truth = match function {
        B::Equal => comparison.is_some_and(|order| order.is_eq()),
        B::NotEqual => comparison.is_none_or(|order| order.is_ne()),
        B::Less => comparison.is_some_and(|order| order.is_lt()),
        B::LessEqual => comparison.is_some_and(|order| order.is_le()),
        B::Greater => comparison.is_some_and(|order| order.is_gt()),
        B::GreaterEqual => comparison.is_some_and(|order| order.is_ge()),
        _ if dtype.is_float() => return Scalar::Float(float_binary(function, x.float(), y.float())),
        _ => return Scalar::Integer(integer_binary(function, dtype, x.integer(), y.integer())),
    };
    Scalar::Integer(i64::from(truth))
}

fn float_binary(function: BinaryFunction, x: f64, y: f64) -> f64 {
    use BinaryFunction as B;
    match function {
        B::Add => x + y,
        B::Subtract => x - y,
        B::Multiply => x * y,
        B::Divide => x / y,
        B::FloorDivide => (x / y).floor(),
        B::Modulo => {
            let remainder = x % y;
            if remainder != 0.0 && (remainder < 0.0) != (y < 0.0) { remainder + y } else { remainder }
        }
        B::Remainder => x % y,
        B::Power => libm::pow(x, y),
        B::Maximum => maximum(x, y),
        B::Minimum => minimum(x, y),
        B::Atan2 => libm::atan2(x, y),
        B::LogAddExp => {
            let largest = maximum(x, y);
            if largest.is_infinite() { largest } else { largest + libm::log1p(libm::exp(-(x - y).abs())) }
        }
        _ => f64::NAN,
    }
}

fn integer_binary(function: BinaryFunction, dtype: DType, x: i64, y: i64) -> i64 {
    use BinaryFunction as B;
    if dtype == DType::U64 {
        return unsigned_binary(function, x as u64, y as u64) as i64;
    }
    let bits = dtype.size() as i64 * 8;
    match function {
        B::Add => x.wrapping_add(y),
        B::Subtract => x.wrapping_sub(y),
        B::Multiply => x.wrapping_mul(y),
        B::Divide => x.checked_div(y).unwrap_or(if y == 0 { 0 } else { x }),
        B::FloorDivide if y == 0 => 0,
        B::FloorDivide => {
            let quotient = x.wrapping_div(y);
            if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) { quotient - 1 } else { quotient }
        }
        B::Remainder | B::Modulo if y == 0 => 0,
        B::Remainder => x.wrapping_rem(y),
        B::Modulo => {
            let remainder = x.wrapping_rem(y);
            if remainder != 0 && (remainder < 0) != (y < 0) { remainder + y } else { remainder }
        }
        B::Power => integer_power(x, y),
        B::Maximum => x.max(y),
        B::Minimum => x.min(y),
        B::And => x & y,
        B::Or => x | y,
        B::Xor => x ^ y,
        B::ShiftLeft if (0..bits).contains(&y) => x.wrapping_shl(y as u32),
        B::ShiftLeft => 0,
        B::ShiftRight => x >> y.clamp(0, 63).max(if y < 0 { 63 } else { 0 }),
        _ => 0,
    }
}

fn unsigned_binary(function: BinaryFunction, x: u64, y: u64) -> u64 {
    use BinaryFunction as B;
    match function {
        B::Divide | B::FloorDivide => x.checked_div(y).unwrap_or(0),
        B::Remainder | B::Modulo => x.checked_rem(y).unwrap_or(0),
        B::Maximum => x.max(y),
        B::Minimum => x.min(y),
        B::Power => power(x, y),
        B::ShiftLeft => u32::try_from(y).ok().and_then(|y| x.checked_shl(y)).unwrap_or(0),
        B::ShiftRight => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)).unwrap_or(0),
        _ => integer_binary(function, DType::I64, x as i64, y as i64) as u64,
    }
}

fn integer_power(x: i64, y: i64) -> i64 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 if y % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    power(x as u64, y as u64) as i64
}

/// `x^y` modulo 2^64, which are the bits of the signed power too.
fn power(x: u64, y: u64) -> u64 {
    let (mut base, mut exponent, mut result) = (x, y, 1u64);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    result
}
