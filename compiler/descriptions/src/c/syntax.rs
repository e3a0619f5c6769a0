//! What the C subset can say: expressions and statements whose names are resolved to slots and functions. However long a text
//! is, its tree is never deep: chains of operators are lists.

use super::functions::Function;
use super::operators::{Binary, Unary};
use super::types::{IntType, Type};

/// An expression and where its text begins.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Offset in the text.
    pub at: usize,
}

/// The kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// An integer constant.
    Int(i64, IntType),
    /// A constant of type double.
    Double(f64),
    /// A constant of type float.
    Single(f32),
    /// A string: its number among the program's.
    Text(usize),
    /// The null pointer.
    Null,
    /// A variable.
    Slot(usize),
    /// A member of a structure; true behind an arrow.
    Member(Box<Expr>, Member, bool),
    /// An element.
    Index(Box<Expr>, Box<Expr>),
    /// An operator before its operand.
    Unary(Unary, Box<Expr>),
    /// Operators of one precedence, from left to right.
    Chain(Box<Expr>, Vec<(Binary, Expr)>),
    /// `&&` between all.
    All(Vec<Expr>),
    /// `||` between all.
    Any(Vec<Expr>),
    /// `? :`
    Choose(Box<[Expr; 3]>),
    /// An assignment, perhaps after an operation on the old value.
    Assign(Box<Expr>, Option<Binary>, Box<Expr>),
    /// `++` and `--`: what is added, and whether the old value is the result.
    Step(Box<Expr>, i8, bool),
    /// A conversion.
    Cast(Type, Box<Expr>),
    /// `(int[]){…}`: the slot of the elements, and the elements.
    Compound(usize, Vec<Expr>),
    /// A call of a function.
    Call(Function, Vec<Expr>),
    /// `sizeof` of a value, which isn't computed.
    SizeOf(Box<Expr>),
    /// Expressions one after the other; the last is the result.
    Sequence(Vec<Expr>),
}

/// Members of structures; which structure has which is known when a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names are those of the members")]
pub enum Member {
    Ndim,
    Dims,
    Len,
    Dtype,
    Tensor,
    Name,
    ArgName,
    Offset,
    IsStatic,
    Mtype,
    Owner,
    ArrayLen,
    Type,
    /// `value_double` and its kin; true for the arrays.
    Value(ValueKind, bool),
    Optype,
    TensorTable,
}

/// What a parameter's value is looked at as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "their names say what they are")]
pub enum ValueKind {
    Double,
    Float,
    Int,
    Bool,
    String,
}

impl Member {
    /// The member of a name.
    pub fn named(name: &str) -> Option<Member> {
        Some(match name {
            "ndim" => Member::Ndim,
            "dims" => Member::Dims,
            "len" => Member::Len,
            "dtype" => Member::Dtype,
            "tensor" => Member::Tensor,
            "name" => Member::Name,
            "arg_name" => Member::ArgName,
            "offset" => Member::Offset,
            "isstatic" => Member::IsStatic,
            "mtype" => Member::Mtype,
            "owner" => Member::Owner,
            "array_len" => Member::ArrayLen,
            "type" => Member::Type,
            "optype" => Member::Optype,
            "tensor_table" => Member::TensorTable,
            _ => {
                let rest = name.strip_prefix("value_")?;
                let (kind, array) = rest.strip_prefix("array_").map_or((rest, false), |kind| (kind, true));
                let kind = match kind {
                    "double" => ValueKind::Double,
                    "float" => ValueKind::Float,
                    "int" => ValueKind::Int,
                    "bool" => ValueKind::Bool,
                    "string" => ValueKind::String,
                    _ => return None,
                };
                Member::Value(kind, array)
            }
        })
    }
}

/// A declared variable and its initial value.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Where its value is kept.
    pub slot: usize,
    /// The number of elements of an array, unless the initial value says it.
    pub extent: Option<Expr>,
    /// The initial value.
    pub initial: Initial,
    /// Offset in the text.
    pub at: usize,
}

/// The initial value of a variable.
#[derive(Debug, Clone)]
pub enum Initial {
    /// None: reading the variable before it is assigned is a fault.
    None,
    /// A value.
    Value(Expr),
    /// Those of an array's first elements; the others are zero.
    Elements(Vec<Expr>),
}

/// A statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// An expression for its effects.
    Expression(Expr),
    /// Declarations.
    Declare(Vec<Declaration>),
    /// `if`, any number of `else if`, `else`.
    If(Vec<(Expr, Statement)>, Option<Box<Statement>>),
    /// A loop of any kind.
    Loop(Box<Loop>),
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return`
    Return(Option<Expr>),
    /// Statements in braces, or none.
    Block(Vec<Statement>),
}

/// A loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// What comes before.
    pub first: Statement,
    /// Whether there is one more round; none means always.
    pub condition: Option<Expr>,
    /// What comes after each round.
    pub next: Option<Expr>,
    /// What is repeated.
    pub body: Statement,
    /// Whether the first round comes without asking.
    pub once: bool,
    /// Offset in the text.
    pub at: usize,
}

/// A text of a description that can be run: its strings are the program's.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// What it does.
    pub statements: Vec<Statement>,
}
