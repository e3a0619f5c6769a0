//! What all importers take and give besides the model.

use crate::custom::CustomOperators;
use indexmap::IndexMap;
use mlc_ir::{Attribute, DType, Diagnostic, Graph};
use std::sync::Arc;

/// What the user says about a model beyond its files.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Name of the graph; empty for `model`.
    pub name: String,
    /// Extents of inputs whose shapes the model leaves open, by the input's name, its operand's name, or its number.
    pub input_shapes: IndexMap<String, Vec<usize>>,
    /// Data types of what inputs are given, in formats whose models take any, by the same names.
    pub input_dtypes: IndexMap<String, DType>,
    /// Values that inputs always have, where shapes depend on them, by the same names. The inputs stay, and aren't looked at.
    pub input_values: IndexMap<String, Attribute>,
    /// Extents of the model's named dimensions.
    pub dimensions: IndexMap<String, usize>,
    /// What a file leaves out that holds no weights.
    pub bindings: Bindings,
    /// Operators that the user describes.
    pub custom: Option<Arc<CustomOperators>>,
}

/// Weights, inputs and outputs of a model whose file says neither which they are nor what the weights hold.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Arrays by the names of what they are for.
    pub weights: IndexMap<String, Weight>,
    /// Names of what stays an input, though there is an array for it.
    pub inputs: Vec<String>,
    /// Names for memory that gets its content from outside, each with the place that it means, in the format's words.
    pub places: IndexMap<String, String>,
    /// Outputs in the place of those that the importer finds, likewise.
    pub outputs: IndexMap<String, String>,
    /// Names of inputs whose content after the run is an output, too: `<name>.next`.
    pub updated: Vec<String>,
    /// Whether an array of another data type is converted.
    pub cast: bool,
    /// Whether an array that nothing takes is an error.
    pub require_all: bool,
}

impl Bindings {
    /// Whether the user says nothing.
    pub fn is_empty(&self) -> bool {
        let Bindings { weights, inputs, places, outputs, updated, cast, require_all } = self;
        let names_nothing = inputs.is_empty() && places.is_empty() && outputs.is_empty() && updated.is_empty();
        names_nothing && weights.is_empty() && !cast && !require_all
    }
}

/// An array that the user gives.
#[derive(Debug, Clone)]
pub struct Weight {
    /// What it holds.
    pub value: Attribute,
    /// Whether its file says its shape; if not, it is one list of numbers.
    pub has_shape: bool,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The model as a graph; `mlc_ir`'s rules hold.
    pub graph: Graph,
    /// What the user should know, though the import succeeded.
    pub warnings: Vec<Diagnostic>,
    /// Other names of inputs, each with the name in the graph.
    pub aliases: IndexMap<String, String>,
    /// Inputs that the model itself updates, with a weight as the first value.
    pub updates: Vec<Update>,
}

impl Imported {
    /// A model whose inputs have one name each, and which updates none of them.
    pub fn new(graph: Graph, warnings: Vec<Diagnostic>) -> Self {
        Imported { graph, warnings, aliases: IndexMap::new(), updates: Vec::new() }
    }
}

/// An input that gets what an output was at the run before.
#[derive(Debug, Clone)]
pub struct Update {
    /// The input's name.
    pub input: String,
    /// The output's name.
    pub output: String,
    /// What the input gets at the first run.
    pub initial: Attribute,
}
