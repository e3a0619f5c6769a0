//! Numbers: `1`, `2i64`, `1.5f`, `-inff`.

use super::cursor::{Parsed, Parser};
use crate::lexer::Kind;
use crate::syntax::AttributeValue;
use mlc_ir::{DType, Float, Literal};

/// The number and the data type of a word such as `inff` or `nanf64`.
pub(super) fn special(word: &str) -> Option<(f64, DType)> {
    let (value, suffix) = match (word.strip_prefix("inf"), word.strip_prefix("nan")) {
        (Some(suffix), _) => (f64::INFINITY, suffix),
        (_, Some(suffix)) => (f64::NAN, suffix),
        _ => return None,
    };
    float_suffix(suffix).map(|dtype| (value, dtype))
}

fn float_suffix(suffix: &str) -> Option<DType> {
    match suffix {
        "f" | "f32" => Some(DType::F32),
        "f16" => Some(DType::F16),
        "f64" => Some(DType::F64),
        _ => None,
    }
}

/// The data type of an integer's suffix, such as `i64`.
fn integer_suffix(suffix: &str) -> Option<DType> {
    let name = match (suffix.strip_prefix('i'), suffix.strip_prefix('u')) {
        _ if suffix.is_empty() => return Some(DType::I32),
        (Some(bits), _) => format!("int{bits}"),
        (_, Some(bits)) => format!("uint{bits}"),
        _ => return None,
    };
    DType::parse_long_name(&name)
}

/// Digits and suffix of a number.
fn split(number: &str) -> (&str, &str) {
    let mut end = number.len();
    for (index, letter) in number.char_indices() {
        let exponent = matches!(letter, 'e' | 'E');
        let digit = letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-');
        if !digit && !exponent {
            end = index;
            break;
        }
    }
    number.split_at(end)
}

impl Parser<'_> {
    /// A number with its sign, as a literal of an expression.
    pub(super) fn literal(&mut self) -> Parsed<Literal> {
        let place = self.place();
        let negative = self.accept("-");
        let sign = if negative { "-" } else { "" };
        let token = self.next();
        let literal = match token.kind {
            Kind::Word(word) => special(word).map(|(value, dtype)| {
                let value = if negative { -value } else { value };
                Literal::Float(dtype, Float(value))
            }),
            Kind::Number(number) => {
                let (digits, suffix) = split(number);
                let text = format!("{sign}{digits}");
                let whole = !digits.contains(['.', 'e', 'E']);
                match (float_suffix(suffix), integer_suffix(suffix)) {
                    (Some(DType::F32), _) => {
                        text.parse::<f32>().ok().map(|value| Literal::float(DType::F32, value.into()))
                    }
                    (Some(dtype), _) => text.parse().ok().map(|value| Literal::float(dtype, value)),
                    (None, Some(dtype)) if whole => integer(dtype, &text),
                    // A fraction without a suffix is a float, as Python's would be.
                    (None, Some(_)) if suffix.is_empty() => {
                        text.parse::<f32>().ok().map(|value| Literal::float(DType::F32, value.into()))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        literal.ok_or_else(|| {
            place.error(format!("{sign}{} isn't a number, or out of its type's range", token.kind.describe()))
        })
    }

    /// A number with its sign, as the value of an attribute.
    pub(super) fn attribute_number(&mut self) -> Parsed<AttributeValue> {
        let behind = if self.at_mark("-") { self.second() } else { self.peek() };
        match *behind {
            Kind::Number(number) => {
                let (digits, suffix) = split(number);
                if suffix.is_empty() && !digits.contains(['.', 'e', 'E']) {
                    return self.integer_attribute();
                }
                let single = suffix == "f" || suffix == "f32";
                let literal = self.literal()?;
                Ok(match literal {
                    Literal::Float(_, value) => AttributeValue::Float(value.0, single),
                    Literal::Integer(_, value) => AttributeValue::Integer(value),
                })
            }
            Kind::Word(word) if special(word).is_some() => {
                let literal = self.literal()?;
                Ok(AttributeValue::Float(literal.to_f64(), literal.dtype() == DType::F32))
            }
            _ => Err(self.unexpected("the value of an attribute")),
        }
    }

    /// An integer without a suffix, which may have 64 bits.
    fn integer_attribute(&mut self) -> Parsed<AttributeValue> {
        let place = self.place();
        let sign = if self.accept("-") { "-" } else { "" };
        let token = self.next();
        let Kind::Number(digits) = token.kind else { return Err(self.unexpected("a number")) };
        let value = format!("{sign}{digits}").parse();
        value.map(AttributeValue::Integer).map_err(|_| place.error(format!("{sign}{digits} doesn't fit in 64 bits")))
    }
}

fn integer(dtype: DType, text: &str) -> Option<Literal> {
    if dtype == DType::U64 {
        return text.parse::<u64>().ok().map(|value| Literal::Integer(dtype, value as i64));
    }
    let value: i64 = text.parse().ok()?;
    (Literal::integer(dtype, value) == Literal::Integer(dtype, value)).then_some(Literal::Integer(dtype, value))
}
