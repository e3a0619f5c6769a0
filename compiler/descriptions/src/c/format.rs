//! `printf`'s way to put values into a text.

use super::memory::Memory;
use super::types::IntType;
use super::value::Value;
use std::fmt::Write;

/// The widest that a value is padded to.
const WIDEST: usize = 200;

/// A conversion: `%` and what belongs to it.
#[derive(Default)]
struct Conversion {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    width: usize,
    precision: Option<usize>,
}

/// The text that a format and its arguments make.
///
/// # Errors
/// When the arguments don't fit the format.
pub fn format(memory: &mut Memory, format: &[u8], arguments: &[Value]) -> Result<String, String> {
    let mut text = String::new();
    let mut arguments = arguments.iter().copied();
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        text += &String::from_utf8_lossy(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.first() == Some(&b'%') {
            text.push('%');
            rest = &rest[1..];
            continue;
        }
        let conversion = parse(&mut rest, &mut arguments)?;
        let (letter, tail) = rest.split_first().ok_or("the message ends within a conversion")?;
        rest = tail;
        let value = arguments.next().ok_or("the message has more conversions than values")?;
        memory.step(8)?;
        let (sign, body) = convert(memory, &conversion, *letter, value)?;
        pad(&mut text, &conversion, &sign, &body, !matches!(letter, b's' | b'c'));
    }
    text += &String::from_utf8_lossy(rest);
    match arguments.next() {
        Some(_) => Err("the message has fewer conversions than values".into()),
        None => Ok(text),
    }
}

fn parse(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Value>) -> Result<Conversion, String> {
    let mut conversion = Conversion::default();
    while let Some((flag, tail)) = rest.split_first() {
        match flag {
            b'-' => conversion.left = true,
            b'0' => conversion.zero = true,
            b'+' => conversion.plus = true,
            b' ' => conversion.space = true,
            b'#' => conversion.alternative = true,
            _ => break,
        }
        *rest = tail;
    }
    if let Some(width) = count(rest, arguments)? {
        conversion.width = width;
    }
    if let Some(tail) = rest.strip_prefix(b".") {
        *rest = tail;
        conversion.precision = Some(count(rest, arguments)?.unwrap_or(0));
    }
    while let Some(tail) =
        rest.strip_prefix(b"l").or_else(|| rest.strip_prefix(b"z")).or_else(|| rest.strip_prefix(b"h"))
    {
        *rest = tail;
    }
    Ok(conversion)
}

/// A width or a precision, which `*` takes from the arguments.
fn count(rest: &mut &[u8], arguments: &mut impl Iterator<Item = Value>) -> Result<Option<usize>, String> {
    let wide = || format!("values are padded to {WIDEST} letters at most");
    if let Some(tail) = rest.strip_prefix(b"*") {
        *rest = tail;
        return match arguments.next() {
            Some(Value::Int(width, _)) => {
                usize::try_from(width).ok().filter(|width| *width <= WIDEST).map(Some).ok_or_else(wide)
            }
            _ => Err("`*` in a message takes an int".into()),
        };
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Ok(None);
    }
    let text = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
    *rest = &rest[digits..];
    text.parse().ok().filter(|width| *width <= WIDEST).map(Some).ok_or_else(wide)
}

/// The sign or prefix of a value, and the rest of it.
fn convert(memory: &mut Memory, conversion: &Conversion, letter: u8, value: Value) -> Result<(String, String), String> {
    let mismatch = || format!("`%{}` doesn't show a value of type `{}`", letter as char, value.describe());
    match (letter, value) {
        (b'd' | b'i', Value::Int(number, int)) => {
            let bytes = int.bytes.max(4);
            let number = IntType { bytes, signed: true }.wrapped(number);
            Ok((sign(conversion, number < 0), number.unsigned_abs().to_string()))
        }
        (b'u' | b'x' | b'X' | b'o', Value::Int(number, int)) => {
            let number = IntType { bytes: int.bytes.max(4), signed: false }.wrapped(number);
            let prefix = if conversion.alternative && letter.eq_ignore_ascii_case(&b'x') { "0x" } else { "" };
            let digits = match letter {
                b'u' => number.to_string(),
                b'x' => format!("{number:x}"),
                b'X' => format!("{number:X}"),
                _ => format!("{number:o}"),
            };
            Ok((prefix.into(), digits))
        }
        (b'c', Value::Int(number, _)) => Ok((String::new(), String::from_utf8_lossy(&[number as u8]).into_owned())),
        (b'f' | b'F' | b'e' | b'E' | b'g' | b'G', Value::Double(_) | Value::Single(_)) => {
            let number = value.number().unwrap_or_default();
            Ok((
                sign(conversion, number.is_sign_negative()),
                float(letter, number.abs(), conversion.precision.unwrap_or(6)),
            ))
        }
        (b's', Value::Pointer(pointer)) => {
            let bytes = memory.text(pointer)?;
            let shown = &bytes[..conversion.precision.unwrap_or(usize::MAX).min(bytes.len())];
            Ok((String::new(), String::from_utf8_lossy(shown).into_owned()))
        }
        (b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b's', _) => {
            Err(mismatch())
        }
        _ => Err(format!("the conversion `%{}` isn't known", letter as char)),
    }
}

