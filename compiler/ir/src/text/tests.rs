//! The laws of the text form, over random graphs of every operator, and its errors.

use super::*;
use crate::diagnostics::{Code, Diagnostic};
use crate::generator::Generator;
use crate::graph::{Graph, Value};
use crate::operator::Category;
use crate::ops::{Clamp, Constant, Map, OpKind, Recurrent, RecurrentCell, Unary};
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::types::{DType, Float, Quantization, TensorType};
use std::sync::Arc;

/// Checks that a graph survives printing and parsing, and gives its text.
fn roundtrip(graph: &Graph) -> String {
    crate::verify(graph).unwrap();
    let (text, constants) = print_with_constants(graph);
    let parsed = parse(&text, &constants).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    crate::verify(&parsed).unwrap();
    assert!(parsed.structurally_equal(graph), "{text}");
    assert_eq!(print(&parsed), text);
    text
}

/// A graph of one random instance of an operator. Operands are inputs or constants.
fn random_graph(kind: OpKind, generator: &mut Generator) -> Graph {
    let (op, types) = kind.sample(generator);
    let mut graph = Graph::new(generator.choose(&["g", "a graph", ""]));
    let names = ["x", "conv1/weight:0", "größe \"1\"\n\\", "12", "a.b_c", "", "%@#\u{7}"];
    let mut operands: Vec<Value> = Vec::new();
    for ty in types {
        let name = generator.choose(&names);
        operands.push(match generator.range(0, 2) {
            0 => graph.add_constant(name, Attribute::from_tensor(&generator.tensor(&ty))),
            _ => graph.add_input(name, ty),
        });
    }
    let name = generator.choose(&names);
    let node = if op.category() == Category::Source {
        match op {
            crate::Op::Constant(Constant { value }) => graph.add_constant(name, value).node,
            op => graph.add_input(name, op.infer(&[]).unwrap().remove(0)).node,
        }
    } else {
        let origins = (0..generator.range(0, 2)).map(|_| Arc::from(generator.choose(&names))).collect();
        graph.add_with_origins(op, &operands, name, origins).unwrap()
    };
    for slot in 0..graph.node(node).results.len() {
        graph.add_output(&format!("{name}{slot}"), Value { node, slot: slot as u32 });
    }
    graph
}

#[test]
fn every_operator_survives_printing_and_parsing() {
    for &kind in OpKind::ALL {
        let mut generator = Generator::new(kind as u64 + 1000);
        for _ in 0..60 {
            roundtrip(&random_graph(kind, &mut generator));
        }
    }
}

