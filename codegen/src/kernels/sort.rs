//! Sorting by places: what moves are 32-bit places in scratch memory, in a bottom-up merge sort, or, where few elements of
//! a long axis are wanted, by insertion into a list of the best ones so far. Either takes at most about n log n comparisons.

use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::walk::AXIS_NAMES;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation, ValueType, Var};
use mlc_ir::ops::Sort;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction};
use mlc_ir::{DType, Diagnostic, Literal};

impl Scheduled for Sort {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("insertion", insertions, |op, _, kernel| sort(op, false, kernel)),
        Kind::new("merge", merges, |op, _, kernel| sort(op, true, kernel)),
    ];
}

fn extent(op: &Sort, kernel: &KernelWriter<'_>) -> usize {
    kernel.operands[0].view.shape[op.axis]
}

fn insertions(op: &Sort, kernel: &KernelWriter<'_>) -> Preferences {
    let few = extent(op, kernel).checked_ilog2().is_some_and(|most| op.count <= most as usize);
    vec![(if few { 0 } else { 2 }, Settings::default())]
}

fn merges(op: &Sort, kernel: &KernelWriter<'_>) -> Preferences {
    if extent(op, kernel) > 1 { vec![(1, Settings::default())] } else { Preferences::new() }
}

fn sort(op: &Sort, merges: bool, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let x = kernel.operands[0].clone();
    let extent = x.view.shape[op.axis];
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let places = kernel.scratch("places", DType::I32, if merges { extent } else { op.count });
    let merged = merges.then(|| kernel.scratch("merged", DType::I32, extent));
    let mut kept = x.view.shape.to_vec();
    kept.remove(op.axis);
    kernel.for_shape(&AXIS_NAMES, &kept, &mut |kernel, indices| {
        let line = Line { x: &x, axis: op.axis, extent, descending: op.descending, indices, places };
        match merged {
            Some(merged) => line.merge_sort(kernel, merged),
            None => line.select(kernel, op.count),
        }
        line.publish(kernel, op.count);
    });
    Ok(())
}

/// The elements along the axis, at one position of the other axes.
struct Line<'a> {
    x: &'a Argument,
    axis: usize,
    extent: usize,
    descending: bool,
    indices: &'a [Index],
    places: Var,
}

fn number(value: i64) -> Expr {
    Literal::integer(DType::I32, value).into()
}

fn place_at(pointer: Var, index: Index) -> Expr {
    Expr::Load { pointer, index, ty: ValueType::scalar(DType::I32) }
}

fn choose(condition: &Expr, x: Expr, y: Expr) -> Expr {
    Expr::Select(Box::new(condition.clone()), Box::new(x), Box::new(y))
}

