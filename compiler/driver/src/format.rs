//! The formats of model files, and how to tell them apart by their first bytes.

use clap::ValueEnum;
use mlc_mlf::is_gzip;
use std::fmt;

/// A format of model files. The ones without a reader are recognised, so that the message can name them, but can't be asked
/// for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// PNNX: a .param text with a .bin archive beside it
    Pnnx,
    /// ONNX (.onnx)
    Onnx,
    /// Relay text (.relay), with its weights in it or in a .params file
    Relay,
    /// TensorFlow Lite
    #[value(skip)]
    Tflite,
    /// TenniS (.tsm)
    #[value(skip)]
    Tennis,
    /// ARK model JSON
    #[value(skip)]
    Ark,
    /// LightNet JSON or intermediate language
    #[value(skip)]
    Lightnet,
    /// Model Library Format archive (.tar)
    Mlf,
    /// The text of mlc's intermediate representation (.mlc)
    Ir,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Pnnx => "PNNX",
            Format::Onnx => "ONNX",
            Format::Relay => "Relay",
            Format::Tflite => "TensorFlow Lite",
            Format::Tennis => "TenniS",
            Format::Ark => "ARK",
            Format::Lightnet => "LightNet",
            Format::Mlf => "Model Library Format",
            Format::Ir => "intermediate representation",
        })
    }
}

impl Format {
    /// The Cargo feature that a format's reader is behind.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Format::Pnnx => Some("pnnx"),
            Format::Onnx => Some("onnx"),
            Format::Relay => Some("relay"),
            Format::Mlf => Some("mlf"),
            _ => None,
        }
    }
}

/// The bytes that start the fourth to eighth byte of a TenniS file.
const TENNIS_CODE: [u8; 4] = [0x29, 0x09, 0x91, 0x19];

/// How many bytes of a JSON text are searched for a format's keys.
const JSON_START: usize = 1 << 16;

/// The format of a file, by its content alone.
pub fn detect(bytes: &[u8]) -> Option<Format> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    if text.split(|byte| byte.is_ascii_whitespace()).next() == Some(b"7767517") {
        return Some(Format::Pnnx);
    }
    if is_ir(text) {
        return Some(Format::Ir);
    }
    if is_relay(text) {
        return Some(Format::Relay);
    }
    if bytes.get(4..8) == Some(b"TFL3") {
        return Some(Format::Tflite);
    }
    if bytes.get(4..8) == Some(&TENNIS_CODE) {
        return Some(Format::Tennis);
    }
    // One that is compressed is recognised, so that the message can say so.
    if bytes.get(257..262) == Some(b"ustar") || is_gzip(bytes) {
        return Some(Format::Mlf);
    }
    if text.first() == Some(&b'{') {
        return detect_json(&text[..text.len().min(JSON_START)]);
    }
    is_onnx(bytes).then_some(Format::Onnx)
}

/// Whether the first line that isn't empty or a comment is `mlc` and a version.
fn is_ir(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"//")).unwrap_or_default();
    first.strip_prefix(b"mlc ").is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

/// Whether the text, after comments, starts with a version of Relay or with the definition of a function.
fn is_relay(mut text: &[u8]) -> bool {
    loop {
        let end: &[u8] = match text {
            [b'/', b'/', ..] => b"\n",
            [b'/', b'*', ..] => b"*/",
            _ => return text.starts_with(b"#[version") || text.starts_with(b"def @"),
        };
        let Some(place) = text.windows(end.len()).position(|window| window == end) else { return false };
        text = text[place + end.len()..].trim_ascii_start();
    }
}

fn detect_json(start: &[u8]) -> Option<Format> {
    let has = |key: &[u8]| start.windows(key.len()).any(|window| window == key);
    if has(b"\"Nodes\"") || has(b"\"ProducerNodeIds\"") {
        Some(Format::Ark)
    } else if has(b"\"ops\"") || has(b"\"optype\"") {
        Some(Format::Lightnet)
    } else {
        None
    }
}

/// Whether the bytes look like a protobuf `ModelProto`: from the start, fields that it has, with the wire types they have,
/// as far as the graph.
fn is_onnx(mut bytes: &[u8]) -> bool {
    let mut seen = 0;
    while let Some((key, rest)) = varint(bytes) {
        let after = match (key >> 3, key & 7) {
            // ir_version, model_version
            (1 | 5, 0) => varint(rest).map(|(_, rest)| rest),
            // The graph itself: large, so that its end isn't looked at.
            (7, 2) => return varint(rest).is_some_and(|(length, rest)| length <= rest.len() as u64),
            // producer_name, producer_version, domain, doc_string, opset_import, metadata_props, training_info, functions
            (2 | 3 | 4 | 6 | 8 | 14 | 20 | 25, 2) => varint(rest)
                .and_then(|(length, rest)| usize::try_from(length).ok().and_then(|length| rest.get(length..))),
            _ => None,
        };
        seen += 1;
        match after {
            Some(after) if seen < 1000 => bytes = after,
            _ => return false,
        }
    }
    false
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (index, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_their_content() {
        let mut tar = vec![0; 512];
        tar[257..262].copy_from_slice(b"ustar");
        let mut tennis = vec![0, 0, 0, 0];
        tennis.extend(TENNIS_CODE);
        for (bytes, expected) in [
            (&b"7767517\n4 3\n"[..], Some(Format::Pnnx)),
            (b"\xef\xbb\xbf7767517\r\n4 3\r\n", Some(Format::Pnnx)),
            (b"77675170\n", None),
            (b"\x1c\0\0\0TFL3\0\0", Some(Format::Tflite)),
            (&tennis, Some(Format::Tennis)),
            (&tar, Some(Format::Mlf)),
            (b"\x1f\x8b\x08\0", Some(Format::Mlf)),
            (b" {\"Rank\": 0, \"Nodes\": []}", Some(Format::Ark)),
            (b"{\"ops\": [{\"optype\": \"create\"}]}", Some(Format::Lightnet)),
            (b"// a comment\n\nmlc 1\ngraph @g", Some(Format::Ir)),
            (b"mlc is a compiler", None),
            (b"#[version = \"0.0.5\"]\ndef @main() {}", Some(Format::Relay)),
            (b"// a net\n/* of mine */ def @main(%x: int32) { %x }", Some(Format::Relay)),
            (b"define @main", None),
            (b"{\"name\": 1}", None),
            (b"\x08\x07\x12\x02ab\x3a\x01\x00", Some(Format::Onnx)),
            (b"\x08\x07\x12\x7fab", None),
            (b"", None),
            (b"hello", None),
        ] {
            assert_eq!(detect(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
