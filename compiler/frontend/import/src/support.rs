//! Which operators of a format are supported, and what is said of those that aren't.

use mlc_ir::{Code, Diagnostic, Location};
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
pub type Use = (Location, String);

/// Most uses of an operator that a diagnostic shows.
const MOST_SHOWN: usize = 20;

/// One finding for all uses of an operator that isn't supported. Precondition: there is a use.
pub fn unsupported(operator: &str, reason: Option<&str>, uses: &[Use]) -> Diagnostic {
    let times = if uses.len() == 1 { "once".to_owned() } else { format!("{} times", uses.len()) };
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    let message = format!("operator {operator}, used {times}, isn't supported{reason}");
    let mut diagnostic = Diagnostic::error(Code::OperatorUnsupported, uses[0].0.clone(), message);
    for (location, name) in uses.iter().take(MOST_SHOWN).skip(1) {
        diagnostic = diagnostic.with_related(location.clone(), format!("`{name}`, too"));
    }
    if let Some(more) = uses.len().checked_sub(MOST_SHOWN).filter(|&more| more > 0) {
        diagnostic = diagnostic.with_note(format!("and {more} more"));
    }
    diagnostic
}

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

    #[test]
    fn many_uses_are_counted() {
        let uses: Vec<Use> = (0..30).map(|index| (Location::line(index), format!("n{index}"))).collect();
        let diagnostic = unsupported("Foo", Some("it is new"), &uses);
        assert_eq!(diagnostic.message, "operator Foo, used 30 times, isn't supported: it is new");
        assert_eq!((diagnostic.related.len(), diagnostic.notes), (19, vec!["and 10 more".to_owned()]));
    }
}
