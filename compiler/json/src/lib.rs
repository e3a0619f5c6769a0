//! JSON with places: a value knows where it stands, and every mistake says it. No object may have a key twice.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod comments;

pub use comments::without_comments;

use mlc_ir::{Code, Diagnostic, Location};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

/// Most members of one object: more than any model has, and few enough to remember.
const MOST_MEMBERS: usize = 1 << 16;

/// Parses a text in which no object has a key twice.
///
/// # Errors
/// When the text isn't JSON, nests more than 128 deep, or has a key twice in one object.
pub fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    parse_with(text, Distinct { keep: true })
}

/// Whether [`parse`] would succeed, without the memory that the value takes.
///
/// # Errors
/// As [`parse`].
pub fn check(text: &[u8]) -> Result<(), serde_json::Error> {
    parse_with(text, Distinct { keep: false }).map(|_| ())
}

fn parse_with(text: &[u8], seed: Distinct) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// A value whose objects have every key once.
#[derive(Clone, Copy)]
struct Distinct {
    /// Whether the value is wanted, not only its check.
    keep: bool,
}

impl<'de> DeserializeSeed<'de> for Distinct {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(if self.keep { Value::String(value.to_owned()) } else { Value::Null })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self)? {
            if self.keep {
                list.push(element);
            }
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(twice(&key)));
            }
            if object.len() == MOST_MEMBERS {
                return Err(A::Error::custom(format_args!("an object has more than {MOST_MEMBERS} keys")));
            }
            let value = members.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// What is said of a key that an object has twice.
pub fn twice(key: &str) -> String {
    format!("an object has the key {:?} twice", shortened(key))
}

/// A text of a file as a message shows it: not all of a long one.
pub fn shortened(text: &str) -> Cow<'_, str> {
    const MOST: usize = 200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A value of a JSON file and its path.
#[derive(Debug, Clone)]
pub struct Json<'a> {
    value: &'a Value,
    place: Rc<Step<'a>>,
}

/// The way from the root to a value. Most values are right, so that only mistakes spell it.
#[derive(Debug)]
struct Step<'a> {
    parent: Option<Rc<Step<'a>>>,
    key: Key<'a>,
}

#[derive(Debug)]
enum Key<'a> {
    /// Where the root stands, and what is said before every mistake.
    Root {
        path: String,
        introduction: String,
    },
    Member(&'a str),
    /// A member of an object whose keys are names that a user chose.
    Entry(&'a str),
    Element(usize),
}

impl Step<'_> {
    /// The path, and what is said before every mistake.
    fn spell(&self) -> (String, &str) {
        let Key::Root { path, introduction } = &self.key else {
            let (mut path, introduction) = self.parent.as_deref().map(Step::spell).unwrap_or_default();
            path += &match self.key {
                Key::Member(key) => format!(".{key}"),
                Key::Entry(key) => format!("[{:?}]", shortened(key)),
                Key::Element(index) => format!("[{index}]"),
                Key::Root { .. } => String::new(),
            };
            return (path, introduction);
        };
        (path.clone(), introduction)
    }
}

impl<'a> Json<'a> {
    /// A value at a path, `$` for a whole file. Every mistake's message starts with the introduction, which may be empty.
    pub fn root(path: impl Into<String>, introduction: impl Into<String>, value: &'a Value) -> Json<'a> {
        let key = Key::Root { path: path.into(), introduction: introduction.into() };
        Json { value, place: Rc::new(Step { parent: None, key }) }
    }

    fn below(&self, key: Key<'a>, value: &'a Value) -> Json<'a> {
        Json { value, place: Rc::new(Step { parent: Some(Rc::clone(&self.place)), key }) }
    }

    /// Where this value stands, as `$.nodes[3].op`.
    pub fn path(&self) -> String {
        self.place.spell().0
    }

    /// A finding about this value.
    pub fn fault(&self, code: Code, message: impl fmt::Display) -> Diagnostic {
        let (path, introduction) = self.place.spell();
        let location = Location { json_path: Some(path), ..Location::default() };
        Diagnostic::error(code, location, format!("{introduction}{message}"))
    }

    fn kind<T>(&self, expected: &str, found: Option<T>) -> Result<T, Diagnostic> {
        found.ok_or_else(|| self.fault(Code::Syntax, format!("{expected} expected, {} found", describe(self.value))))
    }

