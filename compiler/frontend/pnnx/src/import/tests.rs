//! Small models, written as `.param` text without weights.

use crate::{Model, ReadOptions, import, read_with};
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Code, DType, Diagnostic, Tensor, TensorType, evaluate, verify};

pub(super) fn model(lines: &[&str]) -> Model {
    let text = format!("7767517\n{} 0\n{}\n", lines.len(), lines.join("\n"));
    let options = ReadOptions { tolerate_operand_count: true, ..ReadOptions::default() };
    read_with(text.as_bytes(), None, &options).unwrap().0
}

fn try_import(lines: &[&str]) -> Result<Imported, Vec<Diagnostic>> {
    import(&model(lines), &ImportOptions::default())
}

/// The errors of a model that can't be imported.
pub(super) fn errors(lines: &[&str]) -> Vec<Diagnostic> {
    try_import(lines).unwrap_err()
}

/// Imports lines between an input, operand 0, and an output, and computes it.
pub(super) fn compute(input: &str, lines: &[&str], output: &str, x: &Tensor) -> Tensor {
    let input = format!("pnnx.Input pnnx_input_0 0 1 0 #0={input}");
    let output = format!("pnnx.Output pnnx_output_0 1 0 {output}");
    let lines: Vec<&str> = [&input as &str].into_iter().chain(lines.iter().copied()).chain([&output as &str]).collect();
    let imported = try_import(&lines).unwrap();
    verify(&imported.graph).unwrap();
    evaluate(&imported.graph, std::slice::from_ref(x)).unwrap().remove(0)
}

pub(super) fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec())
}

fn integers(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_integers(TensorType::new(DType::I64, shape), values.to_vec())
}

/// 0, 1, 2, … in a shape.
fn counting(shape: &[usize]) -> Tensor {
    let values: Vec<f64> = (0..shape.iter().product::<usize>()).map(|value| value as f64).collect();
    floats(shape, &values)
}

#[test]
fn all_unsupported_operators_are_reported_at_once() {
    let errors = errors(&[
        "pnnx.Input in 0 1 0 #0=(1,8)f32",
        "nn.Relu a 1 1 0 1",
        "models.common.Focus b 1 1 1 2",
        "nn.Relu c 1 1 2 3",
        "torch.randn_like d 1 1 3 4",
        "pnnx.Output out 1 0 4",
    ]);
    assert_eq!(errors.len(), 3);
    assert!(errors.iter().all(|error| error.code == Code::OperatorUnsupported));
    assert!(errors[0].message.contains("nn.Relu, used 2 times"), "{}", errors[0].message);
    assert_eq!((errors[0].location.line, errors[0].related.len()), (Some(4), 1));
    assert!(errors[0].notes[0].ends_with("nn.ReLU"), "{:?}", errors[0].notes);
    assert!(errors[1].help.as_ref().unwrap().contains("moduleop"));
    assert!(errors[2].message.contains("random"), "{}", errors[2].message);
}

#[test]
fn open_shapes_must_be_given() {
    let lines = ["pnnx.Input image 0 1 x #x=(?,3,%h,8)f32", "nn.ReLU a 1 1 x y", "pnnx.Output out 1 0 y"];
    let error = errors(&lines).remove(0);
    assert_eq!(error.code, Code::InputShapeUnknown);
    let help = error.help.unwrap();
    assert!(help.ends_with("--input-shape 'image=1,3,1,8', or by name: --dim h=N"), "{help}");
    let import_with = |name: &str, shape: &[usize]| {
        let mut options = ImportOptions::default();
        options.input_shapes.insert(name.into(), shape.to_vec());
        import(&model(&lines), &options)
    };
    for name in ["image", "x", "0"] {
        let graph = import_with(name, &[2, 3, 4, 8]).unwrap().graph;
        assert_eq!(&graph.ty(graph.outputs()[0].value).shape[..], [2, 3, 4, 8]);
    }
    assert_eq!(import_with("image", &[2, 4, 4, 8]).unwrap_err()[0].code, Code::ShapeMismatch);
    assert_eq!(import_with("image", &[2, 3, 4]).unwrap_err()[0].code, Code::ShapeMismatch);
    let unknown = import_with("picture", &[2, 3, 4, 8]).unwrap_err();
    assert!(unknown.iter().any(|error| error.code == Code::OptionMismatch));
}

