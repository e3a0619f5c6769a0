//! [`Hexadecimal`]: singles in C's hexadecimal notation, exact as decimal ones are. C compilers read them in two thirds of the time.

/// Room for the longest text, `-0x1.23456ep-123`, and for digits behind its end.
const ROOM: usize = 20;
/// Digits of a fraction.
const DIGITS: usize = 6;

/// Room for the text of a number.
#[derive(Debug, Default)]
pub struct Hexadecimal([u8; ROOM]);

impl Hexadecimal {
    /// The text of a finite number (C99, 6.4.4.2), without a suffix: a digit before the point, which is 0 of subnormal numbers alone, and no zeros at its
    /// end. Weights have millions of numbers.
    pub fn format(&mut self, value: f32) -> &[u8] {
        let Hexadecimal(text) = self;
        let bits = value.to_bits();
        let (exponent, fraction) = (bits >> 23 & 0xff, (bits & 0x7f_ffff) << 1);
        let mut length = usize::from(value.is_sign_negative());
        text[0] = b'-';
        text[length..length + 4].copy_from_slice(if exponent == 0 { b"0x0." } else { b"0x1." });
        for (number, digit) in text[length + 4..length + 4 + DIGITS].iter_mut().enumerate() {
            *digit = b"0123456789abcdef"[(fraction >> (4 * (DIGITS - 1 - number)) & 0xf) as usize];
        }
        let zeros = (fraction.trailing_zeros() as usize / 4).min(DIGITS);
        length += if zeros == DIGITS { 3 } else { 4 + DIGITS - zeros };
        let exponent = if value == 0.0 { 0 } else { exponent.max(1) as i32 - 127 };
        text[length..length + 2].copy_from_slice(b"p-");
        length += 1 + usize::from(exponent < 0);
        let size = exponent.unsigned_abs();
        for unit in [100, 10, 1] {
            if unit == 1 || size >= unit {
                text[length] = b'0' + (size / unit % 10) as u8;
                length += 1;
            }
        }
        &text[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    /// What a text says.
    fn read(text: &str) -> f64 {
        let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
        let (digits, exponent) = text.strip_prefix("0x").unwrap().split_once('p').unwrap();
        let fraction = digits.split_once('.').map_or("", |(_, fraction)| fraction);
        let whole = u64::from_str_radix(&digits.replace('.', ""), 16).unwrap() as f64;
        sign * whole * 2f64.powi(exponent.parse::<i32>().unwrap() - 4 * fraction.len() as i32)
    }

    #[test]
    fn texts_are_exact() {
        let mut hexadecimal = Hexadecimal::default();
        let mut text = |value: f32| String::from_utf8(hexadecimal.format(value).to_vec()).unwrap();
        assert_eq!([1.0, -0.75, 10.0, 0.0, -0.0].map(&mut text), ["0x1p0", "-0x1.8p-1", "0x1.4p3", "0x0p0", "-0x0p0"]);
        assert_eq!([f32::MAX, f32::from_bits(1)].map(&mut text), ["0x1.fffffep127", "0x0.000002p-126"]);
        let mut generator = Generator::new(5);
        for _ in 0..100_000 {
            let value = f32::from_bits(generator.range(0, u32::MAX as usize) as u32);
            if value.is_finite() {
                assert_eq!(read(&text(value)), f64::from(value), "{}", text(value));
            }
        }
    }
}
