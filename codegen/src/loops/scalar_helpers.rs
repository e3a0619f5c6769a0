//! Helpers of single numbers: what C has no operator for, or has one with undefined behaviour.

use super::spelling::c_type;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

fn unsigned_of(dtype: DType) -> &'static str {
    if dtype.size() == 8 { "uint64_t" } else { "uint32_t" }
}

/// The definition of a helper of one number.
pub fn scalar_unary(name: &str, function: UnaryFunction, dtype: DType) -> String {
    use UnaryFunction as U;
    let t = c_type(dtype);
    let unsigned = unsigned_of(dtype);
    let body = match function {
        U::Relu if dtype.is_signed() => "return x < 0 ? 0 : x;".to_owned(),
        U::Sign if dtype.is_float() => "return x > 0 ? 1 : x < 0 ? -1 : x;".to_owned(),
        U::Sign if dtype.is_signed() => format!("return ({t})((x > 0) - (x < 0));"),
        U::Sign => format!("return ({t})(x != 0);"),
        U::Absolute if dtype.is_signed() => format!("return x < 0 ? ({t})(0u - ({unsigned})x) : x;"),
        U::Negate => format!("return ({t})(0u - ({unsigned})x);"),
        _ => "return x;".to_owned(),
    };
    format!("static inline {t} {name}({t} x) {{\n  {body}\n}}\n")
}

/// The definition of a helper of two numbers.
pub fn scalar_binary(name: &str, function: BinaryFunction, dtype: DType) -> String {
    let t = c_type(dtype);
    let body = if dtype.is_float() { float_body(function, dtype) } else { integer_body(function, dtype) };
    format!("static inline {t} {name}({t} x, {t} y) {{\n  {body}\n}}\n")
}

fn float_body(function: BinaryFunction, dtype: DType) -> String {
    let (suffix, t) = if dtype == DType::F64 { ("", "double") } else { ("f", "float") };
    match function {
        BinaryFunction::Maximum => "return x > y || x != x ? x : y;".into(),
        BinaryFunction::Minimum => "return x < y || x != x ? x : y;".into(),
        BinaryFunction::Modulo => format!(
            "const {t} remainder = fmod{suffix}(x, y);\n  \
             return remainder != 0 && (remainder < 0) != (y < 0) ? remainder + y : remainder;"
        ),
        BinaryFunction::LogAddExp => format!(
            "const {t} largest = x > y || x != x ? x : y;\n  \
             return isinf(largest) ? largest : largest + log1p{suffix}(exp{suffix}(-fabs{suffix}(x - y)));"
        ),
        _ => "return x;".into(),
    }
}

fn integer_body(function: BinaryFunction, dtype: DType) -> String {
    use BinaryFunction as B;
    let t = c_type(dtype);
    let unsigned = unsigned_of(dtype);
    let bits = dtype.size() * 8;
    let signed = dtype.is_signed();
    let wrapped = |operator: &str| format!("return ({t})(({unsigned})x {operator} ({unsigned})y);");
    let floor_fix = "(remainder != 0 && (remainder < 0) != (y < 0))";
    match function {
        B::Add => wrapped("+"),
        B::Subtract => wrapped("-"),
        B::Multiply => wrapped("*"),
        B::Divide | B::FloorDivide if !signed => format!("return ({t})(y == 0 ? 0 : x / y);"),
        B::Modulo | B::Remainder if !signed => format!("return ({t})(y == 0 ? 0 : x % y);"),
        B::Divide => {
            format!("if (y == -1) {{\n    return ({t})(0u - ({unsigned})x);\n  }}\n  return ({t})(y == 0 ? 0 : x / y);")
        }
        B::FloorDivide => format!(
            "if (y == 0) {{\n    return 0;\n  }}\n  if (y == -1) {{\n    return ({t})(0u - ({unsigned})x);\n  }}\n  \
             const {t} remainder = ({t})(x % y);\n  return ({t})(x / y - {floor_fix});"
        ),
        B::Remainder => format!("return ({t})(y == 0 || y == -1 ? 0 : x % y);"),
        B::Modulo => format!(
            "if (y == 0 || y == -1) {{\n    return 0;\n  }}\n  const {t} remainder = ({t})(x % y);\n  \
             return ({t})({floor_fix} ? remainder + y : remainder);"
        ),
        B::Power => power_body(dtype),
        B::Maximum => "return x > y ? x : y;".into(),
        B::Minimum => "return x < y ? x : y;".into(),
        B::ShiftLeft if signed => format!("return ({t})(y < 0 || y >= {bits} ? 0 : ({unsigned})x << y);"),
        B::ShiftLeft => format!("return ({t})(y >= {bits} ? 0 : ({unsigned})x << y);"),
        B::ShiftRight if signed => {
            format!("return ({t})(y < 0 || y >= {bits} ? -(x < 0) : x >> y);")
        }
        B::ShiftRight => format!("return ({t})(y >= {bits} ? 0 : x >> y);"),
        _ => "return x;".into(),
    }
}

fn power_body(dtype: DType) -> String {
    let t = c_type(dtype);
    let unsigned = unsigned_of(dtype);
    let negative = if dtype.is_signed() {
        format!("if (y < 0) {{\n    return ({t})(x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0);\n  }}\n  ")
    } else {
        String::new()
    };
    format!(
        "{negative}{unsigned} base = ({unsigned})x;\n  {unsigned} result = 1;\n  for ({t} exponent = y; exponent > 0; exponent = \
         ({t})(exponent / 2)) {{\n    if (exponent % 2 != 0) {{\n      result *= base;\n    }}\n    base *= base;\n  }}\n  \
         return ({t})result;"
    )
}

/// Truncates towards zero; values outside the range give its nearest end, NaN gives 0.
pub fn saturating_cast(name: &str, from: DType, to: DType) -> String {
    let (source, target) = (c_type(from), c_type(to));
    let suffix = if from == DType::F64 { "" } else { "f" };
    let bits = to.size() as i32 * 8;
    let constant = to.name().to_uppercase();
    let (kind, width) = constant.split_at(1);
    let prefix = if kind == "I" { "INT" } else { "UINT" };
    let high = 2f64.powi(if to.is_signed() { bits - 1 } else { bits });
    let (low, minimum) = if to.is_signed() {
        (format!("-{high:.1}{suffix}"), format!("{prefix}{width}_MIN"))
    } else {
        ("0".into(), "0".into())
    };
    format!(
        "static inline {target} {name}({source} x) {{\n  if (x != x) {{\n    return 0;\n  }}\n  if (x >= {high:.1}{suffix}) {{\n    \
         return {prefix}{width}_MAX;\n  }}\n  return x <= {low} ? {minimum} : ({target})x;\n}}\n"
    )
}
