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
        for block in with_choices_apart(source).split("\n\n") {
            let block = block.trim_matches('\n');
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

/// The line that begins what is there with vectors, or without them, in code for any machine.
const CHOICE: &str = "#if MLC_VECTORS";

/// A file where such a choice around several functions begins and ends in blocks of its own.
fn with_choices_apart(source: &str) -> String {
    let (mut text, mut open) = (String::new(), Vec::new());
    for line in source.lines() {
        let is_choice = match line {
            CHOICE => {
                open.push(true);
                true
            }
            _ if line.starts_with("#if") => {
                open.push(false);
                false
            }
            _ => line.starts_with("#endif") && open.pop() == Some(true),
        };
        let around = if is_choice { "\n" } else { "" };
        text += &format!("{around}{line}\n{around}");
    }
    text
}

/// Whether a block is a function of mlc, for which there may be a choice of texts, and not one of a model.
fn is_helper(block: &str) -> bool {
    let starts = ["static ", "#if ", "__attribute__"];
    starts.iter().any(|start| block.starts_with(start)) && block.contains(" mlc_") && !block.contains("tvmgen_")
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn helpers_in_a_choice_are_there_once_and_choices_end() {
        let of = |helpers: &str, kernel: &str| {
            format!("#if MLC_VECTORS\ntypedef float f32x4;\n\n{helpers}#endif\n\nvoid tvmgen_{kernel}(void) {{}}\n")
        };
        let (one, other) = ("static f32x4 mlc_one(void);\n", "static f32x4 mlc_other(void);\n");
        let mut unit = Unit::default();
        for (helpers, kernel) in [(format!("{one}\n{other}"), "a"), (one.to_owned(), "b"), (other.to_owned(), "c")] {
            unit.add(&of(&helpers, kernel));
        }
        let count = |line: &str| unit.text.lines().filter(|own| *own == line).count();
        assert_eq!([count(one.trim_end()), count(other.trim_end()), count("typedef float f32x4;")], [1; 3]);
        assert_eq!([count("#if MLC_VECTORS"), count("#endif")], [3; 2]);
    }
}
