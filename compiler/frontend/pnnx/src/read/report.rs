//! The findings of one reading.

use super::options::ReadOptions;
use mlc_ir::{Diagnostic, Location};

/// More errors than this help nobody, and a garbage file would have millions.
const MOST_ERRORS: usize = 100;
const MOST_WARNINGS: usize = 100;

/// Gathers findings.
#[derive(Default)]
pub(super) struct Report {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    others: usize,
}

impl Report {
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        let (count, most) =
            if diagnostic.is_error() { (&mut self.errors, MOST_ERRORS) } else { (&mut self.others, MOST_WARNINGS) };
        *count += 1;
        if *count <= most {
            self.diagnostics.push(diagnostic);
        }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All findings, each with the name of the file that it is about.
    pub(super) fn into_diagnostics(mut self, options: &ReadOptions) -> Vec<Diagnostic> {
        let name_file = |location: &mut Location| {
            let file = if location.byte_offset.is_some() { &options.bin_file } else { &options.param_file };
            location.file.clone_from(file);
        };
        for diagnostic in &mut self.diagnostics {
            name_file(&mut diagnostic.location);
            diagnostic.related.iter_mut().for_each(|(location, _)| name_file(location));
        }
        let hidden = self.errors.saturating_sub(MOST_ERRORS);
        if hidden > 0
            && let Some(last) = self.diagnostics.iter_mut().rfind(|diagnostic| diagnostic.is_error())
        {
            last.notes.push(format!("{hidden} more errors aren't shown"));
        }
        self.diagnostics
    }
}
