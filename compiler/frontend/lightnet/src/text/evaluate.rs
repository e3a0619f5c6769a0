//! `${eval EXPRESSION}`: becomes the number that it computes, innermost first. It may be a part of a word: `out_${eval 1+2}` is `out_3`.

use super::arithmetic::{Doubles, written};
use super::budget::MOST_DEPTH;
use super::expression::compute;
use super::lexer::kind_of;
use super::token::{Kind, Token};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};

/// The words with numbers in the place of expressions. What can't be computed is reported, and 0.
pub fn evaluate(tokens: Vec<Token>, report: &mut Report) -> Vec<Token> {
    let mut scan = Scan { tokens: tokens.into_iter().peekable(), report };
    scan.words(None, 0)
}

struct Scan<'r, I: Iterator<Item = Token>> {
    tokens: std::iter::Peekable<I>,
    report: &'r mut Report,
}

impl<I: Iterator<Item = Token>> Scan<'_, I> {
    /// The words up to the `}` of the expression that starts at a word, or all of them.
    fn words(&mut self, start: Option<&Token>, depth: usize) -> Vec<Token> {
        let mut words = Vec::new();
        loop {
            let Some(token) = self.tokens.next() else {
                if let Some(start) = start {
                    self.report.push(start.syntax("the expression isn't closed: `}` expected"));
                }
                return words;
            };
            if start.is_some() && token.is("}") {
                return words;
            }
            let is_start = token.kind == Kind::Name
                && token.text.ends_with('$')
                && self.tokens.peek().is_some_and(|next| next.is("{") && !next.follows_space);
            if !is_start {
                words.push(token);
            } else if depth == MOST_DEPTH {
                let message = format!("expressions are nested more than {MOST_DEPTH} deep");
                self.report.push(token.fault(Code::NumberOutOfRange, message));
                // The rest can't be told apart any more.
                self.tokens.by_ref().for_each(drop);
                return words;
            } else {
                words.push(self.expression(token, depth));
            }
        }
    }

    /// The number of an expression, with the parts of a word around it.
    fn expression(&mut self, start: Token, depth: usize) -> Token {
        self.tokens.next();
        let inner = self.words(Some(&start), depth + 1);
        let value = match inner.split_first() {
            Some((word, rest)) if word.is_name("eval") => compute(&Doubles, rest, word),
            _ => Err(start.syntax("`${eval EXPRESSION}` expected: nothing else can be computed")),
        };
        let number = value.map_or_else(
            |finding| {
                self.report.push(finding);
                "0".to_owned()
            },
            written,
        );
        let mut text = format!("{}{number}", start.text.trim_end_matches('$'));
        if let Some(next) = self.tokens.next_if(|next| !next.follows_space && next.kind != Kind::Mark) {
            text += &next.text;
        }
        match joined(&start, text) {
            Ok(token) => token,
            Err(finding) => {
                self.report.push(finding);
                start
            }
        }
    }
}

fn joined(start: &Token, text: String) -> Result<Token, Diagnostic> {
    // A number may have a sign here, which words of a text have not.
    let kind =
        kind_of(text.strip_prefix('-').unwrap_or(&text)).filter(|kind| *kind != Kind::Name || !text.starts_with('-'));
    let shown = mlc_json::shortened(&text);
    let kind = kind.ok_or_else(|| start.syntax(format!("the number is a part of `{shown}`, which isn't one word")))?;
    Ok(Token { kind, text: text.as_str().into(), ..start.clone() })
}
