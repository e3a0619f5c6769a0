//! Whole networks: what each part of quantisation is for, on a network that needs it.

use super::*;
use mlc_ir::{DType, Generator, TensorType, Values, evaluate};

/// A network of two layers of products with a rectifier between them; names of nodes are `first` and `second`.
fn network(first: &[f32], second: &[f32], bias: &[f32], shape: [usize; 3]) -> Graph {
    use mlc_ir::Attribute;
    use mlc_ir::ops::{Binary, Matmul, Unary};
    use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
    let [inputs, hidden, outputs] = shape;
    let mut graph = Graph::new("net");
    let x = graph.add_input("x", TensorType::new(DType::F32, [1, inputs]));
    let product = Matmul { transpose_left: false, transpose_right: false, sums: None };
    let add = Binary { function: BinaryFunction::Add };
    let weights = graph.add_constant("w1", Attribute::from_f32(&[inputs, hidden], first).unwrap());
    let sums = graph.add(product.clone(), &[x, weights], "first").unwrap();
    let bias = graph.add_constant("b1", Attribute::from_f32(&[hidden], bias).unwrap());
    let biased = graph.add(add, &[sums.into(), bias], "biased").unwrap();
    let relu = graph.add(Unary { function: UnaryFunction::Relu }, &[biased.into()], "relu").unwrap();
    let weights = graph.add_constant("w2", Attribute::from_f32(&[hidden, outputs], second).unwrap());
    let sums = graph.add(product, &[relu.into(), weights], "second").unwrap();
    graph.add_output("y", sums.into());
    graph
}

fn numbers(generator: &mut Generator, count: usize) -> Vec<f32> {
    (0..count).map(|_| generator.unit() as f32).collect()
}

fn inputs(seed: u64, runs: usize, elements: usize) -> Vec<Vec<Tensor>> {
    let mut generator = Generator::new(seed);
    let ty = TensorType::new(DType::F32, [1, elements]);
    let tensor =
        |generator: &mut Generator| Tensor::from_floats(ty.clone(), (0..elements).map(|_| generator.unit()).collect());
    (0..runs).map(|_| vec![tensor(&mut generator)]).collect()
}

