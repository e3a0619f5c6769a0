//! Recurrent layers: a loop over time; each step is a product of the hidden state and the recurrent weights, whose gates of the
//! same units stay in registers until the state is computed from them.
//!
//! The states live in the memory of the last states, which are results. Constant weights are packed so that a step reads them
//! from start to end; where a cache holds a part of them, every second step reads them from end to start, and finds there what the step before it
//! has read last.

mod matrix;

use super::schedule::{Kind, Scheduled, Settings};
use super::space::for_vectors;
use super::writer::vector_dtype;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation};
use crate::lower::view::View;
use crate::target::{Cache, VectorSpelling};
use matrix::{Matrix, Way};
use mlc_ir::ops::{Recurrent, RecurrentCell, RecurrentOperand};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{DType, Diagnostic, Literal};

/// What a cache holds of weights that are more than so many times as large isn't worth code for two kinds of steps.
const MOST_PARTS_OF_CACHE: usize = 16;

impl Scheduled for Recurrent {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("steps", recurrent)];
}

fn recurrent(op: &Recurrent, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let layer = Layer::new(kernel, op);
    let shape = kernel.operands[0].view.shape.to_vec();
    let (time, batch) = (shape[0], shape[1]);
    kernel.for_each("item", batch, |kernel, item| {
        layer.start(kernel, &item);
        let length = layer.length(kernel, &item, time);
        let run = |kernel: &mut KernelWriter<'_>, step: Index, way: Way| {
            let step = if op.reverse { length.plus(&step.times(-1)).offset(-1) } else { step };
            layer.units(kernel, &step, &item, way);
            layer.project(kernel, &item, way);
            layer.publish(kernel, &step, &item);
        };
        if layer.turns_back(kernel, time) {
            kernel.for_range("t", Index::default(), length.clone(), 2, |kernel, step| {
                run(kernel, step.clone(), Way::Forth);
                let next = step.offset(1);
                match length.as_constant() {
                    Some(length) if length % 2 == 0 => run(kernel, next, Way::Back),
                    _ => kernel.when(vec![(next.clone(), Relation::Less, length.clone())], |kernel| {
                        run(kernel, next, Way::Back);
                    }),
                }
            });
        } else {
            kernel.for_range("t", Index::default(), length.clone(), 1, |kernel, step| run(kernel, step, Way::Forth));
        }
        kernel.for_range("t", length.clone(), Index::from(time), 1, |kernel, step| layer.blank(kernel, &step, &item));
    });
    Ok(())
}

struct Layer {
    cell: RecurrentCell,
    activations: Vec<Expression>,
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
    /// The products with the recurrent weights: all gates at once, but for those of `reset_first`.
    gates: Matrix,
    reset_first: Option<ResetFirst>,
    projection: Option<Matrix>,
    peepholes: Option<Argument>,
    lengths: Option<Argument>,
}

/// What a gru has that applies r before the product: n follows the other gates.
struct ResetFirst {
    candidate: Matrix,
    /// r * h of a step.
    reset: Argument,
    /// z of a step.
    update: Argument,
}

/// Where a step is.
struct Place<'a> {
    step: &'a Index,
    item: &'a Index,
    unit: &'a Index,
    lanes: usize,
}

impl Place<'_> {
    /// The place in a state.
    fn state(&self) -> [Index; 2] {
        [self.item.clone(), self.unit.clone()]
    }
}

impl Layer {
    fn new(kernel: &mut KernelWriter<'_>, op: &Recurrent) -> Layer {
        let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
        let dtype = x.view.dtype;
        let (state, gates) = (weights.view.shape[0], op.cell.gates());
        let units = x.view.shape[2] / gates;
        let vectorizable = |activation: &Expression| vector_dtype(activation, &[dtype]) == Some(dtype);
        let lanes = if op.activations.iter().all(vectorizable) { kernel.lanes(dtype) } else { 1 };
        let next = scratch(kernel, "next", dtype, units);
        let optional =
            |kernel: &KernelWriter<'_>, operand| op.operand(operand).map(|place| kernel.operands[place].clone());
        let projection = optional(kernel, RecurrentOperand::Projection);
        let projection =
            projection.map(|weights| Matrix::new(kernel, weights, "projection_packed", 0..1, state, lanes));
        let reset_first = (op.cell == RecurrentCell::ResetFirstGru).then(|| ResetFirst {
            candidate: Matrix::new(kernel, weights.clone(), "candidate_packed", 2..3, units, lanes),
            reset: scratch(kernel, "reset", dtype, units),
            update: scratch(kernel, "update", dtype, units),
        });
        let together = if reset_first.is_some() { 0..2 } else { 0..gates };
        Layer {
            cell: op.cell,
            activations: op.activations.clone(),
            dtype,
            units,
            state,
            lanes,
            bias: kernel.operands[2].clone(),
            hidden: kernel.results[1].clone(),
            cells: kernel.results.get(2).cloned(),
            next,
            gates: Matrix::new(kernel, weights, "weights_packed", together, units, lanes),
            reset_first,
            projection,
            peepholes: optional(kernel, RecurrentOperand::Peepholes),
            lengths: optional(kernel, RecurrentOperand::Lengths),
            x,
        }
    }

