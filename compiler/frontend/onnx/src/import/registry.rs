//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Call;
use super::{
    Importer, Item, Site, arithmetic, attention, classical, contributed, control, conversion, convolution, einsum,
    elementwise, ensemble, indexing, integer_products, joining, labels, linear, linear_attention, matrix, ngrams,
    normalization, ordering, pooling, qlinear, quantization, recurrent, reduction, resizing, rotary, sampling, shape,
    signal, slicing, softmax, structure, support_vectors,
};
use indexmap::IndexMap;
use mlc_import::Fault;
use mlc_import::support::{self, OperatorSupport};
use mlc_ir::{Diagnostic, Value};

/// How an operator is imported.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    /// It has one result, a tensor.
    One(fn(&mut Call<'_, '_>) -> Result<Value, Fault>),
    /// It has several results, or ones that aren't tensors.
    Many(fn(&mut Call<'_, '_>) -> Result<Vec<Item>, Fault>),
    /// It holds graphs.
    Control(ImportControl),
    /// It is known, and can't be imported for this reason.
    Refused(&'static str),
}

/// Imports an operator that holds graphs, from its operands to its results.
pub(super) type ImportControl = for<'a> fn(&mut Importer<'a>, &Site<'a>, Vec<Item>) -> Result<Vec<Item>, Fault>;

/// Operators of one operator set: name, first supported version of the set, handler.
pub(super) type Table = &'static [(&'static str, i64, Handler)];

/// An operator that is known.
#[derive(Clone, Copy)]
pub(super) struct Operator {
    /// First version of its operator set in which it is supported.
    pub since: i64,
    pub handler: Handler,
}

/// The tables by operator set; the set of the standard operators is empty.
const TABLES: &[(&str, Table)] = &[
    ("", REFUSED),
    ("", arithmetic::OPERATORS),
    ("", attention::OPERATORS),
    ("", contributed::UNDER_STANDARD),
    ("", control::OPERATORS),
    ("", conversion::OPERATORS),
    ("", convolution::OPERATORS),
    ("", einsum::OPERATORS),
    ("", elementwise::OPERATORS),
    ("", indexing::OPERATORS),
    ("", integer_products::OPERATORS),
    ("", joining::OPERATORS),
    ("", linear::OPERATORS),
    ("", linear_attention::OPERATORS),
    ("", matrix::OPERATORS),
    ("", ngrams::OPERATORS),
    ("", normalization::OPERATORS),
    ("", ordering::OPERATORS),
    ("", pooling::OPERATORS),
    ("", quantization::OPERATORS),
    ("", recurrent::OPERATORS),
    ("", reduction::OPERATORS),
    ("", resizing::OPERATORS),
    ("", rotary::OPERATORS),
    ("", sampling::OPERATORS),
    ("", shape::OPERATORS),
    ("", signal::OPERATORS),
    ("", slicing::OPERATORS),
    ("", softmax::OPERATORS),
    ("", structure::OPERATORS),
    ("ai.onnx.ml", classical::OPERATORS),
    ("ai.onnx.ml", ensemble::OPERATORS),
    ("ai.onnx.ml", indexing::MACHINE_LEARNING),
    ("ai.onnx.ml", labels::OPERATORS),
    ("ai.onnx.ml", support_vectors::OPERATORS),
    ("ai.onnx.preview", attention::PREVIEW),
    ("com.microsoft", contributed::OPERATORS),
    ("com.microsoft", integer_products::CONTRIBUTED),
    ("com.microsoft", matrix::CONTRIBUTED),
    ("com.microsoft", qlinear::OPERATORS),
    ("com.microsoft", quantization::MICROSOFT_OPERATORS),
];

const DATA_DEPENDENT: &str = "the size of its result depends on the data, so no static memory plan exists";
const RANDOM: &str = "its result is random";
const STRINGS: &str = "strings aren't supported; do this step outside of the model";
const TRAINING: &str = "it trains a model; export the model for inference";

