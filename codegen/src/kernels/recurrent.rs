//! Recurrent layers: a loop over time; each step is a product of the hidden state and the recurrent weights, whose gates of the
//! same units stay in registers until the state is computed from them.
//!
//! The states live in the memory of the last states, which are results. Constant weights are packed so that a step reads them
//! from start to end.

use super::space::{Stretch, for_vectors, stretches};
use super::{Argument, Kernel};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use crate::lower::view::View;
use mlc_ir::ops::{Recurrent, RecurrentCell};
use mlc_ir::scalar::{Expression, UnaryFunction};
use mlc_ir::{Attribute, DType, Diagnostic, Tensor, TensorType};

/// Sums that a product keeps going at once.
const ACCUMULATORS: usize = 8;
/// Most parts that one sum is cut into.
const MOST_PARTS: usize = 4;

/// The schedule of `recurrent`.
pub fn recurrent(kernel: &mut Kernel<'_>, op: &Recurrent) -> Result<(), Diagnostic> {
    let layer = Layer::new(kernel, op);
    let shape = kernel.operands[0].view.shape.to_vec();
    let (time, batch) = (shape[0], shape[1]);
    kernel.for_each("item", batch, |kernel, item| {
        layer.start(kernel, &item);
        kernel.for_each("t", time, |kernel, step| {
            let step = if op.reverse { step.times(-1).offset(time as i64 - 1) } else { step };
            layer.units(kernel, &step, &item);
            layer.project(kernel, &item);
            layer.publish(kernel, &step, &item);
        });
    });
    Ok(())
}

struct Layer {
    cell: RecurrentCell,
    dtype: DType,
    units: usize,
    state: usize,
    lanes: usize,
    x: Argument,
    bias: Argument,
    /// The hidden state before a step.
    hidden: Argument,
    /// The cell state of an lstm.
    cells: Option<Argument>,
    /// The units' outputs of a step.
    next: Argument,
    gates: Matrix,
    projection: Option<Matrix>,
}

impl Layer {
    fn new(kernel: &mut Kernel<'_>, op: &Recurrent) -> Layer {
        let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
        let dtype = x.view.dtype;
        let (state, gates) = (weights.view.shape[0], op.cell.gates());
        let units = x.view.shape[2] / gates;
        let lanes = kernel.lanes(dtype);
        let pointer = kernel.scratch("next", dtype, units);
        let next = Argument { pointer, view: View::dense(dtype, &[units]), constant: None, operand: None };
        let projection =
            op.projection.then(|| Matrix::new(kernel, kernel.operands[5].clone(), "projection_packed", 1, lanes));
        Layer {
            cell: op.cell,
            dtype,
            units,
            state,
            lanes,
            bias: kernel.operands[2].clone(),
            hidden: kernel.results[1].clone(),
            cells: kernel.results.get(2).cloned(),
            next,
            gates: Matrix::new(kernel, weights, "weights_packed", gates, lanes),
            projection,
            x,
        }
    }

    /// Copies the initial states.
    fn start(&self, kernel: &mut Kernel<'_>, item: &Index) {
        let mut states = vec![(kernel.operands[3].clone(), self.hidden.clone())];
        if let Some(cells) = &self.cells {
            states.push((kernel.operands[4].clone(), cells.clone()));
        }
        for (from, to) in states {
            for_vectors(kernel, "u", to.view.shape[1], self.lanes, self.dtype, |kernel, unit, lanes| {
                let place = [item.clone(), unit];
                let value = kernel.load(&from, &place, lanes, lanes);
                kernel.store(&to, value, &place, lanes);
            });
        }
    }

