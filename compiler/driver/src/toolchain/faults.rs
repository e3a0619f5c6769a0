//! What is said of tools and folders that fail.

use crate::files;
use mlc_ir::{Code, Diagnostic, Location};

/// The first lines of a tool's message.
pub(super) fn start_of(text: &str) -> String {
    const LINES: usize = 20;
    let mut lines: Vec<&str> = text.lines().take(LINES + 1).collect();
    if lines.len() > LINES {
        lines[LINES] = "...";
    }
    lines.join("\n")
}

/// The fault of a folder for temporary files.
pub(crate) fn temporary(error: &std::io::Error) -> Diagnostic {
    let message = format!("can't use a temporary folder: {}", files::describe(error));
    Diagnostic::error(Code::FileUnwritable, Location::default(), message)
        .with_help("check the space in the folder for temporary files, or set TMPDIR")
}
