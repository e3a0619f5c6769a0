//! Recurrent layers: a loop over time; each step is a product of the hidden state and the recurrent weights, whose gates of the
//! same units stay in registers until the state is computed from them, or, where steps are pipelined, go to memory, and the state is computed amid
//! the products of the next units: what the gates' functions wait for and what weights are fetched for don't add up then.
//!
//! The states live in the memory of the last states, which are results. Constant weights are packed so that a step reads them
//! from start to end; where a cache holds a part of them, every second step reads them from end to start, and finds there what the step before it
//! has read last.

mod gates;
mod matrix;

use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::space::for_vectors;
use super::writer::vector_dtype;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation};
use crate::lower::view::View;
use crate::target::{Cache, VectorSpelling};
use gates::Gates;
use matrix::{Groups, Matrix, Take, Way};
use mlc_ir::ops::{Recurrent, RecurrentCell, RecurrentOperand};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{DType, Diagnostic, Literal};
use std::ops::Range;

/// What a cache holds of weights that are more than so many times as large isn't worth code for two kinds of steps.
const MOST_PARTS_OF_CACHE: usize = 16;

impl Scheduled for Recurrent {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("pipelined-steps", pipelined, |op, _, kernel| recurrent(op, true, kernel)),
        Kind::new("steps", |_, _| vec![(1, Settings::default())], |op, _, kernel| recurrent(op, false, kernel)),
    ];
}

/// Machines that look ahead fetch weights while they compute gates, if they come to them. It pays where weights come from behind the nearest cache, and where
/// all gates are computed in vectors: functions of single elements are calls, which are longer than what a machine sees ahead.
fn pipelined(op: &Recurrent, kernel: &KernelWriter<'_>) -> Preferences {
    let target = kernel.target;
    let (dtype, lanes) = (kernel.operands[0].view.dtype, lanes(op, kernel));
    let units = kernel.operands[0].view.shape[2] / op.cell.gates();
    let (first, second) = together(op.cell);
    let mut products = std::iter::once(first).chain(second);
    let has_blocks = products.any(|groups| matrix::has_several_blocks(kernel, units, groups.len(), lanes, dtype));
    if !target.machine.looks_ahead() || target.vectors == VectorSpelling::Either || lanes == 1 || !has_blocks {
        return Preferences::new();
    }
    let nearest = kernel.target.machine.caches.first();
    let is_far = nearest.is_some_and(|cache| cache.bytes < weight_bytes(op, kernel));
    vec![(if is_far { 0 } else { 2 }, Settings::default())]
}

/// The gates whose products are computed together: all at once, but for a gru's that applies r before the product, where n follows the others.
fn together(cell: RecurrentCell) -> (Range<usize>, Option<Range<usize>>) {
    match cell {
        RecurrentCell::ResetFirstGru => (0..2, Some(2..3)),
        _ => (0..cell.gates(), None),
    }
}

/// Units that are computed as one vector.
fn lanes(op: &Recurrent, kernel: &KernelWriter<'_>) -> usize {
    let dtype = kernel.operands[0].view.dtype;
    let vectorizable = |activation: &Expression| vector_dtype(activation, &[dtype]) == Some(dtype);
    if op.activations.iter().all(vectorizable) { kernel.lanes(dtype) } else { 1 }
}

/// Bytes of the constant weights that a step reads.
fn weight_bytes(op: &Recurrent, kernel: &KernelWriter<'_>) -> usize {
    let matrices = [Some(1), op.operand(RecurrentOperand::Projection)].into_iter().flatten();
    let constant = matrices.filter_map(|place| kernel.operands[place].constant.as_ref());
    constant.map(|values| values.ty().bytes()).sum()
}

/// Whether every second step goes through the weights from end to start. It adds up the products of those steps in another order, and is
/// written apart from the others; code for any machine is for those without caches, too.
fn turns_back(op: &Recurrent, kernel: &KernelWriter<'_>, time: usize) -> bool {
    let bytes = weight_bytes(op, kernel);
    let holds_a_part = |cache: &Cache| cache.bytes < bytes && bytes <= MOST_PARTS_OF_CACHE * cache.bytes;
    let target = kernel.target;
    let may = time > 1 && !target.is_strict() && target.vectors != VectorSpelling::Either;
    may && target.machine.caches.iter().any(holds_a_part)
}

