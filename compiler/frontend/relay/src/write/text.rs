//! Numbers, strings and values of attributes as text.

use crate::syntax::AttributeValue;
use mlc_ir::{DType, Literal, TensorType};

/// A string in double quotes.
pub(super) fn quoted(text: &str) -> String {
    escaped(text, false)
}

/// A string in double quotes that neither ends a comment nor starts one.
pub(super) fn comment_quoted(text: &str) -> String {
    escaped(text, true)
}

fn escaped(text: &str, comment: bool) -> String {
    let mut result = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => result += "\\\"",
            '\\' => result += "\\\\",
            '\n' => result += "\\n",
            '*' if comment => result += "\\u{2a}",
            character if character.is_control() => result += &format!("\\u{{{:x}}}", character as u32),
            character => result.push(character),
        }
    }
    result + "\""
}

/// A finite number of single precision.
fn single(value: f64) -> String {
    format!("{:?}f", value as f32)
}

fn float_text(value: f64, is_single: bool) -> String {
    match value {
        f64::INFINITY => "inff".into(),
        f64::NEG_INFINITY => "-inff".into(),
        value if is_single => single(value),
        value => format!("{value:?}f64"),
    }
}

/// A constant of rank 0 as Relay has it, if its text has one.
pub(super) fn literal_text(literal: Literal) -> Option<String> {
    match literal {
        Literal::Float(DType::F32, value) if value.0.is_finite() => Some(single(value.0)),
        Literal::Float(DType::F64, value) if value.0.is_finite() => Some(format!("{:?}f64", value.0)),
        Literal::Integer(DType::I32, value) => Some(value.to_string()),
        Literal::Integer(DType::I64, value) => Some(format!("{value}i64")),
        Literal::Integer(DType::I16, value) => Some(format!("{value}i16")),
        Literal::Integer(DType::Bool, value) => Some(if value != 0 { "True" } else { "False" }.into()),
        _ => None,
    }
}

/// A number whose type the reader knows.
pub(super) fn number_text(literal: Literal) -> String {
    literal_text(literal).unwrap_or_else(|| match literal {
        Literal::Float(dtype, value) => float_text(value.0, dtype != DType::F64),
        Literal::Integer(_, value) => format!("{value}i64"),
    })
}

pub(super) fn attribute_text(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Integer(value) => value.to_string(),
        AttributeValue::Float(value, is_single) => float_text(*value, *is_single),
        AttributeValue::Text(text) => quoted(text),
        AttributeValue::Bool(value) => if *value { "True" } else { "False" }.into(),
        AttributeValue::None => "None".into(),
        AttributeValue::List(values) => {
            let values: Vec<String> = values.iter().map(attribute_text).collect();
            format!("[{}]", values.join(", "))
        }
        AttributeValue::Meta(key, index) => format!("meta[{key}][{index}]"),
    }
}

/// A type as Relay has it.
pub(super) fn type_text(ty: &TensorType) -> String {
    let dtype = ty.dtype.long_name();
    if ty.rank() == 0 {
        return dtype.to_owned();
    }
    let extents: Vec<String> = ty.shape.iter().map(usize::to_string).collect();
    format!("Tensor[({}), {dtype}]", extents.join(", "))
}
