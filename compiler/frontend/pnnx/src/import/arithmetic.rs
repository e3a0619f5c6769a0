//! Elementwise arithmetic with PyTorch's rules for data types. Arithmetic among numbers alone is done at once.

use super::complex;
use super::item::Item;
use super::promotion::{common, operand};
use mlc_import::Fault;
use mlc_import::builder::Builder;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Value};

/// A function of each element. Functions with real results turn integers into f32 first.
pub(super) fn unary(builder: &mut Builder, function: UnaryFunction, item: &Item) -> Result<Item, Fault> {
    let x = match item {
        Item::Tensor(x) => x,
        Item::Complex(re, im) => return complex::unary(builder, function, *re, *im),
        _ => return host_unary(function, item),
    };
    let dtype = builder.dtype(*x);
    let rounding =
        matches!(function, UnaryFunction::Ceil | UnaryFunction::Floor | UnaryFunction::Round | UnaryFunction::Truncate);
    if rounding && !dtype.is_float() {
        return Ok(item.clone());
    }
    let x = match function.result_dtype(dtype) {
        Some(_) => *x,
        None => builder.cast(*x, DType::F32)?,
    };
    Ok(Item::Tensor(builder.unary(function, x)?))
}

/// A function of the elements of two operands.
pub(super) fn binary(
    builder: &mut Builder,
    function: BinaryFunction,
    left: &Item,
    right: &Item,
) -> Result<Item, Fault> {
    if matches!(left, Item::Complex(..)) || matches!(right, Item::Complex(..)) {
        return complex::binary(builder, function, left, right);
    }
    if !matches!(left, Item::Tensor(_)) && !matches!(right, Item::Tensor(_)) {
        return host_binary(function, left, right);
    }
    let mut dtype = common(builder, &[left, right])?;
    if matches!(function, BinaryFunction::Divide | BinaryFunction::Atan2 | BinaryFunction::LogAddExp)
        && !dtype.is_float()
    {
        dtype = DType::F32;
    }
    if function == BinaryFunction::Power
        && let Some(power) = simple_power(builder, left, right, dtype)?
    {
        return Ok(Item::Tensor(power));
    }
    let function = if dtype == DType::Bool { bool_function(function) } else { function };
    let (left, right) = (operand(builder, left, dtype)?, operand(builder, right, dtype)?);
    Ok(Item::Tensor(builder.binary(function, left, right)?))
}

/// Arithmetic of bools is logic in PyTorch.
fn bool_function(function: BinaryFunction) -> BinaryFunction {
    match function {
        BinaryFunction::Add | BinaryFunction::Maximum => BinaryFunction::Or,
        BinaryFunction::Multiply | BinaryFunction::Minimum => BinaryFunction::And,
        other => other,
    }
}

/// Powers that are products or roots.
fn simple_power(builder: &mut Builder, base: &Item, exponent: &Item, dtype: DType) -> Result<Option<Value>, Fault> {
    let Some(exponent) = exponent.float() else { return Ok(None) };
    let base = operand(builder, base, dtype)?;
    Ok(builder.simple_power(base, exponent)?)
}

/// A number rounded to the precision in which exported programs compute with numbers.
fn single(value: f64) -> Item {
    Item::Float(f64::from(value as f32))
}

fn host_unary(function: UnaryFunction, item: &Item) -> Result<Item, Fault> {
    use UnaryFunction as U;
    if let (Item::Int(x), U::Negate | U::Absolute | U::Sign | U::Square) = (item, function) {
        return Ok(Item::Int(match function {
            U::Negate => x.wrapping_neg(),
            U::Absolute => x.wrapping_abs(),
            U::Sign => x.signum(),
            _ => x.wrapping_mul(*x),
        }));
    }
    if let (Item::Int(_), U::Ceil | U::Floor | U::Round | U::Truncate) = (item, function) {
        return Ok(item.clone());
    }
    let Some(x) = item.float() else {
        return Err(Fault::operands(format!("can't take {} of {}", function.name(), item.description())));
    };
    Ok(single(match function {
        U::Negate => -x,
        U::Absolute => x.abs(),
        U::Sign if x == 0.0 => 0.0,
        U::Sign => x.signum(),
        U::Square => x * x,
        U::Ceil => x.ceil(),
        U::Floor => x.floor(),
        U::Round => x.round_ties_even(),
        U::Truncate => x.trunc(),
        U::Exp => x.exp(),
        U::Expm1 => x.exp_m1(),
        U::Log => x.ln(),
        U::Log1p => x.ln_1p(),
        U::Log10 => x.log10(),
        U::Log2 => x.log2(),
        U::Sqrt => x.sqrt(),
        U::Rsqrt => 1.0 / x.sqrt(),
        U::Reciprocal => 1.0 / x,
        U::Sin => x.sin(),
        U::Cos => x.cos(),
        U::Tan => x.tan(),
        U::Asin => x.asin(),
        U::Acos => x.acos(),
        U::Atan => x.atan(),
        U::Sinh => x.sinh(),
        U::Cosh => x.cosh(),
        U::Tanh => x.tanh(),
        U::Asinh => x.asinh(),
        U::Acosh => x.acosh(),
        U::Atanh => x.atanh(),
        _ => {
            return Err(Fault::variant(format!("{} of a number that isn't a tensor isn't supported", function.name())));
        }
    }))
}

