//! The content of an archive's files, large ones as what they are written from.

use super::input::TextWriter;
use super::{parameters, weights};
use crate::constants::write_constants;
use crate::module::Module;
use crate::target::ObjectFormat;
use indexmap::IndexMap;
use std::io;

/// A file's content.
pub(super) enum Content<'a> {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The constants of a module as C, several times as long as the weights: written piece by piece.
    Constants(&'a Module),
    /// The constants of a module as they lie in memory.
    Blob(&'a Module),
    /// The constants of a module as an object file.
    Object(&'a Module, ObjectFormat),
    /// The parameters of a module's graph.
    Parameters(&'a Module),
    /// A text that the caller writes.
    Text(TextWriter<'a>),
}

impl Content<'_> {
    /// Writes it.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Content::Bytes(bytes) => out.write_all(bytes),
            Content::Constants(module) => write_constants(module, out),
            Content::Blob(module) => weights::write_blob(module, out),
            Content::Object(module, format) => weights::write_object(module, *format, out),
            Content::Parameters(module) => parameters::write(module, out),
            Content::Text(write) => write(out),
        }
    }
}

/// Files by path.
pub(super) type Files<'a> = IndexMap<String, Content<'a>>;
