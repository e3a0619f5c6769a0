//! The loop program: a small typed language between schedules and C text.
//!
//! A [`Function`] is a list of statements over variables: loops with affine bounds, scalar and vector values, loads and stores
//! through pointers. Schedules build it with a [`Builder`]; [`print`] writes it as C. It has no control flow but loops and
//! conditions on indices, so that it can't fail and always ends.

mod builder;
mod circular;
mod half_text;
pub mod halves;
mod helper;
mod index;
mod intrinsics;
mod mathematics;
mod mve;
pub mod print;
mod rounding;
mod scalar_text;
mod selection;
pub mod spelling;

pub use builder::{Builder, Nest};
pub use helper::{Helpers, Intrinsic};
pub use index::{Atom, Index};
pub use intrinsics::{Intrinsics, mask_dtype};

use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Literal};

/// A variable of a function, by its number.
pub type Var = u32;

/// Type of a value: one element, or a vector of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueType {
    /// Type of each lane. A `bool` vector is a mask as wide as the compared type.
    pub dtype: DType,
    /// Number of lanes; 1 is a scalar.
    pub lanes: usize,
}

impl ValueType {
    /// A scalar.
    pub fn scalar(dtype: DType) -> Self {
        ValueType { dtype, lanes: 1 }
    }

    /// A vector, or a scalar for one lane.
    pub fn vector(dtype: DType, lanes: usize) -> Self {
        ValueType { dtype, lanes }
    }
}

/// What a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarKind {
    /// A loop counter or another integer used for addresses.
    Index,
    /// A value.
    Value(ValueType),
    /// A pointer to elements.
    Pointer {
        /// Type of the elements.
        dtype: DType,
        /// Whether they are only read.
        constant: bool,
    },
}

/// A variable's name in C and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarInfo {
    /// C identifier, unique in the function.
    pub name: String,
    /// What it is.
    pub kind: VarKind,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A number.
    Literal(Literal),
    /// A variable.
    Var(Var),
    /// Consecutive elements from an address on; one for a scalar.
    Load {
        /// Where it starts.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// What is loaded.
        ty: ValueType,
    },
    /// Lanes gathered with a stride; lanes from `valid` on are 0 and aren't read.
    Gather {
        /// Where it starts.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// Elements between lanes.
        stride: i64,
        /// How many lanes are read.
        valid: usize,
        /// What is loaded.
        ty: ValueType,
    },
    /// A primitive function of one value.
    Unary(UnaryFunction, Box<Expr>),
    /// A function of two values of one type.
    Binary(BinaryFunction, Box<Expr>, Box<Expr>),
    /// `condition ? first : second`, per lane.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Conversion of each lane.
    Cast(DType, Box<Expr>),
    /// The bits of each lane as a number of another type of the same size.
    BitCast(DType, Box<Expr>),
    /// The same scalar in all lanes.
    Splat(Box<Expr>, usize),
    /// One lane of a vector.
    Lane(Box<Expr>, usize),
    /// All lanes of a vector combined by an associative function, in pairs.
    Fold(BinaryFunction, Box<Expr>),
    /// An index as an integer of a type.
    Index(DType, Index),
}

impl From<Literal> for Expr {
    fn from(literal: Literal) -> Expr {
        Expr::Literal(literal)
    }
}

impl Expr {
    /// `function(x, y)`.
    pub fn binary(function: BinaryFunction, x: Expr, y: Expr) -> Expr {
        Expr::Binary(function, Box::new(x), Box::new(y))
    }

    /// `function(x)`.
    pub fn unary(function: UnaryFunction, x: Expr) -> Expr {
        Expr::Unary(function, Box::new(x))
    }

