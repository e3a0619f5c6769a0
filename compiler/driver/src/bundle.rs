//! Archives that are read back: Model Library Format tarballs, of mlc and of others.
//!
//! An archive is untrusted data: [`mlc_archive`] checks it, and so are identifiers that reach generated C. Building and
//! running it, which `mlc run` does on request, runs its code.

use crate::kernel::Kernel;
use crate::targets;
use bytes::Bytes;
use mlc_archive::{Archive, Executor, Header, Interface, Metadata, Model, Style, is_identifier};
use mlc_codegen::package::Predicted;
use mlc_codegen::{FloatingPoint, MemoryPlan, PlannedBuffer, Target};
use mlc_ir::{Code, DType, Diagnostic, Location, Objective, Quantization, Shape, TensorType};
use mlc_runtime::params;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// An input or output of a compiled model.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Its name in the model.
    pub name: String,
    /// Its name in the C structure; empty where there is none.
    pub field: String,
    /// Its type.
    pub ty: TensorType,
    /// What its integers stand for, if the archive says it.
    pub quantization: Option<Quantization>,
    /// Whether the archive says the shape, and not the number of elements only.
    pub shape_known: bool,
}

/// How the code of an archive is called.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    /// By a function that takes structures of pointers.
    CInterface(Box<Header>),
    /// By a function of the packed convention.
    Packed,
    /// By the runtime's graph executor.
    Graph {
        /// Path of the graph.
        graph: String,
        /// Path of the parameters.
        parameters: String,
        /// The most tensors that an operator takes and gives.
        arguments: usize,
        /// The most axes of a tensor.
        axes: usize,
    },
}

/// A model of a Model Library Format archive in memory.
#[derive(Debug, Clone)]
pub struct Bundle {
    archive: Archive,
    /// What the archive says about all of its models.
    pub metadata: Metadata,
    /// Which of them it is.
    pub model: Model,
    /// How it is called.
    pub call: Call,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// What only archives of mlc say.
    pub origin: Option<Origin>,
}

/// What mlc writes of the code that it generated.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Kernels in the order in which they run.
    pub kernels: Vec<Kernel>,
    /// Name of the target that it was compiled for.
    pub target: String,
    /// How closely its code keeps to floating-point operations.
    pub floating_point: FloatingPoint,
    /// What it was made for; `None` in archives of older versions.
    pub objective: Option<Objective>,
    /// Its place among the ranks, if it is one of several.
    pub ranks: Option<Ranks>,
    /// Where its values live; `None` in archives of older versions.
    pub plan: Option<MemoryPlan>,
    /// What all of its code was predicted to cost; `None` in archives of older versions.
    pub predicted: Option<Predicted>,
    /// Bytes of what it keeps between runs; `None` in archives of older versions.
    pub state_bytes: Option<usize>,
    /// How many threads compute a kernel together.
    pub threads: usize,
    /// Number of the input whose rows are given one after the other, if there is one.
    pub feed: Option<usize>,
}

/// What a model that is one of several ranks exchanges.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ranks {
    /// Which rank it is.
    pub rank: usize,
    /// How many there are.
    pub count: usize,
    /// Its messages in order.
    pub messages: Vec<Message>,
    /// What is done with them between the kernels.
    pub exchanges: Vec<Exchanged>,
}

/// A message of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Message {
    /// Size in bytes.
    pub bytes: usize,
    /// Number of its channel among those of the two ranks in this direction.
    pub channel: usize,
    /// Data type.
    pub dtype: String,
    /// The rank at the other end.
    pub peer: usize,
    /// Whether it goes to the peer.
    pub sent: bool,
    /// The tag in the model.
    pub tag: i32,
    /// Name of the output or the input.
    pub tensor: String,
}

/// Something that is done with a message: `send`, `receive` or `wait`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Exchanged {
    /// What.
    pub action: String,
    /// The number of the kernel before which it is done.
    pub before: usize,
    /// Number of the message.
    pub message: usize,
}

/// `src/<model>.json`, as far as it is read.
#[derive(Deserialize)]
struct Description {
    inputs: Vec<PortDescription>,
    outputs: Vec<PortDescription>,
    kernels: Vec<Kernel>,
    target: String,
    /// Archives of older versions don't say it.
    #[serde(default)]
    floating_point: FloatingPoint,
    #[serde(default)]
    objective: Option<Objective>,
    #[serde(default)]
    ranks: Option<Ranks>,
    #[serde(default)]
    plan: Option<MemoryPlan>,
    #[serde(default)]
    predicted: Option<Predicted>,
    #[serde(default)]
    state_bytes: Option<usize>,
    #[serde(default)]
    execution: DescribedExecution,
}

