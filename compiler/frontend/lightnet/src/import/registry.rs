//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::{Handler, Table};
use super::format::Lightnet;
use super::signature::Signature;
use super::{
    convolution, creation, detection, elementwise, movement, normalization, pooling, printing, reduction, resizing,
    sorting,
};
use indexmap::IndexMap;
use mlc_import::{Entry, Operators};

const TABLES: &[Table] = &[
    convolution::OPERATORS,
    creation::OPERATORS,
    detection::OPERATORS,
    elementwise::OPERATORS,
    movement::OPERATORS,
    normalization::OPERATORS,
    pooling::OPERATORS,
    printing::OPERATORS,
    reduction::OPERATORS,
    resizing::OPERATORS,
    sorting::OPERATORS,
];

const DEVICE: &str = "it is part of a back end for a device";

/// Types that only devices have.
const REFUSED: &[&str] = &["conv1x1_dpu", "conv3x3_dpu", "ldmr", "relu_cudnn", "svmr", "tensorrt"];

/// Every type that can be imported, by name.
pub fn signatures() -> IndexMap<&'static str, &'static Signature> {
    TABLES.iter().copied().flatten().map(|(signature, _)| (signature.kind, signature)).collect()
}

impl Operators for Lightnet {
    fn entries() -> impl Iterator<Item = Entry<Lightnet>> {
        let own = TABLES.iter().copied().flatten().map(|(signature, handler)| (signature.kind, *handler));
        let refused = REFUSED.iter().map(|kind| (*kind, Handler::Refused(DEVICE)));
        own.chain(refused).map(|(kind, handler)| Entry { domain: "", kind, since: None, handler })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<&str> = Lightnet::entries().map(|entry| entry.kind).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
