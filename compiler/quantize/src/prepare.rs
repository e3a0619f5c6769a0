//! [`prepare`]: a graph in the form that layers are found in.

use crate::layers::{bias_of, only_user};
use mlc_ir::ops::Binary;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Diagnostic, Graph, IntegerForm, NodeId, Op, Value};
use mlc_passes::{OptimizeOptions, optimize};

/// The stage of the optimiser that folds scales and shifts into weights: what follows it suits code, not quantisation.
const LAST_STAGE: &str = "fold";

/// Folds batch normalisations into weights and moves transposes out of the way, as the optimiser does, and brings biases back to the
/// layers that they are of.
///
/// # Errors
/// When the graph breaks an invariant.
pub fn prepare(graph: &Graph) -> Result<Graph, Diagnostic> {
    let options = OptimizeOptions { stop_after: Some(LAST_STAGE.to_owned()), ..OptimizeOptions::default() };
    let (mut graph, _) = optimize(graph.clone(), &options, &mut |_, _| {})?;
    for node in graph.topological_order() {
        bring_back(&mut graph, node);
    }
    graph.remove_dead();
    Ok(graph)
}

/// Makes `(products + y) + bias` to `(products + bias) + y`, where nobody else wants the sums.
fn bring_back(graph: &mut Graph, node: NodeId) {
    let Some((sum, bias, products, other)) = misplaced(graph, node) else { return };
    let (name, origins) = (graph.node(products.node).name.to_string(), graph.node(products.node).origins.clone());
    let add = Op::from(Binary { function: B::Add });
    let Ok(biased) = graph.add_with_origins(add.clone(), &[products, bias], &format!("{name}.bias"), origins) else {
        return;
    };
    let (name, origins) = (graph.node(node).name.to_string(), graph.node(sum.node).origins.clone());
    let Ok(moved) = graph.add_with_origins(add, &[biased.into(), other], &name, origins) else { return };
    if graph.ty(moved.into()) == graph.ty(node.into()) {
        graph.replace_value(node.into(), moved.into());
    }
}

/// The inner sum, the bias, its products without a bias of their own, and what these are added to.
fn misplaced(graph: &Graph, node: NodeId) -> Option<(Value, Value, Value, Value)> {
    let operands = graph.operands(node);
    let sum = operands.into_iter().find(|&operand| graph.constant(operand).is_none())?;
    let bias = bias_of(graph, node, sum)?;
    let is_sum = matches!(&graph.node(sum.node).op, Op::Binary(op) if op.function == B::Add);
    if !is_sum || only_user(graph, sum) != Some(node) {
        return None;
    }
    let [one, other] = graph.operands(sum.node)[..] else { return None };
    [(one, other), (other, one)].into_iter().find_map(|(products, other)| {
        let is_products = graph.node(products.node).op.integer_form() == IntegerForm::Products;
        let is_free = is_products && products != other && only_user(graph, products) == Some(sum.node);
        let fits = is_free && graph.ty(products) == graph.ty(sum) && graph.constant(other).is_none();
        fits.then_some((sum, bias, products, other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers;

    #[test]
    fn biases_stay_with_their_layers() {
        let text = "mlc 1
            graph @g(%x: f32[1, 4], %y: f32[1, 4]) -> (\"z\") {
              %w = constant f32[4, 2] [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
              %v = constant f32[4, 2] [0.8, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.1]
              %b = constant f32[2] [1.0, 2.0]
              %m = matmul %x, %w {transpose_left = false, transpose_right = false}
              %n = matmul %y, %v {transpose_left = false, transpose_right = false}
              %a = binary %m, %b {function = add}
              %s = binary %a, %n {function = add}
              return %s
            }";
        let graph = prepare(&mlc_ir::text::parse(text, &()).unwrap()).unwrap();
        mlc_ir::verify(&graph).unwrap();
        let (layers, _) = layers::find(&graph);
        assert_eq!(layers.len(), 3, "{}", mlc_ir::text::print(&graph));
        assert_eq!(layers.iter().filter(|layer| layer.bias.is_some()).count(), 1);
    }
}
