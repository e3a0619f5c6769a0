//! The rules of the saturating stages, a group per file.

use crate::pipeline::Pass;

/// The saturating stages: name, summary and groups of rules.
pub fn stages() -> Vec<(&'static str, &'static str, Vec<Pass>)> {
    Vec::new()
}
