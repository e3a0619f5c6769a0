//! Inputs that are given row by row: in the order in which the first nodes read them.

use super::inputs::retype;
use crate::diagnostics::{Code, Diagnostic, Location};
use crate::graph::{Graph, Value};
use crate::ops::Op;

/// Has an input be what the views behind it make of it, as far as they only name its elements in another order and nothing else reads it: an
/// image whose channels are transposed to the end becomes one whose pixels lie one after the other. Returns its rows: the extent of axis 1.
///
/// # Errors
/// `MLC0405` where the result has no rows: fewer than three axes, or more than one image.
pub fn take_rows(graph: &mut Graph, number: usize) -> Result<usize, Diagnostic> {
    let input = Value::from(graph.inputs()[number]);
    while let Some(view) = only_view(graph, input) {
        let ty = graph.ty(view).clone();
        for (node, operand) in graph.uses(view) {
            graph.replace_operand(node, operand, input);
        }
        for output in graph.outputs.iter_mut().filter(|output| output.value == view) {
            output.value = input;
        }
        retype(graph, input, ty);
        graph.remove_dead();
    }
    let ty = graph.ty(input);
    if ty.rank() < 3 || ty.shape[0] != 1 || ty.elements() == 0 {
        let message = format!("the input '{}' has no rows: it is read as {ty}", graph.node(input.node).name);
        let fault = Diagnostic::error(Code::InputNotFed, Location::default(), message);
        return Err(
            fault.with_help("rows are along axis 1 of one image [1, rows, columns, channels]; leave '--feed' out")
        );
    }
    Ok(ty.shape[1])
}

/// The only thing that is made of an input, if it is another order of all of its elements.
fn only_view(graph: &Graph, input: Value) -> Option<Value> {
    let is_output = graph.outputs().iter().any(|output| output.value == input);
    match (&graph.uses(input)[..], is_output) {
        ([(node, _)], false) => match graph.node(*node).op {
            Op::Transpose(_) | Op::Reshape(_) => Some((*node).into()),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Tensor, TensorType};
    use crate::{evaluate, text, verify};

    fn graph(shape: &str, body: &str, result: &str) -> Graph {
        let text = format!("mlc 1\ngraph @g(%x: f32{shape}) -> (\"y\": f32{result}) {{\n{body}  return %y\n}}\n");
        text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    #[test]
    fn channels_go_to_the_end() {
        let body = "  %t = transpose %x {permutation = [0, 2, 3, 1]}\n  %y = unary %t {function = negate}\n";
        let mut graph = graph("[1, 2, 3, 2]", body, "[1, 3, 2, 2]");
        assert_eq!(take_rows(&mut graph, 0).unwrap(), 3);
        verify(&graph).unwrap();
        let ty = TensorType::new(DType::F32, [1, 3, 2, 2]);
        assert_eq!(graph.ty(graph.inputs()[0].into()), &ty);
        let x = Tensor::from_floats(ty, (0..12).map(f64::from).collect());
        let negative: Vec<f64> = (0..12).map(|x| -f64::from(x)).collect();
        assert_eq!(evaluate(&graph, &[x]).unwrap()[0].to_floats(), negative);
    }

    #[test]
    fn reshapes_make_rows() {
        let body = "  %r = reshape %x {shape = [1, 5, 2, 1]}\n  %y = unary %r {function = negate}\n";
        assert_eq!(take_rows(&mut graph("[1, 10]", body, "[1, 5, 2, 1]"), 0).unwrap(), 5);
    }

    #[test]
    fn views_beside_another_reader_stay() {
        let body = "  %t = transpose %x {permutation = [0, 2, 1, 3]}\n  %y = binary %t, %x {function = add}\n";
        let mut graph = graph("[1, 4, 4, 1]", body, "[1, 4, 4, 1]");
        assert_eq!(take_rows(&mut graph, 0).unwrap(), 4);
        assert!(graph.find("t").is_some());
    }

    #[test]
    fn what_has_no_rows_is_told() {
        for shape in ["[10, 4]", "[2, 3, 4]"] {
            let error = take_rows(&mut graph(shape, "  %y = unary %x {function = negate}\n", shape), 0).unwrap_err();
            assert!(error.message.contains("the input 'x' has no rows"), "{error}");
        }
    }
}
