//! [`Expander`]: macros in words become what they stand for, as in C.
//!
//! A word that a macro brought isn't taken for a use of that macro again, so that every expansion ends; when, the budget says.

use super::budget::{Budget, LONGEST_WORD, MOST_DEPTH};
use super::lexer::kind_of;
use super::macros::Macro;
use super::token::{Kind, Token};
use crate::place::Expansion;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic};
use std::rc::Rc;

/// Macros by name.
pub type Macros = IndexMap<Rc<str>, Macro>;

/// Expands macros.
pub struct Expander<'a> {
    pub macros: &'a Macros,
    pub budget: &'a mut Budget,
}

/// An argument of a macro's use: as it is written, and what that stands for, once it is needed.
struct Argument {
    written: Vec<Token>,
    expanded: Option<Vec<Token>>,
}

impl Expander<'_> {
    /// What words stand for.
    ///
    /// # Errors
    /// When a macro isn't used as it is defined, or it is too much.
    pub fn expand(&mut self, tokens: Vec<Token>) -> Result<Vec<Token>, Diagnostic> {
        self.expand_at(tokens, 0)
    }

    /// `depth` arguments are around these words.
    fn expand_at(&mut self, mut pending: Vec<Token>, depth: usize) -> Result<Vec<Token>, Diagnostic> {
        let mut done = Vec::new();
        pending.reverse();
        while let Some(token) = pending.pop() {
            self.budget.step(&token)?;
            if token.kind != Kind::Name {
                done.push(token);
                continue;
            }
            if token.is_name("__LINE__") {
                done.push(line_number(&token));
                continue;
            }
            let macros = self.macros;
            let Some(found) = macros.get(&token.text).filter(|_| !is_inside(&token)) else {
                done.push(token);
                continue;
            };
            let mut arguments = Vec::new();
            if found.parameters.is_some() {
                if !pending.last().is_some_and(|next| next.is("(")) {
                    done.push(token);
                    continue;
                }
                arguments = self.arguments(found, &token, &mut pending)?;
            }
            let mut result = self.substitute(found, &token, arguments, depth)?;
            if let Some(first) = result.first_mut() {
                first.follows_space = token.follows_space;
            }
            pending.extend(result.into_iter().rev());
        }
        Ok(done)
    }

    /// Takes the arguments of a use.
    fn arguments(
        &mut self,
        found: &Macro,
        token: &Token,
        pending: &mut Vec<Token>,
    ) -> Result<Vec<Argument>, Diagnostic> {
        let expected = found.parameters.as_ref().map_or(0, Vec::len);
        let mut arguments = vec![Vec::new()];
        let mut depth = 0;
        loop {
            let Some(next) = pending.pop() else {
                let message = format!("the arguments of the macro {} aren't closed", token.shown());
                return Err(token.syntax(message));
            };
            self.budget.step(&next)?;
            let is_rest = found.takes_rest && arguments.len() == expected;
            if next.is("(") {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            } else if next.is(")") {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if next.is(",") && depth == 1 && !is_rest {
                arguments.push(Vec::new());
                continue;
            }
            let last = arguments.len() - 1;
            arguments[last].push(next);
        }
        if expected == 0 && arguments.len() == 1 && arguments[0].is_empty() {
            arguments.clear();
        }
        if found.takes_rest && arguments.len() + 1 == expected {
            arguments.push(Vec::new());
        }
        if arguments.len() != expected {
            let (name, given) = (token.shown(), arguments.len());
            let fault = token.syntax(format!("the macro {name} takes {expected} arguments, {given} are given"));
            return Err(fault.with_related(found.name.spot.location(), "it is defined here"));
        }
        Ok(arguments.into_iter().map(|written| Argument { written, expanded: None }).collect())
    }

    /// A macro's text with the arguments in the place of the parameters.
    fn substitute(
        &mut self,
        found: &Macro,
        token: &Token,
        mut arguments: Vec<Argument>,
        depth: usize,
    ) -> Result<Vec<Token>, Diagnostic> {
        let own = expansion(token, token.expansion.as_ref())?;
        let mut result: Vec<Token> = Vec::new();
        // Where the words begin that the left side of a `##` stands for.
        let mut start = 0;
        let mut at = 0;
        while let Some(next) = found.body.get(at) {
            let pastes = found.pastes_at(at);
            if pastes {
                at += 2;
            }
            let operand = &found.body[at];
            let words = if let Some(place) = found.quotes_at(at) {
                at += 1;
                vec![Token { expansion: Some(Rc::clone(&own)), ..quoted(&arguments[place].written, operand)? }]
            } else if let Some(place) = found.parameter(operand) {
                let is_pasted = pastes || found.pastes_at(at + 1);
                let words = self.argument(&mut arguments[place], is_pasted, operand, depth)?;
                brought_by(token, &own, words)?
            } else {
                vec![Token { expansion: Some(Rc::clone(&own)), ..operand.clone() }]
            };
            at += 1;
            let mut words = words.into_iter();
            if !pastes {
                start = result.len();
            } else if result.len() > start
                && let Some(first) = words.next()
                && let Some(left) = result.pop()
            {
                result.push(pasted(&left, &first, next)?);
            }
            for word in words {
                self.budget.step(&word)?;
                result.push(word);
            }
        }
        Ok(result)
    }

    /// The words of an argument: as they are written where they are joined to others, else what they stand for.
    fn argument(
        &mut self,
        argument: &mut Argument,
        is_pasted: bool,
        parameter: &Token,
        depth: usize,
    ) -> Result<Vec<Token>, Diagnostic> {
        let mut words = if is_pasted {
            argument.written.clone()
        } else {
            if argument.expanded.is_none() {
                if depth == MOST_DEPTH {
                    return Err(too_deep(parameter));
                }
                argument.expanded = Some(self.expand_at(argument.written.clone(), depth + 1)?);
            }
            argument.expanded.clone().unwrap_or_default()
        };
        if let Some(first) = words.first_mut() {
            first.follows_space = parameter.follows_space;
        }
        Ok(words)
    }
}

