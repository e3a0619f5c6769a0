//! [`Report`]: the findings of one reading.

use mlc_ir::Diagnostic;

/// More errors than this help nobody, and a garbage file would have millions.
const MOST: usize = 100;

/// Gathers what is found while a file is read; only so much of it is shown.
#[derive(Debug, Default)]
pub struct Report {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    hidden: usize,
}

impl Report {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.is_error());
        if self.diagnostics.len() < MOST || (diagnostic.is_error() && self.errors == 1) {
            self.diagnostics.push(diagnostic);
        } else {
            self.hidden += 1;
        }
    }

    /// The value, if there is one; else why there is none is noted.
    pub fn note<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|finding| self.push(finding)).ok()
    }

    /// Whether more was found than is shown, so that it isn't worth looking any further.
    pub fn is_full(&self) -> bool {
        self.hidden > 0
    }

    /// Whether the file can't be used.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// What was found, in order.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        if self.hidden > 0
            && let Some(last) = self.diagnostics.last_mut()
        {
            last.notes.push(format!("{} more findings aren't shown", self.hidden));
        }
        self.diagnostics
    }
}