impl Description {
    /// Interface and origin.
    fn parts(self) -> Result<(Vec<Port>, Vec<Port>, Origin), String> {
        if let Some(plan) = &self.plan {
            let exchanges = self.ranks.as_ref().map_or(0, |ranks| ranks.exchanges.len());
            check_plan(plan, self.kernels.len() + exchanges)?;
        }
        let ports = |list: Vec<PortDescription>| list.into_iter().map(port).collect::<Result<Vec<_>, _>>();
        let feed = self.execution.feed;
        if feed.is_some_and(|input| self.inputs.get(input).is_none_or(|input| input.shape.len() < 3)) {
            return Err("the input whose rows are given one after the other has no rows".into());
        }
        let origin = Origin {
            kernels: self.kernels,
            target: self.target,
            floating_point: self.floating_point,
            objective: self.objective,
            ranks: self.ranks,
            plan: self.plan,
            predicted: self.predicted,
            state_bytes: self.state_bytes,
            threads: self.execution.threads.unwrap_or(1),
            feed,
        };
        Ok((ports(self.inputs)?, ports(self.outputs)?, origin))
    }
}

#[derive(Deserialize, Default)]
struct DescribedExecution {
    #[serde(default)]
    threads: Option<usize>,
    #[serde(default)]
    feed: Option<usize>,
}

#[derive(Deserialize)]
struct PortDescription {
    dtype: String,
    field: String,
    name: String,
    #[serde(default)]
    quantization: Option<Quantization>,
    shape: Vec<usize>,
}

impl Bundle {
    /// Reads the only model of an archive. The contents of its files are slices of the given bytes.
    ///
    /// # Errors
    /// When the archive is damaged, dangerous or says too little to run it.
    pub fn parse(archive: &Bytes) -> Result<Bundle, Diagnostic> {
        Bundle::parse_model(archive, "default")
    }

    /// Reads a model of an archive; any name fits if there is only one.
    ///
    /// # Errors
    /// As [`Bundle::parse`], and when there is no such model.
    pub fn parse_model(bytes: &Bytes, name: &str) -> Result<Bundle, Diagnostic> {
        let archive = Archive::read(bytes)?;
        let metadata = Metadata::read(&archive)?;
        let model = select(&metadata, name)?.clone();
        let call = call(&archive, &metadata, &model)?;
        let description = description(&archive, &model.name)?;
        let (inputs, outputs, origin) = match description {
            Some(description) => {
                let (inputs, outputs, origin) = description.parts().map_err(damaged)?;
                (inputs, outputs, Some(origin))
            }
            None => {
                let Interface { inputs, outputs } = interface(&archive, &metadata, &model, &call)?;
                let ports = |list: Vec<mlc_archive::Port>| list.into_iter().map(Port::from).collect();
                (ports(inputs), ports(outputs), None)
            }
        };
        Ok(Bundle { archive, metadata, model, call, inputs, outputs, origin })
    }

