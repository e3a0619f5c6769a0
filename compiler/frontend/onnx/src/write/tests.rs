use super::*;
use crate::{import, read};
use mlc_ir::{Float, Generator, Tensor, evaluate, text};

fn parsed(body: &str) -> Graph {
    text::parse(body, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// What a file's graph computes for random inputs beside what the written one did.
fn outputs(graph: &Graph, integers: &Integers) -> (Vec<f64>, Vec<f64>) {
    let bytes = write(graph, integers).unwrap_or_else(|faults| panic!("{faults:?}"));
    let model = read(&bytes.into()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let imported = import(&model, &(), &mlc_import::ImportOptions::default());
    let again = imported.unwrap_or_else(|faults| panic!("{faults:?}")).graph;
    let mut generator = Generator::new(7);
    let inputs: Vec<Tensor> = graph.inputs().iter().map(|&input| generator.tensor(graph.ty(input.into()))).collect();
    let of = |graph: &Graph| evaluate(graph, &inputs).unwrap().iter().flat_map(Tensor::to_floats).collect();
    (of(graph), of(&again))
}

const OPERATORS: &str = "mlc 1
    graph @g(%x: f32[1, 6, 6, 2], %y: f32[2, 4]) -> (\"a\", \"out put\", \"t\") {
      %w = constant f32[3, 3, 1, 4] random(seed = 3)
      %b = constant f32[4] [0.5, -0.25, 0.125, 1.0]
      %c = convolution %x, %w {strides = [1, 2], dilations = [1, 1], pads = [[1, 0], [1, 1]], groups = 2}
      %a = binary %c, %b {function = add}
      %r = clamp %a {low = 0.0, high = 6.0}
      %p = max_pool %r {window = [2, 2], strides = [1, 1], dilations = [1, 1], pads = [[0, 1], [0, 1]]}
      %v = constant f32[2, 2, 4, 3] random(seed = 5)
      %d = transposed_convolution %p, %v {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [1, 0]], output_pads = [1, 0], groups = 1}
      %q = pad %d {pads = [[0, 0], [1, 0], [0, 1], [0, 0]], mode = constant, value = 0.5_f32}
      %s = slice %q {starts = [0, 5, 0, 0], sizes = [1, 3, 4, 3], steps = [1, -2, 1, 1]}
      %g = average_pool %s {window = [3, 4], strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], counted_pads = [[0, 0], [0, 0]]}
      %f = reshape %g {shape = [1, 3]}
      %m = constant f32[3, 3] random(seed = 6)
      %l = matmul %f, %m {transpose_left = false, transpose_right = true}
      %e = softmax %l {axis = 1, logarithm = false}
      %n = reduce %y {function = maximum, axes = [0], keep_axes = false}
      %o = map %n {expression = t0 = silu(x0); select(less(x0, 0.25_f32), t0, negate(x0))}
      %z = broadcast %o {shape = [2, 4]}
      %k = concat %z, %y {axis = 1}
      %t = transpose %k {permutation = [1, 0]}
      return %e, %k, %t
    }";

#[test]
fn written_operators_compute_the_same() {
    let graph = parsed(OPERATORS);
    let (before, after) = outputs(&graph, &Integers::default());
    assert_eq!(before.len(), after.len());
    for (before, after) in before.iter().zip(&after) {
        assert!((before - after).abs() < 1e-5, "{before} {after}");
    }
    assert_eq!(write(&graph, &Integers::default()).unwrap(), write(&graph, &Integers::default()).unwrap());
}

#[test]
fn what_cannot_be_written_is_named() {
    let graph = parsed(
        "mlc 1 graph @g(%x: f32[2, 3]) -> (\"y\") {
          %c = cumulative %x {function = sum, axis = 1, exclusive = false, reverse = false}
          %t = unary %c {function = truncate}
          return %t
        }",
    );
    let faults = write(&graph, &Integers::default()).unwrap_err();
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages, ["cumulative can't be written as ONNX", "the function truncate can't be written as ONNX"]);
    assert_eq!(faults[0].location.node.as_deref(), Some("c"));
}

#[test]
fn integers_are_pairs_around_what_computes_with_them() {
    let graph = parsed(
        "mlc 1 graph @g(%x: f32[1, 2]) -> (\"y\") {
          %w = constant f32[2, 2] [0.5, 1.0, -1.0, 0.25]
          %m = matmul %x, %w {transpose_left = false, transpose_right = true}
          %s = unary %m {function = sin}
          return %s
        }",
    );
    let product = graph.find("m").unwrap();
    let quantization = |scale| Quantization { scale: Float(scale), zero_point: -3 };
    let stored = |dtype, shape: &[usize], values: &[i64]| {
        Attribute::from_tensor(&Tensor::from_integers(TensorType::new(dtype, shape), values.to_vec()))
    };
    let weights = stored(DType::I8, &[2, 2], &[64, 127, -127, 32]);
    let constant = IntegerConstant { integers: weights, scales: vec![1.0 / 128.0, 1.0 / 127.0], axis: 0 };
    let bias = IntegerConstant { integers: stored(DType::I32, &[2], &[1, 2]), scales: vec![0.001], axis: 0 };
    let integers = Integers {
        nodes: [product].into(),
        tensors: [(graph.inputs()[0].into(), quantization(1.0 / 64.0)), (product.into(), quantization(1.0 / 32.0))]
            .into(),
        constants: [((product, 1), constant)].into(),
        added: [(product.into(), bias)].into(),
    };
    let model = read(&write(&graph, &integers).unwrap().into()).unwrap();
    let kinds: Vec<&str> = model.graph.node.iter().map(|node| node.op_type.as_str()).collect();
    let expected = [
        "QuantizeLinear",
        "DequantizeLinear",
        "DequantizeLinear",
        "MatMul",
        "DequantizeLinear",
        "Add",
        "QuantizeLinear",
        "DequantizeLinear",
        "Sin",
        "Identity",
    ];
    // The transposed weights are written transposed, with their scales along the other axis.
    assert_eq!(kinds, expected);
    let axis = model.graph.node[2].attribute.iter().find(|attribute| attribute.name == "axis").unwrap();
    assert_eq!(axis.i, Some(1));
    let (before, after) = outputs(&graph, &integers);
    for (before, after) in before.iter().zip(&after) {
        assert!((before - after).abs() < 0.05, "{before} {after}");
    }
}
