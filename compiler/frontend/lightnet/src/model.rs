//! [`Model`]: what a file of either form holds: operators in the order in which they run.

use crate::place::Place;

/// A model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// The operators in the order in which they run.
    pub operators: Vec<Operator>,
    /// Whether LightNet's compiler has planned its memory. The plan itself isn't kept.
    pub is_planned: bool,
}

/// An operator.
#[derive(Debug, Clone)]
pub struct Operator {
    /// Its name, which no other operator of the model has.
    pub name: String,
    /// Its type, such as `conv2d`.
    pub kind: String,
    /// The tensors that it takes.
    pub inputs: Vec<Argument>,
    /// The tensors that it makes.
    pub outputs: Vec<Argument>,
    /// What it is told besides.
    pub parameters: Vec<Parameter>,
    /// Where it stands.
    pub place: Place,
}

/// A tensor of an operator. The order of an operator's tensors doesn't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// What it is to the operator, such as `src`.
    pub name: String,
    /// The name of the tensor.
    pub tensor: String,
}

/// A parameter of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: ParameterValue,
}

/// The value of a parameter. Lists aren't empty.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list of truth values.
    Bools(Vec<bool>),
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// A list of texts.
    Texts(Vec<String>),
}
