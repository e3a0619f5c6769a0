//! From an ARK [`Model`] to a [`Graph`](mlc_ir::Graph): the program on memory becomes one on values ([`crate::memory`]), whose
//! steps are looked up in the tables of the files beside this one.
//!
//! A file doesn't say what goes into its program and what comes out of it. Memory that is read before it was written comes from
//! outside, what nothing uses is an output; [`mlc_import::Bindings`] has what the user says beyond that.

mod call;
mod elementwise;
mod exchanges;
mod format;
mod interface;
mod memory_steps;
mod place;
mod ports;
mod products;
mod registry;
mod structure;
mod weights;

pub use ports::{Port, external_ports, output_ports};

use crate::memory;
use crate::model::Model;
use format::Ark;
use interface::Interface;
use mlc_import::{Findings, ImportOptions, Imported, Importer, OperatorSupport, Operators};
use mlc_ir::{Code, Diagnostic, Location};

/// The operation types that are known, sorted.
pub fn operator_support() -> Vec<OperatorSupport> {
    let structure = ["Noop", "Placeholder", "Tensor"].into_iter().chain(exchanges::EXCHANGES);
    let structure = structure.map(|name| OperatorSupport { domain: "", name, since: None, refused: None });
    let mut found = Ark::support();
    found.retain(|entry| !entry.name.starts_with("memory."));
    found.extend(structure);
    found.sort_unstable();
    found
}

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: operations that aren't known, arguments and operands that don't fit, memory that can't be
/// put on values, weights and names of the user that don't fit the model.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let bindings = &options.bindings;
    let mut findings = Findings::default();
    let interface = Interface::of(model, bindings, &mut findings);
    let program = match memory::lower(model, interface.externals, &interface.outputs) {
        Ok(program) => program,
        Err(faults) => {
            faults.into_iter().for_each(|fault| findings.push(fault));
            return Err(findings.into_diagnostics());
        }
    };
    let mut importer: Importer<'_, Ark> = Importer::new(&program, (), options);
    importer.findings = findings;
    let (aliases, updates) = interface::import_externals(&mut importer, model, &program.externals, bindings);
    let received = exchanges::import_received(&mut importer, &program);
    if !importer.failed() {
        importer.import_operators(&program.steps);
    }
    let mut distribution = None;
    if !importer.failed() {
        interface::import_outputs(&mut importer, &program);
        distribution = exchanges::distribution(&mut importer, model, &program, &received);
        if program.outputs.is_empty() && distribution.is_none() {
            let message = "the model has no output: nothing that it writes is left over";
            let finding = Diagnostic::error(Code::NoOutput, Location::default(), message);
            importer.findings.push(finding.with_help("--output NAME=tensor:ID names one"));
        }
    }
    let mut imported = importer.finish()?;
    imported.graph.distribution = distribution;
    (imported.aliases, imported.updates) = (aliases, updates);
    Ok(imported)
}

#[cfg(test)]
mod tests;