    /// Whether several threads compute its kernels, so that it needs a pool of them.
    pub fn is_threaded(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.threads > 1)
    }

    /// The target that mlc compiled the code for; `None` for code of others. One that this version doesn't know counts as
    /// `generic`.
    pub fn target(&self) -> Option<Target> {
        let origin = self.origin.as_ref()?;
        let target = targets::find(&origin.target).unwrap_or_else(Target::generic);
        let objective = origin.objective.unwrap_or(target.objective);
        Some(target.with_floating_point(origin.floating_point).with_objective(objective))
    }

    /// Bytes of the memory pools for intermediate results that the caller gives to every run.
    pub fn workspace_pool_bytes(&self) -> usize {
        let Call::CInterface(header) = &self.call else { return 0 };
        let pools = header.pools.iter().filter(|pool| !header.is_constant(pool));
        let bytes = pools.filter_map(|pool| header.pool_bytes(pool)).fold(0, u64::saturating_add);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The archive's files.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Writes the files below a folder that exists.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn unpack(&self, folder: &Path) -> std::io::Result<()> {
        for (path, bytes) in self.archive.files() {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }

    /// Path of the constants that mlc leaves to the caller to load (`--weights-as binary`).
    pub fn constants_path(&self) -> String {
        constants_path(&self.model.name)
    }

    /// Paths of the C sources of the model, sorted.
    ///
    /// # Errors
    /// `MLC0202` when some of its code isn't C.
    pub fn sources(&self) -> Result<Vec<&str>, Diagnostic> {
        let mut sources = self.files_below("codegen/host/src/");
        // What the assembler includes by a source.
        sources.retain(|path| !path.ends_with(".c.bin"));
        if let Some(other) = sources.iter().find(|path| !path.ends_with(".c")) {
            let message = format!("'{other}' isn't C: archives with code in other languages aren't supported");
            return Err(Diagnostic::error(Code::VariantUnsupported, Location::default(), message));
        }
        sources.sort_unstable();
        Ok(sources)
    }

    /// Paths of the object files of the model, sorted.
    pub fn objects(&self) -> Vec<&str> {
        let mut objects = self.files_below("codegen/host/lib/");
        objects.sort_unstable();
        objects
    }

    /// The model's files in a folder: with several models, those whose names don't start with another's.
    fn files_below(&self, folder: &str) -> Vec<&str> {
        let own = self.metadata.code_prefix(&self.model);
        let others: Vec<String> = self
            .metadata
            .models
            .iter()
            .map(|model| self.metadata.code_prefix(model))
            .filter(|other| *other != own)
            .collect();
        let is_own = |path: &&str| {
            let name = path.strip_prefix(folder);
            name.is_some_and(|name| !others.iter().any(|other| name.starts_with(other)))
        };
        self.archive.files().map(|(path, _)| path).filter(is_own).collect()
    }

    /// Gives inputs whose shapes the archive doesn't say the shapes of the files for them, by name or number.
    pub fn adopt_shapes(&mut self, shapes: &indexmap::IndexMap<String, Vec<usize>>) {
        for (number, port) in self.inputs.iter_mut().enumerate() {
            let shape = shapes.get(&port.name).or_else(|| shapes.get(&number.to_string()));
            if let Some(shape) = shape {
                port.adopt_shape(shape);
            }
        }
    }
}

impl Port {
    /// Takes a shape if the own isn't known and the number of elements fits.
    pub fn adopt_shape(&mut self, shape: &[usize]) {
        let ty = TensorType::new(self.ty.dtype, shape.iter().copied().collect::<Shape>());
        if !self.shape_known && ty.checked_bytes() == Some(self.ty.bytes()) {
            self.ty = ty;
        }
    }
}

impl From<mlc_archive::Port> for Port {
    fn from(mlc_archive::Port { name, field, ty, shape_known }: mlc_archive::Port) -> Port {
        Port { name, field, ty, quantization: None, shape_known }
    }
}

fn damaged(message: impl Into<String>) -> Diagnostic {
    let message = format!("the archive is damaged: {}", message.into());
    Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
}

/// The model of a name, or the only one.
///
/// # Errors
/// When there is none of that name, or the archive holds single operators.
pub(crate) fn select<'a>(metadata: &'a Metadata, name: &str) -> Result<&'a Model, Diagnostic> {
    let model = match metadata.models.as_slice() {
        [model] => model,
        models => models.iter().find(|model| model.name == name).ok_or_else(|| {
            let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
            let message = format!("the archive holds {} models, none is called '{name}'", models.len());
            let help = format!("choose one with --model-name: {}", names.join(", "));
            Diagnostic::option_mismatch(message).with_help(help)
        })?,
    };
    if model.style == Style::Operator {
        let message = "the archive holds single operators, a model is expected";
        return Err(Diagnostic::error(Code::RelatedFormat, Location::default(), message)
            .with_help("'mlc inspect' shows what is in it"));
    }
    Ok(model)
}

fn constants_path(model: &str) -> String {
    format!("parameters/{model}.constants.bin")
}

