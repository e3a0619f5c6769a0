//! `mlc --version`: what this build of mlc is.

use crate::pipeline::frontends::FRONTENDS;

/// The version, the commit that it is built from, and the formats that this build reads: the Cargo features that it has.
pub(super) fn text(commit: &str) -> String {
    let formats: Vec<&str> = FRONTENDS.iter().filter_map(|frontend| frontend.format.feature()).collect();
    let formats = if formats.is_empty() { "none".to_owned() } else { formats.join(", ") };
    format!("{}\ncommit: {commit}\nformats: {formats}", env!("CARGO_PKG_VERSION"))
}
