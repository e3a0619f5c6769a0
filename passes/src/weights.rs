//! Weights in half precision: constants that dense operators multiply singles by are kept as halves, sums stay singles. It is no rule: it
//! changes values, so only the user can ask for it.

use mlc_ir::{Attribute, DType, Graph, NodeId, Op, OperatorError, Tensor, TensorType, Value};
use std::collections::BTreeMap;

/// What became of a graph's weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NarrowedWeights {
    /// Names of the constants that are halves now.
    pub narrowed: Vec<String>,
    /// Names of those that stay singles, since one of their numbers is beyond the type's range, with that number.
    pub kept: Vec<(String, f64)>,
    /// The constant that rounding moved furthest, and by how much.
    pub furthest: Option<(String, f64)>,
}

/// The graph with the weights of its convolutions and matrix products rounded to `half`, where they are constant singles.
///
/// # Errors
/// When an operator doesn't take its operands then, which is a defect.
pub fn narrow(mut graph: Graph, half: DType) -> Result<(Graph, NarrowedWeights), OperatorError> {
    let mut report = NarrowedWeights::default();
    let mut known: BTreeMap<Value, Option<Value>> = BTreeMap::new();
    for id in graph.topological_order() {
        let Some(op) = with_wide_sums(&graph.node(id).op) else { continue };
        let Some(&weights) = graph.operands(id).get(1) else { continue };
        if !takes_singles(&graph, id) {
            continue;
        }
        let Some(constant) = graph.constant(weights).cloned() else { continue };
        let narrowed =
            *known.entry(weights).or_insert_with(|| narrowed(&mut graph, weights, &constant, half, &mut report));
        if let Some(narrowed) = narrowed {
            graph.replace_operand(id, 1, narrowed);
            graph.replace_op(id, op)?;
        }
    }
    graph.remove_dead();
    Ok((graph, report))
}

/// A dense operator that adds up singles, alone or with an epilogue, as one that takes halves for weights.
fn with_wide_sums(op: &Op) -> Option<Op> {
    let sums = Some(DType::F32);
    match op {
        Op::Kernel(kernel) => {
            let anchor = Box::new(with_wide_sums(&kernel.anchor)?);
            Some(mlc_ir::ops::Kernel { anchor, ..kernel.clone() }.into())
        }
        Op::Convolution(op) if op.sums.is_none() => Some(mlc_ir::ops::Convolution { sums, ..op.clone() }.into()),
        Op::TransposedConvolution(op) if op.sums.is_none() => {
            Some(mlc_ir::ops::TransposedConvolution { sums, ..op.clone() }.into())
        }
        Op::Matmul(op) if op.sums.is_none() => Some(mlc_ir::ops::Matmul { sums, ..op.clone() }.into()),
        _ => None,
    }
}

fn takes_singles(graph: &Graph, id: NodeId) -> bool {
    graph.operand_types(id).iter().take(2).all(|ty| ty.dtype == DType::F32)
}

/// The constant in half precision, unless a finite number of it is none there.
fn narrowed(
    graph: &mut Graph,
    weights: Value,
    constant: &Attribute,
    half: DType,
    report: &mut NarrowedWeights,
) -> Option<Value> {
    let name = graph.node(weights.node).name.to_string();
    let singles = constant.to_tensor().to_floats();
    let rounded = Tensor::from_floats(TensorType { dtype: half, ..constant.ty().clone() }, singles.clone());
    let mut furthest = 0.0f64;
    for (&single, half) in singles.iter().zip(rounded.to_floats()) {
        if single.is_finite() && !half.is_finite() {
            report.kept.push((name, single));
            return None;
        }
        let distance = (single - half).abs();
        furthest = if distance > furthest { distance } else { furthest };
    }
    if report.furthest.as_ref().is_none_or(|(_, known)| furthest > *known) {
        report.furthest = Some((name.clone(), furthest));
    }
    report.narrowed.push(name.clone());
    Some(graph.add_constant(&name, Attribute::from_tensor(&rounded)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::text;

    #[test]
    fn constant_singles_become_halves_unless_one_is_beyond_their_range() {
        let graph = text::parse(
            "mlc 1\ngraph @g(%x: f32[2, 2]) -> (\"y\": f32[2, 2]) {\n  %a = constant f32[2, 2] [1.0, 0.1, -3.0, 2.0]\n  \
             %b = constant f32[2, 2] [1.0, 70000.0, 0.0, 1.0]\n  \
             %p = matmul %x, %a {transpose_left = false, transpose_right = false}\n  \
             %q = matmul %p, %b {transpose_left = false, transpose_right = false}\n  \
             %r = matmul %q, %a {transpose_left = false, transpose_right = false}\n  \
             %y = matmul %r, %x {transpose_left = false, transpose_right = false}\n  return %y\n}\n",
            &(),
        );
        let graph = graph.unwrap();
        let (narrowed, report) = narrow(graph.clone(), DType::F16).unwrap();
        mlc_ir::verify(&narrowed).unwrap();
        assert_eq!(report.narrowed, ["a"]);
        assert_eq!(report.kept, [("b".to_owned(), 70000.0)]);
        let (name, distance) = report.furthest.unwrap();
        assert!(name == "a" && distance > 2e-5 && distance < 3e-5, "{distance}");
        let dtypes: Vec<DType> = ["p", "q", "r", "y"]
            .iter()
            .map(|name| narrowed.operand_types(narrowed.find(name).unwrap())[1].dtype)
            .collect();
        assert_eq!(dtypes, [DType::F16, DType::F32, DType::F16, DType::F32]);
        let (all, report) = narrow(graph, DType::Bf16).unwrap();
        mlc_ir::verify(&all).unwrap();
        assert!(report.kept.is_empty() && report.narrowed == ["a", "b"]);
    }
}
