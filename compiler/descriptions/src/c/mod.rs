//! The subset of C in which descriptions say shapes and checks: parsed into trees, and evaluated with every access checked and
//! every step counted. No C compiler is needed, and no text can do harm.

mod arithmetic;
mod expressions;
mod format;
mod functions;
mod machine;
mod memory;
mod names;
mod operators;
mod parser;
mod statements;
mod syntax;
#[cfg(test)]
mod tests;
mod token;
mod type_names;
mod types;
mod value;

pub(crate) use arithmetic::{compare, mark};
pub(crate) use functions::{DIRECTIONS, ELEMENTS, ELEMENTWISE, Function, MEMORIES, PARAMETERS, RELATIONS, RESIZES};
pub(crate) use machine::{Failure, Flow, Host, Machine, Stop};
pub(crate) use memory::Memory;
pub(crate) use names::Names;
pub(crate) use operators::Binary;
pub(crate) use statements::{parse_check, parse_expression, parse_statements};
pub(crate) use syntax::{Expr, ExprKind, Member, Statement, ValueKind};
pub(crate) use token::{Fault, TokenKind, check_brackets, is_name, tokens};
pub(crate) use types::{Base, IntType, Record, Type};
pub(crate) use value::{Pointer, Target, Value};
