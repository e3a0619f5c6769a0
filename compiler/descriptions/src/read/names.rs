//! The names of a description share one scope in C.

use super::fields::Fields;
use crate::c::{TokenKind, Type, is_name, tokens};
use crate::problem::{ProblemKind, Problems};
use indexmap::IndexMap;

/// Names that the generated code has for itself.
const RESERVED: [&str; 4] = ["op_arg", "priv", "te", "priv_s"];

/// Names that C and its library have taken, which a variable would hide from the text or clash with.
const TAKEN: [&str; 3] = ["NULL", "main", "errno"];

/// What a name stands for, and so which other names come from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    Output,
    Parameter,
    Private,
}

impl Role {
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            Role::Input => &["_name", "_entry", "_list_entry"],
            Role::Output => &["_name", "_entry", "_list_entry", "_ndim", "_dims", "_dtype"],
            Role::Parameter => &["_entry"],
            Role::Private => &[],
        }
    }
}

/// The names so far.
#[derive(Default)]
pub(super) struct Scope {
    names: IndexMap<String, Role>,
    /// Names that come from others, by what they come from.
    derived: IndexMap<String, String>,
}

impl Scope {
    /// Whether something has a name.
    pub fn has(&self, name: &str) -> bool {
        self.names.contains_key(name) || self.derived.contains_key(name)
    }

    /// Adds the name that a field says; nothing if it can't be used.
    pub fn add(&mut self, fields: &Fields, field: &str, name: &str, role: Role, problems: &mut Problems) -> bool {
        if let Some(message) = fault(name) {
            let message = format!("{}: {message}", fields.subject);
            fields.report(ProblemKind::BadIdentifier, field, message, problems);
            return false;
        }
        if self.names.contains_key(name) {
            let message =
                format!("the name '{name}' is there twice: inputs, outputs, params and extra_privs share one scope");
            fields.report(ProblemKind::DuplicateName, field, message, problems);
            return false;
        }
        let derived: Vec<String> = role.suffixes().iter().map(|suffix| format!("{name}{suffix}")).collect();
        let clash = self.derived.get(name).map(|origin| (name.to_owned(), origin.clone()));
        let clash = clash.or_else(|| {
            let own = derived
                .iter()
                .find(|derived| self.names.contains_key(*derived) || self.derived.contains_key(*derived))?;
            Some((own.clone(), name.to_owned()))
        });
        if let Some((clashing, origin)) = clash {
            let message =
                format!("the name '{name}' can't be used: '{clashing}' is a variable that belongs to '{origin}'");
            fields.report(ProblemKind::BadIdentifier, field, message, problems);
            return false;
        }
        self.names.insert(name.to_owned(), role);
        self.derived.extend(derived.into_iter().map(|derived| (derived, name.to_owned())));
        true
    }
}

/// Why a name can't be one of C's.
pub(super) fn fault(name: &str) -> Option<String> {
    if RESERVED.contains(&name) || TAKEN.contains(&name) {
        return Some(format!("the name '{name}' is reserved"));
    }
    if Type::named(name).is_some() {
        // As a variable it would hide the type, which declarations of other variables need.
        return Some(format!("the name '{name}' is that of a type"));
    }
    if !is_name(name) {
        return Some(format!("'{name}' isn't an identifier of C, or is a keyword"));
    }
    None
}

/// Whether a text is a type of C: words and stars.
pub(super) fn is_type(text: &str) -> bool {
    let Ok(tokens) = tokens(text) else { return false };
    let mut words = 0;
    let mut stars = false;
    for token in &tokens {
        match token.kind {
            TokenKind::Word(_) if !stars => words += 1,
            TokenKind::Word("const" | "volatile" | "restrict") => {}
            TokenKind::Mark("*") => stars = true,
            _ => return false,
        }
    }
    words > 0
}

/// The name of a declarator: an identifier, perhaps with extents behind it.
pub(super) fn declared(text: &str) -> Option<&str> {
    let tokens = tokens(text).ok()?;
    let TokenKind::Word(name) = tokens.first()?.kind else { return None };
    let mut open = false;
    for token in &tokens[1..] {
        match token.kind {
            TokenKind::Mark("[") if !open => open = true,
            TokenKind::Mark("]") if open => open = false,
            TokenKind::Mark("+" | "-" | "*" | "/" | "(" | ")") | TokenKind::Word(_) | TokenKind::Number(_) if open => {}
            _ => return None,
        }
    }
    crate::c::check_brackets(&tokens).ok()?;
    (!open).then_some(name)
}
