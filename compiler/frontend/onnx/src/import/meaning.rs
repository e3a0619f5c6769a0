//! What integers at the model's inputs and outputs stand for, as far as the operators that take and make them say: callers need it to make
//! such integers, and to read them.

use super::call::{Importer, Item};
use crate::proto::NodeProto;
use mlc_ir::{Float, Quantization};

/// Operators that say of operands what these stand for, and the places of those; a scale and a zero point follow each.
const TAKERS: [(&str, &[usize]); 3] = [("DequantizeLinear", &[0]), ("QLinearConv", &[0]), ("QLinearMatMul", &[0, 3])];

/// Operators that say of their result what it stands for, and the place of its scale; the zero point follows.
const MAKERS: [(&str, usize); 3] = [("QuantizeLinear", 1), ("QLinearConv", 6), ("QLinearMatMul", 6)];

/// Notes it for all inputs and outputs of integers.
pub(super) fn note(importer: &mut Importer<'_>) {
    let model = importer.model.model;
    let graph = importer.builder.graph();
    let inputs: Vec<(usize, String)> = graph
        .inputs()
        .iter()
        .enumerate()
        .filter(|(_, id)| graph.ty((**id).into()).dtype.is_integer())
        .map(|(number, &id)| (number, graph.node(id).name.to_string()))
        .collect();
    let outputs: Vec<(usize, String)> = graph
        .outputs()
        .iter()
        .enumerate()
        .filter(|(_, output)| graph.ty(output.value).dtype.is_integer())
        .map(|(number, output)| (number, output.name.to_string()))
        .collect();
    for (number, name) in inputs {
        let places = model.graph.node.iter().flat_map(|node| taken(node, &name).map(move |place| (node, place + 1)));
        if let Some(found) = agreed(importer, places) {
            importer.builder.quantization().inputs.insert(number, found);
        }
    }
    for (number, name) in outputs {
        let places = model.graph.node.iter().filter_map(|node| made(node, &name).map(|place| (node, place)));
        if let Some(found) = agreed(importer, places) {
            importer.builder.quantization().outputs.insert(number, found);
        }
    }
}

/// Places of an operand of this name at which a node says what it stands for.
fn taken<'n>(node: &'n NodeProto, name: &'n str) -> impl Iterator<Item = usize> + 'n {
    let taker = TAKERS.iter().find(|(kind, _)| *kind == node.op_type);
    let places = taker.map_or(&[][..], |(_, places)| places).iter().copied();
    places.filter(move |&place| node.input.get(place).is_some_and(|operand| operand == name))
}

/// The place of the scale of the result of this name.
fn made(node: &NodeProto, name: &str) -> Option<usize> {
    let is_result = node.output.first().is_some_and(|result| result == name);
    let maker = MAKERS.iter().find(|(kind, _)| is_result && *kind == node.op_type);
    maker.map(|(_, place)| *place)
}

/// What all nodes say whose scales are at these places; nothing if they differ.
fn agreed<'m>(
    importer: &mut Importer<'m>,
    places: impl Iterator<Item = (&'m NodeProto, usize)>,
) -> Option<Quantization> {
    let mut found = places.map(|(node, place)| {
        let scale = number(importer, node.input.get(place)?)?;
        let zero_point = match node.input.get(place + 1).filter(|name| !name.is_empty()) {
            Some(name) => number(importer, name)?,
            None => 0.0,
        };
        let is_scale = scale > 0.0 && scale.is_finite();
        is_scale.then_some(Quantization { scale: Float(scale), zero_point: zero_point as i64 })
    });
    let first = found.next()??;
    found.all(|other| other == Some(first)).then_some(first)
}

/// The one number that a constant is.
fn number<'m>(importer: &mut Importer<'m>, name: &'m str) -> Option<f64> {
    let Ok(Item::Tensor(value)) = importer.resolve(name) else { return None };
    let constant = importer.builder.graph().constant(value).filter(|constant| constant.ty().elements() == 1)?;
    constant.splat().map(|number| number.to_f64())
}

#[cfg(test)]
mod tests {
    use crate::import::tests::{import_with, input, model, node};
    use crate::proto::{ModelProto, TensorProto};
    use mlc_import::ImportOptions;
    use mlc_ir::{Float, Graph, Quantization, verify};
    use std::collections::BTreeMap;

    /// Bytes x and y that stand for 0.5 (x - 3), by an operator each, and the same again with another scale.
    fn quantized(other: f32) -> ModelProto {
        let constant = |name: &str, data_type: i32, bytes: Vec<u8>| TensorProto {
            name: name.into(),
            data_type,
            raw_data: Some(bytes.into()),
            ..TensorProto::default()
        };
        let mut x = input("x", &["2"]);
        x.r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().elem_type = 2;
        let nodes = vec![
            node("DequantizeLinear", &["x", "half", "three"], &["real"]),
            node("DequantizeLinear", &["x", "other"], &["again"]),
            node("QuantizeLinear", &["real", "half", "three"], &["y"]),
            node("QuantizeLinear", &["again", "other"], &["z"]),
        ];
        let mut model = model(vec![x], nodes, &["y", "z", "real"]);
        model.graph.as_mut().unwrap().initializer = vec![
            constant("half", 1, 0.5f32.to_le_bytes().to_vec()),
            constant("three", 2, vec![3]),
            constant("other", 1, other.to_le_bytes().to_vec()),
        ];
        model
    }

    fn imported(other: f32) -> Graph {
        let graph = import_with(&quantized(other), &ImportOptions::default()).unwrap().graph;
        verify(&graph).unwrap();
        graph
    }

    #[test]
    fn operators_say_what_integers_stand_for() {
        let meaning = |scale: f64, zero_point| Quantization { scale: Float(scale), zero_point };
        // What two say of x isn't the same.
        let found = imported(0.25).quantization;
        assert_eq!(found.inputs, BTreeMap::new());
        assert_eq!(found.outputs, [(0, meaning(0.5, 3)), (1, meaning(0.25, 0))].into());
        // A scale that is none says nothing.
        assert_eq!(imported(0.0).quantization.outputs, [(0, meaning(0.5, 3))].into());
        let mut agreed = quantized(0.5);
        agreed.graph.as_mut().unwrap().node[1].input.push("three".into());
        let found = import_with(&agreed, &ImportOptions::default()).unwrap().graph.quantization;
        assert_eq!(found.inputs, [(0, meaning(0.5, 3))].into());
    }
}
