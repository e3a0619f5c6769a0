//! What is compiled for the program of an archive, and how: the archive's sources, the runtime's that they need, and `main.c`.

use super::compiler::Toolchain;
use super::faults::temporary;
use crate::bundle::{Bundle, Call};
use mlc_ir::Diagnostic;
use mlc_runtime::{Library, RuntimeFile};
use std::path::Path;

/// A file to compile.
pub(super) struct Unit {
    /// Its path below the program's folder.
    pub source: String,
    /// Options of the compiler.
    pub flags: Vec<String>,
}

/// All files to compile.
pub(super) struct Recipe {
    /// The files.
    pub units: Vec<Unit>,
    /// Options that name the folders of headers.
    pub includes: Vec<String>,
}

/// Libraries that programs of an archive are linked with.
pub(super) fn libraries(bundle: &Bundle) -> &'static [&'static str] {
    if bundle.is_threaded() { &["-lm", "-pthread"] } else { &["-lm"] }
}

/// Where our runtime is put beside the archive's files.
const RUNTIME: &str = "mlc-runtime";

/// The pool of threads in an archive that needs one.
const POOL: &str = "runtime/threads/posix.c";

/// Options for `main.c` and the runtime.
const OWN: [&str; 2] = ["-std=c99", "-O1"];

/// Options for code of other generators. It is built as it stands, so its warnings are of no use; that a pointer to a structure
/// is passed for one to bytes is usual in such code.
const FOREIGN: [&str; 5] = ["-std=gnu11", "-O2", "-ffp-contract=off", "-w", "-Wno-incompatible-pointer-types"];

impl Recipe {
    /// The recipe for an archive that is unpacked in a folder; puts the runtime there if it is needed. `flags` are the options
    /// for the machine that `toolchain` builds for.
    ///
    /// # Errors
    /// When the archive's code isn't C, or can't run on an emulated board.
    pub(super) fn new(
        bundle: &Bundle,
        folder: &Path,
        flags: &[String],
        toolchain: &Toolchain,
    ) -> Result<Recipe, Diagnostic> {
        let is_plain = matches!(bundle.call, Call::CInterface(_));
        if toolchain.board.is_some() && !is_plain {
            let message = "only code with the C interface runs on emulated boards";
            return Err(
                Diagnostic::option_mismatch(message).with_help("'mlc compile' makes such code of a graph archive")
            );
        }
        if toolchain.board.is_some() && bundle.is_threaded() {
            let message = "emulated boards have no threads";
            return Err(Diagnostic::option_mismatch(message).with_help("compile the model without '--threads'"));
        }
        let is_emulated = toolchain.board.is_some() || toolchain.guest.is_some();
        let for_machine = |more: &[&str]| -> Vec<String> {
            let machine = flags.iter().filter(|_| is_emulated).cloned();
            machine.chain(more.iter().copied().map(String::from)).collect()
        };
        let foreign = if toolchain.board.is_some() { for_machine(&FOREIGN[3..]) } else { for_machine(&FOREIGN) };
        let own = if is_emulated { for_machine(&OWN[1..]) } else { for_machine(&OWN) };
        let code = if bundle.origin.is_some() { flags } else { &foreign };
        let unit = |source: String, flags: &[String]| Unit { source, flags: flags.to_vec() };
        let target = bundle.target();
        let kernels = |source: &str| {
            let own = target.as_ref().map_or_else(Vec::new, |target| target.flags_of_file(source));
            unit(source.to_owned(), &[code, &own].concat())
        };
        let mut units: Vec<Unit> = bundle.sources()?.into_iter().map(kernels).collect();
        let mut includes = vec!["-Icodegen/host/include".to_owned()];
        if bundle.origin.is_some() && is_plain {
            includes.push("-Iruntime/include".into());
            if bundle.is_threaded() {
                units.push(unit(POOL.into(), &own));
            }
        } else {
            includes.extend([format!("-I{RUNTIME}/include"), format!("-I{RUNTIME}/config")]);
            units.extend(put_runtime(bundle, folder)?.into_iter().map(|source| unit(source, &own)));
        }
        // The last one, so that the objects of the model are those before.
        units.push(unit("main.c".into(), &own));
        Ok(Recipe { units, includes })
    }
}

/// Writes the runtime's files below a folder; gives those to compile.
fn put_runtime(bundle: &Bundle, folder: &Path) -> Result<Vec<String>, Diagnostic> {
    let mut sources = Vec::new();
    put_files(&folder.join(RUNTIME), mlc_runtime::FILES.iter())?;
    for file in mlc_runtime::FILES {
        let path = format!("{RUNTIME}/{}", file.path);
        let linked = matches!(file.library(), Library::Common | Library::Memory | Library::GraphExecutor)
            || file.path.starts_with("platform/posix/");
        if linked && file.path.ends_with(".c") && matches!(bundle.call, Call::Graph { .. }) {
            sources.push(path);
        }
    }
    write(&folder.join(RUNTIME).join("config/crt_config.h"), &configuration(bundle))?;
    Ok(sources)
}

/// Writes files of the runtime below a folder.
///
/// # Errors
/// Those of the file system.
pub(super) fn put_files<'a>(folder: &Path, files: impl Iterator<Item = &'a RuntimeFile>) -> Result<(), Diagnostic> {
    files.into_iter().try_for_each(|file| write(&folder.join(file.path), file.text))
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.and_then(|()| std::fs::write(path, text)).map_err(|error| temporary(&error))
}

/// `crt_config.h` with limits that the model keeps.
fn configuration(bundle: &Bundle) -> String {
    let (arguments, axes) = match bundle.call {
        Call::Graph { arguments, axes, .. } => (arguments, axes),
        _ => (0, 0),
    };
    // Fewer arguments than the limit are possible.
    format!(
        "#define TVM_CRT_LOG_LEVEL TVM_CRT_LOG_LEVEL_ERROR\n#define TVM_CRT_MAX_NDIM {}\n#define TVM_CRT_MAX_ARGS {}\n\
         #define TVM_CRT_MAX_STRLEN_FUNCTION_NAME 512\n#define TVM_CRT_MAX_STRLEN_PARAM_NAME 512\n",
        axes.max(6),
        arguments.max(9) + 1,
    )
}
