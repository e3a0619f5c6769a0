//! Bytes to a [`Model`], of either form. Everything in a file is untrusted; one run tells all that is wrong with it.

mod check;
mod json;

use crate::model::Model;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};

/// Hands over files that a text includes.
pub trait Includes {
    /// The file of a name, which is relative to the folder of the model.
    ///
    /// # Errors
    /// Why it can't be had.
    fn include(&self, name: &str) -> Result<Included, String>;
}

/// A file that a text includes.
#[derive(Debug, Clone)]
pub struct Included {
    /// What messages call it.
    pub name: String,
    /// What it holds.
    pub text: String,
}

/// For texts by themselves: there are no other files.
#[derive(Debug, Clone, Copy)]
pub struct NoIncludes;

impl Includes for NoIncludes {
    fn include(&self, _name: &str) -> Result<Included, String> {
        Err("there are no other files here".into())
    }
}

/// Reads a model file of either form, with what the user should know of it.
///
/// # Errors
/// All that is wrong with the file, up to a bound: each with its JSON path, or its line and column.
pub fn read(bytes: &[u8], _includes: &dyn Includes) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if let Err(error) = std::str::from_utf8(bytes) {
        let place = Location::byte_offset(error.valid_up_to() as u64);
        return Err(vec![Diagnostic::error(Code::Syntax, place, "the file is damaged: it isn't UTF-8")]);
    }
    let mut report = Report::default();
    let model = json::read(bytes, &mut report).unwrap_or_default();
    check::check(&model, &mut report);
    if report.has_errors() { Err(report.into_diagnostics()) } else { Ok((model, report.into_diagnostics())) }
}
