//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Table;
use super::format::Tflite;
use super::{
    activation, arithmetic, comparison, convolution, indexing, linear, movement, normalization, pooling, quantization,
    recurrent, reduction, resizing, shape, slicing, softmax,
};
use mlc_import::{Entry, Handler, Operators, entries};

const TABLES: &[Table] = &[
    REFUSED,
    activation::OPERATORS,
    arithmetic::OPERATORS,
    comparison::OPERATORS,
    convolution::OPERATORS,
    indexing::OPERATORS,
    linear::OPERATORS,
    movement::OPERATORS,
    normalization::OPERATORS,
    pooling::OPERATORS,
    quantization::OPERATORS,
    recurrent::OPERATORS,
    reduction::OPERATORS,
    resizing::OPERATORS,
    shape::OPERATORS,
    slicing::OPERATORS,
    softmax::OPERATORS,
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";
const STATE: &str = "what a model keeps between two runs isn't supported yet";
const CONTROL: &str = "control flow of the format isn't supported yet";

const REFUSED: Table = &[
    ("ASSIGN_VARIABLE", Handler::Refused(STATE)),
    ("CALL_ONCE", Handler::Refused(STATE)),
    ("DENSIFY", Handler::Refused("sparse weights aren't supported")),
    ("IF", Handler::Refused(CONTROL)),
    ("READ_VARIABLE", Handler::Refused(STATE)),
    ("SVDF", Handler::Refused(STATE)),
    ("UNIQUE", Handler::Refused(DATA_DEPENDENT)),
    ("VAR_HANDLE", Handler::Refused(STATE)),
    ("WHERE", Handler::Refused(DATA_DEPENDENT)),
    ("WHILE", Handler::Refused(CONTROL)),
];

impl Operators for Tflite {
    fn entries() -> impl Iterator<Item = Entry<Tflite>> {
        entries(TABLES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn every_operator_is_in_one_table_once_and_in_the_schema() {
        let mut names: Vec<&str> = Tflite::entries().map(|entry| entry.kind).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        let known = schema::operator_names();
        assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    }
}
