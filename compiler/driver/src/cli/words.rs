//! Words that several commands say.

use mlc_ir::{Code, Diagnostic, Location};

/// A fault of the command line.
pub(super) fn mismatch(message: String) -> Diagnostic {
    Diagnostic::error(Code::OptionMismatch, Location::default(), message)
}

/// A number of bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)),
    }
}