#[test]
fn mutated_texts_never_panic() {
    let mut generator = Generator::new(5);
    let marks: Vec<char> = "%@#:,=[](){}<>;-\"\\ \n0x1f9.e_ax".chars().collect();
    let mut refused = 0;
    for round in 0..6000 {
        let kind = generator.choose(OpKind::ALL);
        let (text, constants) = print_with_constants(&random_graph(kind, &mut generator));
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..generator.range(1, 4) {
            let place = generator.range(0, letters.len() - 1);
            let other = generator.range(0, letters.len() - 1);
            match generator.range(0, 4) {
                0 => drop(letters.remove(place)),
                1 => letters.insert(place, generator.choose(&marks)),
                2 => letters[place] = generator.choose(&marks),
                3 => letters.swap(place, other),
                _ => letters.truncate(place.max(1)),
            }
            if letters.len() < 2 {
                break;
            }
        }
        let mutated: String = letters.into_iter().collect();
        match parse(&mutated, &constants) {
            Ok(graph) => drop(roundtrip(&graph)),
            Err(faults) => {
                refused += 1;
                assert!(!faults.is_empty() && faults.iter().all(|fault| fault.location.line.is_some()), "{round}");
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn constants_that_are_hashed_together_have_the_hashes_of_each() {
    let sizes = [40, 700, 41, 3000, 90, 64, 700];
    let lines: String = (0..).zip(sizes).fold(String::new(), |lines, (number, size)| {
        lines + &format!("  %c{number} = constant f32[{size}] random(seed = {number})\n")
    });
    let graph = parse(&format!("mlc 1\ngraph @g() -> (\"y\": f32[40]) {{\n{lines}  return %c0\n}}\n"), &()).unwrap();
    let (text, constants) = print_with_constants(&graph);
    assert_eq!(constants.len(), sizes.len());
    for (name, value) in constants {
        let alone = Attribute::new(value.ty().clone(), value.bytes().to_vec()).unwrap().content_hash();
        assert!(text.contains(&format!("@{name} #{alone:016x}\n")), "{name}: {alone:016x}\n{text}");
    }
}

#[test]
fn prints_what_the_documentation_shows() {
    let text = r#"mlc 1
graph @keyword(%x: f32[1, 8, 8, 3]) -> ("y": f32[1, 8, 8, 8], "h": f32[2, 3]) {
  %w = constant f32[3, 3, 3, 8] random(seed = 7)
  %b = constant f32[8] [0.5, 1.0, -2.0, 1e-7, inf, nan, 0.1, 3.0]  // bias
  %zero = constant f32[2, 2, 3] splat(0.0)
  %c = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
     : f32[1, 8, 8, 8] from("conv1")
  %k = map %c, %b {expression = t0 = add(x0, x1); multiply(t0, sigmoid(t0))}
  %h = constant f32[2, 3] splat(0.25)
  %bias = constant f32[3] [1, 2, 3]
  %r = constant f32[3, 3] splat(0.0)
  %l = recurrent %zero, %r, %bias, %h {cell = rnn, activations = [tanh(x0)], reverse = false, with = []}
  return %k, %l:1
}
"#;
    let graph = parse(text, &()).unwrap();
    let printed = roundtrip(&graph);
    let (_, constants) = print_with_constants(&graph);
    assert_eq!(constants.keys().collect::<Vec<_>>(), ["w"]);
    let hash = constants["w"].content_hash();
    assert_eq!(
        printed,
        format!(
            r#"mlc 1
graph @keyword(%x: f32[1, 8, 8, 3]) -> ("y": f32[1, 8, 8, 8], "h": f32[2, 3]) {{
  %w = constant f32[3, 3, 3, 8] @w #{hash:016x}
  %b = constant f32[8] [0.5, 1.0, -2.0, 1e-7, inf, nan, 0.1, 3.0]
  %zero = constant f32[2, 2, 3] splat(0.0)
  %c = convolution %x, %w {{strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}} : f32[1, 8, 8, 8] from("conv1")
  %k = map %c, %b {{expression = t0 = add(x0, x1); multiply(t0, sigmoid(t0))}} : f32[1, 8, 8, 8]
  %h = constant f32[2, 3] splat(0.25)
  %bias = constant f32[3] [1.0, 2.0, 3.0]
  %r = constant f32[3, 3] splat(0.0)
  %l = recurrent %zero, %r, %bias, %h {{cell = rnn, activations = [tanh(x0)], reverse = false, with = []}} : f32[2, 2, 3], f32[2, 3]
  return %k, %l:1
}}
"#
        )
    );
}

#[test]
fn odd_numbers_keep_their_bits() {
    for dtype in DType::ALL {
        let ty = TensorType::new(dtype, [4]);
        let patterns: [u64; 8] =
            [0, 1, u64::MAX, 0x7ff8_0000_0000_0001, 0x7fc0_0001_7fc0_0001, 0x8000, 0xfc00_7e01, 0x02];
        for bits in patterns {
            let bytes: Vec<u8> = bits.to_le_bytes().into_iter().cycle().take(4 * dtype.size() - 1).chain([0]).collect();
            let mut graph = Graph::new("g");
            let value = graph.add_constant("c", Attribute::new(ty.clone(), bytes).unwrap());
            graph.add_output("c", value);
            roundtrip(&graph);
        }
    }
    for bits in [f64::NAN.to_bits(), 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000, (-0.0f64).to_bits(), 1] {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", TensorType::new(DType::F32, [4]));
        let value = Float(f64::from_bits(bits));
        let clamp = graph.add(Clamp { low: value, high: Float(f64::INFINITY) }, &[x], "clamp").unwrap();
        let literal = crate::Literal::Float(DType::F64, value);
        let expression = Expression::build(|b| b.literal(literal));
        let map = graph.add(Map { expression }, &[clamp.into()], "map").unwrap();
        graph.add_output("y", map.into());
        roundtrip(&graph);
    }
}

#[test]
fn quantization_and_empty_graphs_survive() {
    let mut graph = Graph::new("");
    roundtrip_of_unverified(&graph);
    let x = graph.add_input("x", TensorType::new(DType::I8, [3, 2]));
    graph.add_output("y", x);
    graph.quantization.inputs.insert(0, Quantization { scale: Float(0.5), zero_point: -3 });
    graph.quantization.outputs.insert(0, Quantization { scale: Float(2.0), zero_point: 0 });
    let text = roundtrip(&graph);
    assert!(text.contains("  quantization %x scale 0.5 zero_point -3\n"), "{text}");
    assert!(text.contains("  quantization \"y\" scale 2.0 zero_point 0\n"), "{text}");
    for wrong in ["scale 0.0 zero_point 0", "scale inf zero_point 0", "scale -1 zero_point 0"] {
        let text = text.replace("scale 0.5 zero_point -3", wrong);
        assert!(parse(&text, &()).map_or(true, |graph| crate::verify(&graph).is_err()), "{wrong}");
    }
}

/// A graph without outputs isn't sound, but prints.
fn roundtrip_of_unverified(graph: &Graph) {
    let text = print(graph);
    let parsed = parse(&text, &()).unwrap();
    assert!(parsed.structurally_equal(graph));
    assert_eq!(print(&parsed), text);
}

#[test]
fn expressions_of_any_depth_survive() {
    let deep = Expression::build(|b| {
        let mut x = b.operand(0);
        for _ in 0..5000 {
            x = b.unary(UnaryFunction::Negate, x);
        }
        x
    });
    assert_eq!(Expression::parse(&deep.to_string()).unwrap(), deep);
    let text = format!("{}x0{}", "relu(".repeat(100_000), ")".repeat(100_000));
    assert!(Expression::parse(&text).unwrap_err().message.contains("nest deeper"));
}

#[test]
fn random_expressions_survive() {
    let mut generator = Generator::new(8);
    for _ in 0..300 {
        let expression = Expression::build(|b| {
            let mut steps = vec![b.operand(0), b.operand(1), b.number(DType::F32, 0.5), b.number(DType::I64, -7.0)];
            for _ in 0..generator.range(0, 20) {
                let (x, y) = (generator.choose(&steps), generator.choose(&steps));
                let z = generator.choose(&steps);
                steps.push(match generator.range(0, 3) {
                    0 => b.unary(generator.choose(UnaryFunction::ALL), x),
                    1 => b.binary(generator.choose(BinaryFunction::ALL), x, y),
                    2 => b.select(x, y, z),
                    _ => b.cast(generator.choose(&DType::ALL), x),
                });
            }
            generator.choose(&steps)
        });
        assert_eq!(Expression::parse(&expression.to_string()).unwrap(), expression, "{expression}");
    }
}

fn faults(body: &str) -> Vec<Diagnostic> {
    let text = format!("mlc 1\ngraph @g(%x: f32[2]) -> (\"y\": f32[2]) {{\n{body}\n}}\n");
    parse(&text, &()).unwrap_err()
}

/// Each line's fault as `line:column code message help`.
fn shown(body: &str) -> Vec<String> {
    let show = |fault: Diagnostic| {
        let help = fault.help.map(|help| format!("; {help}")).unwrap_or_default();
        let (line, column) = (fault.location.line.unwrap(), fault.location.column.unwrap());
        format!("{line}:{column} {} {}{help}", fault.code, fault.message)
    };
    faults(body).into_iter().map(show).collect()
}

#[test]
fn errors_say_where_and_what_is_meant() {
    assert_eq!(
        shown("%a = unery %x {function = relu}\n%b = unary %a {function = exp}\nreturn %b"),
        ["3:6 MLC0302 there is no operator unery; is unary meant?"]
    );
    assert_eq!(
        shown("  %a = unary %x {funktion = relu}\n  %b = unary %y {function = exp}\n  return %z"),
        [
            "3:18 MLC0302 unary has no field funktion; is function meant?",
            "4:14 MLC0103 %y isn't defined before; is %x meant?",
            "5:10 MLC0103 %z isn't defined before; is %x meant?",
        ]
    );
    assert_eq!(
        shown("%a = unary %x {function = relo}\nreturn %x"),
        ["3:6 MLC0302 unary: field function can't be relo"]
    );
    assert_eq!(shown("%a = unary %x {}\nreturn %x"), ["3:6 MLC0302 unary: field function is missing"]);
    assert_eq!(shown("%a = unary %x {function = exp} : f32[3]\nreturn %a"), ["3:34 MLC0109 the results are f32[2]"]);
    assert_eq!(shown("%x = unary %x {function = exp}\nreturn %x"), ["3:1 MLC0104 %x is defined twice"]);
    assert_eq!(
        shown("%a = matmul %x, %x {transpose_left = false, transpose_right = false}\nreturn %x"),
        ["3:6 MLC0302 matmul: can't multiply f32[2] by f32[2]: two matrices expected"]
    );
    assert_eq!(
        shown("%a = map %x {expression = relo(x0)}\nreturn %x"),
        ["3:27 MLC0302 there is no function relo; is relu meant?"]
    );
    assert_eq!(shown("%a = map %x {expression = add(x0)}\nreturn %x"), ["3:27 MLC0302 add takes 2 arguments, 1 given"]);
    assert_eq!(shown("return"), ["3:1 MLC0102 0 values returned, 1 outputs declared"]);
    assert_eq!(shown("return %x:1"), ["3:8 MLC0103 %x has 1 results, there is no result 1"]);
    assert_eq!(shown("%a = constant f32[2] [1.0]\nreturn %x")[0].split_once(' ').unwrap().0, "3:22");
    assert_eq!(
        shown("%a = constant f32[2] @w #0123456789abcdef\nreturn %x"),
        ["3:22 MLC0105 the constant @w isn't in the side table"]
    );
    assert_eq!(shown("%a = constant i8[1] [200]\nreturn %x"), ["3:22 MLC0302 `200` isn't a value of i8"]);
    assert_eq!(
        shown("%a = constant f32[1073741824] splat(1.0)\nreturn %x"),
        ["3:31 MLC0302 f32[1073741824] is too large to be made here"]
    );
    assert_eq!(shown("%a = constant f32[99999999999999]\nreturn %x").len(), 1);
    assert_eq!(shown("%a = \"open\nreturn %x"), ["3:6 MLC0302 the string isn't closed on its line"]);
    assert_eq!(shown("return %x }"), ["4:1 MLC0302 `}` found, the end of the text expected"]);
}

#[test]
fn errors_before_the_body() {
    let first = |text: &str| parse(text, &()).unwrap_err().remove(0).to_string();
    assert_eq!(first(""), "error[MLC0302]: the end of the text found, `mlc` expected (line 1:1)");
    assert_eq!(first("mlc 2"), "error[MLC0302]: the text form's version is 2, 1 expected (line 1:5)");
    let twice = "mlc 1 graph @g(%x: f32[1], %x: f32[1]) -> () { return }";
    assert_eq!(first(twice), "error[MLC0104]: %x is defined twice (line 1:28)");
    let wrong = "mlc 1 graph @g(%x: f23[1]) -> () { return }";
    assert_eq!(first(wrong), "error[MLC0302]: there is no data type f23 (line 1:20)");
}

#[test]
fn side_table_constants_are_checked() {
    let mut graph = Graph::new("g");
    let values: Vec<f32> = (0..9).map(|value| value as f32).collect();
    let value = graph.add_constant("w", Attribute::from_f32(&[9], &values).unwrap());
    graph.add_output("w", value);
    let (text, mut constants) = print_with_constants(&graph);
    constants["w"] = Attribute::from_f32(&[9], &[1.0; 9]).unwrap();
    let faults = parse(&text, &constants).unwrap_err();
    assert_eq!(faults[0].code, Code::WeightSizeMismatch);
}

#[test]
fn graphs_that_differ_arent_equal() {
    let build = |function: UnaryFunction, name: &str| {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
        let y = graph.add_input("y", TensorType::new(DType::F32, [2]));
        let node = graph.add(Unary { function }, &[if name == "swapped" { y } else { x }], "n").unwrap();
        graph.add_output(if name == "output" { "o" } else { "n" }, node.into());
        graph
    };
    let graph = build(UnaryFunction::Exp, "");
    assert!(graph.structurally_equal(&build(UnaryFunction::Exp, "")));
    assert!(!graph.structurally_equal(&build(UnaryFunction::Log, "")));
    assert!(!graph.structurally_equal(&build(UnaryFunction::Exp, "swapped")));
    assert!(!graph.structurally_equal(&build(UnaryFunction::Exp, "output")));
}

#[test]
fn several_results_have_their_own_names() {
    let mut graph = Graph::new("g");
    let mut inputs = Vec::new();
    for (name, shape) in [("x", vec![2, 1, 4]), ("r", vec![1, 4]), ("b", vec![4]), ("h", vec![1, 1]), ("c", vec![1, 1])]
    {
        inputs.push(graph.add_input(name, TensorType::new(DType::F32, shape)));
    }
    let op = Recurrent { reverse: true, ..Recurrent::new(RecurrentCell::Lstm) };
    let lstm = graph.add(op, &inputs, "l").unwrap();
    let sum = graph
        .add(crate::ops::Binary { function: BinaryFunction::Add }, &[Value { node: lstm, slot: 2 }, lstm.into()], "l:1")
        .unwrap();
    graph.add_output("s", sum.into());
    let text = roundtrip(&graph);
    assert!(text.contains("%\"l:1\" = binary %l:2, %l {function = add}"), "{text}");
}

#[test]
fn edited_graphs_survive() {
    let mut graph = Graph::new("g");
    let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
    let gone = graph.add(Unary { function: UnaryFunction::Exp }, &[x], "gone").unwrap();
    let early = graph.add(Unary { function: UnaryFunction::Log }, &[gone.into()], "early").unwrap();
    let unused = graph.add_input("unused", TensorType::new(DType::I64, []));
    let late = graph.add(Unary { function: UnaryFunction::Sin }, &[x], "late").unwrap();
    graph.add_output("early", early.into());
    graph.add_output("x", x);
    graph.replace_value(gone.into(), late.into());
    assert!(graph.remove_dead());
    assert_eq!(graph.inputs(), [x.node, unused.node]);
    assert_eq!(
        roundtrip(&graph),
        "mlc 1\ngraph @g(%x: f32[2], %unused: i64[]) -> (\"early\": f32[2], \"x\": f32[2]) {\n\
         \x20 %late = unary %x {function = sin} : f32[2]\n\
         \x20 %early = unary %late {function = log} : f32[2]\n\
         \x20 return %early, %x\n}\n"
    );
}
