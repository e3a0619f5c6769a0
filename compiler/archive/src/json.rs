//! JSON with places: a value knows where it stands, and every mistake says it.

use mlc_ir::{Code, Diagnostic, Location};
use serde_json::Value;

/// A value of a JSON file and its path.
#[derive(Debug, Clone)]
pub(super) struct Json<'a> {
    value: &'a Value,
    file: &'a str,
    path: String,
}

/// Parses a file of the archive.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Value, Diagnostic> {
    serde_json::from_slice(bytes).map_err(|error| {
        let place = Location::line_column(error.line() as u32, error.column() as u32);
        Diagnostic::error(Code::Syntax, place, format!("'{file}' of the archive isn't JSON: {error}"))
    })
}

impl<'a> Json<'a> {
    pub(super) fn root(file: &'a str, value: &'a Value) -> Json<'a> {
        Json { value, file, path: "$".into() }
    }

    /// A finding about this value.
    pub(super) fn fault(&self, code: Code, message: impl std::fmt::Display) -> Diagnostic {
        let location = Location { json_path: Some(self.path.clone()), ..Location::default() };
        Diagnostic::error(code, location, format!("'{}' of the archive: {message}", self.file))
    }

    fn kind<T>(&self, expected: &str, found: Option<T>) -> Result<T, Diagnostic> {
        found.ok_or_else(|| self.fault(Code::Syntax, format!("{expected} expected, {} found", describe(self.value))))
    }

    /// A member of an object, if it is there and not null.
    pub(super) fn find(&self, key: &str) -> Result<Option<Json<'a>>, Diagnostic> {
        let object = self.kind("an object", self.value.as_object())?;
        let value = object.get(key).filter(|value| !value.is_null());
        Ok(value.map(|value| Json { value, file: self.file, path: format!("{}.{key}", self.path) }))
    }

    /// A member of an object that must be there.
    pub(super) fn get(&self, key: &str) -> Result<Json<'a>, Diagnostic> {
        self.find(key)?.ok_or_else(|| self.fault(Code::ParameterMissing, format!("the key '{key}' is missing")))
    }

    /// Keys and values of an object.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Json<'a>)>, Diagnostic> {
        let object = self.kind("an object", self.value.as_object())?;
        let member = |(key, value): (&'a String, &'a Value)| {
            (key.as_str(), Json { value, file: self.file, path: format!("{}[{key:?}]", self.path) })
        };
        Ok(object.iter().map(member).collect())
    }

    /// The elements of a list.
    pub(super) fn list(&self) -> Result<Vec<Json<'a>>, Diagnostic> {
        let list = self.kind("a list", self.value.as_array())?;
        let element = |(index, value): (usize, &'a Value)| Json {
            value,
            file: self.file,
            path: format!("{}[{index}]", self.path),
        };
        Ok(list.iter().enumerate().map(element).collect())
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(super) fn is_object(&self) -> bool {
        self.value.is_object()
    }

    pub(super) fn text(&self) -> Result<&'a str, Diagnostic> {
        self.kind("a string", self.value.as_str())
    }

    /// A number that isn't negative and has no fraction.
    pub(super) fn count(&self) -> Result<usize, Diagnostic> {
        let value = self.value.as_u64().and_then(|value| usize::try_from(value).ok());
        self.kind("a number that isn't negative", value)
    }

    pub(super) fn bytes(&self) -> Result<u64, Diagnostic> {
        self.kind("a number of bytes", self.value.as_u64())
    }

    /// The elements of a list of strings.
    pub(super) fn texts(&self) -> Result<Vec<String>, Diagnostic> {
        self.list()?.iter().map(|text| Ok(text.text()?.to_owned())).collect()
    }

    /// The elements of a list of numbers that aren't negative.
    pub(super) fn counts(&self) -> Result<Vec<usize>, Diagnostic> {
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
