//! From a LightNet [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this one.
//!
//! What the engine walks is the [`Program`](program::Program) that is made of the file first: it knows which tensors share memory,
//! so that whoever reads a tensor after an operator wrote over it sees what was written.

mod call;
mod convolution;
mod creation;
mod detection;
mod elementwise;
mod format;
mod interface;
mod movement;
mod normalization;
mod pooling;
mod printing;
mod program;
mod reduction;
mod registry;
mod resizing;
mod signature;
mod sorting;
mod window;

pub use interface::{Port, model_inputs};

use crate::model::Model;
use crate::place::Place;
use call::Importer;
use format::Lightnet;
use indexmap::IndexMap;
use mlc_import::{Fault, ImportOptions, Imported, Item, Operand, OperatorSupport, Operators, Report};
use mlc_ir::{Code, Diagnostic};
use program::{Program, Refresh, Step};
use signature::Signature;

/// The operators that are known, sorted by name.
pub fn operator_support() -> Vec<OperatorSupport> {
    Lightnet::support()
}

/// Makes a graph of a model. Weights, inputs and outputs are what the file says, and what the options' bindings say beyond it.
///
/// # Errors
/// Everything that stands in the way: operators that aren't supported, all at once; tensors and parameters that don't fit.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let program = Program::of(model, &options.bindings, &registry::signatures());
    let mut importer = Importer::new(&program, (), options);
    interface::check_options(&mut importer, model, options);
    interface::import_inputs(&mut importer, options);
    for step in &program.steps {
        refresh(&mut importer, &step.refreshes);
        import_step(&mut importer, step);
    }
    refresh(&mut importer, &program.refreshes);
    if !importer.failed() {
        interface::import_outputs(&mut importer);
    }
    match importer.finish() {
        Ok(imported) => Ok(Imported { warnings: explained(model, imported.warnings), ..imported }),
        Err(errors) => Err(explained(model, errors)),
    }
}

/// The findings, as many as help anybody, with the macros that brought their operators to their places.
fn explained(model: &Model, findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let places: IndexMap<&str, &Place> =
        model.operators.iter().map(|operator| (operator.name.as_str(), &operator.place)).collect();
    let mut report = Report::default();
    for finding in findings {
        let place = finding.location.node.as_deref().and_then(|name| places.get(name));
        match place.filter(|_| !report.is_full()) {
            Some(place) => report.push(place.explain(finding)),
            None => report.push(finding),
        }
    }
    report.into_diagnostics()
}

/// Imports an operator, unless it is an input of the model, or its tensors and parameters aren't those that its type has.
fn import_step<'m>(importer: &mut Importer<'m>, step: &'m Step<'m>) {
    if step.is_input {
        return;
    }
    let faults = if importer.takes_description("", step.kind) { Vec::new() } else { step.faults() };
    if !faults.is_empty() {
        interface::refuse(importer, step, faults);
        return;
    }
    importer.import_operators([step]);
    if step.signature.is_some_and(Signature::only_prints) {
        let location = step.operator.place.location().at_operator(step.kind, &*step.operator.name);
        let message = format!("{} `{}` is left out: the code doesn't print", step.kind, step.operator.name);
        importer.findings.push(Diagnostic::note(Code::Unused, location, message));
    }
}

/// Gives tensors whose memory an operator wrote over their new values.
fn refresh<'m>(importer: &mut Importer<'m>, refreshes: &[Refresh<'m>]) {
    for refresh in refreshes {
        let item = refreshed(importer, refresh).unwrap_or_else(|_| Operand::unknown());
        // The first of two definitions of a name counts; the second one has been reported.
        let _ = importer.define(refresh.name, item);
    }
}

/// The memory's value in the shape that the tensor has.
fn refreshed<'m>(importer: &mut Importer<'m>, refresh: &Refresh<'m>) -> Result<Operand, Fault> {
    let (before, written) = (importer.resolve(refresh.before)?, importer.resolve(refresh.written)?);
    let (Some(before), Some(written)) = (before.tensor(), written.tensor()) else { return Ok(Operand::unknown()) };
    let shape = importer.builder.shape(before);
    importer.builder.begin(refresh.name.tensor);
    Ok(Operand::Tensor(importer.builder.reshape(written, &shape)?))
}

#[cfg(test)]
mod tests;
