//! Which operators are known. Each group of operators is a table in its own file; this one joins them.

use super::call::Table;
use super::format::Onnx;
use super::{
    arithmetic, attention, classical, contributed, control, conversion, convolution, einsum, elementwise, ensemble,
    indexing, integer_products, joining, labels, linear, linear_attention, losses, matrix, ngrams, normalization,
    ordering, pooling, qlinear, quantization, recurrent, reduction, resizing, rotary, sampling, shape, signal, slicing,
    softmax, structure, support_vectors,
};
use mlc_import::{Entry, Handler, Operators};

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
    ("", losses::OPERATORS),
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

impl Operators for Onnx {
    fn entries() -> impl Iterator<Item = Entry<Onnx>> {
        let entry = |domain, &(kind, since, handler)| Entry { domain, kind, since: Some(since), handler };
        TABLES.iter().flat_map(move |&(domain, table)| table.iter().map(move |operator| entry(domain, operator)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_in_one_table_once() {
        let mut names: Vec<(&str, &str)> = Onnx::entries().map(|entry| (entry.domain, entry.kind)).collect();
        names.sort_unstable();
        for pair in names.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
