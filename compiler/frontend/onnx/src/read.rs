//! Bytes to a [`Model`]: protobuf, and what the standard demands of every model whatever its operators are.

use super::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto};
use super::tensor;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use prost::Message;
use std::collections::BTreeMap;

/// A model as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Versions of operator sets by domain; the standard operators' domain is empty.
    pub(super) opsets: Opsets,
    pub(super) graph: GraphProto,
    /// The model's own functions, by domain and name.
    pub(super) functions: IndexMap<(String, String), FunctionProto>,
}

impl Model {
    /// How often each operator occurs in the file, functions and subgraphs included, by `domain.name`, or the name alone for
    /// the standard operators.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let bodies = self.functions.values().map(|function| &function.node);
        let mut pending: Vec<&Vec<NodeProto>> = bodies.chain([&self.graph.node]).collect();
        while let Some(nodes) = pending.pop() {
            for node in nodes {
                pending.extend(node.graphs().map(|graph| &graph.node));
                let name = match normalized_domain(&node.domain) {
                    "" => node.op_type.clone(),
                    domain => format!("{domain}.{}", node.op_type),
                };
                *counts.entry(name).or_default() += 1;
            }
        }
        counts
    }

    /// Number of constants of the graph, and what they take in bytes as far as their element types are supported.
    pub fn weights(&self) -> (usize, u64) {
        let bytes = |tensor: &TensorProto| {
            let dtype = tensor::dtype_of(tensor.data_type.into()).ok()?;
            tensor::checked_type(dtype, &tensor.dims).ok()?.checked_bytes()
        };
        let weights = &self.graph.initializer;
        (weights.len(), weights.iter().filter_map(bytes).fold(0, |sum, bytes| sum.saturating_add(bytes as u64)))
    }
}

impl NodeProto {
    /// The graphs in its attributes.
    pub(super) fn graphs(&self) -> impl Iterator<Item = &GraphProto> {
        self.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
    }
}

/// Versions of operator sets by domain.
pub(super) type Opsets = IndexMap<String, i64>;

/// The domain of the standard operators has two names.
pub(super) fn normalized_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Newest versions of operator sets that mlc knows.
pub(super) const NEWEST: [(&str, i64); 3] = [("", 28), ("ai.onnx.ml", 5), ("com.microsoft", 1)];

/// Reads a model.
///
/// # Errors
/// When the bytes aren't a protobuf message, or the model lacks what every model needs.
pub fn read(bytes: &Bytes) -> Result<Model, Vec<Diagnostic>> {
    let fail = |code, message: String| vec![Diagnostic::error(code, Location::default(), message)];
    let proto = ModelProto::decode(bytes.clone()).map_err(|error| {
        let message = format!("the file is damaged: {error}");
        let diagnostic = Diagnostic::error(Code::Syntax, Location::default(), message);
        vec![diagnostic.with_note("an ONNX file is one protobuf message of the type ModelProto")]
    })?;
    let Some(graph) = proto.graph else {
        return Err(fail(Code::CountMismatch, "the model has no graph".into()));
    };
    let opsets = opsets(&proto.opset_import)?;
    let mut functions = IndexMap::new();
    for function in proto.functions {
        let key = (normalized_domain(&function.domain).to_owned(), function.name.clone());
        if functions.insert(key, function).is_some() {
            return Err(fail(Code::DuplicateDefinition, "two functions of the model have one name".into()));
        }
    }
    if opsets.is_empty() {
        return Err(fail(Code::CountMismatch, "the model doesn't say which version of the operators it uses".into()));
    }
    Ok(Model { opsets, graph, functions })
}

/// Checks the operator sets that a model, or a function, imports.
pub(super) fn opsets(imports: &[OperatorSetIdProto]) -> Result<Opsets, Vec<Diagnostic>> {
    let mut opsets = Opsets::new();
    for import in imports {
        let domain = normalized_domain(&import.domain);
        let newest = NEWEST.iter().find(|(known, _)| *known == domain).map_or(i64::MAX, |(_, newest)| *newest);
        if !(1..=newest).contains(&import.version) {
            let set = if domain.is_empty() { "standard operators" } else { domain };
            let message =
                format!("the model uses version {} of the {set}, versions 1 to {newest} are known", import.version);
            let diagnostic = Diagnostic::error(Code::VariantUnsupported, Location::default(), message);
            return Err(vec![
                diagnostic.with_help("convert the model to an older opset, for example with onnx.version_converter"),
            ]);
        }
        opsets.insert(domain.to_owned(), import.version);
    }
    Ok(opsets)
}
