//! From a PNNX [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this
//! one, and expressed by the operators of the intermediate representation.
//!
//! Graph inputs bear the names of the `pnnx.Input` operators; [`ImportOptions::input_shapes`] also takes the name of the
//! input's operand, or its number among the inputs. Outputs bear the name of the operator that makes them when it makes one
//! output only, else `output_<k>`. Tuples and lists of outputs are flattened. Shapes in the file are checked against the
//! inferred ones, never believed. A complex input or output is a tensor with a last axis of real and imaginary part.
//!
//! Everything that stands in the way is reported at once: operators that aren't known, and those that can't be imported, except
//! what depends on one that failed.

mod activation;
mod arithmetic;
mod attention;
mod call;
mod comparison;
mod complex;
mod convolution;
mod creation;
mod einsum;
mod expression;
mod format;
mod fourier;
mod functions;
mod indexing;
mod interface;
mod item;
mod joining;
mod linear;
mod normalization;
mod ordering;
mod padding;
mod pooling;
mod positional;
mod promotion;
mod quantization;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod sampling;
mod shape;
mod slicing;
mod unfolding;
mod writing;

use crate::model::Model;
use call::Importer;
use format::Pnnx;
use mlc_import::{ImportOptions, Imported, OperatorSupport, Operators};
use mlc_ir::Diagnostic;

/// The operator types that are known, sorted.
pub fn operator_support() -> Vec<OperatorSupport> {
    let structure = ["pnnx.Input", "pnnx.Output"];
    let structure = structure.map(|name| OperatorSupport { domain: "", name, since: None, refused: None });
    let mut found = Pnnx::support();
    found.extend(structure);
    found.sort_unstable();
    found
}

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: unknown operators, parameters and operands that don't fit, shapes that aren't known
/// or disagree with the file.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let mut importer = Importer::new(model, (), options);
    interface::import_inputs(&mut importer, options);
    if !importer.failed() {
        let own = |kind: &str| matches!(kind, "pnnx.Input" | "pnnx.Output");
        importer.import_operators(model.operators.iter().filter(|operator| !own(&operator.kind)));
    }
    if !importer.failed() {
        interface::import_outputs(&mut importer);
    }
    importer.finish()
}

#[cfg(test)]
mod described_tests;
#[cfg(test)]
mod quantization_tests;
#[cfg(test)]
mod tests;
