//! Recurrent cells, and their equations for one item of a batch, in double precision but for the activations.

use crate::operator::OperatorError;
use crate::scalar::{Expression, Scalar, UnaryFunction, evaluate_scalar};
use crate::tensor::Tensor;
use crate::types::DType;

crate::word_enum! {
    /// The equations of a recurrent cell; x is the projected input, h the hidden state, R and b recurrent weights and bias. A
    /// gate is its activation of x + R h + b.
    pub enum RecurrentCell {
        /// Gates i, f, g, o: c' = f * c + i * g, h' = o * activation(c').
        Lstm = "lstm",
        /// An lstm of gates i, g, o, whose f is 1 - i.
        CoupledLstm = "coupled_lstm",
        /// Gates r, z, n: n = activation(x_n + r * (R_n h + b_n)), h' = (1 - z) * n + z * h.
        Gru = "gru",
        /// A gru with n = activation(x_n + R_n (r * h) + b_n).
        ResetFirstGru = "reset_first_gru",
        /// h' = activation(x + R h + b)
        Rnn = "rnn",
    }
}

impl RecurrentCell {
    /// Number of gates.
    pub fn gates(self) -> usize {
        match self {
            RecurrentCell::Lstm => 4,
            RecurrentCell::CoupledLstm | RecurrentCell::Gru | RecurrentCell::ResetFirstGru => 3,
            RecurrentCell::Rnn => 1,
        }
    }

    /// Whether it has a cell state beside the hidden state.
    pub fn has_cell_state(self) -> bool {
        matches!(self, RecurrentCell::Lstm | RecurrentCell::CoupledLstm)
    }

    /// The functions that the equations usually have.
    pub fn usual_activations(self) -> Vec<Expression> {
        let (sigmoid, tanh) = (Expression::unary(UnaryFunction::Sigmoid), Expression::unary(UnaryFunction::Tanh));
        match self {
            RecurrentCell::Lstm | RecurrentCell::CoupledLstm => vec![sigmoid, tanh.clone(), tanh],
            RecurrentCell::Gru | RecurrentCell::ResetFirstGru => vec![sigmoid, tanh],
            RecurrentCell::Rnn => vec![tanh],
        }
    }

    /// Number of weight vectors that a gate has for the cell state.
    pub fn peepholes(self) -> usize {
        match self {
            RecurrentCell::Lstm => 3,
            RecurrentCell::CoupledLstm => 2,
            _ => 0,
        }
    }
}

/// The weights of a layer.
pub(super) struct Layer {
    cell: RecurrentCell,
    /// Extent of the gates.
    pub units: usize,
    /// Extent of the hidden state.
    pub state: usize,
    weights: Vec<f64>,
    bias: Vec<f64>,
    projection: Option<Vec<f64>>,
    peepholes: Option<Vec<f64>>,
    activations: Vec<Activation>,
}

impl Layer {
    /// Takes the weights out of the operands, which fit: recurrent weights and bias, and where the layer has them projection
    /// and peepholes.
    ///
    /// # Errors
    /// When an activation isn't defined for the operands' type.
    pub fn new(
        cell: RecurrentCell,
        activations: &[Expression],
        [weights, bias]: [&Tensor; 2],
        [projection, peepholes]: [Option<&Tensor>; 2],
    ) -> Result<Layer, OperatorError> {
        let dtype = weights.ty().dtype;
        let activations = activations.iter().map(|activation| Activation::new(activation, dtype));
        let floats = bias.to_floats();
        Ok(Layer {
            cell,
            units: floats.len() / cell.gates(),
            state: weights.shape()[0],
            weights: weights.to_floats(),
            bias: floats,
            projection: projection.map(Tensor::to_floats),
            peepholes: peepholes.map(Tensor::to_floats),
            activations: activations.collect::<Result<_, _>>()?,
        })
    }

    /// The next hidden state; updates the cell state of an lstm.
    pub fn step(&mut self, x: &[f64], h: &[f64], c: &mut [f64]) -> Vec<f64> {
        match self.cell {
            RecurrentCell::Lstm | RecurrentCell::CoupledLstm => {
                let output = self.lstm(x, h, c);
                match &self.projection {
                    Some(projection) => product(&output, projection, self.state, 0..self.state),
                    None => output,
                }
            }
            RecurrentCell::Gru | RecurrentCell::ResetFirstGru => self.gru(x, h),
            RecurrentCell::Rnn => {
                let sums = self.gates(x, h);
                sums.into_iter().map(|sum| self.activations[0].apply(sum)).collect()
            }
        }
    }

