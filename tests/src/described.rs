//! Descriptions of operators beside models.

use mlc::descriptions;
use mlc_import::CustomOperators;
use mlc_ir::Diagnostic;
use std::path::Path;
use std::sync::Arc;

/// What the description beside a model's file says, changed.
///
/// # Errors
/// All that is wrong with it.
pub fn described(
    model: &Path,
    change: impl FnOnce(&mut CustomOperators),
) -> Result<descriptions::Described, Vec<Diagnostic>> {
    let file = ["op.json", "op.op"].map(|name| model.with_file_name(name)).into_iter().find(|file| file.is_file());
    let (library, sources) = descriptions::read(&Vec::from_iter(file)).map_err(|failure| failure.diagnostics)?;
    let mut operators = CustomOperators::new(library);
    change(&mut operators);
    Ok(descriptions::Described { operators: Arc::new(operators), sources })
}
