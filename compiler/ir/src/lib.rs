//! The intermediate representation of mlc. It knows no file formats, no e-graphs and no C.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod diagnostics;

pub use diagnostics::{Code, Diagnostic, Location, Severity};
