//! Constants in the text form: `[0.5, 1.0]`, `splat(0.0)`, `random(seed = 7)`, or `@name #hash` of the side table.

use super::cursor::Cursor;
use super::lexer::{Kind, Token, plain_or_quoted};
use super::{ConstantSource, values};
use crate::attribute::Attribute;
use crate::diagnostics::{Code, Diagnostic};
use crate::fields::FieldValue;
use crate::generator::Generator;
use crate::tensor::{Tensor, Values};
use crate::types::{DType, Float, TensorType};

/// Constants of more elements go to the side table, unless all their elements are equal.
const MAXIMUM_INLINE: usize = 8;

/// Splats and random constants of more bytes than this aren't made: a short text can't ask for much memory.
const MAXIMUM_MADE: usize = 1 << 28;

/// The text of a constant's values, and whether it refers to the side table.
pub(super) fn constant_text(name: &str, value: &Attribute) -> (String, bool) {
    let dtype = value.ty().dtype;
    if let Some(element) = splat(value) {
        return (format!("splat({})", element_text(dtype, element)), false);
    }
    if value.ty().elements() <= MAXIMUM_INLINE {
        let chunks = value.bytes().chunks_exact(dtype.size());
        let texts: Vec<String> = chunks.map(|chunk| element_text(dtype, chunk)).collect();
        return (format!("[{}]", texts.join(", ")), false);
    }
    (format!("@{} #{:016x}", plain_or_quoted(name), value.content_hash()), true)
}

/// Whether a constant's text refers to the side table.
pub(super) fn is_stored(value: &Attribute) -> bool {
    value.ty().elements() > MAXIMUM_INLINE && splat(value).is_none()
}

/// The element that all are equal to, where text says no more than that.
fn splat(value: &Attribute) -> Option<&[u8]> {
    let mut chunks = value.bytes().chunks_exact(value.ty().dtype.size());
    let first = chunks.next().filter(|_| value.ty().elements() > 1 && value.bytes().len() <= MAXIMUM_MADE)?;
    chunks.all(|chunk| chunk == first).then_some(first)
}