    /// `x + y`.
    pub fn plus(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Add, self, y)
    }

    /// `x - y`.
    pub fn minus(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Subtract, self, y)
    }

    /// `x * y`.
    pub fn times(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Multiply, self, y)
    }

    /// `x / y`.
    pub fn over(self, y: Expr) -> Expr {
        Expr::binary(BinaryFunction::Divide, self, y)
    }

    /// The values that it is computed of, without those in indices.
    pub fn children(&self) -> impl Iterator<Item = &Expr> {
        let children: [Option<&Expr>; 3] = match self {
            Expr::Literal(_) | Expr::Var(_) | Expr::Load { .. } | Expr::Gather { .. } | Expr::Index(..) => [None; 3],
            Expr::Unary(_, x)
            | Expr::Cast(_, x)
            | Expr::BitCast(_, x)
            | Expr::Splat(x, _)
            | Expr::Lane(x, _)
            | Expr::Fold(_, x) => [Some(x), None, None],
            Expr::Binary(_, x, y) => [Some(x), Some(y), None],
            Expr::Select(condition, x, y) => [Some(condition), Some(x), Some(y)],
        };
        children.into_iter().flatten()
    }

    /// The same, to change them.
    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let children: [Option<&mut Expr>; 3] = match self {
            Expr::Literal(_) | Expr::Var(_) | Expr::Load { .. } | Expr::Gather { .. } | Expr::Index(..) => {
                [None, None, None]
            }
            Expr::Unary(_, x)
            | Expr::Cast(_, x)
            | Expr::BitCast(_, x)
            | Expr::Splat(x, _)
            | Expr::Lane(x, _)
            | Expr::Fold(_, x) => [Some(x), None, None],
            Expr::Binary(_, x, y) => [Some(x), Some(y), None],
            Expr::Select(condition, x, y) => [Some(condition), Some(x), Some(y)],
        };
        children.into_iter().flatten()
    }
}

/// How two indices are compared in a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Runs the body for `var` from `start` while below `end`.
    For {
        /// The counter.
        var: Var,
        /// First value.
        start: Index,
        /// Bound.
        end: Index,
        /// Added after each turn.
        step: i64,
        /// What is done.
        body: Vec<Stmt>,
    },
    /// Defines a variable; one that is assigned later is mutable.
    Define {
        /// The variable.
        var: Var,
        /// Its first value.
        value: Expr,
        /// Whether it is assigned later.
        mutable: bool,
    },
    /// Defines an integer variable.
    DefineIndex {
        /// The variable.
        var: Var,
        /// Its value.
        value: Index,
    },
    /// Changes a mutable variable.
    Assign {
        /// The variable.
        var: Var,
        /// Its new value.
        value: Expr,
    },
    /// Defines a pointer.
    Pointer {
        /// The variable.
        var: Var,
        /// The pointer that it starts from.
        base: Var,
        /// Elements added.
        offset: Index,
    },
    /// Stores a value's lanes in consecutive elements; the first `valid` ones.
    Store {
        /// Where the elements start.
        pointer: Var,
        /// Elements behind the pointer.
        index: Index,
        /// Elements between lanes.
        stride: i64,
        /// How many lanes are written.
        valid: usize,
        /// The lanes.
        value: Expr,
    },
    /// Runs a body when all conditions hold.
    If {
        /// The conditions.
        conditions: Vec<(Index, Relation, Index)>,
        /// What is done.
        then: Vec<Stmt>,
        /// What is done otherwise.
        otherwise: Vec<Stmt>,
    },
    /// Runs one of two bodies by a scalar bool.
    IfValue {
        /// The bool.
        condition: Expr,
        /// What is done when it is true.
        then: Vec<Stmt>,
    },
    /// A remark for the reader.
    Comment(String),
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The pointer.
    pub var: Var,
    /// Whether nothing else that is written overlaps it.
    pub restrict: bool,
}

/// A kernel as a loop program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// C symbol.
    pub name: String,
    /// What it computes, for the comment above it.
    pub comment: Vec<String>,
    /// Pointers that the caller passes.
    pub parameters: Vec<Parameter>,
    /// All variables.
    pub vars: Vec<VarInfo>,
    /// What it does.
    pub body: Vec<Stmt>,
}

impl Function {
    /// Type of a value.
    pub fn ty(&self, expr: &Expr) -> ValueType {
        value_type(&self.vars, expr)
    }
}

