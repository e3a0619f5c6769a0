//! Many modules in two C files: the helpers that several of them have are compiled once, and headers are read once. That is
//! most of the work of a C compiler that doesn't optimise.

use mlc_codegen::Module;
use mlc_codegen::constants::write_constants;
use std::collections::BTreeSet;

/// The text of all kernels, and that of all constants: the C compiler mustn't know their values when it compiles kernels.
///
/// # Errors
/// When constants can't be written.
pub fn merged<'a>(modules: impl Iterator<Item = &'a Module>) -> Result<(String, String), String> {
    let (mut kernels, mut constants) = (Unit::default(), Unit::default());
    for module in modules {
        module.sources.iter().for_each(|source| kernels.add(&source.text));
        let mut bytes = Vec::new();
        write_constants(module, &mut bytes).map_err(|error| error.to_string())?;
        constants.add(&String::from_utf8(bytes).map_err(|error| error.to_string())?);
        constants.text += "#undef MLC_CONSTANT\n";
    }
    Ok((kernels.text, constants.text))
}

#[derive(Default)]
struct Unit {
    text: String,
    /// The helpers, types and included headers that are in the text.
    known: BTreeSet<String>,
}

impl Unit {
    /// Adds a module's file without the helpers that are there already. Two different helpers of one name are an error that the
    /// C compiler finds.
    fn add(&mut self, source: &str) {
        for block in source.split("\n\n") {
            if is_helper(block) {
                if self.known.insert(block.to_owned()) {
                    self.text += block;
                    self.text += "\n\n";
                }
                continue;
            }
            for line in block.lines() {
                let shared = line.starts_with("typedef ") || line.starts_with("#include ");
                if !shared || self.known.insert(line.to_owned()) {
                    self.text += line;
                    self.text.push('\n');
                }
            }
            self.text.push('\n');
        }
    }
}

/// Whether a block is a function of mlc, for which there may be a choice of texts, and not one of a model.
fn is_helper(block: &str) -> bool {
    let starts = ["static ", "#if ", "__attribute__"];
    starts.iter().any(|start| block.starts_with(start)) && block.contains(" mlc_") && !block.contains("tvmgen_")
}
