//! Inputs and outputs of the model, by the names of their tensors.

use super::call::Importer;
use super::format::{Name, dtype_of};
use mlc_import::{DeclaredInput, Extent, Fault, ImportOptions, Item, Operand};
use mlc_ir::{Code, DType, Diagnostic, Location, Quantization};
use std::collections::BTreeSet;

/// A name of its own for each of some tensors: the tensor's, or what it is and its number; more of one name are numbered.
fn names(tensors: &[Name<'_>], what: &str) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let own = tensors.iter().enumerate().map(|(number, tensor)| {
        let own = if tensor.name.is_empty() { format!("{what}_{number}") } else { tensor.name.to_owned() };
        let numbered = (2..).map(|next| format!("{own}.{next}"));
        let name = std::iter::once(own.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(own);
        taken.insert(name.clone());
        name
    });
    own.collect()
}

/// Adds an input for each input of the model; their names.
pub(super) fn import_inputs(importer: &mut Importer<'_>, options: &ImportOptions) -> Vec<String> {
    let subgraph = *importer.scope();
    let tensors: Vec<Name<'_>> = subgraph.inputs.iter().map(|&index| Name::of(subgraph, index)).collect();
    let names = names(&tensors, "input");
    let declared: Vec<DeclaredInput<'_>> = tensors
        .iter()
        .map(|tensor| {
            let extents = subgraph.tensors[tensor.index].shape.iter().map(|&extent| Extent::Known(extent));
            DeclaredInput { name: tensor.name, alias: None, shape: Some(extents.collect()) }
        })
        .collect();
    let shapes = importer.input_shapes(&declared, [], options);
    for ((tensor, name), shape) in tensors.iter().zip(&names).zip(shapes) {
        if let Err(fault) = shape.and_then(|shape| add_input(importer, *tensor, name, &shape)) {
            importer.report_value(name, fault);
        }
    }
    names
}

fn add_input<'m>(importer: &mut Importer<'m>, tensor: Name<'m>, name: &str, shape: &[usize]) -> Result<(), Fault> {
    let dtype = dtype_of(importer.scope().tensors[tensor.index].element_type)?;
    let ty = importer.input_type(dtype, shape)?;
    importer.builder.begin(name);
    let input = importer.builder.input(name, ty);
    if let Some(own) = quantization(importer, tensor) {
        importer.builder.quantize_input(own);
    }
    importer.define(tensor, Operand::Tensor(input))
}

/// What the integers of a tensor stand for, if it holds some.
fn quantization(importer: &Importer<'_>, tensor: Name<'_>) -> Option<Quantization> {
    let tensor = &importer.scope().tensors[tensor.index];
    let is_integer = tensor.element_type.dtype().is_some_and(DType::is_integer);
    tensor.quantization.as_ref().filter(|_| is_integer)?.whole()
}

/// Adds the outputs of the graph; their names.
pub(super) fn import_outputs(importer: &mut Importer<'_>) -> Vec<String> {
    let subgraph = *importer.scope();
    if subgraph.outputs.is_empty() {
        importer.findings.push(Diagnostic::error(Code::NoOutput, Location::default(), "the model has no output"));
    }
    let tensors: Vec<Name<'_>> = subgraph.outputs.iter().map(|&index| Name::of(subgraph, index)).collect();
    let names = names(&tensors, "output");
    for (tensor, name) in tensors.iter().zip(&names) {
        let item = importer.resolve(*tensor);
        match item.and_then(|item| item.to_value(&mut importer.builder, name)) {
            Ok(value) => {
                importer.builder.output(name, value);
                if let Some(own) = quantization(importer, *tensor) {
                    importer.builder.quantize_output(own);
                }
            }
            Err(fault) => importer.report_value(name, fault),
        }
    }
    names
}
