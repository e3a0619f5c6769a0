//! Functions of single values as C: operators, functions of the C library, and helpers.

use super::ValueType;
use super::helper::{Helpers, Intrinsic};
use super::spelling::{c_operator, c_type, unparenthesised};
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// A function of one scalar as C.
pub fn unary_text(helpers: &mut dyn Helpers, function: UnaryFunction, dtype: DType, x: &str) -> String {
    use UnaryFunction as U;
    if !dtype.is_float() {
        return match function {
            U::Not if dtype == DType::Bool => format!("!{x}"),
            U::Not => format!("({})~{x}", c_type(dtype)),
            U::Ceil | U::Floor | U::Round | U::Truncate => x.to_owned(),
            _ => {
                let name = helpers.call(Intrinsic::Unary(function, ValueType::scalar(dtype)));
                format!("{name}({})", unparenthesised(x))
            }
        };
    }
    let library = match function {
        U::Negate => return format!("(-{x})"),
        U::IsNan => return format!("({x} != {x})"),
        U::IsInfinite => return format!("(isinf({x}) != 0)"),
        U::Relu | U::Sign | U::RoundToInteger => {
            let name = helpers.call(Intrinsic::Unary(function, ValueType::scalar(dtype)));
            return format!("{name}({})", unparenthesised(x));
        }
        U::Absolute => "fabs",
        U::Round => "rint",
        U::Truncate => "trunc",
        U::LogGamma => "lgamma",
        other => other.name(),
    };
    let suffix = if dtype == DType::F64 { "" } else { "f" };
    format!("{library}{suffix}({})", unparenthesised(x))
}

/// A bitwise function of two truth values, as integers: clang warns of conditions as its operands, and a logical one would load
/// on a condition.
fn of_bools(x: &str, operator: &str, y: &str) -> String {
    format!("(bool)((int){x} {operator} {y})")
}

/// A function of two scalars as C.
pub fn binary_text(helpers: &mut dyn Helpers, function: BinaryFunction, dtype: DType, x: &str, y: &str) -> String {
    use BinaryFunction as B;
    if function.is_comparison() && x == y && !dtype.is_float() {
        // C compilers warn of a variable that is compared with itself.
        let holds = matches!(function, B::Equal | B::LessEqual | B::GreaterEqual);
        return format!("(({x} ^ {y}) {} 0)", if holds { "==" } else { "!=" });
    }
    // C compilers warn of the order of a bool and a constant.
    match function {
        B::Less if dtype == DType::Bool => return of_bools(&format!("!{x}"), "&", y),
        B::LessEqual if dtype == DType::Bool => return of_bools(&format!("!{x}"), "|", y),
        B::Greater if dtype == DType::Bool => return of_bools(x, "&", &format!("!{y}")),
        B::GreaterEqual if dtype == DType::Bool => return of_bools(x, "|", &format!("!{y}")),
        // They also warn of a negation on the left of a comparison.
        B::Equal | B::NotEqual if dtype == DType::Bool && x.starts_with('!') => {
            return format!("(({x}) {} {y})", c_operator(function).unwrap_or("=="));
        }
        _ => {}
    }
    if function.is_comparison() || (dtype.is_float() && c_operator(function).is_some()) {
        return format!("({x} {} {y})", c_operator(function).unwrap_or("+"));
    }
    let bitwise = match function {
        B::And => Some("&"),
        B::Or => Some("|"),
        B::Xor => Some("^"),
        _ => None,
    };
    if let Some(operator) = bitwise {
        return match dtype {
            DType::Bool => of_bools(x, operator, y),
            _ => format!("({})({x} {operator} {y})", c_type(dtype)),
        };
    }
    let suffix = if dtype == DType::F64 { "" } else { "f" };
    match function {
        B::FloorDivide if dtype.is_float() => format!("floor{suffix}({x} / {y})"),
        B::Remainder if dtype.is_float() => format!("fmod{suffix}({x}, {y})"),
        B::Power if dtype.is_float() => format!("pow{suffix}({x}, {y})"),
        B::Atan2 => format!("atan2{suffix}({x}, {y})"),
        _ => {
            let name = helpers.call(Intrinsic::Binary(function, ValueType::scalar(dtype)));
            format!("{name}({}, {})", unparenthesised(x), unparenthesised(y))
        }
    }
}
