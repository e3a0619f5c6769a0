//! The operator `loop`: values by hand, what it refuses, and its body in the text form.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_ir::text::{parse, print, print_with_constants};
use mlc_ir::{Code, DType, Graph, Tensor, TensorType, evaluate, verify};

fn graph(text: &str) -> Graph {
    let graph = parse(text, &()).unwrap_or_else(|faults| panic!("{faults:#?}"));
    verify(&graph).unwrap();
    graph
}

fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec())
}

fn outputs(text: &str, inputs: &[Tensor]) -> Vec<Vec<f64>> {
    evaluate(&graph(text), inputs).unwrap().iter().map(Tensor::to_floats).collect()
}

/// `h' = h + w * x + turn`, stacked; x runs along axis 1.
const SCAN: &str = r#"mlc 1
graph @g(%h: f32[2], %x: f32[2, 3], %w: f32[]) -> ("h": f32[2], "y": f32[2, 3]) {
  %s = loop %h, %x, %w {body = graph @body(%i: i64[], %s: f32[2], %x: f32[2], %w: f32[]) -> ("s": f32[2], "y": f32[2]) {
    %p = binary %x, %w {function = multiply} : f32[2]
    %n = cast %i {dtype = f32} : f32[]
    %q = binary %p, %n {function = add} : f32[2]
    %r = binary %s, %q {function = add} : f32[2]
    return %r, %r
  }, trip_count = 3, carried = 1, scanned = [[1, REVERSE]], stacked = [[AXIS, false]], conditional = false} : f32[2], STACKED
  return %s, %s:1
}
"#;

fn scan(reverse: &str, axis: usize) -> String {
    let stacked = ["f32[3, 2]", "f32[2, 3]"][axis];
    let text = SCAN.replace("REVERSE", reverse).replace("AXIS", &axis.to_string()).replace("STACKED", stacked);
    text.replace("\"y\": f32[2, 3]) {\n  %s", &format!("\"y\": {stacked}) {{\n  %s"))
}

#[test]
fn values_are_carried_scanned_and_stacked() {
    let inputs = [floats(&[2], &[10.0, 20.0]), floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), floats(&[], &[2.0])];
    let found = outputs(&scan("false", 0), &inputs);
    assert_eq!(found, [vec![25.0, 53.0], vec![12.0, 28.0, 17.0, 39.0, 25.0, 53.0]]);
    let found = outputs(&scan("true", 1), &inputs);
    assert_eq!(found, [vec![25.0, 53.0], vec![16.0, 21.0, 25.0, 32.0, 43.0, 53.0]]);
}

#[test]
fn the_text_survives() {
    let text = scan("true", 1);
    let graph = graph(&text);
    assert_eq!(print(&graph), text);
    assert!(parse(&print(&graph), &()).unwrap().structurally_equal(&graph));
}

/// Counts, while less than a limit, at most 10 times.
const COUNT: &str = r#"mlc 1
graph @g(%go: bool[], %x: i64[], %limit: i64[]) -> ("go": bool[], "x": i64[]) {
  %c = loop %go, %x, %limit {body = graph @b(%i: i64[], %go: bool[], %x: i64[], %limit: i64[]) -> ("go": bool[], "x": i64[]) {
    %one = constant i64[] [1]
    %n = binary %x, %one {function = add} : i64[]
    %l = binary %n, %limit {function = less} : bool[]
    return %l, %n
  }, trip_count = 10, carried = 2, scanned = [], stacked = [], conditional = true} : bool[], i64[]
  return %c, %c:1
}
"#;

#[test]
fn a_condition_ends_a_loop() {
    let number = |dtype, value: i64| Tensor::from_integers(TensorType::new(dtype, []), vec![value]);
    for (go, x, limit, expected) in [(1, 0, 4, [0.0, 4.0]), (0, 7, 9, [0.0, 7.0]), (1, 0, 99, [1.0, 10.0])] {
        let inputs = [number(DType::Bool, go), number(DType::I64, x), number(DType::I64, limit)];
        assert_eq!(outputs(COUNT, &inputs).concat(), expected);
    }
}

#[test]
fn data_alone_may_end_a_loop() {
    let text = COUNT.replace("trip_count = 10", "trip_count = none");
    assert_eq!(print(&graph(&text)), text);
    let number = |dtype, value: i64| Tensor::from_integers(TensorType::new(dtype, []), vec![value]);
    let inputs = |go, x, limit| [number(DType::Bool, go), number(DType::I64, x), number(DType::I64, limit)];
    for (go, x, limit, expected) in [(1, 0, 4, [0.0, 4.0]), (0, 7, 9, [0.0, 7.0]), (1, 0, 9999, [0.0, 9999.0])] {
        assert_eq!(outputs(&text, &inputs(go, x, limit)).concat(), expected);
    }
    let error = evaluate(&graph(&text), &inputs(1, 0, i64::MAX)).unwrap_err();
    assert!(error.message.contains("the loop hasn't ended after 262144 turns"), "{error}");
    let endless = scan("false", 0).replace("trip_count = 3", "trip_count = none");
    assert_eq!(refusal(&endless), "loop: a loop without a number of turns must be conditional, or it never ends");
    let walking =
        text.replace("scanned = []", "scanned = [[0, false]]").replace("loop %go, %x, %limit", "loop %go, %x, %many");
    let walking = walking.replace("(%go: bool[], %x: i64[], %limit: i64[])", "(%go: bool[], %x: i64[], %many: i64[3])");
    assert_eq!(refusal(&walking), "loop: a loop without a number of turns neither scans nor stacks anything");
}

