//! Values of fields as values of attributes. What Relay has no value for is a string that says what it is: `"type: f32[2]"`.

use super::spelled::{Source, Store};
use crate::syntax::AttributeValue;
use mlc_import::Fault;
use mlc_ir::scalar::{Expression, ScalarNode};
use mlc_ir::{DType, Diagnostic, FieldValue, Float, Literal, Op, OpKind};

/// What the text calls constants.
pub(crate) const CONSTANT: &str = "relay.Constant";

/// The attribute's value of a field's.
pub(super) fn encoded(value: &FieldValue, store: &mut dyn Store) -> AttributeValue {
    let tagged = |tag: &str, text: String| AttributeValue::Text(format!("{tag}: {text}"));
    match value {
        FieldValue::Bool(value) => AttributeValue::Bool(*value),
        FieldValue::Integer(value) => AttributeValue::Integer(*value),
        FieldValue::Float(value) if value.0.is_nan() => tagged("float", Literal::Float(DType::F64, *value).to_string()),
        FieldValue::Float(value) => float(value.0),
        FieldValue::Word(word) if word.contains(": ") => tagged("word", word.clone()),
        FieldValue::Word(word) => AttributeValue::Text(word.clone()),
        FieldValue::Text(text) => tagged("text", text.to_string()),
        FieldValue::List(values) => AttributeValue::List(values.iter().map(|value| encoded(value, store)).collect()),
        FieldValue::Literal(literal) => tagged("literal", literal.to_string()),
        FieldValue::Expression(expression) => tagged("expression", expression.to_string()),
        FieldValue::Type(ty) => tagged("type", ty.to_string()),
        FieldValue::Attribute(attribute) => AttributeValue::Meta(CONSTANT.into(), store.constant(attribute)),
        FieldValue::Nested(_) => match (value.as_operator(), value.as_graph()) {
            (Some(op), _) => operator_value(op, store),
            (None, Some(graph)) => tagged("graph", store.graph(graph)),
            (None, None) => AttributeValue::None,
        },
    }
}

/// `["operator: name", "field", value, …]`
fn operator_value(op: &Op, store: &mut dyn Store) -> AttributeValue {
    let mut list = vec![AttributeValue::Text(format!("operator: {}", op.name()))];
    for (name, value) in op.fields() {
        list.push(AttributeValue::Text(name.to_owned()));
        list.push(encoded(&value, store));
    }
    AttributeValue::List(list)
}

/// A number as a value that reads back to the same bits.
pub(super) fn float(value: f64) -> AttributeValue {
    AttributeValue::Float(value, f64::from(value as f32).to_bits() == value.to_bits())
}

/// The field's value of an attribute's.
pub(super) fn decoded(value: &AttributeValue, source: &mut dyn Source) -> Result<FieldValue, Fault> {
    Ok(match value {
        AttributeValue::Integer(value) => FieldValue::Integer(*value),
        AttributeValue::Float(value, _) => FieldValue::Float(Float(*value)),
        AttributeValue::Bool(value) => FieldValue::Bool(*value),
        AttributeValue::Text(text) => match text.split_once(": ") {
            None => FieldValue::Word(text.clone()),
            Some((tag, text)) => tagged(tag, text, source)?,
        },
        AttributeValue::List(values) => match values.first() {
            Some(AttributeValue::Text(first)) if first.starts_with("operator: ") => {
                operator(first, &values[1..], source)?
            }
            _ => {
                let values = values.iter().map(|value| decoded(value, source));
                FieldValue::List(values.collect::<Result<_, Fault>>()?)
            }
        },
        AttributeValue::Meta(key, index) => FieldValue::Attribute(source.constant(key, *index)?),
        AttributeValue::None => {
            return Err(Fault::parameter(format!("a field can't be {}", value.describe())));
        }
    })
}

fn tagged(tag: &str, text: &str, source: &mut dyn Source) -> Result<FieldValue, Fault> {
    let unfit = |error: Diagnostic| Fault::parameter(format!("{text:?} isn't of the kind {tag}: {}", error.message));
    let literal = || match Expression::parse(text).map_err(unfit)?.nodes() {
        [ScalarNode::Literal(literal)] => Ok(*literal),
        _ => Err(Fault::parameter(format!("{text:?} isn't a number"))),
    };
    Ok(match tag {
        "float" => FieldValue::Float(Float(literal()?.to_f64())),
        "literal" => FieldValue::Literal(literal()?),
        "expression" => FieldValue::Expression(Expression::parse(text).map_err(unfit)?),
        "type" => FieldValue::Type(mlc_ir::text::parse_type(text).map_err(unfit)?),
        "graph" => FieldValue::of_graph(source.graph(text)?),
        "word" => FieldValue::Word(text.to_owned()),
        "text" => FieldValue::Text(text.into()),
        _ => return Err(Fault::parameter(format!("{tag:?} isn't a kind of values"))),
    })
}

/// `["operator: name", "field", value, …]`
fn operator(first: &str, values: &[AttributeValue], source: &mut dyn Source) -> Result<FieldValue, Fault> {
    let name = first.trim_start_matches("operator: ");
    let kind = OpKind::parse(name).ok_or_else(|| Fault::parameter(format!("there is no operator {name}")))?;
    let fields = values.chunks(2).map(|pair| match pair {
        [AttributeValue::Text(name), value] => Ok((name.clone(), decoded(value, source)?)),
        _ => Err(Fault::parameter("the fields of an operator must be names and values by turns")),
    });
    let fields = fields.collect::<Result<Vec<(String, FieldValue)>, Fault>>()?;
    let op = kind.with_fields(&fields).map_err(|message| Fault::parameter(format!("{name}: {message}")))?;
    Ok(FieldValue::of_operator(op))
}