fn too_deep(token: &Token) -> Diagnostic {
    token.fault(Code::NumberOutOfRange, format!("macros are nested more than {MOST_DEPTH} deep"))
}

/// The use of a macro, which stands in what others brought.
fn expansion(token: &Token, outer: Option<&Rc<Expansion>>) -> Result<Rc<Expansion>, Diagnostic> {
    let depth = outer.map_or(0, |outer| outer.depth) + 1;
    if depth > MOST_DEPTH {
        return Err(too_deep(token));
    }
    let (name, spot) = (Rc::clone(&token.text), token.spot.clone());
    Ok(Rc::new(Expansion { name, spot, outer: outer.cloned(), depth }))
}

/// The words of an argument where a macro puts them: it brought them there, after what had brought them to the argument.
fn brought_by(token: &Token, own: &Rc<Expansion>, mut words: Vec<Token>) -> Result<Vec<Token>, Diagnostic> {
    let mut last: Option<(Option<Rc<Expansion>>, Rc<Expansion>)> = None;
    for word in &mut words {
        let made = match &last {
            _ if is_same(&word.expansion, &token.expansion) => Rc::clone(own),
            Some((known, made)) if is_same(&word.expansion, known) => Rc::clone(made),
            _ => expansion(token, word.expansion.as_ref())?,
        };
        last = Some((word.expansion.take(), Rc::clone(&made)));
        word.expansion = Some(made);
    }
    Ok(words)
}

fn is_same(first: &Option<Rc<Expansion>>, second: &Option<Rc<Expansion>>) -> bool {
    match (first, second) {
        (Some(first), Some(second)) => Rc::ptr_eq(first, second),
        (None, None) => true,
        _ => false,
    }
}

/// Whether a word was brought by the macro that it names.
fn is_inside(token: &Token) -> bool {
    let mut next = token.expansion.as_deref();
    while let Some(expansion) = next {
        if expansion.name == token.text {
            return true;
        }
        next = expansion.outer.as_deref();
    }
    false
}

/// The line of the file where the outermost macro is used.
fn line_number(token: &Token) -> Token {
    let mut spot = &token.spot;
    let mut next = token.expansion.as_deref();
    while let Some(expansion) = next {
        spot = &expansion.spot;
        next = expansion.outer.as_deref();
    }
    Token { kind: Kind::Number, text: spot.line.to_string().into(), ..token.clone() }
}

fn check_length(text: &str, token: &Token) -> Result<(), Diagnostic> {
    if text.len() <= LONGEST_WORD {
        return Ok(());
    }
    Err(token.fault(Code::NumberOutOfRange, format!("macros make a word of more than {LONGEST_WORD} bytes")))
}

/// Words as a string.
fn quoted(words: &[Token], place: &Token) -> Result<Token, Diagnostic> {
    let mut text = String::from("\"");
    for (index, word) in words.iter().enumerate() {
        if index > 0 && word.follows_space {
            text.push(' ');
        }
        match word.kind {
            Kind::String => text += &word.text.replace('\\', "\\\\").replace('"', "\\\""),
            _ => text += &word.text,
        }
        check_length(&text, place)?;
    }
    text.push('"');
    Ok(Token { kind: Kind::String, text: text.into(), ..place.clone() })
}

/// Two words as one.
fn pasted(left: &Token, right: &Token, mark: &Token) -> Result<Token, Diagnostic> {
    let text = format!("{}{}", left.text, right.text);
    check_length(&text, mark)?;
    let kind = kind_of(&text).ok_or_else(|| {
        let message = format!("`##` joins {} and {}, which doesn't give one word", left.shown(), right.shown());
        mark.syntax(message)
    })?;
    Ok(Token { kind, text: text.into(), ..left.clone() })
}
