use super::*;
use crate::loops::{Expr, Holds, Index, LoopBuilder, Nest, Overlaps, Parameter, ValueType};
use mlc_ir::DType;

const ELEMENT: ValueType = ValueType { dtype: DType::F32, lanes: 1 };

fn load(pointer: Var, index: Index) -> Expr {
    Expr::Load { pointer, index, ty: ELEMENT }
}

/// A function over `x`, which is read, scratch memory and `y`, which is written; and its parameters.
fn function(write: impl FnOnce(&mut LoopBuilder, [Var; 3])) -> (Function, Var) {
    with_scratch(Holds::Result, write)
}

/// The same with scratch memory of some kind.
fn with_scratch(holds: Holds, write: impl FnOnce(&mut LoopBuilder, [Var; 3])) -> (Function, Var) {
    let mut b = LoopBuilder::new();
    let kinds = [("x", Holds::Operand), ("scratch", holds), ("y", Holds::Result)];
    let [operand, scratch, result] = kinds.map(|(name, holds)| b.parameter(name, DType::F32, holds));
    write(&mut b, [operand, scratch, result]);
    let (vars, body) = b.finish();
    let parameter = |var| Parameter { var, restrict: false, overlaps: Overlaps::Anyhow };
    let parameters = [operand, scratch, result].map(parameter).to_vec();
    (Function { name: "f".into(), comment: Vec::new(), parameters, vars, body }, result)
}

/// The names of a function's counters in the order in which loops begin, those that go downwards with a minus.
fn counters(function: &Function) -> Vec<String> {
    fn visit(function: &Function, body: &[Stmt], found: &mut Vec<String>) {
        for statement in body {
            if let Stmt::For { var, descends, body, .. } = statement {
                let sign = if *descends { "-" } else { "" };
                found.push(format!("{sign}{}", function.vars[*var as usize].name));
                visit(function, body, found);
            }
        }
    }
    let mut found = Vec::new();
    visit(function, &function.body, &mut found);
    found
}

fn turned(write: impl FnOnce(&mut LoopBuilder, [Var; 3])) -> Option<Vec<String>> {
    let (function, result) = function(write);
    downwards(&function, result).map(|turned| counters(&turned))
}

#[test]
fn loops_and_units_that_know_nothing_of_each_other_come_the_other_way_round() {
    let rows = |b: &mut LoopBuilder, [x, _, y]: [Var; 3], name: &str, first: i64| {
        b.for_each(name, 4, |b, row| {
            b.for_each("column", 3, |b, column| {
                let place = row.times(3).plus(&column).offset(first);
                b.store(y, place.clone(), load(x, place));
            });
        });
    };
    let all = turned(|b, memory| {
        rows(b, memory, "low", 0);
        rows(b, memory, "high", 12);
    });
    assert_eq!(all.unwrap(), ["-high", "-column_1", "-low", "-column"]);
    // Units that write the same stay in their order.
    let all = turned(|b, memory| {
        rows(b, memory, "first", 0);
        rows(b, memory, "again", 1);
        rows(b, memory, "apart", 20);
    });
    assert_eq!(all.unwrap(), ["-apart", "-column_2", "-first", "-column", "-again", "-column_1"]);
}

#[test]
fn what_turns_hand_on_is_computed_in_its_order() {
    // Rows that move through scratch memory.
    let rows = turned(|b, [x, scratch, y]| {
        b.for_each("row", 4, |b, row| {
            b.store(y, row.clone(), load(scratch, Index::from(0i64)));
            b.store(scratch, Index::from(0i64), load(x, row));
        });
    });
    assert_eq!(rows, None);
    // A sum of what was written before.
    let sums = turned(|b, [x, _, y]| {
        b.for_range("i", Index::from(1i64), Index::from(9i64), 1, |b, i| {
            b.store(y, i.clone(), load(y, i.offset(-1)).plus(load(x, i)));
        });
    });
    assert_eq!(sums, None);
    // A sum in a variable is one unit, within a loop that goes downwards.
    let sum = turned(|b, [x, _, y]| {
        b.for_each("i", 4, |b, i| {
            let sum = b.mutable("sum", load(x, i.clone()));
            b.for_each("k", 5, |b, k| b.assign(sum, Expr::Var(sum).plus(load(x, k))));
            b.store(y, i, Expr::Var(sum));
        });
    });
    assert_eq!(sum.unwrap(), ["-i", "k"]);
    // What is gathered first stays first, and upwards.
    let gathered = turned(|b, [x, scratch, y]| {
        b.for_each("copied", 6, |b, i| b.store(scratch, i.clone(), load(x, i)));
        b.for_each("low", 3, |b, i| b.store(y, i.clone(), load(scratch, i)));
        b.for_each("high", 3, |b, i| b.store(y, i.offset(3), load(scratch, i.offset(3))));
    });
    assert_eq!(gathered.unwrap(), ["copied", "-high", "-low"]);
}

#[test]
fn the_last_turn_of_a_loop_in_steps_comes_first() {
    let (function, result) = function(|b, [x, _, y]| {
        b.for_range("i", Index::from(1i64), Index::from(9i64), 3, |b, i| b.store(y, i.clone(), load(x, i)));
    });
    let turned = downwards(&function, result).unwrap();
    let text = crate::loops::print::function(&turned, false, &mut crate::loops::Intrinsics::default());
    assert!(text.contains("for (int32_t i = 7; i >= 1; i -= 3) {"), "{text}");
}

#[test]
fn turns_that_gather_what_they_read_come_the_other_way_round() {
    let gather = |b: &mut LoopBuilder, [x, scratch, y]: [Var; 3]| {
        b.for_range("pixel", Index::default(), Index::from(8i64), 2, |b, pixel| {
            b.for_each("i", 2, |b, i| b.store(scratch, i.clone(), load(x, pixel.plus(&i))));
            b.for_each("k", 2, |b, k| b.store(y, pixel.plus(&k), load(scratch, k)));
        });
    };
    let turned = |holds: Holds| {
        let (function, result) = with_scratch(holds, gather);
        downwards(&function, result)
    };
    assert_eq!(turned(Holds::Result), None);
    let mut turned = turned(Holds::Gathered).unwrap();
    assert_eq!(counters(&turned), ["-pixel", "i", "-k"]);
    // At the same time they would meet.
    crate::loops::parallel::mark(&mut turned);
    let is_parallel = |statement: &Stmt| matches!(statement, Stmt::For { parallel: true, .. });
    assert!(!turned.body.iter().any(is_parallel));
}
