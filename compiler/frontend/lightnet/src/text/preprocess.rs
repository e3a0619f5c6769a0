//! The preprocessor: directives, and macros in what is between them.

use super::budget::{Budget, MOST_BYTES, MOST_DEPTH, MOST_INCLUDES};
use super::condition::Integers;
use super::expand::{Expander, Macros};
use super::expression::compute;
use super::lexer::{Line, lines};
use super::macros::Macro;
use super::token::{Kind, Token};
use crate::includes::Includes;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};
use std::rc::Rc;

/// The words that a text stands for. Faults that leave the rest readable are reported.
///
/// # Errors
/// What makes it useless to go on.
pub fn preprocess(text: &str, includes: &dyn Includes, report: &mut Report) -> Result<Vec<Token>, Diagnostic> {
    let mut run = Preprocessor::new(includes, report);
    run.file(text, None, 0)?;
    Ok(run.done)
}

/// How many steps it takes to preprocess a text.
#[cfg(test)]
pub fn steps(text: &str, includes: &dyn Includes, report: &mut Report) -> usize {
    let mut run = Preprocessor::new(includes, report);
    let result = run.file(text, None, 0);
    let steps = run.budget.steps();
    report.note(result);
    steps
}

/// An `#if` and what has been seen of it.
struct Condition {
    start: Token,
    /// Whether a part of it was taken.
    was_taken: bool,
    /// Whether the part at hand is.
    is_taken: bool,
    has_else: bool,
}

struct Preprocessor<'a> {
    includes: &'a dyn Includes,
    report: &'a mut Report,
    macros: Macros,
    budget: Budget,
    /// Words since the last directive: the arguments of a macro may stand on several lines.
    pending: Vec<Token>,
    done: Vec<Token>,
}

impl<'a> Preprocessor<'a> {
    fn new(includes: &'a dyn Includes, report: &'a mut Report) -> Self {
        let (macros, budget) = (Macros::new(), Budget::default());
        Preprocessor { includes, report, macros, budget, pending: Vec::new(), done: Vec::new() }
    }

    /// Reads a file, which others include `depth` times over.
    fn file(&mut self, text: &str, name: Option<&Rc<str>>, depth: usize) -> Result<(), Diagnostic> {
        if !self.budget.take_bytes(text.len()) {
            let location = Location { file: name.map(|name| name.to_string()), ..Location::line(1) };
            let message = format!("the text, with all that it includes, has more than {} MiB", MOST_BYTES >> 20);
            return Err(Diagnostic::error(Code::NumberOutOfRange, location, message));
        }
        let mut conditions: Vec<Condition> = Vec::new();
        for line in lines(text, name, self.report) {
            match line.first() {
                Some(hash) if hash.is("#") => {
                    self.flush()?;
                    self.directive(&line, &mut conditions, depth)?;
                }
                Some(_) if conditions.iter().all(|condition| condition.is_taken) => {
                    self.pending.extend(first_after_space(line));
                }
                _ => {}
            }
        }
        self.flush()?;
        for condition in conditions {
            self.report.push(condition.start.syntax("the condition has no #endif"));
        }
        Ok(())
    }

    /// Expands what was read since the last directive. A macro that isn't used as it is defined costs that part of the text.
    fn flush(&mut self) -> Result<(), Diagnostic> {
        let pending = std::mem::take(&mut self.pending);
        match self.expand(pending) {
            Ok(tokens) => self.done.extend(tokens),
            Err(finding) if finding.code == Code::NumberOutOfRange => return Err(finding),
            Err(finding) => self.report.push(finding),
        }
        Ok(())
    }

