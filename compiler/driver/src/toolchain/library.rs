//! A model as a shared library of this machine, for programs that load it into their own process.
//!
//! Whatever the archive's interface is, the library has three functions: `mlc_prepare`, which is called once and before the
//! others, `mlc_run`, which is given the memory of all inputs and outputs in order, and `mlc_reset`, which makes the states what
//! they were at first. Each gives 0 when done. One of them at a time may run.

use super::call;
use super::compiler::Toolchain;
use super::faults::temporary;
use super::recipe::libraries;
use super::watch::Watch;
use crate::bundle::{Bundle, Call};
use mlc_codegen::{FloatingPoint, Target};
use mlc_ir::Diagnostic;
use std::path::{Path, PathBuf};

/// File name of the library in its folder.
const LIBRARY: &str = "model.so";

/// Code that may lie anywhere in memory, and whose functions nobody else's take the place of.
const OPTIONS: [&str; 2] = ["-fPIC", "-fvisibility=hidden"];

impl Toolchain {
    /// Builds an archive as a shared library in a folder, which exists and gets the archive's files, too. They may go when
    /// `mlc_prepare` has been called.
    ///
    /// # Errors
    /// `MLC0004` when the code is for another machine or is a rank, `MLC0005` when there is no C compiler, or it refuses the code.
    pub fn build_library(&self, bundle: &Bundle, folder: &Path) -> Result<PathBuf, Diagnostic> {
        refuse_ranks(bundle)?;
        let folder = std::path::absolute(folder).map_err(|error| temporary(&error))?;
        bundle.unpack(&folder).map_err(|error| temporary(&error))?;
        let generic = || Target::generic().with_floating_point(FloatingPoint::default());
        let flags = self.flags(&bundle.target().unwrap_or_else(generic))?;
        let mut compiler = self.compiler.clone();
        compiler.extend(OPTIONS.map(String::from));
        let toolchain = Toolchain { compiler, ..self.clone() };
        let objects = toolchain.compile_model(bundle, &folder, &source(bundle, &folder), &flags, Watch::Nothing)?;
        let library = folder.join(LIBRARY);
        let mut command = toolchain.command();
        command.args(&flags).arg("-shared").args(&objects).arg("-o").arg(&library).args(libraries(bundle));
        self.expect_success(self.start(command, &folder)?.wait_with_output())?;
        Ok(library)
    }
}

/// A model that exchanges messages with others does nothing by itself.
///
/// # Errors
/// `MLC0004` for a rank.
pub(super) fn refuse_ranks(bundle: &Bundle) -> Result<(), Diagnostic> {
    let Some(ranks) = bundle.origin.as_ref().and_then(|origin| origin.ranks.as_ref()) else { return Ok(()) };
    let message =
        format!("the model is rank {} of {}, and runs together with the others only", ranks.rank, ranks.count);
    Err(Diagnostic::option_mismatch(message).with_help("'mlc run' takes the models of all ranks, in order"))
}

/// The C text of the three functions, for an archive that is unpacked in a folder.
pub(crate) fn source(bundle: &Bundle, folder: &Path) -> String {
    let (inputs, outputs) = (bundle.inputs.len(), bundle.outputs.len());
    let reset = match &bundle.call {
        Call::CInterface(header) => call::reset(&bundle.model.name.to_ascii_lowercase(), header),
        _ => None,
    };
    let reset = reset.unwrap_or_else(|| "0".to_owned());
    let buffers = |what: &str, ports: &[crate::bundle::Port]| {
        let sizes: Vec<String> = ports.iter().map(|port| format!("{{ NULL, {} }}", port.ty.bytes())).collect();
        let sizes = if sizes.is_empty() { "{ NULL, 0 }".to_owned() } else { sizes.join(", ") };
        format!("static buffer_t {what}[] = {{ {sizes} }};\n")
    };
    format!(
        "#define _POSIX_C_SOURCE 200809L\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n{}\n\
         #define EXPORTED __attribute__((visibility(\"default\")))\n\n\
         typedef struct {{\n  unsigned char* data;\n  size_t bytes;\n}} buffer_t;\n\n{}{}{}\n\
         EXPORTED int32_t mlc_prepare(void);\nEXPORTED int32_t mlc_run(unsigned char* const* in, unsigned char* const* out);\n\
         EXPORTED int32_t mlc_reset(void);\n\n\
         int32_t mlc_prepare(void) {{\n  return prepare();\n}}\n\n\
         int32_t mlc_run(unsigned char* const* in, unsigned char* const* out) {{\n  size_t i;\n  \
         for (i = 0; i < {inputs}; ++i) {{\n    input[i].data = in[i];\n  }}\n  \
         for (i = 0; i < {outputs}; ++i) {{\n    output[i].data = out[i];\n  }}\n  \
         set_tensors();\n  return invoke();\n}}\n\n\
         int32_t mlc_reset(void) {{\n  return {reset};\n}}\n",
        call::includes(bundle),
        buffers("input", &bundle.inputs),
        buffers("output", &bundle.outputs),
        call::functions(bundle, folder),
    )
}
