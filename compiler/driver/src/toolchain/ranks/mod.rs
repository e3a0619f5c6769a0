//! Models of several ranks as one program: every process, or thread, has the code of all ranks and runs one of them.

mod rank;
mod source;
mod trace;

pub use rank::Rank;
pub use trace::{Event, Timeline};

use super::Toolchain;
use super::faults::{start_of, temporary};
use super::program::native_endian;
use super::recipe::put_files;
use super::watch::Watch;
use crate::bundle::{Bundle, Port};
use crate::files;
use mlc_codegen::{FloatingPoint, Target};
use mlc_ir::{Code, Diagnostic, Location, Tensor};
use mlc_runtime::Library;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How ranks exchange messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// Processes that an MPI starts.
    #[default]
    Mpi,
    /// Threads of one process.
    Threads,
}

/// A model of several ranks as a program. Its files vanish with it.
#[derive(Debug)]
pub struct RanksProgram {
    folder: TempDir,
    executable: PathBuf,
    transport: Transport,
    is_open_mpi: bool,
    traced: bool,
    /// The ranks in order.
    pub ranks: Vec<Rank>,
}

/// How a program of several ranks is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RanksRun {
    /// How often, on the same inputs.
    pub runs: u32,
    /// How long a rank waits for another one.
    pub patience: Duration,
}

/// Where the transports' sources are put.
const TRANSPORT: &str = "mlc-transport";

impl Toolchain {
    /// Builds the program of the archives of all ranks, in their order. A traced one can tell what happens when.
    ///
    /// # Errors
    /// `MLC0004` when an archive isn't one of that many ranks, or two have the same name; `MLC0005` when a compiler or an MPI is
    /// missing, or refuses the code.
    pub fn build_ranks(
        &self,
        bundles: &[Bundle],
        transport: Transport,
        traced: bool,
    ) -> Result<RanksProgram, Diagnostic> {
        let ranks = bundles.iter().enumerate().map(|(number, bundle)| Rank::of(bundles, number, bundle));
        let ranks = ranks.collect::<Result<Vec<Rank>, _>>()?;
        let is_open_mpi = transport == Transport::Mpi && find_mpi()?;
        let folder = tempfile::Builder::new().prefix("mlc-").tempdir().map_err(|error| temporary(&error))?;
        let watch = if traced { Watch::Calls } else { Watch::Nothing };
        let mut objects = Vec::new();
        for (number, bundle) in bundles.iter().enumerate() {
            let own = folder.path().join(format!("rank{number}"));
            bundle.unpack(&own).map_err(|error| temporary(&error))?;
            let flags = self.flags(&bundle.target().unwrap_or_else(plain))?;
            let text = source::rank(bundle, number, &own);
            objects.extend(self.compile_model(bundle, &own, &text, &flags, watch)?);
        }
        let executable = self.link_ranks(folder.path(), &ranks, objects, transport)?;
        Ok(RanksProgram { folder, executable, transport, is_open_mpi, traced, ranks })
    }

    /// Compiles what all ranks share, and links the program.
    fn link_ranks(
        &self,
        folder: &Path,
        ranks: &[Rank],
        mut objects: Vec<PathBuf>,
        transport: Transport,
    ) -> Result<PathBuf, Diagnostic> {
        put_files(&folder.join(TRANSPORT), mlc_runtime::files(&[Library::Transport]))?;
        let table = source::table(ranks.iter().map(|rank| rank.messages.messages.len()));
        let own =
            [("program.h", include_str!("program.h")), ("program.c", include_str!("program.c")), ("table.c", &table)];
        files::write_folder(folder, own.map(|(name, text)| (name, text.as_bytes())))?;
        let (engine, library) = match transport {
            Transport::Mpi => ("mpi", "-DMLC_MPI"),
            Transport::Threads => ("threads", "-pthread"),
        };
        let command = || match transport {
            Transport::Mpi => Command::new("mpicc"),
            Transport::Threads => self.command(),
        };
        for source in ["program.c".to_owned(), "table.c".to_owned(), format!("{TRANSPORT}/transport/{engine}.c")] {
            let object = folder.join(format!("{}.o", source.replace('/', "-")));
            let mut compile = command();
            compile.args(["-std=gnu99", "-O1", library, "-I.", &format!("-I{TRANSPORT}/include")]);
            compile.args([&format!("-I{TRANSPORT}/transport"), "-c", &source, "-o"]).arg(&object);
            self.expect_success(self.start(compile, folder)?.wait_with_output())?;
            objects.push(object);
        }
        let executable = folder.join("program");
        let mut link = command();
        link.args(&objects).arg("-o").arg(&executable).args(["-lm", "-pthread"]);
        self.expect_success(self.start(link, folder)?.wait_with_output())?;
        Ok(executable)
    }
}

fn plain() -> Target {
    Target::generic().with_floating_point(FloatingPoint::default())
}