    /// A member of an object, if it is there and not null.
    ///
    /// # Errors
    /// When this isn't an object.
    pub fn find(&self, key: &str) -> Result<Option<Json<'a>>, Diagnostic> {
        let object = self.kind("an object", self.value.as_object())?;
        let member = object.get_key_value(key).filter(|(_, value)| !value.is_null());
        Ok(member.map(|(key, value)| self.below(Key::Member(key), value)))
    }

    /// A member of an object that must be there.
    ///
    /// # Errors
    /// When it isn't, or this isn't an object.
    pub fn get(&self, key: &str) -> Result<Json<'a>, Diagnostic> {
        self.find(key)?.ok_or_else(|| self.fault(Code::ParameterMissing, format!("the key '{key}' is missing")))
    }

    /// Keys of an object; none if this isn't one.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.value.as_object().into_iter().flat_map(|object| object.keys().map(String::as_str))
    }

    /// Keys and values of an object.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn members(&self) -> Result<Vec<(&'a str, Json<'a>)>, Diagnostic> {
        let object = self.kind("an object", self.value.as_object())?;
        let member = |(key, value): (&'a String, &'a Value)| (key.as_str(), self.below(Key::Entry(key), value));
        Ok(object.iter().map(member).collect())
    }

    /// The elements of a list.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn list(&self) -> Result<Vec<Json<'a>>, Diagnostic> {
        let list = self.kind("a list", self.value.as_array())?;
        Ok(list.iter().enumerate().map(|(index, value)| self.below(Key::Element(index), value)).collect())
    }

    /// The value itself.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Whether this is a list.
    pub fn is_list(&self) -> bool {
        self.value.is_array()
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.value.is_object()
    }

    /// A string.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn text(&self) -> Result<&'a str, Diagnostic> {
        self.kind("a string", self.value.as_str())
    }

    /// True or false.
    ///
    /// # Errors
    /// When this is neither.
    pub fn boolean(&self) -> Result<bool, Diagnostic> {
        self.kind("true or false", self.value.as_bool())
    }

    /// A number.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn number(&self) -> Result<f64, Diagnostic> {
        self.kind("a number", self.value.as_f64())
    }

    /// A number without a fraction, of a type of integers.
    ///
    /// # Errors
    /// When this isn't one, or the type doesn't have it.
    pub fn integer<T: TryFrom<i128>>(&self) -> Result<T, Diagnostic> {
        let signed = self.value.as_i64().map(i128::from);
        let value = self.kind("an integer", signed.or_else(|| self.value.as_u64().map(i128::from)))?;
        T::try_from(value).map_err(|_| {
            self.fault(Code::NumberOutOfRange, format!("{value} isn't in the range of {}", std::any::type_name::<T>()))
        })
    }

    /// A number that isn't negative and has no fraction.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn count(&self) -> Result<usize, Diagnostic> {
        let value = self.value.as_u64().and_then(|value| usize::try_from(value).ok());
        self.kind("a number that isn't negative", value)
    }

    /// A number of bytes.
    ///
    /// # Errors
    /// When this isn't one.
    pub fn bytes(&self) -> Result<u64, Diagnostic> {
        self.kind("a number of bytes", self.value.as_u64())
    }

    /// The elements of a list of strings.
    ///
    /// # Errors
    /// When this isn't such a list.
    pub fn texts(&self) -> Result<Vec<String>, Diagnostic> {
        self.list()?.iter().map(|text| Ok(text.text()?.to_owned())).collect()
    }

    /// The elements of a list of numbers that aren't negative.
    ///
    /// # Errors
    /// When this isn't such a list.
    pub fn counts(&self) -> Result<Vec<usize>, Diagnostic> {
        self.list()?.iter().map(Json::count).collect()
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(_) => "a string".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_an_object_has_twice_are_refused() {
        for (text, twice) in [(r#"{"a": 1, "b": {"a": 2}}"#, false), (r#"[{"b": {"a": 1, "\u0061": 2}}]"#, true)] {
            assert_eq!(parse(text.as_bytes()).is_err(), twice, "{text}");
            assert_eq!(check(text.as_bytes()).is_err(), twice, "{text}");
        }
        let error = parse(br#"{"a": 1, "a": 1}"#).unwrap_err().to_string();
        assert!(error.starts_with("an object has the key \"a\" twice"), "{error}");
    }

    #[test]
    fn values_are_those_of_the_text() {
        let text = r#"{"a": [1, -2, 18446744073709551615, 1.5, "x\n", true, null], "b": {}}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn long_texts_are_shortened() {
        assert_eq!(shortened("ä".repeat(200).as_str()).chars().count(), 200);
        assert_eq!(shortened("ä".repeat(201).as_str()).chars().last(), Some('…'));
        let text = format!("{{{0:?}: 1, {0:?}: 2}}", "k".repeat(10_000));
        assert!(parse(text.as_bytes()).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
        assert!(check(deep.as_bytes()).is_err());
    }

    #[test]
    fn mistakes_say_where_they_are() {
        let value = parse(br#"{"a": [{"b": 300}]}"#).unwrap();
        let root = Json::root("$", "here: ", &value);
        let number = &root.get("a").unwrap().list().unwrap()[0].get("b").unwrap();
        assert_eq!(number.integer::<u16>().unwrap(), 300);
        let fault = number.integer::<u8>().unwrap_err();
        assert_eq!(fault.location.json_path.as_deref(), Some("$.a[0].b"));
        assert_eq!(fault.message, "here: 300 isn't in the range of u8");
        assert_eq!(root.members().unwrap()[0].1.text().unwrap_err().location.json_path.as_deref(), Some("$[\"a\"]"));
    }
}
