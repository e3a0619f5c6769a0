//! Bytes to a [`Model`], of either form. Everything in a file is untrusted; one run tells all that is wrong with it.

mod check;
mod json;
#[cfg(test)]
mod tests;

use crate::includes::Includes;
use crate::model::Model;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};

/// Reads a model file of either form, with what the user should know of it.
///
/// # Errors
/// All that is wrong with the file, up to a bound: each with its JSON path, or its line and column.
pub fn read(bytes: &[u8], includes: &dyn Includes) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let place = Location::byte_offset(error.valid_up_to() as u64);
        vec![Diagnostic::error(Code::Syntax, place, "the file is damaged: it isn't UTF-8")]
    })?;
    let mut report = Report::default();
    let json = mlc_json::without_comments(bytes);
    let model = match json.trim_ascii_start().first() {
        Some(b'{' | b'[') | None => json::read(&json, &mut report),
        Some(_) => crate::text::read(text, includes, &mut report),
    };
    let model = model.unwrap_or_default();
    check::check(&model, &mut report);
    if report.has_errors() { Err(report.into_diagnostics()) } else { Ok((model, report.into_diagnostics())) }
}
