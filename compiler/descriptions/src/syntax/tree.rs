//! The tree that all three syntaxes describe.

use crate::source::Place;
use std::sync::Arc;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub struct Tree {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub place: Place,
}

/// The kinds of values.
#[derive(Debug, Clone)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(Text),
    /// An array.
    List(Vec<Tree>),
    /// An object; its keys differ.
    Object(Vec<Member>),
    /// `-`, which takes away what the base has.
    Deletion,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member {
    /// The key.
    pub name: Arc<str>,
    /// Where the key begins.
    pub place: Place,
    /// The value.
    pub value: Tree,
}

/// A string without its escapes, which still knows where each byte came from.
#[derive(Debug, Clone, Default)]
pub struct Text(Arc<Content>);

#[derive(Debug, Default)]
struct Content {
    value: String,
    file: u32,
    /// Offsets in the value and in the file; what follows up to the next entry follows there too.
    runs: Vec<(u32, u32)>,
}

impl Text {
    /// The string.
    pub fn as_str(&self) -> &str {
        &self.0.value
    }

    /// Where a byte of it came from.
    pub fn place(&self, offset: usize) -> Place {
        let Content { value, file, runs } = &*self.0;
        let offset = offset.min(value.len()) as u32;
        let run = runs.partition_point(|(start, _)| *start <= offset);
        let (start, source) = runs.get(run.wrapping_sub(1)).copied().unwrap_or((0, 0));
        Place { file: *file, offset: source + (offset - start) }
    }

    /// The line of a byte, from 1, counted within the string.
    pub fn line(&self, offset: usize) -> usize {
        let bytes = self.0.value.as_bytes();
        1 + bytes[..offset.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
    }

    /// How many lines it has.
    pub fn lines(&self) -> usize {
        self.line(usize::MAX)
    }
}

/// Builds a [`Text`].
#[derive(Default)]
pub struct TextBuilder(Content);

impl TextBuilder {
    /// A string from a file.
    pub fn new(file: u32) -> TextBuilder {
        TextBuilder(Content { value: String::new(), file, runs: Vec::new() })
    }

    /// Adds what stands at an offset of the file just like this.
    pub fn push_str(&mut self, text: &str, source: usize) {
        let (end, source) = (self.0.value.len() as u32, source as u32);
        let follows = self.0.runs.last().is_some_and(|(start, from)| from + (end - start) == source);
        if !follows {
            self.0.runs.push((end, source));
        }
        self.0.value.push_str(text);
    }

    /// Adds a letter that an escape at an offset of the file stands for.
    pub fn push(&mut self, letter: char, source: usize) {
        self.push_str(letter.encode_utf8(&mut [0; 4]), source);
    }

    /// The text, of which an empty one stands at an offset of the file.
    pub fn finish(mut self, source: usize) -> Text {
        if self.0.runs.is_empty() {
            self.0.runs.push((0, source as u32));
        }
        Text(Arc::new(self.0))
    }
}

impl Kind {
    /// How messages call it.
    pub fn describe(&self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::Bool(true) => "true",
            Kind::Bool(false) => "false",
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::List(_) => "an array",
            Kind::Object(_) => "an object",
            Kind::Deletion => "a deletion",
        }
    }
}
