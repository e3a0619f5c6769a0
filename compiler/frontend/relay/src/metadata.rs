//! The constants at the end of a text: a serialised graph of objects, with arrays in base64.

use super::lexer::Place;
use super::types;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, Diagnostic};
use mlc_runtime::params;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The section as it stands.
#[derive(Debug, Deserialize)]
struct Section<'a> {
    root: usize,
    #[serde(borrow)]
    nodes: Vec<Node<'a>>,
    #[serde(borrow, default)]
    b64ndarrays: Vec<Cow<'a, str>>,
}

/// An object; what isn't asked for is left out.
#[derive(Debug, Deserialize)]
struct Node<'a> {
    #[serde(borrow)]
    type_key: Cow<'a, str>,
    #[serde(borrow, default)]
    keys: Vec<Cow<'a, str>>,
    #[serde(default)]
    data: Vec<usize>,
    #[serde(borrow, default)]
    attrs: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

/// The constants that a text refers to as `meta[relay.Constant][n]`.
#[derive(Debug, Default)]
pub(super) struct Constants<'a> {
    section: Option<Section<'a>>,
    /// Those that were asked for, by the number of their array.
    decoded: BTreeMap<usize, Attribute>,
}

impl<'a> Constants<'a> {
    /// Parses the text behind `#[metadata]`.
    pub fn parse(section: Option<(&'a str, Place)>) -> Result<Self, Diagnostic> {
        let Some((text, place)) = section else { return Ok(Constants::default()) };
        let section = serde_json::from_str(text).map_err(|error| {
            let line = place.line + (error.line() as u32).saturating_sub(1);
            let place = Place { line, column: error.column() as u32 };
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            *place.error(format!("the metadata can't be read: {message}"))
        })?;
        Ok(Constants { section: Some(section), decoded: BTreeMap::new() })
    }

    /// The constant `meta[key][index]`.
    pub fn constant(&mut self, key: &str, index: usize) -> Result<Attribute, Fault> {
        if key != "relay.Constant" {
            return Err(Fault::variant(format!("objects of the kind {key} aren't supported, only relay.Constant is")));
        }
        let Some(section) = &self.section else {
            let message = "the text refers to a constant, but has no metadata that holds it";
            return Err(Fault::new(Code::WeightMissing, message)
                .with_help("print the text with its metadata, or keep the weights as variables of @main"));
        };
        let array = section.array_of(key, index);
        let array = array.ok_or_else(|| {
            Fault::new(Code::WeightMissing, format!("the metadata has no array for the constant {index}"))
        })?;
        if let Some(constant) = self.decoded.get(&array) {
            return Ok(constant.clone());
        }
        let damaged = |message: String| Fault::new(Code::ArchiveDamaged, format!("the array {array}: {message}"));
        let text = section.b64ndarrays.get(array).ok_or_else(|| damaged("it isn't there".into()))?;
        let bytes = STANDARD.decode(text.as_bytes()).map_err(|error| damaged(error.to_string()))?;
        let bytes = Bytes::from(bytes);
        let read = params::read_array(&bytes).map_err(|error| damaged(error.to_string()))?;
        let constant = types::constant(&read, &bytes)?;
        self.decoded.insert(array, constant.clone());
        Ok(constant)
    }
}

impl Section<'_> {
    /// The number of the array that an object of a kind holds.
    fn array_of(&self, key: &str, index: usize) -> Option<usize> {
        let root = self.nodes.get(self.root).filter(|node| node.type_key == "Map")?;
        let place = root.keys.iter().position(|known| known == key)?;
        let list = self.nodes.get(*root.data.get(place)?)?;
        let object = self.nodes.get(*list.data.get(index)?).filter(|node| node.type_key == key)?;
        object.attrs.get("data")?.parse().ok()
    }
}