    /// Computes the outputs of all units into `next`.
    fn units(&self, kernel: &mut Kernel<'_>, step: &Index, item: &Index) {
        let start = |kernel: &mut Kernel<'_>, gate: usize, unit: &Index, lanes: usize| {
            let bias = kernel.load(&self.bias, &[self.gate_index(gate, unit)], lanes, lanes);
            if self.cell == RecurrentCell::Gru && gate == 2 {
                return bias;
            }
            self.input(kernel, step, item, gate, unit, lanes).plus(bias)
        };
        let state =
            |kernel: &mut Kernel<'_>, row: &Index| kernel.load(&self.hidden, &[item.clone(), row.clone()], 1, 1);
        self.gates.product(kernel, &start, &state, &|kernel, unit, sums, lanes| {
            let value = self.unit(kernel, step, item, &unit, sums, lanes);
            kernel.store(&self.next, value, &[unit], lanes);
        });
    }

    fn gate_index(&self, gate: usize, unit: &Index) -> Index {
        unit.offset((gate * self.units) as i64)
    }

    fn input(&self, kernel: &Kernel<'_>, step: &Index, item: &Index, gate: usize, unit: &Index, lanes: usize) -> Expr {
        let place = [step.clone(), item.clone(), self.gate_index(gate, unit)];
        kernel.load(&self.x, &place, lanes, lanes)
    }

    /// The output of some units from the sums of their gates.
    fn unit(
        &self,
        kernel: &mut Kernel<'_>,
        step: &Index,
        item: &Index,
        unit: &Index,
        sums: Vec<Expr>,
        lanes: usize,
    ) -> Expr {
        let place = [item.clone(), unit.clone()];
        let mut sums = sums.into_iter();
        let mut sum = || sums.next().unwrap_or_else(|| zero(self.dtype, lanes));
        match self.cell {
            RecurrentCell::Lstm => {
                let input = sigmoid(kernel, "input_gate", sum(), lanes);
                let forget = sigmoid(kernel, "forget_gate", sum(), lanes);
                let candidate = Expr::unary(UnaryFunction::Tanh, sum());
                let output = sigmoid(kernel, "output_gate", sum(), lanes);
                let Some(cells) = self.cells.clone() else { return output };
                let kept = forget.times(kernel.load(&cells, &place, lanes, lanes));
                let cell = kernel.b.define("cell_state", kept.plus(input.times(candidate)));
                kernel.store(&cells, cell.clone(), &place, lanes);
                output.times(Expr::unary(UnaryFunction::Tanh, cell))
            }
            RecurrentCell::Gru => {
                let reset = sigmoid(kernel, "reset_gate", sum(), lanes);
                let update = sigmoid(kernel, "update_gate", sum(), lanes);
                let new = self.input(kernel, step, item, 2, unit, lanes).plus(reset.times(sum()));
                let new = kernel.b.define("candidate", Expr::unary(UnaryFunction::Tanh, new));
                let before = kernel.load(&self.hidden, &place, lanes, lanes);
                // (1 - z) * n + z * h
                new.clone().plus(update.times(before.minus(new)))
            }
            RecurrentCell::RnnTanh => Expr::unary(UnaryFunction::Tanh, sum()),
            RecurrentCell::RnnRelu => Expr::unary(UnaryFunction::Relu, sum()),
        }
    }

    /// Computes the hidden state from the units' outputs by the projection weights.
    fn project(&self, kernel: &mut Kernel<'_>, item: &Index) {
        let Some(projection) = &self.projection else { return };
        let start = |_: &mut Kernel<'_>, _: usize, _: &Index, lanes: usize| zero(self.dtype, lanes);
        let output = |kernel: &mut Kernel<'_>, row: &Index| kernel.load(&self.next, std::slice::from_ref(row), 1, 1);
        projection.product(kernel, &start, &output, &|kernel, column, sums, lanes| {
            for sum in sums {
                kernel.store(&self.hidden, sum, &[item.clone(), column.clone()], lanes);
            }
        });
    }

    /// Makes the step's outputs the hidden state, and writes them to the sequence.
    fn publish(&self, kernel: &mut Kernel<'_>, step: &Index, item: &Index) {
        let lanes = kernel.epilogue_lanes(self.dtype);
        for_vectors(kernel, "u", self.state, lanes, self.dtype, |kernel, unit, lanes| {
            let place = [item.clone(), unit.clone()];
            let value = if self.projection.is_some() {
                kernel.load(&self.hidden, &place, lanes, lanes)
            } else {
                let value = kernel.load(&self.next, std::slice::from_ref(&unit), lanes, lanes);
                let value = kernel.b.define("h", value);
                kernel.store(&self.hidden, value.clone(), &place, lanes);
                value
            };
            kernel.finish(value, &[step.clone(), item.clone(), unit], lanes);
        });
    }
}

fn zero(dtype: DType, lanes: usize) -> Expr {
    let zero = Expr::Literal(mlc_ir::Literal::of(dtype, 0.0));
    if lanes == 1 { zero } else { Expr::Splat(Box::new(zero), lanes) }
}

fn sigmoid(kernel: &mut Kernel<'_>, name: &str, x: Expr, lanes: usize) -> Expr {
    let value = kernel.expression(&Expression::unary(UnaryFunction::Sigmoid), vec![x], lanes);
    kernel.b.define(name, value)
}

/// A matrix [rows, groups * columns] that a row is multiplied with, again and again.
struct Matrix {
    argument: Argument,
    rows: usize,
    groups: usize,
    columns: usize,
    stretches: Vec<Stretch>,
    /// Where the packed values are: for each block of columns, all rows of all groups of it.
    packed: Option<Var>,
}

