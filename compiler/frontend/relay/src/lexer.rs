//! Words, names, numbers and marks of Relay text, with their places. A comment belongs to the token before it: importers of
//! other formats leave the names of their operators there.

use mlc_ir::{Code, DType, Diagnostic, Location};

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    /// `nn.conv2d`, `def`, `True`
    Word(&'a str),
    /// `%name`
    Local(&'a str),
    /// `%0`
    Graph(u32),
    /// `@name`
    Global(&'a str),
    /// Digits, with a point, an exponent and a suffix if there are any; never a sign.
    Number(&'a str),
    /// `"text"`
    Text(String),
    /// A mark of one or two characters.
    Mark(&'a str),
    /// `#[metadata]`; the text behind it isn't divided into tokens.
    Metadata(&'a str),
    /// The end of the text.
    End,
}

impl Kind<'_> {
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(text) | Kind::Number(text) | Kind::Mark(text) => format!("`{text}`"),
            Kind::Local(name) => format!("`%{name}`"),
            Kind::Graph(number) => format!("`%{number}`"),
            Kind::Global(name) => format!("`@{name}`"),
            Kind::Text(_) => "a string".into(),
            Kind::Metadata(_) => "`#[metadata]`".into(),
            Kind::End => "the end of the text".into(),
        }
    }
}

/// A line and a column, both from 1; columns count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    pub fn location(self) -> Location {
        Location::line_column(self.line, self.column)
    }

    pub fn error(self, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(Code::Syntax, self.location(), message))
    }
}

/// A piece of the text.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub place: Place,
    /// What the comments behind it say; the first one that isn't about a type, if there is one.
    pub comment: Option<&'a str>,
}