    /// R h + b of some gates.
    fn recurrent(&self, h: &[f64], gates: std::ops::Range<usize>) -> Vec<f64> {
        let columns = gates.start * self.units..gates.end * self.units;
        let sums = product(h, &self.weights, self.bias.len(), columns.clone());
        sums.iter().zip(&self.bias[columns]).map(|(sum, bias)| sum + bias).collect()
    }

    /// x + R h + b of all gates.
    fn gates(&self, x: &[f64], h: &[f64]) -> Vec<f64> {
        let recurrent = self.recurrent(h, 0..self.cell.gates());
        x.iter().zip(recurrent).map(|(x, recurrent)| x + recurrent).collect()
    }

    fn lstm(&mut self, x: &[f64], h: &[f64], c: &mut [f64]) -> Vec<f64> {
        let sums = self.gates(x, h);
        let (units, coupled) = (self.units, self.cell == RecurrentCell::CoupledLstm);
        let mut output = Vec::with_capacity(units);
        for (unit, c) in c.iter_mut().enumerate() {
            let peepholes = self.peepholes.as_ref();
            let peephole = |gate: usize| peepholes.map_or(0.0, |weights| weights[gate * units + unit]);
            let [to_input, to_forget, to_output] = [peephole(0), peephole(usize::from(!coupled)), peephole(2 - usize::from(coupled))];
            let input = self.activations[0].apply(sums[unit] + to_input * *c);
            let (forget, behind) = if coupled {
                (1.0 - input, units)
            } else {
                (self.activations[0].apply(sums[units + unit] + to_forget * *c), 2 * units)
            };
            let candidate = self.activations[1].apply(sums[behind + unit]);
            *c = forget * *c + input * candidate;
            let gate = self.activations[0].apply(sums[behind + units + unit] + to_output * *c);
            output.push(gate * self.activations[2].apply(*c));
        }
        output
    }

    fn gru(&mut self, x: &[f64], h: &[f64]) -> Vec<f64> {
        let units = self.units;
        let mut gates = self.recurrent(h, 0..2);
        gates.iter_mut().zip(x).for_each(|(gate, x)| *gate = self.activations[0].apply(*gate + x));
        let (reset, update) = gates.split_at(units);
        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().zip(reset).map(|(value, reset)| value * reset).collect() };
        let new = match self.cell {
            RecurrentCell::ResetFirstGru => self.recurrent(&scaled(h), 2..3),
            _ => scaled(&self.recurrent(h, 2..3)),
        };
        let unit = |unit: usize| {
            let new = self.activations[1].apply(x[2 * units + unit] + new[unit]);
            (1.0 - update[unit]) * new + update[unit] * h[unit]
        };
        (0..units).map(unit).collect()
    }
}

/// A function of the equations.
struct Activation {
    expression: Expression,
    dtypes: Vec<DType>,
    steps: Vec<Scalar>,
}

impl Activation {
    fn new(expression: &Expression, dtype: DType) -> Result<Activation, OperatorError> {
        let dtypes = expression.dtypes(&[dtype]).map_err(OperatorError::Field)?;
        Ok(Activation { expression: expression.clone(), dtypes, steps: Vec::new() })
    }

    fn apply(&mut self, x: f64) -> f64 {
        match evaluate_scalar(&self.expression, &self.dtypes, &[Scalar::Float(x)], &mut self.steps) {
            Scalar::Float(value) => value,
            Scalar::Integer(value) => value as f64,
        }
    }
}

/// Some columns of a row times a matrix `width` columns wide.
fn product(row: &[f64], matrix: &[f64], width: usize, columns: std::ops::Range<usize>) -> Vec<f64> {
    let mut sums = vec![0.0; columns.len()];
    for (index, &value) in row.iter().enumerate() {
        let factors = &matrix[index * width..][columns.clone()];
        sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += value * factor);
    }
    sums
}
