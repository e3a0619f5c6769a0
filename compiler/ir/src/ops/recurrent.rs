//! `recurrent`: A recurrent layer in one direction, after its input projection. Operands: projected input [T, B, G * H] (biases of the input side added), recurrent weights [P, G * H], recurrent bias [G * H], initial hidden state [B, P], for lstm initial cell state [B, H], with projection the projection weights [H, P]; without projection P = H. Results: sequence [T, B, P], last hidden state [B, P], for lstm last cell state [B, H].

use crate::types::DType;
use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, count_product};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;

crate::operator_fields! {
    /// A recurrent layer in one direction, after its input projection.
    pub struct Recurrent {
        /// The cell's equations.
        pub cell: RecurrentCell,
        /// Whether time runs backwards; results keep the order of the input.
        pub reverse: bool,
        /// Whether the hidden state is projected (lstm only).
        pub projection: bool,
    }
}

crate::word_enum! {
    /// The equations of a recurrent cell; x is the projected input, h the hidden state, R and b recurrent weights and bias.
    pub enum RecurrentCell {
        /// Gates i, f, g, o: c' = sigmoid(f) * c + sigmoid(i) * tanh(g), h' = sigmoid(o) * tanh(c').
        Lstm = "lstm",
        /// Gates r, z, n: n = tanh(x_n + r * (R_n h + b_n)), h' = (1 - z) * n + z * h.
        Gru = "gru",
        /// h' = tanh(x + R h + b)
        RnnTanh = "rnn_tanh",
        /// h' = relu(x + R h + b)
        RnnRelu = "rnn_relu",
    }
}

impl RecurrentCell {
    /// Number of gates.
    pub fn gates(self) -> usize {
        match self {
            RecurrentCell::Lstm => 4,
            RecurrentCell::Gru => 3,
            RecurrentCell::RnnTanh | RecurrentCell::RnnRelu => 1,
        }
    }
}

impl Operator for Recurrent {
    const NAME: &'static str = "recurrent";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let lstm = self.cell == RecurrentCell::Lstm;
        let expected = 4 + usize::from(lstm) + usize::from(self.projection);
        if operands.len() != expected {
            return Err(OperatorError::OperandCount { expected: expected.to_string(), found: operands.len() });
        }
        if self.projection && !lstm {
            return Err(OperatorError::field("only lstm has a projection"));
        }
        let (x, weights, hidden) = (&operands[0], &operands[1], &operands[3]);
        if x.rank() != 3 || weights.rank() != 2 || !x.dtype.is_float() {
            return Err(OperatorError::types(format!("x {x} and weights {weights} aren't [T, B, G * H] and [P, G * H]")));
        }
        let (time, batch, gates) = (x.shape[0], x.shape[1], x.shape[2]);
        let state = weights.shape[0];
        let units = gates / self.cell.gates();
        let mut types = vec![
            TensorType::new(x.dtype, [time, batch, units * self.cell.gates()]),
            TensorType::new(x.dtype, [state, gates]),
            TensorType::new(x.dtype, [gates]),
            TensorType::new(x.dtype, [batch, state]),
        ];
        if lstm {
            types.push(TensorType::new(x.dtype, [batch, units]));
        }
        if self.projection {
            types.push(TensorType::new(x.dtype, [units, state]));
        } else if state != units {
            return Err(OperatorError::types(format!("weights {weights} have {state} rows, {units} units need as many")));
        }
        for (index, (found, expected)) in operands.iter().zip(&types).enumerate() {
            if found != expected {
                return Err(OperatorError::types(format!("operand {index} is {found}, {expected} expected")));
            }
        }
        let mut results = vec![TensorType::new(x.dtype, [time, batch, state]), hidden.clone()];
        if lstm {
            results.push(TensorType::new(x.dtype, [batch, units]));
        }
        Ok(results)
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let sequence = operands[0];
        let [time, batch, gates] = sequence.shape() else { return Err(OperatorError::types("x isn't [T, B, G * H]")) };
        let layer = Layer::new(self, operands, *gates / self.cell.gates());
        let (inputs, mut hidden) = (sequence.to_floats(), operands[3].to_floats());
        let mut cells = if self.cell == RecurrentCell::Lstm { operands[4].to_floats() } else { Vec::new() };
        let mut outputs = vec![0.0; time * batch * layer.state];
        for step in 0..*time {
            let step = if self.reverse { time - 1 - step } else { step };
            for item in 0..*batch {
                let x = &inputs[(step * batch + item) * gates..][..*gates];
                let h = &mut hidden[item * layer.state..][..layer.state];
                let c = cells.get_mut(item * layer.units..(item + 1) * layer.units).unwrap_or_default();
                let next = layer.step(x, h, c);
                h.copy_from_slice(&next);
                outputs[(step * batch + item) * layer.state..][..layer.state].copy_from_slice(&next);
            }
        }
        let values = [outputs, hidden, cells];
        Ok(results.iter().cloned().zip(values).map(|(ty, values)| Tensor::from_floats(ty, values)).collect())
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let (steps, gates) = (operands[0].shape[0] * operands[0].shape[1], operands[0].shape[2]);
        let (state, units) = (operands[1].shape[0], gates / self.cell.gates());
        let projection = if self.projection { units.saturating_mul(state) } else { 0 };
        // Sigmoid 16, tanh 10, and the sums and products of the equations.
        let per_unit = match self.cell {
            RecurrentCell::Lstm => 80,
            RecurrentCell::Gru => 53,
            RecurrentCell::RnnTanh => 12,
            RecurrentCell::RnnRelu => 3,
        };
        Work {
            macs: count_product([steps, state.saturating_mul(gates).saturating_add(projection)]),
            scalar_operations: count_product([steps, units, per_unit]),
            ..Work::moving(operands, results)
        }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let cell = generator.choose(RecurrentCell::ALL);
        let projection = cell == RecurrentCell::Lstm && generator.one_in(2);
        let (time, batch, units) = (generator.range(1, 4), generator.range(1, 2), generator.range(1, 5));
        let state = if projection { generator.range(1, 3) } else { units };
        let gates = units * cell.gates();
        let mut shapes = vec![vec![time, batch, gates], vec![state, gates], vec![gates], vec![batch, state]];
        if cell == RecurrentCell::Lstm {
            shapes.push(vec![batch, units]);
        }
        if projection {
            shapes.push(vec![units, state]);
        }
        let operands = shapes.into_iter().map(|shape| TensorType::new(DType::F32, shape)).collect();
        (Recurrent { cell, reverse: generator.one_in(2), projection }, operands)
    }
}

