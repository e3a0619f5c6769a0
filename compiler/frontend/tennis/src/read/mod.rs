//! Bytes to a [`Model`]: the stream first, then what its nodes say of each other. Every count is checked against the bytes that
//! are left before anything is allocated, and nothing recurses over the graph.

mod budget;
mod cursor;
mod header;
mod link;
mod order;
mod parameters;
mod stream;

pub(crate) use header::{CODE, HEADER};

use crate::model::Model;
use bytes::Bytes;
use mlc_import::Report;
use mlc_ir::Diagnostic;

/// Reads a model; gives warnings with it.
///
/// # Errors
/// Everything that is wrong with the file, with places; damage of the stream ends the reading.
pub fn read(bytes: &Bytes) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    header::check(bytes).map_err(|fault| vec![fault])?;
    let mut report = Report::default();
    let parts = match stream::read(bytes, &mut report) {
        Ok(parts) => parts,
        Err(fault) => {
            report.push(fault);
            return Err(report.into_diagnostics());
        }
    };
    let model = link::link(parts, &mut report);
    match model.filter(|_| !report.has_errors()) {
        Some(model) => Ok((model, report.into_diagnostics())),
        None => Err(report.into_diagnostics()),
    }
}

#[cfg(test)]
mod tests;
