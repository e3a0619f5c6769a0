//! Cuts the text form into tokens with their places.

use crate::diagnostics::{Code, Diagnostic, Location};

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    /// Letters, digits and underscores, not starting with a digit.
    Word(&'a str),
    /// Starts with a digit, a minus and a digit, or `-inf`; may have a type suffix.
    Number(&'a str),
    /// A quoted string, unescaped.
    Text(String),
    /// `%name` or `%name:slot`.
    Value(String, Option<u32>),
    /// `@name`
    Symbol(String),
    /// `#0123456789abcdef`
    Hash(u64),
    /// A single mark.
    Mark(char),
    /// `->`
    Arrow,
    /// The end of the text.
    End,
}

impl Kind<'_> {
    /// How messages call the token.
    pub fn describe(&self) -> String {
        match self {
            Kind::Word(text) | Kind::Number(text) => format!("`{text}`"),
            Kind::Text(text) => format!("the string {}", quote(text)),
            Kind::Value(name, None) => format!("%{}", plain_or_quoted(name)),
            Kind::Value(name, Some(slot)) => format!("%{}:{slot}", plain_or_quoted(name)),
            Kind::Symbol(name) => format!("@{}", plain_or_quoted(name)),
            Kind::Hash(hash) => format!("#{hash:016x}"),
            Kind::Mark(mark) => format!("`{mark}`"),
            Kind::Arrow => "`->`".into(),
            Kind::End => "the end of the text".into(),
        }
    }
}

/// A token and where it starts.
#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub line: u32,
    /// In bytes, from 1.
    pub column: u32,
    /// Whether nothing but space comes before it on its line.
    pub first: bool,
}

impl Token<'_> {
    /// A syntax error here.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        self.fault(Code::TextSyntax, message)
    }

    /// An error of some kind here.
    pub fn fault(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, Location::line_column(self.line, self.column), message)
    }
}

/// Whether a name can stand behind `%` or `@` without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

/// A name as it stands behind `%` or `@`.
pub(super) fn plain_or_quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { quote(name) }
}

/// A string in quotes; control characters and the quote itself are escaped.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            letter if letter.is_control() => quoted.push_str(&format!("\\u{{{:x}}}", u32::from(letter))),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// All tokens, with an [`Kind::End`] behind the last.
pub(super) fn lex(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: 0, first: true };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let mut token = Token { kind: Kind::End, line: lexer.line, column: lexer.column(), first: lexer.first };
        lexer.first = false;
        match lexer.next() {
            Ok(kind) => token.kind = kind,
            Err(message) => return Err(token.error(message)),
        }
        let end = token.kind == Kind::End;
        tokens.push(token);
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    first: bool,
}

impl<'a> Lexer<'a> {
    fn column(&self) -> u32 {
        u32::try_from(self.at - self.line_start + 1).unwrap_or(u32::MAX)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        loop {
            let bytes = self.rest().as_bytes();
            match bytes.first() {
                Some(b'\n') => {
                    self.at += 1;
                    self.line = self.line.saturating_add(1);
                    (self.line_start, self.first) = (self.at, true);
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') if bytes.get(1) == Some(&b'/') => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    /// Takes the bytes from here that fit.
    fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !fits(byte)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn next(&mut self) -> Result<Kind<'a>, String> {
        let Some(letter) = self.rest().chars().next() else { return Ok(Kind::End) };
        let rest = self.rest();
        let number = rest.strip_prefix('-').unwrap_or(rest);
        if number.starts_with(|digit: char| digit.is_ascii_digit()) || rest.starts_with("-inf") {
            return Ok(Kind::Number(self.number()));
        }
        if rest.starts_with("->") {
            self.at += 2;
            return Ok(Kind::Arrow);
        }
        match letter {
            '%' => {
                let name = self.name()?;
                let slot = self.slot()?;
                Ok(Kind::Value(name, slot))
            }
            '@' => Ok(Kind::Symbol(self.name()?)),
            '"' => Ok(Kind::Text(self.string()?)),
            '#' => {
                self.at += 1;
                let digits = self.take_while(|byte| byte.is_ascii_hexdigit());
                let hash = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 16);
                Ok(Kind::Hash(hash.ok_or("a hash has 16 hexadecimal digits")?))
            }
            letter if letter.is_ascii_alphabetic() || letter == '_' => {
                Ok(Kind::Word(self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_')))
            }
            '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | ':' | '=' => {
                self.at += 1;
                Ok(Kind::Mark(letter))
            }
            letter => Err(format!("the character {letter:?} has no meaning here")),
        }
    }

    fn number(&mut self) -> &'a str {
        let rest = self.rest().as_bytes();
        let hexadecimal = rest.starts_with(b"0x");
        let mut end = 1;
        while let Some(&byte) = rest.get(end) {
            let sign = matches!(byte, b'+' | b'-') && matches!(rest[end - 1], b'e' | b'E') && !hexadecimal;
            if !is_name_byte(byte) && !sign {
                break;
            }
            end += 1;
        }
        let text = &self.rest()[..end];
        self.at += end;
        text
    }

    /// The name behind a mark.
    fn name(&mut self) -> Result<String, String> {
        self.at += 1;
        if self.rest().starts_with('"') {
            return self.string();
        }
        let name = self.take_while(is_name_byte);
        if name.is_empty() { Err("a name is missing".into()) } else { Ok(name.to_owned()) }
    }

    fn slot(&mut self) -> Result<Option<u32>, String> {
        let Some(rest) = self.rest().strip_prefix(':') else { return Ok(None) };
        if !rest.starts_with(|digit: char| digit.is_ascii_digit()) {
            return Ok(None);
        }
        self.at += 1;
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        digits.parse().map(Some).map_err(|_| format!("there is no result {digits}"))
    }

    fn string(&mut self) -> Result<String, String> {
        const OPEN: &str = "the string isn't closed on its line";
        let mut letters = self.rest().char_indices().skip(1);
        let mut text = String::new();
        loop {
            let (place, letter) = letters.next().ok_or(OPEN)?;
            match letter {
                '"' => {
                    self.at += place + 1;
                    return Ok(text);
                }
                '\n' => return Err(OPEN.into()),
                '\\' => text.push(unescape(&mut letters)?),
                letter => text.push(letter),
            }
        }
    }
}

fn unescape(letters: &mut impl Iterator<Item = (usize, char)>) -> Result<char, String> {
    const UNKNOWN: &str = "the escapes are \\\", \\\\, \\n and \\u{…}";
    let mut next = || letters.next().map(|(_, letter)| letter).ok_or(UNKNOWN);
    match next()? {
        'n' => Ok('\n'),
        letter @ ('"' | '\\') => Ok(letter),
        'u' => {
            let mut digits = String::new();
            if next()? != '{' {
                return Err(UNKNOWN.into());
            }
            loop {
                match next()? {
                    '}' => break,
                    digit if digit.is_ascii_hexdigit() && digits.len() < 6 => digits.push(digit),
                    _ => return Err(UNKNOWN.into()),
                }
            }
            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
            code.ok_or_else(|| format!("\\u{{{digits}}} isn't a character"))
        }
        _ => Err(UNKNOWN.into()),
    }
}