impl Matrix {
    fn new(kernel: &mut Kernel<'_>, argument: Argument, name: &str, groups: usize, lanes: usize) -> Matrix {
        let (rows, columns) = (argument.view.shape[0], argument.view.shape[1] / groups);
        let dtype = argument.view.dtype;
        let stretches = stretches(columns, lanes, (ACCUMULATORS / groups).max(1), dtype);
        let mut matrix = Matrix { argument, rows, groups, columns, stretches, packed: None };
        if let (Some(values), Some(operand)) = (&matrix.argument.constant, matrix.argument.operand) {
            let packed = matrix.pack(&values.to_tensor());
            matrix.packed = Some(kernel.pack(operand, name, packed));
        }
        matrix
    }

    /// The values in the order in which a product reads them.
    fn pack(&self, values: &Tensor) -> Attribute {
        let width = self.groups * self.columns;
        let mut sources = Vec::with_capacity(self.rows * width);
        for stretch in &self.stretches {
            let block = stretch.vectors * stretch.lanes;
            for first in (stretch.start..stretch.end).step_by(block) {
                for row in 0..self.rows {
                    for group in 0..self.groups {
                        sources
                            .extend((first..first + block).map(|column| row * width + group * self.columns + column));
                    }
                }
            }
        }
        let ty = TensorType::new(values.ty().dtype, [sources.len()]);
        Attribute::from_tensor(&values.rearrange(ty, |place| sources[place]))
    }

    fn load(&self, kernel: &Kernel<'_>, row: &Index, block: &Block<'_>, group: usize, vector: usize) -> Expr {
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
                let column = block.column.offset((group * self.columns + vector * lanes) as i64);
                kernel.load(&self.argument, &[row.clone(), column], lanes, lanes)
            }
        }
    }

    /// Multiplies a row, given by its elements, with the matrix. `start` is what a sum of a group and columns starts from;
    /// `take` gets columns and the sums of all groups there.
    fn product(&self, kernel: &mut Kernel<'_>, start: &Start<'_>, element: &Element<'_>, take: &Take<'_>) {
        for stretch in &self.stretches {
            let Stretch { start: first, end, vectors, lanes } = *stretch;
            let step = (vectors * lanes) as i64;
            kernel.for_range("u", Index::from(first), Index::from(end), step, |kernel, column| {
                let block = Block { stretch, column: &column };
                let sums = self.sums(kernel, &block, start);
                self.rows(kernel, &block, &sums, element);
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
    fn sums(&self, kernel: &mut Kernel<'_>, block: &Block<'_>, start: &Start<'_>) -> Sums {
        let Stretch { vectors, lanes, .. } = *block.stretch;
        let parts = (ACCUMULATORS / (vectors * self.groups)).clamp(1, MOST_PARTS.min(self.rows.max(1)));
        let mut sums = Sums::new();
        for part in 0..parts {
            let mut own = Vec::new();
            for vector in 0..vectors {
                let mut groups = Vec::new();
                for group in 0..self.groups {
                    let value = if part == 0 {
                        start(kernel, group, &block.at(vector), lanes)
                    } else {
                        zero(self.argument.view.dtype, lanes)
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
    fn rows(&self, kernel: &mut Kernel<'_>, block: &Block<'_>, sums: &Sums, element: &Element<'_>) {
        let add = |kernel: &mut Kernel<'_>, row: &Index, part: &[Vec<Var>]| {
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
        let full = self.rows / sums.len() * sums.len();
        kernel.for_range("k", Index::default(), Index::from(full), sums.len() as i64, |kernel, row| {
            for (turn, part) in sums.iter().enumerate() {
                add(kernel, &row.offset(turn as i64), part);
            }
        });
        for (row, part) in (full..self.rows).zip(sums) {
            add(kernel, &Index::from(row), part);
        }
    }
}

/// Accumulators of a block by part, vector and group.
type Sums = Vec<Vec<Vec<Var>>>;

/// What the sum of a group starts from, at columns of some lanes.
type Start<'a> = dyn Fn(&mut Kernel<'_>, usize, &Index, usize) -> Expr + 'a;

/// An element of the row that a matrix is multiplied with.
type Element<'a> = dyn Fn(&mut Kernel<'_>, &Index) -> Expr + 'a;

/// Takes the sums of all groups at columns: their first one, the sums, the lanes.
type Take<'a> = dyn Fn(&mut Kernel<'_>, Index, Vec<Expr>, usize) + 'a;

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
