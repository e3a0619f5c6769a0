//! Inputs and outputs of the model, and the weights that the user gives.

use super::call::Importer;
use super::creation::created_type;
use super::program::{Program, Step, is_created, is_from_file, tensor_of};
use crate::model::{Model, Operator};
use indexmap::IndexSet;
use mlc_import::{Bindings, DeclaredInput, Extent, Fault, ImportOptions, Operand};
use mlc_ir::{Code, Diagnostic, Location, TensorType};

/// A tensor that a model's file has no data for.
#[derive(Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
}

/// The tensors that are inputs unless there are arrays for them.
pub fn model_inputs(model: &Model) -> Vec<Port> {
    let created = model.operators.iter().filter(|operator| is_created(operator) && is_from_file(operator));
    let port = |operator: &Operator| {
        let ty = created_type(operator).ok().filter(|ty| ty.checked_bytes().is_some())?;
        Some(Port { name: operator.outputs.first()?.tensor.clone(), ty })
    };
    created.filter_map(port).collect()
}

fn mismatch(message: impl Into<String>) -> Fault {
    Fault::new(Code::OptionMismatch, message)
}

/// Reports what the user says that the model doesn't have.
pub(super) fn check_options(importer: &mut Importer<'_>, model: &Model, options: &ImportOptions) {
    let Bindings { inputs, places, outputs, updated, .. } = &options.bindings;
    for name in places.keys() {
        importer.report_value(name, mismatch("a LightNet model names its tensors itself: --bind isn't for it"));
    }
    for name in updated {
        let fault = mismatch(format!("no operator writes over the input '{name}' for the next run"));
        importer.report_value(name, fault.with_help("--state INPUT=OUTPUT keeps an output for the next run"));
    }
    let created: IndexSet<&str> = created(model).map(|(_, tensor)| tensor).collect();
    for name in inputs.iter().filter(|name| !created.contains(name.as_str())) {
        importer.report_value(name, mismatch(format!("no operator `create` makes a tensor '{name}'")));
    }
    for (name, place) in outputs.iter().filter(|(_, place)| tensor_of(model, place).is_none()) {
        let fault = mismatch(format!("the model has no place '{place}'"));
        importer
            .report_value(name, fault.with_help("it has the form tensor:NAME, or name:OPERATOR for its first result"));
    }
    let used = self::created(model).filter(|(operator, _)| is_from_file(operator)).map(|(_, tensor)| tensor).collect();
    let help = "'mlc inspect' lists the tensors whose data aren't in the file";
    importer.report_unused_weights(&options.bindings, &used, help);
}

/// Operators that create a tensor, and the tensor.
fn created(model: &Model) -> impl Iterator<Item = (&Operator, &str)> {
    let created = model.operators.iter().filter(|operator| is_created(operator));
    created.filter_map(|operator| Some((operator, operator.outputs.first()?.tensor.as_str())))
}

/// Adds the inputs of the graph, in the order of the file.
pub(super) fn import_inputs<'m>(importer: &mut Importer<'m>, options: &ImportOptions) {
    let program: &'m Program<'m> = importer.model;
    let mut inputs: Vec<(&'m Step<'m>, TensorType)> = Vec::new();
    for step in program.steps.iter().filter(|step| step.is_input) {
        let faults = step.faults();
        match created_type(step.operator) {
            Ok(ty) if faults.is_empty() => inputs.push((step, ty)),
            Err(fault) if faults.is_empty() => refuse(importer, step, vec![fault]),
            _ => refuse(importer, step, faults),
        }
    }
    let declared: Vec<DeclaredInput<'m>> = inputs
        .iter()
        .map(|(step, ty)| {
            let shape = ty.shape.iter().map(|&extent| Extent::Known(extent)).collect();
            DeclaredInput { name: step.results[0].tensor, alias: None, shape: Some(shape) }
        })
        .collect();
    let shapes = importer.input_shapes(&declared, [], options);
    for ((step, ty), shape) in inputs.into_iter().zip(shapes) {
        let added = shape.and_then(|shape| {
            let ty = importer.input_type(ty.dtype, &shape)?;
            let tensor = step.results[0].tensor;
            importer.builder.begin(tensor);
            let value = importer.builder.input(tensor, ty);
            importer.define(step.results[0], Operand::Tensor(value))
        });
        if let Err(fault) = added {
            refuse(importer, step, vec![fault]);
        }
    }
}

/// Adds the outputs of the graph: those that the user names, or what no operator takes.
pub(super) fn import_outputs(importer: &mut Importer<'_>) {
    let program = importer.model;
    if program.outputs.is_empty() {
        let message = "the model has no output: every tensor is taken by an operator";
        importer.findings.push(
            Diagnostic::error(Code::NoOutput, Location::default(), message)
                .with_help("--output NAME=tensor:NAME names one"),
        );
    }
    for (name, output) in &program.outputs {
        match importer.resolve(*output).map(|item| mlc_import::Item::tensor(&item)) {
            Ok(Some(value)) => importer.builder.output(name, value),
            Ok(None) => {}
            Err(fault) => importer.report_value(name, fault),
        }
    }
}

/// Reports why an operator can't be imported; nothing is known of its results.
pub(super) fn refuse<'m>(importer: &mut Importer<'m>, step: &'m Step<'m>, faults: Vec<Fault>) {
    match importer.site(step) {
        Ok(site) => faults.into_iter().for_each(|fault| importer.report(&site, fault)),
        Err(diagnostic) => importer.findings.push(diagnostic),
    }
    for result in &step.results {
        // A name that is there already keeps its value.
        let _ = importer.define(*result, Operand::Unknown);
    }
}