#[test]
fn shapes_in_the_file_are_checked() {
    let error = errors(&[
        "pnnx.Input in 0 1 0 #0=(2,3)f32",
        "torch.t a 1 1 0 1 #1=(2,3)f32",
        "nn.ReLU b 1 1 1 2",
        "pnnx.Output out 1 0 2",
    ]);
    assert_eq!((error.len(), error[0].code, error[0].location.line), (1, Code::ShapeMismatch, Some(4)));
}

#[test]
fn what_depends_on_a_failure_is_not_reported() {
    let errors = errors(&[
        "pnnx.Input in 0 1 0 #0=(2,3)f32",
        "Tensor.reshape a 1 1 0 1 shape=(4,2)",
        "torch.t b 1 1 1 2",
        "nn.Softmax c 1 1 0 3",
        "prim::TupleConstruct d 2 1 2 3 4",
        "pnnx.Output out 1 0 4",
    ]);
    let codes: Vec<Code> = errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::ShapeMismatch, Code::ParameterMissing]);
}

#[test]
fn a_missing_weight_is_named() {
    let lines = ["pnnx.Input in 0 1 0 #0=(1,3)f32", "nn.Linear fc 1 1 0 1 bias=False", "pnnx.Output out 1 0 1"];
    let error = errors(&lines).remove(0);
    assert_eq!(error.code, Code::WeightMissing);
    assert!(error.message.contains("nn.Linear `fc`") && error.message.contains("`weight`"), "{}", error.message);
}

#[test]
fn outputs_are_named_after_their_operators_where_that_is_unique() {
    let graph = try_import(&[
        "pnnx.Input in 0 1 0 #0=(2,3)f32",
        "nn.ReLU act 1 1 0 1",
        "torch.unbind pieces 1 2 0 2 3 dim=0",
        "prim::TupleConstruct inner 2 1 2 3 4",
        "prim::TupleConstruct outer 3 1 1 4 0 5",
        "pnnx.Output out 1 0 5",
    ])
    .unwrap()
    .graph;
    let names: Vec<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["act", "output_1", "output_2", "in"]);
}

#[test]
fn numbers_in_expressions_do_not_widen_tensors() {
    let x = integers(&[3], &[-7, 4, 9]);
    let y = compute("(3)i64", &["pnnx.Expression e 1 1 0 1 expr=floor_divide(mul(@0,3),2)"], "1", &x);
    assert_eq!((y.ty().dtype, y.to_integers()), (DType::I64, vec![-11, 6, 13]));
    let y = compute("(3)i64", &["pnnx.Expression e 1 1 0 1 expr=add(@0,0.5)"], "1", &x);
    assert_eq!((y.ty().dtype, y.to_floats()), (DType::F32, vec![-6.5, 4.5, 9.5]));
    let y = compute("(3)i64", &["pnnx.Expression e 1 1 0 1 expr=remainder(@0,4)"], "1", &x);
    assert_eq!(y.to_integers(), [1, 0, 1]);
}

#[test]
fn shape_arithmetic_is_done_at_import() {
    let lines = [
        "pnnx.Expression s 1 1 0 1 expr=[size(@0,0),int(floor(mul(size(@0,-1),0.5))),-1]",
        "Tensor.reshape r 2 1 0 1 2 $input=0 $shape=1",
    ];
    let y = compute("(2,6)f32", &lines, "2", &counting(&[2, 6]));
    assert_eq!(y.shape(), [2, 3, 2]);
}

#[test]
fn slices_count_axes_before_any_is_dropped() {
    let lines = [
        "Tensor.slice a 1 1 0 1 dims=(0,2) starts=(0,1) ends=(0,2147483647) steps=(0,2) selects=(-1,2147483647) $input=0",
    ];
    let y = compute("(2,2,4)f32", &lines, "1", &counting(&[2, 2, 4]));
    assert_eq!((y.shape(), y.to_floats()), (&[2, 2][..], vec![9.0, 11.0, 13.0, 15.0]));
    let y = compute("(5)f32", &["Tensor.slice a 1 1 0 1 dim=0 start=-3 end=-1 step=1"], "1", &counting(&[5]));
    assert_eq!(y.to_floats(), [2.0, 3.0]);
    let y = compute("(5)f32", &["Tensor.slice a 1 1 0 1 dim=0 start=4 end=2 step=1"], "1", &counting(&[5]));
    assert_eq!(y.shape(), [0]);
}

