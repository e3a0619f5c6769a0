//! Lines of singles in C's hexadecimal notation, exact as the decimal one is. C compilers read them in two thirds of the time.

use std::sync::LazyLock;

/// Numbers of a line, which have fewer than 100 columns then.
pub const EACH_LINE: usize = 5;
/// Room for a space, the longest number, `-0x1.23456ep-123f,`, and for digits and an exponent that are written behind the end of shorter ones.
const ROOM: usize = 24;
/// Room for the longest exponent, `p-123f,`.
const EXPONENT: usize = 8;
/// Digits of a fraction.
const DIGITS: usize = 6;

/// The lines of singles, little-endian, as parts of an initialiser (C99, 6.4.4.2): a digit before the point, which is 0 of subnormal numbers
/// alone, and no zeros at its end. Weights have millions of numbers: each is written where it stays, by three stores.
pub fn lines(singles: &[u8]) -> Vec<u8> {
    let exponents = &*EXPONENTS;
    let (numbers, _) = singles.as_chunks::<4>();
    let mut text = vec![0; (numbers.len() + 1) * ROOM];
    let mut end = 0;
    for line in numbers.chunks(EACH_LINE) {
        text[end] = b' ';
        end += 1;
        for number in line {
            end += write(&mut text[end..], f32::from_le_bytes(*number), exponents);
        }
        text[end] = b'\n';
        end += 1;
    }
    text.truncate(end);
    text
}

/// What C calls a number that isn't finite, in an initialiser, where a sign needs no parentheses.
pub fn not_finite(value: f32) -> &'static str {
    match value {
        _ if value.is_nan() => "NAN",
        _ if value > 0.0 => "INFINITY",
        _ => "-INFINITY",
    }
}

/// Writes a number between a space and a comma; gives its bytes.
fn write(text: &mut [u8], value: f32, exponents: &[Exponent; 255]) -> usize {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 23 & 0xff) as usize, (bits & 0x7f_ffff) << 1);
    let (Some(text), Some(power)) = (text.first_chunk_mut::<ROOM>(), exponents.get(exponent)) else {
        return write_word(text, &format!(" {},", not_finite(value)));
    };
    if value == 0.0 {
        return write_word(text, if value.is_sign_negative() { " -0.0f," } else { " 0.0f," });
    }
    put(text, 0, *b" -");
    let mut end = 1 + usize::from(value.is_sign_negative());
    put(text, end, if exponent == 0 { *b"0x0." } else { *b"0x1." });
    put(text, end + 4, digits(fraction));
    let zeros = (fraction.trailing_zeros() as usize / 4).min(DIGITS);
    // Without a fraction there is no point.
    end += if zeros == DIGITS { 3 } else { 4 + DIGITS - zeros };
    put(text, end, power.text);
    end + power.length
}

/// Writes so many bytes at a place that has room for them: as a whole, in less time than as a slice of any length.
fn put<const BYTES: usize>(text: &mut [u8; ROOM], place: usize, bytes: [u8; BYTES]) {
    if let Some(room) = text.get_mut(place..).and_then(<[u8]>::first_chunk_mut) {
        *room = bytes;
    }
}

fn write_word(text: &mut [u8], word: &str) -> usize {
    text[..word.len()].copy_from_slice(word.as_bytes());
    word.len()
}

/// The exponents of finite numbers, by their bits.
static EXPONENTS: LazyLock<[Exponent; 255]> =
    LazyLock::new(|| std::array::from_fn(|bits| Exponent::new(bits.max(1) as i32 - 127)));

/// An exponent with what follows it.
struct Exponent {
    text: [u8; EXPONENT],
    length: usize,
}

impl Exponent {
    fn new(power: i32) -> Exponent {
        let word = format!("p{power}f,");
        let mut text = [0; EXPONENT];
        Exponent { length: write_word(&mut text, &word), text }
    }
}

/// The six digits of a number below 2^24, and two more: all at once, a byte for each.
fn digits(number: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut digits = u64::from(number << 8);
    for (shift, mask) in [(16, 0x0000_ffff_0000_ffff), (8, 0x00ff_00ff_00ff_00ff), (4, 0x0f0f_0f0f_0f0f_0f0f)] {
        digits = (digits | digits << shift) & mask;
    }
    let are_letters = (digits + 6 * EACH) >> 4 & EACH;
    (digits + u64::from(b'0') * EACH + are_letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    fn text(values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        String::from_utf8(lines(&bytes)).unwrap()
    }

    /// What a number's text says.
    fn read(text: &str) -> f64 {
        let (sign, text) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
        let Some(text) = text.strip_prefix("0x") else { return sign * text.parse::<f64>().unwrap() };
        let (digits, exponent) = text.split_once('p').unwrap();
        let fraction = digits.split_once('.').map_or("", |(_, fraction)| fraction);
        let whole = u64::from_str_radix(&digits.replace('.', ""), 16).unwrap() as f64;
        sign * whole * 2f64.powi(exponent.parse::<i32>().unwrap() - 4 * fraction.len() as i32)
    }

    #[test]
    fn numbers_are_written_in_full() {
        assert_eq!(
            text(&[
                1.0,
                -0.75,
                10.0,
                0.0,
                -0.0,
                f32::MAX,
                f32::from_bits(1),
                f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY,
                0.1
            ]),
            "  0x1p0f, -0x1.8p-1f, 0x1.4p3f, 0.0f, -0.0f,\n  \
               0x1.fffffep127f, 0x0.000002p-126f, NAN, INFINITY, -INFINITY,\n  \
               0x1.99999ap-4f,\n"
        );
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn random_numbers_are_exact_and_lines_short() {
        let mut generator = Generator::new(5);
        let any = || f32::from_bits(generator.range(0, u32::MAX as usize) as u32);
        let values: Vec<f32> = std::iter::repeat_with(any).filter(|value| value.is_finite()).take(100_000).collect();
        let text = text(&values);
        assert!(text.lines().all(|line| line.len() < 100));
        let words: Vec<&str> = text.split_whitespace().map(|word| word.strip_suffix("f,").unwrap()).collect();
        assert_eq!(words.len(), values.len());
        for (word, value) in words.into_iter().zip(values) {
            assert_eq!(read(word), f64::from(value), "{word}");
        }
    }
}