/// Whether the MPI that is installed is Open MPI.
///
/// # Errors
/// `MLC0005` when there is none.
fn find_mpi() -> Result<bool, Diagnostic> {
    let mut said = Vec::new();
    for tool in ["mpicc", "mpirun"] {
        let output = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
        said = output.map_err(|error| missing(tool, &error))?.stdout;
    }
    Ok(String::from_utf8_lossy(&said).contains("Open MPI"))
}

fn missing(tool: &str, error: &std::io::Error) -> Diagnostic {
    failed(format!("can't start '{tool}': {}", files::describe(error))).with_help(
        "install an MPI, such as Debian's packages openmpi-bin and libopenmpi-dev, or run the ranks as threads: --transport threads",
    )
}

fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ToolFailed, Location::default(), message)
}

impl RanksProgram {
    /// Runs all ranks, each on its inputs; gives each rank's outputs, and what happened in the last run of a traced program.
    ///
    /// # Errors
    /// `MLC0004` when the inputs don't fit, `MLC0005` when a rank fails, with the rank's and the tensor's name.
    pub fn run(
        &self,
        inputs: &[Vec<Tensor>],
        RanksRun { runs, patience }: RanksRun,
    ) -> Result<(Vec<Vec<Tensor>>, Option<Timeline>), Diagnostic> {
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(self.folder.path());
        let folder = folder.map_err(|error| temporary(&error))?;
        for (number, (rank, given)) in self.ranks.iter().zip(inputs).enumerate() {
            super::program::check_inputs(&rank.inputs, given)
                .map_err(|fault| fault.with_note(format!("of rank {number}")))?;
            for (index, input) in given.iter().enumerate() {
                let file = folder.path().join(format!("rank{number}.input{index}"));
                std::fs::write(file, native_endian(input)).map_err(|error| temporary(&error))?;
            }
        }
        let mut command = self.launcher();
        let trace = u8::from(self.traced).to_string();
        command.arg(&self.executable).arg(folder.path());
        command.args([&patience.as_secs_f64().to_string(), &runs.max(1).to_string(), &trace]);
        command.current_dir(folder.path()).stdin(Stdio::null());
        let tool = if self.transport == Transport::Mpi { "mpirun" } else { "the program" };
        let output = command.output().map_err(|error| missing(tool, &error))?;
        if !output.status.success() {
            return Err(fault(&String::from_utf8_lossy(&output.stderr), &output.status.to_string()));
        }
        let outputs = self.ranks.iter().enumerate().map(|(number, rank)| read_outputs(folder.path(), number, rank));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let timeline = if self.traced { Some(trace::read(folder.path(), &self.ranks)?) } else { None };
        Ok((outputs, timeline))
    }

    /// The program's file.
    pub fn executable(&self) -> &Path {
        &self.executable
    }

    /// What starts the ranks.
    fn launcher(&self) -> Command {
        match self.transport {
            // `env` starts the program itself, as `mpirun` does.
            Transport::Threads => Command::new("env"),
            Transport::Mpi => {
                let mut command = Command::new("mpirun");
                if self.is_open_mpi {
                    // Ranks may be more than processors, and whoever runs a container is its superuser.
                    command.args(["--oversubscribe", "--allow-run-as-root"]);
                }
                command.args(["-n", &self.ranks.len().to_string()]);
                command
            }
        }
    }
}

/// What to say of ranks that failed: what they said, the cause first.
fn fault(said: &str, status: &str) -> Diagnostic {
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    let (own, others): (Vec<&str>, Vec<&str>) = lines.into_iter().partition(|line| line.starts_with("rank "));
    let is_consequence = |line: &&&str| line.contains(" was stopped") || line.contains(" stopped at ");
    let first = own.iter().find(|line| !is_consequence(line)).or_else(|| own.first());
    let killed = others.iter().find(|line| line.contains("noticed that process rank"));
    let message = match (killed, first) {
        (Some(killed), Some(own)) => format!("{own}: {killed}"),
        (None, Some(own)) => (*own).to_owned(),
        (Some(killed), None) => (*killed).to_owned(),
        (None, None) => format!("the ranks failed ({status})"),
    };
    let fault = own.iter().filter(|line| Some(line) != first.as_ref()).fold(failed(message), |fault, line| {
        if fault.notes.iter().any(|note| note == line) { fault } else { fault.with_note(*line) }
    });
    if first.is_none() && !said.trim().is_empty() { fault.with_note(start_of(said)) } else { fault }
}

fn read_outputs(folder: &Path, number: usize, rank: &Rank) -> Result<Vec<Tensor>, Diagnostic> {
    let read = |(index, port): (usize, &Port)| {
        let bytes =
            std::fs::read(folder.join(format!("rank{number}.output{index}"))).map_err(|error| temporary(&error))?;
        if bytes.len() != port.ty.bytes() {
            return Err(failed(format!("rank {number} wrote {} bytes of output '{}'", bytes.len(), port.name)));
        }
        Ok(Tensor::from_le_bytes(port.ty.clone(), &bytes))
    };
    rank.outputs.iter().enumerate().map(read).collect()
}
