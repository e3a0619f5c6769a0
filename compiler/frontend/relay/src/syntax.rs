//! What Relay text says, before anything is understood. Expressions are in one list, each behind those that it is made of.

use super::lexer::Place;

/// The place of an expression in [`Module::expressions`].
pub(super) type ExpressionId = usize;

/// The place of a function in [`Module::functions`].
pub(super) type FunctionId = usize;

/// A text.
#[derive(Debug, Default)]
pub(super) struct Module<'a> {
    pub expressions: Vec<Expression<'a>>,
    pub functions: Vec<Function<'a>>,
    /// Functions with a name, in the order of the text.
    pub definitions: Vec<(&'a str, FunctionId)>,
    /// The text behind `#[metadata]`, and where it starts.
    pub metadata: Option<(&'a str, Place)>,
}

/// A function, with or without a name.
#[derive(Debug)]
pub(super) struct Function<'a> {
    pub place: Place,
    pub parameters: Vec<Parameter<'a>>,
    pub attributes: Vec<Argument<'a>>,
    pub body: Block<'a>,
}

/// A variable that a function takes.
#[derive(Debug)]
pub(super) struct Parameter<'a> {
    pub name: String,
    pub ty: Option<Type>,
    pub place: Place,
    pub comment: Option<&'a str>,
}

/// Bindings, and the expression that they are for.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub bindings: Vec<Binding<'a>>,
    pub result: ExpressionId,
}

/// `%0 = …;`, `let %x = …;` or `free_var %x: …;`
#[derive(Debug)]
pub(super) enum Binding<'a> {
    Graph(u32, ExpressionId),
    Let(String, ExpressionId),
    Free(Parameter<'a>),
}

/// An expression, and what the comment behind it says.
#[derive(Debug)]
pub(super) struct Expression<'a> {
    pub kind: ExpressionKind<'a>,
    pub place: Place,
    pub comment: Option<&'a str>,
    /// How deep expressions nest in it.
    pub depth: usize,
}

#[derive(Debug)]
pub(super) enum ExpressionKind<'a> {
    Local(String),
    Graph(u32),
    Global(&'a str),
    Literal(Number),
    Meta(&'a str, usize),
    Tuple(Vec<ExpressionId>),
    Projection(ExpressionId, usize),
    /// An operator by its name.
    Operator(&'a str, Vec<ExpressionId>, Vec<Argument<'a>>),
    /// A function that an expression gives.
    Call(ExpressionId, Vec<ExpressionId>),
    Function(FunctionId),
    If(ExpressionId, Block<'a>, Block<'a>),
}

/// A number or a truth value of an expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Number(pub mlc_ir::Literal);

/// `name=value`
#[derive(Debug)]
pub(super) struct Argument<'a> {
    pub name: &'a str,
    pub value: AttributeValue,
    pub place: Place,
}

/// A value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    Integer(i64),
    /// The number, and whether it is written as one of single precision.
    Float(f64, bool),
    Text(String),
    Bool(bool),
    None,
    List(Vec<AttributeValue>),
    Meta(String, usize),
}

impl AttributeValue {
    pub fn describe(&self) -> String {
        match self {
            AttributeValue::Integer(value) => value.to_string(),
            AttributeValue::Float(value, _) => value.to_string(),
            AttributeValue::Text(text) => format!("{text:?}"),
            AttributeValue::Bool(value) => if *value { "True" } else { "False" }.into(),
            AttributeValue::None => "None".into(),
            AttributeValue::List(_) => "a list".into(),
            AttributeValue::Meta(key, index) => format!("meta[{key}][{index}]"),
        }
    }
}

/// A type; extents that aren't known are `None`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Tensor(mlc_ir::DType, Vec<Option<usize>>),
    Tuple(Vec<Type>),
    Function,
}
