//! [`Faults`]: what is wrong with a file, all of it at once.

use mlc_ir::{Diagnostic, Location};
use std::collections::BTreeSet;

/// Most mistakes that one run tells.
const MOST: usize = 100;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Faults {
    found: Vec<Diagnostic>,
    errors: usize,
    /// Messages of warnings, each of which is told once: exporters repeat themselves.
    warned: BTreeSet<String>,
}

impl Faults {
    /// Adds a finding.
    pub fn push(&mut self, finding: Diagnostic) {
        if finding.is_error() {
            self.errors += 1;
        } else if self.warned.len() >= MOST || !self.warned.insert(finding.message.clone()) {
            return;
        }
        if self.found.len() < 2 * MOST {
            self.found.push(finding);
        }
    }

    /// The value, if there is one; else what is wrong is noted.
    pub fn note<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|finding| self.push(finding)).ok()
    }

    /// How much was found.
    pub fn mark(&self) -> usize {
        self.found.len()
    }

    /// What was found after a mark, to be given a better place.
    pub fn since(&mut self, mark: usize) -> &mut [Diagnostic] {
        &mut self.found[mark..]
    }

    /// Whether something makes the file unusable.
    pub fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Whether it isn't worth looking any further.
    pub fn many(&self) -> bool {
        self.errors >= MOST
    }

    /// Everything, errors first.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|finding| !finding.is_error());
        if self.many()
            && let Some(last) = self.found.iter_mut().rfind(|finding| finding.is_error())
        {
            last.notes.push("the rest of the file wasn't looked at".into());
        }
        self.found
    }
}

/// A place given by its path alone.
pub(super) fn at(path: &str) -> Location {
    Location { json_path: Some(path.to_owned()), ..Location::default() }
}
