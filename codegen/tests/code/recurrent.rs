//! Recurrent layers whose weights a cache holds a part of: every second step reads them from end to start, and gates are computed amid
//! products.

use crate::common::{check, check_by, text_of};
use mlc_codegen::{Module, ScheduleOptions, Target};
use mlc_ir::ops::{Recurrent, RecurrentCell, RecurrentOperand};
use mlc_ir::{Attribute, DType, Generator, Graph, TensorType, Value};
use std::collections::BTreeMap;

/// A layer with constant weights, of extents [T, B, H, P]; weights are small enough for states to keep apart.
fn layer(op: Recurrent, extents: [usize; 4]) -> Graph {
    let types = op.operand_types(DType::F32, DType::I32, extents);
    let projection = op.operand(RecurrentOperand::Projection);
    let mut graph = Graph::new(format!("{op:?} of {extents:?}"));
    let mut generator = Generator::new(extents[0] as u64);
    let mut operand = |(place, ty): (usize, &TensorType)| -> Value {
        if place != 1 && Some(place) != projection {
            return graph.add_input(&format!("operand{place}"), ty.clone());
        }
        let values = (0..ty.elements()).map(|_| (generator.unit() - 0.5) / 4.0).collect();
        graph.add_constant(
            &format!("operand{place}"),
            Attribute::from_tensor(&mlc_ir::Tensor::from_floats(ty.clone(), values)),
        )
    };
    let operands: Vec<Value> = types.iter().enumerate().map(&mut operand).collect();
    let node = graph.add(op, &operands, "layer").unwrap();
    for slot in 0..graph.node(node).results.len() {
        graph.add_output(&format!("y{slot}"), Value { node, slot: slot as u32 });
    }
    graph
}

/// Layers of all cells, some with all that they may have, of units that fill blocks of columns and of others.
fn layers() -> Vec<Graph> {
    let plain = |cell| Recurrent::new(cell);
    let with = |cell, operands: &[RecurrentOperand]| Recurrent { with: operands.to_vec(), ..Recurrent::new(cell) };
    vec![
        layer(plain(RecurrentCell::Lstm), [6, 1, 64, 64]),
        layer(plain(RecurrentCell::Lstm), [5, 2, 72, 72]),
        layer(Recurrent { reverse: true, ..plain(RecurrentCell::Gru) }, [7, 1, 80, 80]),
        layer(with(RecurrentCell::ResetFirstGru, &[RecurrentOperand::Lengths]), [4, 3, 141, 141]),
        layer(with(RecurrentCell::Lstm, &[RecurrentOperand::Projection, RecurrentOperand::Lengths]), [5, 2, 96, 51]),
        layer(plain(RecurrentCell::Rnn), [3, 1, 259, 259]),
        layer(with(RecurrentCell::Lstm, &[RecurrentOperand::Peepholes]), [4, 1, 75, 75]),
        layer(with(RecurrentCell::CoupledLstm, &[RecurrentOperand::Peepholes]), [5, 1, 99, 99]),
    ]
}

/// The same layers by a schedule, and the kind that each kernel is computed by.
fn kinds(graphs: &[Graph], target: &Target, schedule: Option<&str>, tolerance: f64) -> Vec<(Module, &'static str)> {
    let forced = schedule.map(|schedule| ("layer".to_owned(), schedule.to_owned()));
    let options = ScheduleOptions { forced: BTreeMap::from_iter(forced), ..ScheduleOptions::default() };
    let kind = |module: Module| {
        let taken = module.kernels.iter().find_map(|kernel| kernel.choice.taken()).map(|own| own.schedule.kind);
        (module, taken.expect("a layer is a kernel"))
    };
    check_by(graphs, target, &options, tolerance).into_iter().map(kind).collect()
}

#[test]
fn steps_that_go_back_compute_what_others_do() {
    let graphs = layers();
    for target in [Target::host(32), Target::host(64)] {
        for (module, graph) in check(&graphs, &target, 1e-5).iter().zip(&graphs) {
            let text = text_of(module);
            assert!(text.contains("t += 2"), "{}: {text}", graph.name);
        }
    }
}

#[test]
fn steps_go_forth_where_no_cache_holds_a_part_of_the_weights() {
    let turns = |target: &Target, units: usize| {
        let graph = layer(Recurrent::new(RecurrentCell::Lstm), [6, 1, units, units]);
        text_of(&check(&[graph], target, 1e-4)[0]).contains("t += 2")
    };
    let host = Target::host(64);
    assert!(turns(&host, 64));
    // Weights that a cache holds as a whole, and sums in the order of the model's.
    assert!(!turns(&host, 32));
    assert!(!turns(&host.with_floating_point(mlc_codegen::FloatingPoint::Strict), 64));
    assert!(!turns(&Target::generic(), 64));
}

#[test]
fn gates_are_computed_amid_the_products_of_the_next_units() {
    let graphs = layers();
    for target in [Target::host(32), Target::host(64)] {
        for ((module, kind), graph) in kinds(&graphs, &target, None, 1e-5).iter().zip(&graphs) {
            let text = text_of(module);
            assert_eq!(*kind, "pipelined-steps", "{}", graph.name);
            // Products are loops that no compiler writes out, each followed by a gate, unless it is in the first block.
            let products = text.matches("MLC_ROLLED\n").count();
            assert!(products >= 2 && text.contains("kept"), "{}: {text}", graph.name);
        }
        for (module, kind) in kinds(&graphs, &target, Some("steps"), 1e-5) {
            assert_eq!(kind, "steps");
            assert!(!text_of(&module).contains("kept"));
        }
    }
}

#[test]
fn gates_follow_their_products_where_the_nearest_cache_holds_the_weights_or_nothing_is_done_ahead() {
    let lstm = |units: usize| [layer(Recurrent::new(RecurrentCell::Lstm), [6, 1, units, units])];
    let host = Target::host(32);
    assert_eq!(kinds(&lstm(32), &host, None, 1e-5)[0].1, "steps");
    assert_eq!(kinds(&lstm(64), &host, None, 1e-5)[0].1, "pipelined-steps");
    // It can be had all the same.
    assert_eq!(kinds(&lstm(32), &host, Some("pipelined-steps"), 1e-5)[0].1, "pipelined-steps");
    assert_eq!(kinds(&lstm(64), &Target::generic(), None, 1e-4)[0].1, "steps");
}