fn quantized(graph: &Graph, runs: &[Vec<Tensor>], options: &Options) -> Quantized {
    quantize(graph, runs, options).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The relative error on inputs that calibration may not have seen.
fn error(graph: &Graph, quantized: &Graph, runs: &[Vec<Tensor>]) -> f64 {
    let (mut noise, mut signal) = (0.0, 0.0);
    for run in runs {
        let (actual, expected) = (evaluate(quantized, run).unwrap(), evaluate(graph, run).unwrap());
        for (actual, expected) in actual[0].to_floats().into_iter().zip(expected[0].to_floats()) {
            noise += (actual - expected).powi(2);
            signal += expected * expected;
        }
    }
    (noise / signal).sqrt()
}

fn plain() -> (Graph, Vec<Vec<Tensor>>) {
    let mut generator = Generator::new(1);
    let (first, second) = (numbers(&mut generator, 8 * 16), numbers(&mut generator, 16 * 4));
    (network(&first, &second, &numbers(&mut generator, 16), [8, 16, 4]), inputs(2, 20, 8))
}

#[test]
fn a_network_becomes_integers_in_all_layers() {
    let (graph, runs) = plain();
    let Quantized { graph: integers, report, notes, .. } = quantized(&graph, &runs, &Options::default());
    assert!(notes.is_empty() && report.float.is_empty(), "{notes:?}");
    let names: Vec<&str> = report.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert!(names.contains(&"first") && names.contains(&"second"), "{names:?}");
    assert!(report.layers.is_sorted_by(|one, other| one.own.sqnr_db <= other.own.sqnr_db));
    let products = integers.node_ids().filter(|&id| integers.node(id).op.name() == "matmul");
    let dtypes: Vec<Vec<DType>> =
        products.map(|id| integers.operand_types(id).into_iter().map(|ty| ty.dtype).collect()).collect();
    assert_eq!(dtypes, vec![vec![DType::I8; 2]; 2]);
    let sqnr = report.outputs[0].error.sqnr_db;
    assert!((35.0..60.0).contains(&sqnr), "{sqnr}");
    assert!((error(&graph, &integers, &runs) - report.outputs[0].error.relative).abs() < 1e-9);
    // The source operators of integers are known.
    let first = integers.node_ids().find(|&id| integers.node(id).op.name() == "matmul").unwrap();
    assert!(integers.node(first).name.starts_with("first"), "{}", integers.node(first).name);
}

#[test]
fn the_same_data_give_the_same_graph_in_any_order() {
    let (graph, mut runs) = plain();
    let text = |runs: &[Vec<Tensor>]| {
        let options = Options { method: Method::Entropy, equalise: true, ..Options::default() };
        let graph = quantized(&graph, runs, &options).graph;
        mlc_ir::text::print_with_constants(&graph)
    };
    let one = text(&runs);
    runs.reverse();
    assert_eq!(one, text(&runs));
}

#[test]
fn percentile_and_entropy_bear_outliers() {
    let (graph, _) = plain();
    let mut runs = inputs(2, 8000, 8);
    let typical = inputs(77, 50, 8);
    // One element of 64,000 is far beyond all others.
    let Values::Float(values) = runs[9][0].values() else { panic!() };
    let mut values = values.clone();
    values[3] = 60.0;
    runs[9] = vec![Tensor::from_floats(runs[9][0].ty().clone(), values)];
    let with = |method| {
        let options = Options { method, ..Options::default() };
        error(&graph, &quantized(&graph, &runs, &options).graph, &typical)
    };
    let extremes = with(Method::MinMax);
    for method in [Method::Percentile, Method::Entropy] {
        let found = with(method);
        assert!(found < extremes / 3.0, "{method:?}: {found}, extremes: {extremes}");
    }
}

#[test]
fn equalisation_evens_channels_out() {
    let mut generator = Generator::new(5);
    let (mut first, mut second) = (numbers(&mut generator, 8 * 16), numbers(&mut generator, 16 * 4));
    let mut bias = numbers(&mut generator, 16);
    // The first half of the channels is a thousand times larger than the other one, and weighs a thousand times less.
    for channel in 0..8 {
        (0..8).for_each(|row| first[row * 16 + channel] *= 1000.0);
        bias[channel] *= 1000.0;
        (0..4).for_each(|column| second[channel * 4 + column] /= 1000.0);
    }
    let graph = network(&first, &second, &bias, [8, 16, 4]);
    let runs = inputs(6, 30, 8);
    let with = |equalise| quantized(&graph, &runs, &Options { equalise, ..Options::default() });
    let (without, with) = (with(false), with(true));
    assert_eq!((without.report.equalised, with.report.equalised), (0, 1));
    let [without, with] = [without, with].map(|quantized| error(&graph, &quantized.graph, &runs));
    assert!(with < 0.02 && without > 10.0 * with, "{without} without, {with} with");
}

#[test]
fn equalisation_keeps_the_network() {
    let (graph, runs) = plain();
    let prepared = prepare(&graph).unwrap();
    let (layers, _) = layers::find(&prepared);
    let seen = plan::calibrate(&prepared, &layers, &runs).unwrap();
    let mut equalised = prepared.clone();
    assert_eq!(equalise::equalise(&mut equalised, &layers, &seen).unwrap(), 1);
    mlc_ir::verify(&equalised).unwrap();
    assert!(error(&prepared, &equalised, &runs) < 1e-5);
}

#[test]
fn bias_correction_takes_the_mean_error_away() {
    // One weight of each channel is large, the others are too small for a step; operands have a mean.
    let mut generator = Generator::new(8);
    let first: Vec<f32> = (0..32 * 16).map(|place| if place < 16 { 1.0 } else { 0.0035 }).collect();
    let second = numbers(&mut generator, 16 * 4);
    let graph = network(&first, &second, &[0.0; 16], [32, 16, 4]);
    let ty = TensorType::new(DType::F32, [1, 32]);
    let positive = |_| vec![Tensor::from_floats(ty.clone(), (0..32).map(|_| 1.0 + generator.unit() / 2.0).collect())];
    let runs: Vec<Vec<Tensor>> = (0..30).map(positive).collect();
    let with = |bias_correction| quantized(&graph, &runs, &Options { bias_correction, ..Options::default() });
    let [without, with] = [with(false), with(true)].map(|quantized| error(&graph, &quantized.graph, &runs));
    assert!(with < without / 3.0, "{without} without, {with} with");
}

#[test]
fn kept_layers_compute_with_real_numbers() {
    let (graph, runs) = plain();
    let options = Options { keep: vec!["first".into()], ..Options::default() };
    let Quantized { graph: mixed, report, .. } = quantized(&graph, &runs, &options);
    let products = mixed.node_ids().filter(|&id| mixed.node(id).op.name() == "matmul");
    let mut dtypes: Vec<DType> = products.map(|id| mixed.operand_types(id)[0].dtype).collect();
    dtypes.sort_unstable();
    assert_eq!(dtypes, [DType::F32, DType::I8]);
    assert_eq!((report.float[0].name.as_str(), report.float[0].reason.as_str()), ("first", "kept by name"));
    let options = Options { keep: vec!["firs".into()], ..Options::default() };
    let faults = quantize(&graph, &runs, &options).unwrap_err();
    assert_eq!(faults[0].code, Code::OptionMismatch);
    assert!(faults[0].help.as_ref().unwrap().contains("first"), "{faults:?}");
}

#[test]
fn an_error_keeps_as_many_layers_as_it_takes() {
    let (graph, runs) = plain();
    let all = quantized(&graph, &runs, &Options::default()).report;
    let error = all.outputs[0].error.relative;
    let with = |most| quantized(&graph, &runs, &Options { max_error: Some(most), ..Options::default() }).report;
    assert!(with(error * 1.01).float.is_empty());
    let report = with(error * 0.99);
    assert!(report.outputs[0].error.relative <= error * 0.99);
    assert_eq!(report.float.len(), 1, "{report:?}");
    // The worst layer by itself is the first to be kept.
    assert_eq!(report.float[0].name, all.layers[0].name);
    assert_eq!(with(0.0).outputs[0].error.relative, 0.0);
}

#[test]
fn interfaces_of_integers_say_what_they_stand_for() {
    let (graph, runs) = plain();
    let float = quantized(&graph, &runs, &Options::default());
    let options = Options { interface: Interface::Integers, ..Options::default() };
    let Quantized { graph: integers, report, .. } = quantized(&graph, &runs, &options);
    assert_eq!(integers.ty(integers.inputs()[0].into()).dtype, DType::I8);
    assert_eq!(integers.ty(integers.outputs()[0].value).dtype, DType::I8);
    let quantization = &integers.quantization;
    assert!((quantization.inputs[&0].scale.0 - 2.0 / 255.0).abs() < 1e-3, "{quantization:?}");
    assert!(quantization.outputs.contains_key(&0));
    // Inside nothing differs.
    assert_eq!(report, float.report);
}

#[test]
fn other_operators_have_forms_of_integers_too() {
    let text = "mlc 1
        graph @g(%x: f32[1, 6, 6, 2]) -> (\"y\") {
          %w = constant f32[3, 3, 2, 4] random(seed = 3)
          %b = constant f32[4] [0.5, -0.25, 0.125, 1.0]
          %c = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
          %a = binary %c, %b {function = add}
          %r = clamp %a {low = 0.0, high = 6.0}
          %p = max_pool %r {window = [2, 2], strides = [1, 1], dilations = [1, 1], pads = [[0, 1], [0, 1]]}
          %s = binary %p, %r {function = add}
          %m = binary %s, %p {function = multiply}
          %t = unary %m {function = tanh}
          %k = concat %t, %s {axis = 3}
          %q = pad %k {pads = [[0, 0], [1, 0], [0, 1], [0, 0]], mode = constant, value = 0.0_f32}
          %v = average_pool %q {window = [7, 7], strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], counted_pads = [[0, 0], [0, 0]]}
          %f = reshape %v {shape = [1, 8]}
          %e = softmax %f {axis = 1, logarithm = false}
          return %e
        }";
    let graph = mlc_ir::text::parse(text, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let ty = graph.ty(graph.inputs()[0].into()).clone();
    let mut generator = Generator::new(4);
    let runs: Vec<Vec<Tensor>> = (0..5).map(|_| vec![generator.tensor(&ty)]).collect();
    let Quantized { graph: integers, report, notes, .. } = quantized(&graph, &runs, &Options::default());
    assert!(notes.is_empty() && report.float.is_empty(), "{}", report.text());
    for layer in &report.layers {
        assert!(layer.own.sqnr_db > 25.0, "{}", report.text());
    }
    assert!(report.outputs[0].error.cosine > 0.999, "{}", report.text());
    let floats = integers.node_ids().filter(|&id| integers.node(id).results[0].dtype == DType::F32);
    let constants =
        floats.filter(|&id| !matches!(integers.node(id).op.name(), "constant" | "input" | "map" | "binary"));
    assert_eq!(constants.count(), 0, "{}", mlc_ir::text::print(&integers));
}

#[test]
fn what_has_no_form_of_integers_stays_float_between_integers() {
    let text = "mlc 1
        graph @g(%x: f32[1, 4]) -> (\"y\") {
          %w = constant f32[4, 4] random(seed = 3)
          %v = constant f32[4, 3] random(seed = 4)
          %m = matmul %x, %w {transpose_left = false, transpose_right = false}
          %u = cumulative %m {function = sum, axis = 1, exclusive = false, reverse = false}
          %n = matmul %u, %v {transpose_left = false, transpose_right = false}
          return %n
        }";
    let graph = mlc_ir::text::parse(text, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let Quantized { graph: mixed, notes, report, .. } = quantized(&graph, &inputs(3, 10, 4), &Options::default());
    assert_eq!(notes.len(), 1);
    assert_eq!((notes[0].code, notes[0].location.node.as_deref()), (Code::LayerInFloat, Some("u")));
    let sum = mixed.node_ids().find(|&id| mixed.node(id).op.name() == "cumulative").unwrap();
    assert_eq!(mixed.operand_types(sum)[0].dtype, DType::F32);
    assert_eq!(report.layers.len(), 2);
    assert!(report.outputs[0].error.sqnr_db > 25.0, "{}", report.text());
}
