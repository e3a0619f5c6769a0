//! A text to words, line by line. A line that ends in a backslash goes on with the next one; comments are space.

use super::token::{Kind, Token};
use crate::place::Spot;
use indexmap::IndexSet;
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic};
use std::rc::Rc;

/// The words of a line. What stands in one line for the preprocessor may be several in the file.
pub type Line = Vec<Token>;

/// Splits a text into lines of words. What can't be read is reported.
pub fn lines(text: &str, file: Option<&Rc<str>>, report: &mut Report) -> Vec<Line> {
    let mut lexer = Lexer::new(text, file);
    let mut lines = vec![Line::new()];
    while let Some(letter) = lexer.peek() {
        match letter {
            '\n' => {
                lexer.advance();
                lexer.follows_space = false;
                lines.push(Line::new());
            }
            _ if letter.is_whitespace() || letter == '\u{feff}' => lexer.space(),
            '/' if lexer.starts_with("//") => lexer.line_comment(),
            '/' if lexer.starts_with("/*") => lexer.block_comment(report),
            _ => {
                let token = lexer.token(report);
                let last = lines.len() - 1;
                lines[last].push(token);
            }
        }
    }
    lines
}

/// The kind of a text, if it is one word.
pub fn kind_of(text: &str) -> Option<Kind> {
    let mut report = Report::default();
    let lines = lines(text, None, &mut report);
    match &lines[..] {
        [line] if !report.has_errors() => match &line[..] {
            [token] if &*token.text == text => Some(token.kind),
            _ => None,
        },
        _ => None,
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    spot: Spot,
    follows_space: bool,
    /// The words so far: many are the same.
    words: IndexSet<Rc<str>>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str, file: Option<&Rc<str>>) -> Self {
        let spot = Spot { file: file.cloned(), line: 1, column: 1 };
        let mut lexer = Lexer { text, at: 0, spot, follows_space: false, words: IndexSet::new() };
        lexer.join_lines();
        lexer
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn starts_with(&self, text: &str) -> bool {
        self.text[self.at..].starts_with(text)
    }

    /// Goes on by a letter.
    fn advance(&mut self) {
        if let Some(letter) = self.peek() {
            self.pass(letter.len_utf8());
            self.join_lines();
        }
    }

    /// Goes over backslashes at the ends of lines.
    fn join_lines(&mut self) {
        while let Some(length) = ["\\\n", "\\\r\n"].iter().find(|end| self.starts_with(end)).map(|end| end.len()) {
            self.pass(length);
        }
    }

    fn pass(&mut self, bytes: usize) {
        for byte in self.text[self.at..self.at + bytes].bytes() {
            if byte == b'\n' {
                self.spot.line += 1;
                self.spot.column = 1;
            } else {
                self.spot.column += 1;
            }
        }
        self.at += bytes;
    }

    fn space(&mut self) {
        self.advance();
        self.follows_space = true;
    }

    fn line_comment(&mut self) {
        while self.peek().is_some_and(|letter| letter != '\n') {
            self.space();
        }
    }

    fn block_comment(&mut self, report: &mut Report) {
        let start = self.spot.location();
        self.space();
        self.space();
        while !self.starts_with("*/") {
            if self.peek().is_none() {
                report.push(Diagnostic::error(Code::Syntax, start, "the comment isn't closed"));
                return;
            }
            self.space();
        }
        self.space();
        self.space();
    }

    fn token(&mut self, report: &mut Report) -> Token {
        let (spot, follows_space) = (self.spot.clone(), std::mem::take(&mut self.follows_space));
        let first = self.peek().unwrap_or_default();
        let mut text = String::new();
        let kind = if is_start(first) {
            self.run(&mut text, |_, letter| is_start(letter) || letter.is_ascii_digit());
            Kind::Name
        } else if self.starts_number(first) {
            self.run(&mut text, |previous, letter| {
                is_start(letter)
                    || letter.is_ascii_digit()
                    || letter == '.'
                    || matches!(letter, '+' | '-') && matches!(previous, Some('e' | 'E'))
            });
            Kind::Number
        } else if first == '"' {
            self.string(&mut text, &spot, report);
            Kind::String
        } else {
            text.push(first);
            self.advance();
            Kind::Mark
        };
        Token { kind, text: self.shared(text), follows_space, spot, expansion: None }
    }

    fn shared(&mut self, text: String) -> Rc<str> {
        if let Some(known) = self.words.get(text.as_str()) {
            return Rc::clone(known);
        }
        let text: Rc<str> = text.into();
        self.words.insert(Rc::clone(&text));
        text
    }

    fn starts_number(&self, first: char) -> bool {
        let second = || self.text[self.at..].chars().nth(1).is_some_and(|letter| letter.is_ascii_digit());
        first.is_ascii_digit() || first == '.' && second()
    }

    /// Takes letters as long as they belong to the word, by the one before each.
    fn run(&mut self, text: &mut String, belongs: impl Fn(Option<char>, char) -> bool) {
        while let Some(letter) = self.peek().filter(|&letter| text.is_empty() || belongs(text.chars().last(), letter)) {
            text.push(letter);
            self.advance();
        }
    }

    fn string(&mut self, text: &mut String, spot: &Spot, report: &mut Report) {
        text.push('"');
        self.advance();
        while let Some(letter) = self.peek().filter(|&letter| letter != '\n') {
            text.push(letter);
            self.advance();
            match letter {
                '"' => return,
                '\\' => {
                    if let Some(letter) = self.peek().filter(|&letter| letter != '\n') {
                        text.push(letter);
                        self.advance();
                    }
                }
                _ => {}
            }
        }
        text.push('"');
        report.push(Diagnostic::error(Code::Syntax, spot.location(), "the string isn't closed on its line"));
    }
}

/// Whether a letter may start a name. C compilers take `$` as a letter.
fn is_start(letter: char) -> bool {
    letter.is_ascii_alphabetic() || matches!(letter, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let mut report = Report::default();
        let lines = lines(text, None, &mut report);
        assert!(!report.has_errors(), "{text}");
        let word = |token: &Token| {
            let Spot { line, column, .. } = token.spot;
            let space = if token.follows_space { "_" } else { "" };
            format!("{space}{}@{line}:{column}", token.text)
        };
        let line = |line: &Line| line.iter().map(word).collect::<Vec<_>>().join(" ");
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn words_know_where_they_are() {
        assert_eq!(words("a b\nc"), "a@1:1 _b@1:3\nc@2:1");
        assert_eq!(words("a\\\nb c /* x\n y */ d // e\nf"), "ab@1:1 _c@2:3 _d@3:7\nf@4:1");
        assert_eq!(words("x=-.5e-3, 5.|"), "x@1:1 =@1:2 -@1:3 .5e-3@1:4 ,@1:9 _5.@1:11 |@1:13");
        assert_eq!(words("out_${eval 1}"), "out_$@1:1 {@1:6 eval@1:7 _1@1:12 }@1:13");
        assert_eq!(words(r#""a\";//b" 'c"#), r#""a\";//b"@1:1 _'@1:11 c@1:12"#);
    }

    #[test]
    fn what_is_left_open_is_reported() {
        for (text, line) in [("a\n\"b\nc", 2), ("a\n\n/* b\n", 3), ("\"\\", 1)] {
            let mut report = Report::default();
            lines(text, None, &mut report);
            assert_eq!(report.into_diagnostics()[0].location.line, Some(line), "{text}");
        }
    }

    #[test]
    fn one_word_is_told_from_several() {
        assert_eq!(kind_of("ab"), Some(Kind::Name));
        assert_eq!(kind_of("1b"), Some(Kind::Number));
        for several in ["a(", "", "-1", "a b", "\"", "//", "a\n"] {
            assert_eq!(kind_of(several), None, "{several}");
        }
    }
}
