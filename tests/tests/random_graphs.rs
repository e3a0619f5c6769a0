//! Random graphs through the code generator and the optimiser: a small share of what `random_graphs` runs, and the proof that it
//! would find a defect.

use mlc_ir::ops::Normalize;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Float, Graph, Op, OpKind, Value, evaluate, text};
use mlc_tests::random::{Bounds, Plan, Sample, computable_dtypes, judge, random_graph, run, shrunk, text_with_seeds};
use std::collections::BTreeSet;

#[test]
fn generated_code_agrees_with_the_evaluator() {
    let plan = Plan { seed: 1_000_000, count: 60, ..Plan::default() };
    let report = run(&plan, &|failure| println!("{failure}"));
    assert!(report.failures.is_empty(), "{} failures", report.failures.len());
    let (agreeing, loose) = (report.compared.agreeing, report.compared.loose);
    assert!(loose * 20 < agreeing, "{loose} elements are left out, {agreeing} compared");
}

#[test]
fn a_seed_gives_a_graph_and_seeds_give_all_operators_and_types() {
    let dtypes = computable_dtypes();
    let (mut kinds, mut seen, mut sizes) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for seed in 0..1500 {
        let sample = random_graph(seed, &dtypes);
        mlc_ir::verify(&sample.graph).unwrap();
        assert!(!sample.graph.outputs().is_empty(), "{seed}");
        sizes.push(sample.graph.len());
        for id in sample.graph.node_ids() {
            let node = sample.graph.node(id);
            kinds.insert(node.op.kind());
            seen.extend(node.results.iter().map(|ty| ty.dtype));
        }
    }
    let missing: Vec<&OpKind> = OpKind::OWN.iter().filter(|kind| !kinds.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?} never occur");
    assert!(dtypes.iter().all(|dtype| seen.contains(dtype)), "{seen:?}");
    assert!(sizes.iter().any(|&size| size > 60) && sizes.iter().any(|&size| size < 12));
    let again = |seed| text::print(&random_graph(seed, &dtypes).graph);
    assert_eq!(again(5), again(5));
}

/// What a wrong rewrite or schedule might make of an operator, much as it was.
fn mutant(op: &Op) -> Option<Op> {
    let mut op = op.clone();
    match &mut op {
        Op::LeakyRelu(leaky) => leaky.slope = Float(leaky.slope.0 * 1.001),
        Op::Normalize(Normalize { epsilon, .. }) => epsilon.0 *= 1.01,
        Op::AveragePool(pool) if pool.pads != pool.counted_pads => pool.counted_pads.clone_from(&pool.pads),
        Op::Slice(slice) => {
            let axis = slice.starts.iter().position(|&start| start > 0)?;
            slice.starts[axis] -= 1;
        }
        Op::Binary(binary) if binary.function == BinaryFunction::Add => binary.function = BinaryFunction::Subtract,
        Op::Unary(unary) if unary.function == UnaryFunction::Gelu => unary.function = UnaryFunction::GeluTanh,
        Op::Convolution(convolution) => {
            let axis = convolution.pads.iter().position(|pads| pads.0 != pads.1)?;
            convolution.pads[axis] = (convolution.pads[axis].1, convolution.pads[axis].0);
        }
        _ => return None,
    }
    Some(op)
}

/// The graph with one operator changed, the `skipped + 1`st that can be.
fn mutated(graph: &Graph, skipped: usize) -> Option<Graph> {
    let mut candidates = Vec::new();
    for id in graph.topological_order() {
        if let Some(op) = mutant(&graph.node(id).op)
            && op.infer(&graph.operand_types(id)).is_ok_and(|results| results == graph.node(id).results)
        {
            candidates.push((id, op));
        }
    }
    let (place, op) = candidates.get(skipped)?.clone();
    let mut result = graph.clone();
    let operands = graph.operands(place);
    let node = result.add(op, &operands, "mutant").unwrap();
    for slot in 0..graph.node(place).results.len() as u32 {
        result.replace_value(Value { node: place, slot }, Value { node, slot });
    }
    result.remove_dead();
    Some(result)
}

fn disagrees(sample: &Sample, skipped: usize) -> bool {
    let Some(wrong) = mutated(&sample.graph, skipped) else { return false };
    let (Ok(bounds), Ok(outputs)) = (Bounds::of(&sample.graph, &sample.inputs), evaluate(&wrong, &sample.inputs))
    else {
        return false;
    };
    judge(&sample.graph, &sample.inputs, &bounds, &outputs).is_err()
}

#[test]
fn a_wrong_rewrite_is_found_and_shrunk() {
    let dtypes = computable_dtypes();
    let (mut wrong, mut found, mut small) = (0, 0, 0);
    for seed in 0..60 {
        let sample = random_graph(seed, &dtypes);
        for skipped in 0..4 {
            let Some(graph) = mutated(&sample.graph, skipped) else { continue };
            let (right, outputs) = (evaluate(&sample.graph, &sample.inputs).unwrap(), evaluate(&graph, &sample.inputs));
            // A mutant that computes the same, or nothing, isn't wrong.
            if outputs.as_ref().is_ok_and(|outputs| *outputs == right) {
                continue;
            }
            wrong += 1;
            if !disagrees(&sample, skipped) {
                continue;
            }
            found += 1;
            if skipped == 0 && seed < 20 {
                let smallest = shrunk(&sample, &|samples| samples.iter().position(|sample| disagrees(sample, 0)));
                let operators = smallest.graph.node_ids().filter(|&id| mutant(&smallest.graph.node(id).op).is_some());
                assert_eq!(operators.count(), 1, "seed {seed}\n{}", text_with_seeds(&smallest));
                small += usize::from(smallest.graph.len() <= 5);
            }
        }
    }
    assert!(wrong > 80 && found * 10 >= wrong * 9, "{found} of {wrong} mutants are found");
    assert!(small >= 7, "{small} graphs are shrunk to a few nodes");
}

#[test]
fn a_shrunk_graph_can_be_read_back() {
    let dtypes = computable_dtypes();
    for seed in 0..30 {
        let sample = random_graph(seed, &dtypes);
        let read =
            text::parse(&text_with_seeds(&sample), &()).unwrap_or_else(|findings| panic!("{seed}: {findings:?}"));
        let values = evaluate(&read, &sample.inputs).unwrap();
        let judged = judge(&sample.graph, &sample.inputs, &Bounds::of(&sample.graph, &sample.inputs).unwrap(), &values);
        judged.unwrap_or_else(|message| panic!("{seed}: {message}"));
    }
}
