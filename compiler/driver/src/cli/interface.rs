//! What users want of a model's inputs and outputs, other than the model has them.

use super::values::rename;
use crate::pipeline::Loaded;
use clap::Args;
use mlc_ir::{Diagnostic, interface};

/// What `--help` has these options under.
const HEADING: &str = "Interface";

/// What becomes of a model's inputs and outputs.
#[derive(Debug, Clone, Default, Args)]
pub struct InterfaceOptions {
    /// Give an input or an output another name, such as 'serving_default_x:0=audio'; --input and --expect take the new name, other
    /// options the model's own; may be repeated
    #[arg(long = "rename", value_name = "OLD=NEW", value_parser = rename, help_heading = HEADING)]
    pub renamed: Vec<(String, String)>,
}

impl InterfaceOptions {
    /// Whether the user wants anything.
    pub(super) fn is_given(&self) -> bool {
        !self.renamed.is_empty()
    }

    /// Changes the interface of a model.
    ///
    /// # Errors
    /// `MLC0004` when the model has nothing of which an option speaks.
    pub(super) fn apply(&self, loaded: &mut Loaded) -> Result<(), Diagnostic> {
        let resolve = |(old, new): &(String, String)| (loaded.aliases.get(old).unwrap_or(old).clone(), new.clone());
        let renamed: Vec<(String, String)> = self.renamed.iter().map(resolve).collect();
        interface::rename(&mut loaded.graph, &renamed)?;
        for name in loaded.aliases.values_mut() {
            if let Some((_, new)) = renamed.iter().find(|(old, _)| old == name) {
                name.clone_from(new);
            }
        }
        Ok(())
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
