//! Single operators against values that were worked out by hand.

mod catalogue;
mod described;
mod refusals;
mod runtime_defects;
mod values;

use crate::element_type::ElementType;
use crate::import;
use crate::model::{Model, Node, NodeId};
use crate::tensor::Field;
use mlc_import::ImportOptions;
use mlc_ir::{DType, Diagnostic, Tensor, TensorType, evaluate};

/// An operand: fed when the model runs, or a constant of the file.
enum Operand {
    Fed(Tensor),
    Known(Tensor),
}

use Operand::{Fed, Known};

type Parameters<'a> = &'a [(&'a str, Field)];

fn tensor(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    let ty = TensorType::new(dtype, shape);
    match dtype.is_float() {
        true => Tensor::from_floats(ty, values.to_vec()),
        false => Tensor::from_integers(ty, values.iter().map(|&value| value as i64).collect()),
    }
}

fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    tensor(DType::F32, shape, values)
}

fn ints(shape: &[usize], values: &[f64]) -> Tensor {
    tensor(DType::I32, shape, values)
}

/// 0, 1, 2, …
fn counted(shape: &[usize]) -> Tensor {
    let values: Vec<f64> = (0..shape.iter().product()).map(|index| index as f64).collect();
    floats(shape, &values)
}

fn int(value: i32) -> Field {
    Field::of_ints(&[], &[value])
}

fn list(values: &[i32]) -> Field {
    Field::of_ints(&[values.len()], values)
}

fn float(value: f32) -> Field {
    Field::of_floats(&[], &[value])
}

fn field(tensor: &Tensor) -> Field {
    Field {
        element_type: ElementType::of_dtype(tensor.ty().dtype).unwrap(),
        shape: tensor.shape().to_vec(),
        data: tensor.to_le_bytes().into(),
    }
}

fn node(kind: &str, name: &str, parameters: Parameters<'_>, inputs: &[NodeId]) -> Node {
    let parameters = parameters.iter().map(|(key, field)| ((*key).to_owned(), field.clone().into()));
    Node {
        kind: kind.into(),
        name: name.into(),
        parameters: parameters.collect(),
        inputs: inputs.to_vec(),
        offset: 0,
        number: 0,
    }
}

/// A model of one operator.
fn model(kind: &str, parameters: Parameters<'_>, operands: &[Operand]) -> (Model, Vec<Tensor>) {
    let (mut model, mut fed) = (Model { inputs: vec![], outputs: vec![], nodes: vec![] }, Vec::new());
    for operand in operands {
        let id = NodeId(model.nodes.len() as u32);
        model.nodes.push(match operand {
            Known(value) => node(Node::CONSTANT, "", &[("value", field(value))], &[]),
            Fed(value) => {
                let code = ElementType::of_dtype(value.ty().dtype).unwrap().code();
                let shape: Vec<i32> = value.shape().iter().map(|&extent| extent as i32).collect();
                model.inputs.push(id);
                fed.push(value.clone());
                node(Node::PARAMETER, "", &[("#dtype", int(code.into())), ("#shape", list(&shape))], &[])
            }
        });
    }
    let inputs: Vec<NodeId> = (0..operands.len() as u32).map(NodeId).collect();
    model.outputs.push(NodeId(inputs.len() as u32));
    model.nodes.push(node(kind, "y", parameters, &inputs));
    (model, fed)
}

fn outputs_of(model: &Model, fed: &[Tensor]) -> Result<Vec<Tensor>, Vec<Diagnostic>> {
    let imported = import(model, &ImportOptions::default())?;
    mlc_ir::verify(&imported.graph).unwrap();
    Ok(evaluate(&imported.graph, fed).unwrap())
}

/// What an operator computes; a packed value's tensors one by one.
fn run(kind: &str, parameters: Parameters<'_>, operands: &[Operand]) -> Vec<Tensor> {
    let (model, fed) = model(kind, parameters, operands);
    outputs_of(&model, &fed).unwrap_or_else(|errors| panic!("{kind}: {errors:?}"))
}

/// Why an operator is refused.
fn refusal(kind: &str, parameters: Parameters<'_>, operands: &[Operand]) -> String {
    let (model, fed) = model(kind, parameters, operands);
    let errors = outputs_of(&model, &fed).expect_err(kind);
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn check_all(found: &[Tensor], expected: &[Tensor]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.ty(), expected.ty());
        for (found, expected) in found.to_floats().into_iter().zip(expected.to_floats()) {
            let close = (found - expected).abs() <= 1e-5 * expected.abs().max(1.0);
            assert!(close || found == expected, "{found} instead of {expected}");
        }
    }
}

/// Checks the only result of an operator.
fn check(kind: &str, parameters: Parameters<'_>, operands: &[Operand], expected: &Tensor) {
    check_all(&run(kind, parameters, operands), std::slice::from_ref(expected));
}
