//! The intermediate language (IL), a text that stands for a JSON file. Its preprocessor is a part of C's; what it leaves are
//! expressions to be computed, and statements:
//!
//! ```text
//! statement := TYPE '(' arguments? '|' arguments? '|' arguments? ')'      inputs | outputs | parameters
//! arguments := NAME '=' value (',' NAME '=' value)* ','?
//! ```
//!
//! A short text can stand for a very long one. What all of it may cost is limited ([`budget`]), whatever the text says.

mod arithmetic;
mod budget;
mod condition;
mod evaluate;
mod expand;
mod expression;
mod lexer;
mod macros;
mod preprocess;
mod statements;
mod token;

#[cfg(test)]
mod tests;

use crate::includes::Includes;
use crate::model::Model;
use mlc_import::Report;

/// Reads a text as far as it can be read; what can't be is reported.
pub(super) fn read(text: &str, includes: &dyn Includes, report: &mut Report) -> Option<Model> {
    let tokens = preprocess::preprocess(text, includes, report);
    let tokens = report.note(tokens)?;
    let tokens = evaluate::evaluate(tokens, report);
    Some(statements::model(tokens, report))
}
