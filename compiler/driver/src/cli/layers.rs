//! What kernels have computed, as `mlc run --layers` writes it.

use super::results::{file_names, write_tensors};
use crate::kernel::Kernel;
use crate::layers::{ModelValues, Near};
use crate::npy;
use crate::pipeline::Failure;
use crate::toolchain::WatchedResult;
use mlc_ir::Tensor;
use serde::Serialize;
use std::path::Path;

/// Results of kernels as a program has shown them.
pub(super) struct Seen<'a> {
    /// Name of the model in C.
    pub model: &'a str,
    /// The kernels in order.
    pub kernels: &'a [Kernel],
    /// Which results are known.
    pub results: &'a [WatchedResult],
    /// The results.
    pub tensors: &'a [Tensor],
}

impl Seen<'_> {
    /// The kernel of a result.
    pub(super) fn kernel(&self, number: usize) -> &Kernel {
        &self.kernels[self.results[number].kernel]
    }

    /// What a result is called: its kernel's symbol without what all of them have in common.
    pub(super) fn name(&self, number: usize) -> String {
        let function = &self.kernel(number).function;
        let name = function.strip_prefix(&format!("tvmgen_{}_", self.model)).unwrap_or(function);
        match (self.kernel(number).results.len(), self.results[number].number) {
            (1, _) => name.to_owned(),
            (_, result) => format!("{name}.{result}"),
        }
    }
}

/// An entry of `layers.json`.
#[derive(Serialize)]
struct LayerEntry<'a> {
    function: &'a str,
    node: &'a str,
    operator: &'a str,
    file: String,
    dtype: &'static str,
    shape: &'a [usize],
    /// The operator of the model whose result it is, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_file: Option<String>,
}

/// Writes the result of every kernel, and again under the name and in the order of axes of the model's operator whose result it is.
pub(super) fn write(folder: &Path, seen: &Seen<'_>, values: Option<&ModelValues>) -> Result<(), Failure> {
    let names: Vec<String> = (0..seen.results.len()).map(|number| seen.name(number)).collect();
    let found: Vec<Option<Near<'_>>> = seen
        .tensors
        .iter()
        .enumerate()
        .map(|(number, tensor)| values.and_then(|values| values.find(&seen.kernel(number).origins, tensor)))
        .collect();
    let files = file_names(names.iter().map(String::as_str));
    let mut value_files = file_names(found.iter().flatten().map(|near| near.name)).into_iter();
    let (mut contents, mut entries) = (Vec::new(), Vec::new());
    for (number, (file, near)) in files.iter().zip(&found).enumerate() {
        let kernel = seen.kernel(number);
        let file = format!("kernels/{file}");
        contents.push((file.clone(), npy::format(&seen.tensors[number])));
        let value_file = near.as_ref().and_then(|near| {
            let path = format!("values/{}", value_files.next()?);
            contents.push((path.clone(), npy::format(&near.result)));
            Some(path)
        });
        let ty = seen.tensors[number].ty();
        entries.push(LayerEntry {
            function: &kernel.function,
            node: &kernel.node,
            operator: &kernel.operator,
            file,
            dtype: ty.dtype.name(),
            shape: &ty.shape,
            value: near.as_ref().map(|near| near.name),
            value_file,
        });
    }
    write_tensors(folder, "layers.json", &entries, &contents)
}
