//! [`Findings`]: all that an import has to tell, so that one run tells everything.

use crate::fault::Fault;
use crate::support::{self, OperatorSupport};
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};

/// A use of an operator that can't be imported.
#[derive(Debug, Clone)]
pub(crate) struct UnsupportedUse<'a> {
    pub domain: &'a str,
    pub kind: &'a str,
    pub version: Option<i64>,
    pub name: &'a str,
    pub location: Location,
    /// Why, when the operator is known.
    pub reason: Option<&'static str>,
}

/// The uses of one operator that can't be imported.
#[derive(Debug)]
struct Uses {
    version: Option<i64>,
    reason: Option<&'static str>,
    places: Vec<support::Use>,
}

/// Diagnostics, and operators that aren't supported with all their places.
#[derive(Debug, Default)]
pub struct Findings {
    diagnostics: Vec<Diagnostic>,
    /// By operator set and type.
    unsupported: IndexMap<(String, String), Uses>,
}

/// How much had been found at some point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(usize);

impl Findings {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds an error about what stands at a place.
    pub fn report(&mut self, location: Location, fault: Fault) {
        let mut diagnostic = Diagnostic::error(fault.code, location, fault.message);
        if let Some(help) = fault.help {
            diagnostic = diagnostic.with_help(help);
        }
        self.push(diagnostic);
    }

    /// Whether something stands in the way of the import.
    pub fn failed(&self) -> bool {
        !self.unsupported.is_empty() || self.diagnostics.iter().any(Diagnostic::is_error)
    }

    pub(crate) fn add_unsupported(&mut self, found: UnsupportedUse<'_>) {
        let UnsupportedUse { domain, kind, version, name, location, reason } = found;
        let new = || Uses { version, reason, places: Vec::new() };
        let uses = self.unsupported.entry((domain.to_owned(), kind.to_owned())).or_insert_with(new);
        uses.places.push((location, name.to_owned()));
    }

    /// How often an operator was found that can't be imported.
    pub(crate) fn count_unsupported(&self) -> usize {
        self.unsupported.values().map(|uses| uses.places.len()).sum()
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.diagnostics.len())
    }

    /// Whether an error was found after a mark.
    pub(crate) fn failed_since(&self, mark: Mark) -> bool {
        self.diagnostics[mark.0..].iter().any(Diagnostic::is_error)
    }

    /// Takes back what was found after a mark.
    pub(crate) fn take_since(&mut self, mark: Mark) -> Vec<Diagnostic> {
        self.diagnostics.split_off(mark.0)
    }

    pub(crate) fn extend(&mut self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    /// What was found beside operators that aren't supported.
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// All that was found: operators that aren't supported, other errors, the rest.
    pub(crate) fn into_errors(mut self, known: &[OperatorSupport], help: fn(&str) -> String) -> Vec<Diagnostic> {
        let unsupported = self.unsupported.iter();
        let mut errors: Vec<Diagnostic> =
            unsupported.map(|((domain, kind), uses)| uses.diagnostic(domain, kind, known, help)).collect();
        self.diagnostics.sort_by_key(|finding| !finding.is_error());
        errors.append(&mut self.diagnostics);
        errors
    }
}

impl Uses {
    fn diagnostic(&self, domain: &str, kind: &str, known: &[OperatorSupport], help: fn(&str) -> String) -> Diagnostic {
        let set = if domain.is_empty() { "opset".to_owned() } else { format!("{domain} version") };
        let operator = self.version.map_or_else(|| kind.to_owned(), |version| format!("{kind} ({set} {version})"));
        let diagnostic = unsupported(&operator, self.reason, &self.places);
        if self.reason.is_some() {
            return diagnostic.with_help(
                "replace it in the source model, and export that again, or describe its C: --op-descriptions",
            );
        }
        let supported = known.iter().filter(|known| known.domain == domain && known.refused.is_none());
        let diagnostic = match support::nearest(kind, supported.map(|known| known.name)) {
            Some(nearest) => diagnostic.with_note(format!("the nearest supported operator is {nearest}")),
            None => diagnostic,
        };
        diagnostic.with_help(help(kind))
    }
}

/// Most uses of an operator that a diagnostic shows.
const MOST_SHOWN: usize = 20;

/// One finding for all uses of an operator that isn't supported. Precondition: there is a use.
fn unsupported(operator: &str, reason: Option<&str>, uses: &[support::Use]) -> Diagnostic {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_uses_are_counted() {
        let uses: Vec<support::Use> = (0..30).map(|index| (Location::line(index), format!("n{index}"))).collect();
        let diagnostic = unsupported("Foo", Some("it is new"), &uses);
        assert_eq!(diagnostic.message, "operator Foo, used 30 times, isn't supported: it is new");
        assert_eq!((diagnostic.related.len(), diagnostic.notes), (19, vec!["and 10 more".to_owned()]));
    }
}
