//! Networks in half precision: the same network with every single rounded to a half.

use crate::case::{Case, NamedTensor};
use crate::compare::Tolerance;
use indexmap::IndexMap;
use mlc_ir::{Attribute, DType, Graph, Tensor, TensorType, text};

/// The graph with `f16` in the place of every `f32`, constants rounded.
///
/// # Errors
/// Where the text of the graph has a number that isn't a half, or an operator doesn't take halves.
pub fn graph(graph: &Graph) -> Result<Graph, String> {
    let (text, constants) = text::print_with_constants(graph);
    let mut text = text.replace("f32", "f16");
    let mut halves = IndexMap::new();
    for (name, value) in constants {
        let half = Attribute::from_tensor(&tensor(&value.to_tensor()));
        let [old, new] = [&value, &half].map(|value| format!("#{:016x}", value.content_hash()));
        text = text.replace(&old, &new);
        halves.insert(name, half);
    }
    text::parse(&text, &halves).map_err(|findings| format!("{findings:?}"))
}

/// The tensor rounded to halves where it is one of singles.
pub fn tensor(tensor: &Tensor) -> Tensor {
    match tensor.ty().dtype {
        DType::F32 => Tensor::from_floats(TensorType { dtype: DType::F16, ..tensor.ty().clone() }, tensor.to_floats()),
        _ => tensor.clone(),
    }
}

/// The case with inputs and golden outputs rounded, and the tolerance of halves: what `mlc verify` allows them.
pub fn case(case: &Case) -> Case {
    let rounded = |named: &NamedTensor| NamedTensor { value: tensor(&named.value), ..named.clone() };
    Case {
        name: format!("{} in halves", case.name),
        inputs: case.inputs.iter().map(rounded).collect(),
        outputs: case.outputs.iter().map(rounded).collect(),
        tolerance: Tolerance { absolute: 2e-3, relative: 1e-2 },
        ..case.clone()
    }
}
