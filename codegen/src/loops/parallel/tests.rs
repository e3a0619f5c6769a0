use super::*;
use crate::loops::{Atom, Expr, Holds, Index, LoopBuilder, Nest, Parameter, Relation, ValueType};
use mlc_ir::{DType, Generator};

fn load(pointer: Var, index: Index) -> Expr {
    Expr::Load { pointer, index, ty: ValueType::scalar(DType::F32) }
}

/// Whether the loops of a function over `x`, which is read, and `y`, which is written, are marked, in order.
fn marks(restrict: bool, write: impl FnOnce(&mut LoopBuilder, Var, Var)) -> Vec<bool> {
    let mut b = LoopBuilder::new();
    let (x, y) = (b.parameter("x", DType::F32, Holds::Operand), b.parameter("y", DType::F32, Holds::Result));
    write(&mut b, x, y);
    let (vars, body) = b.finish();
    let parameters = [x, y]
        .map(|var| Parameter { var, restrict, overlaps: if restrict { Overlaps::Never } else { Overlaps::Alike } })
        .to_vec();
    let mut function = Function { name: "f".into(), comment: Vec::new(), parameters, vars, body };
    mark(&mut function);
    let mut marks = Vec::new();
    visit(&function.body, &mut |_, parallel, _| marks.push(parallel));
    marks
}

/// Visits loops, outermost first: counter, mark and body.
fn visit<'a>(body: &'a [Stmt], found: &mut dyn FnMut(Var, bool, &'a [Stmt])) {
    for statement in body {
        match statement {
            Stmt::For { var, parallel, body, .. } => {
                found(*var, *parallel, body);
                visit(body, found);
            }
            Stmt::If { then, otherwise, .. } => {
                visit(then, found);
                visit(otherwise, found);
            }
            _ => {}
        }
    }
}

#[test]
fn elements_that_are_written_once_are_independent() {
    let copied = |restrict: bool, moved: i64| {
        marks(restrict, |b, x, y| {
            b.for_each("i", 9, |b, i| b.store(y, i.clone(), load(x, i.offset(moved))));
        })
    };
    assert_eq!(copied(true, 1), [true]);
    // Over the operand, that holds only for what lies alike.
    assert_eq!(copied(false, 0), [true]);
    assert_eq!(copied(false, 1), [false]);
    let sums = marks(true, |b, x, y| {
        b.for_range("i", Index::from(1i64), Index::from(9i64), 1, |b, i| {
            b.store(y, i.clone(), load(y, i.offset(-1)).plus(load(x, i)));
        });
    });
    assert_eq!(sums, [false]);
}

#[test]
fn what_turns_hand_on_keeps_them_in_order() {
    let sum = |begins_inside: bool| {
        marks(true, |b, x, y| {
            let zero = Expr::zero(DType::F32, 1);
            let outside = b.mutable("sum", zero.clone());
            b.for_each("i", 4, |b, i| {
                let sum = if begins_inside { b.mutable("own", zero) } else { outside };
                b.for_each("k", 8, |b, k| b.assign(sum, Expr::Var(sum).plus(load(x, k))));
                b.store(y, i, Expr::Var(sum));
            });
        })
    };
    assert_eq!(sum(true), [true, false]);
    assert_eq!(sum(false), [false, false]);
    let array = |begins_inside: bool| {
        marks(true, |b, x, y| {
            let outside = (!begins_inside).then(|| b.array("row", DType::F32, 8, Holds::Result));
            b.for_each("i", 4, |b, i| {
                let row = outside.unwrap_or_else(|| b.array("row", DType::F32, 8, Holds::Result));
                b.for_each("k", 8, |b, k| b.store(row, k.clone(), load(x, k)));
                b.for_each("k", 8, |b, k| b.store(y, i.times(8).plus(&k), load(row, k)));
            });
        })
    };
    assert_eq!(array(true), [true, true, true]);
    assert_eq!(array(false), [false, true, true]);
}

#[test]
fn blocks_of_channels_are_told_apart_under_loops_over_pixels() {
    // 5 pixels of 16 channels in blocks of 8, and 2 pixels more without a loop.
    let blocks = |lanes: usize, apart: i64| {
        marks(true, |b, x, y| {
            b.for_each("block", 2, |b, block| {
                let yb = b.pointer("yb", y, block.times(apart));
                let value = |index: Index| Expr::Load { pointer: x, index, ty: ValueType::vector(DType::F32, lanes) };
                b.for_each("p", 5, |b, p| b.store(yb, p.times(16), value(p)));
                for p in 5..7 {
                    b.store(yb, Index::from(16 * p as i64), value(Index::from(p as i64)));
                }
            });
        })
    };
    assert_eq!(blocks(8, 8), [true, true]);
    // Rows of 24 elements in steps of 4, which end with the row; of 23, which go beyond it.
    let rows = |apart: i64| {
        marks(true, |b, x, y| {
            b.for_each("i", 4, |b, i| {
                b.for_range("r", Index::default(), Index::from(24i64), 4, |b, r| {
                    for lane in 0..4 {
                        let index = i.times(apart).plus(&r).offset(lane);
                        b.store(y, index.clone(), load(x, index));
                    }
                });
            });
        })
    };
    assert_eq!((rows(24), rows(23)), (vec![true, true], vec![false, true]));
    assert_eq!(blocks(8, 4), [false, true]);
    assert_eq!(blocks(16, 8), [false, true]);
}

