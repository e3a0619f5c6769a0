use crate::{Parameters, read};
use mlc_descriptions::Library;
use mlc_import::{CustomOperators, ImportOptions, Renamed};
use mlc_ir::{Attribute, DType, Graph, Tensor, TensorType, evaluate};

fn graph(text: &str) -> Graph {
    let imported = read(text, &Parameters::new(), &ImportOptions::default());
    imported.unwrap_or_else(|errors| panic!("{errors:?}")).graph
}

fn faults(text: &str) -> Vec<String> {
    let imported = read(text, &Parameters::new(), &ImportOptions::default());
    imported.map(|_| ()).unwrap_err().iter().map(ToString::to_string).collect()
}

/// What `@main` of one variable `%x: Tensor[(n), float32]` gives for numbers.
fn run(body: &str, x: &[f64]) -> Vec<f64> {
    let text = format!("def @main(%x: Tensor[({}), float32]) {{ {body} }}", x.len());
    let input = Tensor::from_floats(TensorType::new(DType::F32, [x.len()]), x.to_vec());
    evaluate(&graph(&text), &[input]).unwrap()[0].to_floats()
}

#[test]
fn functions_tuples_and_branches_are_written_out() {
    let text = "def @twice(%a) { %a + %a }\n\
                def @main(%x: Tensor[(2), float32]) {\n\
                  let %k = 3f;\n\
                  %0 = fn (%y) { %y * %k };\n\
                  %1 = (%x, (%0(%x), @twice(%x)));\n\
                  %2 = if (2 > 1) { %1.1 } else { (%x, %x) };\n\
                  (%2.0, %1.1.1)\n\
                }";
    let input = Tensor::from_floats(TensorType::new(DType::F32, [2]), vec![1.0, -2.0]);
    let outputs = evaluate(&graph(text), &[input]).unwrap();
    assert_eq!(outputs[0].to_floats(), [3.0, -6.0]);
    assert_eq!(outputs[1].to_floats(), [2.0, -4.0]);
}

