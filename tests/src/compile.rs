//! From a case, or a graph, to an archive, by the compiler's own library.

use mlc_codegen::package::{PackageOptions, archive};
use mlc_codegen::{Module, Options, Target, generate};
use mlc_ir::{Code, Diagnostic, Graph, Location, text};

/// What the compiler makes of a model.
#[derive(Debug)]
pub struct Compiled {
    /// The code, before it was packed.
    pub module: Module,
    /// The Model Library Format archive.
    pub archive: Vec<u8>,
    /// Warnings and notes.
    pub findings: Vec<Diagnostic>,
}

/// Generates code for a graph as it is, without optimising it.
///
/// # Errors
/// What the code generator refuses.
pub fn compile_kernels(graph: &Graph, name: &str, target: &Target) -> Result<Compiled, Vec<Diagnostic>> {
    let module = generate(graph, &Options { model_name: name.to_owned(), target: target.clone() })?;
    let options = PackageOptions { target, graph_text: &text::print(graph), modified: 0 };
    let archive = archive(&module, &options)
        .map_err(|error| vec![Diagnostic::error(Code::FileUnwritable, Location::default(), error.to_string())])?;
    Ok(Compiled { module, archive, findings: Vec::new() })
}
