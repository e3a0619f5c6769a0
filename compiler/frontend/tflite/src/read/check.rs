//! Checks what parts of a model say of each other: all faults are told at once, each with its place.

use crate::element_type::ElementType;
use crate::model::{Model, Subgraph, Tensor};
use mlc_ir::{Code, Diagnostic, Location, TensorType};

/// More errors than this help nobody, and a garbage file would have millions.
const MOST: usize = 100;

/// Checks a model.
///
/// # Errors
/// Everything that refers to what isn't there.
pub(super) fn check(model: &Model) -> Result<(), Vec<Diagnostic>> {
    let mut faults = Vec::new();
    if model.subgraphs.is_empty() {
        faults.push(Diagnostic::error(Code::Syntax, Location::default(), "the model has no subgraph"));
    }
    for (number, subgraph) in model.subgraphs.iter().enumerate() {
        faults.extend(subgraph_faults(number, subgraph).take(MOST + 1));
    }
    let hidden = faults.len().saturating_sub(MOST);
    faults.truncate(MOST);
    if hidden > 0
        && let Some(last) = faults.last_mut()
    {
        last.notes.push("more errors aren't shown".into());
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

fn subgraph_faults(number: usize, subgraph: &Subgraph) -> impl Iterator<Item = Diagnostic> {
    let count = subgraph.tensors.len();
    let missing = move |what: String, tensor: usize, location: Location| {
        let said = if tensor == usize::MAX { "a negative number".into() } else { tensor.to_string() };
        let message = format!("{what} of subgraph {number} is tensor {said}, but there are {count}");
        Diagnostic::error(Code::UndefinedValue, location, message)
    };
    let ports = [("input", &subgraph.inputs), ("output", &subgraph.outputs)];
    let ports = ports.into_iter().flat_map(move |(what, tensors)| {
        let beyond = tensors.iter().enumerate().filter(move |(_, tensor)| **tensor >= count);
        beyond.map(move |(place, &tensor)| missing(format!("{what} {place}"), tensor, Location::default()))
    });
    let operators = subgraph.operators.iter().flat_map(move |operator| {
        let inputs =
            operator.inputs.iter().enumerate().filter_map(|(place, tensor)| Some(("operand", place, (*tensor)?)));
        let outputs = operator.outputs.iter().enumerate().map(|(place, &tensor)| ("result", place, tensor));
        let inner = operator.intermediates.iter().enumerate().map(|(place, &tensor)| ("intermediate", place, tensor));
        let beyond = inputs.chain(outputs).chain(inner).filter(move |(_, _, tensor)| *tensor >= count);
        beyond.map(move |(what, place, tensor)| {
            let name = format!("#{}", operator.index);
            let what = format!("{what} {place} of operator {}", operator.index);
            missing(what, tensor, Location::default().at_operator(&*operator.kind, name))
        })
    });
    let tensors = subgraph.tensors.iter().enumerate().filter_map(move |(place, tensor)| {
        let message = tensor_fault(tensor)?;
        let message = format!("tensor {place} `{}` of subgraph {number}: {message}", tensor.name);
        let location = Location { node: Some(tensor.name.clone()), ..Location::default() };
        Some(Diagnostic::error(Code::WeightSizeMismatch, location, message))
    });
    ports.chain(operators).chain(tensors)
}

/// What is wrong with a constant; data types that can't be computed with count where they are used only.
fn tensor_fault(tensor: &Tensor) -> Option<String> {
    let (data, dtype) = (tensor.data.as_ref()?, tensor.element_type.dtype()?);
    if let Some(sparsity) = &tensor.sparsity {
        let (size, bytes) = (dtype.size(), data.len());
        if tensor.element_type == ElementType::INT4 || !bytes.is_multiple_of(size) {
            return Some(format!("{bytes} bytes aren't elements of {} whose zeros are left out", tensor.element_type));
        }
        let fault = sparsity.places(&tensor.shape, bytes / size).err();
        return fault.map(|what| format!("the zeros that are left out of it have no place: {what}"));
    }
    let ty = TensorType::new(dtype, &tensor.shape);
    let bytes = ty
        .checked_bytes()
        .map(|bytes| if tensor.element_type == ElementType::INT4 { bytes.div_ceil(2) } else { bytes });
    match bytes {
        Some(bytes) if bytes == data.len() => None,
        Some(bytes) => {
            Some(format!("{} of {:?} has {bytes} bytes, {} are there", tensor.element_type, tensor.shape, data.len()))
        }
        None => Some(format!("{} of {:?} is too large", tensor.element_type, tensor.shape)),
    }
}
