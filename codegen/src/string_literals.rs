//! Bytes as C string literals. C compilers keep a string as the bytes that it is, and make an expression of each number of a list: gcc reads four
//! million singles in 20 s and 1.1 GB as numbers, in 2 s and 0.2 GB as a string.

use std::sync::LazyLock;

/// Bytes of a line. Compilers take about as long for a line as for so many bytes.
pub const EACH_LINE: usize = 128;
/// Characters that a byte has at most, `\377`.
const ROOM: usize = 4;

/// The lines of some bytes, each a string literal of its own (C99, 6.4.5): next to each other they are one. Characters of ASCII stand for themselves but
/// for what ends a string, begins an escape or could begin a trigraph; other bytes are octal, in three digits whatever follows them.
pub fn lines(bytes: &[u8]) -> Vec<u8> {
    let spellings = &*SPELLINGS;
    let mut text = Vec::with_capacity(bytes.len() * 3 + ROOM);
    let mut line = [0; EACH_LINE * ROOM];
    for own in bytes.chunks(EACH_LINE) {
        let mut end = 0;
        for &byte in own {
            let spelling = spellings[usize::from(byte)];
            // Four characters are one store, whatever their number.
            if let Some(room) = line.get_mut(end..).and_then(<[u8]>::first_chunk_mut) {
                *room = (spelling as u32).to_le_bytes();
            }
            end += (spelling >> 32) as usize;
        }
        text.extend_from_slice(b"  \"");
        text.extend_from_slice(&line[..end]);
        text.extend_from_slice(b"\"\n");
    }
    text
}

/// How bytes are spelled: the characters, the first lowest, and above them their number.
static SPELLINGS: LazyLock<[u64; 256]> = LazyLock::new(|| std::array::from_fn(|byte| spelling(byte as u8)));

fn spelling(byte: u8) -> u64 {
    let word = match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    let characters = word.bytes().rev().fold(0, |all, character| all << 8 | u64::from(character));
    (word.len() as u64) << 32 | characters
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::Generator;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(lines(bytes)).unwrap()
    }

    /// The bytes that C takes lines for.
    fn read(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in text.lines() {
            let mut rest = line.strip_prefix("  \"").and_then(|line| line.strip_suffix('"')).unwrap().as_bytes();
            while let [first, after @ ..] = rest {
                let is_octal = *first == b'\\' && after[0].is_ascii_digit();
                let (byte, length) = match first {
                    b'\\' if is_octal => {
                        let digits = std::str::from_utf8(&after[..3]).unwrap();
                        (u8::try_from(u32::from_str_radix(digits, 8).unwrap()).unwrap(), 4)
                    }
                    b'\\' => (after[0], 2),
                    byte => (*byte, 1),
                };
                bytes.push(byte);
                rest = &rest[length..];
            }
        }
        bytes
    }

    #[test]
    fn bytes_are_characters_or_octal() {
        assert_eq!(text(b"a\0b7\x1f7\xff\"\\??/ ~\x7f"), "  \"a\\000b7\\0377\\377\\\"\\\\\\?\\?/ ~\\177\"\n");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn random_bytes_are_read_as_they_are_in_lines_of_as_many() {
        let mut generator = Generator::new(5);
        for bound in [255, 63] {
            let bytes: Vec<u8> = (0..100_003).map(|_| generator.range(0, bound) as u8).collect();
            let text = text(&bytes);
            assert!(text.is_ascii() && !text.contains("??"));
            assert_eq!(text.lines().count(), bytes.len().div_ceil(EACH_LINE));
            assert_eq!(read(&text), bytes);
        }
    }
}
