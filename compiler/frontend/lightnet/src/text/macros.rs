//! [`Macro`]: what a `#define` says.

use super::token::{Kind, Token};
use mlc_ir::Diagnostic;
use std::rc::Rc;

/// The parameter that stands for the rest of the arguments.
const REST: &str = "__VA_ARGS__";

/// A macro.
#[derive(Debug)]
pub struct Macro {
    /// Its name where it is defined.
    pub name: Token,
    /// The names of its arguments; `None` for one that takes none, not even parentheses.
    pub parameters: Option<Vec<Rc<str>>>,
    /// Whether the last parameter stands for any number of arguments.
    pub takes_rest: bool,
    /// What it stands for.
    pub body: Vec<Token>,
}

impl Macro {
    /// The macro that a line defines, from its name on.
    ///
    /// # Errors
    /// When the line has another form.
    pub fn of(directive: &Token, line: &[Token]) -> Result<Macro, Diagnostic> {
        let name = line.first().filter(|token| token.kind == Kind::Name);
        let name = name.ok_or_else(|| line.first().unwrap_or(directive).syntax("the name of a macro expected"))?;
        if name.is_name("defined") || name.is_name("__LINE__") {
            return Err(name.syntax(format!("{} can't be defined: it has a meaning of its own", name.shown())));
        }
        let is_function = line.get(1).is_some_and(|token| token.is("(") && !token.follows_space);
        let mut found = Macro { name: name.clone(), parameters: None, takes_rest: false, body: line[1..].to_vec() };
        if is_function {
            let (parameters, takes_rest, length) = parameters(&line[1..])?;
            (found.parameters, found.takes_rest) = (Some(parameters), takes_rest);
            found.body = line[1 + length..].to_vec();
        }
        found.check()?;
        Ok(found)
    }

    /// The number of a parameter.
    pub fn parameter(&self, token: &Token) -> Option<usize> {
        let names = self.parameters.as_ref().filter(|_| token.kind == Kind::Name)?;
        names.iter().position(|name| **name == *token.text)
    }

    /// Whether both define the same.
    pub fn is_same(&self, other: &Macro) -> bool {
        let words = |body: &[Token]| body.iter().map(|token| Rc::clone(&token.text)).collect::<Vec<_>>();
        self.parameters == other.parameters && words(&self.body) == words(&other.body)
    }

    /// Whether `##` starts at a word of the body.
    pub fn pastes_at(&self, at: usize) -> bool {
        let is_hash = |at: usize| self.body.get(at).filter(|token| token.is("#"));
        is_hash(at).is_some() && is_hash(at + 1).is_some_and(|second| !second.follows_space)
    }

    /// The parameter that `#` at a word of the body makes a string of.
    pub fn quotes_at(&self, at: usize) -> Option<usize> {
        let is_hash = self.parameters.is_some() && self.body.get(at).is_some_and(|token| token.is("#"));
        self.body.get(at + 1).filter(|_| is_hash).and_then(|token| self.parameter(token))
    }

    fn check(&self) -> Result<(), Diagnostic> {
        let mut at = 0;
        while let Some(token) = self.body.get(at) {
            if self.pastes_at(at) {
                if at == 0 || at + 2 >= self.body.len() {
                    return Err(token.syntax("`##` joins two words, and must stand between them"));
                }
                at += 2;
            } else if self.parameters.is_some() && token.is("#") && self.quotes_at(at).is_none() {
                return Err(token.syntax("`#` must stand before an argument of the macro"));
            } else {
                at += 1;
            }
        }
        Ok(())
    }
}

/// Names of parameters between parentheses, whether the last one takes the rest, and how many words that are.
fn parameters(line: &[Token]) -> Result<(Vec<Rc<str>>, bool, usize), Diagnostic> {
    let open = &line[0];
    let unclosed = || open.syntax("the list of the macro's parameters isn't closed");
    let mut names: Vec<Rc<str>> = Vec::new();
    let mut at = 1;
    if line.get(at).ok_or_else(unclosed)?.is(")") {
        return Ok((names, false, 2));
    }
    loop {
        let token = line.get(at).ok_or_else(unclosed)?;
        let is_rest = line.get(at..at + 3).is_some_and(|dots| dots.iter().all(|dot| dot.is(".")));
        if is_rest {
            names.push(REST.into());
            at += 3;
        } else if token.kind == Kind::Name && !names.contains(&token.text) {
            names.push(Rc::clone(&token.text));
            at += 1;
        } else {
            return Err(token.syntax(format!("the name of a parameter expected that is new, {} found", token.shown())));
        }
        let end = line.get(at).ok_or_else(unclosed)?;
        if end.is(")") {
            return Ok((names, is_rest, at + 1));
        }
        if is_rest || !end.is(",") {
            return Err(end.syntax(format!("`,` or `)` expected, {} found", end.shown())));
        }
        at += 1;
    }
}
