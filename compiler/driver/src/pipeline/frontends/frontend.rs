//! [`Frontend`]: what the driver knows of a format.

use super::contents::Contents;
use crate::format::Format;
use crate::pipeline::failure::Failure;
use crate::pipeline::model::{LoadOptions, Loaded};
use bytes::Bytes;
use mlc_import::OperatorSupport;
use std::path::Path;

/// A file whose format is known.
#[derive(Debug, Clone, Copy)]
pub struct ModelFile<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// What it holds.
    pub bytes: &'a Bytes,
    /// What the user says about it.
    pub options: &'a LoadOptions,
}

/// Tells what a file holds without understanding its operators.
pub type TellContents = fn(&ModelFile<'_>) -> Result<Contents, Failure>;

/// A format that has a reader.
#[derive(Debug)]
pub struct Frontend {
    /// The format.
    pub format: Format,
    /// Reads a file and makes a graph of it.
    pub load: fn(&ModelFile<'_>) -> Result<Loaded, Failure>,
    /// The operators that it knows; `None` for a format that has none of its own.
    pub operators: Option<fn() -> Vec<OperatorSupport>>,
    /// What the file holds, before its operators are understood; `None` where nothing can be told before.
    pub contents: Option<TellContents>,
}