#[test]
fn replacing_every_second_element_keeps_the_others() {
    let lines = [
        "pnnx.Expression e 0 1 1 expr=-1.0",
        "Tensor.slice_copy c 2 1 0 1 2 dim=0 start=1 end=5 step=2 $self=0 $src=1",
    ];
    let y = compute("(6)f32", &lines, "2", &counting(&[6]));
    assert_eq!(y.to_floats(), [0.0, -1.0, 2.0, -1.0, 4.0, 5.0]);
}

#[test]
fn axes_are_inserted_in_the_documented_order() {
    let y = compute("(2,3)f32", &["torch.unsqueeze u 1 1 0 1 dim=(0,-1)"], "1", &counting(&[2, 3]));
    assert_eq!(y.shape(), [1, 2, 3, 1]);
}

#[test]
fn windows_that_reach_over_the_end_divide_by_what_the_padding_covers() {
    let line = "nn.AvgPool1d p 1 1 0 1 kernel_size=(3) stride=(2) padding=(1) ceil_mode=True count_include_pad=True";
    let y = compute("(1,1,4)f32", &[line], "1", &counting(&[1, 1, 4]));
    // The third window covers the elements 3 and the pad behind; its third place lies beyond the padding.
    assert_eq!(y.to_floats(), [f64::from(1.0f32 / 3.0), 2.0, 1.5]);
}

#[test]
fn the_first_of_equal_maxima_is_found() {
    let lines = [
        "nn.MaxPool2d p 1 2 0 1 2 kernel_size=(2,2) stride=(2,2) padding=(1,1) return_indices=True",
        "prim::TupleConstruct t 1 1 2 3",
    ];
    let x = floats(&[1, 1, 2, 3], &[1.0, 5.0, 5.0, 2.0, 2.0, 9.0]);
    let y = compute("(1,1,2,3)f32", &lines, "3", &x);
    assert_eq!((y.ty().dtype, y.to_integers()), (DType::I64, vec![0, 1, 3, 5]));
}

#[test]
fn tuples_of_results_come_apart() {
    let lines = ["torch.max m 1 1 0 1 dim=1 keepdim=False", "prim::TupleUnpack u 1 2 1 2 3"];
    let y = compute("(2,3)f32", &lines, "3", &counting(&[2, 3]));
    assert_eq!(y.to_integers(), [2, 2]);
}

#[test]
fn paired_indices_replace_adjacent_axes_in_place() {
    let lines = ["Tensor.index i 1 1 0 1 expr=[None,[1,-2],[0,1]]"];
    let y = compute("(2,2,2)f32", &lines, "1", &counting(&[2, 2, 2]));
    assert_eq!((y.shape(), y.to_floats()), (&[2, 2][..], vec![2.0, 1.0, 6.0, 5.0]));
}

#[test]
fn strided_views_are_read_by_position() {
    let lines = ["torch.as_strided v 1 1 0 1 size=(2,3) stride=(1,2) storage_offset=1 $input=0"];
    let y = compute("(2,4)f32", &lines, "1", &counting(&[2, 4]));
    assert_eq!((y.shape(), y.to_floats()), (&[2, 3][..], vec![1.0, 3.0, 5.0, 2.0, 4.0, 6.0]));
    let beyond =
        ["pnnx.Input in 0 1 0 #0=(2,4)f32", "torch.as_strided v 1 1 0 1 size=(3) stride=(4)", "pnnx.Output o 1 0 1"];
    assert_eq!(errors(&beyond)[0].code, Code::ParameterInvalid);
    // The memory behind a transposed tensor is that of the other one.
    let of_view = [
        "pnnx.Input in 0 1 0 #0=(2,4)f32",
        "torch.t t 1 1 0 1",
        "torch.as_strided v 1 1 1 2 size=(3) stride=(1)",
        "pnnx.Output o 1 0 2",
    ];
    assert_eq!(errors(&of_view)[0].code, Code::VariantUnsupported);
}

