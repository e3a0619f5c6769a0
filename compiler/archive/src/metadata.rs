//! `metadata.json` of versions 1 to 7, as one structure. Keys that came without a new version are optional, unknown ones are
//! ignored.

use super::archive::{self, Archive};
use super::is_identifier;
use mlc_ir::{Code, DType, Diagnostic};
use mlc_json::Json;
use serde::Serialize;

const FILE: &str = "metadata.json";

/// Latest version of the format.
const LATEST: usize = 7;

/// What an archive says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Version of the format, 1 to 7.
    pub version: usize,
    /// The models, by name; before version 7 there is one.
    pub models: Vec<Model>,
}

/// A model of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Model {
    /// Its name, a C identifier.
    pub name: String,
    /// When it was written, as the archive says.
    pub export_datetime: String,
    /// A whole model, or an operator.
    pub style: Style,
    /// How it can be run.
    pub executors: Vec<Executor>,
    /// The targets that it was compiled for.
    pub targets: Vec<String>,
    /// The memory that it needs.
    pub memory: Memory,
    /// Other software that it needs, as `name version`.
    pub dependencies: Vec<String>,
}

/// What an archive holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A model that can be run.
    FullModel,
    /// Single functions.
    Operator,
}

/// What calls the operators of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// A C function of the model.
    Aot,
    /// An interpreter of a graph in JSON.
    Graph,
}

/// The memory of a model, as the archive says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Blocks of a graph executor. Their sizes are often wrong: [`super::storage`] computes them.
    pub sids: Vec<StorageEntry>,
    /// The whole model, one entry for each device.
    pub main: Vec<MainMemory>,
    /// The functions of its operators.
    pub operators: Vec<OperatorMemory>,
}

/// A block of a graph executor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StorageEntry {
    /// Its number.
    pub storage_id: usize,
    /// Its size.
    pub size_bytes: u64,
    /// The input or parameter that it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_binding: Option<String>,
}

/// The memory of a whole model on a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MainMemory {
    /// Kind of the device, 1 for the CPU.
    pub device: usize,
    /// Bytes for intermediate results.
    pub workspace_size_bytes: u64,
    /// Bytes of constants.
    pub constants_size_bytes: u64,
    /// Bytes of inputs and outputs, or of all variables.
    pub io_size_bytes: u64,
    /// Name, data type and bytes of each input, by name; empty where the archive doesn't say.
    pub inputs: Vec<(String, TensorSize)>,
    /// The same of the outputs.
    pub outputs: Vec<(String, TensorSize)>,
}

/// Data type and size of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorSize {
    /// Data type.
    pub dtype: DType,
    /// Bytes.
    pub bytes: u64,
}

impl Serialize for TensorSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.dtype.name(), self.bytes).serialize(serializer)
    }
}

/// The scratch memory of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperatorMemory {
    /// C symbol of the function.
    pub function_name: String,
    /// Bytes on all devices together.
    pub workspace_size_bytes: u64,
}

impl Metadata {
    /// Reads an archive's metadata.
    ///
    /// # Errors
    /// When the file is missing or damaged, when the version isn't known, or a name isn't a C identifier.
    pub fn read(archive: &Archive) -> Result<Metadata, Diagnostic> {
        let value = archive.json(FILE)?;
        let root = archive::root(FILE, &value);
        let version = root.get("version")?;
        let number = version.count()?;
        if !(1..=LATEST).contains(&number) {
            let message = format!("version {number} of the Model Library Format isn't known, 1 to {LATEST} are");
            return Err(version.fault(Code::RelatedFormat, message));
        }
        let models = match (number, root.find("modules")?) {
            (LATEST, Some(modules)) => {
                let modules = modules.members()?;
                modules.into_iter().map(|(name, module)| Model::read(&module, name)).collect::<Result<_, _>>()?
            }
            // Single operators never had the wrapper.
            _ => {
                let name = root.find("model_name")?;
                let name = name.map_or(Ok("default"), |name| name.text())?;
                vec![Model::read(&root, name)?]
            }
        };
        Ok(Metadata { version: number, models })
    }

    /// Path of a model's graph.
    pub fn graph_path(&self, model: &str) -> String {
        match self.version {
            1..=4 => "runtime-config/graph/graph.json".into(),
            5 | 6 => "executor-config/graph/graph.json".into(),
            _ => format!("executor-config/graph/{model}.graph"),
        }
    }

    /// Path of a model's Relay text.
    pub fn relay_path(&self, model: &str) -> String {
        match self.version {
            1..=3 => "relay.txt".into(),
            4..=6 => "src/relay.txt".into(),
            _ => format!("src/{model}.relay"),
        }
    }

    /// Path of a model's parameters.
    pub fn parameters_path(&self, model: &str) -> String {
        format!("parameters/{model}.params")
    }

    /// What the names of a model's files of code start with.
    pub fn code_prefix(&self, model: &Model) -> String {
        // The C files of single operators, and those of the first versions, have no prefix.
        if self.version < 3 || model.style == Style::Operator { "lib".into() } else { format!("{}_lib", model.name) }
    }
}