#[test]
fn outputs_have_the_names_that_are_recorded() {
    let text = "def @main(%x: Tensor[(2), float32], output_tensor_names=[\"a\", \"b\"]) { (%x, nn.relu(%x)) }";
    let names: Vec<String> = graph(text).outputs().iter().map(|output| output.name.to_string()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn nodes_are_named_by_what_their_comments_say() {
    let text = "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) /* ty=float32 span=model/relu;BiasAdd:0:0 */ }";
    assert!(graph(text).find("model/relu;BiasAdd").is_some());
}

#[test]
fn parameters_are_bound_by_name() {
    let text = "def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) { %x * %w }";
    let mut parameters = Parameters::new();
    parameters.insert("w".into(), Attribute::from_f32(&[2], &[2.0, 3.0]).unwrap());
    let imported = read(text, &parameters, &ImportOptions::default()).unwrap();
    assert_eq!(imported.graph.inputs().len(), 1);
    parameters.insert("w".into(), Attribute::from_f32(&[1], &[2.0]).unwrap());
    let errors = read(text, &parameters, &ImportOptions::default()).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "error[MLC0106]: the parameter for %w is f32[1], which isn't of the variable's type (line 1:37)"
    );
}

#[test]
fn everything_that_is_unsupported_is_said_at_once() {
    let text = "def @main(%x: Tensor[(2), float32]) {\n  %0 = nn.foo(%x);\n  %1 = nn.relux(%0);\n  %2 = nn.foo(%x, a=1);\n  \
                (%1, unique(%2), clip(%x, a_min=\"no\"), nn.relu(%x, %x), nn.relu(%x, axis=1))\n}";
    assert_eq!(
        faults(text),
        [
            "error[MLC0201]: operator nn.foo, used 2 times, isn't supported (line 2:8, nn.foo \"nn.foo\")",
            "error[MLC0201]: operator nn.relux, used once, isn't supported (line 3:8, nn.relux \"nn.relux\")",
            "error[MLC0201]: operator unique, used once, isn't supported: the size of its result depends on the data, so no \
             static memory plan exists (line 5:8, unique \"unique\")",
            "error[MLC0204]: clip: attribute `a_min` must be a number, found \"no\" (line 5:20, clip \"clip\")",
            "error[MLC0205]: nn.relu: the operator doesn't take an operand 1; 2 are given (line 5:42, nn.relu \"nn.relu\")",
            "error[MLC0204]: nn.relu: there is no attribute `axis` (line 5:59, nn.relu \"nn.relu\")",
        ]
    );
}

#[test]
fn what_stands_in_the_way_has_a_place() {
    for (text, expected) in [
        ("def @f() { 1 }", "error[MLC0103]: the text has no function @main"),
        ("def @main() { %0 }", "error[MLC0103]: %0 isn't defined (line 1:15)"),
        ("def @main() { @g() }", "error[MLC0103]: @g isn't defined (line 1:15)"),
        (
            "def @main() { free_var %w: int32; %w }",
            "error[MLC0103]: the variable %w is free: nothing gives it a value (line 1:24)",
        ),
        (
            "def @main() { meta[relay.Constant][0] }",
            "error[MLC0105]: the text refers to a constant, but has no metadata that holds it (line 1:15)",
        ),
        (
            "def @main(%x: Tensor[(?), int8]) { %x }",
            "error[MLC0207]: the shape of the input `x` must be given: the file says [?], which is open (line 1:11)",
        ),
        (
            "def @main(%x: bool) { if (%x) { 1 } else { 2 } }",
            "error[MLC0202]: the condition depends on the data; only conditions of constants are supported (line 1:23)",
        ),
        (
            "def @main(%x: bool) { (%x, %x).2 }",
            "error[MLC0103]: the tuple has 2 members, there is no member 2 (line 1:23)",
        ),
        ("def @main() { () }", "error[MLC0111]: @main gives nothing (line 1:5)"),
        (
            "def @main() { @main() }",
            "error[MLC0202]: functions and expressions nest deeper than 240 levels (line 1:15)",
        ),
        (
            "def @main() { 1 }\n#[metadata]\n{\"root\": 1,\n nodes}",
            "error[MLC0101]: the metadata can't be read: key must be a string (line 4:2)",
        ),
    ] {
        assert_eq!(faults(text)[0], expected, "{text}");
    }
}

#[test]
fn small_texts_with_large_results_are_refused() {
    let mut text = "def @main(%x: bool) {\n  %0 = (%x, %x);\n".to_owned();
    for number in 1..60 {
        text += &format!("  %{number} = (%{0}, %{0});\n", number - 1);
    }
    assert!(faults(&(text + "  %59\n}"))[0].contains("members"));
    let mut text = "def @f0(%x) { nn.relu(nn.relu(%x)) }\n".to_owned();
    for number in 1..60 {
        text += &format!("def @f{number}(%x) {{ @f{0}(@f{0}(%x)) }}\n", number - 1);
    }
    let text = text + "def @main(%x: Tensor[(1), float32]) { @f59(%x) }";
    assert!(faults(&text)[0].contains("operators, loops and functions written out"));
}

#[test]
fn requantising_rounds_halves_in_fixed_point_as_it_is_told() {
    let requantized = |scale: &str, x: &[f64]| {
        let body = format!("qnn.requantize(cast(%x, dtype=\"int32\"), {scale}, 0, 1f, 3, out_dtype=\"int8\")");
        run(&body, x)
    };
    assert_eq!(requantized("0.5f", &[-3.0, -1.0, 1.0, 3.0, 5.0]), [2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(requantized("1f", &[-3.0, 7.0, 300.0, -300.0]), [0.0, 10.0, 127.0, -128.0]);
    assert_eq!(requantized("3f", &[-1.0, 2.0]), [0.0, 9.0]);
    let outwards = |x: &[f64]| {
        let body =
            "qnn.requantize(cast(%x, dtype=\"int32\"), 0.5f, 0, 1f, 3, rounding=\"TONEAREST\", out_dtype=\"int8\")";
        run(body, x)
    };
    assert_eq!(outwards(&[-3.0, -1.0, 1.0, 3.0, 5.0]), [1.0, 2.0, 4.0, 5.0, 6.0]);
    // 0.3 is 1288490240 (of single precision) / 2^31 / 2.
    assert_eq!(requantized("0.3f", &[10.0, 15.0, -15.0]), [6.0, 8.0, -2.0]);
}

#[test]
fn quantised_arithmetic_keeps_to_the_real_one() {
    let quantize = |x: &str| format!("qnn.quantize({x}, 0.5f, 3, out_dtype=\"int8\")");
    let real = |y: &str| format!("qnn.dequantize({y}, 0.25f, -5)");
    let x = [-4.0, -0.5, 0.0, 1.5, 6.0];
    for (word, expected) in [("add", x.map(|x| 2.0 * x)), ("subtract", [0.0; 5]), ("mul", x.map(|x| x * x))] {
        let q = quantize("%x");
        let y = run(&real(&format!("qnn.{word}({q}, {q}, 0.5f, 3, 0.5f, 3, 0.25f, -5)")), &x);
        let expected = expected.map(|value: f64| value.clamp(-30.75, 33.0));
        assert_eq!(y, expected, "{word}");
    }
    let q = quantize("%x");
    let joined = format!("qnn.concatenate(({q}, {q}), (0.5f, 0.5f), (3, 3), 0.25f, -5, axis=0)");
    assert_eq!(run(&real(&joined), &x), [x, x].concat());
}

#[test]
fn places_in_sorted_sequences_follow_the_side() {
    let places = |side: &str| run(&format!("searchsorted(%x, %x{side})"), &[0.0, 1.0, 1.0, 2.0]);
    assert_eq!(places(""), [0.0, 1.0, 1.0, 3.0]);
    assert_eq!(places(", right=True, dtype=\"int64\""), [1.0, 3.0, 3.0, 4.0]);
}

#[test]
fn layouts_of_convolutions_agree() {
    let numbers = |count: usize| {
        Attribute::from_f32(&[count], &(0..count).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<_>>()).unwrap()
    };
    let mut parameters = Parameters::new();
    parameters.insert("x".into(), numbers(2 * 4 * 5));
    parameters.insert("w".into(), numbers(3 * 2 * 2 * 2));
    let outputs = |body: &str| {
        let text = format!("def @main(%x: Tensor[(40), float32], %w: Tensor[(24), float32]) {{ {body} }}");
        let graph =
            read(&text, &parameters, &ImportOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).graph;
        evaluate(&graph, &[]).unwrap()[0].to_floats()
    };
    let x = "reshape(%x, newshape=[1, 2, 4, 5])";
    let w = "reshape(%w, newshape=[3, 2, 2, 2])";
    let expected =
        outputs(&format!("nn.conv2d({x}, {w}, padding=[1, 0, 0, 1], strides=[2, 1], channels=3, kernel_size=[2, 2])"));
    for (kernel, axes) in [("HWIO", "2, 3, 1, 0"), ("HWOI", "2, 3, 0, 1"), ("OHWI", "0, 2, 3, 1")] {
        let body = format!(
            "transpose(nn.conv2d(transpose({x}, axes=[0, 2, 3, 1]), transpose({w}, axes=[{axes}]), padding=[1, 0, 0, 1], \
             strides=[2, 1], data_layout=\"NHWC\", kernel_layout=\"{kernel}\"), axes=[0, 3, 1, 2])"
        );
        assert_eq!(outputs(&body), expected, "{kernel}");
    }
}

#[test]
fn new_shapes_follow_their_special_numbers() {
    for (old, new, expected) in [
        ("[2, 3, 4]", "[0, -1]", vec![2, 12]),
        ("[2, 3, 4]", "[-1, 0, 2]", vec![4, 3, 2]),
        ("[2, 3, 4]", "[-3, 4]", vec![6, 4]),
        ("[2, 3, 4]", "[-4, 1, -1, -2]", vec![1, 2, 3, 4]),
    ] {
        let text =
            format!("def @main(%x: Tensor[(24), float32]) {{ reshape(reshape(%x, newshape={old}), newshape={new}) }}");
        let graph = graph(&text);
        assert_eq!(graph.ty(graph.outputs()[0].value).shape[..], expected, "{new}");
    }
}

/// An operator that cuts a list in two, at an attribute.
const PARTS: &str = include_str!("../../../import/samples/parts.json");

fn described() -> ImportOptions {
    let library = Library::read(&[("parts", PARTS.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let renamed = [(
        "acme.cut".to_owned(),
        Renamed { optype: "parts".into(), parameters: [("place".into(), "at".into())].into() },
    )];
    let operators = CustomOperators { renamed: renamed.into(), ..CustomOperators::new(library) };
    ImportOptions { custom: Some(operators.into()), ..ImportOptions::default() }
}

#[test]
fn results_of_described_operators_are_a_tuple() {
    let text = "def @main(%x: Tensor[(5), float32]) { %0 = acme.cut(%x, place=2); (%0.1, %0.0) }";
    let imported = read(text, &Parameters::new(), &described()).unwrap_or_else(|errors| panic!("{errors:?}"));
    let input = Tensor::from_floats(TensorType::new(DType::F32, [5]), vec![0.0, 1.0, 2.0, 3.0, 4.0]);
    let outputs = evaluate(&imported.graph, &[input]).unwrap();
    assert_eq!([outputs[0].to_floats(), outputs[1].to_floats()], [vec![2.0, 3.0, 4.0], vec![0.0, 1.0]]);
    let whole = text.replace("place=2", "place=5");
    let errors = read(&whole, &Parameters::new(), &described()).unwrap_err();
    assert!(errors[0].message.contains("param's value should be < 5, but gets a 5"), "{errors:?}");
}
