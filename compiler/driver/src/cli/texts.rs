//! Graphs as text files, with their large constants beside them.

use super::console::Console;
use super::words::mismatch;
use crate::files;
use crate::weights::{self, Weights};
use mlc_ir::Diagnostic;
use std::path::Path;

/// Writes a text; into a file, with the large constants beside it, or to standard output.
pub(super) fn write(text: &str, weights: &Weights, path: Option<&Path>, console: &Console) -> Result<(), Diagnostic> {
    let Some(path) = path else {
        console.write(text.as_bytes())?;
        if !weights.is_empty() {
            console.status("the text has no weights in it: with '-o FILE', they are written beside the file");
        }
        return Ok(());
    };
    if !weights.is_empty() {
        // The weights first: a text whose weights are missing is of no use.
        files::write_atomically(&weights::file_of(path), &weights.to_bytes()?)?;
    }
    files::write_atomically(path, text.as_bytes())
}

/// The output, and the file of weights beside it, must not replace what is read.
pub(super) fn refuse_inputs<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Diagnostic> {
    let outputs = [output.to_owned(), weights::file_of(output)].map(|path| path.canonicalize());
    let same =
        |input: &Path| input.canonicalize().is_ok_and(|input| outputs.iter().flatten().any(|output| *output == input));
    if inputs.into_iter().any(|path| same(path) || same(&path.with_extension("bin"))) {
        return Err(mismatch(format!("the output '{}' would replace the model", output.display())));
    }
    Ok(())
}
