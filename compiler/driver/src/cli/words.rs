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

/// A large number in about three digits.
pub(super) fn count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{:.2} million", number as f64 / 1e6),
        _ => format!("{:.1} million", number as f64 / 1e6),
    }
}

/// Most characters that are told of a name.
const LONGEST: usize = 40;

/// A name that fits a line: the first of several that a converter has joined, and of that the end, which tells names apart.
pub(super) fn short(name: &str) -> String {
    let first = name.split_once(';').map_or(name, |(first, _)| first);
    let excess = first.chars().count().saturating_sub(LONGEST);
    let closed = if first.starts_with('\'') && !first.ends_with('\'') && !first.contains("' ") { "'" } else { "" };
    match excess {
        0 => format!("{first}{closed}"),
        _ => format!("...{}{closed}", first.chars().skip(excess + 3).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_told_by_their_ends() {
        assert_eq!(short("conv1"), "conv1");
        assert_eq!(short("'a/Relu;a/BiasAdd'"), "'a/Relu'");
        assert_eq!(short("input 'x'"), "input 'x'");
        let long = format!("{}/last", "a/".repeat(40));
        assert_eq!((short(&long).len(), short(&long).ends_with("/last")), (LONGEST, true));
    }
}
