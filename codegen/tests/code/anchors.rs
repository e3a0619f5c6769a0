//! Every operator amid a graph, against the evaluator: operands that other kernels compute, padded and transposed on the way,
//! constants, and results that are read again. Needs a C compiler.

use crate::common::{check, embedded};
use mlc_codegen::Target;
use mlc_ir::ops::{Pad, PadMode, Slice, Transpose, TransposedConvolution, Unary};
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{Attribute, DType, Generator, Graph, Literal, Op, OpKind, TensorType, Value};

/// A value of a type: an input, a constant, or a computed and moved tensor.
fn operand(graph: &mut Graph, name: &str, ty: &TensorType, generator: &mut Generator) -> Value {
    let rank = ty.rank();
    match generator.range(0, 3) {
        0 => graph.add_input(name, ty.clone()),
        1 => {
            let value = Attribute::from_tensor(&generator.tensor(ty));
            graph.add_constant(name, value)
        }
        // Unsigned indices would wrap and leave their axis.
        2 if ty.dtype.is_signed() => {
            let x = graph.add_input(name, ty.clone());
            let negated = graph.add(Unary { function: UnaryFunction::Negate }, &[x], &format!("{name}_n")).unwrap();
            let pads: Vec<(usize, usize)> = (0..rank).map(|_| (generator.range(0, 1), generator.range(0, 2))).collect();
            let starts = pads.iter().map(|pad| pad.0).collect();
            let pad = Pad { pads, mode: PadMode::Constant, value: Literal::of(ty.dtype, 1.0) };
            let padded = graph.add(pad, &[negated.into()], &format!("{name}_p")).unwrap();
            let slice = Slice { starts, sizes: ty.shape.to_vec(), steps: vec![1; rank] };
            graph.add(slice, &[padded.into()], &format!("{name}_s")).unwrap().into()
        }
        _ => {
            let mut permutation: Vec<usize> = (0..rank).collect();
            (1..rank).rev().for_each(|axis| permutation.swap(axis, generator.range(0, axis)));
            let mut shape = ty.shape.clone();
            permutation.iter().enumerate().for_each(|(place, &axis)| shape[axis] = ty.shape[place]);
            let x = graph.add_input(name, TensorType::new(ty.dtype, shape));
            let mut back = vec![0; rank];
            permutation.iter().enumerate().for_each(|(place, &axis)| back[place] = axis);
            graph.add(Transpose { permutation: back }, &[x], &format!("{name}_t")).unwrap().into()
        }
    }
}

fn graph_of(name: &str, op: Op, types: &[TensorType], generator: &mut Generator) -> Graph {
    let mut graph = Graph::new(name);
    let operands: Vec<Value> = types
        .iter()
        .enumerate()
        .map(|(number, ty)| operand(&mut graph, &format!("x{number}"), ty, generator))
        .collect();
    let node = graph.add(op, &operands, "anchor").unwrap();
    for slot in 0..graph.node(node).results.len() {
        let value = Value { node, slot: slot as u32 };
        let read_again = graph.ty(value).dtype != DType::Bool && generator.one_in(2);
        let value = if read_again {
            let name = format!("again{slot}");
            graph.add(Unary { function: UnaryFunction::Absolute }, &[value], &name).unwrap().into()
        } else {
            value
        };
        graph.add_output(&format!("y{slot}"), value);
    }
    graph
}

/// Graphs of some samples of each kind of operator.
fn samples(kinds: &[OpKind], count: usize) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for &kind in kinds {
        let mut generator = Generator::new(kind as u64 + 40);
        for number in 0..count {
            let (op, types) = kind.sample(&mut generator);
            if matches!(op, Op::Input(_)) {
                continue;
            }
            let name = format!("{number} {op:?} {types:?}");
            graphs.push(graph_of(&name, op, &types, &mut generator));
        }
    }
    graphs
}

#[test]
fn operators_amid_a_graph_agree_with_the_evaluator() {
    for target in [Target::generic(), Target::host(16), Target::host(64)] {
        check(&samples(OpKind::OWN, 2), &target, 2e-4);
    }
}

#[test]
fn operators_agree_with_the_evaluator_on_an_emulated_machine_with_vectors() {
    for kinds in OpKind::OWN.chunks(16) {
        check(&samples(kinds, 2), &embedded("cortex-m55"), 2e-4);
    }
}

#[test]
fn stores_of_some_lanes_beside_each_other_are_all_done_on_an_emulated_machine() {
    let mut graph = Graph::new("partial");
    let x = graph.add_input("x", TensorType::new(DType::F32, [1, 2, 3]));
    let weights = Generator::new(7).tensor(&TensorType::new(DType::F32, [4, 3, 2]));
    let weights = graph.add_constant("weights", Attribute::from_tensor(&weights));
    let pads = vec![(0, 1)];
    let op = TransposedConvolution {
        strides: vec![3],
        dilations: vec![2],
        pads,
        output_pads: vec![0],
        groups: 1,
        sums: None,
    };
    let y = graph.add(op, &[x, weights], "y").unwrap();
    let y = graph.add(Unary { function: UnaryFunction::Absolute }, &[y.into()], "absolute").unwrap();
    graph.add_output("y", y.into());
    check(&[graph], &embedded("cortex-m55"), 2e-4);
}
