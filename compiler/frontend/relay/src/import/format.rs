//! [`Relay`]: what the format brings to the import engine. Operators stand in expressions, not in a list, so the engine is given
//! one at a time.

use super::item::{Item, Tuple};
use crate::lexer::Place;
use crate::syntax::{Argument, AttributeValue};
use mlc_import::{Attributes, Description, Fault, Format, Surplus};
use mlc_ir::DType;
use std::convert::Infallible;

/// The format.
pub struct Relay;

/// An operator of the text.
#[derive(Clone, Copy)]
pub struct Application<'m> {
    pub name: &'m str,
    pub place: Place,
    pub comment: Option<&'m str>,
    pub attributes: &'m [Argument<'m>],
}

impl Format for Relay {
    const NAME: &'static str = "relay";
    const SURPLUS_ATTRIBUTES: Surplus = Surplus::Refused;
    const MOST_OPERATORS: usize = 1 << 17;

    type Model<'m> = ();
    type Operator<'m> = Application<'m>;
    type Name<'m> = &'m str;
    type Item = Item;
    type Attribute<'m> = &'m AttributeValue;
    type Region<'m> = Infallible;
    type Scope<'m> = ();
    type Note = Infallible;

    fn describe(operator: Self::Operator<'_>) -> Description<'_> {
        let name = source_name(operator.name, operator.comment);
        Description { kind: operator.name, domain: "", name, location: operator.place.location() }
    }

    fn operands<'m>(_model: (), _operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        Vec::new()
    }

    fn results<'m>(_model: (), _operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        Vec::new()
    }

    fn attributes<'m>(_scope: &(), operator: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        // The first of several counts.
        let attributes = operator.attributes.iter().rev();
        Ok(attributes.map(|attribute| (attribute.name, &attribute.value)).collect())
    }

    /// Several results are a tuple.
    fn arrange<'m>(_model: (), _operator: Self::Operator<'m>, results: Vec<Self::Item>) -> Vec<Self::Item> {
        match results.len() {
            0 | 1 => results,
            _ => vec![Tuple::new(results).map_or(Item::Unknown, Item::Tuple)],
        }
    }

    fn help_for_unknown(_kind: &str) -> String {
        "'mlc ops --format relay' lists what is supported".into()
    }
}

impl<'m> mlc_import::AttributeValue for &'m AttributeValue {
    type Word = &'m str;

    fn is_absent(&self) -> bool {
        match self {
            AttributeValue::None => true,
            AttributeValue::Text(text) => matches!(&**text, "" | "None"),
            _ => false,
        }
    }

    fn description(&self) -> String {
        self.describe()
    }

    fn int(&self) -> Option<i64> {
        match self {
            AttributeValue::Integer(value) => Some(*value),
            AttributeValue::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            AttributeValue::Float(value, _) => Some(*value),
            AttributeValue::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        self.int().map(|number| number != 0)
    }

    /// One number counts as a list.
    fn ints(&self) -> Option<Vec<i64>> {
        match self {
            AttributeValue::Integer(value) => Some(vec![*value]),
            AttributeValue::List(values) => {
                let whole = |value: &AttributeValue| match value {
                    AttributeValue::Integer(value) => Some(*value),
                    _ => None,
                };
                values.iter().map(whole).collect()
            }
            _ => None,
        }
    }

    fn floats(&self) -> Option<Vec<f64>> {
        match self {
            AttributeValue::List(values) => values.iter().map(|value| (&value).float()).collect(),
            other => other.float().map(|value| vec![value]),
        }
    }

    fn word(&self) -> Option<&'m str> {
        match self {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        let text = self.word()?;
        let unsupported = || Fault::parameter(format!("the data type {text} isn't supported"));
        Some(DType::parse_long_name(text).ok_or_else(unsupported))
    }
}

/// The name of an operator's source: what the comment behind it says, or the operator.
pub fn source_name(operator: &str, comment: Option<&str>) -> String {
    let span = comment.and_then(|comment| comment.split_once("span=")).map(|(_, span)| span.trim());
    let span = span.map(|span| span.split_once("*/").map_or(span, |(span, _)| span));
    match span {
        // `file:line:column`
        Some(span) if !span.is_empty() => {
            let mut parts = span.rsplitn(3, ':');
            let numbers = parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number);
            match parts.next().filter(|name| numbers && !name.is_empty()) {
                Some(name) => name.to_owned(),
                None => span.to_owned(),
            }
        }
        _ => operator.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
