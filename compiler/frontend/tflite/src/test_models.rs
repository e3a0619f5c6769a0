//! Models that tests write down.

use crate::element_type::ElementType;
use crate::import::import;
use crate::model::{Model, Operator, Setting, Subgraph, Tensor};
use mlc_import::ImportOptions;

/// A tensor of real numbers.
pub(crate) fn tensor(name: &str, shape: &[usize], data: Option<&[f32]>) -> Tensor {
    Tensor {
        name: name.into(),
        shape: shape.to_vec(),
        is_open: false,
        element_type: ElementType(0),
        data: data.map(|numbers| numbers.iter().flat_map(|number| number.to_le_bytes()).collect()),
        quantization: None,
        is_variable: false,
        sparsity: None,
    }
}

/// An operator of the format.
pub(crate) fn operator(
    kind: &'static str,
    inputs: &[usize],
    outputs: &[usize],
    options: &[(&'static str, Setting)],
) -> Operator {
    Operator {
        index: 0,
        kind: kind.into(),
        is_custom: false,
        inputs: inputs.iter().copied().map(Some).collect(),
        outputs: outputs.to_vec(),
        intermediates: Vec::new(),
        options: options.iter().map(|(name, value)| ((*name).into(), value.clone())).collect(),
    }
}

/// A subgraph without a name.
pub(crate) fn subgraph(
    tensors: Vec<Tensor>,
    inputs: &[usize],
    outputs: &[usize],
    operators: Vec<Operator>,
) -> Subgraph {
    Subgraph { name: String::new(), tensors, inputs: inputs.to_vec(), outputs: outputs.to_vec(), operators }
}

/// What is said of a model of this subgraph; nothing where it is imported.
pub(crate) fn said_of(subgraph: Subgraph) -> String {
    let faults = import(&Model { subgraphs: vec![subgraph] }, &ImportOptions::default()).err().unwrap_or_default();
    faults.into_iter().map(|fault| fault.message).collect()
}
