//! The spelling of values: parameters, shapes and floats, in both directions.
//!
//! The format marks no types, so a value's kind follows from its spelling. What is read here is written back as the
//! current exporter spells it, and always so that the same value is read again.

use super::model::{Complex, Dimension, ElementType, OperandType, Parameter};
use std::borrow::Cow;

/// Why a value can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A whole number outside the 32-bit range, or a float beyond the largest finite one.
    #[error("{0} doesn't fit 32 bits")]
    OutOfRange(String),
    /// A list that begins with a bracket and doesn't end with its partner.
    #[error("the list isn't closed")]
    ListNotClosed,
    /// A shape that isn't in parentheses.
    #[error("expected a shape in parentheses before the element type, such as (1,3,224,224)f32")]
    ShapeNotClosed,
    /// A dimension that is neither a number nor, where allowed, `?` or `%name`.
    #[error("`{0}` isn't a dimension")]
    Dimension(String),
    /// A dimension above 2^31-1.
    #[error("dimension {0} is above 2147483647")]
    DimensionOutOfRange(String),
}

/// Whether the parameter's text is kept as it is. Such texts may begin with a bracket without being a list.
pub fn is_raw(operator: &str, key: &str) -> bool {
    matches!((operator, key), ("pnnx.Expression" | "Tensor.index", "expr") | ("torch.einsum", "equation"))
}

/// Reads a parameter's value by its spelling.
///
/// A text that begins like a number and isn't one is a string, so that nothing of it is lost.
pub fn parse_parameter(text: &str) -> Result<Parameter, ValueError> {
    if text.contains('%') {
        return Ok(Parameter::String(text.to_owned()));
    }
    match text {
        "None" | "()" | "[]" => return Ok(Parameter::Null),
        "True" => return Ok(Parameter::Bool(true)),
        "False" => return Ok(Parameter::Bool(false)),
        _ => {}
    }
    if text.starts_with(['(', '[']) {
        return parse_list(text);
    }
    Ok(match parse_scalar(text)? {
        Scalar::Int(value) => Parameter::Int(value),
        Scalar::Float(value) => Parameter::Float(value),
        Scalar::Complex(value) => Parameter::Complex(value),
        Scalar::Word => Parameter::String(text.to_owned()),
    })
}

#[derive(Clone, Copy)]
enum Scalar {
    Int(i32),
    Float(f32),
    Complex(Complex),
    Word,
}

fn parse_scalar(text: &str) -> Result<Scalar, ValueError> {
    if !begins_like_number(text) {
        return Ok(Scalar::Word);
    }
    if let Some(complex) = parse_complex(text) {
        return Ok(Scalar::Complex(complex));
    }
    if text.contains(['.', 'e']) {
        return match parse_f32(text) {
            Some(value) if value.is_finite() => Ok(Scalar::Float(value)),
            Some(_) => Err(ValueError::OutOfRange(text.to_owned())),
            None => Ok(Scalar::Word),
        };
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(Scalar::Word);
    }
    text.parse().map(Scalar::Int).map_err(|_| ValueError::OutOfRange(text.to_owned()))
}

fn begins_like_number(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).starts_with(|first: char| first.is_ascii_digit())
}

/// A plain decimal float: an optional sign, digits, and nothing like `inf` or `nan`.
fn parse_f32(text: &str) -> Option<f32> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if plain { text.parse().ok() } else { None }
}

/// Reads `<re>+<im>j` or `<re>-<im>j`; a negative imaginary part may also stand behind the plus, as in `1.0+-2.0j`.
pub fn parse_complex(text: &str) -> Option<Complex> {
    let body = text.strip_suffix('j')?;
    let bytes = body.as_bytes();
    // The sign between the parts is the first one that is neither leading nor an exponent's.
    let split =
        (1..bytes.len()).find(|&at| matches!(bytes[at], b'+' | b'-') && !matches!(bytes[at - 1], b'e' | b'E'))?;
    let imaginary = if body[split..].starts_with("+-") { &body[split + 1..] } else { &body[split..] };
    let parts = Complex { re: parse_f32(&body[..split])?, im: parse_f32(imaginary)? };
    (parts.re.is_finite() && parts.im.is_finite()).then_some(parts)
}

fn parse_list(text: &str) -> Result<Parameter, ValueError> {
    let (closing, body) = match text.strip_prefix('(') {
        Some(body) => (')', body),
        None => (']', &text[1..]),
    };
    let body = body.strip_suffix(closing).ok_or(ValueError::ListNotClosed)?;
    let scalars = body.split(',').map(parse_scalar).collect::<Result<Vec<_>, _>>()?;
    let any = |test: fn(&Scalar) -> bool| scalars.iter().any(test);
    if any(|scalar| matches!(scalar, Scalar::Word)) {
        return Ok(Parameter::StringList(body.split(',').map(str::to_owned).collect()));
    }
    if any(|scalar| matches!(scalar, Scalar::Complex(_))) {
        return Ok(Parameter::ComplexList(scalars.into_iter().map(to_complex).collect()));
    }
    if any(|scalar| matches!(scalar, Scalar::Float(_))) {
        return Ok(Parameter::FloatList(scalars.into_iter().map(|scalar| to_complex(scalar).re).collect()));
    }
    let ints = scalars.into_iter().filter_map(|scalar| match scalar {
        Scalar::Int(value) => Some(value),
        _ => None,
    });
    Ok(Parameter::IntList(ints.collect()))
}

