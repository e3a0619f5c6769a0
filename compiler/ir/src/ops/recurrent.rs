//! `recurrent`: A recurrent layer in one direction, after its input projection. Operands: projected input [T, B, G * H] (biases of the input side added), recurrent weights [P, G * H], recurrent bias [G * H], initial hidden state [B, P], for the lstm cells initial cell state [B, H], and those that `with` lists; without projection P = H. Results: sequence [T, B, P], last hidden state [B, P], for the lstm cells last cell state [B, H].

mod cell;

use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, count_product};
use crate::ops::elementwise::expression_cost;
use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use cell::Layer;
use std::ops::Range;

pub use cell::RecurrentCell;

crate::operator_fields! {
    /// A recurrent layer in one direction, after its input projection.
    pub struct Recurrent {
        /// The cell's equations.
        pub cell: RecurrentCell,
        /// The functions of the equations: for the lstm cells of the gates i, f and o, of g, and of the cell state; for the
        /// gru cells of r and z, and of n; for rnn of the only gate. A limit of the gates' sums is part of them.
        pub activations: Vec<Expression>,
        /// Whether time runs backwards, from the end of each item's own sequence; results keep the order of the input.
        pub reverse: bool,
        /// The optional operands that follow, in this order.
        pub with: Vec<RecurrentOperand>,
    }
}

crate::word_enum! {
    /// An operand that a recurrent layer may have beside its weights and states.
    pub enum RecurrentOperand {
        /// Weights [H, P] that the lstm cells multiply o * activation(c') with to get the hidden state.
        Projection = "projection",
        /// Weights of the cell state in gates of the lstm cells, [3 * H] for i, f, o or, where f is 1 - i, [2 * H] for i, o:
        /// i and f get their product with c, o that with c'.
        Peepholes = "peepholes",
        /// Steps of each item of the batch, i32 or i64 [B], at least 0 and at most T: the sequence is 0 after them, the last
        /// states are those of the last one.
        Lengths = "lengths",
    }
}

impl Recurrent {
    /// A layer with the usual activations, forwards and without optional operands.
    pub fn new(cell: RecurrentCell) -> Self {
        Recurrent { cell, activations: cell.usual_activations(), reverse: false, with: Vec::new() }
    }

    /// Number of operands that every layer of the cell has.
    pub fn fixed_operands(&self) -> usize {
        4 + usize::from(self.cell.has_cell_state())
    }

    /// The place of an optional operand, where the layer has it.
    pub fn operand(&self, operand: RecurrentOperand) -> Option<usize> {
        let place = self.with.iter().position(|&own| own == operand)?;
        Some(self.fixed_operands() + place)
    }

    /// The operands' types for extents [T, B, H, P], of which P matters with a projection only.
    pub fn operand_types(&self, dtype: DType, lengths: DType, extents: [usize; 4]) -> Vec<TensorType> {
        let [time, batch, units, state] = extents;
        let state = if self.with.contains(&RecurrentOperand::Projection) { state } else { units };
        let width = units * self.cell.gates();
        let mut shapes = vec![vec![time, batch, width], vec![state, width], vec![width], vec![batch, state]];
        if self.cell.has_cell_state() {
            shapes.push(vec![batch, units]);
        }
        let mut types: Vec<TensorType> = shapes.into_iter().map(|shape| TensorType::new(dtype, shape)).collect();
        types.extend(self.with.iter().map(|operand| match operand {
            RecurrentOperand::Projection => TensorType::new(dtype, [units, state]),
            RecurrentOperand::Peepholes => TensorType::new(dtype, [units * self.cell.peepholes()]),
            RecurrentOperand::Lengths => TensorType::new(lengths, [batch]),
        }));
        types
    }

