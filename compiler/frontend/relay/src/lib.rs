//! The text of Relay, the intermediate representation that Model Library Format archives carry.
//!
//! [`read()`] takes both of its dialects: the full one, with a version and with its constants at the end, and the plain one of
//! archives, whose constants come as parameters. [`write()`] prints any graph as a full text from which [`read()`] makes an
//! equal graph.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod bind;
mod import;
mod lexer;
mod metadata;
mod parameters;
mod parse;
mod quantization;
mod ranks;
mod restore;
mod spelling;
mod syntax;
mod types;
mod write;

pub use bind::bind;
pub use import::operator_support;
pub use parameters::{Parameters, read_parameters};
pub use write::write;

use mlc_import::{ImportOptions, Imported};
use mlc_ir::Diagnostic;

/// Makes a graph of a text. Parameters become the variables of `@main` that have their names; what is left are its inputs.
/// A text that [`write()`] printed gives the printed graph, and needs no parameters.
///
/// # Errors
/// Everything that stands in the way, with lines and columns; operators that aren't supported all at once.
pub fn read(text: &str, parameters: &Parameters, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let module = parse::parse(text).map_err(|fault| vec![fault])?;
    if let Some(main) = restore::printed_main(&module) {
        let graph = restore::restore(&module, main).map_err(|fault| vec![fault])?;
        return Ok(Imported::new(graph, Vec::new()));
    }
    import::import(&module, parameters, options)
}

/// Whether a text is one that [`write()`] printed, which holds its own constants and is exact.
pub fn is_exact(text: &str) -> bool {
    parse::parse(text).is_ok_and(|module| restore::printed_main(&module).is_some())
}
