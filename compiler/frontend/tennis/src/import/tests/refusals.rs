//! What is refused, and why.

use super::*;
use Operand::{Fed, Known};
use indexmap::IndexMap;

fn has(found: &str, words: &[&str]) {
    for word in words {
        assert!(found.contains(word), "`{word}` isn't in: {found}");
    }
}

fn x() -> Operand {
    Fed(counted(&[1, 2, 4, 4]))
}

fn pool(kind: i32, window: i32, pads: [i32; 4]) -> Vec<(&'static str, Field)> {
    vec![
        ("format", Field::of_text("NCHW")),
        ("type", int(kind)),
        ("padding", Field::of_ints(&[4, 2], &[&[0; 4][..], &pads].concat())),
        ("ksize", list(&[1, 1, window, window])),
        ("stride", list(&[1, 1, 2, 2])),
    ]
}

fn convolution(changes: &[(&'static str, Field)]) -> Vec<(&'static str, Field)> {
    let usual = [
        ("format", Field::of_text("NCHW")),
        ("stride", list(&[1, 1, 1, 1])),
        ("dilation", list(&[1, 1, 1, 1])),
        ("padding", Field::of_ints(&[4, 2], &[0; 8])),
    ];
    let mut parameters: IndexMap<&str, Field> = usual.into();
    parameters.extend(changes.iter().cloned());
    parameters.into_iter().collect()
}

fn weights() -> Operand {
    Known(counted(&[3, 2, 2, 2]))
}

#[test]
fn what_data_decide_is_refused_by_name() {
    for kind in ["yolo_poster", "proposal", "detection_output"] {
        has(&refusal(kind, &[], &[x()]), &["MLC0201", kind, "depends on the data"]);
    }
    has(&refusal("rknn2", &[], &[x()]), &["vendor"]);
    has(&refusal("_reshape_v2", &[], &[x(), Fed(ints(&[1], &[-1.0]))]), &["MLC0208", "the shape (operand 1)"]);
    has(&refusal("relu7", &[], &[x()]), &["MLC0201", "relu7"]);
}

#[test]
fn parameters_that_the_operator_does_not_have_are_refused() {
    has(&refusal("relu", &[("slope", float(0.5))], &[x()]), &["no parameter `slope`"]);
    has(&refusal("add", &[], &[x(), x(), x()]), &["doesn't take an operand 2"]);
    has(&refusal("softmax", &[], &[x()]), &["`dim` is missing"]);
    has(&refusal("_transpose", &[], &[x()]), &["`permute` is missing"]);
}

#[test]
fn convolutions_say_what_is_wrong_with_them() {
    for (changes, words) in [
        (&[("format", Field::of_text("NHWC"))][..], &["NHWC aren't defined"][..]),
        (&[("kernel_packed", Field::of_flag(true))], &["TenniS's own runtime"]),
        (&[("stride", list(&[1, 1, 0, 1]))], &["`stride` is [1, 1, 0, 1]"]),
        (&[("stride", list(&[2, 1, 1, 1]))], &["1 for batch and channels"]),
        (&[("padding", Field::of_ints(&[2, 4], &[0; 8]))], &["[4, 2] expected"]),
        (&[("padding", Field::of_ints(&[4, 2], &[1, 0, 0, 0, 0, 0, 0, 0]))], &["0 for batch and channels"]),
    ] {
        has(&refusal("conv2d", &convolution(changes), &[x(), weights()]), words);
    }
    has(&refusal("conv2d", &convolution(&[]), &[x(), Known(counted(&[3, 3, 2, 2]))]), &["conv2d"]);
    has(&refusal("depthwise_conv2d", &convolution(&[]), &[x(), weights()]), &["[1, channels"]);
    has(&refusal("conv2d", &convolution(&[]), &[Fed(ints(&[1, 2, 4, 4], &[0.0; 32])), weights()]), &["floating-point"]);
}

#[test]
fn weights_in_winograds_form_must_be_transforms() {
    let transformed = convolution(&[("kernel_winograd_transformed", Field::of_flag(true))]);
    has(
        &refusal("conv2d_winograd", &transformed, &[x(), weights()]),
        &["must be [.., 8, 8] or [.., 4, 4]", "f32[3, 2, 2, 2]"],
    );
    for size in [4, 8] {
        let squares: Vec<f64> = (0..6 * size * size).map(|place| (place * place) as f64).collect();
        let stored = floats(&[3, 2, size, size], &squares);
        has(&refusal("conv2d_winograd", &convolution(&[]), &[x(), Known(stored.clone())]), &["must be 3 x 3"]);
        let said = refusal("conv2d_winograd", &transformed, &[x(), Known(stored.clone())]);
        has(
            &said,
            &["MLC0202", "conv2d_winograd", "output channel 0 and input channel 0", "transform of a 3 x 3 kernel"],
        );
        has(&refusal("conv2d_winograd", &transformed, &[x(), Fed(stored)]), &["must be known while compiling"]);
    }
    let whole = Known(ints(&[3, 2, 8, 8], &[0.0; 384]));
    has(&refusal("conv2d_winograd", &transformed, &[x(), whole]), &["floating-point"]);
}

#[test]
fn windows_that_lie_in_the_padding_have_no_largest_element() {
    has(&refusal("pooling2d", &pool(0, 2, [2, 0, 0, 0]), &[x()]), &["lies in the pads"]);
    assert_eq!(run("pooling2d", &pool(1, 2, [2, 0, 0, 0]), &[x()])[0].shape(), [1, 2, 3, 2]);
    has(&refusal("pooling2d", &pool(7, 2, [0; 4]), &[x()]), &["`type` is 7"]);
    let copied = [pool(1, 2, [0; 4]), vec![("padding_type", int(1))]].concat();
    has(&refusal("pooling2d", &copied, &[x()]), &["`padding_type` is 1"]);
}

#[test]
fn shapes_that_do_not_fit_are_told() {
    for (kind, parameters, words) in [
        ("_reshape", ("shape", list(&[-1, -1])), "two extents of -1"),
        ("_reshape", ("shape", list(&[3, -1])), "can't take the shape"),
        ("chunk", ("chunks", int(5)), "can't be cut into 5 chunks"),
        ("squeeze", ("axes", list(&[1])), "no axis 1 of extent 1"),
        ("unsqueeze", ("axes", list(&[7])), "no place 7"),
        ("flatten", ("dim", int(i32::MAX)), "can't have 2147483647 axes"),
        ("tile", ("repeats", list(&[i32::MAX, i32::MAX, i32::MAX, i32::MAX])), "tile"),
        ("_transpose", ("permute", list(&[0, 0, 1, 2])), "_transpose"),
        ("divided", ("size", list(&[0])), "positive numbers"),
        ("_field", ("offset", int(-1)), "`offset` is -1"),
    ] {
        has(&refusal(kind, &[parameters], &[x()]), &[words]);
    }
    // 7 elements in 5 chunks of 2: the pieces run out.
    has(&refusal("chunk", &[("chunks", int(5)), ("dim", int(0))], &[Fed(counted(&[7]))]), &["5 chunks"]);
    has(&refusal("concat", &[("dim", int(0))], &[x(), Fed(ints(&[1, 2, 4, 4], &[0.0; 32]))]), &["one data type"]);
    let sizes = [x(), Known(ints(&[4], &[2.0, 2.0, 8.0, 4.0]))];
    has(&refusal("_resize2d", &[], &sizes), &["two adjacent axes"]);
}

#[test]
fn small_files_do_not_make_large_tensors() {
    let shape = || Known(ints(&[2], &[46_000.0; 2]));
    has(&refusal("constant_of_shape", &[], &[shape()]), &["MLC0108", "too large to be filled"]);
    has(&refusal("broadcast", &[], &[Known(floats(&[1], &[0.0])), shape()]), &["MLC0108"]);
    has(&refusal("tile", &[("repeats", list(&[46_000, 46_000]))], &[Known(floats(&[1, 1], &[0.0]))]), &["MLC0108"]);
    let pads = Known(ints(&[2, 2], &[0.0, 46_000.0, 0.0, 46_000.0]));
    has(&refusal("pad", &[], &[Known(floats(&[1, 1], &[0.0])), pads]), &["MLC0108"]);
}

/// Names of many outputs are found in a time that grows with their number.
#[test]
fn many_outputs_may_have_one_name() {
    let (mut model, fed) = model("relu", &[], &[Fed(counted(&[1]))]);
    model.outputs = vec![NodeId(1); 5000];
    let graph = import(&model, &ImportOptions::default()).unwrap().graph;
    assert_eq!([&*graph.outputs()[0].name, &*graph.outputs()[4999].name], ["y", "y.5000"]);
    assert_eq!(evaluate(&graph, &fed).unwrap().len(), 5000);
}

#[test]
fn inputs_take_what_the_user_says() {
    let relu = |parameters: Parameters<'_>| {
        let (mut model, _) = model("relu", &[], &[x()]);
        model.nodes[0] = node(Node::PARAMETER, "x", parameters, &[]);
        model
    };
    let errors = import(&relu(&[]), &ImportOptions::default()).unwrap_err();
    has(&errors[0].to_string(), &["MLC0207", "the shape of the input `x`"]);
    let shape = || [("x".to_owned(), vec![2, 3])].into();
    let options = ImportOptions { input_shapes: shape(), ..ImportOptions::default() };
    let imported = import(&relu(&[]), &options).unwrap();
    assert_eq!(imported.warnings.len(), 1, "the data type is assumed");
    let bytes = ImportOptions { input_dtypes: [("x".to_owned(), DType::U8)].into(), ..options };
    let graph = import(&relu(&[("#dtype", int(10))]), &bytes).unwrap().graph;
    let fed = tensor(DType::U8, &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 255.0]);
    let expected = floats(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 255.0]);
    check_all(&evaluate(&graph, &[fed]).unwrap(), &[expected]);
    let wrong = ImportOptions { input_dtypes: [("y".to_owned(), DType::U8)].into(), input_shapes: shape(), ..bytes };
    has(&import(&relu(&[]), &wrong).unwrap_err()[0].to_string(), &["MLC0004", "`y`"]);
}

#[test]
fn shapes_that_an_input_says_are_known_by_its_value() {
    let (mut model, _) = model("constant_of_shape", &[("value", int(7))], &[Fed(ints(&[2], &[0.0; 2]))]);
    model.nodes[0].name = "shape".into();
    let value = mlc_ir::Attribute::from_tensor(&ints(&[2], &[2.0, 1.0]));
    let values =
        |value| ImportOptions { input_values: [("shape".to_owned(), value)].into(), ..ImportOptions::default() };
    let graph = import(&model, &values(value)).unwrap().graph;
    assert_eq!(graph.inputs().len(), 1, "the input stays");
    check_all(&evaluate(&graph, &[ints(&[2], &[9.0, 9.0])]).unwrap(), &[ints(&[2, 1], &[7.0, 7.0])]);
    let other = mlc_ir::Attribute::from_tensor(&ints(&[1], &[2.0]));
    has(&import(&model, &values(other)).unwrap_err()[0].to_string(), &["MLC0109"]);
}
