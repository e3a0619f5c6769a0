//! Elementwise operators, step by step.

use super::Writer;
use super::file::integers_attribute;
use crate::tensor;
use mlc_ir::scalar::{BinaryFunction as B, Expression, ScalarNode, UnaryFunction as U};
use mlc_ir::{Code, NodeId, TensorType};

/// The operator of a function of one number.
fn unary(function: U) -> Option<&'static str> {
    Some(match function {
        U::Negate => "Neg",
        U::Absolute => "Abs",
        U::Sign => "Sign",
        U::Ceil => "Ceil",
        U::Floor => "Floor",
        U::Round => "Round",
        U::Exp => "Exp",
        U::Log => "Log",
        U::Sqrt => "Sqrt",
        U::Sin => "Sin",
        U::Cos => "Cos",
        U::Tan => "Tan",
        U::Asin => "Asin",
        U::Acos => "Acos",
        U::Atan => "Atan",
        U::Sinh => "Sinh",
        U::Cosh => "Cosh",
        U::Tanh => "Tanh",
        U::Asinh => "Asinh",
        U::Acosh => "Acosh",
        U::Atanh => "Atanh",
        U::Erf => "Erf",
        U::Not => "Not",
        U::IsNan => "IsNaN",
        U::IsInfinite => "IsInf",
        U::Relu => "Relu",
        U::Reciprocal => "Reciprocal",
        U::Sigmoid => "Sigmoid",
        U::HardSwish => "HardSwish",
        U::Softplus => "Softplus",
        U::Mish => "Mish",
        U::Softsign => "Softsign",
        _ => return None,
    })
}

/// The operator of a function of two numbers.
fn binary(function: B) -> Option<&'static str> {
    Some(match function {
        B::Add => "Add",
        B::Subtract => "Sub",
        B::Multiply => "Mul",
        B::Divide => "Div",
        B::Power => "Pow",
        B::Maximum => "Max",
        B::Minimum => "Min",
        B::And => "And",
        B::Or => "Or",
        B::Xor => "Xor",
        B::Equal => "Equal",
        B::Less => "Less",
        B::LessEqual => "LessOrEqual",
        B::Greater => "Greater",
        B::GreaterEqual => "GreaterOrEqual",
        _ => return None,
    })
}

impl Writer<'_> {
    /// Writes the steps of an expression of a node's operands.
    pub(super) fn elementwise(
        &mut self,
        node: NodeId,
        expression: &Expression,
        types: &[TensorType],
    ) -> Result<String, (Code, String)> {
        let dtypes: Vec<_> = types.iter().map(|ty| ty.dtype).collect();
        let expression = expression.primitive_except(&dtypes, |function| unary(function).is_some());
        let name = self.graph.node(node).name.to_string();
        let operands = self.graph.operands(node);
        let mut steps: Vec<String> = Vec::new();
        for step in expression.nodes() {
            let operand = |id: u32| steps[id as usize].clone();
            let unknown = |function: &str| {
                (Code::OperatorUnsupported, format!("the function {function} can't be written as ONNX"))
            };
            let (kind, input, attributes) = match *step {
                ScalarNode::Operand(place) => {
                    let place = place as usize;
                    let value = operands[place];
                    let stored = self.integers.constants.get(&(node, place));
                    steps.push(match stored {
                        Some(constant) => {
                            let constant_name = self.graph.node(value.node).name.to_string();
                            self.integer_constant(&constant_name, constant)
                        }
                        None => self.operand(Some(node), value),
                    });
                    continue;
                }
                ScalarNode::Literal(literal) => {
                    steps.push(self.file.constant(&format!("{name}.number"), &literal.to_attribute()));
                    continue;
                }
                ScalarNode::Unary(function, x) => {
                    (unary(function).ok_or_else(|| unknown(function.name()))?, vec![operand(x)], Vec::new())
                }
                ScalarNode::Binary(B::NotEqual, x, y) => {
                    let equal = self.file.apply("Equal", vec![operand(x), operand(y)], Vec::new(), &name);
                    ("Not", vec![equal], Vec::new())
                }
                ScalarNode::Binary(function, x, y) => {
                    let kind = binary(function).ok_or_else(|| unknown(function.name()))?;
                    (kind, vec![operand(x), operand(y)], Vec::new())
                }
                ScalarNode::Select(condition, x, y) => {
                    ("Where", vec![operand(condition), operand(x), operand(y)], Vec::new())
                }
                ScalarNode::Cast(dtype, x) => {
                    let to = integers_attribute("to", tensor::number_of_dtype(dtype) as usize);
                    ("Cast", vec![operand(x)], vec![to])
                }
                ScalarNode::BitCast(..) => return Err(unknown("bit_cast")),
                ScalarNode::Rescale(..) => return Err(unknown("rescale")),
            };
            let result = self.file.apply(kind, input, attributes, &name);
            steps.push(result);
        }
        let result = steps.pop().unwrap_or_default();
        let is_step = expression.nodes().len() > 1;
        Ok(if is_step { result } else { self.file.apply("Identity", vec![result], Vec::new(), &name) })
    }
}