    /// Whether every second step goes through the weights from end to start. It adds up the products of those steps in another order, and is
    /// written apart from the others; code for any machine is for those without caches, too.
    fn turns_back(&self, kernel: &KernelWriter<'_>, time: usize) -> bool {
        let candidate = self.reset_first.as_ref().map(|own| &own.candidate);
        let matrices = [Some(&self.gates), candidate, self.projection.as_ref()].into_iter().flatten();
        let bytes: usize = matrices.map(Matrix::packed_bytes).sum();
        let holds_a_part = |cache: &Cache| cache.bytes < bytes && bytes <= MOST_PARTS_OF_CACHE * cache.bytes;
        let target = kernel.target;
        let may = time > 1 && !target.is_strict() && target.vectors != VectorSpelling::Either;
        may && target.machine.caches.iter().any(holds_a_part)
    }

    /// Copies the initial states.
    fn start(&self, kernel: &mut KernelWriter<'_>, item: &Index) {
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

    /// The steps of an item, whatever its operand says within the extent of time.
    fn length(&self, kernel: &mut KernelWriter<'_>, item: &Index, time: usize) -> Index {
        let Some(lengths) = &self.lengths else { return Index::from(time) };
        let literal = |value: usize| Expr::Literal(Literal::integer(lengths.view.dtype, value as i64));
        let length = kernel.load(lengths, std::slice::from_ref(item), 1, 1);
        let bounded = Expr::binary(BinaryFunction::Minimum, length, literal(time));
        let bounded = Expr::binary(BinaryFunction::Maximum, bounded, literal(0));
        kernel.b.define_index("length", Index::value(bounded))
    }

    /// Computes the outputs of all units into `next`.
    fn units(&self, kernel: &mut KernelWriter<'_>, step: &Index, item: &Index, way: Way) {
        let start = |kernel: &mut KernelWriter<'_>, gate: usize, unit: &Index, lanes: usize| {
            let bias = kernel.load(&self.bias, &[self.gate_index(gate, unit)], lanes, lanes);
            if self.cell == RecurrentCell::Gru && gate == 2 {
                return bias;
            }
            self.input(kernel, gate, &Place { step, item, unit, lanes }).plus(bias)
        };
        let state =
            |kernel: &mut KernelWriter<'_>, row: &Index| kernel.load(&self.hidden, &[item.clone(), row.clone()], 1, 1);
        let Some(ResetFirst { candidate, reset, update }) = &self.reset_first else {
            return self.gates.product(kernel, way, &start, &state, &|kernel, unit, sums, lanes| {
                let value = self.unit(kernel, &Place { step, item, unit: &unit, lanes }, sums);
                kernel.store(&self.next, value, &[unit], lanes);
            });
        };
        self.gates.product(kernel, way, &start, &state, &|kernel, unit, sums, lanes| {
            let before = kernel.load(&self.hidden, &[item.clone(), unit.clone()], lanes, lanes);
            let mut sums = sums.into_iter();
            let mut sum = || sums.next().unwrap_or_else(|| Expr::zero(self.dtype, lanes));
            let gate = self.gate(kernel, "reset_gate", sum(), lanes);
            kernel.store(reset, gate.times(before), std::slice::from_ref(&unit), lanes);
            let gate = self.gate(kernel, "update_gate", sum(), lanes);
            kernel.store(update, gate, &[unit], lanes);
        });
        let start = |kernel: &mut KernelWriter<'_>, _: usize, unit: &Index, lanes: usize| start(kernel, 2, unit, lanes);
        let scaled = |kernel: &mut KernelWriter<'_>, row: &Index| kernel.load(reset, std::slice::from_ref(row), 1, 1);
        candidate.product(kernel, way, &start, &scaled, &|kernel, unit, sums, lanes| {
            let place = Place { step, item, unit: &unit, lanes };
            let update = kernel.load(update, std::slice::from_ref(&unit), lanes, lanes);
            for sum in sums {
                let value = self.mixed(kernel, &place, sum, update.clone());
                kernel.store(&self.next, value, std::slice::from_ref(&unit), lanes);
            }
        });
    }

    fn gate_index(&self, gate: usize, unit: &Index) -> Index {
        unit.offset((gate * self.units) as i64)
    }

    fn input(&self, kernel: &KernelWriter<'_>, gate: usize, place: &Place<'_>) -> Expr {
        let index = [place.step.clone(), place.item.clone(), self.gate_index(gate, place.unit)];
        kernel.load(&self.x, &index, place.lanes, place.lanes)
    }

    fn activated(&self, kernel: &mut KernelWriter<'_>, which: usize, x: Expr, lanes: usize) -> Expr {
        kernel.expression(&self.activations[which], vec![x], lanes)
    }

