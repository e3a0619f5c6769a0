//! A place in a text that moves forward.

use super::tree::{Kind, Tree};
use crate::problem::Problem;
use crate::source::Place;

/// How deeply values may be nested. No description needs a tenth of it.
const DEEPEST: usize = 64;

/// A place in a file's text.
pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub file: u32,
    pub at: usize,
    /// Whether `#` starts a comment, too.
    pub hash_comments: bool,
}

impl<'a> Cursor<'a> {
    pub fn rest(&self) -> &'a str {
        // No method leaves a cursor within a letter.
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn place(&self) -> Place {
        self.place_at(self.at)
    }

    pub fn place_at(&self, at: usize) -> Place {
        Place { file: self.file, offset: at as u32 }
    }

    /// Goes over space and comments.
    pub fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let space = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}', '\u{feff}']).len();
            self.at += space;
            let rest = self.rest();
            if !(rest.starts_with("//") || self.hash_comments && rest.starts_with('#')) {
                return;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// Goes over a mark, if it comes next.
    pub fn take(&mut self, mark: u8) -> bool {
        self.skip_space();
        let found = self.peek() == Some(mark);
        self.at += usize::from(found);
        found
    }

    /// The identifier that comes next, or an empty string.
    pub fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_')).unwrap_or(rest.len());
        let word = &rest[..if rest.starts_with(|first: char| first.is_ascii_digit()) { 0 } else { end }];
        self.at += word.len();
        word
    }

    /// A break of the grammar by what comes next.
    pub fn unexpected(&self, expected: &str) -> Problem {
        Problem::syntax(self.place(), format!("{expected} expected, {} found", self.next_thing()))
    }

    fn next_thing(&self) -> String {
        let rest = self.rest();
        match rest.chars().next() {
            None => "the end of the file".into(),
            Some(letter) => {
                let line = rest.lines().next().unwrap_or_default();
                let shown: String = line.chars().take(24).collect();
                if shown.trim().is_empty() { format!("{letter:?}") } else { format!("`{}`", shown.trim_end()) }
            }
        }
    }

    /// The list between two marks, of things that commas separate; a comma may follow the last one.
    pub fn list(&mut self, close: u8, mut item: impl FnMut(&mut Self) -> Result<(), Problem>) -> Result<(), Problem> {
        self.at += 1;
        loop {
            if self.take(close) {
                return Ok(());
            }
            item(self)?;
            if !self.take(b',') && self.peek() != Some(close) {
                return Err(self.unexpected(&format!("`,` or `{}`", close as char)));
            }
        }
    }

    /// Refuses a value that begins here too deep in others.
    pub fn check_depth(&self, depth: usize) -> Result<(), Problem> {
        if depth <= DEEPEST {
            return Ok(());
        }
        Err(Problem::syntax(self.place(), format!("values are nested more than {DEEPEST} deep")))
    }

    /// The values of a list in brackets, each read by `value` at its depth.
    pub fn values(
        &mut self,
        depth: usize,
        value: impl Fn(&mut Self, usize) -> Result<Tree, Problem>,
    ) -> Result<Kind, Problem> {
        let mut list = Vec::new();
        self.list(b']', |cursor| {
            list.push(value(cursor, depth + 1)?);
            Ok(())
        })?;
        Ok(Kind::List(list))
    }

    /// A number, with sign, fraction and exponent as the flag allows: JSON's, or those of the `.op` grammar.
    pub fn number(&mut self, json: bool) -> Result<f64, Problem> {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')));
        let text = &rest[..end.unwrap_or(rest.len())];
        let well_formed = if json { is_json_number(text) } else { is_loose_number(text) };
        let value = text.parse::<f64>().ok().filter(|value| well_formed && value.is_finite());
        let value = value.ok_or_else(|| self.unexpected("a number"))?;
        self.at += text.len();
        Ok(value)
    }
}

/// Splits off the digits at the start.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

/// Integer digits, fraction digits if there is a point, and whether the rest is an exponent or nothing.
fn parts(text: &str) -> (&str, Option<&str>, bool) {
    let (integer, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        None => (None, rest),
        Some(rest) => {
            let (fraction, rest) = digits(rest);
            (Some(fraction), rest)
        }
    };
    let exponent = rest.strip_prefix(['e', 'E']).map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest));
    let sound = match exponent {
        None => rest.is_empty(),
        Some(exponent) => !exponent.is_empty() && digits(exponent).1.is_empty(),
    };
    (integer, fraction, sound)
}

fn is_json_number(text: &str) -> bool {
    let (integer, fraction, sound) = parts(text.strip_prefix('-').unwrap_or(text));
    let leading_zero = integer.len() > 1 && integer.starts_with('0');
    sound && !integer.is_empty() && !leading_zero && fraction != Some("")
}

fn is_loose_number(text: &str) -> bool {
    let (integer, fraction, sound) = parts(text.strip_prefix(['+', '-']).unwrap_or(text));
    sound && !(integer.is_empty() && fraction.unwrap_or_default().is_empty())
}
