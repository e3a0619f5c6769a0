//! Arithmetic of the C subset on numbers. What C leaves undefined is a fault.

use super::operators::{Binary, Unary};
use super::types::{Base, IntType, Type};
use super::value::{Pointer, Target, Value};

/// The spelling of an operator.
pub fn mark(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Remainder => "%",
        Binary::ShiftLeft => "<<",
        Binary::ShiftRight => ">>",
        Binary::Less => "<",
        Binary::Greater => ">",
        Binary::LessEqual => "<=",
        Binary::GreaterEqual => ">=",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::And => "&",
        Binary::Xor => "^",
        Binary::Or => "|",
    }
}

/// The result of a comparison, if the operator is one.
pub fn compare<T: PartialOrd>(operator: Binary, left: T, right: T) -> Option<bool> {
    Some(match operator {
        Binary::Less => left < right,
        Binary::Greater => left > right,
        Binary::LessEqual => left <= right,
        Binary::GreaterEqual => left >= right,
        Binary::Equal => left == right,
        Binary::NotEqual => left != right,
        _ => return None,
    })
}

/// An operator on two numbers.
///
/// # Errors
/// What is wrong with the operands, or with the result.
pub fn binary(operator: Binary, left: Value, right: Value) -> Result<Value, String> {
    let mismatch =
        || format!("`{}` isn't defined between `{}` and `{}`", mark(operator), left.describe(), right.describe());
    if let (Value::Int(a, a_type), Value::Int(b, b_type)) = (left, right) {
        let (a_type, b_type) = (promoted(a_type), promoted(b_type));
        if matches!(operator, Binary::ShiftLeft | Binary::ShiftRight) {
            return shift(operator, a, b, a_type);
        }
        return integers(operator, a, b, common(a_type, b_type));
    }
    let (a, b) = (left.number().ok_or_else(mismatch)?, right.number().ok_or_else(mismatch)?);
    if let Some(truth) = compare(operator, a, b) {
        return Ok(Value::truth(truth));
    }
    if matches!(left, Value::Double(_)) || matches!(right, Value::Double(_)) {
        return floats(operator, a, b).map(Value::Double).ok_or_else(mismatch);
    }
    // Rounding the double result once more gives what float arithmetic does.
    floats(operator, f64::from(a as f32), f64::from(b as f32)).map(|x| Value::Single(x as f32)).ok_or_else(mismatch)
}

fn floats(operator: Binary, a: f64, b: f64) -> Option<f64> {
    Some(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        _ => return None,
    })
}

/// The type that an integer has in arithmetic.
pub fn promoted(ty: IntType) -> IntType {
    if ty.bytes < 4 { IntType::INT } else { ty }
}

/// The type of a result on two promoted types.
fn common(a: IntType, b: IntType) -> IntType {
    IntType {
        bytes: a.bytes.max(b.bytes),
        signed: [a, b].iter().all(|ty| ty.signed || ty.bytes < a.bytes.max(b.bytes)),
    }
}

fn integers(operator: Binary, a: i128, b: i128, ty: IntType) -> Result<Value, String> {
    let (a, b) = (ty.wrapped(a), ty.wrapped(b));
    if let Some(truth) = compare(operator, a, b) {
        return Ok(Value::truth(truth));
    }
    if matches!(operator, Binary::Divide | Binary::Remainder) && b == 0 {
        return Err("a division by zero".into());
    }
    let result = match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        // Two numbers of 64 bits have a product of less than 128, unless both are unsigned.
        Binary::Multiply => a.wrapping_mul(b),
        Binary::Divide => a / b,
        Binary::Remainder => a % b,
        Binary::And => a & b,
        Binary::Xor => a ^ b,
        Binary::Or => a | b,
        _ => return Err(format!("`{}` isn't defined between integers", mark(operator))),
    };
    in_range(result, ty)
}

/// A result of integer arithmetic: unsigned ones wrap around, signed ones must fit.
pub fn in_range(result: i128, ty: IntType) -> Result<Value, String> {
    let wrapped = ty.wrapped(result);
    if ty.signed && wrapped != result {
        return Err(format!("{result} is out of the range of `{}`", Type::int(ty)));
    }
    Ok(Value::Int(wrapped, ty))
}

fn shift(operator: Binary, a: i128, b: i128, ty: IntType) -> Result<Value, String> {
    let bits = 8 * i128::from(ty.bytes);
    if !(0..bits).contains(&b) {
        return Err(format!("a shift by {b} of a number of {bits} bits"));
    }
    if operator == Binary::ShiftRight {
        return Ok(Value::Int(a >> b, ty));
    }
    if a < 0 {
        return Err("a shift to the left of a negative number".into());
    }
    in_range(a << b, ty)
}

