//! What `${eval …}` computes: Perl's arithmetic, as far as networks use it.

use super::expression::Arithmetic;

/// Numbers are doubles.
pub struct Doubles;

/// How strong a sign is: less than a power, so that -2**2 is -4.
const SIGN: u8 = 3;

impl Arithmetic for Doubles {
    type Number = f64;

    fn strength(&self, operator: &str) -> Option<(u8, bool)> {
        match operator {
            "+" | "-" => Some((1, false)),
            "*" | "/" | "%" => Some((2, false)),
            "**" => Some((SIGN + 1, true)),
            _ => None,
        }
    }

    fn prefix_strength(&self, operator: &str) -> Option<u8> {
        ["+", "-"].contains(&operator).then_some(SIGN)
    }

    /// A number that starts with 0 and has more digits is octal to some and decimal to others.
    fn number(&self, text: &str) -> Option<f64> {
        let is_octal = text.len() > 1 && text.starts_with('0') && text.as_bytes()[1].is_ascii_digit();
        text.parse().ok().filter(|number: &f64| !is_octal && number.is_finite())
    }

    fn name(&self, name: &str) -> Result<f64, String> {
        Err(format!("`{}` is no number, and no macro that stands for one", mlc_json::shortened(name)))
    }

    fn call(&self, name: &str, x: f64) -> Option<Result<f64, String>> {
        match name {
            "abs" => Some(Ok(x.abs())),
            "int" => Some(Ok(x.trunc())),
            "sqrt" if x < 0.0 => Some(Err(format!("the square root of {x} isn't a number"))),
            "sqrt" => Some(Ok(x.sqrt())),
            _ => None,
        }
    }

    fn prefix(&self, operator: &str, x: f64) -> f64 {
        if operator == "-" { -x } else { x }
    }

    fn binary(&self, operator: &str, x: f64, y: f64) -> Result<f64, String> {
        let result = match operator {
            "+" => x + y,
            "-" => x - y,
            "*" => x * y,
            "/" => x / y,
            "%" => remainder(x.trunc(), y.trunc()),
            _ => x.powf(y),
        };
        if result.is_finite() { Ok(result) } else { Err(format!("{x} {operator} {y} isn't a number")) }
    }
}

/// The rest of a division of integers, with the sign of the divisor.
fn remainder(x: f64, y: f64) -> f64 {
    let rest = x % y;
    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
}

/// A number as Perl writes it: up to 15 digits, without a fraction where it has none.
pub fn written(number: f64) -> String {
    let rounded = format!("{number:.14e}").parse().unwrap_or(number);
    // Zero has no sign.
    let rounded = if rounded == 0.0 { 0.0 } else { rounded };
    format!("{rounded}")
}