/// The weights of a layer, and its equations for one item of a batch.
struct Layer {
    cell: RecurrentCell,
    units: usize,
    state: usize,
    weights: Vec<f64>,
    bias: Vec<f64>,
    projection: Option<Vec<f64>>,
}

impl Layer {
    fn new(operator: &Recurrent, operands: &[&Tensor], units: usize) -> Self {
        Layer {
            cell: operator.cell,
            units,
            state: operands[1].shape()[0],
            weights: operands[1].to_floats(),
            bias: operands[2].to_floats(),
            projection: operator.projection.then(|| operands[5].to_floats()),
        }
    }

    /// The next hidden state; updates the cell state of an lstm.
    fn step(&self, x: &[f64], h: &[f64], c: &mut [f64]) -> Vec<f64> {
        let recurrent: Vec<f64> = product(h, &self.weights, self.bias.len()).iter().zip(&self.bias).map(|(y, b)| y + b).collect();
        let gate = |gate: usize, unit: usize| x[gate * self.units + unit] + recurrent[gate * self.units + unit];
        let units = 0..self.units;
        match self.cell {
            RecurrentCell::Lstm => {
                let unit = |unit: usize| {
                    c[unit] = sigmoid(gate(1, unit)) * c[unit] + sigmoid(gate(0, unit)) * libm::tanh(gate(2, unit));
                    sigmoid(gate(3, unit)) * libm::tanh(c[unit])
                };
                let output: Vec<f64> = units.map(unit).collect();
                match &self.projection {
                    Some(projection) => product(&output, projection, self.state),
                    None => output,
                }
            }
            RecurrentCell::Gru => {
                let unit = |unit: usize| {
                    let (r, z) = (sigmoid(gate(0, unit)), sigmoid(gate(1, unit)));
                    let n = libm::tanh(x[2 * self.units + unit] + r * recurrent[2 * self.units + unit]);
                    (1.0 - z) * n + z * h[unit]
                };
                units.map(unit).collect()
            }
            RecurrentCell::RnnTanh => units.map(|unit| libm::tanh(gate(0, unit))).collect(),
            RecurrentCell::RnnRelu => units.map(|unit| gate(0, unit)).map(|y| if y < 0.0 { 0.0 } else { y }).collect(),
        }
    }
}

/// A row times a matrix of `columns` columns.
fn product(row: &[f64], matrix: &[f64], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for (index, &value) in row.iter().enumerate() {
        let factors = &matrix[index * columns..][..columns];
        sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += value * factor);
    }
    sums
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}
