//! JSON taken apart without reading it: objects and lists of a file as slices of its text, so that one operation at a time is held in
//! memory.

use indexmap::IndexMap;
use mlc_json::{shortened, twice};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Most bytes of one value that is read as a whole: an operation, or the list of a node's neighbours.
const MOST_BYTES: usize = 1 << 20;

/// Most keys of an object that is taken apart.
const MOST_KEYS: usize = 1 << 10;

/// Most lists and objects inside of each other, far more than any file of the format has.
pub(super) const MOST_DEPTH: usize = 64;

/// Where a text nests too deep, if it does. It needn't be JSON.
pub(super) fn too_deep(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut is_string = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => at += 1,
            b'{' | b'[' if !is_string => {
                depth += 1;
                if depth > MOST_DEPTH {
                    return Some(at);
                }
            }
            b'}' | b']' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The members of an object, as they stand in the file.
#[derive(Debug)]
pub(super) struct Members<'a>(pub IndexMap<Cow<'a, str>, &'a RawValue>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Members<'de>, A::Error> {
        let mut found = IndexMap::new();
        while let Some(Key(key)) = members.next_key()? {
            if found.contains_key(&key) {
                return Err(A::Error::custom(twice(&key)));
            }
            if found.len() == MOST_KEYS {
                return Err(A::Error::custom(format_args!("an object has more than {MOST_KEYS} keys")));
            }
            found.insert(key, members.next_value()?);
        }
        Ok(Members(found))
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Calls a function for each element of a list, with its position, for as long as it wants more.
///
/// # Errors
/// When the text isn't a list.
pub(super) fn walk_list<'a>(
    list: &'a RawValue,
    see: impl FnMut(usize, &'a RawValue) -> bool,
) -> Result<(), serde_json::Error> {
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(ListVisitor(see))
}

struct ListVisitor<F>(F);

impl<'de, F: FnMut(usize, &'de RawValue) -> bool> Visitor<'de> for ListVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut position = 0;
        while let Some(element) = elements.next_element()? {
            if !(self.0)(position, element) {
                break;
            }
            position += 1;
        }
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Reads a value as a whole.
///
/// # Errors
/// When it is too large, nests too deep, or has a key twice in one object.
pub(super) fn value(text: &RawValue) -> Result<Value, String> {
    let length = text.get().len();
    if length > MOST_BYTES {
        return Err(format!("it takes {length} bytes, and at most {MOST_BYTES} are read at once"));
    }
    mlc_json::parse(text.get().as_bytes()).map_err(|error| without_place(&error))
}

/// What an error says, without the line and column, which count from the start of a part of the file.
pub(super) fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    shortened(text.split(" at line ").next().unwrap_or_default()).into_owned()
}
