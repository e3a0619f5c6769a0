//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Table;
use super::format::Tennis;
use super::{
    activation, arithmetic, color, convolution, detection, indexing, linear, normalization, padding, pooling,
    recurrent, reduction, resizing, sampling, shape, slicing, structure, suppression, window_padding,
};
use mlc_import::{Entry, Handler, Operators, entries};

const TABLES: &[Table] = &[
    REFUSED,
    activation::OPERATORS,
    arithmetic::OPERATORS,
    color::OPERATORS,
    convolution::OPERATORS,
    detection::OPERATORS,
    indexing::OPERATORS,
    linear::OPERATORS,
    normalization::OPERATORS,
    padding::OPERATORS,
    pooling::OPERATORS,
    recurrent::OPERATORS,
    reduction::OPERATORS,
    resizing::OPERATORS,
    sampling::OPERATORS,
    shape::OPERATORS,
    slicing::OPERATORS,
    structure::OPERATORS,
    suppression::OPERATORS,
    window_padding::OPERATORS,
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";
const UNDEFINED: &str = "TenniS's own runtime doesn't have it, and nothing says what it computes";

const REFUSED: Table = &[
    ("<var>", Handler::Refused("it is reserved for states, which no runtime of the format has")),
    ("detection_output", Handler::Refused(DATA_DEPENDENT)),
    ("mean", Handler::Refused(UNDEFINED)),
    ("proposal", Handler::Refused(DATA_DEPENDENT)),
    ("rknn2", Handler::Refused("it holds a vendor's own program")),
    ("sample2d_like", Handler::Refused(UNDEFINED)),
    ("yolo_poster", Handler::Refused(DATA_DEPENDENT)),
];

impl Operators for Tennis {
    fn entries() -> impl Iterator<Item = Entry<Tennis>> {
        entries(TABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<&str> = Tennis::entries().map(|entry| entry.kind).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
