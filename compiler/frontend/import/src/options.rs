//! What all importers take and give besides the model.

use indexmap::IndexMap;
use mlc_ir::{Diagnostic, Graph};

/// What the user says about a model beyond its files.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Name of the graph; empty for `model`.
    pub name: String,
    /// Extents of inputs whose shapes the model leaves open, by the input's name, its operand's name, or its number.
    pub input_shapes: IndexMap<String, Vec<usize>>,
    /// Extents of the model's named dimensions.
    pub dimensions: IndexMap<String, usize>,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The model as a graph; `mlc_ir`'s rules hold.
    pub graph: Graph,
    /// What the user should know, though the import succeeded.
    pub warnings: Vec<Diagnostic>,
}
