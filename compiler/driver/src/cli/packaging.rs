//! The options that say how other code runs a model, and what its archive looks like.

use super::hardware::size;
use super::words::mismatch;
use clap::{Args, ValueEnum};
use indexmap::IndexMap;
use mlc_codegen::names;
use mlc_codegen::package::FormatVersion;
use mlc_codegen::{Execution, Interface, MemoryPool, Pools, WeightsAs};
use mlc_ir::{Diagnostic, Graph, interface};

/// What runs a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// One C function runs the model (ahead of time)
    Aot,
    /// The runtime's graph executor calls one function for each kernel, as a description in JSON says
    Graph,
}

/// How a program calls a model that was compiled ahead of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InterfaceApi {
    /// By structures of pointers, which the header declares
    C,
    /// By packed arguments, for the runtime's AOT executor
    Packed,
}

/// Whose memory a model works in, or keeps its states in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkspacePools {
    /// A static array of the generated code
    Internal,
    /// The caller's, given to every run
    External,
}

/// How weights reach the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Weights {
    /// C arrays, for any compiler
    C,
    /// A binary file that the assembler includes
    Incbin,
    /// An object file of the target
    Object,
    /// A binary file that the program loads, and gives to every run
    Binary,
}

/// How other code runs a model, and what its archive looks like.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Archive")]
pub struct Packaging {
    /// What runs the model; 'aot,graph' for both
    #[arg(long, value_enum, value_delimiter = ',', default_value = "aot")]
    pub executor: Vec<Executor>,
    /// How a program calls the model (executor aot)
    #[arg(long, value_enum, default_value_t = InterfaceApi::C, value_name = "API")]
    pub interface_api: InterfaceApi,
    /// Whether kernels take plain pointers [default: true for the interface c, false for packed]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub unpacked_api: Option<bool>,
    /// Whose memory the model works in (executor aot, interface c)
    #[arg(long, value_enum, default_value_t = WorkspacePools::Internal, value_name = "WHOSE")]
    pub workspace_pools: WorkspacePools,
    /// A piece of the caller's memory of so many bytes, such as 'dtcm=64K' or 'psram=2M,slow', that intermediate results lie in: those
    /// that are accessed most, for their size, in the first ones, the rest in slow ones; may be repeated (executor aot, interface c)
    #[arg(long = "pool", value_name = "NAME=N[K|M][,slow]", value_parser = pool)]
    pub pools: Vec<MemoryPool>,
    /// Whose memory states are kept in: the caller's can differ from stream to stream (executor aot, interface c)
    #[arg(long, value_enum, default_value_t = WorkspacePools::Internal, value_name = "WHOSE")]
    pub state_pool: WorkspacePools,
    /// Have the caller give an input, the only one unless it is named, row by row, so that the whole of it is never in memory: the
    /// header has the functions, docs/firmware.md tells more (executor aot, interface c)
    #[arg(long, value_name = "INPUT", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub feed: Option<String>,
    /// Point at elements of their types in the structures of inputs and outputs, such as const float*, and not at void (interface c)
    #[arg(long)]
    pub typed_pointers: bool,
    /// How weights reach the program (executor aot)
    #[arg(long, value_enum, default_value_t = Weights::C, value_name = "FORM")]
    pub weights_as: Weights,
    /// Copy each constant of at least so many bytes into working memory while the kernels before the one that reads it run, for weights in
    /// slow flash: by memcpy, or by what the macro TVMGEN_NAME_FETCH names, docs/firmware.md tells more (executor aot)
    #[arg(long, value_name = "N[K|M]", value_parser = size, num_args = 0..=1, require_equals = true, default_missing_value = "1K")]
    pub fetch_weights: Option<usize>,
    /// Version of the Model Library Format
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u8).range(5..=7))]
    pub mlf_version: u8,
    /// Leave src/NAME.relay, the model as it was read, out of the archive
    #[arg(long)]
    pub no_source_model: bool,
    /// Compile the code and pack object files in the place of sources; the C compiler is CC or the target's
    #[arg(long)]
    pub emit_lib: bool,
}

