//! A matrix that one row after the other is multiplied with: its groups of columns stay in registers together, and constant
//! values are packed so that a product reads them from start to end.

use super::super::space::{Stretch, stretches};
use super::super::{Argument, KernelWriter};
use super::gates::Gates;
use crate::loops::{Expr, Index, Nest, Relation, ValueType, Var};
use mlc_ir::{Attribute, DType, Tensor, TensorType};
use std::ops::Range;

/// Sums that a product keeps going at once, at most.
const ACCUMULATORS: usize = 8;
/// Most parts that one sum is cut into.
const MOST_PARTS: usize = 4;

/// Sums that there are vector registers for, beside the one that weights go through.
fn accumulators(kernel: &KernelWriter<'_>, lanes: usize) -> usize {
    if lanes > 1 { ACCUMULATORS.min(kernel.target.registers.saturating_sub(1)) } else { ACCUMULATORS }
}

/// In which order a product reads a matrix: as it is packed, or the last block first, of each the last row first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Forth,
    Back,
}

impl Way {
    /// A place from 0 to `last`, counted from the end where it goes back.
    fn place(self, counted: Index, last: i64) -> Index {
        match self {
            Way::Forth => counted,
            Way::Back => counted.times(-1).offset(last),
        }
    }
}

/// Some groups of the columns of a matrix, that a row is multiplied with, again and again. Groups are of equal width, and their
/// products with the same columns are computed together.
#[derive(Clone)]
pub(super) struct Matrix {
    argument: Argument,
    rows: usize,
    /// The matrix's columns.
    width: usize,
    /// The first column of the first group.
    first: usize,
    groups: usize,
    columns: usize,
    stretches: Vec<Stretch>,
    /// Where the packed values are: for each block of columns, all rows of all groups of it.
    packed: Option<Var>,
    /// Where the sums of a block are while the next one's are added up, if products are pipelined.
    kept: Option<Var>,
}

/// The columns of a matrix that products are with.
pub(super) struct Groups {
    pub range: Range<usize>,
    /// Columns of each group.
    pub columns: usize,
}

/// The stretches of columns of so many groups of them.
fn stretches_of(kernel: &KernelWriter<'_>, columns: usize, groups: usize, lanes: usize, dtype: DType) -> Vec<Stretch> {
    stretches(columns, lanes, (accumulators(kernel, lanes) / groups).max(1), dtype)
}

/// Whether a stretch has more blocks than one.
fn is_several_blocks(stretch: &Stretch) -> bool {
    stretch.end - stretch.start >= 2 * stretch.vectors * stretch.lanes
}

/// Whether products with so many groups of columns have stretches of more blocks than one.
pub(super) fn has_several_blocks(
    kernel: &KernelWriter<'_>,
    columns: usize,
    groups: usize,
    lanes: usize,
    dtype: DType,
) -> bool {
    stretches_of(kernel, columns, groups, lanes, dtype).iter().any(is_several_blocks)
}

impl Matrix {
    /// Some groups of an operand, whose products are pipelined on demand, if there are blocks for that.
    pub fn new(
        kernel: &mut KernelWriter<'_>,
        argument: Argument,
        name: &str,
        Groups { range: groups, columns }: Groups,
        lanes: usize,
        is_pipelined: bool,
    ) -> Matrix {
        let (rows, width) = (argument.view.shape[0], argument.view.shape[1]);
        let dtype = argument.view.dtype;
        let (first, groups) = (groups.start * columns, groups.len());
        let stretches = stretches_of(kernel, columns, groups, lanes, dtype);
        let mut matrix = Matrix { argument, rows, width, first, groups, columns, stretches, packed: None, kept: None };
        if let (Some(values), Some(operand)) = (matrix.argument.constant.clone(), matrix.argument.operand) {
            let own = matrix.clone();
            let ty = TensorType::new(values.ty().dtype, [rows * matrix.groups * columns]);
            matrix.packed = Some(kernel.pack(operand, name, ty, move || Some(own.pack(&values.to_tensor()))));
        }
        let several = matrix.stretches.iter().filter(|stretch| is_pipelined && is_several_blocks(stretch));
        let widest = several.map(|stretch| stretch.vectors * stretch.lanes * matrix.groups).max();
        matrix.kept = widest.map(|elements| kernel.scratch("kept", dtype, elements));
        matrix
    }

    /// The values in the order in which a product reads them.
    fn pack(&self, values: &Tensor) -> Attribute {
        let mut sources = Vec::with_capacity(self.rows * self.groups * self.columns);
        for stretch in &self.stretches {
            let block = stretch.vectors * stretch.lanes;
            for first in (stretch.start..stretch.end).step_by(block) {
                for row in 0..self.rows {
                    for group in 0..self.groups {
                        let start = row * self.width + self.first + group * self.columns;
                        sources.extend((first..first + block).map(|column| start + column));
                    }
                }
            }
        }
        let ty = TensorType::new(values.ty().dtype, [sources.len()]);
        Attribute::from_tensor(&values.rearrange(ty, |place| sources[place]))
    }

