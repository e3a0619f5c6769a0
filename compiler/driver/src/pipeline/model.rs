//! What is asked of a model file, and what is got of it.

use super::failure::{Failure, named};
use crate::descriptions::Described;
use crate::files;
use crate::format::Format;
use crate::npy;
use crate::render::Sources;
use crate::toolchain::Toolchain;
use indexmap::IndexMap;
use mlc_import::{Bindings, ImportOptions};
use mlc_ir::{Attribute, Code, DType, Diagnostic, Graph, TensorType};
use std::path::{Path, PathBuf};

/// What the user says about a model file.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Its format; told from its content if not given.
    pub format: Option<Format>,
    /// The file of its weights, if it isn't where the format has it.
    pub weights: Option<PathBuf>,
    /// The file of a Relay text's parameters (`.params`).
    pub parameters: Option<PathBuf>,
    /// Extents of inputs that the model leaves open, by name or number.
    pub input_shapes: IndexMap<String, Vec<usize>>,
    /// Data types of what inputs are given, by the same names, for models that take any.
    pub input_dtypes: IndexMap<String, DType>,
    /// Array files of values that inputs always have, where shapes depend on them, by the same names.
    pub input_values: IndexMap<String, PathBuf>,
    /// Extents of the model's named dimensions.
    pub dimensions: IndexMap<String, usize>,
    /// Weights, inputs and outputs that a file of a format without them leaves to the user.
    pub bindings: Bindings,
    /// Take the Relay text of an archive instead of its code, which the toolchain builds to check the text.
    pub from_relay: Option<Toolchain>,
    /// Which model of an archive of several.
    pub model_name: String,
    /// Operators that the user describes.
    pub described: Option<Described>,
}

impl LoadOptions {
    /// The part that a frontend is told.
    pub(super) fn import_options(&self) -> ImportOptions {
        ImportOptions {
            input_shapes: self.input_shapes.clone(),
            input_dtypes: self.input_dtypes.clone(),
            dimensions: self.dimensions.clone(),
            bindings: self.bindings.clone(),
            custom: self.described.as_ref().map(|described| described.operators.clone()),
            ..ImportOptions::default()
        }
    }

    /// The same with the values that inputs always have.
    ///
    /// # Errors
    /// When a file of a value can't be read.
    pub(super) fn import_options_with_values(&self) -> Result<ImportOptions, Failure> {
        let mut options = self.import_options();
        for (name, path) in &self.input_values {
            options.input_values.insert(name.clone(), read_value(path)?);
        }
        Ok(options)
    }
}

fn read_value(path: &Path) -> Result<Attribute, Failure> {
    let unreadable = |message: String| Diagnostic::error(Code::ArrayMismatch, named(path), message);
    let array = npy::parse(&files::read(path)?).map_err(unreadable)?;
    let value = Attribute::new(TensorType::new(array.dtype, &array.shape[..]), array.bytes);
    Ok(value.map_err(|error| unreadable(error.to_string()))?)
}

/// A model as its frontend read it.
#[derive(Debug)]
pub struct Loaded {
    /// The graph, not optimised.
    pub graph: Graph,
    /// Format of the file.
    pub format: Format,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
    /// Text files that warnings point into.
    pub sources: Sources,
    /// Other names of inputs, each with the name in the graph.
    pub aliases: IndexMap<String, String>,
}

impl Loaded {
    /// A model whose inputs have one name each.
    pub fn new(graph: Graph, format: Format, warnings: Vec<Diagnostic>, sources: Sources) -> Self {
        Loaded { graph, format, warnings, sources, aliases: IndexMap::new() }
    }
}
