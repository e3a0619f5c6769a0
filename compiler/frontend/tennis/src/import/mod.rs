//! From a TenniS [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this one.
//!
//! What only depends on constants and shapes is computed at once, so that operands that say sizes and pads are known. Nodes
//! that no output needs aren't looked at.

mod activation;
mod arithmetic;
mod call;
mod color;
mod convolution;
mod detection;
mod format;
mod image;
mod indexing;
mod interface;
mod item;
mod linear;
mod normalization;
mod padding;
mod pooling;
mod prior;
mod promotion;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod sampling;
mod shape;
mod slicing;
mod structure;
mod suppression;
mod warping;
mod window;
mod window_padding;
mod winograd;

use crate::model::{Model, Node, NodeId};
use format::{Application, Tennis};
use mlc_import::{ImportOptions, Imported, Importer, OperatorSupport, Operators};
use mlc_ir::Diagnostic;

/// The operators that are known, sorted by name.
pub fn operator_support() -> Vec<OperatorSupport> {
    Tennis::support()
}

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: operators that aren't supported, all at once; parameters and operands that don't fit;
/// unknown input shapes.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let mut importer = Importer::new(model, (), options);
    interface::import_inputs(&mut importer, options);
    if !importer.failed() {
        let needed = (0..).map(NodeId).zip(&model.nodes).zip(model.reachable());
        let operators = needed.filter(|((_, node), reachable)| *reachable && node.kind != Node::PARAMETER);
        importer.import_operators(operators.map(|((id, node), _)| Application { id, node }));
    }
    if !importer.failed() {
        interface::import_outputs(&mut importer);
    }
    importer.finish()
}

#[cfg(test)]
mod tests;
