//! Results of right implementations that are far from the evaluator's in units of the last place.

use super::{Bounds, judge};
use mlc_ir::{DType, Tensor, TensorType};

/// Compares the output of a graph of one input, as an implementation may give it.
fn judged(text: &str, input: &[f64], output: Tensor) -> Result<(), String> {
    let graph = mlc_ir::text::parse(text, &()).expect("the text is a graph");
    let inputs = [Tensor::from_floats(graph.ty(graph.inputs()[0].into()).clone(), input.to_vec())];
    let bounds = Bounds::of(&graph, &inputs).expect("the graph has a value");
    judge(&graph, &inputs, &bounds, &[output]).map(|_| ())
}

#[test]
fn the_logarithm_of_a_softmax_keeps_the_rounding_of_its_sum() {
    let text = "mlc 1\ngraph @g(%x: f64[3]) -> (\"y\": f64[3]) {\n  %y = softmax %x {axis = 0, logarithm = true} : f64[3]\n  return %y\n}\n";
    let x = [10.7_f64, 0.0, -0.1];
    let sum: f64 = x.iter().map(|value| (value - x[0]).exp()).sum();
    let rounded = x.map(|value| value - x[0] - (sum + f64::EPSILON).ln());
    let [floats, wrong] = [rounded, [rounded[0] * 1.000_001, rounded[1], rounded[2]]]
        .map(|values| Tensor::from_floats(TensorType::new(DType::F64, [3]), values.to_vec()));
    assert_eq!(judged(text, &x, floats), Ok(()));
    assert!(judged(text, &x, wrong).is_err());
}

#[test]
fn a_sum_that_cancels_may_be_zero_and_then_untrue() {
    let text = "mlc 1\ngraph @g(%x: f32[32]) -> (\"y\": bool[32]) {\n  %g = unary %x {function = gelu} : f32[32]\n  %y = cast %g {dtype = bool} : bool[32]\n  return %y\n}\n";
    let truths = |values: &[i64]| Tensor::from_integers(TensorType::new(DType::Bool, [32]), values.to_vec());
    // In single precision 1 + erf(-4.2) may be 0; -1 is far from that.
    let x: Vec<f64> = (0..32).map(|k| if k == 31 { -1.0 } else { -6.0 - 0.01 * f64::from(k) }).collect();
    let [mut zeros, mut wrong] = [vec![0; 32], vec![1; 32]];
    zeros[31] = 1;
    wrong[31] = 0;
    assert_eq!(judged(text, &x, truths(&[1; 32])), Ok(()));
    assert_eq!(judged(text, &x, truths(&zeros)), Ok(()));
    assert!(judged(text, &x, truths(&wrong)).is_err());
}