#[test]
fn what_is_random_in_training_mode_is_refused() {
    for operator in [
        "F.dropout d 1 1 0 1 p=0.5 training=True",
        "F.rrelu d 1 1 0 1 training=True",
        "F.scaled_dot_product_attention d 3 1 0 0 0 1 dropout_p=0.5 is_causal=False",
    ] {
        let errors = errors(&["pnnx.Input in 0 1 0 #0=(2,2)f32", operator, "pnnx.Output o 1 0 1"]);
        assert_eq!(errors[0].code, Code::VariantUnsupported, "{operator}");
    }
}

/// An option of another kind than expected stands at another place, or means something else.
#[test]
fn positional_options_of_another_kind_are_refused() {
    let lines = |flag: &'static str| {
        ["pnnx.Input in 0 1 0 #0=(2,3)f32", flag, "aten::sort s 2 2 0 1 2 3", "pnnx.Output o 1 0 2"]
    };
    assert!(try_import(&lines("pnnx.Expression e 0 1 1 expr=0")).is_ok());
    assert_eq!(errors(&lines("pnnx.Expression e 0 1 1 expr=True"))[0].code, Code::OperandTypes);
}

#[test]
fn a_trace_is_a_sum_over_the_diagonal() {
    let y = compute("(3,3)f32", &["torch.einsum e 1 1 0 1 equation=ii->"], "1", &counting(&[3, 3]));
    assert_eq!((y.shape().len(), y.to_floats()), (0, vec![12.0]));
}

#[test]
fn equal_elements_keep_their_order_when_sorted() {
    let x = floats(&[5], &[2.0, 3.0, 2.0, 1.0, 3.0]);
    let lines = |output: usize| {
        ["torch.topk t 1 2 0 1 2 k=4 dim=0 largest=True".to_owned(), format!("prim::TupleConstruct p 1 1 {output} 3")]
    };
    let sorted = |output| {
        let lines = lines(output);
        compute("(5)f32", &[&lines[0], &lines[1]], "3", &x)
    };
    assert_eq!(sorted(1).to_floats(), [3.0, 3.0, 2.0, 2.0]);
    assert_eq!(sorted(2).to_integers(), [1, 4, 0, 2]);
}

#[test]
fn complex_results_have_an_axis_of_two() {
    let y = compute(
        "(4)f32",
        &["torch.fft.rfft f 1 1 0 1 dim=-1 n=None norm=None"],
        "1",
        &floats(&[4], &[1.0, 0.0, 0.0, 1.0]),
    );
    assert_eq!(y.shape(), [3, 2]);
    let expected = [2.0, 0.0, 1.0, 1.0, 0.0, 0.0];
    assert!(y.to_floats().iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6), "{y:?}");
}

#[test]
fn parameters_that_are_not_known_are_mentioned() {
    let imported =
        try_import(&["pnnx.Input in 0 1 0 #0=(2)f32", "nn.ReLU a 1 1 0 1 slope=0.5", "pnnx.Output o 1 0 1"]).unwrap();
    assert_eq!(imported.warnings.len(), 1);
    assert!(imported.warnings[0].message.contains("parameter `slope`"), "{}", imported.warnings[0].message);
}

#[test]
fn deep_expressions_are_imported() {
    let expression = format!("{}@0{}", "neg(".repeat(20_000), ")".repeat(20_000));
    let line = format!("pnnx.Expression e 1 1 0 1 expr={expression}");
    let imported = try_import(&["pnnx.Input in 0 1 0 #0=(2)f32", &line, "pnnx.Output o 1 0 1"]).unwrap();
    assert_eq!(imported.graph.len(), 20_001);
}

#[test]
fn numbers_without_digits_are_numbers() {
    let lines = [
        "torch.gt m 1 1 0 1 other=1",
        "Tensor.masked_fill f 2 1 0 1 2 value=-inf $input=0 $mask=1",
        "torch.clamp c 1 1 2 3 min=-5 max=inf",
    ];
    let y = compute("(4)f32", &lines, "2", &counting(&[4]));
    assert_eq!(y.to_floats(), [0.0, 1.0, f64::NEG_INFINITY, f64::NEG_INFINITY]);
    let y = compute("(4)f32", &lines, "3", &counting(&[4]));
    assert_eq!(y.to_floats(), [0.0, 1.0, -5.0, -5.0]);
}