/// The shortest text that reads back to the same bytes; the bits themselves where no number does.
fn element_text(dtype: DType, chunk: &[u8]) -> String {
    let tensor = Tensor::from_le_bytes(TensorType::new(dtype, []), chunk);
    let text = match tensor.values() {
        Values::Float(values) if dtype == DType::F32 && values[0].is_finite() => format!("{:?}", values[0] as f32),
        Values::Float(values) if values[0].is_nan() => "nan".to_owned(),
        Values::Float(values) => Float(values[0]).to_string(),
        Values::Integer(values) if dtype == DType::Bool => (values[0] != 0).to_string(),
        Values::Integer(values) if dtype == DType::U64 => (values[0] as u64).to_string(),
        Values::Integer(values) => values[0].to_string(),
    };
    if element_bytes(dtype, &text).as_deref() == Some(chunk) {
        return text;
    }
    let digits: String = chunk.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

fn element_bytes(dtype: DType, text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("0x") {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        let bytes = bits.to_le_bytes();
        let (kept, cut) = bytes.split_at(dtype.size());
        return cut.iter().all(|&byte| byte == 0).then(|| kept.to_vec());
    }
    let scalar = TensorType::new(dtype, []);
    let tensor = match (dtype, text) {
        (DType::Bool, "true" | "false") => Tensor::from_integers(scalar, vec![i64::from(text == "true")]),
        (_, "inf") if dtype.is_float() => Tensor::from_floats(scalar, vec![f64::INFINITY]),
        (_, "nan") if dtype.is_float() => Tensor::from_floats(scalar, vec![f64::NAN]),
        _ => Tensor::splat(scalar, values::literal(dtype, text)?),
    };
    Some(tensor.to_le_bytes())
}

/// Parses a type and the values behind it.
pub(super) fn parse(cursor: &mut Cursor<'_>, constants: &dyn ConstantSource) -> Result<Attribute, Diagnostic> {
    let ty = values::tensor_type(cursor)?;
    elements(cursor, constants, ty)
}

/// Parses a type, and the values behind it if there are some.
pub(super) fn type_or_constant(
    cursor: &mut Cursor<'_>,
    constants: &dyn ConstantSource,
) -> Result<FieldValue, Diagnostic> {
    let ty = values::tensor_type(cursor)?;
    match cursor.kind() {
        Kind::Mark('[') | Kind::Word("splat" | "random") | Kind::Symbol(_) => {
            elements(cursor, constants, ty).map(FieldValue::Attribute)
        }
        _ => Ok(FieldValue::Type(ty)),
    }
}

/// Parses the values of a constant.
fn elements(cursor: &mut Cursor<'_>, constants: &dyn ConstantSource, ty: TensorType) -> Result<Attribute, Diagnostic> {
    let token = cursor.peek().clone();
    let made = |ty: &TensorType| {
        if ty.bytes() <= MAXIMUM_MADE { Ok(()) } else { Err(token.error(format!("{ty} is too large to be made here"))) }
    };
    let bytes = match &token.kind {
        Kind::Mark('[') => {
            cursor.next();
            cursor.list(']', |cursor| element(cursor, ty.dtype))?.concat()
        }
        Kind::Word("splat") => {
            cursor.next();
            cursor.expect('(')?;
            let element = element(cursor, ty.dtype)?;
            cursor.expect(')')?;
            made(&ty)?;
            element.repeat(ty.elements())
        }
        Kind::Word("random") => {
            cursor.next();
            let seed = seed(cursor)?;
            made(&ty)?;
            Generator::new(seed).tensor(&ty).to_le_bytes()
        }
        Kind::Symbol(_) => {
            cursor.next();
            return stored(cursor, constants, &token, ty);
        }
        _ => return Err(cursor.unexpected("values: `[…]`, `splat(…)`, `random(seed = …)` or `@name #hash`")),
    };
    Attribute::new(ty, bytes).map_err(|error| token.error(error.to_string()))
}

fn element(cursor: &mut Cursor<'_>, dtype: DType) -> Result<Vec<u8>, Diagnostic> {
    let token = cursor.next();
    let bytes = match token.kind {
        Kind::Word(text) | Kind::Number(text) => element_bytes(dtype, text),
        _ => None,
    };
    bytes.ok_or_else(|| token.error(format!("{} isn't a value of {dtype}", token.kind.describe())))
}

fn seed(cursor: &mut Cursor<'_>) -> Result<u64, Diagnostic> {
    cursor.expect('(')?;
    cursor.expect_word("seed")?;
    cursor.expect('=')?;
    let token = cursor.peek().clone();
    let FieldValue::Integer(seed) = values::number(cursor)? else { return Err(token.error("a seed is an integer")) };
    cursor.expect(')')?;
    Ok(seed as u64)
}

fn stored(
    cursor: &mut Cursor<'_>,
    constants: &dyn ConstantSource,
    token: &Token<'_>,
    ty: TensorType,
) -> Result<Attribute, Diagnostic> {
    let Kind::Symbol(name) = &token.kind else { return Err(token.error("the name of a constant expected")) };
    let Kind::Hash(hash) = *cursor.kind() else { return Err(cursor.unexpected("the hash of the constant")) };
    cursor.next();
    let value = constants.constant(name, hash, &ty).ok_or_else(|| {
        let message = format!("the constant @{} isn't in the side table", plain_or_quoted(name));
        token.fault(Code::WeightMissing, message)
    })?;
    if *value.ty() != ty || (constants.has_values() && value.content_hash() != hash) {
        let message = format!("the side table's constant is {value:?}, {ty} #{hash:016x} expected");
        return Err(token.fault(Code::WeightSizeMismatch, message));
    }
    Ok(value)
}
