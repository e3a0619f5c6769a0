//! From Relay text to a [`Graph`](mlc_ir::Graph): functions are inlined, branches are decided, each operator is looked up in
//! the tables of the files beside this one.
//!
//! Everything that stands in the way is reported in one go: what can't be imported is *unknown*, and so is what depends on it.

mod call;
pub(super) mod elementary;
mod elementwise;
mod evaluate;
mod format;
mod image;
mod interface;
mod item;
mod movement;
mod nn;
mod normalization;
mod qnn;
mod reduction;
mod registry;
mod scope;
mod slicing;
mod window;

use crate::metadata::Constants;
use crate::parameters::Parameters;
use crate::syntax::Module;
use evaluate::Evaluator;
use format::Relay;
use mlc_import::{ImportOptions, Imported, Importer, OperatorSupport, Operators};
use mlc_ir::Diagnostic;

/// The operators that are known, sorted by name.
pub fn operator_support() -> Vec<OperatorSupport> {
    Relay::support()
}

/// Makes a graph of a text.
///
/// # Errors
/// Everything that stands in the way.
pub(super) fn import(
    module: &Module<'_>,
    parameters: &Parameters,
    options: &ImportOptions,
) -> Result<Imported, Vec<Diagnostic>> {
    let constants = Constants::parse(module.metadata).map_err(|fault| vec![fault])?;
    let mut evaluator = Evaluator::new(module, constants, Importer::new((), (), options));
    interface::import_main(&mut evaluator, parameters, options);
    evaluator.importer.finish()
}

#[cfg(test)]
mod tests;
