//! [`Hexadecimal`]: singles in C's hexadecimal notation, exact as decimal ones are. C compilers read them in two thirds of the time.

/// Bytes of the longest text, such as `-0x1.23456ep-123`.
const MOST_BYTES: usize = 16;

/// Room for the text of a number.
#[derive(Debug, Default)]
pub struct Hexadecimal {
    text: [u8; MOST_BYTES],
    length: usize,
}

impl Hexadecimal {
    /// The text of a finite number (C99, 6.4.4.2), without a suffix: a digit before the point, which is 0 of subnormal numbers alone, and no zeros at its
    /// end.
    pub fn format(&mut self, value: f32) -> &str {
        let bits = value.to_bits();
        let (exponent, mut fraction) = (bits >> 23 & 0xff, (bits & 0x7f_ffff) << 1);
        self.length = 0;
        if value.is_sign_negative() {
            self.put(b"-");
        }
        self.put(if exponent == 0 { b"0x0" } else { b"0x1" });
        if fraction != 0 {
            self.put(b".");
        }
        while fraction != 0 {
            self.put(&[b"0123456789abcdef"[(fraction >> 20) as usize]]);
            fraction = fraction << 4 & 0xff_ffff;
        }
        self.exponent(if value == 0.0 { 0 } else { exponent.max(1) as i32 - 127 });
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }

    fn exponent(&mut self, exponent: i32) {
        self.put(if exponent < 0 { b"p-" } else { b"p" });
        let size = exponent.unsigned_abs();
        for unit in [100, 10, 1].into_iter().filter(|&unit| unit == 1 || size >= unit) {
            self.put(&[b'0' + (size / unit % 10) as u8]);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.text[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
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
        let mut text = |value: f32| hexadecimal.format(value).to_owned();
        assert_eq!([1.0, -0.75, 10.0, 0.0, -0.0].map(&mut text), ["0x1p0", "-0x1.8p-1", "0x1.4p3", "0x0p0", "-0x0p0"]);
        assert_eq!([f32::MAX, f32::from_bits(1)].map(&mut text), ["0x1.fffffep127", "0x0.000002p-126"]);
        let mut generator = Generator::new(5);
        for _ in 0..100_000 {
            let value = f32::from_bits(generator.range(0, u32::MAX as usize) as u32);
            if value.is_finite() {
                assert_eq!(read(&text(value)), f64::from(value), "{}", text(value));
                assert!(text(value).len() <= MOST_BYTES);
            }
        }
    }
}
