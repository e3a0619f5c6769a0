//! Numbers and types in the text form.

use super::cursor::Cursor;
use super::lexer::Kind;
use crate::diagnostics::Diagnostic;
use crate::fields::FieldValue;
use crate::literal::Literal;
use crate::types::{DType, Float, Quantization, Shape, TensorType};

/// Parses a number: an integer, a float, or with a suffix a literal.
pub(super) fn number(cursor: &mut Cursor<'_>) -> Result<FieldValue, Diagnostic> {
    let token = cursor.next();
    let Kind::Number(text) = token.kind else { return Err(token.error("a number expected")) };
    let typed = text.rsplit_once('_').and_then(|(body, suffix)| Some((body, DType::parse(suffix)?)));
    let value = match typed {
        Some((body, dtype)) => literal(dtype, body).map(FieldValue::Literal),
        None => text
            .parse()
            .map(FieldValue::Integer)
            .ok()
            .or_else(|| plain_float(text).map(|value| FieldValue::Float(Float(value)))),
    };
    value.ok_or_else(|| token.error(format!("{text} isn't a number, or out of its type's range")))
}

/// Parses words that are numbers: `inf`, `nan`, `nan(0x7ff8000000000001)`, and these with a type: `nan_f32(…)`.
pub(super) fn special_number(cursor: &mut Cursor<'_>) -> Result<Option<FieldValue>, Diagnostic> {
    let Kind::Word(word) = *cursor.kind() else { return Ok(None) };
    let (body, dtype) = match word.split_once('_') {
        None => (word, None),
        Some((body, suffix)) => (body, DType::parse(suffix).filter(|dtype| dtype.is_float())),
    };
    if !matches!(body, "inf" | "nan") || (dtype.is_none() && body != word) {
        return Ok(None);
    }
    cursor.next();
    let mut value = if body == "inf" { f64::INFINITY } else { f64::NAN };
    if body == "nan" && cursor.accept('(') {
        let token = cursor.next();
        let bits = match token.kind {
            Kind::Number(text) => text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        let bits = bits.map(f64::from_bits).filter(|value| value.is_nan());
        value = bits.ok_or_else(|| token.error("the bits of a NaN expected, such as 0x7ff8000000000001"))?;
        cursor.expect(')')?;
    }
    Ok(Some(match dtype {
        None => FieldValue::Float(Float(value)),
        Some(dtype) => FieldValue::Literal(Literal::Float(dtype, Float(value))),
    }))
}

/// A literal from digits; `None` when they aren't a number of the type.
pub(super) fn literal(dtype: DType, digits: &str) -> Option<Literal> {
    match dtype {
        DType::Bool => None,
        // Read as what it is, since rounding to double first would round twice.
        DType::F32 => {
            plain_float(digits).and(digits.parse::<f32>().ok()).map(|value| Literal::float(dtype, value.into()))
        }
        _ if dtype.is_float() => plain_float(digits).map(|value| Literal::float(dtype, value)),
        DType::U64 => digits.parse::<u64>().ok().map(|value| Literal::integer(dtype, value as i64)),
        _ => {
            let value: i64 = digits.parse().ok()?;
            let literal = Literal::integer(dtype, value);
            (literal == Literal::Integer(dtype, value)).then_some(literal)
        }
    }
}

/// A float of digits, or `-inf`: not all that the standard library reads.
fn plain_float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (digits.starts_with(|digit: char| digit.is_ascii_digit()) || text == "-inf").then(|| text.parse().ok()).flatten()
}

/// Parses an integer that isn't negative.
pub(super) fn extent(cursor: &mut Cursor<'_>) -> Result<usize, Diagnostic> {
    let token = cursor.next();
    let value = match token.kind {
        Kind::Number(text) => text.parse().ok(),
        _ => None,
    };
    value.ok_or_else(|| token.error(format!("{} found, a number of 0 or more expected", token.kind.describe())))
}

/// Parses a message's tag.
pub(super) fn tag(cursor: &mut Cursor<'_>) -> Result<i32, Diagnostic> {
    let token = cursor.next();
    let value = match token.kind {
        Kind::Number(text) => text.parse().ok(),
        _ => None,
    };
    value.ok_or_else(|| token.error(format!("{} found, an integer of 32 bits expected", token.kind.describe())))
}

/// Parses a tensor type that is all of a text.
///
/// # Errors
/// A diagnostic with line and column.
pub fn parse_type(text: &str) -> Result<TensorType, Diagnostic> {
    let mut cursor = Cursor::new(super::lexer::lex(text)?);
    let ty = tensor_type(&mut cursor)?;
    if *cursor.kind() == Kind::End { Ok(ty) } else { Err(cursor.unexpected("the end of the type")) }
}

/// Parses a tensor type, such as `f32[1, 8]`.
pub(super) fn tensor_type(cursor: &mut Cursor<'_>) -> Result<TensorType, Diagnostic> {
    let token = cursor.peek().clone();
    let name = cursor.word("a type")?;
    let dtype = DType::parse(name).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        token.error(format!("there is no data type {name}")).with_note(format!("they are: {}", names.join(", ")))
    })?;
    cursor.expect('[')?;
    let shape: Shape = cursor.list(']', extent)?.into();
    let ty = TensorType { dtype, shape };
    if ty.checked_bytes().is_none() {
        return Err(token.error(format!("a tensor {ty} is too large")));
    }
    Ok(ty)
}

/// Parses what integers stand for, behind `quantization` and a name: `scale 0.5 zero_point -3`.
pub(super) fn quantization(cursor: &mut Cursor<'_>) -> Result<Quantization, Diagnostic> {
    cursor.expect_word("scale")?;
    let token = cursor.peek().clone();
    let scale = match number(cursor)? {
        FieldValue::Float(scale) => scale,
        FieldValue::Integer(scale) => Float(scale as f64),
        _ => return Err(token.error("a scale is a plain number")),
    };
    cursor.expect_word("zero_point")?;
    let token = cursor.peek().clone();
    match number(cursor)? {
        FieldValue::Integer(zero_point) => Ok(Quantization { scale, zero_point }),
        _ => Err(token.error("a zero point is an integer")),
    }
}