/// How a model is called. Of several executors, the one that needs less.
fn call(archive: &Archive, metadata: &Metadata, model: &Model) -> Result<Call, Diagnostic> {
    let header = format!("codegen/host/include/tvmgen_{}.h", model.name.to_ascii_lowercase());
    let constants = constants_path(&model.name);
    match model.executors.as_slice() {
        list if list.contains(&Executor::Aot) && archive.get(&header).is_some() => {
            let header = Header::parse(archive.text(&header)?, &model.name)?;
            if !header.devices.is_empty() {
                let message = format!("the model's code wants devices: {}", header.devices.join(", "));
                return Err(Diagnostic::error(Code::VariantUnsupported, Location::default(), message));
            }
            let is_missing = |pool: &&String| header.is_constant(pool) && header.pool_data(pool).is_none();
            if let Some(pool) = header.pools.iter().find(is_missing).filter(|_| archive.get(&constants).is_none()) {
                return Err(damaged(format!("the constants of the pool '{pool}' aren't in it")));
            }
            // A header of sizes alone comes with a packed entry point.
            Ok(if header.outputs.is_empty() { Call::Packed } else { Call::CInterface(Box::new(header)) })
        }
        list if list.contains(&Executor::Aot) => Ok(Call::Packed),
        list if list.contains(&Executor::Graph) => {
            let path = metadata.graph_path(&model.name);
            let graph = mlc_archive::Graph::read(archive, &path)?;
            let arguments = graph.nodes.iter().map(|node| node.inputs.len() + node.results);
            Ok(Call::Graph {
                arguments: arguments.max().unwrap_or_default(),
                axes: graph.entries.iter().map(|entry| entry.ty.rank()).max().unwrap_or_default(),
                graph: path,
                parameters: metadata.parameters_path(&model.name),
            })
        }
        _ => {
            let message = format!("the archive says no executor for the model '{}'", model.name);
            Err(Diagnostic::error(Code::RelatedFormat, Location::default(), message))
        }
    }
}

fn interface(archive: &Archive, metadata: &Metadata, model: &Model, call: &Call) -> Result<Interface, Diagnostic> {
    match call {
        Call::CInterface(header) => Interface::of_entry_point(archive, metadata, model, Some(header)),
        Call::Packed => Interface::of_entry_point(archive, metadata, model, None),
        Call::Graph { graph, parameters, .. } => {
            let graph = mlc_archive::Graph::read(archive, graph)?;
            let list = read_parameters(archive, parameters)?;
            let names: BTreeSet<&str> = list.iter().map(|named| &*named.name).collect();
            Ok(Interface::of_graph(archive, metadata, model, &graph, &names))
        }
    }
}

/// The arrays of a file of parameters.
///
/// # Errors
/// `MLC0107` when the file is missing or damaged.
pub fn read_parameters<'a>(archive: &'a Archive, path: &str) -> Result<Vec<params::Named<'a>>, Diagnostic> {
    params::read_list(archive.file(path)?).map_err(|error| damaged(format!("'{path}': {error}")))
}

/// What mlc writes into its own archives beside the model.
fn description(archive: &Archive, model: &str) -> Result<Option<Description>, Diagnostic> {
    let path = format!("src/{model}.json");
    let Some(bytes) = archive.get(&path) else { return Ok(None) };
    serde_json::from_slice(bytes).map(Some).map_err(|error| damaged(format!("'{path}': {error}")))
}

/// Holds each buffer to the arena, and its life to the kernels and exchanges.
fn check_plan(plan: &MemoryPlan, steps: usize) -> Result<(), String> {
    let fits = |buffer: &PlannedBuffer| {
        let end = buffer.offset.checked_add(buffer.bytes);
        buffer.first <= buffer.last && buffer.last < steps && end.is_some_and(|end| end <= plan.arena_bytes)
    };
    match plan.buffers.iter().find(|buffer| !fits(buffer)) {
        Some(buffer) => Err(format!("the buffer of {} doesn't fit the memory plan", buffer.values.join(", "))),
        None => Ok(()),
    }
}

fn port(description: PortDescription) -> Result<Port, String> {
    let PortDescription { dtype, field, name, quantization, shape } = description;
    let dtype = DType::parse(&dtype).ok_or_else(|| format!("'{name}' has the unknown data type '{dtype}'"))?;
    if !is_identifier(&field) {
        return Err(format!("the field '{field}' isn't a C identifier"));
    }
    let ty = TensorType::new(dtype, shape);
    ty.checked_bytes().ok_or_else(|| format!("'{name}' is too large"))?;
    Ok(Port { name, field, ty, quantization, shape_known: true })
}

#[cfg(test)]
mod tests;