    /// What doesn't fit in the fields, for elements of a type.
    fn check(&self, dtype: DType) -> Result<(), OperatorError> {
        let expected = self.cell.usual_activations().len();
        if self.activations.len() != expected {
            let name = self.cell.name();
            return Err(OperatorError::field(format!("{name} has {expected} activations, not {}", self.activations.len())));
        }
        for activation in &self.activations {
            let result = activation.result_dtype(&[dtype]).map_err(OperatorError::Field)?;
            if result != dtype {
                return Err(OperatorError::field(format!("activation {activation} makes {result} of {dtype}")));
            }
        }
        if !self.with.is_sorted_by(|left, right| left < right) {
            return Err(OperatorError::field("`with` lists each optional operand once, in the order projection, peepholes, lengths"));
        }
        match self.with.iter().find(|&&operand| operand != RecurrentOperand::Lengths) {
            Some(operand) if !self.cell.has_cell_state() => {
                Err(OperatorError::field(format!("{} has no {}", self.cell.name(), operand.name())))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for Recurrent {
    const NAME: &'static str = "recurrent";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        let fixed = ["x", "weights", "bias", "hidden", "cell"].into_iter().take(self.fixed_operands());
        fixed.chain(self.with.iter().map(|operand| operand.name())).collect()
    }

    fn reads_rows(&self) -> bool {
        true
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let expected = self.fixed_operands() + self.with.len();
        if operands.len() != expected {
            return Err(OperatorError::OperandCount { expected: expected.to_string(), found: operands.len() });
        }
        let (x, weights) = (&operands[0], &operands[1]);
        if x.rank() != 3 || weights.rank() != 2 || !x.dtype.is_float() {
            return Err(OperatorError::types(format!("x {x} and weights {weights} aren't [T, B, G * H] and [P, G * H]")));
        }
        self.check(x.dtype)?;
        let extents = [x.shape[0], x.shape[1], x.shape[2] / self.cell.gates(), weights.shape[0]];
        let lengths = self.operand(RecurrentOperand::Lengths).map(|place| operands[place].dtype);
        let lengths = lengths.filter(|&dtype| dtype == DType::I64).unwrap_or(DType::I32);
        let types = self.operand_types(x.dtype, lengths, extents);
        for (index, (found, expected)) in operands.iter().zip(&types).enumerate() {
            if found != expected {
                return Err(OperatorError::types(format!("operand {index} is {found}, {expected} expected")));
            }
        }
        let sequence = TensorType::new(x.dtype, [x.shape[0], x.shape[1], weights.shape[0]]);
        let mut results = vec![sequence, operands[3].clone()];
        if self.cell.has_cell_state() {
            results.push(operands[4].clone());
        }
        Ok(results)
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let sequence = operands[0];
        let [time, batch, width] = *sequence.shape() else { return Err(OperatorError::types("x isn't [T, B, G * H]")) };
        let optional = |operand| self.operand(operand).map(|place| operands[place]);
        let further = [optional(RecurrentOperand::Projection), optional(RecurrentOperand::Peepholes)];
        let mut layer = Layer::new(self.cell, &self.activations, [operands[1], operands[2]], further)?;
        let (units, state) = (layer.units, layer.state);
        let (inputs, mut hidden) = (sequence.to_floats(), operands[3].to_floats());
        let mut cells = if self.cell.has_cell_state() { operands[4].to_floats() } else { Vec::new() };
        let lengths = match self.operand(RecurrentOperand::Lengths) {
            Some(place) => operands[place].to_integers(),
            None => vec![time as i64; batch],
        };
        let mut outputs = vec![0.0; time * batch * state];
        for (item, length) in lengths.into_iter().enumerate() {
            let length = length.clamp(0, time as i64) as usize;
            let h = &mut hidden[item * state..][..state];
            let c = cells.get_mut(item * units..(item + 1) * units).unwrap_or_default();
            for step in 0..length {
                let step = if self.reverse { length - 1 - step } else { step };
                let next = layer.step(&inputs[(step * batch + item) * width..][..width], h, c);
                h.copy_from_slice(&next);
                outputs[(step * batch + item) * state..][..state].copy_from_slice(&next);
            }
        }
        let values = [outputs, hidden, cells];
        Ok(results.iter().cloned().zip(values).map(|(ty, values)| Tensor::from_floats(ty, values)).collect())
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let (x, width) = (&operands[0], operands[0].shape[2]);
        let (state, units) = (operands[1].shape[0], width / self.cell.gates());
        let projection = self.with.contains(&RecurrentOperand::Projection);
        let projection = if projection { units.saturating_mul(state) } else { 0 };
        let costs = self.activations.iter().map(|activation| expression_cost(&activation.primitive(&[x.dtype])) as usize);
        // Uses of each activation by a unit; then the sums and products of the equations.
        let (uses, equations): (&[usize], usize) = match self.cell {
            RecurrentCell::Lstm => (&[3, 1, 1], 12),
            RecurrentCell::CoupledLstm => (&[2, 1, 1], 11),
            RecurrentCell::Gru | RecurrentCell::ResetFirstGru => (&[2, 1], 11),
            RecurrentCell::Rnn => (&[1], 2),
        };
        let peepholes = self.with.contains(&RecurrentOperand::Peepholes);
        let peepholes = if peepholes { 2 * self.cell.peepholes() } else { 0 };
        let per_unit = costs.zip(uses).map(|(cost, uses)| cost.saturating_mul(*uses)).fold(equations + peepholes, usize::saturating_add);
        Work {
            macs: count_product([x.shape[0], x.shape[1], state.saturating_mul(width).saturating_add(projection)]),
            scalar_operations: count_product([x.shape[0], x.shape[1], units, per_unit]),
            ..Work::moving(operands, results)
        }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let cell = generator.choose(RecurrentCell::ALL);
        let allowed = |operand: &RecurrentOperand| cell.has_cell_state() || *operand == RecurrentOperand::Lengths;
        let mut with: Vec<RecurrentOperand> = RecurrentOperand::ALL.iter().copied().filter(allowed).collect();
        with.retain(|_| generator.one_in(3));
        let activations = if generator.one_in(2) {
            cell.usual_activations()
        } else {
            cell.usual_activations().iter().map(|_| sample_activation(generator)).collect()
        };
        let op = Recurrent { cell, activations, reverse: generator.one_in(2), with };
        let (time, batch, units) = (generator.range(1, 4), generator.range(1, 2), generator.range(1, 5));
        let state = generator.range(1, 3);
        let lengths = generator.choose(&[DType::I32, DType::I64]);
        // Other activations than the usual ones hold singles.
        let usual = op.activations == cell.usual_activations();
        let dtype = if usual { generator.float_dtype() } else { DType::F32 };
        let operands = op.operand_types(dtype, lengths, [time, batch, units, state]);
        (op, operands)
    }
}

/// A function that keeps values small, as the equations' usual ones do, so that errors of rounding stay small too.
fn sample_activation(generator: &mut Generator) -> Expression {
    let functions = [UnaryFunction::Sigmoid, UnaryFunction::Tanh, UnaryFunction::Softsign];
    let (function, round) = (generator.choose(&functions), generator.range(0, 3));
    Expression::build(|b| {
        let x = b.operand(0);
        let limits = [-0.5, 0.75].map(|limit| b.number(DType::F32, limit));
        let raised = b.binary(BinaryFunction::Maximum, x, limits[0]);
        let limited = b.binary(BinaryFunction::Minimum, raised, limits[1]);
        let positive = b.binary(BinaryFunction::Greater, x, limits[0]);
        match round {
            0 => b.unary(function, x),
            1 => b.unary(function, limited),
            2 => limited,
            _ => b.select(positive, limited, limits[0]),
        }
    })
}
