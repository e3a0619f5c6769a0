//! Reading a PNNX model: the grammar, the graph's structure, and the weights.
//!
//! All mistakes of one stage are gathered before the reader gives up, and no number in a file makes it reserve memory.
//! What needs knowledge of the single operators (parameters, weights' shapes, shape inference) isn't checked here.

mod graph;
mod lines;
mod options;
mod report;
mod structure;
mod weights;

use super::model::Model;
use bytes::Bytes;
use mlc_ir::Diagnostic;
use report::Report;

pub use options::ReadOptions;

/// Reads a model from its two files.
///
/// `bin` may be missing if the model has no weights. Besides the model come warnings and notes; a model with any error
/// isn't returned. A message with a line is about the `.param` file, one with a byte offset about the `.bin` file.
pub fn read(param: &[u8], bin: Option<Bytes>) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    read_with(param, bin, &ReadOptions::default())
}

/// Reads a model like [`read`], with options.
pub fn read_with(
    param: &[u8],
    bin: Option<Bytes>,
    options: &ReadOptions,
) -> Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut report = Report::default();
    let model = read_model(param, bin, options, &mut report);
    let diagnostics = report.into_diagnostics(options);
    match model {
        Some(model) if !diagnostics.iter().any(Diagnostic::is_error) => Ok((model, diagnostics)),
        _ => Err(diagnostics),
    }
}

/// `None` once an error makes it pointless to look further; the caller asks the report about other errors.
fn read_model(param: &[u8], bin: Option<Bytes>, options: &ReadOptions, report: &mut Report) -> Option<Model> {
    let file = lines::parse(param, report)?;
    let (mut model, declarations) = graph::build(&file, options, report);
    if !report.has_errors() {
        structure::check_graph(&model, report);
    }
    weights::attach(&mut model, &file, declarations, bin, report);
    Some(model)
}

#[cfg(test)]
mod tests;
