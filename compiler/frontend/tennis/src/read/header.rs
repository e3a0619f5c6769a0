//! The first 128 bytes, and the files that are taken for modules.

use mlc_ir::{Code, Diagnostic, Location};
use std::collections::BTreeSet;

/// What every module has at byte 4.
pub(crate) const CODE: [u8; 4] = [0x29, 0x09, 0x91, 0x19];

/// Bytes of the header.
pub(crate) const HEADER: usize = 128;

/// As many different bytes among the first 128 have encrypted and compressed files, not texts and headers.
const MANY_BYTES: usize = 80;

/// Checks that the bytes begin as a module does; nothing else of the header counts.
pub(super) fn check(bytes: &[u8]) -> Result<(), Diagnostic> {
    let fault =
        |code, place: usize, message: String| Diagnostic::error(code, Location::byte_offset(place as u64), message);
    if bytes.starts_with(&CODE) {
        let message = "the file is a container of keys and values (.sta), which holds modules, and isn't one";
        return Err(fault(Code::RelatedFormat, 0, message.into())
            .with_help("take the module out of it with the library that it belongs to, and give mlc that"));
    }
    if let Some(&[a, b, c, d]) = bytes.get(4..8)
        && [a, b, c, d] != CODE
    {
        return Err(wrong_code(bytes, [a, b, c, d]));
    }
    if bytes.len() < HEADER {
        let message = format!("the file ends at byte {}, inside of the header, which has {HEADER}", bytes.len());
        return Err(fault(Code::Syntax, bytes.len(), message));
    }
    Ok(())
}

fn wrong_code(bytes: &[u8], found: [u8; 4]) -> Diagnostic {
    let message = format!(
        "the code of the format is 0x{:08x}, 0x{:08x} expected",
        u32::from_le_bytes(found),
        u32::from_le_bytes(CODE)
    );
    let diagnostic = Diagnostic::error(Code::Syntax, Location::byte_offset(4), message);
    let mut reversed = found;
    reversed.reverse();
    let different: BTreeSet<u8> = bytes.iter().take(HEADER).copied().collect();
    if reversed == CODE {
        diagnostic.with_note("the code is stored in the reverse order of bytes; modules are little-endian")
    } else if different.len() >= MANY_BYTES {
        diagnostic
            .with_note("the file looks encrypted; encrypted modules have no mark of their own")
            .with_help("decrypt it with the program that it was encrypted for")
    } else {
        diagnostic
    }
}