#[test]
fn a_recurrence_that_is_a_function_takes_its_weights_as_a_list() {
    let lines = [
        "torch.full wi 0 1 1 size=(4,2) fill_value=0.5",
        "torch.full wh 0 1 2 size=(4,1) fill_value=0.0",
        "pnnx.Expression w 2 1 1 2 3 expr=[@0,@1]",
        "torch.zeros s 0 1 4 size=(1,1,1)",
        "pnnx.Expression h 2 1 4 4 5 expr=[@0,@1]",
        "pnnx.Expression no 0 1 6 expr=False",
        "pnnx.Expression one 0 1 7 expr=1",
        "pnnx.Expression drop 0 1 8 expr=0.0",
    ];
    let run = |weights: &str, output: &str| {
        let recurrence = format!("aten::lstm r 9 3 0 5 {weights} 6 7 8 6 6 6 9 10 11");
        let lines: Vec<&str> = lines.iter().copied().chain([&recurrence as &str]).collect();
        compute("(1,1,2)f32", &lines, output, &floats(&[1, 1, 2], &[0.0, 0.0]))
    };
    assert_eq!(run("3", "9").shape(), [1, 1, 1]);
    assert_eq!(run("3", "11").to_floats(), [0.0]);
    let one = [&lines[..], &["aten::lstm r 9 3 0 5 5 7 7 8 6 6 6 9 10 11"]].concat();
    let all = [&["pnnx.Input in 0 1 0 #0=(1,1,2)f32"][..], &one, &["pnnx.Output o 1 0 9"]].concat();
    assert!(errors(&all)[0].message.contains("has_biases"), "{:?}", errors(&all));
}

/// Options as operands, then a line that takes them and gives operand `9`.
fn with_options(options: &[&str], line: &str) -> Vec<String> {
    let options = options.iter().enumerate();
    let expressions = options.map(|(index, value)| format!("pnnx.Expression e{index} 0 1 {} expr={value}", index + 1));
    expressions.chain([line.to_owned()]).collect()
}

#[test]
fn functions_of_torchscript_compute_what_pytorch_does() {
    let x = floats(&[2, 3], &[1.0, 4.0, 2.0, -3.0, 0.5, 6.0]);
    let of = |options: &[&str], line: &str| {
        let lines = with_options(options, line);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let y = compute("(2,3)f32", &lines, "9", &x);
        let numbers = if y.ty().dtype.is_float() {
            y.to_floats()
        } else {
            y.to_integers().into_iter().map(|value| value as f64).collect()
        };
        numbers.into_iter().map(|value| (value * 1e4).round() / 1e4).collect::<Vec<f64>>()
    };
    assert_eq!(of(&["2.0"], "aten::clamp_min f 2 1 0 1 9"), [2.0, 4.0, 2.0, 2.0, 2.0, 6.0]);
    assert_eq!(of(&["1", "1", "None", "None"], "aten::diff f 5 1 0 1 2 3 4 9"), [3.0, -2.0, 3.5, 5.5]);
    assert_eq!(of(&[], "aten::frac f 1 1 0 9"), [0.0, 0.0, 0.0, 0.0, 0.5, 0.0]);
    assert_eq!(of(&["True"], "aten::var f 2 1 0 1 9"), [9.575]);
    assert_eq!(of(&["[1]", "False", "False"], "aten::std f 4 1 0 1 2 3 9"), [1.2472, 3.7044]);
    assert_eq!(of(&["[1]", "1", "False"], "aten::std_mean f 4 2 0 1 2 3 8 9"), [2.3333, 1.1667]);
    assert_eq!(of(&["1", "True"], "aten::aminmax f 3 2 0 1 2 9 8"), [1.0, -3.0]);
    assert_eq!(of(&[], "aten::median f 1 1 0 9"), [1.0]);
    assert_eq!(of(&["1", "False"], "aten::median f 3 2 0 1 2 8 9"), [2.0, 1.0]);
    assert_eq!(of(&["3", "1", "False"], "aten::kthvalue f 4 2 0 1 2 3 9 8"), [4.0, 6.0]);
    assert_eq!(of(&["None", "[0]", "False", "None"], "aten::linalg_norm f 5 1 0 1 2 3 4 9"), [3.1623, 4.0311, 6.3246]);
    assert_eq!(of(&["1", "0", "1"], "aten::diagonal f 4 1 0 1 2 3 9"), [4.0, 6.0]);
    assert_eq!(of(&[], "aten::mT f 1 1 0 9"), [1.0, -3.0, 4.0, 0.5, 2.0, 6.0]);
    assert_eq!(of(&[], "aten::isfinite f 1 1 0 9"), [1.0; 6]);
    assert_eq!(of(&["None"], "aten::count_nonzero f 2 1 0 1 9"), [6.0]);
    assert_eq!(of(&[], "aten::erfc f 1 1 0 9")[4], 0.4795);
    assert_eq!(of(&["9.0", "5.0", "None"], "aten::nan_to_num f 4 1 0 1 2 3 9"), x.to_floats());
    assert_eq!(of(&[], "aten::rad2deg f 1 1 0 9")[0], 57.2958);
}

