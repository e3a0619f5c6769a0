//! Models in Rust packages: `build.rs` compiles a model with the program `mlc`, and its C with the C compiler.
//!
//! ```no_run
//! // in main() of build.rs, with mlc-build among the build-dependencies
//! mlc_build::Model::new("kws", "kws.onnx").option("--optimize", "size").build();
//! ```
//!
//! ```text
//! // src/main.rs: the functions and types of `mlc project --template cargo`
//! mod kws {
//!     include!(concat!(env!("OUT_DIR"), "/kws.rs"));
//! }
//! ```

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A model that a package has.
#[derive(Debug, Clone)]
pub struct Model {
    name: String,
    path: PathBuf,
    options: Vec<OsString>,
}

/// Why a model isn't built, in words for the developer.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Model {
    /// A model by its name in C and Rust, lower case letters, digits and `_`, and its file, which counts from the package's folder.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Model {
        Model { name: name.to_owned(), path: path.into(), options: Vec::new() }
    }

    /// The machine that code is generated for; plain C unless it is said.
    #[must_use]
    pub fn target(self, name: &str) -> Model {
        self.option("--target", name)
    }

    /// An option of `mlc compile` and its value.
    #[must_use]
    pub fn option(mut self, option: &str, value: impl AsRef<OsStr>) -> Model {
        self.options.extend([OsString::from(option), value.as_ref().to_owned()]);
        self
    }

    /// An option of `mlc compile` without a value.
    #[must_use]
    pub fn flag(mut self, option: &str) -> Model {
        self.options.push(option.into());
        self
    }

    /// Compiles the model, links its code, and writes `<name>.rs` to `OUT_DIR`; ends the build script with what mlc says when it
    /// can't.
    #[allow(clippy::print_stderr, reason = "a build script talks to its developer so")]
    pub fn build(self) {
        if let Err(error) = self.try_build() {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }

    /// As [`Model::build`].
    ///
    /// # Errors
    /// When there is no mlc (the variable `MLC` names another than that of the PATH), or it refuses the model, with its words.
    #[allow(clippy::print_stdout, reason = "what a build script prints are instructions for cargo")]
    pub fn try_build(&self) -> Result<(), Error> {
        let out = PathBuf::from(env::var_os("OUT_DIR").ok_or_else(|| Error("this isn't a build script".into()))?);
        let archive = out.join(format!("{}.tar", self.name));
        let project = out.join(format!("{}.project", self.name));
        mlc(
            "compile",
            &self.path,
            &archive,
            &[&[OsString::from("--model-name"), OsString::from(&self.name)], &*self.options].concat(),
        )?;
        if project.exists() {
            std::fs::remove_dir_all(&project).map_err(|error| unusable(&project, &error))?;
        }
        mlc("project", &archive, &project, &["--template".into(), "cargo".into()])?;
        compile(&self.name, &project.join("model"))?;
        let text = read(&project.join("src/lib.rs"))?;
        let module = out.join(format!("{}.rs", self.name));
        std::fs::write(&module, as_module(&text)).map_err(|error| unusable(&module, &error))?;
        println!("cargo:rerun-if-env-changed=MLC");
        println!("cargo:rerun-if-changed={}", self.path.display());
        Ok(())
    }
}

fn mlc(command: &str, input: &Path, output: &Path, options: &[OsString]) -> Result<(), Error> {
    let program = env::var_os("MLC").unwrap_or_else(|| "mlc".into());
    let run =
        Command::new(&program).arg("--quiet").arg(command).arg(input).arg("-o").arg(output).args(options).output();
    let output = run.map_err(|error| {
        let name = program.display();
        Error(format!("can't start '{name}': {error}; install mlc, or name it in the variable MLC"))
    })?;
    if output.status.success() { Ok(()) } else { Err(Error(String::from_utf8_lossy(&output.stderr).into_owned())) }
}

/// Compiles the C of an unpacked archive with the options of its Makefile.
fn compile(name: &str, archive: &Path) -> Result<(), Error> {
    let mut build = cc::Build::new();
    build.includes([archive.join("codegen/host/include"), archive.join("runtime/include")]);
    build.opt_level(3).warnings(false);
    let makefile = read(&archive.join("Makefile"))?;
    let options = makefile.lines().find_map(|line| line.strip_prefix("CFLAGS ?= ")).unwrap_or_default();
    // Warnings are for who generates the code, and the package chooses how far it is optimised.
    for option in options.split_whitespace().filter(|option| !option.starts_with("-O") && !option.starts_with("-W")) {
        build.flag_if_supported(option);
    }
    // Only archives that several threads compute have a pool of them.
    let pool = archive.join("runtime/threads").is_dir().then_some(("runtime/threads", "c"));
    for (folder, extension) in [("codegen/host/src", "c"), ("codegen/host/lib", "o")].into_iter().chain(pool) {
        let mut files = files(&archive.join(folder))?;
        files.retain(|path| path.extension().is_some_and(|found| found == extension));
        if extension == "c" {
            build.files(files)
        } else {
            build.objects(files)
        };
    }
    build.try_compile(&format!("tvmgen_{name}")).map_err(|error| Error(error.to_string()))?;
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system != "none" && system != "windows") {
        link_mathematics();
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "what a build script prints are instructions for cargo")]
fn link_mathematics() {
    println!("cargo:rustc-link-lib=m");
}

/// The files of a folder, sorted; none where there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| unusable(folder, &error))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|error| unusable(folder, &error))?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    Error(format!("can't use '{}': {error}", path.display()))
}

/// The text of a crate as that of a module of any edition: without what only a crate has at its top.
fn as_module(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("//!") && !line.starts_with("#!["));
    let lines = lines.map(|line| if line == "extern \"C\" {" { "unsafe extern \"C\" {" } else { line });
    lines.flat_map(|line| [line, "\n"]).collect()
}
