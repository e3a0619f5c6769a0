use super::*;
use crate::{Attribute, ElementType, Model, Operator, to_bin};
use std::collections::BTreeMap;
use std::io::Write;

/// An archive in the exporter's form: entries `a.x`, `a.y` with 4 and 8 bytes.
fn exported() -> Vec<u8> {
    let attribute = |bytes: &'static [u8]| Attribute {
        element_type: ElementType::U8,
        shape: vec![bytes.len() as u32],
        data: Bytes::from_static(bytes),
    };
    let attributes = [("x".to_owned(), attribute(b"abcd")), ("y".to_owned(), attribute(b"01234567"))];
    let operator = Operator {
        kind: "nn.Linear".into(),
        name: "a".into(),
        inputs: vec![],
        outputs: vec![],
        input_names: vec![],
        parameters: BTreeMap::new(),
        attributes: attributes.into(),
        line: 3,
    };
    to_bin(&Model { operators: vec![operator], operands: vec![] }).unwrap()
}

fn position(bytes: &[u8], signature: u32, nth: usize) -> usize {
    let signature = signature.to_le_bytes();
    bytes.windows(4).enumerate().filter(|(_, window)| *window == signature).nth(nth).unwrap().0
}

/// The errors after `change` was made to an exported archive.
fn errors(change: impl FnOnce(&mut Vec<u8>)) -> Vec<Diagnostic> {
    let mut bytes = exported();
    change(&mut bytes);
    let (_, diagnostics) = Archive::read(&bytes.into());
    assert!(diagnostics.iter().all(|diagnostic| diagnostic.is_error() && diagnostic.location.byte_offset.is_some()));
    diagnostics
}

fn check(expected: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let messages: Vec<_> = errors(change).into_iter().map(|diagnostic| diagnostic.message).collect();
    assert!(messages.iter().any(|message| message.contains(expected)), "{expected}: {messages:?}");
}

#[test]
fn entries_are_slices_of_the_archive() {
    let bytes = Bytes::from(exported());
    let (archive, diagnostics) = Archive::read(&bytes);
    let archive = archive.unwrap();
    assert_eq!(diagnostics, []);
    let entry = archive.entry("a.y").unwrap();
    assert_eq!(entry.data, b"01234567"[..]);
    assert!(bytes.as_ptr_range().contains(&entry.data.as_ptr()));
    assert!(archive.find("a.z").is_none());
    assert_eq!(archive.entries().map(|(_, name, _)| name.into_owned()).collect::<Vec<_>>(), ["a.x", "a.y"]);
}

#[test]
fn archives_of_other_writers_are_read() {
    for wide in [false, true] {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file("fc.weight", options.large_file(wide)).unwrap();
        writer.write_all(b"some bytes").unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let (archive, diagnostics) = Archive::read(&bytes.into());
        assert_eq!(diagnostics, [], "{wide}");
        assert_eq!(archive.unwrap().entry("fc.weight").unwrap().data, b"some bytes"[..]);
    }
}

#[test]
fn damaged_entries_are_named() {
    let local = |bytes: &[u8]| position(bytes, LOCAL_HEADER, 1);
    let central = |bytes: &[u8]| position(bytes, CENTRAL_HEADER, 1);
    check("`a.y` of the archive is encrypted", |bytes| bytes[central(&exported()) + 8] |= 1);
    check("`a.y` of the archive is encrypted", |bytes| bytes[local(&exported()) + 6] |= 1);
    check("`a.y` of the archive has its sizes behind its data", |bytes| bytes[central(&exported()) + 8] |= 8);
    check("`a.y` of the archive is compressed", |bytes| bytes[central(&exported()) + 10] = 8);
    check("`a.y` of the archive is compressed", |bytes| bytes[local(&exported()) + 8] = 8);
    check("`a.y` of the archive has checksum", |bytes| bytes[local(&exported()) + 30 + 3 + 32] ^= 1);
    check("`a.y` of the archive has another checksum", |bytes| bytes[local(&exported()) + 14] ^= 1);
    check("`a.y` of the archive is called `a.x` in its own header", |bytes| bytes[local(&exported()) + 32] = b'x');
    check("`a.y` of the archive is stored, but has sizes", |bytes| bytes[central(&exported()) + 46 + 3 + 4] = 7);
    check("`a.y` of the archive has no header", |bytes| bytes[central(&exported()) + 46 + 3 + 20] += 1);
}

#[test]
fn sizes_are_compared_with_the_file() {
    check("claims 18446744073709551600 bytes", |bytes| {
        for start in [position(bytes, LOCAL_HEADER, 1) + 30 + 3 + 4, position(bytes, CENTRAL_HEADER, 1) + 46 + 3 + 4] {
            let size = (u64::MAX - 15).to_le_bytes();
            bytes[start..start + 8].copy_from_slice(&size);
            bytes[start + 8..start + 16].copy_from_slice(&size);
        }
    });
    check("9 bytes in the directory, 8 in its own header", |bytes| {
        let start = position(bytes, CENTRAL_HEADER, 1) + 46 + 3 + 4;
        bytes[start] = 9;
        bytes[start + 8] = 9;
    });
}

#[test]
fn overlapping_entries_are_refused() {
    check("entries `a.x` and `a.y` of the archive overlap", |bytes| {
        // The first entry grows over the second one's header, in both of its headers.
        for start in [position(bytes, LOCAL_HEADER, 0) + 30 + 3 + 4, position(bytes, CENTRAL_HEADER, 0) + 46 + 3 + 4] {
            bytes[start] = 5;
            bytes[start + 8] = 5;
        }
    });
}

#[test]
fn duplicate_names_are_refused() {
    let mut bytes = exported();
    let [local, central] = [position(&bytes, LOCAL_HEADER, 1), position(&bytes, CENTRAL_HEADER, 1)];
    bytes[local + 32] = b'x';
    bytes[central + 48] = b'x';
    let (_, diagnostics) = Archive::read(&bytes.into());
    assert_eq!(diagnostics.len(), 1);
    assert_eq!(diagnostics[0].code, Code::DuplicateDefinition);
    assert_eq!(diagnostics[0].location.byte_offset, Some(central as u64));
    assert_eq!(diagnostics[0].message, "the archive has two entries `a.x`");
}

#[test]
fn no_damage_makes_the_reader_panic() {
    let whole = exported();
    for length in 0..whole.len() {
        let (archive, diagnostics) = Archive::read(&whole[..length].to_vec().into());
        assert!(archive.is_none() && diagnostics.len() == 1, "cut at {length}");
    }
    for position in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[position] = value;
            let (archive, diagnostics) = Archive::read(&bytes.into());
            assert!(archive.is_some() || !diagnostics.is_empty(), "byte {position} set to {value}");
        }
    }
}
