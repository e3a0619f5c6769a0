//! The conditions of `#if`: whole numbers of 64 bits.

use super::expression::Arithmetic;

/// Integers; a name that isn't a macro is 0.
pub struct Integers;

/// Operators from the weakest to the strongest.
const STRENGTHS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Arithmetic for Integers {
    type Number = i64;

    fn strength(&self, operator: &str) -> Option<(u8, bool)> {
        let strength = STRENGTHS.iter().position(|operators| operators.contains(&operator))?;
        Some((strength as u8, false))
    }

    fn prefix_strength(&self, operator: &str) -> Option<u8> {
        ["+", "-", "!", "~"].contains(&operator).then_some(STRENGTHS.len() as u8)
    }

    fn number(&self, text: &str) -> Option<i64> {
        let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
        match (digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")), digits.strip_prefix('0')) {
            (Some(hexadecimal), _) => i64::from_str_radix(hexadecimal, 16).ok(),
            (None, Some(octal)) if !octal.is_empty() => i64::from_str_radix(octal, 8).ok(),
            _ => digits.parse().ok(),
        }
    }

    fn name(&self, _name: &str) -> Result<i64, String> {
        Ok(0)
    }

    fn call(&self, _name: &str, _x: i64) -> Option<Result<i64, String>> {
        None
    }

    fn prefix(&self, operator: &str, x: i64) -> i64 {
        match operator {
            "-" => x.wrapping_neg(),
            "!" => i64::from(x == 0),
            "~" => !x,
            _ => x,
        }
    }

    fn binary(&self, operator: &str, x: i64, y: i64) -> Result<i64, String> {
        let none = || format!("{x} {operator} {y} isn't a number");
        let shift = || u32::try_from(y).ok().filter(|&y| y < 64).ok_or_else(none);
        Ok(match operator {
            "||" => i64::from(x != 0 || y != 0),
            "&&" => i64::from(x != 0 && y != 0),
            "|" => x | y,
            "^" => x ^ y,
            "&" => x & y,
            "==" => i64::from(x == y),
            "!=" => i64::from(x != y),
            "<" => i64::from(x < y),
            ">" => i64::from(x > y),
            "<=" => i64::from(x <= y),
            ">=" => i64::from(x >= y),
            "<<" => x.wrapping_shl(shift()?),
            ">>" => x.wrapping_shr(shift()?),
            "+" => x.wrapping_add(y),
            "-" => x.wrapping_sub(y),
            "*" => x.wrapping_mul(y),
            "/" => x.checked_div(y).ok_or_else(none)?,
            _ => x.checked_rem(y).ok_or_else(none)?,
        })
    }
}