fn to_complex(scalar: Scalar) -> Complex {
    match scalar {
        Scalar::Int(value) => Complex { re: value as f32, im: 0.0 },
        Scalar::Float(value) => Complex { re: value, im: 0.0 },
        Scalar::Complex(value) => value,
        Scalar::Word => Complex { re: f32::NAN, im: f32::NAN },
    }
}

/// Splits `(1,3)f32` into the text between the parentheses and the element type's spelling.
pub fn split_type(text: &str) -> Result<(&str, &str), ValueError> {
    let (shape, suffix) = text.rsplit_once(')').ok_or(ValueError::ShapeNotClosed)?;
    Ok((shape.strip_prefix('(').ok_or(ValueError::ShapeNotClosed)?, suffix))
}

/// Reads the dimensions of an operand: numbers, `?` and `%name`. Nothing between the parentheses means rank 0.
pub fn parse_dimensions(text: &str) -> Result<Vec<Dimension>, ValueError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_dimension).collect()
}

fn parse_dimension(text: &str) -> Result<Dimension, ValueError> {
    match text.strip_prefix('%') {
        Some("") => Err(ValueError::Dimension(text.to_owned())),
        Some(name) => Ok(Dimension::Symbol(name.to_owned())),
        None if text == "?" => Ok(Dimension::Unknown),
        None => parse_extent(text).map(Dimension::Known),
    }
}

/// Reads the dimensions of a weight: numbers only.
pub fn parse_extents(text: &str) -> Result<Vec<u32>, ValueError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',').map(parse_extent).collect()
}

fn parse_extent(text: &str) -> Result<u32, ValueError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ValueError::Dimension(text.to_owned()));
    }
    match text.parse::<u32>() {
        Ok(extent) if extent <= i32::MAX as u32 => Ok(extent),
        _ => Err(ValueError::DimensionOutOfRange(text.to_owned())),
    }
}

/// Reads an operand's type. The second part is the element type's spelling if it is unknown; the type then is null.
pub fn parse_operand_type(text: &str) -> Result<(OperandType, Option<&str>), ValueError> {
    let (shape, suffix) = split_type(text)?;
    let known = ElementType::from_suffix(suffix);
    let element_type = known.unwrap_or(ElementType::Null);
    Ok((OperandType { element_type, shape: parse_dimensions(shape)? }, known.is_none().then_some(suffix)))
}

/// Spells a parameter's value.
pub fn format_parameter(parameter: &Parameter) -> Cow<'_, str> {
    match parameter {
        Parameter::Null => "None".into(),
        Parameter::Bool(true) => "True".into(),
        Parameter::Bool(false) => "False".into(),
        Parameter::Int(value) => value.to_string().into(),
        Parameter::Float(value) => format_float(*value).into(),
        Parameter::Complex(value) => format_complex(*value).into(),
        Parameter::String(value) => value.into(),
        Parameter::IntList(values) => format_list(values, i32::to_string).into(),
        Parameter::FloatList(values) => format_list(values, |value| format_float(*value)).into(),
        Parameter::StringList(values) => format_list(values, String::clone).into(),
        Parameter::ComplexList(values) => format_list(values, |value| format_complex(*value)).into(),
    }
}

fn format_list<T>(values: &[T], spell: impl Fn(&T) -> String) -> String {
    format!("({})", values.iter().map(spell).collect::<Vec<_>>().join(","))
}

/// Spells a float as the current exporter does, so that the same bits are read back.
///
/// Values that no number token can stand for come out as `inf`, `-inf` and `nan`, which are read as strings.
pub fn format_float(value: f32) -> String {
    let magnitude = value.abs();
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { value.to_string() };
    }
    if magnitude == 0.0 {
        return if value.is_sign_negative() { "-0.0".into() } else { "0.0".into() };
    }
    if !(1e-4..1e6).contains(&magnitude) {
        let (mantissa, exponent) = scientific(value, 6);
        return format!("{mantissa}e{exponent}");
    }
    let short = general(value, 6);
    let mut text = if short.parse() == Ok(value) { short } else { general(value, 9) };
    if !text.contains('.') {
        text.push_str(".0");
    }
    text
}

/// Spells a complex number, each part with an exponent of at least two digits and its sign.
pub fn format_complex(value: Complex) -> String {
    let part = |value: f32| {
        let (mantissa, exponent) = scientific(value, 6);
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
    };
    format!("{}+{}j", part(value.re), part(value.im))
}

/// Mantissa and decimal exponent, with this many digits behind the point, or with eight where those lose bits.
fn scientific(value: f32, digits: usize) -> (String, i32) {
    let text = format!("{value:.digits$e}");
    let text = if text.parse() == Ok(value) { text } else { format!("{value:.8e}") };
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

/// This many significant digits without an exponent and without trailing zeros, for 1e-4 <= |value| < 1e6.
fn general(value: f32, significant: usize) -> String {
    let rounded = format!("{value:.*e}", significant - 1);
    let exponent = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse::<i64>().ok()).unwrap_or(0);
    let decimals = usize::try_from(significant as i64 - 1 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
#[path = "value_tests.rs"]
mod tests;
