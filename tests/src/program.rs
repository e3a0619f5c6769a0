//! Builds an archive the way a firmware project would: unpacked, compiled by a C compiler, called through its header alone.

pub use crate::sanitizers::{SANITIZERS, c_compiler};

use crate::sanitizers::sanitizing_compiler;
use mlc::toolchain::Toolchain;
use mlc_codegen::{Module, Pools, Port};
use mlc_ir::Tensor;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

/// How the C is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The C compiler.
    pub compiler: String,
    /// Its options.
    pub flags: Vec<String>,
}

/// Flags under which strict C99 must compile without a warning.
pub const STRICT: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];

/// The toolchain of a test of what code computes, and not of how fast it does: without optimisation it is there in a third of the time.
pub fn hasty(toolchain: Toolchain) -> Toolchain {
    Toolchain { options: vec!["-O0".into()], ..toolchain }
}

/// What is said of a program that ends by the signal of a trap.
pub const UNDEFINED: &str = "undefined behaviour, which -fno-sanitize-undefined-trap-on-error has named";
const TRAP: i32 = 4;

/// How a program ended that shouldn't have so.
pub fn ending(status: ExitStatus) -> String {
    let is_trapped = status.signal() == Some(TRAP);
    if is_trapped { format!("{status}: {UNDEFINED}") } else { status.to_string() }
}

impl Build {
    /// A build with these flags after `-O1`; another level among them takes its place.
    pub fn with<'a>(flags: impl IntoIterator<Item = &'a str>) -> Build {
        Build { compiler: c_compiler(), flags: ["-O1"].into_iter().chain(flags).map(String::from).collect() }
    }

    /// The same with a program that stops at undefined behaviour.
    pub fn sanitized(self) -> Build {
        let (compiler, option) = sanitizing_compiler();
        let flags = self.flags.into_iter().chain(SANITIZERS.into_iter().chain(option).map(String::from));
        Build { compiler: compiler.into(), flags: flags.collect() }
    }

    /// Whether the program stops at undefined behaviour.
    pub fn is_sanitized(&self) -> bool {
        self.flags.iter().any(|flag| flag.starts_with("-fsanitize"))
    }
}

/// The C interface of an archive, and where it was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    folder: tempfile::TempDir,
    sources: Vec<PathBuf>,
}

impl Unpacked {
    /// Unpacks an archive into a fresh folder.
    ///
    /// # Errors
    /// When the archive can't be unpacked or holds no C source.
    pub fn new(archive: &[u8]) -> Result<Unpacked, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        tar::Archive::new(archive).unpack(folder.path()).map_err(|error| format!("the archive: {error}"))?;
        let mut sources = Vec::new();
        let listing = std::fs::read_dir(folder.path().join("codegen/host/src"));
        for entry in listing.map_err(|error| format!("the archive has no sources: {error}"))? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                sources.push(path);
            }
        }
        sources.sort();
        if sources.is_empty() { Err("the archive has no C source".into()) } else { Ok(Unpacked { folder, sources }) }
    }

    /// The folder that holds the archive's files.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Compiles the sources together with a program that feeds them, in one command.
    ///
    /// # Errors
    /// What the C compiler says.
    pub fn build(&self, main: &str, build: &Build) -> Result<Program, String> {
        let main_file = self.path().join("harness_main.c");
        let program = self.path().join("harness_program");
        std::fs::write(&main_file, main).map_err(|error| error.to_string())?;
        let mut command = Command::new(&build.compiler);
        command.args(&build.flags);
        for include in ["codegen/host/include", "runtime/include"] {
            command.arg("-I").arg(self.path().join(include));
        }
        command.arg(&main_file).args(&self.sources).arg("-o").arg(&program).arg("-lm");
        let output = command.output().map_err(|error| format!("{}: {error}", build.compiler))?;
        if !output.status.success() {
            return Err(format!("the C compiler refuses the code: {}", first_error(&output)));
        }
        Ok(Program { path: program, folder: self.path().to_path_buf() })
    }
}

/// The line of a compiler's or program's output that says what is wrong.
fn first_error(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let marked = text.lines().find(|line| line.contains("error:") || line.contains("ERROR:"));
    marked.or_else(|| text.lines().next()).unwrap_or("no message").trim().to_owned()
}

/// A compiled model.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// The executable file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the model on the inputs; the result has one tensor per output.
    ///
    /// # Errors
    /// When the program fails, or its second run gives other outputs than its first.
    pub fn run(&self, inputs: &[Tensor], outputs: &[Port]) -> Result<Vec<Tensor>, String> {
        self.run_with(&[], inputs, outputs)
    }

    /// The same with further variables in the program's environment.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_with(
        &self,
        variables: &[(&str, &str)],
        inputs: &[Tensor],
        outputs: &[Port],
    ) -> Result<Vec<Tensor>, String> {
        let (input_file, output_file) = (self.folder.join("inputs.bin"), self.folder.join("outputs.bin"));
        let bytes: Vec<u8> = inputs.iter().flat_map(Tensor::to_le_bytes).collect();
        std::fs::write(&input_file, bytes).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.path);
        command.arg(&input_file).arg(&output_file).env("ASAN_OPTIONS", "detect_leaks=0");
        command.envs(variables.iter().copied());
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("the program ends with {}: {}", ending(output.status), first_error(&output)));
        }
        let bytes = std::fs::read(&output_file).map_err(|error| error.to_string())?;
        let mut rest = &bytes[..];
        let mut tensors = Vec::new();
        for port in outputs {
            let Some((head, tail)) = rest.split_at_checked(port.ty.bytes()) else {
                return Err("the program's output is too short".into());
            };
            tensors.push(Tensor::from_le_bytes(port.ty.clone(), head));
            rest = tail;
        }
        if rest.is_empty() { Ok(tensors) } else { Err("the program's output is too long".into()) }
    }
}