    /// A named gate that the first activation is for.
    fn gate(&self, kernel: &mut KernelWriter<'_>, name: &str, sum: Expr, lanes: usize) -> Expr {
        let value = self.activated(kernel, 0, sum, lanes);
        kernel.b.define(name, value)
    }

    /// The output of some units from the sums of their gates.
    fn unit(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, sums: Vec<Expr>) -> Expr {
        let lanes = place.lanes;
        let mut sums = sums.into_iter();
        let mut sum = || sums.next().unwrap_or_else(|| Expr::zero(self.dtype, lanes));
        match self.cell {
            RecurrentCell::Lstm | RecurrentCell::CoupledLstm => self.lstm(kernel, place, &mut sum),
            RecurrentCell::Gru | RecurrentCell::ResetFirstGru => {
                let reset = self.gate(kernel, "reset_gate", sum(), lanes);
                let update = self.gate(kernel, "update_gate", sum(), lanes);
                let new = self.input(kernel, 2, place).plus(reset.times(sum()));
                self.mixed(kernel, place, new, update)
            }
            RecurrentCell::Rnn => self.activated(kernel, 0, sum(), lanes),
        }
    }

    /// (1 - z) * activation(n) + z * h
    fn mixed(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, new: Expr, update: Expr) -> Expr {
        let new = self.activated(kernel, 1, new, place.lanes);
        let new = kernel.b.define("candidate", new);
        let before = kernel.load(&self.hidden, &place.state(), place.lanes, place.lanes);
        new.clone().plus(update.times(before.minus(new)))
    }

    fn lstm(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, sum: &mut dyn FnMut() -> Expr) -> Expr {
        let Some(cells) = &self.cells else { return sum() };
        let lanes = place.lanes;
        let coupled = self.cell == RecurrentCell::CoupledLstm;
        let before = kernel.load(cells, &place.state(), lanes, lanes);
        let before = if self.peepholes.is_some() { kernel.b.define("cell_before", before) } else { before };
        let input = self.peeped(kernel, place, 0, sum(), &before);
        let input = self.gate(kernel, "input_gate", input, lanes);
        let forget = if coupled {
            let one = Expr::splat(Literal::of(self.dtype, 1.0), lanes);
            kernel.b.define("forget_gate", one.minus(input.clone()))
        } else {
            let forget = self.peeped(kernel, place, 1, sum(), &before);
            self.gate(kernel, "forget_gate", forget, lanes)
        };
        let candidate = self.activated(kernel, 1, sum(), lanes);
        let cell = kernel.b.define("cell_state", forget.times(before).plus(input.times(candidate)));
        let output = self.peeped(kernel, place, self.cell.peepholes() - 1, sum(), &cell);
        let output = self.gate(kernel, "output_gate", output, lanes);
        kernel.store(cells, cell.clone(), &place.state(), lanes);
        let activated = self.activated(kernel, 2, cell, lanes);
        output.times(activated)
    }

    /// A gate's sum with the product of the cell state and the gate's peephole weights, where there are such.
    fn peeped(&self, kernel: &KernelWriter<'_>, place: &Place<'_>, which: usize, sum: Expr, cell: &Expr) -> Expr {
        let Some(peepholes) = &self.peepholes else { return sum };
        let weights = kernel.load(peepholes, &[self.gate_index(which, place.unit)], place.lanes, place.lanes);
        sum.plus(weights.times(cell.clone()))
    }

    /// Computes the hidden state from the units' outputs by the projection weights.
    fn project(&self, kernel: &mut KernelWriter<'_>, item: &Index, way: Way) {
        let Some(projection) = &self.projection else { return };
        let start = |_: &mut KernelWriter<'_>, _: usize, _: &Index, lanes: usize| Expr::zero(self.dtype, lanes);
        let output =
            |kernel: &mut KernelWriter<'_>, row: &Index| kernel.load(&self.next, std::slice::from_ref(row), 1, 1);
        projection.product(kernel, way, &start, &output, &|kernel, column, sums, lanes| {
            for sum in sums {
                kernel.store(&self.hidden, sum, &[item.clone(), column.clone()], lanes);
            }
        });
    }

    /// Makes the step's outputs the hidden state, and writes them to the sequence.
    fn publish(&self, kernel: &mut KernelWriter<'_>, step: &Index, item: &Index) {
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

    /// Writes what the sequence is after an item's end.
    fn blank(&self, kernel: &mut KernelWriter<'_>, step: &Index, item: &Index) {
        let lanes = kernel.epilogue_lanes(self.dtype);
        for_vectors(kernel, "u", self.state, lanes, self.dtype, |kernel, unit, lanes| {
            kernel.finish(Expr::zero(self.dtype, lanes), &[step.clone(), item.clone(), unit], lanes);
        });
    }
}

/// A row of scratch memory.
fn scratch(kernel: &mut KernelWriter<'_>, name: &str, dtype: DType, elements: usize) -> Argument {
    let pointer = kernel.scratch(name, dtype, elements);
    Argument { pointer, view: View::dense(dtype, &[elements]), constant: None, operand: None }
}
