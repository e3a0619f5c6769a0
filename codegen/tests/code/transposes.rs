//! Transposed copies and elementwise operators against the evaluator, with extents that blocks, vectors and cache lines don't
//! divide, so that every rest is met.

use crate::common::{check, embedded, targets};
use mlc_codegen::Target;
use mlc_ir::ops::*;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Graph, Objective, TensorType, Value};

/// The tensor transposed, as a result of the graph.
fn transposed(dtype: DType, shape: &[usize], permutation: &[usize]) -> Graph {
    let mut graph = Graph::new(format!("{dtype:?} {shape:?} by {permutation:?}"));
    let x = graph.add_input("x", TensorType::new(dtype, shape));
    let y = graph.add(Transpose { permutation: permutation.to_vec() }, &[x], "y").unwrap();
    graph.add_output("y", y.into());
    graph
}

/// `x - yᵀ` of a slice of y, whose rows have gaps between them.
fn difference(rows: usize, columns: usize) -> Graph {
    let mut graph = Graph::new(format!("difference {rows} {columns}"));
    let x = graph.add_input("x", TensorType::new(DType::F32, [rows, columns]));
    let y = graph.add_input("y", TensorType::new(DType::F32, [columns, rows + 3]));
    let slice = Slice { starts: vec![0, 2], sizes: vec![columns, rows], steps: vec![1; 2] };
    let slice = graph.add(slice, &[y], "slice").unwrap();
    let across = graph.add(Transpose { permutation: vec![1, 0] }, &[slice.into()], "across").unwrap();
    let operands: [Value; 2] = [x, across.into()];
    let sum = graph.add(Binary { function: BinaryFunction::Subtract }, &operands, "difference").unwrap();
    graph.add_output("y", sum.into());
    graph
}

#[test]
fn every_rest_of_blocks_is_copied() {
    let mut graphs = Vec::new();
    for [rows, columns] in [[63, 257], [257, 63], [129, 129], [8, 2049], [2049, 8], [33, 800], [301, 903], [907, 305]] {
        graphs.push(transposed(DType::F32, &[rows, columns], &[1, 0]));
        graphs.push(difference(rows, columns));
    }
    for permutation in [[0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0], [0, 2, 1, 3], [2, 0, 3, 1]] {
        graphs.push(transposed(DType::F32, &[3, 19, 9, 35], &permutation));
    }
    for dtype in [DType::U8, DType::I16, DType::F16, DType::I64, DType::F64, DType::Bool] {
        graphs.push(transposed(dtype, &[2, 131, 258], &[0, 2, 1]));
    }
    for target in targets() {
        check(&graphs, &target, 0.0);
    }
}

#[test]
fn blocks_are_walked_unless_code_is_to_be_small() {
    let loops = |target| {
        let graph = transposed(DType::F32, &[301, 903], &[1, 0]);
        let modules = check(&[graph], &target, 0.0);
        modules[0].sources.iter().map(|source| source.text.matches("for (").count()).sum::<usize>()
    };
    assert_eq!(loops(Target { objective: Objective::Size, ..embedded("cortex-m4") }), 2);
    // Without a cache, for what is written out there: 2.2 instructions an element, 5 row by row.
    for target in targets().into_iter().chain([embedded("cortex-m4")]) {
        assert!(loops(target) > 2);
    }
}
