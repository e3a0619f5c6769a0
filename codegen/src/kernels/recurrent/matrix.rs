//! A matrix that one row after the other is multiplied with: its groups of columns stay in registers together, and constant
//! values are packed so that a product reads them from start to end.

use super::super::space::{Stretch, stretches};
use super::super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use mlc_ir::{Attribute, Tensor, TensorType};
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
}

impl Matrix {
    /// The groups of a range, each of some columns, of an operand.
    pub fn new(
        kernel: &mut KernelWriter<'_>,
        argument: Argument,
        name: &str,
        groups: Range<usize>,
        columns: usize,
        lanes: usize,
    ) -> Matrix {
        let (rows, width) = (argument.view.shape[0], argument.view.shape[1]);
        let dtype = argument.view.dtype;
        let (first, groups) = (groups.start * columns, groups.len());
        let stretches = stretches(columns, lanes, (accumulators(kernel, lanes) / groups).max(1), dtype);
        let mut matrix = Matrix { argument, rows, width, first, groups, columns, stretches, packed: None };
        if let (Some(values), Some(operand)) = (matrix.argument.constant.clone(), matrix.argument.operand) {
            let own = matrix.clone();
            let ty = TensorType::new(values.ty().dtype, [rows * matrix.groups * columns]);
            matrix.packed = Some(kernel.pack(operand, name, ty, move || Some(own.pack(&values.to_tensor()))));
        }
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

    /// Bytes of the packed values; 0 where they aren't packed.
    pub fn packed_bytes(&self) -> usize {
        self.packed.map_or(0, |_| self.rows * self.groups * self.columns * self.argument.view.dtype.size())
    }

    /// Multiplies a row, given by its elements, with the matrix. `start` is what a sum of a group and columns starts from;
    /// `take` gets columns and the sums of all groups there.
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
            let Stretch { start: first, end, vectors, lanes } = *stretch;
            let step = (vectors * lanes) as i64;
            kernel.for_range("u", Index::from(first), Index::from(end), step, |kernel, column| {
                let column = way.place(column, (first + end) as i64 - step);
                let block = Block { stretch, column: &column };
                let sums = self.sums(kernel, &block, start);
                self.rows(kernel, way, &block, &sums, element);
                for vector in 0..vectors {
                    let total = |group: usize| {
                        let parts = sums.iter().map(|part| Expr::Var(part[vector][group]));
                        parts.reduce(Expr::plus)
                    };
                    let totals = (0..self.groups).filter_map(total).collect();
                    take(kernel, block.at(vector), totals, lanes);
                }
            });
        }
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

    /// Adds the products of all rows, each part of the sums taking its turn.
    fn rows(&self, kernel: &mut KernelWriter<'_>, way: Way, block: &Block<'_>, sums: &Sums, element: &Element<'_>) {
        let add = |kernel: &mut KernelWriter<'_>, row: &Index, part: &[Vec<Var>]| {
            let value = element(kernel, row);
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
        kernel.for_range("k", Index::default(), Index::from(full), parts as i64, |kernel, row| {
            let row = way.place(row, (full - parts) as i64);
            for (turn, part) in sums.iter().enumerate() {
                add(kernel, &row.offset(turn as i64), part);
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

/// Takes the sums of all groups at columns: their first one, the sums, the lanes.
pub(super) type Take<'a> = dyn Fn(&mut KernelWriter<'_>, Index, Vec<Expr>, usize) + 'a;

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
