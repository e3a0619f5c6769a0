//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::{Call, Table};
use super::format::Tflite;
use super::{
    activation, arithmetic, comparison, control, convolution, detection, indexing, linear, movement, normalization,
    pooling, quantization, recurrent, reduction, resizing, shape, slicing, softmax, svdf,
};
use mlc_import::{Entry, Fault, Handler, Operand, Operators, entries};

const TABLES: &[Table] = &[
    REFUSED,
    VARIABLES,
    activation::OPERATORS,
    arithmetic::OPERATORS,
    comparison::OPERATORS,
    control::OPERATORS,
    convolution::OPERATORS,
    detection::OPERATORS,
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
    svdf::OPERATORS,
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";

const REFUSED: Table = &[("UNIQUE", Handler::Refused(DATA_DEPENDENT)), ("WHERE", Handler::Refused(DATA_DEPENDENT))];

/// Written out before operators are imported ([`variables`](crate::variables)); this is what is left of those in other places.
const VARIABLES: Table = &[
    ("ASSIGN_VARIABLE", Handler::Many(misplaced)),
    ("CALL_ONCE", Handler::Many(misplaced)),
    ("READ_VARIABLE", Handler::Many(misplaced)),
    ("VAR_HANDLE", Handler::Many(misplaced)),
];

fn misplaced(_call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    Err(Fault::variant("variables are supported in the model's first subgraph only"))
}

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
        let is_custom = |name: &str| detection::OPERATORS.iter().any(|(own, _)| *own == name);
        assert!(names.iter().all(|name| known.contains(name) || is_custom(name)), "{names:?}");
    }
}
