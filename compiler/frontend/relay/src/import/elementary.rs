//! The names of the functions of single elements, from the table of the importer.

use super::elementwise::OPERATORS;
use super::format::Relay;
use mlc_import::Handler;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// What stands before the names of functions that may be less exact.
const INEXACT: &str = "fast_";

pub(crate) fn unary(function: UnaryFunction) -> Option<&'static str> {
    let named = |handler: &Handler<Relay>| matches!(handler, Handler::Unary(known) if *known == function);
    let mut names = OPERATORS.iter().filter(|(name, handler)| named(handler) && !name.starts_with(INEXACT));
    names.next().map(|(name, _)| *name)
}

pub(crate) fn binary(function: BinaryFunction) -> Option<&'static str> {
    let named = |handler: &Handler<Relay>| matches!(handler, Handler::Binary(known) if *known == function);
    OPERATORS.iter().find(|(_, handler)| named(handler)).map(|(name, _)| *name)
}

pub(crate) fn unary_of(name: &str) -> Option<UnaryFunction> {
    OPERATORS.iter().find_map(|(known, handler)| match handler {
        Handler::Unary(function) if *known == name => Some(*function),
        _ => None,
    })
}

pub(crate) fn binary_of(name: &str) -> Option<BinaryFunction> {
    OPERATORS.iter().find_map(|(known, handler)| match handler {
        Handler::Binary(function) if *known == name => Some(*function),
        _ => None,
    })
}
