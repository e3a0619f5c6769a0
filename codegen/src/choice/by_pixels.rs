//! [`ByPixels`]: who computes tiles pixel by pixel.

use std::collections::BTreeSet;

/// Which nodes take schedules that compute all outputs of a tile of pixels before they begin the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ByPixels {
    /// None.
    #[default]
    None,
    /// All that have any.
    All,
    /// Some.
    Nodes(BTreeSet<String>),
}

impl ByPixels {
    /// Whether a node is one of them.
    pub fn has(&self, node: &str) -> bool {
        match self {
            ByPixels::None => false,
            ByPixels::All => true,
            ByPixels::Nodes(nodes) => nodes.contains(node),
        }
    }
}
