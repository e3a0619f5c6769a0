//! `recurrent`: A recurrent layer in one direction, after its input projection. Operands: projected input [T, B, G * H] (biases of the input side added), recurrent weights [P, G * H], recurrent bias [G * H], initial hidden state [B, P], for lstm initial cell state [B, H], with projection the projection weights [H, P]; without projection P = H. Results: sequence [T, B, P], last hidden state [B, P], for lstm last cell state [B, H].

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work};
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

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation("no evaluation yet".into()))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(_generator: &mut Generator) -> (Self, Vec<TensorType>) {
        todo!()
    }
}