/// An operator before a value.
///
/// # Errors
/// What is wrong with the operand, or with the result.
pub fn unary(operator: Unary, value: Value) -> Result<Value, String> {
    let mismatch = || Err(format!("this operator isn't defined on `{}`", value.describe()));
    match (operator, value) {
        (Unary::Not, _) => value.is_true().map(|truth| Value::truth(!truth)).ok_or_else(|| "there is no value".into()),
        (Unary::Minus, Value::Int(number, ty)) => in_range(-number, promoted(ty)),
        (Unary::Plus, Value::Int(number, ty)) => Ok(Value::Int(number, promoted(ty))),
        (Unary::Complement, Value::Int(number, ty)) => Ok(Value::Int(promoted(ty).wrapped(!number), promoted(ty))),
        (Unary::Minus, Value::Single(number)) => Ok(Value::Single(-number)),
        (Unary::Minus, Value::Double(number)) => Ok(Value::Double(-number)),
        (Unary::Plus, Value::Single(_) | Value::Double(_)) => Ok(value),
        _ => mismatch(),
    }
}

/// Comparisons and differences of pointers.
///
/// # Errors
/// When the pointers don't lead into the same memory, or the operator isn't defined.
pub fn pointers(operator: Binary, a: Pointer, b: Pointer) -> Result<Value, String> {
    if let Binary::Equal | Binary::NotEqual = operator {
        let same = a.target == b.target && (a.target == Target::Null || a.offset == b.offset);
        return Ok(Value::truth(same == (operator == Binary::Equal)));
    }
    if a.target != b.target || !matches!(a.target, Target::Object(_)) {
        return Err(format!("`{}` isn't defined between pointers into different memory", mark(operator)));
    }
    if let Some(truth) = compare(operator, a.offset, b.offset) {
        return Ok(Value::truth(truth));
    }
    match (operator, a.ty.size()) {
        (Binary::Subtract, Some(size)) if a.ty == b.ty && a.ty.base != Base::Void => {
            Ok(Value::Int(i128::from((a.offset - b.offset) / size as i64), IntType::LONG))
        }
        _ => Err(format!("`{}` isn't defined between pointers", mark(operator))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(number: i128, bytes: u8, signed: bool) -> Value {
        Value::Int(number, IntType { bytes, signed })
    }

    #[test]
    fn numbers_are_converted_as_c_converts_them() {
        let minus = Value::int(-1);
        let size = int(1, 8, false);
        assert_eq!(binary(Binary::Less, minus, size), Ok(Value::truth(false)));
        assert_eq!(binary(Binary::Less, minus, int(1, 4, false)), Ok(Value::truth(false)));
        assert_eq!(binary(Binary::Less, int(-1, 8, true), int(1, 4, false)), Ok(Value::truth(true)));
        assert_eq!(binary(Binary::Subtract, int(0, 4, false), int(1, 4, false)), Ok(int(u32::MAX.into(), 4, false)));
        assert_eq!(binary(Binary::Add, int(127, 1, true), int(1, 1, true)), Ok(Value::int(128)));
        assert_eq!(binary(Binary::Divide, Value::int(-7), Value::int(2)), Ok(Value::int(-3)));
        assert_eq!(binary(Binary::Remainder, Value::int(-7), Value::int(2)), Ok(Value::int(-1)));
        assert_eq!(binary(Binary::Divide, Value::int(1), Value::Double(4.0)), Ok(Value::Double(0.25)));
        assert_eq!(binary(Binary::Multiply, Value::Single(0.1), Value::int(3)), Ok(Value::Single(0.1 * 3.0)));
        let most = int(u64::MAX.into(), 8, false);
        assert_eq!(binary(Binary::Multiply, most, most), Ok(int(1, 8, false)));
    }

    #[test]
    fn what_c_leaves_undefined_is_a_fault() {
        for (operator, a, b, message) in [
            (Binary::Add, i32::MAX, 1, "2147483648 is out of the range of `int`"),
            (Binary::Divide, 1, 0, "a division by zero"),
            (Binary::Remainder, 1, 0, "a division by zero"),
            (Binary::Divide, i32::MIN, -1, "2147483648 is out of the range of `int`"),
            (Binary::ShiftLeft, 1, 32, "a shift by 32 of a number of 32 bits"),
            (Binary::ShiftLeft, -1, 1, "a shift to the left of a negative number"),
        ] {
            assert_eq!(binary(operator, Value::int(a), Value::int(b)), Err(message.into()));
        }
        assert_eq!(
            Value::Double(1e20).converted(Type::INT),
            Err("100000000000000000000 is out of the range of `int`".into())
        );
        assert!(Value::Double(f64::NAN).converted(Type::INT).is_err());
    }
}
