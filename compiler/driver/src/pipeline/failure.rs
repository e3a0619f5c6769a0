//! Why a step failed, and where.

use crate::render::Sources;
use mlc_ir::{Diagnostic, Location};
use std::path::Path;

/// Why a step failed: all that is known, and the texts that the diagnostics point into.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// At least one error.
    pub diagnostics: Vec<Diagnostic>,
    /// Text files by name.
    pub sources: Sources,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Failure { diagnostics, sources: Sources::new() }
    }
}

/// Diagnostics that don't say their file, which is this one.
pub(super) fn in_file(path: &Path, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let name = path.display().to_string();
    diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&name)).collect()
}

/// The place that is a whole file.
pub(super) fn named(path: &Path) -> Location {
    Location::default().in_file(path.display().to_string())
}
