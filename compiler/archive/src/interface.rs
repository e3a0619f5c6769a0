//! Inputs and outputs of a model: names, order and types, put together from what the archive says in several places.

use super::archive::Archive;
use super::graph::Graph;
use super::header::Header;
use super::metadata::{Metadata, Model, TensorSize};
use super::signature::Signature;
use mlc_ir::{Code, Diagnostic, Location, TensorType};
use serde::Serialize;
use std::collections::BTreeSet;

/// An input or output of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name in the model.
    pub name: String,
    /// Its field in the structure of the C interface; empty for other interfaces.
    pub field: String,
    /// Its type. Where the archive tells only the number of bytes it has one dimension.
    pub ty: TensorType,
    /// Whether the archive tells the shape.
    pub shape_known: bool,
}

impl Serialize for Port {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("dtype", self.ty.dtype.name())?;
        if self.shape_known {
            map.serialize_entry("shape", self.ty.shape.as_slice())?;
        }
        map.serialize_entry("size_bytes", &self.ty.bytes())?;
        map.end()
    }
}

/// How a model is called, and with what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Inputs in the order of arguments.
    pub inputs: Vec<Port>,
    /// Outputs in the order of results.
    pub outputs: Vec<Port>,
}

/// What the parts of an archive say about one side of a model.
struct Side<'a> {
    what: &'static str,
    /// Names in order, or none where the order isn't known.
    fields: Option<&'a [String]>,
    sizes: &'a [(String, TensorSize)],
    /// Names and types in order, more of them than there are inputs.
    relay: Vec<(String, Option<TensorType>)>,
}

impl Interface {
    /// The tensors of a model that runs by a graph: arguments that aren't parameters.
    pub fn of_graph(
        archive: &Archive,
        metadata: &Metadata,
        model: &Model,
        graph: &Graph,
        parameters: &BTreeSet<&str>,
    ) -> Interface {
        let port = |name: &str, entry: usize| Port {
            name: name.to_owned(),
            field: String::new(),
            ty: graph.entries[entry].ty.clone(),
            shape_known: true,
        };
        let arguments = graph.arguments().map(|node| &graph.nodes[node]);
        let arguments = arguments.filter(|node| !parameters.contains(node.name.as_str()));
        let signature = signature(archive, metadata, model);
        let told: Vec<&str> = main_sizes(model, false).iter().map(|(name, _)| name.as_str()).collect();
        let names = result_names(graph.heads.len(), &signature, &told);
        Interface {
            inputs: arguments.map(|node| port(&node.name, node.first)).collect(),
            outputs: graph.heads.iter().zip(&names).map(|(&head, name)| port(name, head)).collect(),
        }
    }

    /// The tensors of a model with an entry point, in the C interface if there is a header.
    ///
    /// # Errors
    /// When the archive says too little or contradicts itself.
    pub fn of_entry_point(
        archive: &Archive,
        metadata: &Metadata,
        model: &Model,
        header: Option<&Header>,
    ) -> Result<Interface, Diagnostic> {
        let signature = signature(archive, metadata, model);
        let outputs = main_sizes(model, false);
        let told: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
        let count = match header {
            Some(header) => header.outputs.len(),
            None => outputs.len().max(signature.results.len()),
        };
        let names = result_names(count, &signature, &told);
        let types = signature.results.iter().cloned().map(Some).chain(std::iter::repeat(None));
        let results = names.into_iter().zip(types).collect();
        let inputs = Side {
            what: "input",
            fields: header.map(|header| header.inputs.as_slice()),
            sizes: main_sizes(model, true),
            relay: signature.parameters,
        };
        let fields = header.map(|header| header.outputs.as_slice());
        let outputs = Side { what: "output", fields, sizes: outputs, relay: results };
        if header.is_none() && outputs.relay.is_empty() {
            return Err(outputs.fault("nothing tells its outputs".into()));
        }
        Ok(Interface { inputs: inputs.ports()?, outputs: outputs.ports()? })
    }
}

fn signature(archive: &Archive, metadata: &Metadata, model: &Model) -> Signature {
    let text = archive.get(&metadata.relay_path(&model.name)).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.map(Signature::parse).unwrap_or_default()
}

/// What the metadata tells of the inputs or the outputs.
fn main_sizes(model: &Model, inputs: bool) -> &[(String, TensorSize)] {
    let main = model.memory.main.first();
    main.map_or(&[], |main| if inputs { main.inputs.as_slice() } else { main.outputs.as_slice() })
}

/// Names of the results in order. The metadata have them by name, not in order; the words `output0`, `output1` are in order.
fn result_names(count: usize, signature: &Signature, told: &[&str]) -> Vec<String> {
    let names = &signature.result_names;
    if names.len() == count && (told.is_empty() || names.iter().all(|name| told.contains(&name.as_str()))) {
        return names.clone();
    }
    match (count, told) {
        (1, [name]) => vec![(*name).to_owned()],
        (1, _) => vec!["output".into()],
        _ => (0..count).map(|number| format!("output{number}")).collect(),
    }
}

/// A name as a field of the C interface.
fn sanitised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

impl Side<'_> {
    fn ports(&self) -> Result<Vec<Port>, Diagnostic> {
        match self.fields {
            Some(fields) => fields.iter().map(|field| self.port(field, |name| sanitised(name) == *field)).collect(),
            None => {
                let mut names: Vec<&str> = self.relay.iter().map(|(name, _)| name.as_str()).collect();
                if !self.sizes.is_empty() {
                    names.retain(|name| self.sizes.iter().any(|(told, _)| told == name));
                    if names.len() != self.sizes.len() && self.sizes.len() == 1 {
                        names = vec![&self.sizes[0].0];
                    }
                    if names.len() != self.sizes.len() {
                        return Err(self.fault(format!("the order of its {}s isn't known", self.what)));
                    }
                }
                names.into_iter().map(|name| self.port("", |other| other == name)).collect()
            }
        }
    }

    /// The port with a field, whose name passes a test.
    fn port(&self, field: &str, is_it: impl Fn(&str) -> bool) -> Result<Port, Diagnostic> {
        let told = self.sizes.iter().find(|(name, _)| is_it(name));
        let typed = self.relay.iter().find(|(name, _)| is_it(name));
        let name = told.map(|(name, _)| name).or(typed.map(|(name, _)| name)).map_or(field, String::as_str);
        let size = told.map(|(_, size)| *size);
        let of_relay = typed.and_then(|(_, ty)| ty.clone());
        let (ty, shape_known) = match (size, of_relay) {
            (Some(size), Some(ty)) if (ty.dtype, ty.bytes() as u64) == (size.dtype, size.bytes) => (ty, true),
            (Some(size), _) => (flat(size), false),
            (None, Some(ty)) if self.sizes.is_empty() => (ty, true),
            _ => return Err(self.fault(format!("nothing tells the type of the {} '{name}'", self.what))),
        };
        Ok(Port { name: name.to_owned(), field: field.to_owned(), ty, shape_known })
    }

    fn fault(&self, message: String) -> Diagnostic {
        let message = format!("the archive tells too little to run the model: {message}");
        Diagnostic::error(Code::InputShapeUnknown, Location::default(), message)
    }
}

/// A type of one dimension.
fn flat(size: TensorSize) -> TensorType {
    let TensorSize { dtype, bytes } = size;
    TensorType::new(dtype, [(bytes / dtype.size() as u64) as usize])
}
