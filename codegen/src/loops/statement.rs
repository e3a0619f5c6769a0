//! Statements of a loop program, and functions of them.

use super::expression::{Expr, Index, value_type, visit_expr, visit_index};
use super::routine::Routine;
use super::variable::{ValueType, Var, VarInfo};
use std::collections::BTreeSet;

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

impl Relation {
    /// C's operator.
    pub fn operator(self) -> &'static str {
        match self {
            Relation::Less => "<",
            Relation::GreaterEqual => ">=",
            Relation::Equal => "==",
        }
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Runs the body for each `var` from `start` on that is below `end`.
    For {
        /// The counter.
        var: Var,
        /// First value.
        start: Index,
        /// Bound.
        end: Index,
        /// Added after each turn.
        step: i64,
        /// Whether no turn writes what another one reads or writes, so that they may run at the same time
        /// ([`super::parallel`]). C runs them one after the other.
        parallel: bool,
        /// Whether the turns run from the last to the first ([`super::downwards()`]).
        descends: bool,
        /// Whether C compilers are asked not to write the turns one after the other.
        rolled: bool,
        /// What is done.
        body: Vec<Stmt>,
    },
    /// Begins an array on the stack, of which nothing is known.
    Array {
        /// A pointer to its first element.
        var: Var,
        /// How many elements it has.
        elements: usize,
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
    /// Calls a routine.
    Routine {
        /// Which.
        routine: Routine,
        /// Its pointers, each moved by some elements.
        pointers: Vec<(Var, Index)>,
        /// Its numbers, which follow them.
        numbers: Vec<i64>,
    },
    /// Has threads compute a phase of the kernel ([`crate::threads`]), and waits for them.
    Launch {
        /// Its number.
        phase: usize,
        /// What its function takes beside the number of a share.
        arguments: Vec<Var>,
    },
    /// A remark for the reader.
    Comment(String),
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The pointer.
    pub var: Var,
    /// Whether C says that nothing else that is written overlaps it.
    pub restrict: bool,
    /// Where it may point to the memory of others of which the same is said.
    pub overlaps: Overlaps,
}

/// How memory of parameters may overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlaps {
    /// Not at all, where any of it is written.
    Never,
    /// All of them point to the same byte: results over operands that lie alike.
    Alike,
    /// Anyhow: results at a distance from operands.
    Anyhow,
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

/// The counter of a loop's last turn, if there is any; `None` where it isn't known without dividing.
pub fn last_turn(start: &Index, end: &Index, step: i64) -> Option<Index> {
    match (start.as_constant(), end.as_constant()) {
        (Some(start), Some(end)) => Some(Index::from(start + (end - 1 - start) / step * step)),
        _ => (step == 1).then(|| end.clone().offset(-1)),
    }
}

/// The variables that statements mention, without those that they only define.
pub fn mentioned(body: &[Stmt]) -> BTreeSet<Var> {
    let mut found = BTreeSet::new();
    visit_vars(body, &mut |var| {
        found.insert(var);
    });
    found
}

/// Calls `visit` with every variable that statements mention.
fn visit_vars(body: &[Stmt], visit: &mut dyn FnMut(Var)) {
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
            Stmt::Routine { pointers, .. } => {
                for (pointer, index) in pointers {
                    visit(*pointer);
                    visit_index(index, visit);
                }
            }
            Stmt::Launch { arguments, .. } => arguments.iter().for_each(|&var| visit(var)),
            Stmt::Array { .. } | Stmt::Comment(_) => {}
        }
    }
}