fn sign(conversion: &Conversion, negative: bool) -> String {
    let sign = match (negative, conversion.plus, conversion.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    };
    sign.into()
}

fn float(letter: u8, number: f64, precision: usize) -> String {
    if !number.is_finite() {
        return if number.is_nan() { "nan".into() } else { "inf".into() };
    }
    match letter.to_ascii_lowercase() {
        b'f' => format!("{number:.precision$}"),
        b'e' => exponential(number, precision),
        _ => {
            let significant = precision.max(1);
            let shown = exponential(number, significant - 1);
            let exponent: i32 = shown.rsplit('e').next().and_then(|digits| digits.parse().ok()).unwrap_or_default();
            if (-4..significant as i32).contains(&exponent) {
                let decimals = (significant as i32 - 1 - exponent).max(0) as usize;
                without_zeros(&format!("{number:.decimals$}"))
            } else {
                let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "+00"));
                format!("{}e{exponent}", without_zeros(digits))
            }
        }
    }
}

fn exponential(number: f64, precision: usize) -> String {
    let shown = format!("{number:.precision$e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn without_zeros(digits: &str) -> String {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.').to_owned() } else { digits.to_owned() }
}

fn pad(text: &mut String, conversion: &Conversion, sign: &str, body: &str, numeric: bool) {
    let length = sign.chars().count() + body.chars().count();
    let fill = conversion.width.saturating_sub(length);
    // No formatting of a String fails.
    let _ = match (conversion.left, conversion.zero && numeric) {
        (true, _) => write!(text, "{sign}{body}{:fill$}", ""),
        (false, true) => write!(text, "{sign}{}{body}", "0".repeat(fill)),
        (false, false) => write!(text, "{:fill$}{sign}{body}", ""),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::c::types::Type;
    use crate::c::value::Pointer;

    #[test]
    fn values_are_shown_as_printf_shows_them() {
        let mut memory = Memory::new(100_000);
        let word = memory.constant(b"word\0").unwrap();
        let word = Value::Pointer(Pointer::object(word, Type::CHAR));
        let size = Value::Int(7, IntType::SIZE);
        for (text, values, expected) in [
            ("100%%", vec![], "100%"),
            ("%d %5d|%-4d|%04d %+d", [1, -2, 3, -4, 5].map(Value::int).to_vec(), "1    -2|3   |-004 +5"),
            (
                "%zu %ld %x %#X %u",
                vec![size, Value::Int(-1, IntType::LONG), Value::int(255), Value::int(10), Value::int(-1)],
                "7 -1 ff 0xA 4294967295",
            ),
            (
                "%f %.2f %e %g %g %g",
                [1.5, 2.345, 12345.678, 0.0001, 1e-5, 1e6].map(Value::Double).to_vec(),
                "1.500000 2.35 1.234568e+04 0.0001 1e-05 1e+06",
            ),
            ("'%s' '%.2s' %6s %c", vec![word, word, word, Value::int(65)], "'word' 'wo'   word A"),
            ("%*d", vec![Value::int(3), Value::int(7)], "  7"),
        ] {
            assert_eq!(format(&mut memory, text.as_bytes(), &values).as_deref(), Ok(expected));
        }
        for (text, values) in [
            ("%d", vec![]),
            ("%d", vec![Value::Double(1.0)]),
            ("%f", vec![Value::int(1)]),
            ("%s", vec![Value::int(1)]),
            ("%q", vec![Value::int(1)]),
            ("%999999d", vec![Value::int(1)]),
            ("%", vec![Value::int(1)]),
            ("x", vec![Value::int(1)]),
        ] {
            assert!(format(&mut memory, text.as_bytes(), &values).is_err(), "{text}");
        }
    }
}