impl Model {
    fn read(module: &Json, name: &str) -> Result<Model, Diagnostic> {
        if !is_identifier(name) {
            return Err(module.fault(Code::Syntax, format!("the model's name {name:?} isn't a C identifier")));
        }
        let text = |key: &str| module.find(key)?.map_or(Ok(""), |text| text.text());
        let style = match text("style")? {
            "" | "full-model" => Style::FullModel,
            "operator" => Style::Operator,
            other => return Err(module.get("style")?.fault(Code::ParameterInvalid, format!("the style is {other:?}"))),
        };
        let executors = match (module.find("executors")?, module.find("runtimes")?) {
            (Some(list), _) | (None, Some(list)) => executors(&list)?,
            (None, None) => return Err(module.fault(Code::ParameterMissing, "the key 'executors' is missing")),
        };
        Ok(Model {
            name: name.to_owned(),
            export_datetime: text("export_datetime")?.to_owned(),
            style,
            executors,
            targets: module.find("target")?.map_or(Ok(Vec::new()), |target| targets(&target))?,
            memory: match (style, module.find("memory")?) {
                (Style::FullModel, Some(memory)) => Memory::read(&memory)?,
                (Style::Operator, Some(memory)) => Memory::read_operators(&memory)?,
                (_, None) => Memory::default(),
            },
            dependencies: module.find("external_dependencies")?.map_or(Ok(Vec::new()), |list| dependencies(&list))?,
        })
    }
}

fn executors(list: &Json) -> Result<Vec<Executor>, Diagnostic> {
    let one = |item: &Json| match item.text()? {
        "aot" => Ok(Executor::Aot),
        "graph" => Ok(Executor::Graph),
        other => Err(item.fault(Code::VariantUnsupported, format!("the executor {other:?} isn't supported"))),
    };
    list.list()?.iter().map(one).collect()
}

/// A list since version 6; before, an object by the number of the device's kind.
fn targets(target: &Json) -> Result<Vec<String>, Diagnostic> {
    if target.is_object() {
        return target.members()?.into_iter().map(|(_, text)| Ok(text.text()?.to_owned())).collect();
    }
    target.texts()
}

fn dependencies(list: &Json) -> Result<Vec<String>, Diagnostic> {
    let one = |item: &Json| {
        let text = |key: &str| item.find(key)?.map_or(Ok(""), |text| text.text());
        Ok(format!("{} {}", text("short_name")?, text("version_spec")?).trim().to_owned())
    };
    list.list()?.iter().map(one).collect()
}

impl Memory {
    fn read(memory: &Json) -> Result<Memory, Diagnostic> {
        // Version 1 has the list of blocks alone.
        if memory.is_list() {
            return Ok(Memory { sids: storage_entries(memory)?, ..Memory::default() });
        }
        let sids = memory.find("sids")?.map_or(Ok(Vec::new()), |sids| storage_entries(&sids))?;
        let Some(functions) = memory.find("functions")? else { return Ok(Memory { sids, ..Memory::default() }) };
        let main = functions.find("main")?.map_or(Ok(Vec::new()), |main| main.list())?;
        let operators = functions.find("operator_functions")?.map_or(Ok(Vec::new()), |list| list.list())?;
        Ok(Memory {
            sids,
            main: main.iter().map(main_memory).collect::<Result<_, _>>()?,
            operators: operators.iter().map(operator_memory).collect::<Result<_, _>>()?,
        })
    }

    /// Of single operators: a list of arguments for each function. No function says what scratch memory it needs.
    fn read_operators(memory: &Json) -> Result<Memory, Diagnostic> {
        let mut operators = Vec::new();
        for (name, arguments) in memory.members()? {
            arguments.list()?;
            operators.push(OperatorMemory { function_name: name.to_owned(), workspace_size_bytes: 0 });
        }
        Ok(Memory { operators, ..Memory::default() })
    }
}

fn storage_entries(list: &Json) -> Result<Vec<StorageEntry>, Diagnostic> {
    let one = |item: &Json| {
        let binding = item.find("input_binding")?.map(|name| name.text()).transpose()?;
        Ok(StorageEntry {
            storage_id: item.get("storage_id")?.count()?,
            size_bytes: item.get("size_bytes")?.bytes()?,
            input_binding: binding.filter(|name| !name.is_empty()).map(String::from),
        })
    };
    list.list()?.iter().map(one).collect()
}

fn main_memory(item: &Json) -> Result<MainMemory, Diagnostic> {
    let bytes = |key: &str| item.find(key)?.map_or(Ok(0), |size| size.bytes());
    Ok(MainMemory {
        device: item.find("device")?.map_or(Ok(1), |device| device.count())?,
        workspace_size_bytes: bytes("workspace_size_bytes")?,
        constants_size_bytes: bytes("constants_size_bytes")?,
        io_size_bytes: bytes("io_size_bytes")?,
        inputs: tensor_sizes(item.find("inputs")?)?,
        outputs: tensor_sizes(item.find("outputs")?)?,
    })
}

fn tensor_sizes(object: Option<Json>) -> Result<Vec<(String, TensorSize)>, Diagnostic> {
    let Some(object) = object else { return Ok(Vec::new()) };
    let one = |(name, item): (&str, Json)| {
        let dtype_text = item.get("dtype")?;
        let text = dtype_text.text()?;
        let dtype = DType::parse_long_name(text).ok_or_else(|| {
            dtype_text.fault(Code::VariantUnsupported, format!("the data type {text:?} of '{name}' isn't supported"))
        })?;
        let size = item.get("size")?;
        let bytes = size.bytes()?;
        if !bytes.is_multiple_of(dtype.size() as u64) {
            return Err(size.fault(Code::ParameterInvalid, format!("{bytes} bytes aren't a whole number of {dtype}")));
        }
        Ok((name.to_owned(), TensorSize { dtype, bytes }))
    };
    object.members()?.into_iter().map(one).collect()
}

fn operator_memory(item: &Json) -> Result<OperatorMemory, Diagnostic> {
    let mut total: u64 = 0;
    for device in item.find("workspace")?.map_or(Ok(Vec::new()), |list| list.list())? {
        total = total.saturating_add(device.get("workspace_size_bytes")?.bytes()?);
    }
    Ok(OperatorMemory { function_name: item.get("function_name")?.text()?.to_owned(), workspace_size_bytes: total })
}
