//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Table;
use super::format::Relay;
use super::{elementwise, image, movement, nn, normalization, qnn, reduction, slicing, window};
use mlc_import::{Entry, Handler, Operators, entries};

const TABLES: &[Table] = &[
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

impl Operators for Relay {
    fn entries() -> impl Iterator<Item = Entry<Relay>> {
        entries(TABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<&str> = Relay::entries().map(|entry| entry.kind).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
