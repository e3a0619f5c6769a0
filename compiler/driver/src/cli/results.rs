//! What becomes of what a program computes: arrays in a folder, and a list of them.

use crate::bundle::Port;
use crate::pipeline::Failure;
use crate::{files, npy};
use clap::Args;
use indexmap::IndexSet;
use mlc_ir::Tensor;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What becomes of what a model computes.
#[derive(Debug, Clone, Args)]
pub struct ResultOptions {
    /// Folder for the outputs; with several ranks, each has a folder in it
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Print the outputs as JSON: all of their elements, with name, type and shape
    #[arg(long, conflicts_with = "further_models")]
    pub json: bool,
    /// Folder for what every kernel computes: DIR/kernels, again under the names of the model's operators whose results these are in
    /// DIR/values, and DIR/layers.json, which lists them
    #[arg(long, value_name = "DIR", conflicts_with = "further_models")]
    pub layers: Option<PathBuf>,
}

/// An entry of `outputs.json`.
#[derive(Serialize)]
struct OutputEntry<'a> {
    name: &'a str,
    file: String,
    dtype: &'static str,
    shape: &'a [usize],
}

/// Writes every output as an array, and the list of them.
pub(super) fn write_outputs(folder: &Path, ports: &[Port], outputs: &[Tensor]) -> Result<(), Failure> {
    let names = file_names(ports.iter().map(|port| port.name.as_str()));
    let entries: Vec<OutputEntry> = ports
        .iter()
        .zip(&names)
        .map(|(port, file)| OutputEntry {
            name: &port.name,
            file: file.clone(),
            dtype: port.ty.dtype.name(),
            shape: &port.ty.shape,
        })
        .collect();
    let contents: Vec<(String, Vec<u8>)> =
        names.into_iter().zip(outputs).map(|(name, output)| (name, npy::format(output))).collect();
    write_tensors(folder, "outputs.json", &entries, &contents)
}

/// Writes array files and the list of them.
pub(super) fn write_tensors(
    folder: &Path,
    list: &str,
    entries: &impl Serialize,
    contents: &[(String, Vec<u8>)],
) -> Result<(), Failure> {
    // Structures of strings, numbers and lists: writing them to memory can't fail.
    let text = serde_json::to_string_pretty(entries).unwrap_or_default() + "\n";
    let files = contents.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    files::write_folder(folder, files.chain([(list, text.as_bytes())]))?;
    Ok(())
}

/// Safe file names, all different even where file names don't tell upper from lower case.
pub(super) fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken: IndexSet<String> = IndexSet::new();
    let unique = |name: &str| {
        let base = files::safe_file_name(name);
        let mut name = base.clone();
        let mut number = 1;
        while !taken.insert(name.to_ascii_lowercase()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        format!("{name}.npy")
    };
    names.map(unique).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_outputs_never_meet() {
        let names = file_names(["a/b", "a:b", "A_b", "c"].into_iter());
        assert_eq!(names, ["a_b.npy", "a_b_2.npy", "A_b_3.npy", "c.npy"]);
    }
}