    fn load(&self, kernel: &KernelWriter<'_>, row: &Index, block: &Block<'_>, group: usize, vector: usize) -> Expr {
        let Stretch { start, vectors, lanes, .. } = *block.stretch;
        match self.packed {
            // Whole blocks lie behind each other, and before them those of earlier stretches: column times rows and groups.
            Some(pointer) => {
                let width = vectors * lanes * self.groups;
                let before = block.column.offset(-(start as i64)).times((self.rows * self.groups) as i64);
                let index = before
                    .plus(&row.times(width as i64))
                    .offset((start * self.rows * self.groups + (group * vectors + vector) * lanes) as i64);
                Expr::Load { pointer, index, ty: ValueType::vector(self.argument.view.dtype, lanes) }
            }
            None => {
                let column = block.column.offset((self.first + group * self.columns + vector * lanes) as i64);
                kernel.load(&self.argument, &[row.clone(), column], lanes, lanes)
            }
        }
    }

    /// Multiplies a row, given by its elements, with the matrix. `start` is what a sum of a group and columns starts from;
    /// The steps of `take` get columns and the sums of all groups there.
    pub fn product(
        &self,
        kernel: &mut KernelWriter<'_>,
        way: Way,
        start: &Start<'_>,
        element: &Element<'_>,
        take: &Take<'_>,
    ) {
        let mut stretches: Vec<&Stretch> = self.stretches.iter().collect();
        if way == Way::Back {
            stretches.reverse();
        }
        for stretch in stretches {
            let own = Product { way, stretch, start, element, take };
            if let Some(kept) = self.kept.filter(|_| is_several_blocks(stretch)) {
                self.pipelined(kernel, &own, kept);
            } else {
                let (first, end) = (Index::from(stretch.start), Index::from(stretch.end));
                kernel.for_range("u", first, end, own.width() as i64, |kernel, counted| {
                    let block = Block { stretch, column: &own.column(counted) };
                    let sums = self.sums(kernel, &block, start);
                    self.rows(kernel, &own, &block, &sums, &Cuts { vectors: 1, steps: 1, amid: &|_, _, _| () });
                    for (vector, totals) in self.totals(&sums).into_iter().enumerate() {
                        let mut gates = Gates::in_registers(totals, stretch.lanes);
                        (0..take.steps).for_each(|step| (take.step)(kernel, step, &block.at(vector), &mut gates));
                    }
                });
            }
        }
    }

