use super::*;
use crate::{Parameters, read};
use mlc_import::ImportOptions;
use mlc_ir::ops::{Binary, Loop, Reshape, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::text::print_with_constants;
use mlc_ir::{DType, Distribution, Float, Generator, Message, OpKind, Quantization, State, Transfer};
use std::sync::Arc;

fn printed(graph: &Graph) -> String {
    let mut bytes = Vec::new();
    write(graph, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Checks that the text of a graph gives an equal graph, with its nodes in the same order, and that again the same text.
fn check(graph: &Graph) -> String {
    let text = printed(graph);
    let read = read(&text, &Parameters::new(), &ImportOptions::default());
    let read = read.unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).graph;
    mlc_ir::verify(&read).unwrap();
    let (expected, found) = (print_with_constants(graph), print_with_constants(&read));
    assert_eq!(expected.0, found.0, "{text}");
    assert_eq!(expected.1, found.1, "{text}");
    assert!(graph.structurally_equal(&read), "{text}");
    let order = |graph: &Graph| -> Vec<Arc<str>> {
        graph.topological_order().into_iter().map(|node| graph.node(node).name.clone()).collect()
    };
    assert_eq!(order(graph), order(&read));
    assert_eq!(text, printed(&read));
    text
}

/// Names with everything that could end a string, a comment or a name.
const NAMES: [&str; 10] =
    ["x", "a/b:0", "*/ /* \"", "\\", "line\nend\t\u{7}", "\u{fc}\u{1f600}", "", "%0", "v0", "meta[relay.Constant][0]"];

#[test]
fn every_operator_comes_back() {
    for &kind in OpKind::ALL {
        if matches!(kind, OpKind::Input | OpKind::Constant) {
            continue;
        }
        let mut generator = Generator::new(kind as u64 + 5);
        for round in 0..60 {
            let (op, types) = kind.sample(&mut generator);
            let mut graph = Graph::new(NAMES[round % NAMES.len()]);
            let mut operands = Vec::new();
            for (index, ty) in types.iter().enumerate() {
                let name = NAMES[(round + index) % NAMES.len()];
                let value = match generator.one_in(3) {
                    true => graph.add_constant(name, Attribute::from_tensor(&generator.tensor(ty))),
                    false => graph.add_input(name, ty.clone()),
                };
                operands.push(value);
            }
            let name = NAMES[(round + 7) % NAMES.len()];
            let origins = NAMES[..round % NAMES.len()].iter().map(|&origin| Arc::from(origin)).collect();
            let node = graph.add_with_origins(op, &operands, name, origins).unwrap();
            for slot in 0..graph.node(node).results.len() as u32 {
                graph.add_output(&format!("{}{slot}", NAMES[(round + 3) % NAMES.len()]), Value { node, slot });
            }
            check(&graph);
        }
    }
}

#[test]
fn every_function_of_elements_comes_back() {
    for &function in UnaryFunction::ALL {
        for dtype in DType::ALL {
            let mut graph = Graph::new("g");
            let x = graph.add_input("x", TensorType::new(dtype, [2]));
            let Ok(y) = graph.add(Unary { function }, &[x], "y") else { continue };
            graph.add_output("y", y.into());
            check(&graph);
        }
    }
    for &function in BinaryFunction::ALL {
        for dtype in DType::ALL {
            let mut graph = Graph::new("g");
            let x = graph.add_input("x", TensorType::new(dtype, [2]));
            let Ok(y) = graph.add(Binary { function }, &[x, x], "y") else { continue };
            graph.add_output("y", y.into());
            check(&graph);
        }
    }
}

#[test]
fn every_type_of_constants_comes_back() {
    let mut generator = Generator::new(3);
    let mut graph = Graph::new("constants");
    for dtype in DType::ALL {
        for shape in [&[][..], &[1], &[0, 3], &[2, 3, 5]] {
            let constant = Attribute::from_tensor(&generator.tensor(&TensorType::new(dtype, shape)));
            let value = graph.add_constant("c", constant);
            graph.add_output(&format!("{dtype}{shape:?}"), value);
        }
    }
    for bits in [0x8000_0000u32, 0x7fc0_0001, 0x7f80_0000, 0x0000_0001, 0x3dcc_cccd] {
        let value = graph.add_constant("f", Attribute::from_f32(&[], &[f32::from_bits(bits)]).unwrap());
        graph.add_output(&format!("{bits:x}"), value);
    }
    check(&graph);
}

#[test]
fn quantization_and_states_come_back() {
    let quantised = TensorType::new(DType::I8, [2]);
    let mut graph = Graph::new("states");
    let constant = graph.add_constant("c", Attribute::new(quantised.clone(), vec![1, 2]).unwrap());
    let x = graph.add_input("late", quantised);
    let kept = graph.add_input("kept", TensorType::new(DType::F32, [2]));
    let sum = graph.add(Binary { function: BinaryFunction::Add }, &[kept, kept], "sum").unwrap();
    graph.add_output("c", constant);
    graph.add_output("x", x);
    graph.add_output("sum", sum.into());
    let scaled = |scale, zero_point| Quantization { scale: Float(scale), zero_point };
    graph.quantization.inputs.insert(0, scaled(0.1, 0));
    graph.quantization.outputs.extend([(0, scaled(0.25, -3)), (1, scaled(0.1, 0))]);
    let initial = Attribute::from_f32(&[2], &[1.0, f32::NAN]).unwrap();
    graph.states.push(State { name: "a \"state\"".into(), input: 1, output: 2, initial });
    let text = check(&graph);
    assert!(text.contains("mlc_places=[1, 2]"), "{text}");
}

#[test]
fn messages_come_back() {
    let mut graph = Graph::new("rank");
    let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
    graph.add_output("x", x);
    let messages = vec![
        Message { transfer: Transfer::Receive { input: 0 }, peer: 0, tag: i32::MIN },
        Message { transfer: Transfer::Send { output: 0 }, peer: 2, tag: 7 },
    ];
    graph.distribution = Some(Distribution { rank: 1, count: 3, messages });
    let text = check(&graph);
    assert!(text.contains("mlc_ranks=[1, 3, [\"receive\", 0, 0, -2147483648], [\"send\", 0, 2, 7]]"), "{text}");
}

#[test]
fn loops_become_functions() {
    let mut generator = Generator::new(1);
    let (op, types) = OpKind::Loop.sample(&mut generator);
    assert!(matches!(&op, Op::Loop(Loop { .. })));
    let mut graph = Graph::new("looped");
    let operands: Vec<Value> = types.iter().map(|ty| graph.add_input("x", ty.clone())).collect();
    let first = graph.add(op.clone(), &operands, "first").unwrap();
    graph.add(op, &operands, "second").unwrap();
    graph.add_output("y", first.into());
    let text = check(&graph);
    assert!(text.contains("def @mlc_body_0(") && text.contains("def @mlc_body_1("), "{text}");
}

#[test]
fn ordinary_operators_are_relays_own() {
    let mut graph = Graph::new("net");
    let x = graph.add_input("x", TensorType::new(DType::F32, [1, 4, 4, 3]));
    let y = graph.add(Unary { function: UnaryFunction::Relu }, &[x], "y").unwrap();
    let two = graph.add_constant("two", Attribute::from_f32(&[], &[2.0]).unwrap());
    let z = graph.add(Binary { function: BinaryFunction::Multiply }, &[y.into(), two], "z").unwrap();
    let flat = graph.add(Reshape { shape: [1, 48].as_slice().into() }, &[z.into()], "flat").unwrap();
    graph.add_output("out", flat.into());
    assert_eq!(
        check(&graph),
        "#[version = \"0.0.5\"]\n\
         def @main(%x: Tensor[(1, 4, 4, 3), float32] /* mlc \"x\" */, mlc_graph=\"net\", output_tensor_names=[\"out\"]) -> \
         Tensor[(1, 48), float32] {\n  \
         %0 = nn.relu(%x) /* mlc \"y\" */;\n  \
         %1 = 2.0f /* mlc \"two\" */;\n  \
         %2 = multiply(%0, %1) /* mlc \"z\" */;\n  \
         %3 = reshape(%2, newshape=[1, 48]) /* mlc \"flat\" */;\n  \
         %3\n}\n"
    );
}
