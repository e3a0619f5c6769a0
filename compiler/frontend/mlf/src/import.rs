//! A graph archive as a graph whose operators are the archive's C functions.

use crate::code::Source;
use indexmap::IndexMap;
use mlc_archive::{Archive, Executor, Graph as Description, Interface, Metadata, Model, Node, check_storage, storage};
use mlc_import::{ImportOptions, Imported};
use mlc_ir::ops::{CFile, CallConvention, Extern, MAXIMUM_WORKSPACE, Reshape};
use mlc_ir::{Attribute, Code, DType, Diagnostic, Graph, Location, TensorType, Value};
use mlc_runtime::params::{self, ElementType};
use std::collections::{BTreeMap, BTreeSet};

/// Makes a graph of a model of an archive.
///
/// # Errors
/// When the model has no graph, when the archive is damaged, or when a function isn't in the archive's C.
pub fn import(
    archive: &Archive,
    metadata: &Metadata,
    model: &Model,
    options: &ImportOptions,
) -> Result<Imported, Vec<Diagnostic>> {
    if !model.executors.contains(&Executor::Graph) {
        let message = "the archive was compiled ahead of time: its constants are in its C, and there is no graph";
        let fault = Diagnostic::error(Code::RelatedFormat, Location::default(), message);
        return Err(vec![fault.with_help("'mlc run', 'mlc bench' and 'mlc inspect' take it as it is")]);
    }
    let description = Description::read(archive, &metadata.graph_path(&model.name)).map_err(|fault| vec![fault])?;
    let parameters = read_parameters(archive, &metadata.parameters_path(&model.name)).map_err(|fault| vec![fault])?;
    let names: BTreeSet<&str> = parameters.keys().map(String::as_str).collect();
    let interface = Interface::of_graph(archive, metadata, model, &description, &names);
    let library = Library::read(archive, metadata, model, &description)?;
    let name = if options.name.is_empty() { &model.name } else { &options.name };
    let mut importer =
        Importer { graph: Graph::new(name.as_str()), values: Vec::new(), parameters: &parameters, library };
    let mut faults = Vec::new();
    for node in &description.nodes {
        match importer.node(&description, node) {
            Ok(values) => importer.values.extend(values),
            // What comes after refers to values by their numbers.
            Err(fault) => {
                faults.push(*fault);
                return Err(faults);
            }
        }
    }
    for (&head, port) in description.heads.iter().zip(&interface.outputs) {
        importer.graph.add_output(&port.name, importer.values[head]);
    }
    let told = check_storage(&model.memory.sids, &storage(&description));
    Ok(Imported::new(importer.graph, told.into_iter().collect()))
}

fn read_parameters(archive: &Archive, path: &str) -> Result<IndexMap<String, Attribute>, Diagnostic> {
    let bytes = archive.file(path)?;
    let damaged = |message: String| {
        let message = format!("the archive is damaged: '{path}': {message}");
        Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
    };
    let list = params::read_list(bytes).map_err(|error| damaged(error.to_string()))?;
    let mut parameters = IndexMap::new();
    for params::Named { name, array } in list {
        let dtype = dtype_of(array.element).ok_or_else(|| {
            let message = format!("the parameter '{name}' of '{path}' has an element type that isn't supported");
            Diagnostic::error(Code::VariantUnsupported, Location::default(), message)
        })?;
        let ty = TensorType::new(dtype, array.shape.as_slice());
        let data = bytes.slice_ref(&array.data);
        let value = Attribute::new(ty, data).map_err(|error| damaged(error.to_string()))?;
        if parameters.insert(name.to_string(), value).is_some() {
            return Err(damaged(format!("the parameter '{name}' is there twice")));
        }
    }
    Ok(parameters)
}

/// The data type of an element, if it has one number.
fn dtype_of(element: ElementType) -> Option<DType> {
    Some(match (element.code, element.bits, element.lanes) {
        (params::FLOAT, 32, 1) => DType::F32,
        (params::FLOAT, 64, 1) => DType::F64,
        (params::FLOAT, 16, 1) => DType::F16,
        (params::BFLOAT, 16, 1) => DType::Bf16,
        (params::INT, 8, 1) => DType::I8,
        (params::INT, 16, 1) => DType::I16,
        (params::INT, 32, 1) => DType::I32,
        (params::INT, 64, 1) => DType::I64,
        (params::UINT, 1, 1) => DType::Bool,
        (params::UINT, 8, 1) => DType::U8,
        (params::UINT, 16, 1) => DType::U16,
        (params::UINT, 32, 1) => DType::U32,
        (params::UINT, 64, 1) => DType::U64,
        _ => return None,
    })
}

/// The C of a model, and the scratch memory of its functions.
struct Library {
    /// The files that define functions of the graph, or what these call.
    sources: Vec<CFile>,
    workspaces: BTreeMap<String, usize>,
}

