//! Outputs that say less than the model's own, as far as callers want no more.

use super::{Ports, defect};
use crate::diagnostics::Diagnostic;
use crate::graph::{Graph, Value};
use crate::ops::{ArgFunction, ArgReduce, Binary, Cast, Op, Softmax, Unary};
use crate::scalar::{BinaryFunction, UnaryFunction};
use crate::types::DType;

/// Number of the output of a name, or of the only one.
///
/// # Errors
/// `MLC0004` when there is none of the name, or not one only.
pub fn find_output(graph: &Graph, name: Option<&str>) -> Result<usize, Diagnostic> {
    Ports::of(graph).outputs.find(name)
}

/// Makes an output the index of its largest entry along the last axis, as i32. What only makes
/// larger numbers of larger ones is left out in front of it, softmax above all: where that would round different numbers to equal
/// ones, the index is that of the largest number before, the first of equal ones. `composed` gives, of a value and an axis, the operand of what
/// several nodes compute together and keeps the order, such as the softmax of integers.
///
/// # Errors
/// `MLC0004` when it has no axis or no number along it.
pub fn index_of_largest(
    graph: &mut Graph,
    number: usize,
    composed: impl Fn(&Graph, Value, usize) -> Option<Value>,
) -> Result<(), Diagnostic> {
    let (name, mut value) = (graph.outputs()[number].name.clone(), graph.outputs()[number].value);
    let ty = graph.ty(value);
    let Some(axis) = ty.rank().checked_sub(1).filter(|&axis| ty.shape[axis] > 0 && ty.dtype != DType::Bool) else {
        return Err(super::mismatch(format!(
            "the output '{name}' is {ty}: there is no largest entry along its last axis"
        )));
    };
    while let Some(before) = before_increase(graph, value, axis).or_else(|| composed(graph, value, axis)) {
        value = before;
    }
    let largest = ArgReduce { function: ArgFunction::Maximum, axis, keep_axis: false, last: false };
    let index = graph.add(largest, &[value], &format!("{name}.largest")).map_err(defect)?;
    let index = graph.add(Cast { dtype: DType::I32 }, &[index.into()], &format!("{name}.index")).map_err(defect)?;
    graph.outputs[number].value = index.into();
    graph.quantization.outputs.remove(&number);
    graph.remove_dead();
    Ok(())
}

/// The operand, if a value makes larger real numbers of larger ones along an axis.
fn before_increase(graph: &Graph, value: Value, axis: usize) -> Option<Value> {
    let operands = graph.operands(value.node);
    let increases = match &graph.node(value.node).op {
        Op::Softmax(Softmax { axis: own, .. }) => *own == axis,
        Op::Unary(Unary { function }) => INCREASING.contains(function),
        Op::Binary(Binary { function }) => {
            let number = graph.constant(operands[1]).and_then(|constant| constant.splat());
            let number = number.map(|number| number.to_f64()).filter(|number| number.is_finite());
            match function {
                BinaryFunction::Add | BinaryFunction::Subtract => number.is_some(),
                BinaryFunction::Multiply | BinaryFunction::Divide => number.is_some_and(|number| number > 0.0),
                _ => false,
            }
        }
        _ => false,
    };
    let before = operands.first().copied().filter(|_| increases)?;
    (graph.ty(before) == graph.ty(value) && graph.ty(value).dtype.is_float()).then_some(before)
}