    fn expand(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>, Diagnostic> {
        Expander { macros: &self.macros, budget: &mut self.budget }.expand(tokens)
    }

    fn directive(&mut self, line: &[Token], conditions: &mut Vec<Condition>, depth: usize) -> Result<(), Diagnostic> {
        let Some(word) = line.get(1) else { return Ok(()) };
        self.budget.step(word)?;
        let rest = &line[2..];
        let is_read = conditions.iter().all(|condition| condition.is_taken);
        let result = match &*word.text {
            "if" | "ifdef" | "ifndef" if conditions.len() == MOST_DEPTH => {
                let message = format!("conditions are nested more than {MOST_DEPTH} deep");
                Err(word.fault(Code::NumberOutOfRange, message))
            }
            "if" | "ifdef" | "ifndef" => {
                let is_taken = if is_read { self.condition(word, rest) } else { Ok(false) };
                let value = *is_taken.as_ref().unwrap_or(&false);
                let start = word.clone();
                conditions.push(Condition { start, was_taken: value, is_taken: value, has_else: false });
                is_taken.map(drop)
            }
            "elif" | "else" | "endif" => self.alternative(word, rest, conditions),
            _ if !is_read => Ok(()),
            "define" => Macro::of(word, rest).map(|found| self.define(found)),
            "undef" => match rest.first().filter(|name| name.kind == Kind::Name) {
                Some(name) => {
                    self.macros.shift_remove(&name.text);
                    Ok(())
                }
                None => Err(word.syntax("the name of a macro expected")),
            },
            "include" => return self.include(word, rest, depth),
            "error" => Err(word.syntax(format!("#error {}", words(rest)))),
            "warning" => {
                let message = format!("#warning {}", words(rest));
                self.report.push(Diagnostic::warning(Code::Syntax, word.spot.location(), message));
                Ok(())
            }
            // It speaks to a compiler that isn't there, or says where another preprocessor has been.
            "pragma" => Ok(()),
            _ if word.kind == Kind::Number => Ok(()),
            _ => Err(word.syntax(format!("there is no directive #{}", mlc_json::shortened(&word.text)))),
        };
        if let Err(finding) = result {
            if finding.code == Code::NumberOutOfRange {
                return Err(finding);
            }
            self.report.push(finding);
        }
        Ok(())
    }

    fn define(&mut self, found: Macro) {
        if let Some(known) = self.macros.get(&found.name.text).filter(|known| !known.is_same(&found)) {
            let message = format!("the macro {} is defined anew", found.name.shown());
            let finding = Diagnostic::warning(Code::DuplicateDefinition, found.name.spot.location(), message);
            self.report.push(finding.with_related(known.name.spot.location(), "it was defined here"));
        }
        self.macros.insert(Rc::clone(&found.name.text), found);
    }

    /// Whether a condition holds.
    fn condition(&mut self, word: &Token, line: &[Token]) -> Result<bool, Diagnostic> {
        if !word.is_name("if") && !word.is_name("elif") {
            let name = line.first().filter(|name| name.kind == Kind::Name);
            let name = name.ok_or_else(|| word.syntax("the name of a macro expected"))?;
            return Ok(self.macros.contains_key(&name.text) == word.is_name("ifdef"));
        }
        let mut tokens = Vec::new();
        let mut line = line.iter();
        while let Some(token) = line.next() {
            if !token.is_name("defined") {
                tokens.push(token.clone());
                continue;
            }
            let rest = line.as_slice();
            let (name, length) = match rest {
                [open, name, close, ..] if open.is("(") && close.is(")") => (name, 3),
                [name, ..] => (name, 1),
                [] => (token, 0),
            };
            if length == 0 || name.kind != Kind::Name {
                return Err(token.syntax("the name of a macro expected behind `defined`"));
            }
            let value = if self.macros.contains_key(&name.text) { "1" } else { "0" };
            tokens.push(Token { kind: Kind::Number, text: value.into(), ..token.clone() });
            line = rest[length..].iter();
        }
        let tokens = self.expand(tokens)?;
        compute(&Integers, &tokens, word).map(|value| value != 0)
    }

    fn alternative(&mut self, word: &Token, rest: &[Token], conditions: &mut Vec<Condition>) -> Result<(), Diagnostic> {
        let Some((last, outer)) = conditions.split_last_mut() else {
            return Err(word.syntax(format!("#{} without an #if", word.text)));
        };
        if word.is_name("endif") {
            conditions.pop();
            return Ok(());
        }
        if last.has_else {
            let finding = word.syntax(format!("#{} behind #else", word.text));
            return Err(finding.with_related(last.start.spot.location(), "the condition starts here"));
        }
        last.has_else = word.is_name("else");
        let may_be = !last.was_taken && outer.iter().all(|condition| condition.is_taken);
        last.is_taken = false;
        let holds = if may_be && !last.has_else { self.condition(word, rest)? } else { may_be };
        if let Some(last) = conditions.last_mut() {
            last.is_taken = holds;
            last.was_taken |= holds;
        }
        Ok(())
    }

    fn include(&mut self, word: &Token, rest: &[Token], depth: usize) -> Result<(), Diagnostic> {
        let [name] = rest else {
            self.report.push(word.syntax("#include takes a file in double quotes"));
            return Ok(());
        };
        let Some(name_text) = name.text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            self.report.push(name.syntax("#include takes a file in double quotes"));
            return Ok(());
        };
        if depth == MOST_DEPTH || !self.budget.take_include() {
            let message =
                format!("files include each other more than {MOST_DEPTH} deep, or more than {MOST_INCLUDES} in all");
            return Err(name.fault(Code::NumberOutOfRange, message));
        }
        match self.includes.include(name_text, name.spot.file.as_deref()) {
            Ok(included) => self.file(&included.text, Some(&included.name.as_str().into()), depth + 1),
            Err(reason) => {
                let name_text = mlc_json::shortened(name_text);
                let message = format!("'{name_text}' can't be included: {reason}");
                self.report.push(name.fault(Code::FileUnreadable, message));
                Ok(())
            }
        }
    }
}

/// The words of a line that follows another one.
fn first_after_space(mut line: Line) -> Line {
    if let Some(first) = line.first_mut() {
        first.follows_space = true;
    }
    line
}

/// Words as they are written, or nearly so.
fn words(tokens: &[Token]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.follows_space && !text.is_empty() {
            text.push(' ');
        }
        text += &token.text;
    }
    mlc_json::shortened(&text).into_owned()
}