#[test]
fn places_that_values_decide_are_not_told_apart() {
    let marks = marks(true, |b, x, y| {
        b.for_each("i", 4, |b, i| {
            let place = Expr::Cast(DType::I32, Box::new(load(x, i.clone())));
            b.store(y, Index::value(place), load(x, i));
        });
        b.for_each("i", 4, |b, i| {
            let place = Expr::Cast(DType::I32, Box::new(load(y, Index::default())));
            b.store(y, i.offset(1), load(x, Index::value(place)));
        });
        b.for_each("i", 4, |b, i| {
            b.store(y, i.clone(), load(x, Index::value(Expr::Cast(DType::I32, Box::new(load(x, i))))))
        });
    });
    assert_eq!(marks, [false, false, true]);
}

/// The places that a statement reads and writes, by pointer: what the marks are checked against.
fn touched(body: &[Stmt], counters: &mut BTreeMap<Var, i64>, found: &mut dyn FnMut(Var, i64, bool)) {
    let at = |index: &Index, counters: &BTreeMap<Var, i64>| value_of(index, counters);
    for statement in body {
        match statement {
            Stmt::For { var, start, end, step, body, .. } => {
                let (mut place, end) = (at(start, counters), at(end, counters));
                while place < end {
                    counters.insert(*var, place);
                    touched(body, counters, found);
                    place += step;
                }
            }
            Stmt::Store { pointer, index, value, .. } => {
                if let Expr::Load { pointer, index, .. } = value {
                    found(*pointer, at(index, counters), false);
                }
                found(*pointer, at(index, counters), true);
            }
            Stmt::If { conditions, then, .. } => {
                let holds = |(left, _, right): &(Index, Relation, Index)| at(left, counters) < at(right, counters);
                if conditions.iter().all(holds) {
                    touched(then, counters, found);
                }
            }
            _ => {}
        }
    }
}

fn value_of(index: &Index, counters: &BTreeMap<Var, i64>) -> i64 {
    let atom = |atom: &Atom| match atom {
        Atom::Var(var) => counters[var],
        Atom::Quotient(inner, divisor) => value_of(inner, counters) / divisor,
        Atom::Remainder(inner, divisor) => value_of(inner, counters) % divisor,
        Atom::Maximum(left, right) => value_of(left, counters).max(value_of(right, counters)),
        Atom::Minimum(left, right) => value_of(left, counters).min(value_of(right, counters)),
        Atom::Value(_) => 0,
    };
    index.terms.iter().fold(index.constant, |sum, (own, factor)| sum + factor * atom(own))
}

/// Writes loops inside of each other, with accesses at random multiples of their counters.
fn random_nest(b: &mut LoopBuilder, random: &mut Generator, pointers: [Var; 2], counters: &[Index], depth: usize) {
    let index = |random: &mut Generator| {
        let mut index = Index::from(random.range(0, 3) as i64);
        if let (Some(counter), true) = (counters.first(), random.one_in(3)) {
            // A number's line and column.
            let mut number = counter.offset(random.range(0, 2) as i64);
            if let (Some(other), true) = (counters.get(1), random.one_in(2)) {
                number = number.plus(other);
            }
            let (columns, column) = (random.range(2, 4) as i64, random.choose(&[1, 2, 4]));
            let line = column * columns + random.choose(&[-1, 0, 0, 1, 5]);
            index = index.plus(&number.divided_by(columns).times(line)).plus(&number.modulo(columns).times(column));
            if random.one_in(2) {
                return index;
            }
        }
        for counter in counters {
            let factor = random.choose(&[0, 1, 1, 2, 3, 4, 6, 8, 12]);
            let part = match random.range(0, 7) {
                0 => counter.divided_by(2),
                1 => counter.modulo(3),
                2 => counter.minimum(&Index::from(2i64)),
                _ => counter.clone(),
            };
            index = index.plus(&part.times(factor));
        }
        index
    };
    for _ in 0..random.range(1, 2) {
        let from = pointers[usize::from(random.one_in(4))];
        let (to, read) = (index(random), index(random));
        let store = |b: &mut LoopBuilder| b.store(pointers[1], to, load(from, read));
        match counters.last() {
            Some(counter) if random.one_in(4) => {
                b.when(vec![(counter.clone(), Relation::Less, Index::from(2i64))], store);
            }
            _ => store(b),
        }
    }
    if depth > 0 {
        for _ in 0..random.range(1, 2) {
            let (start, turns, step) = (random.range(0, 1), random.range(2, 4), random.range(1, 2));
            let end = Index::from(start + turns * step);
            b.for_range("i", Index::from(start), end, step as i64, |b, counter| {
                random_nest(b, random, pointers, &[counters, &[counter]].concat(), depth - 1);
            });
        }
    }
}

