//! From an ONNX [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this one,
//! and expressed by the operators of the intermediate representation.
//!
//! What only depends on constants and shapes is computed at once, node by node, so that shape arithmetic leaves no trace.
//! The model's own functions are inlined, subgraphs see the values around them.
//!
//! Everything that stands in the way is reported in one go: an operator that can't be imported leaves its results *unknown*,
//! and what depends on them is looked up, but not imported. Operators that aren't supported are counted by their type.

mod arithmetic;
mod attention;
mod call;
mod classical;
mod contributed;
mod control;
#[cfg(test)]
mod control_tests;
mod conversion;
mod convolution;
mod einsum;
mod elementwise;
mod ensemble;
mod format;
mod indexing;
mod integer_products;
mod interface;
mod interpolation;
mod joining;
mod labels;
mod linear;
mod linear_attention;
mod losses;
mod matrix;
mod meaning;
mod ngrams;
mod normalization;
mod ordering;
mod pooling;
mod qlinear;
mod quantization;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod rotary;
mod sampling;
mod shape;
mod signal;
mod slicing;
mod softmax;
mod structure;
mod support_vectors;
mod window;

use crate::external::ExternalData;
use crate::read::Model;
use call::Importer;
use format::{Onnx, Scope, Source};
use mlc_import::{ImportOptions, Imported, OperatorSupport, Operators};
use mlc_ir::Diagnostic;

/// The operators that are known, sorted by operator set and name.
pub fn operator_support() -> Vec<OperatorSupport> {
    Onnx::support()
}

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: operators that aren't supported, all at once; attributes and operands that don't fit;
/// unknown input shapes.
pub fn import(
    model: &Model,
    external: &dyn ExternalData,
    options: &ImportOptions,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut importer = Importer::new(Source { model, external }, Scope::of_model(model), options);
    interface::import_inputs(&mut importer, options);
    if !importer.failed() {
        importer.import_operators(&model.graph.node);
    }
    if !importer.failed() {
        interface::import_outputs(&mut importer);
        meaning::note(&mut importer);
    }
    importer.finish()
}

#[cfg(test)]
mod tests;