/// Divides a text into tokens; the last one is [`Kind::End`].
///
/// # Errors
/// At a character that no token has, and at a string, a comment or a name without an end.
pub(super) fn lex(text: &str) -> Result<Vec<Token<'_>>, Box<Diagnostic>> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: 0, tokens: Vec::new() };
    loop {
        lexer.skip_blanks()?;
        let (place, start) = (lexer.place(), lexer.at);
        let kind = lexer.kind(place)?;
        debug_assert!(lexer.at > start || kind == Kind::End);
        let last = kind == Kind::End;
        lexer.tokens.push(Token { kind, place, comment: None });
        if last {
            return Ok(lexer.tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    tokens: Vec<Token<'a>>,
}

const MARKS: [&str; 24] = [
    "->", "<=", ">=", "==", "!=", "#", "(", ")", "[", "]", "{", "}", ",", ";", ":", "=", ".", "<", ">", "+", "-", "*",
    "/", "?",
];

/// As far as this the lexer looks to tell the point of a projection from one in a name.
const FARTHEST_LOOK: usize = 64;

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bytes(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn place(&self) -> Place {
        let column = self.at - self.line_start + 1;
        Place { line: self.line, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    fn advance(&mut self, count: usize) -> &'a str {
        let passed = &self.text[self.at..self.at + count];
        for (index, _) in passed.match_indices('\n') {
            self.line += 1;
            self.line_start = self.at + index + 1;
        }
        self.at += count;
        passed
    }

    fn skip_blanks(&mut self) -> Result<(), Box<Diagnostic>> {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.advance(blanks);
            let rest = self.rest();
            if rest.starts_with("/*") {
                self.block_comment()?;
            } else if rest.starts_with("//") {
                let end = rest.find('\n').unwrap_or(rest.len());
                self.advance(end);
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Result<(), Box<Diagnostic>> {
        let place = self.place();
        let bytes = self.bytes();
        let (mut depth, mut end) = (0usize, 0);
        loop {
            match bytes.get(end..end + 2) {
                Some(b"/*") => (depth, end) = (depth + 1, end + 2),
                Some(b"*/") => (depth, end) = (depth - 1, end + 2),
                Some(_) => end += 1,
                None => return Err(place.error("the comment has no end")),
            }
            if depth == 0 {
                break;
            }
        }
        let comment = self.advance(end);
        let comment = comment[2..end - 2].trim();
        if let Some(token) = self.tokens.last_mut() {
            let replaced = token.comment.is_none_or(|old| old.starts_with("ty=") && !old.contains("span="));
            if replaced {
                token.comment = Some(comment);
            }
        }
        Ok(())
    }

    fn kind(&mut self, place: Place) -> Result<Kind<'a>, Box<Diagnostic>> {
        let bytes = self.bytes();
        let Some(&first) = bytes.first() else { return Ok(Kind::End) };
        match first {
            b'%' | b'@' => self.name(first == b'@', place),
            b'"' => self.string(place),
            b'0'..=b'9' => Ok(Kind::Number(self.number())),
            b'#' if self.rest().starts_with("#[metadata]") => {
                self.advance("#[metadata]".len());
                let rest = self.rest();
                self.advance(rest.len());
                Ok(Kind::Metadata(rest))
            }
            _ if is_word(first) => {
                let mut end = bytes.iter().take_while(|&&byte| is_word(byte) || byte == b'.').count();
                while bytes[end - 1] == b'.' {
                    end -= 1;
                }
                Ok(Kind::Word(self.advance(end)))
            }
            _ => match MARKS.iter().find(|mark| self.rest().starts_with(**mark)) {
                Some(mark) => Ok(Kind::Mark(self.advance(mark.len()))),
                None => {
                    let character = self.rest().chars().next().unwrap_or_default();
                    Err(place.error(format!("the character {character:?} has no meaning here")))
                }
            },
        }
    }

    /// Digits with what belongs to a number; the point of `%4.0` isn't asked for here.
    fn number(&mut self) -> &'a str {
        let bytes = self.bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end += 1 + digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits(end + 1 + sign);
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        end += bytes[end..].iter().take_while(|&&byte| is_word(byte)).count();
        self.advance(end)
    }

    fn name(&mut self, global: bool, place: Place) -> Result<Kind<'a>, Box<Diagnostic>> {
        self.advance(1);
        let bytes = self.bytes();
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !global && digits > 0 && !bytes.get(digits).is_some_and(|&byte| is_word(byte)) {
            let number =
                self.advance(digits).parse().map_err(|_| place.error("the number of the value is too large"))?;
            return Ok(Kind::Graph(number));
        }
        let mut end = 0;
        while bytes.get(end).is_some_and(|&byte| self.in_name(byte, end)) {
            end += 1;
        }
        if end == 0 {
            return Err(place.error(format!("a name is expected behind `{}`", if global { '@' } else { '%' })));
        }
        let name = self.advance(end);
        Ok(if global { Kind::Global(name) } else { Kind::Local(name) })
    }

    /// Whether a byte so far behind the start of a name belongs to it. Names that came from elsewhere hold `.`, `/`, `:` and
    /// `-`, which have other meanings too: those of a projection, an operator, and what stands before a type.
    fn in_name(&self, byte: u8, at: usize) -> bool {
        let behind = &self.bytes()[at + 1..];
        let word_behind = behind.first().is_some_and(|&byte| is_word(byte));
        match byte {
            b'.' => {
                let look = behind.iter().take(FARTHEST_LOOK);
                let run = look.take_while(|&&byte| is_word(byte) || byte == b'.').count();
                word_behind && !behind[..run].iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
            }
            b'/' | b'-' => word_behind,
            b':' => word_behind && !starts_type(&self.rest()[at + 1..]),
            _ => is_word(byte),
        }
    }

    fn string(&mut self, place: Place) -> Result<Kind<'a>, Box<Diagnostic>> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '"' => {
                    self.advance(index + 1);
                    return Ok(Kind::Text(text));
                }
                '\\' => match characters.next().map(|(_, escaped)| escaped) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('0') => text.push('\0'),
                    Some('u') => text
                        .push(unicode(&mut characters).ok_or_else(|| place.error("the string has a damaged \\u{…}"))?),
                    Some(escaped) => text.push(escaped),
                    None => break,
                },
                character => text.push(character),
            }
        }
        Err(place.error("the string has no end"))
    }
}

/// The character of `{2a}`, as it stands behind `\u`.
pub(super) fn unicode(characters: &mut impl Iterator<Item = (usize, char)>) -> Option<char> {
    if characters.next()?.1 != '{' {
        return None;
    }
    let mut code = 0u32;
    for _ in 0..7 {
        match characters.next()?.1 {
            '}' => return char::from_u32(code),
            digit => code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?,
        }
    }
    None
}

/// Whether a type starts here.
fn starts_type(text: &str) -> bool {
    let word = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    text.starts_with("Tensor[") || word == "fn" || DType::parse_long_name(word).is_some()
}