impl Packaging {
    /// How other code runs the model, with so many threads.
    ///
    /// # Errors
    /// When options contradict each other.
    pub fn execution(&self, threads: usize) -> Result<Execution, Diagnostic> {
        let graph = self.executor.contains(&Executor::Graph);
        let aot = self.executor.contains(&Executor::Aot).then(|| self.interface()).transpose()?;
        let whose = |pools| match pools {
            WorkspacePools::Internal => Pools::Internal,
            WorkspacePools::External => Pools::External,
        };
        let (mut pools, states) = (whose(self.workspace_pools), whose(self.state_pool));
        if !self.pools.is_empty() {
            check_names(&self.pools)?;
            pools = Pools::External;
        }
        let weights = match self.weights_as {
            Weights::C => WeightsAs::C,
            Weights::Incbin => WeightsAs::Incbin,
            Weights::Object => WeightsAs::Object,
            Weights::Binary => WeightsAs::Binary,
        };
        let by_pointer = [pools, states].contains(&Pools::External) || weights == WeightsAs::Binary;
        if by_pointer && aot != Some(Interface::C) {
            let message = "only the C interface takes memory from its caller";
            let help = "give '--executor aot --interface-api c', or none of '--workspace-pools external', '--pool', '--state-pool external' \
                        and '--weights-as binary'";
            return Err(mismatch(message.into()).with_help(help));
        }
        let typed_pointers = self.typed_pointers;
        if typed_pointers && aot != Some(Interface::C) {
            let message = "only the C interface has pointers that could have types";
            let help = "give '--executor aot --interface-api c', or leave '--typed-pointers' out";
            return Err(mismatch(message.into()).with_help(help));
        }
        if graph && states == Pools::External {
            let message = "the graph executor calls kernels without a pool of states";
            return Err(
                mismatch(message.into()).with_help("give '--executor aot', or leave '--state-pool external' out")
            );
        }
        if aot.is_none() && weights != WeightsAs::C {
            let message = "the graph executor loads its weights from the archive's parameters file";
            return Err(mismatch(message.into()).with_help("leave '--weights-as' out, or add the executor 'aot'"));
        }
        Ok(Execution { aot, graph, pools, states, feed: None, typed_pointers, weights, threads })
    }

    /// Number of the input of a model that is given row by row, of those that the caller gives. `aliases` are other names of inputs.
    ///
    /// # Errors
    /// `MLC0004` when the model doesn't have it.
    pub fn fed_input(&self, graph: &Graph, aliases: &IndexMap<String, String>) -> Result<Option<usize>, Diagnostic> {
        let Some(name) = &self.feed else { return Ok(None) };
        let name = Some(aliases.get(name).unwrap_or(name).as_str()).filter(|name| !name.is_empty());
        let input = interface::find_input(graph, name)?;
        Ok(graph.open_inputs().iter().position(|&open| open == input))
    }

    fn interface(&self) -> Result<Interface, Diagnostic> {
        match (self.interface_api, self.unpacked_api) {
            (InterfaceApi::C, None | Some(true)) => Ok(Interface::C),
            (InterfaceApi::C, Some(false)) => {
                let message = "the C interface calls kernels by plain pointers";
                Err(mismatch(message.into()).with_help("give '--interface-api packed', or leave '--unpacked-api' out"))
            }
            (InterfaceApi::Packed, None | Some(false)) => Ok(Interface::Packed),
            (InterfaceApi::Packed, Some(true)) => Ok(Interface::PackedEntry),
        }
    }

    /// Version of the archive's format.
    pub fn version(&self) -> FormatVersion {
        match self.mlf_version {
            5 => FormatVersion::Five,
            6 => FormatVersion::Six,
            _ => FormatVersion::Seven,
        }
    }
}

/// Names of pools that mlc gives others.
const TAKEN: [&str; 3] = ["global_workspace", "global_const_workspace", "global_state_workspace"];

/// A pool as a user writes it.
fn pool(text: &str) -> Result<MemoryPool, String> {
    let (name, rest) = text.split_once('=').ok_or("a name, '=' and a number of bytes are expected")?;
    let (bytes, is_slow) = match rest.split_once(',') {
        Some((bytes, "slow")) => (bytes, true),
        Some((_, word)) => return Err(format!("'{word}' is no property of a pool: there is 'slow'")),
        None => (rest, false),
    };
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_free = names::fields([name]) == [name];
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_letter) || !is_free {
        return Err(format!("'{name}' isn't a name in C of lower case letters, digits and '_'"));
    }
    Ok(MemoryPool { name: name.to_owned(), bytes: size(bytes)?, is_slow })
}

/// Refuses pools of one name.
fn check_names(pools: &[MemoryPool]) -> Result<(), Diagnostic> {
    for (number, MemoryPool { name, .. }) in pools.iter().enumerate() {
        if TAKEN.contains(&name.as_str()) || pools[..number].iter().any(|other| other.name == *name) {
            return Err(mismatch(format!("there is another pool '{name}'")).with_help("give it another name"));
        }
    }
    Ok(())
}