const REFUSED: Table = &[
    ("Adagrad", 1, Handler::Refused(TRAINING)),
    ("Adam", 1, Handler::Refused(TRAINING)),
    ("Bernoulli", 1, Handler::Refused(RANDOM)),
    ("Gradient", 1, Handler::Refused(TRAINING)),
    ("ImageDecoder", 1, Handler::Refused("it decodes files; do this step outside of the model")),
    ("Momentum", 1, Handler::Refused(TRAINING)),
    ("Multinomial", 1, Handler::Refused(RANDOM)),
    ("NonMaxSuppression", 1, Handler::Refused(DATA_DEPENDENT)),
    ("RandomNormal", 1, Handler::Refused(RANDOM)),
    ("RandomNormalLike", 1, Handler::Refused(RANDOM)),
    ("RandomUniform", 1, Handler::Refused(RANDOM)),
    ("RandomUniformLike", 1, Handler::Refused(RANDOM)),
    ("RegexFullMatch", 1, Handler::Refused(STRINGS)),
    ("StringConcat", 1, Handler::Refused(STRINGS)),
    ("StringNormalizer", 1, Handler::Refused(STRINGS)),
    ("StringSplit", 1, Handler::Refused(STRINGS)),
];

fn operators() -> impl Iterator<Item = (&'static str, &'static str, Operator)> {
    TABLES.iter().flat_map(|&(domain, table)| {
        table.iter().map(move |&(name, since, handler)| (domain, name, Operator { since, handler }))
    })
}

/// How an operator is imported, if it is known.
pub(super) fn find_handler(domain: &str, name: &str) -> Option<Operator> {
    let mut found = operators().filter(|(known_domain, known, _)| *known_domain == domain && *known == name);
    found.next().map(|(_, _, operator)| operator)
}

/// The operators that are known, sorted by operator set and name.
pub fn operator_support() -> Vec<OperatorSupport> {
    let support = |(domain, name, operator): (&'static str, &'static str, Operator)| match operator.handler {
        Handler::Refused(reason) => OperatorSupport { domain, name, since: None, refused: Some(reason) },
        _ => OperatorSupport { domain, name, since: Some(operator.since), refused: None },
    };
    let mut found: Vec<OperatorSupport> = operators().map(support).collect();
    found.sort_unstable();
    found
}

/// The operators of a model that can't be imported, with their places.
#[derive(Debug, Default)]
pub(super) struct Unsupported {
    found: IndexMap<(String, String), Uses>,
}

#[derive(Debug)]
struct Uses {
    version: i64,
    reason: Option<&'static str>,
    places: Vec<support::Use>,
}

impl Unsupported {
    pub fn add(&mut self, site: &Site<'_>, reason: Option<&'static str>) {
        let key = (site.domain.to_owned(), site.node.op_type.clone());
        let new = || Uses { version: site.version, reason, places: Vec::new() };
        self.found.entry(key).or_insert_with(new).places.push((site.location(), site.name.clone()));
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How often an operator was found that can't be imported.
    pub fn count(&self) -> usize {
        self.found.values().map(|uses| uses.places.len()).sum()
    }

    /// A diagnostic for each operator, with all the places where it occurs.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.found.iter().map(|((domain, name), uses)| uses.diagnostic(domain, name)).collect()
    }
}

impl Uses {
    fn diagnostic(&self, domain: &str, name: &str) -> Diagnostic {
        let set = if domain.is_empty() { "opset".to_owned() } else { format!("{domain} version") };
        let diagnostic = support::unsupported(&format!("{name} ({set} {})", self.version), self.reason, &self.places);
        if self.reason.is_some() {
            return diagnostic.with_help("replace it in the source model, and export that again");
        }
        let supported = operators()
            .filter(|(known, _, operator)| *known == domain && !matches!(operator.handler, Handler::Refused(_)));
        let diagnostic = match support::nearest(name, supported.map(|(_, known, _)| known)) {
            Some(nearest) => diagnostic.with_note(format!("the nearest supported operator is {nearest}")),
            None => diagnostic,
        };
        diagnostic.with_help(
            "'mlc ops --format onnx' lists what is supported; a function of that name in the model would be inlined",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<(&str, &str)> = operators().map(|(domain, name, _)| (domain, name)).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