#[test]
fn indices_write_elements_and_slices() {
    let lines = |line: &str| {
        vec![
            "torch.zeros b 0 1 b size=(3,2)".to_owned(),
            "torch.full p 0 1 p size=(1) fill_value=2 dtype=torch.long".to_owned(),
            "torch.ones q 0 1 q size=(2,2) dtype=torch.long".to_owned(),
            "pnnx.Expression d 0 1 d expr=0".to_owned(),
            "pnnx.Expression v 0 1 v expr=7".to_owned(),
            line.to_owned(),
        ]
    };
    let of = |line: &str| {
        let lines = lines(line);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        compute("(1,2)f32", &lines, "9", &floats(&[1, 2], &[5.0, 6.0])).to_floats()
    };
    assert_eq!(of("aten::index_copy f 4 1 b d p 0 9"), [0.0, 0.0, 0.0, 0.0, 5.0, 6.0]);
    assert_eq!(of("aten::index_add f 5 1 b d p 0 v 9"), [0.0, 0.0, 0.0, 0.0, 35.0, 42.0]);
    assert_eq!(of("aten::index_fill f 4 1 b d p v 9"), [0.0, 0.0, 0.0, 0.0, 7.0, 7.0]);
    assert_eq!(of("aten::scatter f 4 1 b d q v 9"), [0.0, 0.0, 7.0, 7.0, 0.0, 0.0]);
    assert_eq!(of("aten::take f 2 1 0 q 9"), [6.0; 4]);
}

#[test]
fn tensors_are_stacked_by_their_ranks() {
    let shape_of = |input: &str, x: &Tensor, kind: &str| {
        let line = format!("{kind} f 1 1 1 2");
        compute(input, &["pnnx.Expression l 1 1 0 1 expr=[@0,@0]", &line], "2", x).shape().to_vec()
    };
    let (vector, matrix) = (counting(&[3]), counting(&[3, 2]));
    for (kind, of_vectors, of_matrices) in
        [("aten::hstack", &[6][..], [3, 4]), ("aten::vstack", &[2, 3], [6, 2]), ("aten::column_stack", &[3, 2], [3, 4])]
    {
        assert_eq!(shape_of("(3)f32", &vector, kind), of_vectors, "{kind}");
        assert_eq!(shape_of("(3,2)f32", &matrix, kind), of_matrices, "{kind}");
    }
    assert_eq!(shape_of("(3)f32", &vector, "aten::dstack"), [1, 3, 2]);
}

#[test]
fn a_dictionary_gives_its_values() {
    let lines = [
        "pnnx.Input in 0 1 0 #0=(2)f32",
        "pnnx.Expression k 0 1 1 expr=out",
        "nn.ReLU r 1 1 0 2",
        "prim::DictConstruct d 4 1 1 2 1 0 3",
        "pnnx.Output o 1 0 3",
    ];
    assert_eq!(try_import(&lines).unwrap().graph.outputs().len(), 2);
}

#[test]
fn writes_that_the_exporter_lost_are_refused() {
    let lines = ["pnnx.Input in 0 1 0 #0=(2)f32", "aten::zero z 1 1 0 1", "pnnx.Output o 1 0 1"];
    let error = errors(&lines).remove(0);
    assert!(error.code == Code::OperatorUnsupported && error.message.contains("in place"), "{}", error.message);
}