impl Line<'_> {
    fn at(&self, place: Index) -> Vec<Index> {
        let mut all = self.indices.to_vec();
        all.insert(self.axis, place);
        all
    }

    fn element(&self, kernel: &mut KernelWriter<'_>, name: &str, place: Index) -> Expr {
        let value = kernel.load(self.x, &self.at(place), 1, 1);
        kernel.b.define(name, value)
    }

    /// Whether an element belongs before another one, wherever they are.
    fn before(&self, x: &Expr, y: &Expr) -> Expr {
        let order = if self.descending { B::Greater } else { B::Less };
        let better = Expr::binary(order, x.clone(), y.clone());
        if !self.x.view.dtype.is_float() {
            return better;
        }
        let (number, nan) = if self.descending { (y, x) } else { (x, y) };
        let is_number = Expr::binary(B::Equal, number.clone(), number.clone());
        let beside_nan = Expr::binary(B::And, Expr::unary(UnaryFunction::IsNan, nan.clone()), is_number);
        Expr::binary(B::Or, better, beside_nan)
    }

    /// Keeps the places of the best elements so far: each element moves up the list as far as it belongs.
    fn select(&self, kernel: &mut KernelWriter<'_>, count: usize) {
        kernel.for_each("r", count, |kernel, place| {
            let last = self.insert(kernel, place.clone(), place.clone());
            kernel.b.store(self.places, place, last);
        });
        kernel.for_range("r", Index::from(count), Index::from(self.extent), 1, |kernel, place| {
            let value = self.element(kernel, "value", place.clone());
            let worst = Index::value(place_at(self.places, Index::from(count - 1)));
            let worst = self.element(kernel, "worst", worst);
            kernel.when_value(self.before(&value, &worst), |kernel| {
                self.insert(kernel, place, Index::from(count));
            });
        });
    }

    /// Puts a place into the list of `length` places; gives the one that no longer fits.
    fn insert(&self, kernel: &mut KernelWriter<'_>, place: Index, length: Index) -> Expr {
        let value = self.element(kernel, "own", place.clone());
        let moved = kernel.b.mutable("moved", Expr::Index(DType::I32, place));
        let found = kernel.b.mutable("found", Literal::integer(DType::Bool, 0).into());
        kernel.for_range("s", Index::default(), length, 1, |kernel, slot| {
            let other = kernel.b.define("other", place_at(self.places, slot.clone()));
            let element = self.element(kernel, "element", Index::value(other.clone()));
            // Once it has its slot, everything behind moves on by one.
            kernel.b.assign(found, Expr::binary(B::Or, Expr::Var(found), self.before(&value, &element)));
            let kept = kernel.b.define("kept", choose(&Expr::Var(found), Expr::Var(moved), other.clone()));
            kernel.b.assign(moved, choose(&Expr::Var(found), other, Expr::Var(moved)));
            kernel.b.store(self.places, slot, kept);
        });
        Expr::Var(moved)
    }

    /// Sorts all places: each turn merges runs of `width` into `merged`, and runs of twice that back.
    fn merge_sort(&self, kernel: &mut KernelWriter<'_>, merged: Var) {
        kernel.for_each("r", self.extent, |kernel, place| {
            kernel.b.store(self.places, place.clone(), Expr::Index(DType::I32, place));
        });
        let turns = self.extent.next_power_of_two().ilog2().div_ceil(2) as usize;
        let width = kernel.b.mutable("width", number(1));
        kernel.for_each("turn", turns, |kernel, _| {
            for (from, to) in [(self.places, merged), (merged, self.places)] {
                self.merge_runs(kernel, width, from, to);
                kernel.b.assign(width, Expr::binary(B::Multiply, Expr::Var(width), number(2)));
            }
        });
    }

    /// Merges neighbouring runs of `width` places.
    fn merge_runs(&self, kernel: &mut KernelWriter<'_>, width: Var, from: Var, to: Var) {
        let extent = Index::from(self.extent);
        let width = Index::value(Expr::Var(width));
        let end = kernel.b.mutable("end", number(0));
        let (left, right) = (kernel.b.mutable("left", number(0)), kernel.b.mutable("right", number(0)));
        let middle = kernel.b.mutable("middle", number(0));
        let value = |var: Var| Index::value(Expr::Var(var));
        let integer = |index: Index| Expr::Index(DType::I32, index);
        // Both runs of a pair are used up at its end: the next pair begins there.
        kernel.for_each("r", self.extent, |kernel, place| {
            kernel.when(vec![(value(end), Relation::Equal, place.clone())], |kernel| {
                kernel.b.assign(left, integer(place.clone()));
                kernel.b.assign(middle, integer(place.plus(&width).minimum(&extent)));
                kernel.b.assign(right, Expr::Var(middle));
                kernel.b.assign(end, integer(value(middle).plus(&width).minimum(&extent)));
            });
            let last = Index::from(self.extent - 1);
            let first = kernel.b.define("first", place_at(from, value(left).minimum(&last)));
            let second = kernel.b.define("second", place_at(from, value(right).minimum(&last)));
            let x = self.element(kernel, "x", Index::value(first.clone()));
            let y = self.element(kernel, "y", Index::value(second.clone()));
            let left_remains = Expr::binary(B::Less, Expr::Var(left), Expr::Var(middle));
            let right_remains = Expr::binary(B::Less, Expr::Var(right), Expr::Var(end));
            let right_is_next = Expr::binary(B::And, right_remains, self.before(&y, &x));
            let left_is_used_up = Expr::unary(UnaryFunction::Not, left_remains);
            let takes_right = kernel.b.define("takes_right", Expr::binary(B::Or, left_is_used_up, right_is_next));
            kernel.b.store(to, place, choose(&takes_right, second, first));
            kernel.b.assign(left, choose(&takes_right, Expr::Var(left), integer(value(left).offset(1))));
            kernel.b.assign(right, choose(&takes_right, integer(value(right).offset(1)), Expr::Var(right)));
        });
    }

    /// Writes the elements at the first places, and the places.
    fn publish(&self, kernel: &mut KernelWriter<'_>, count: usize) {
        let indices = kernel.results[1].clone();
        kernel.for_each("s", count, |kernel, slot| {
            let place = kernel.b.define("place", place_at(self.places, slot.clone()));
            let value = kernel.load(self.x, &self.at(Index::value(place.clone())), 1, 1);
            let to = self.at(slot);
            kernel.finish(value, &to, 1);
            kernel.store(&indices, Expr::Cast(DType::I64, Box::new(place)), &to, 1);
        });
    }
}