    /// The product of a stretch of several blocks. The sums of a block go to memory; the rows of the next block are cut into as many parts as there
    /// is to do with them, and behind each part a piece of it follows, few enough instructions for a machine that looks ahead to fetch the
    /// next part's weights meanwhile.
    fn pipelined(&self, kernel: &mut KernelWriter<'_>, own: &Product<'_>, kept: Var) {
        let Stretch { start, end, vectors, lanes } = *own.stretch;
        let (dtype, width, steps) = (self.argument.view.dtype, own.width() as i64, own.take.steps);
        let finish = |kernel: &mut KernelWriter<'_>, column: &Index, vector: &Index, step: usize| {
            let mut gates = Gates::in_memory(kept, vector.times((self.groups * lanes) as i64), dtype, lanes);
            (own.take.step)(kernel, step, &column.plus(&vector.times(lanes as i64)), &mut gates);
        };
        kernel.for_range("u", Index::from(start), Index::from(end), width, |kernel, counted| {
            let block = Block { stretch: own.stretch, column: &own.column(counted.clone()) };
            let before = own.column(counted.offset(-width));
            let is_behind_another = (counted, Relation::GreaterEqual, Index::from(start).offset(width));
            let amid = |kernel: &mut KernelWriter<'_>, vector: &Index, step: usize| {
                kernel.when(vec![is_behind_another.clone()], |kernel| finish(kernel, &before, vector, step));
            };
            let sums = self.sums(kernel, &block, own.start);
            self.rows(kernel, own, &block, &sums, &Cuts { vectors, steps, amid: &amid });
            for (place, total) in self.totals(&sums).into_iter().flatten().enumerate() {
                kernel.b.store(kept, Index::from(place * lanes), total);
            }
        });
        let last = own.column(Index::from(end).offset(-width));
        kernel.for_each("vector", vectors, |kernel, vector| {
            (0..steps).for_each(|step| finish(kernel, &last, &vector, step));
        });
    }

    /// Accumulators: the first part of the sums starts from `start`, others, where there are few sums, from 0.
    fn sums(&self, kernel: &mut KernelWriter<'_>, block: &Block<'_>, start: &Start<'_>) -> Sums {
        let Stretch { vectors, lanes, .. } = *block.stretch;
        let most = if kernel.target.is_strict() { 1 } else { MOST_PARTS.min(self.rows.max(1)) };
        let parts = (accumulators(kernel, lanes) / (vectors * self.groups)).clamp(1, most);
        let mut sums = Sums::new();
        for part in 0..parts {
            let mut own = Vec::new();
            for vector in 0..vectors {
                let mut groups = Vec::new();
                for group in 0..self.groups {
                    let value = if part == 0 {
                        start(kernel, group, &block.at(vector), lanes)
                    } else {
                        Expr::zero(self.argument.view.dtype, lanes)
                    };
                    groups.push(kernel.b.mutable("sum", value));
                }
                own.push(groups);
            }
            sums.push(own);
        }
        sums
    }

    /// Of each vector the sums of all groups.
    fn totals(&self, sums: &Sums) -> Vec<Vec<Expr>> {
        let total = |vector: usize, group: usize| {
            let parts = sums.iter().map(|part| Expr::Var(part[vector][group]));
            parts.reduce(Expr::plus)
        };
        let of_vector = |vector: usize| (0..self.groups).filter_map(|group| total(vector, group)).collect();
        (0..sums[0].len()).map(of_vector).collect()
    }

    /// Adds the products of all rows, each part of the sums taking its turn.
    fn rows(&self, kernel: &mut KernelWriter<'_>, own: &Product<'_>, block: &Block<'_>, sums: &Sums, cuts: &Cuts<'_>) {
        let way = own.way;
        let add = |kernel: &mut KernelWriter<'_>, row: &Index, part: &[Vec<Var>]| {
            let value = (own.element)(kernel, row);
            let value = kernel.b.define("h", value);
            for group in 0..self.groups {
                for (vector, own) in part.iter().enumerate() {
                    let weight = self.load(kernel, row, block, group, vector);
                    let sum = Expr::Var(own[group]).plus(value.clone().times(weight));
                    kernel.b.assign(own[group], sum);
                }
            }
        };
        let parts = sums.len();
        let full = self.rows / parts * parts;
        let rest = |kernel: &mut KernelWriter<'_>| {
            for (row, part) in (full..self.rows).zip(sums) {
                add(kernel, &Index::from(row), part);
            }
        };
        if way == Way::Back {
            rest(kernel);
        }
        let all = cuts.vectors * cuts.steps;
        let rows = (full / parts).div_ceil(all) * parts;
        kernel.for_each("vector", cuts.vectors, |kernel, vector| {
            for step in 0..cuts.steps {
                let first = vector.times(cuts.steps as i64).offset(step as i64).times(rows as i64);
                let end = first.offset(rows as i64);
                let end = if rows * all == full { end } else { end.minimum(&Index::from(full)) };
                kernel.for_turns("k", [first, end], parts as i64, all > 1, |kernel, row| {
                    let row = way.place(row, (full - parts) as i64);
                    for (turn, part) in sums.iter().enumerate() {
                        add(kernel, &row.offset(turn as i64), part);
                    }
                });
                (cuts.amid)(kernel, &vector, step);
            }
        });
        if way == Way::Forth {
            rest(kernel);
        }
    }
}

/// Accumulators of a block by part, vector and group.
type Sums = Vec<Vec<Vec<Var>>>;

/// What the sum of a group starts from, at columns of some lanes.
pub(super) type Start<'a> = dyn Fn(&mut KernelWriter<'_>, usize, &Index, usize) -> Expr + 'a;

/// An element of the row that a matrix is multiplied with.
pub(super) type Element<'a> = dyn Fn(&mut KernelWriter<'_>, &Index) -> Expr + 'a;

/// What the sums of all groups at columns are for.
pub(super) struct Take<'a> {
    /// How many steps that takes, one after the other; those of other columns may be done between them.
    pub steps: usize,
    /// Writes one of them: its number, the first of the columns, and the sums or what steps have made of them.
    pub step: &'a TakeStep<'a>,
}

/// What rows are cut for: behind each part of them, one for each step of each vector, something else is written.
struct Cuts<'a> {
    vectors: usize,
    steps: usize,
    amid: &'a dyn Fn(&mut KernelWriter<'_>, &Index, usize),
}

/// See [`Take::step`].
pub(super) type TakeStep<'a> = dyn Fn(&mut KernelWriter<'_>, usize, &Index, &mut Gates) + 'a;

/// A product of one stretch.
struct Product<'a> {
    way: Way,
    stretch: &'a Stretch,
    start: &'a Start<'a>,
    element: &'a Element<'a>,
    take: &'a Take<'a>,
}

impl Product<'_> {
    /// Columns of a block.
    fn width(&self) -> usize {
        self.stretch.vectors * self.stretch.lanes
    }

    /// The first column of the block that is counted as the one there.
    fn column(&self, counted: Index) -> Index {
        self.way.place(counted, (self.stretch.start + self.stretch.end - self.width()) as i64)
    }
}

/// Columns that a product computes at once.
struct Block<'a> {
    stretch: &'a Stretch,
    column: &'a Index,
}

impl Block<'_> {
    /// The first column of a vector.
    fn at(&self, vector: usize) -> Index {
        self.column.offset((vector * self.stretch.lanes) as i64)
    }
}