impl Library {
    fn read(
        archive: &Archive,
        metadata: &Metadata,
        model: &Model,
        description: &Description,
    ) -> Result<Library, Vec<Diagnostic>> {
        let prefix = metadata.code_prefix(model);
        let others: Vec<String> = metadata.models.iter().map(|other| metadata.code_prefix(other)).collect();
        let mut files = Vec::new();
        for (path, bytes) in archive.files() {
            let Some(name) = path.strip_prefix("codegen/host/src/") else { continue };
            if others.iter().any(|other| *other != prefix && name.starts_with(other.as_str())) {
                continue;
            }
            if !name.ends_with(".c") {
                let message = format!("'{path}' isn't C: archives with code in other languages aren't supported");
                return Err(vec![Diagnostic::error(Code::VariantUnsupported, Location::default(), message)]);
            }
            files.push((Source::new(path, archive.text(path).map_err(|fault| vec![fault])?), bytes.clone()));
        }
        files.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        let calls = description.nodes.iter().filter_map(|node| node.call.as_ref()).filter(|call| !call.is_view());
        let functions: BTreeSet<&str> = calls.map(|call| call.function.as_str()).collect();
        // What isn't a function of the graph, and allocates, may be called by one of them.
        let all: usize = files.iter().map(|(source, _)| source.allocations()).sum();
        let own: usize =
            files.iter().flat_map(|(source, _)| functions.iter().map(|name| source.allocations_of(name))).sum();
        let mut workspaces = BTreeMap::new();
        let mut faults = Vec::new();
        for &function in &functions {
            let Some((source, _)) = files.iter().find(|(source, _)| source.defines(function)) else {
                faults.push(undefined(function, archive));
                continue;
            };
            let told = model.memory.operators.iter().find(|operator| operator.function_name == function);
            let told = told.map_or(0, |operator| operator.workspace_size_bytes);
            let found = source.workspace(function).filter(|_| own == all).unwrap_or(told);
            match usize::try_from(found).ok().filter(|&bytes| bytes <= MAXIMUM_WORKSPACE) {
                Some(bytes) => drop(workspaces.insert(function.to_owned(), bytes)),
                None => faults.push(too_large(function, found)),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        // The new archive has no use for the list of functions by name, and may have one of its own.
        let needed = files
            .iter()
            .filter(|(source, _)| !source.is_registry() || functions.iter().any(|name| source.defines(name)));
        // Numbered, since an archive may call its files as it likes.
        let sources = needed.enumerate();
        let sources = sources.map(|(number, (_, bytes))| CFile::new(format!("extern{number}.c"), bytes.clone()));
        let sources = sources.collect();
        Ok(Library { sources, workspaces })
    }
}

fn undefined(function: &str, archive: &Archive) -> Diagnostic {
    let message = format!("the graph calls '{function}', which no C file of the archive defines");
    let fault = Diagnostic::error(Code::UndefinedValue, Location::default(), message);
    match archive.files().any(|(path, _)| path.starts_with("codegen/host/lib/")) {
        true => fault.with_note("the archive has object files: only C can be compiled again"),
        false => fault,
    }
}

fn too_large(function: &str, bytes: u64) -> Diagnostic {
    let message = format!("'{function}' asks for {bytes} bytes of scratch memory");
    Diagnostic::error(Code::NumberOutOfRange, Location::default(), message)
}

struct Importer<'a> {
    graph: Graph,
    /// The value of each entry so far.
    values: Vec<Value>,
    parameters: &'a IndexMap<String, Attribute>,
    library: Library,
}

impl Importer<'_> {
    /// Adds a node and gives the values of its results.
    fn node(&mut self, description: &Description, node: &Node) -> Result<Vec<Value>, Box<Diagnostic>> {
        let Some(call) = &node.call else { return self.argument(description, node).map(|value| vec![value]) };
        let fault = |code: Code, message: String| {
            let place = Location::default().at_operator(call.function.clone(), node.name.clone());
            Box::new(Diagnostic::error(code, place, message))
        };
        if call.flatten {
            let message = "the function takes tensors with one dimension (flatten_data), which isn't supported";
            return Err(fault(Code::VariantUnsupported, message.into()));
        }
        let operands: Vec<Value> = node.inputs.iter().map(|&input| self.values[input]).collect();
        let results: Vec<TensorType> =
            description.entries[node.first..node.first + node.results].iter().map(|entry| entry.ty.clone()).collect();
        let added = if call.is_view() {
            self.graph.add(Reshape { shape: results[0].shape.clone() }, &operands, &node.name)
        } else {
            let types = operands.iter().map(|&operand| self.graph.ty(operand).clone()).collect();
            let (packed, sources) = (CallConvention::Packed, self.library.sources.clone());
            let mut operator = Extern::new(&call.function, packed, types, results.clone(), sources);
            operator.workspace = self.library.workspaces.get(&call.function).copied().unwrap_or_default();
            self.graph.add_with_origins(operator, &operands, &node.name, [node.name.as_str().into()].into())
        };
        let id = added.map_err(|error| fault(Code::OperandTypes, error.to_string()))?;
        if self.graph.node(id).results != results {
            let message = format!("the result is {}, the graph says {}", self.graph.ty(id.into()), results[0]);
            return Err(fault(Code::ShapeMismatch, message));
        }
        Ok((0..results.len()).map(|slot| Value { node: id, slot: slot as u32 }).collect())
    }

    /// An input, or a parameter as a constant.
    fn argument(&mut self, description: &Description, node: &Node) -> Result<Value, Box<Diagnostic>> {
        let ty = &description.entries[node.first].ty;
        let Some(value) = self.parameters.get(&node.name) else {
            return Ok(self.graph.add_input(&node.name, ty.clone()));
        };
        // A scalar may be written as a tensor of one element.
        let found = value.ty();
        if (found.dtype, found.elements()) != (ty.dtype, ty.elements()) {
            let place = Location::default().at_operator("null", node.name.clone());
            let message = format!("the parameter '{}' is {found}, the graph says {ty}", node.name);
            return Err(Box::new(Diagnostic::error(Code::ShapeMismatch, place, message)));
        }
        let value = value.reshape(&ty.shape).map_err(|error| {
            let place = Location::default().at_operator("null", node.name.clone());
            Box::new(Diagnostic::error(Code::ShapeMismatch, place, error.to_string()))
        })?;
        Ok(self.graph.add_constant(&node.name, value))
    }
}
