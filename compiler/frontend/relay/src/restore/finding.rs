//! Findings about a text that claims to be printed by mlc.

use crate::lexer::Place;
use mlc_import::Fault;
use mlc_ir::Diagnostic;

pub(super) fn at(place: Place, fault: Fault) -> Diagnostic {
    let diagnostic = Diagnostic::error(fault.code, place.location(), fault.message);
    match fault.help {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}

pub(super) fn unlike(place: Place, message: impl Into<String>) -> Diagnostic {
    at(place, Fault::variant(message))
        .with_note("the text says that mlc printed it, and it is read node by node".to_owned())
}