fn recurrent(op: &Recurrent, is_pipelined: bool, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let layer = Layer::new(kernel, op, is_pipelined);
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
        if turns_back(op, kernel, time) {
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
    fn new(kernel: &mut KernelWriter<'_>, op: &Recurrent, is_pipelined: bool) -> Layer {
        let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
        let dtype = x.view.dtype;
        let (state, units) = (weights.view.shape[0], x.view.shape[2] / op.cell.gates());
        let lanes = lanes(op, kernel);
        let next = scratch(kernel, "next", dtype, units);
        let optional =
            |kernel: &KernelWriter<'_>, operand| op.operand(operand).map(|place| kernel.operands[place].clone());
        let projection = optional(kernel, RecurrentOperand::Projection);
        let projection = projection.map(|weights| {
            Matrix::new(kernel, weights, "projection_packed", Groups { range: 0..1, columns: state }, lanes, false)
        });
        let of_units = |range| Groups { range, columns: units };
        let (gates, behind) = together(op.cell);
        let reset_first = behind.map(of_units).map(|groups| ResetFirst {
            candidate: Matrix::new(kernel, weights.clone(), "candidate_packed", groups, lanes, is_pipelined),
            reset: scratch(kernel, "reset", dtype, units),
            update: scratch(kernel, "update", dtype, units),
        });
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
            gates: Matrix::new(kernel, weights, "weights_packed", of_units(gates), lanes, is_pipelined),
            reset_first,
            projection,
            peepholes: optional(kernel, RecurrentOperand::Peepholes),
            lengths: optional(kernel, RecurrentOperand::Lengths),
            x,
        }
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
            let write = |kernel: &mut KernelWriter<'_>, number: usize, unit: &Index, gates: &mut Gates| {
                self.unit(kernel, number, &Place { step, item, unit, lanes: gates.lanes }, gates);
            };
            return self.gates.product(kernel, way, &start, &state, &Take { steps: self.cell.gates(), step: &write });
        };
        let write = |kernel: &mut KernelWriter<'_>, number: usize, unit: &Index, gates: &mut Gates| {
            let lanes = gates.lanes;
            if number == 0 {
                let gate = self.gate(kernel, "reset_gate", 0, gates);
                let before = kernel.load(&self.hidden, &[item.clone(), unit.clone()], lanes, lanes);
                return kernel.store(reset, gate.times(before), std::slice::from_ref(unit), lanes);
            }
            let gate = self.gate(kernel, "update_gate", 1, gates);
            kernel.store(update, gate, std::slice::from_ref(unit), lanes);
        };
        self.gates.product(kernel, way, &start, &state, &Take { steps: 2, step: &write });
        let start = |kernel: &mut KernelWriter<'_>, _: usize, unit: &Index, lanes: usize| start(kernel, 2, unit, lanes);
        let scaled = |kernel: &mut KernelWriter<'_>, row: &Index| kernel.load(reset, std::slice::from_ref(row), 1, 1);
        let write = |kernel: &mut KernelWriter<'_>, _: usize, unit: &Index, gates: &mut Gates| {
            let update = kernel.load(update, std::slice::from_ref(unit), gates.lanes, gates.lanes);
            self.mixed(kernel, &Place { step, item, unit, lanes: gates.lanes }, gates.get(0), update);
        };
        candidate.product(kernel, way, &start, &scaled, &Take { steps: 1, step: &write });
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

    /// Makes a sum the gate that the first activation is for.
    fn gate(&self, kernel: &mut KernelWriter<'_>, name: &str, group: usize, gates: &mut Gates) -> Expr {
        let value = self.activated(kernel, 0, gates.get(group), gates.lanes);
        gates.set(kernel, group, name, value)
    }

    /// A step, of as many as there are gates, on the way from the sums of some units' gates to their outputs.
    fn unit(&self, kernel: &mut KernelWriter<'_>, step: usize, place: &Place<'_>, gates: &mut Gates) {
        match self.cell {
            RecurrentCell::Lstm | RecurrentCell::CoupledLstm => self.lstm(kernel, step, place, gates),
            RecurrentCell::Gru | RecurrentCell::ResetFirstGru => match step {
                0 => drop(self.gate(kernel, "reset_gate", 0, gates)),
                1 => drop(self.gate(kernel, "update_gate", 1, gates)),
                _ => {
                    let new = self.input(kernel, 2, place).plus(gates.get(0).times(gates.get(2)));
                    self.mixed(kernel, place, new, gates.get(1));
                }
            },
            RecurrentCell::Rnn => {
                let value = self.activated(kernel, 0, gates.get(0), place.lanes);
                self.put(kernel, place, value);
            }
        }
    }

    /// Outputs of some units.
    fn put(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, value: Expr) {
        kernel.store(&self.next, value, std::slice::from_ref(place.unit), place.lanes);
    }

    /// (1 - z) * activation(n) + z * h
    fn mixed(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, new: Expr, update: Expr) {
        let new = self.activated(kernel, 1, new, place.lanes);
        let new = kernel.b.define("candidate", new);
        let before = kernel.load(&self.hidden, &place.state(), place.lanes, place.lanes);
        self.put(kernel, place, new.clone().plus(update.times(before.minus(new))));
    }

    /// A step of an lstm: the input gate, the forget gate where it has its own, the cell state, and the outputs.
    fn lstm(&self, kernel: &mut KernelWriter<'_>, step: usize, place: &Place<'_>, gates: &mut Gates) {
        let Some(cells) = &self.cells else { return };
        let lanes = place.lanes;
        let output = self.cell.gates() - 1;
        let candidate = output - 1;
        if step < candidate {
            let before = kernel.load(cells, &place.state(), lanes, lanes);
            self.peep(kernel, place, step, gates, before);
            self.gate(kernel, if step == 0 { "input_gate" } else { "forget_gate" }, step, gates);
        } else if step == candidate {
            let forget = if self.cell == RecurrentCell::CoupledLstm {
                let one = Expr::splat(Literal::of(self.dtype, 1.0), lanes);
                kernel.b.define("forget_gate", one.minus(gates.get(0)))
            } else {
                gates.get(1)
            };
            let before = kernel.load(cells, &place.state(), lanes, lanes);
            let new = self.activated(kernel, 1, gates.get(candidate), lanes);
            let value = forget.times(before).plus(gates.get(0).times(new));
            let value = gates.set(kernel, candidate, "cell_state", value);
            kernel.store(cells, value, &place.state(), lanes);
        } else {
            self.peep(kernel, place, output, gates, gates.get(candidate));
            let gate = self.activated(kernel, 0, gates.get(output), lanes);
            let gate = kernel.b.define("output_gate", gate);
            let activated = self.activated(kernel, 2, gates.get(candidate), lanes);
            self.put(kernel, place, gate.times(activated));
        }
    }

    /// Adds to a gate's sum the product of a cell state and the gate's peephole weights, where there are such.
    fn peep(&self, kernel: &mut KernelWriter<'_>, place: &Place<'_>, gate: usize, gates: &mut Gates, cell: Expr) {
        let Some(peepholes) = &self.peepholes else { return };
        // Of all gates the candidate, the last but one, has none.
        let which = gate.min(self.cell.peepholes() - 1);
        let weights = kernel.load(peepholes, &[self.gate_index(which, place.unit)], place.lanes, place.lanes);
        let sum = gates.get(gate).plus(weights.times(cell));
        gates.set(kernel, gate, "peeped", sum);
    }

    /// Computes the hidden state from the units' outputs by the projection weights.
    fn project(&self, kernel: &mut KernelWriter<'_>, item: &Index, way: Way) {
        let Some(projection) = &self.projection else { return };
        let start = |_: &mut KernelWriter<'_>, _: usize, _: &Index, lanes: usize| Expr::zero(self.dtype, lanes);
        let output =
            |kernel: &mut KernelWriter<'_>, row: &Index| kernel.load(&self.next, std::slice::from_ref(row), 1, 1);
        let write = |kernel: &mut KernelWriter<'_>, _: usize, column: &Index, sums: &mut Gates| {
            kernel.store(&self.hidden, sums.get(0), &[item.clone(), column.clone()], sums.lanes);
        };
        projection.product(kernel, way, &start, &output, &Take { steps: 1, step: &write });
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
