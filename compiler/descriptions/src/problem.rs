//! What is wrong with a description.

use crate::source::{Place, Sources};
use mlc_ir::{Code, Diagnostic, Location};

/// The kinds of problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The text breaks the grammar.
    Syntax,
    /// A field that must be there isn't.
    MissingField,
    /// A value isn't one of those that the field can have.
    UnknownValue,
    /// The operator's type doesn't end in its architecture.
    ArchMismatch,
    /// A tensor, or an object to inherit from, doesn't exist.
    UnknownReference,
    /// Two things of one scope have the same name.
    DuplicateName,
    /// A name isn't one of C, or not one that can be used.
    BadIdentifier,
    /// A field has a value of the wrong JSON type.
    WrongType,
    /// C text can't be parsed.
    BadSnippet,
    /// A field has no meaning: a warning.
    UnknownField,
}

impl ProblemKind {
    /// The name that messages have it by.
    pub fn name(self) -> &'static str {
        match self {
            ProblemKind::Syntax => "syntax",
            ProblemKind::MissingField => "missing-field",
            ProblemKind::UnknownValue => "unknown-value",
            ProblemKind::ArchMismatch => "arch-mismatch",
            ProblemKind::UnknownReference => "unknown-reference",
            ProblemKind::DuplicateName => "duplicate-name",
            ProblemKind::BadIdentifier => "bad-identifier",
            ProblemKind::WrongType => "wrong-type",
            ProblemKind::BadSnippet => "bad-snippet",
            ProblemKind::UnknownField => "unknown-field",
        }
    }

    fn code(self) -> Code {
        match self {
            ProblemKind::Syntax => Code::Syntax,
            ProblemKind::UnknownField => Code::Unused,
            _ => Code::DescriptionInvalid,
        }
    }
}

/// A problem of a description.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Its kind.
    pub kind: ProblemKind,
    /// Where it is in the text.
    pub place: Place,
    /// Where it is in the tree: a JSON pointer, after the name of the object in the `.op` grammar. Empty for syntax errors.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Problem {
    /// A break of the grammar.
    pub fn syntax(place: Place, message: impl Into<String>) -> Problem {
        Problem { kind: ProblemKind::Syntax, place, pointer: String::new(), message: message.into(), help: None }
    }

    /// As it is told to the user.
    pub fn diagnostic(&self, sources: &Sources) -> Diagnostic {
        let mut location = sources.location(self.place);
        location.json_path = Some(self.pointer.clone()).filter(|pointer| !pointer.is_empty());
        let message = format!("{} ({})", self.message, self.kind.name());
        let diagnostic = match self.kind {
            ProblemKind::UnknownField => Diagnostic::warning(self.kind.code(), location, message),
            _ => Diagnostic::error(self.kind.code(), location, message),
        };
        self.help.iter().fold(diagnostic, |diagnostic, help| diagnostic.with_help(help))
    }
}

/// The most problems that are told: more of them help nobody.
const MOST: usize = 200;

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// Adds a problem, while there aren't too many.
    pub fn push(&mut self, problem: Problem) {
        if self.list.len() < MOST {
            self.list.push(problem);
        }
    }

    /// Whether no more are listed.
    pub fn full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Number of problems that aren't warnings.
    pub fn errors(&self) -> usize {
        self.list.iter().filter(|problem| problem.kind != ProblemKind::UnknownField).count()
    }

    /// All of them, in the order of the text.
    pub fn into_diagnostics(mut self, sources: &Sources) -> Vec<Diagnostic> {
        self.list.sort_by_key(|problem| problem.place);
        let mut diagnostics: Vec<Diagnostic> = self.list.iter().map(|problem| problem.diagnostic(sources)).collect();
        if self.full() {
            let message = format!("only the first {MOST} problems are listed: there may be more");
            diagnostics.push(Diagnostic::note(Code::DescriptionInvalid, Location::default(), message));
        }
        diagnostics
    }
}
