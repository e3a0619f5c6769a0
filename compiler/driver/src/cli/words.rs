//! Words that several commands say.

use mlc_ir::Diagnostic;
use std::path::{Path, PathBuf};

/// A fault of the command line.
pub(super) fn mismatch(message: String) -> Diagnostic {
    Diagnostic::option_mismatch(message)
}

/// The output that stands for standard output.
pub(super) const STANDARD_OUTPUT: &str = "-";

/// Whether an output is standard output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == STANDARD_OUTPUT
}

/// Where a folder is to be written.
///
/// # Errors
/// When it is standard output.
pub(super) fn folder(path: PathBuf) -> Result<PathBuf, Diagnostic> {
    if is_standard_output(&path) {
        return Err(mismatch("a folder can't be written to standard output".into())
            .with_help("name a folder; './-' is one of that name"));
    }
    Ok(path)
}

/// A number of bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)),
    }
}
