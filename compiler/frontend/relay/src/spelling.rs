//! The operators of graphs as operators of Relay, and back, without loss: with a word of Relay's own where it says all that
//! there is to say, else as `mlc.<operator>` with all fields as attributes.

mod fields;
mod spelled;
mod words;

use super::syntax::{Argument, AttributeValue};
pub(super) use fields::CONSTANT;
use fields::{decoded, encoded};
use mlc_import::Fault;
use mlc_ir::{FieldValue, Literal, Op, OpKind, TensorType};
pub(super) use spelled::{Source, Spelled, Store};

/// What stands before the name of an operator that Relay doesn't have.
pub(super) const OWN: &str = "mlc.";

/// Spells an operator of operands of these types. Graphs and constants inside of it go to the store.
pub(super) fn spell(op: &Op, operands: &[TensorType], store: &mut dyn Store) -> Spelled {
    let exact = |spelled: &Spelled| {
        let attributes: Vec<(&str, &AttributeValue)> =
            spelled.attributes.iter().map(|(name, value)| (*name, value)).collect();
        words::read(&spelled.name, &attributes, spelled.literal, operands).is_ok_and(|read| read.as_ref() == Some(op))
    };
    words::write(op, operands).filter(|spelled| !spelled.has_nan() && exact(spelled)).unwrap_or_else(|| {
        let fields = op.fields().into_iter();
        let attributes = fields.map(|(name, value)| (name, encoded(&value, store))).collect();
        Spelled { name: format!("{OWN}{}", op.name()), attributes, literal: None, tuple: false }
    })
}

/// The operator of a spelling.
pub(super) fn unspell(
    name: &str,
    attributes: &[Argument<'_>],
    literal: Option<Literal>,
    operands: &[TensorType],
    source: &mut dyn Source,
) -> Result<Op, Fault> {
    let Some(own) = name.strip_prefix(OWN) else {
        let attributes: Vec<(&str, &AttributeValue)> =
            attributes.iter().map(|attribute| (attribute.name, &attribute.value)).collect();
        return words::read(name, &attributes, literal, operands)?
            .ok_or_else(|| Fault::variant(format!("{name} isn't among the operators that mlc writes")));
    };
    let kind = OpKind::parse(own).filter(|kind| !matches!(kind, OpKind::Input | OpKind::Constant));
    let kind = kind.ok_or_else(|| Fault::variant(format!("there is no operator {name}")))?;
    let fields = attributes
        .iter()
        .map(|attribute| Ok((attribute.name.to_owned(), decoded(&attribute.value, source)?)))
        .collect::<Result<Vec<(String, FieldValue)>, Fault>>()?;
    kind.with_fields(&fields).map_err(|message| Fault::parameter(format!("{name}: {message}")))
}

/// Relay's word for a function of one number of a type.
pub(super) use words::{binary_word, unary_word};
