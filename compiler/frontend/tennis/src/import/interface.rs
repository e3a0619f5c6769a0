//! Inputs and outputs of the model.

use super::call::Importer;
use super::format::dtype_of;
use super::item::Item;
use crate::element_type::ElementType;
use crate::model::{Node, NodeId};
use crate::tensor::Field;
use mlc_import::{DeclaredInput, Extent, Fault, ImportOptions};
use mlc_ir::{Attribute, Code, DType, Diagnostic, Location, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Names of its own for each of some nodes: the node's, or what it is and its number; more of one name are numbered.
fn names<'m>(nodes: impl Iterator<Item = &'m Node>, what: &str) -> Vec<String> {
    let (mut taken, mut numbers) = (BTreeSet::new(), BTreeMap::new());
    let mut names = Vec::new();
    for (number, node) in nodes.enumerate() {
        let own = if node.name.is_empty() { format!("{what}_{number}") } else { node.name.clone() };
        let mut name = own.clone();
        while !taken.insert(name.clone()) {
            let next = numbers.entry(own.clone()).or_insert(1usize);
            *next += 1;
            name = format!("{own}.{next}");
        }
        names.push(name);
    }
    names
}

/// Adds an input for each input of the module, those that nothing uses included.
pub(super) fn import_inputs(importer: &mut Importer<'_>, options: &ImportOptions) {
    let model = importer.model;
    let names = names(model.inputs.iter().map(|&id| model.node(id)), "input");
    let declared: Vec<DeclaredInput<'_>> = model
        .inputs
        .iter()
        .map(|&id| DeclaredInput { name: &model.node(id).name, alias: None, shape: declared_shape(model.node(id)) })
        .collect();
    let shapes = importer.input_shapes(&declared, [], options);
    let dtypes = importer.given_dtypes(&declared, options);
    let values = importer.given_values(&declared, options);
    let given = dtypes.into_iter().zip(values).map(|(dtype, value)| Given { dtype, value });
    for (((&id, name), shape), given) in model.inputs.iter().zip(&names).zip(shapes).zip(given) {
        if let Err(fault) = shape.and_then(|shape| add_input(importer, id, name, &shape, given)) {
            let location = Location::byte_offset(model.node(id).offset).at_operator(Node::PARAMETER, name);
            importer.findings.report(location, fault);
        }
    }
}

/// What the user says of an input besides its shape.
struct Given {
    dtype: Option<DType>,
    /// What it always is.
    value: Option<Attribute>,
}

/// What is given is converted to the data type that the file says, before anything else is done with it.
fn add_input(importer: &mut Importer<'_>, id: NodeId, name: &str, shape: &[usize], given: Given) -> Result<(), Fault> {
    let declared = declared_dtype(importer.model.node(id))?;
    let dtype = given.dtype.or(declared).unwrap_or_else(|| {
        let message = format!("the file doesn't say the data type of the input `{name}`; {} is taken", DType::F32);
        let location = Location { node: Some(name.to_owned()), ..Location::default() };
        let note = Diagnostic::note(Code::InputShapeUnknown, location, message);
        importer.findings.push(note.with_help("--input-dtype NAME=TYPE sets it"));
        DType::F32
    });
    let ty = importer.input_type(dtype, shape)?;
    importer.builder.begin(name);
    let input = importer.builder.input(name, ty);
    let value = importer.input_or_given(name, input, given.value)?;
    let value = importer.builder.cast(value, declared.unwrap_or(dtype))?;
    importer.define(id, Item::Tensor(value))
}

/// The shape that the file says, with -1 for what it leaves open.
fn declared_shape(node: &Node) -> Option<Vec<Extent<'static>>> {
    let extents = node.parameters.get("#shape")?.single()?.ints()?;
    let extent = |extent: i64| usize::try_from(extent).map_or(Extent::Open, Extent::Known);
    Some(extents.into_iter().map(extent).collect())
}

/// The data type that the file says.
fn declared_dtype(node: &Node) -> Result<Option<DType>, Fault> {
    let code = node.parameters.get("#dtype").and_then(|dtype| dtype.single()).and_then(Field::int);
    match code {
        Some(code) if code != i64::from(ElementType::VOID.code()) => dtype_of(code).map(Some),
        _ => Ok(None),
    }
}

/// Adds the outputs of the graph; the tensors of a packed value become one output each.
pub(super) fn import_outputs(importer: &mut Importer<'_>) {
    let model = importer.model;
    if model.outputs.is_empty() {
        importer.findings.push(Diagnostic::error(Code::NoOutput, Location::default(), "the model has no output"));
    }
    let names = names(model.outputs.iter().map(|&id| model.node(id)), "output");
    let mut outputs: Vec<(String, Value)> = Vec::new();
    for (&id, name) in model.outputs.iter().zip(&names) {
        match importer.resolve(id) {
            Ok(Item::Tensor(value)) => outputs.push((name.clone(), value)),
            Ok(Item::Packed(values)) => {
                let own = values.iter().enumerate().map(|(place, &value)| (format!("{name}:{place}"), value));
                outputs.extend(own);
            }
            Ok(item) => {
                let found = mlc_import::Item::description(&item);
                importer.report_value(name, Fault::variant(format!("an output must be a tensor, it is {found}")));
            }
            Err(fault) => importer.report_value(name, fault),
        }
    }
    for (name, value) in outputs {
        importer.builder.output(&name, value);
    }
}