fn host_binary(function: BinaryFunction, left: &Item, right: &Item) -> Result<Item, Fault> {
    use BinaryFunction as B;
    if let (Item::Int(x), Item::Int(y)) = (left, right)
        && function != B::Divide
        && let Some(result) = host_integers(function, *x, *y)
    {
        return Ok(Item::Int(result));
    }
    let (Some(x), Some(y)) = (left.float(), right.float()) else {
        let (left, right) = (left.description(), right.description());
        return Err(Fault::operands(format!("can't take {} of {left} and {right}", function.name())));
    };
    Ok(single(match function {
        B::Add => x + y,
        B::Subtract => x - y,
        B::Multiply => x * y,
        B::Divide => x / y,
        B::FloorDivide => (x / y).floor(),
        B::Modulo => x - y * (x / y).floor(),
        B::Remainder => x % y,
        B::Power => x.powf(y),
        B::Maximum => x.max(y),
        B::Minimum => x.min(y),
        B::Atan2 => x.atan2(y),
        _ => return Err(Fault::variant(format!("{} of numbers that aren't tensors isn't supported", function.name()))),
    }))
}

fn host_integers(function: BinaryFunction, x: i64, y: i64) -> Option<i64> {
    use BinaryFunction as B;
    match function {
        B::Add => x.checked_add(y),
        B::Subtract => x.checked_sub(y),
        B::Multiply => x.checked_mul(y),
        B::FloorDivide => x.checked_div_euclid(y).map(|quotient| {
            // Euclidean division rounds towards minus infinity only for positive divisors.
            if y < 0 && x.rem_euclid(y) != 0 { quotient - 1 } else { quotient }
        }),
        B::Modulo => x.checked_rem(y).map(|rest| if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }),
        B::Remainder => x.checked_rem(y),
        B::Power => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
        B::Maximum => Some(x.max(y)),
        B::Minimum => Some(x.min(y)),
        B::And => Some(x & y),
        B::Or => Some(x | y),
        B::Xor => Some(x ^ y),
        B::ShiftLeft => u32::try_from(y).ok().and_then(|y| x.checked_shl(y)),
        B::ShiftRight => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::TensorType;

    fn tensor(builder: &mut Builder, dtype: DType, shape: &[usize]) -> Item {
        Item::Tensor(builder.input("x", TensorType::new(dtype, shape)))
    }

    #[test]
    fn integer_division_of_numbers_rounds_down() {
        let divide = |x, y| host_binary(BinaryFunction::FloorDivide, &Item::Int(x), &Item::Int(y)).unwrap();
        let modulo = |x, y| host_binary(BinaryFunction::Modulo, &Item::Int(x), &Item::Int(y)).unwrap();
        for (x, y, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -2, -3, 0)] {
            assert_eq!(divide(x, y), Item::Int(quotient), "{x} // {y}");
            assert_eq!(modulo(x, y), Item::Int(rest), "{x} % {y}");
        }
    }

    #[test]
    fn true_division_of_integers_gives_f32() {
        let mut b = Builder::new("test");
        let x = tensor(&mut b, DType::I64, &[2]);
        let Item::Tensor(y) = binary(&mut b, BinaryFunction::Divide, &x, &Item::Int(2)).unwrap() else { panic!() };
        assert_eq!(b.dtype(y), DType::F32);
    }
}