#[test]
fn turns_of_marked_loops_never_meet() {
    let mut random = Generator::new(11);
    let (mut parallel, mut others) = (0, 0);
    for number in 0..3000 {
        let mut b = LoopBuilder::new();
        let pointers = [b.parameter("x", DType::F32, Holds::Operand), b.parameter("y", DType::F32, Holds::Result)];
        let depth = random.range(1, 3);
        random_nest(&mut b, &mut random, pointers, &[], depth);
        let (vars, body) = b.finish();
        let restrict = !random.one_in(3);
        let parameters = pointers
            .map(|var| Parameter { var, restrict, overlaps: if restrict { Overlaps::Never } else { Overlaps::Alike } })
            .to_vec();
        let mut function = Function { name: "f".into(), comment: Vec::new(), parameters, vars, body };
        mark(&mut function);
        let mut loops = Vec::new();
        visit(&function.body, &mut |var, parallel, _| loops.push((var, parallel)));
        for (var, marked) in loops {
            if !marked {
                others += 1;
                continue;
            }
            parallel += 1;
            let mut meetings: BTreeMap<Spot, (BTreeSet<i64>, bool)> = BTreeMap::new();
            in_turns(&function.body, var, &mut BTreeMap::new(), &mut |around, turn, (pointer, place, is_written)| {
                let memory = if restrict { pointer } else { 0 };
                let known = meetings.entry((around.clone(), memory, place)).or_default();
                known.0.insert(turn);
                known.1 |= is_written;
            });
            for (place, (turns, is_written)) in meetings {
                let meets = is_written && turns.len() > 1;
                assert!(!meets, "function {number}: {place:?} in {turns:?} of {var}\n{function:?}");
            }
        }
    }
    assert!(parallel > 300 && others > 300, "{parallel} {others}");
}

/// Values of counters.
type Counters = Vec<(Var, i64)>;

/// Counters of the loops around a loop, memory, and a place in it.
type Spot = (Counters, Var, i64);

/// A pointer, a place behind it and whether it is written.
type Access = (Var, i64, bool);

/// What turns of a loop touch: counters around it, the turn, and the access.
fn in_turns(body: &[Stmt], of: Var, counters: &mut BTreeMap<Var, i64>, found: &mut dyn FnMut(&Counters, i64, Access)) {
    for statement in body {
        let Stmt::For { var, start, end, step, body, .. } = statement else { continue };
        let around: Counters = counters.iter().map(|(&var, &value)| (var, value)).collect();
        let (mut place, end) = (value_of(start, counters), value_of(end, counters));
        while place < end {
            counters.insert(*var, place);
            if *var == of {
                let turn = place;
                touched(body, &mut counters.clone(), &mut |pointer, place, is_written| {
                    found(&around, turn, (pointer, place, is_written));
                });
            } else {
                in_turns(body, of, counters, found);
            }
            place += step;
        }
        counters.remove(var);
    }
}

#[test]
fn pixels_by_their_lines_and_columns_are_told_apart() {
    // Tiles of pixels in lines of 7, each line of so many elements, each pixel of 12, of which so many are written.
    let tiles = |step: usize, line: i64, written: usize| {
        marks(true, |b, x, y| {
            b.for_range("pixel", Index::default(), Index::from(21i64), step as i64, |b, pixel| {
                for i in 0..3 {
                    let number = pixel.offset(i);
                    let place = number.divided_by(7).times(line).plus(&number.modulo(7).times(12));
                    b.for_each("k", written, |b, k| b.store(y, place.plus(&k), load(x, place.plus(&k))));
                }
            });
        })[0]
    };
    assert_eq!([tiles(3, 84, 12), tiles(3, 100, 12)], [true; 2]);
    // Tiles that have a pixel in common, pixels or lines that overlap.
    assert_eq!([tiles(2, 84, 12), tiles(3, 84, 13), tiles(3, 83, 12)], [false; 3]);
}
