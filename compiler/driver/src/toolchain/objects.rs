//! Archives of object files: the C compiler runs at once, and its results take the place of the sources (`--emit-lib`).

use super::compiler::Toolchain;
use super::faults::temporary;
use indexmap::IndexMap;
use mlc_codegen::Target;
use mlc_ir::Diagnostic;
use std::process::Child;

const SOURCES: &str = "codegen/host/src/";
const OBJECTS: &str = "codegen/host/lib/";

impl Toolchain {
    /// The compiler for a target: the one of a `CC` variable, else the target's own.
    pub fn of_target(variable: Option<&str>, target: &Target) -> Toolchain {
        match variable {
            Some(variable) => Toolchain::from_variable(Some(variable)),
            None => Toolchain::emulated(&target.name).unwrap_or_default(),
        }
    }

    /// Replaces the C sources among an archive's files by the object files that the compiler makes of them.
    ///
    /// # Errors
    /// `MLC0005` when there is no C compiler, or it refuses the code.
    pub fn replace_sources(&self, files: &mut IndexMap<String, Vec<u8>>, target: &Target) -> Result<(), Diagnostic> {
        let folder = tempfile::Builder::new().prefix("mlc-").tempdir().map_err(|error| temporary(&error))?;
        for (path, bytes) in
            files.iter().filter(|(path, _)| path.starts_with("codegen/") || path.starts_with("runtime/"))
        {
            let path = folder.path().join(path);
            let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            parent.and_then(|()| std::fs::write(&path, bytes)).map_err(|error| temporary(&error))?;
        }
        let flags = self.flags(target)?;
        let is_source = |path: &&String| path.starts_with(SOURCES) && path.ends_with(".c");
        let sources: Vec<String> = files.keys().filter(is_source).cloned().collect();
        let mut compilations = Vec::new();
        for source in &sources {
            let mut command = self.command();
            command.args(&flags).args(target.flags_of_file(source)).args([
                "-Icodegen/host/include",
                "-Iruntime/include",
                "-Iruntime/crt_config",
            ]);
            command.args(["-c", source, "-o", &format!("{source}.o")]);
            compilations.push(self.start(command, folder.path())?);
        }
        let outputs: Vec<_> = compilations.into_iter().map(Child::wait_with_output).collect();
        for output in outputs {
            self.expect_success(output)?;
        }
        // Weights that were an object file already have the number of the source that isn't there.
        let weights: Vec<String> = files.keys().filter(|path| path.starts_with(OBJECTS)).cloned().collect();
        for path in weights {
            if let Some(bytes) = files.shift_remove(&path) {
                files.insert(path.replace("_lib0.o", "_lib2.o"), bytes);
            }
        }
        for source in &sources {
            let object = std::fs::read(folder.path().join(format!("{source}.o"))).map_err(|error| temporary(&error))?;
            let name = source.trim_start_matches(SOURCES).trim_end_matches(".c");
            files.insert(format!("{OBJECTS}{name}.o"), object);
        }
        files.retain(|path, _| !path.starts_with(SOURCES));
        files.sort_unstable_keys();
        Ok(())
    }
}