/// Calls `visit` with every variable that statements mention.
pub fn visit_vars(body: &[Stmt], visit: &mut dyn FnMut(Var)) {
    for statement in body {
        match statement {
            Stmt::For { start, end, body, .. } => {
                visit_index(start, visit);
                visit_index(end, visit);
                visit_vars(body, visit);
            }
            Stmt::Define { value, .. } => visit_expr(value, visit),
            Stmt::DefineIndex { value, .. } => visit_index(value, visit),
            Stmt::Assign { var, value } => {
                visit(*var);
                visit_expr(value, visit);
            }
            Stmt::Pointer { base, offset, .. } => {
                visit(*base);
                visit_index(offset, visit);
            }
            Stmt::Store { pointer, index, value, .. } => {
                visit(*pointer);
                visit_index(index, visit);
                visit_expr(value, visit);
            }
            Stmt::If { conditions, then, otherwise } => {
                for (left, _, right) in conditions {
                    visit_index(left, visit);
                    visit_index(right, visit);
                }
                visit_vars(then, visit);
                visit_vars(otherwise, visit);
            }
            Stmt::IfValue { condition, then } => {
                visit_expr(condition, visit);
                visit_vars(then, visit);
            }
            Stmt::Comment(_) => {}
        }
    }
}

fn visit_expr(expr: &Expr, visit: &mut dyn FnMut(Var)) {
    match expr {
        Expr::Var(var) => visit(*var),
        Expr::Load { pointer, index, .. } | Expr::Gather { pointer, index, .. } => {
            visit(*pointer);
            visit_index(index, visit);
        }
        Expr::Index(_, index) => visit_index(index, visit),
        other => other.children().for_each(|child| visit_expr(child, visit)),
    }
}

fn visit_index(index: &Index, visit: &mut dyn FnMut(Var)) {
    for (atom, _) in &index.terms {
        match atom {
            Atom::Var(var) => visit(*var),
            Atom::Quotient(inner, _) | Atom::Remainder(inner, _) => visit_index(inner, visit),
            Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                visit_index(left, visit);
                visit_index(right, visit);
            }
            Atom::Value(value) => visit_expr(value, visit),
        }
    }
}

/// Type of a value over these variables.
pub fn value_type(vars: &[VarInfo], expr: &Expr) -> ValueType {
    match expr {
        Expr::Literal(literal) => ValueType::scalar(literal.dtype()),
        Expr::Var(var) => match vars[*var as usize].kind {
            VarKind::Value(ty) => ty,
            VarKind::Index => ValueType::scalar(DType::I32),
            VarKind::Pointer { dtype, .. } => ValueType::scalar(dtype),
        },
        Expr::Load { ty, .. } | Expr::Gather { ty, .. } => *ty,
        Expr::Unary(function, x) => {
            let ty = value_type(vars, x);
            ValueType { dtype: function.result_dtype(ty.dtype).unwrap_or(ty.dtype), ..ty }
        }
        Expr::Binary(function, x, y) => {
            let (left, right) = (value_type(vars, x), value_type(vars, y));
            let dtype = function.result_dtype(left.dtype).unwrap_or(left.dtype);
            ValueType { dtype, lanes: left.lanes.max(right.lanes) }
        }
        Expr::Select(condition, x, y) => {
            let lanes = [condition, x, y].map(|operand| value_type(vars, operand).lanes);
            let lanes = lanes[0].max(lanes[1]).max(lanes[2]);
            ValueType { dtype: value_type(vars, x).dtype, lanes }
        }
        Expr::Cast(dtype, x) | Expr::BitCast(dtype, x) => ValueType { dtype: *dtype, ..value_type(vars, x) },
        Expr::Splat(x, lanes) => ValueType { lanes: *lanes, ..value_type(vars, x) },
        Expr::Lane(x, _) | Expr::Fold(_, x) => ValueType { lanes: 1, ..value_type(vars, x) },
        Expr::Index(dtype, _) => ValueType::scalar(*dtype),
    }
}
