//! Which operators of a format are supported.

use mlc_ir::Location;
use serde::Serialize;

/// What a frontend does with an operator of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct OperatorSupport {
    /// Operator set, for formats that have several; empty for the format's own operators.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub domain: &'static str,
    /// Name in the format's words.
    pub name: &'static str,
    /// First version of the operator set in which it is supported, for formats that have versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Why it is refused; `None` when it is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<&'static str>,
}

/// A use of an operator that isn't supported: where, and the operator's name there.
pub(crate) type Use = (Location, String);

/// The name that differs from a misspelt one in the fewest letters, if they are few.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|known| (strsim::levenshtein(name, known), known));
    distances.min().filter(|(distance, known)| distance * 3 <= known.len()).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_find_their_neighbours() {
        let known = ["nn.Conv2d", "nn.Conv3d", "Relu"];
        assert_eq!(nearest("nn.Conv2D", known), Some("nn.Conv2d"));
        assert_eq!(nearest("models.yolo.Detect", known), None);
    }
}
