//! What users want of a model's inputs and outputs, other than the model has them.

use super::values::{normalization, raw_type, rename};
use super::words::mismatch;
use crate::pipeline::Loaded;
use clap::Args;
use indexmap::IndexMap;
use mlc_import::builder::operand_of_softmax;
use mlc_ir::interface::{self, Normalization};
use mlc_ir::{DType, Diagnostic, Graph};
use std::collections::{BTreeMap, BTreeSet};

/// What `--help` has these options under.
const HEADING: &str = "Interface";

/// What becomes of a model's inputs and outputs.
#[derive(Debug, Clone, Default, Args)]
pub struct InterfaceOptions {
    /// Give an input or an output another name, such as 'serving_default_x:0=audio'; --input and --expect take the new name, other
    /// options the model's own; may be repeated
    #[arg(long = "rename", value_name = "OLD=NEW", value_parser = rename, help_heading = HEADING)]
    pub renamed: Vec<(String, String)>,
    /// Have an input of floats take integers, u8, i8, u16 or i16, which the model converts; may be repeated
    #[arg(long = "input-type", value_name = "[NAME=]TYPE", value_parser = raw_type, help_heading = HEADING)]
    pub raw_types: Vec<(Option<String>, DType)>,
    /// Have the model compute (x - MEAN) / DEVIATION of an input of floats first, or of the integers of --input-type. Both are one
    /// number, or one for each channel with ':' between them, such as '123.7:116.3:103.5,58.4:57.1:57.4'; may be repeated
    #[arg(
        long = "normalize",
        value_name = "[NAME=]MEAN,DEVIATION",
        value_parser = normalization,
        allow_hyphen_values = true,
        help_heading = HEADING
    )]
    pub normalizations: Vec<(Option<String>, Normalization)>,
    /// Have an output, the only one unless it is named, be the index of its largest entry along the last axis, as i32. A softmax in
    /// front of it isn't computed; may be repeated
    #[arg(
        long = "argmax",
        value_name = "OUTPUT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = HEADING
    )]
    pub indices: Vec<String>,
}

impl InterfaceOptions {
    /// Whether the user wants anything.
    pub(super) fn is_given(&self) -> bool {
        let Self { renamed, raw_types, normalizations, indices } = self;
        !(renamed.is_empty() && raw_types.is_empty() && normalizations.is_empty() && indices.is_empty())
    }

    /// Changes the interface of a model.
    ///
    /// # Errors
    /// `MLC0004` when the model has nothing of which an option speaks, or not such that it can be changed.
    pub(super) fn apply(&self, loaded: &mut Loaded) -> Result<(), Diagnostic> {
        let Loaded { graph, aliases, .. } = loaded;
        self.apply_types(graph, aliases)?;
        let mut indices = BTreeSet::new();
        for name in &self.indices {
            let name = Some(name.as_str()).filter(|name| !name.is_empty());
            if !indices.insert(interface::find_output(graph, name)?) {
                return Err(mismatch("--argmax is given twice for one output".into()));
            }
        }
        indices.into_iter().try_for_each(|number| interface::index_of_largest(graph, number, operand_of_softmax))?;
        let resolve = |(old, new): &(String, String)| (aliases.get(old).unwrap_or(old).clone(), new.clone());
        let renamed: Vec<(String, String)> = self.renamed.iter().map(resolve).collect();
        interface::rename(graph, &renamed)?;
        for name in aliases.values_mut() {
            if let Some((_, new)) = renamed.iter().find(|(old, _)| old == name) {
                name.clone_from(new);
            }
        }
        Ok(())
    }

    /// Changes what inputs are, but not their names.
    ///
    /// # Errors
    /// As [`InterfaceOptions::apply`].
    pub(super) fn apply_types(&self, graph: &mut Graph, aliases: &IndexMap<String, String>) -> Result<(), Diagnostic> {
        let find = |graph: &Graph, name: &Option<String>| {
            let name = name.as_ref().map(|name| aliases.get(name).unwrap_or(name).as_str());
            interface::find_input(graph, name)
        };
        let mut changed: BTreeMap<usize, (Option<DType>, Option<&Normalization>)> = BTreeMap::new();
        let twice = |option: &str| mismatch(format!("{option} is given twice for one input"));
        for (name, raw) in &self.raw_types {
            if changed.entry(find(graph, name)?).or_default().0.replace(*raw).is_some() {
                return Err(twice("--input-type"));
            }
        }
        for (name, normalization) in &self.normalizations {
            if changed.entry(find(graph, name)?).or_default().1.replace(normalization).is_some() {
                return Err(twice("--normalize"));
            }
        }
        changed.into_iter().try_for_each(|(number, (raw, numbers))| interface::take_raw(graph, number, raw, numbers))
    }

    /// Files of inputs under the names that the model itself has for these.
    pub(super) fn own_names(&self, files: &[String]) -> Vec<String> {
        let own = |argument: &String| {
            let renamed = self.renamed.iter().find_map(|(old, new)| {
                let file = argument.strip_prefix(new.as_str())?.strip_prefix('=')?;
                Some(format!("{old}={file}"))
            });
            renamed.unwrap_or_else(|| argument.clone())
        };
        files.iter().map(own).collect()
    }
}
