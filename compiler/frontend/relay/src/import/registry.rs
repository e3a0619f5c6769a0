//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Call;
use super::{elementwise, image, movement, nn, normalization, qnn, reduction, slicing, window};
use mlc_import::Fault;
use mlc_import::support::{self, OperatorSupport, Use};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Diagnostic, Value};

/// How an operator is imported.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    /// It gives a tensor.
    One(fn(&mut Call<'_, '_>) -> Result<Value, Fault>),
    /// It is a function of each element.
    Unary(UnaryFunction),
    /// It is a function of two elements.
    Binary(BinaryFunction),
    /// It gives a tuple.
    Many(fn(&mut Call<'_, '_>) -> Result<Vec<Value>, Fault>),
    /// It is known, and can't be imported for this reason.
    Refused(&'static str),
}

/// Names and handlers.
pub(super) type Table = &'static [(&'static str, Handler)];

const TABLES: [Table; 10] = [
    REFUSED,
    elementwise::OPERATORS,
    image::OPERATORS,
    movement::OPERATORS,
    nn::OPERATORS,
    normalization::OPERATORS,
    qnn::OPERATORS,
    reduction::OPERATORS,
    slicing::OPERATORS,
    window::OPERATORS,
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";

const REFUSED: Table = &[
    ("argwhere", Handler::Refused(DATA_DEPENDENT)),
    ("unique", Handler::Refused(DATA_DEPENDENT)),
    ("vision.non_max_suppression", Handler::Refused(DATA_DEPENDENT)),
];

fn operators() -> impl Iterator<Item = &'static (&'static str, Handler)> {
    TABLES.into_iter().flatten()
}

/// How an operator is imported, if it is known.
pub(super) fn find_handler(name: &str) -> Option<Handler> {
    operators().find(|(known, _)| *known == name).map(|(_, handler)| *handler)
}

/// The operators that are known, sorted by name.
pub fn operator_support() -> Vec<OperatorSupport> {
    let support = |&(name, handler): &(&'static str, Handler)| {
        let refused = match handler {
            Handler::Refused(reason) => Some(reason),
            _ => None,
        };
        OperatorSupport { domain: "", name, since: None, refused }
    };
    let mut found: Vec<OperatorSupport> = operators().map(support).collect();
    found.sort_unstable();
    found
}

/// One finding for all uses of an operator that can't be imported.
pub(super) fn unsupported(name: &str, reason: Option<&'static str>, uses: &[Use]) -> Diagnostic {
    let diagnostic = support::unsupported(name, reason, uses);
    if reason.is_some() {
        return diagnostic.with_help("replace it in the source model, and print the text again");
    }
    let supported = operators().filter(|(_, handler)| !matches!(handler, Handler::Refused(_)));
    let diagnostic = match support::nearest(name, supported.map(|(known, _)| *known)) {
        Some(nearest) => diagnostic.with_note(format!("the nearest supported operator is {nearest}")),
        None => diagnostic,
    };
    diagnostic.with_help("'mlc ops --format relay' lists what is supported")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<&str> = operators().map(|(name, _)| *name).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
