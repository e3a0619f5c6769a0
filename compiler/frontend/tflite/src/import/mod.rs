//! From a TensorFlow Lite [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside
//! this one.
//!
//! A quantised tensor is a tensor of its integers. A quantised operator becomes operators on integers that compute what the
//! format's reference kernels do, bit for bit, where those compute with integers.

mod activation;
mod arithmetic;
mod call;
mod comparison;
mod control;
mod convolution;
mod detection;
mod format;
mod indexing;
mod interface;
mod linear;
mod movement;
mod normalization;
mod pooling;
mod quantization;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod shape;
mod slicing;
mod softmax;
mod svdf;

use crate::model::Model;
use crate::variables::{self, Expanded, Kept};
use format::{Region, Tflite};
use mlc_import::{Format, ImportOptions, Imported, Importer, OperatorSupport, Operators, Update};
use mlc_ir::{Diagnostic, Location};

/// The operators that are known, sorted by name.
pub fn operator_support() -> Vec<OperatorSupport> {
    Tflite::support()
}

/// Makes a graph of a model's first subgraph.
///
/// # Errors
/// Everything that stands in the way: operators that aren't supported, all at once; options and operands that don't fit.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let Expanded { subgraph, kept } = &variables::expand(model)?;
    let mut importer = Importer::new(model, subgraph, options);
    let inputs = interface::import_inputs(&mut importer, options);
    let mut outputs = Vec::new();
    if !importer.failed() {
        importer.import_operators(Tflite::operators(Region { model, subgraph }));
    }
    if !importer.failed() {
        outputs = interface::import_outputs(&mut importer);
    }
    let mut imported = importer.finish()?;
    for Kept { name, input, output, initial } in kept {
        let place = Location { node: Some(name.clone()), ..Location::default() };
        let initial =
            format::constant(initial).map_err(|fault| vec![Diagnostic::error(fault.code, place, fault.message)])?;
        imported.updates.push(Update { input: inputs[*input].clone(), output: outputs[*output].clone(), initial });
    }
    Ok(imported)
}