/// Runs in a row of a model that has states; the last one's outputs count.
pub const RUNS: usize = 3;

/// A `main` that reads all inputs from one file, runs the model twice and writes all outputs to another. A model that has
/// states runs [`RUNS`] times in a row instead of once, and is reset in between.
///
/// The header's descriptors must say the same sizes, and the second run must repeat the first one's outputs: nothing may rest
/// on what the arena held at the start.
pub fn main_source(module: &Module) -> String {
    let Module { model_name: model, inputs, outputs, .. } = module;
    let runs = if module.states.is_empty() { 1 } else { RUNS };
    let mut text = format!("#include <stdio.h>\n#include <string.h>\n#include \"tvmgen_{model}.h\"\n\n");
    for (buffer, ports) in [("in", inputs), ("out", outputs), ("again", outputs)] {
        for (number, port) in ports.iter().enumerate() {
            let size = port.ty.bytes().max(1);
            let _ = writeln!(text, "static unsigned char {buffer}_{number}[{size}] __attribute__((aligned(64)));");
        }
    }
    let pools = pools(module);
    for (number, (_, bytes)) in pools.iter().enumerate() {
        let size = bytes.max(&1);
        let _ = writeln!(text, "static unsigned char pool_{number}[{size}] __attribute__((aligned(64)));");
    }
    text += "\nint main(int argc, char **argv) {\n";
    if !pools.is_empty() {
        let fields = pools.iter().enumerate().map(|(number, (name, _))| format!(".{name} = pool_{number}"));
        let fields: Vec<String> = fields.collect();
        let _ = writeln!(text, "  struct tvmgen_{model}_workspace_pools pools = {{ {} }};", fields.join(", "));
    }
    let by_pools = if pools.is_empty() { "" } else { ", &pools" };
    text += &structure(model, "inputs", "inputs", inputs, "in");
    text += &structure(model, "outputs", "outputs", outputs, "out");
    text += &structure(model, "outputs", "repeated", outputs, "again");
    text += "  FILE *file;\n  if (argc != 3) return 2;\n";
    for (kind, ports) in [("inputs", inputs), ("outputs", outputs)] {
        for (number, port) in ports.iter().enumerate() {
            let wrong = fail(6, &format!("the header has another size of {kind} {number}"));
            let _ = writeln!(text, "  if (mlc_{model}_{kind}[{number}].bytes != {}) {wrong}", port.ty.bytes());
        }
    }
    text += "  file = fopen(argv[1], \"rb\");\n  if (!file) return 2;\n";
    for (number, port) in inputs.iter().enumerate() {
        let bytes = port.ty.bytes();
        let _ = writeln!(text, "  if (fread(in_{number}, 1, {bytes}, file) != {bytes}) return 2;");
    }
    text += "  fclose(file);\n";
    for (run, buffers) in [("first", "outputs"), ("second", "repeated")] {
        let failed = fail(3, &format!("the {run} run fails"));
        for _ in 0..runs {
            let _ = writeln!(text, "  if (tvmgen_{model}_run(&inputs, &{buffers}{by_pools}) != 0) {failed}");
        }
        if !module.states.is_empty() {
            let failed = fail(3, "the reset fails");
            let _ = writeln!(text, "  if (tvmgen_{model}_reset() != 0) {failed}");
        }
    }
    for (number, port) in outputs.iter().enumerate() {
        let differs = fail(4, &format!("the second run gives another output {number}"));
        let _ = writeln!(text, "  if (memcmp(out_{number}, again_{number}, {}) != 0) {differs}", port.ty.bytes());
    }
    text += "  file = fopen(argv[2], \"wb\");\n  if (!file) return 2;\n";
    for (number, port) in outputs.iter().enumerate() {
        let bytes = port.ty.bytes();
        let _ = writeln!(text, "  if (fwrite(out_{number}, 1, {bytes}, file) != {bytes}) return 2;");
    }
    text += "  return fclose(file) == 0 ? 0 : 2;\n}\n";
    text
}

/// The pools of intermediate results that the caller has to give, and their sizes in bytes.
pub fn pools(module: &Module) -> Vec<(&str, usize)> {
    let plan = &module.plan;
    match (module.execution.pools, &plan.pools[..]) {
        (Pools::External, []) if plan.arena_bytes > 0 => vec![("global_workspace", plan.arena_bytes)],
        (Pools::External, pools) => pools.iter().map(|pool| (pool.name.as_str(), pool.bytes)).collect(),
        (Pools::Internal, _) => Vec::new(),
    }
}

/// A C block that says what failed and leaves `main`.
fn fail(status: u8, message: &str) -> String {
    format!("{{ fputs(\"ERROR: {message}\\n\", stderr); return {status}; }}")
}

fn structure(model: &str, kind: &str, name: &str, ports: &[Port], buffer: &str) -> String {
    let fields: Vec<String> =
        ports.iter().enumerate().map(|(number, port)| format!(".{} = {buffer}_{number}", port.field)).collect();
    let value = if fields.is_empty() { "0".to_owned() } else { fields.join(", ") };
    format!("  struct tvmgen_{model}_{kind} {name} = {{ {value} }};\n")
}

#[cfg(test)]
mod tests {
    use super::{ExitStatus, ExitStatusExt, TRAP, UNDEFINED, ending};

    #[test]
    fn a_trap_is_told_from_other_endings() {
        assert!(ending(ExitStatus::from_raw(TRAP)).ends_with(UNDEFINED));
        // A segmentation fault, and an exit status.
        assert!([11, 1 << 8].into_iter().all(|status| !ending(ExitStatus::from_raw(status)).contains(UNDEFINED)));
    }
}