/// Functions of all real numbers whose result grows with them.
const INCREASING: [UnaryFunction; 10] = [
    UnaryFunction::Exp,
    UnaryFunction::Exp2,
    UnaryFunction::Sigmoid,
    UnaryFunction::LogSigmoid,
    UnaryFunction::Softplus,
    UnaryFunction::Softsign,
    UnaryFunction::Tanh,
    UnaryFunction::Atan,
    UnaryFunction::Asinh,
    UnaryFunction::Erf,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;
    use crate::types::TensorType;
    use crate::{evaluate, text, verify};

    /// x -> y, and what stands between.
    fn graph(steps: &str) -> Graph {
        let text = format!(
            "mlc 1\ngraph @g(%x: f32[2, 3]) -> (\"y\": f32[2, 3], \"z\": f32[]) {{\n  %two = constant f32[] [2.0]\n  \
             %less = constant f32[] [-2.0]\n{steps}  return %y, %two\n}}\n"
        );
        text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    fn operators(graph: &Graph) -> Vec<&'static str> {
        let order = graph.topological_order();
        order
            .into_iter()
            .map(|id| graph.node(id).op.name())
            .filter(|name| !["input", "constant"].contains(name))
            .collect()
    }

    #[test]
    fn what_only_grows_is_left_out() {
        for (steps, left) in [
            ("  %y = softmax %x {axis = 1, logarithm = false}\n", &[][..]),
            ("  %y = softmax %x {axis = 1, logarithm = true}\n", &[]),
            ("  %y = softmax %x {axis = 0, logarithm = false}\n", &["softmax"]),
            ("  %a = binary %x, %two {function = divide}\n  %y = unary %a {function = sigmoid}\n", &[]),
            ("  %y = binary %x, %less {function = multiply}\n", &["binary"]),
            ("  %y = binary %two, %x {function = subtract}\n", &["binary"]),
            ("  %y = unary %x {function = relu}\n", &["unary"]),
        ] {
            let mut graph = graph(steps);
            let x = Tensor::from_floats(TensorType::new(DType::F32, [2, 3]), vec![1.0, 3.0, 2.0, 6.0, 4.0, 5.0]);
            let values = evaluate(&graph, std::slice::from_ref(&x)).unwrap()[0].to_floats();
            index_of_largest(&mut graph, 0, |_, _, _| None).unwrap();
            verify(&graph).unwrap();
            assert_eq!(operators(&graph), [left, &["arg_reduce", "cast"]].concat(), "{steps}");
            let index = evaluate(&graph, std::slice::from_ref(&x)).unwrap().remove(0);
            let expected =
                values.chunks(3).map(|row| (0..3).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as i64);
            assert_eq!(index.to_integers(), expected.collect::<Vec<_>>());
            assert_eq!(*index.ty(), TensorType::new(DType::I32, [2]));
        }
    }

    #[test]
    fn every_increasing_function_grows() {
        for function in INCREASING {
            let mut graph = Graph::new("g");
            let x = graph.add_input("x", TensorType::new(DType::F64, [161]));
            let y = graph.add(Unary { function }, &[x], "y").unwrap();
            graph.add_output("y", y.into());
            let numbers = (-80..=80).map(|number| f64::from(number) / 20.0).collect();
            let x = Tensor::from_floats(TensorType::new(DType::F64, [161]), numbers);
            let y = evaluate(&graph, &[x]).unwrap()[0].to_floats();
            assert!(y.windows(2).all(|pair| pair[0] < pair[1]), "{function:?}: {y:?}");
        }
    }

    #[test]
    fn numbers_that_softmax_rounds_to_equal_ones_are_told_apart() {
        let mut graph = graph("  %y = softmax %x {axis = 1, logarithm = false}\n");
        let x = Tensor::from_floats(TensorType::new(DType::F32, [2, 3]), vec![0.0, 1e-10, 0.0, 2.0, 1.0, 2.0]);
        let y = evaluate(&graph, std::slice::from_ref(&x)).unwrap()[0].to_floats();
        assert_eq!(y[0], y[1]);
        index_of_largest(&mut graph, 0, |_, _, _| None).unwrap();
        assert_eq!(evaluate(&graph, &[x]).unwrap()[0].to_integers(), [1, 0]);
    }

    #[test]
    fn outputs_without_a_largest_entry_are_refused() {
        let steps = "  %y = unary %x {function = relu}\n";
        for (name, message) in [(None, "has 2 outputs"), (Some("w"), "no output 'w'")] {
            let error = find_output(&graph(steps), name).unwrap_err();
            assert!(error.message.contains(message), "{error}");
        }
        assert_eq!(find_output(&graph(steps), Some("z")).unwrap(), 1);
        let error = index_of_largest(&mut graph(steps), 1, |_, _, _| None).unwrap_err();
        assert!(error.message.contains("the output 'z' is f32[]"), "{error}");
    }
}
