use super::*;
use mlc_ir::ops::Slice;

/// `f(f(… x0 + x1 …))`, of so many functions, and more sums.
fn expression(functions: usize, sums: usize) -> Op {
    let expression = Expression::build(|b| {
        let (x, y) = (b.operand(0), b.operand(1));
        let sum = b.binary(BinaryFunction::Add, x, y);
        let all = (0..functions).fold(sum, |value, _| b.unary(UnaryFunction::Absolute, value));
        (0..sums).fold(all, |value, _| b.binary(BinaryFunction::Multiply, value, y))
    });
    Map { expression }.into()
}

fn ty(columns: usize) -> TensorType {
    TensorType::new(DType::F32, [16, columns])
}

fn computed() -> PricedOperand {
    PricedOperand { ty: ty(8), known: Known::Type }
}

/// Every other column of a larger tensor.
fn every_other() -> (Op, TensorType) {
    (Slice { starts: vec![0, 0], sizes: vec![16, 8], steps: vec![1, 2] }.into(), ty(16))
}

#[test]
fn an_operand_costs_the_same_in_all_large_expressions_and_is_asked_for_once() {
    let prices = TargetPrices::new(&Target::host(32), &Graph::new("empty"));
    let (view, shown) = every_other();
    let cost = |op: &Op| prices.operand(op, &[computed(), computed()], &[ty(8)], 0, &[(&view, &shown)]);
    let first = cost(&expression(LARGE, 1));
    assert!(first.time > 0, "elements that lie apart are read as quickly as others: {first:?}");
    let known = prices.state.borrow().known.len();
    for (functions, sums) in [(LARGE, 2), (LARGE + 5, 1), (1, LARGE)] {
        assert_eq!(cost(&expression(functions, sums)), first);
    }
    assert_eq!(prices.state.borrow().known.len(), known);
    // Small ones are asked for as they are.
    assert!(cost(&expression(1, 1)).time > 0);
    assert!(prices.state.borrow().known.len() > known);
}

#[test]
fn kernels_around_an_application_are_not_written() {
    let prices = TargetPrices::new(&Target::host(32), &Graph::new("empty"));
    let op = Map { expression: Expression::binary(BinaryFunction::Add) }.into();
    let question = Question { op, operands: vec![computed(), computed()], source: None };
    let state = &mut *prices.state.borrow_mut();
    let (graph, around) = alone(&question, &mut state.zeros).unwrap();
    let written = |chooser: &mut Chooser| {
        let program = lower(&graph, None, chooser, &mut Names::new("priced")).unwrap();
        let entries = program.entries();
        entries.iter().filter_map(|entry| Some(entry.part.label()?.node.clone())).collect::<BTreeSet<String>>()
    };
    let all = written(&mut state.chooser);
    state.chooser.leave_out(around.clone());
    let own = written(&mut state.chooser);
    assert_eq!(own, BTreeSet::from(["own".to_owned()]));
    assert!(around.len() == 3 && all == &own | &around, "{all:?}, {around:?}");
}