/// What is wrong with a text.
fn refusal(text: &str) -> String {
    match parse(text, &()) {
        Ok(_) => panic!("accepted: {text}"),
        Err(faults) => faults[0].message.clone(),
    }
}

#[test]
fn what_does_not_fit_the_body_is_refused() {
    let scan = scan("false", 0);
    for (from, to, message) in [
        ("carried = 1", "carried = 2", "loop: the body has 2 outputs, 2 carried and 1 stacked ones expected"),
        ("carried = 1", "carried = 9", "loop: the body has 4 inputs, at least 11 expected"),
        ("trip_count = 3", "trip_count = 4", "loop: scanned operand 0 f32[2, 3] has no axis 1 of 4"),
        ("[[1, false]]", "[[2, false]]", "loop: scanned operand 0 f32[2, 3] has no axis 2 of 3"),
        ("[[1, false]]", "[[1]]", "loop: field scanned can't be [[1]]"),
        ("stacked = [[0,", "stacked = [[2,", "loop: slices f32[2] can't be stacked along axis 2"),
        ("conditional = false", "conditional = true", "loop: a conditional loop carries a bool of one element first"),
        ("loop %h, %x, %w", "loop %h, %x", "loop: 2 operands given, 3 expected"),
        ("loop %h, %x, %w", "loop %w, %x, %w", "loop: operand 0 is f32[], the body has f32[2]"),
        ("return %r, %r\n", "return %n, %r\n", "output \"s\" is f32[]"),
    ] {
        let text = scan.replacen(from, to, 1);
        assert_ne!(text, scan);
        assert_eq!(refusal(&text), message);
    }
    let long = COUNT.replace("trip_count = 10", "trip_count = 9000000000");
    assert_eq!(refusal(&long), "loop: 9000000000 turns, at most 2147483647 are possible");
    let stacking = COUNT.replace("carried = 2", "carried = 1").replace("stacked = []", "stacked = [[0, false]]");
    assert!(refusal(&stacking).starts_with("loop: a conditional loop stacks no results"));
}

#[test]
fn faults_inside_of_a_body_have_places() {
    let faults = parse(&COUNT.replace("function = less", "function = fewer"), &()).unwrap_err();
    assert_eq!((faults[0].location.line, faults.len()), (Some(6), 1), "{faults:?}");
    let faults = parse(&COUNT.replace("%n = binary %x", "%n = binary %y"), &()).unwrap_err();
    assert_eq!((faults[0].code, faults[0].location.line), (Code::UndefinedValue, Some(5)));
}

#[test]
fn bodies_nest_to_a_limit() {
    let mut text = String::from("mlc 1\n");
    for _ in 0..10_000 {
        text += "graph @g(%x: f32[]) -> (\"x\": f32[]) {\n  %y = loop %x {body = ";
    }
    assert!(parse(&text, &()).unwrap_err()[0].message.contains("deeper"));
}

#[test]
fn bodies_share_the_side_table() {
    let constant = |seed: u64| format!("%w = constant f32[9] random(seed = {seed})\n");
    let body = |seed: u64| {
        let head = "graph @b(%i: i64[], %x: f32[9]) -> (\"x\": f32[9]) {\n";
        format!("{head}{}%y = binary %x, %w {{function = add}}\nreturn %y\n}}", constant(seed))
    };
    let fields = "trip_count = 2, carried = 1, scanned = [], stacked = [], conditional = false";
    let text = format!(
        "mlc 1\ngraph @g(%x: f32[9]) -> (\"y\": f32[9]) {{\n{}%a = binary %x, %w {{function = add}}\n\
         %b = loop %a {{body = {}, {fields}}}\n%c = loop %b {{body = {}, {fields}}}\nreturn %c\n}}\n",
        constant(1),
        body(2),
        body(1),
    );
    let graph = graph(&text);
    let (printed, constants) = print_with_constants(&graph);
    assert_eq!(constants.len(), 2, "{printed}");
    let parsed = parse(&printed, &constants).unwrap();
    assert!(parsed.structurally_equal(&graph));
    let x = floats(&[9], &[0.0; 9]);
    let outputs = |graph: &Graph| evaluate(graph, std::slice::from_ref(&x)).unwrap()[0].to_floats();
    assert_eq!(outputs(&parsed), outputs(&graph));
}
