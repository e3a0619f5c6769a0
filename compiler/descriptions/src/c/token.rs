//! Cuts C text into tokens. No text gets through that the C preprocessor would read otherwise.

/// A fault in C text: at which byte of it, and what.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// Offset in the text.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    /// A fault at an offset of the text.
    pub fn new(at: usize, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into() }
    }
}

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// A number as it is written.
    Number(&'a str),
    /// A string's bytes, without quotes and escapes.
    Text(Vec<u8>),
    /// The value of a character.
    Character(i64),
    /// An operator or another mark.
    Mark(&'static str),
}

/// A token and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind<'a>,
    /// Its offset in the text.
    pub at: usize,
}

/// The marks of C, each before those that it begins with.
const MARKS: [&str; 46] = [
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=", "+=",
    "-=", "&=", "^=", "|=", "[", "]", "(", ")", "{", "}", ".", "&", "*", "+", "-", "~", "!", "/", "%", "<", ">", "^",
    "|", "?", ":", ";", "=", ",",
];

/// Other spellings of marks; one that stands for `#` or `##` is none.
const DIGRAPHS: [(&str, &str); 4] = [("<:", "["), (":>", "]"), ("<%", "{"), ("%>", "}")];

/// The tokens of a text.
///
/// # Errors
/// Open comments, strings and characters, lines of the preprocessor, whatever joins lines or replaces letters, and letters
/// without meaning.
pub fn tokens(text: &str) -> Result<Vec<Token<'_>>, Fault> {
    check_letters(text)?;
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = space(rest, at)? {
            at += length;
            continue;
        }
        let (kind, length) = token(rest, at)?;
        tokens.push(Token { kind, at });
        at += length;
    }
    Ok(tokens)
}

/// What the C preprocessor changes before it looks for tokens isn't allowed, not even in comments and strings.
fn check_letters(text: &str) -> Result<(), Fault> {
    let bytes = text.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1..).unwrap_or_default();
        match byte {
            b'\\' if joins_lines(next) => {
                return Err(Fault::new(at, "a backslash at the end of a line would join it to the next one"));
            }
            b'?' if next.first() == Some(&b'?') && next.get(1).is_some_and(|mark| b"=/'()!<>-".contains(mark)) => {
                return Err(Fault::new(
                    at,
                    "C reads `??` and a mark as another mark (a trigraph): write it another way",
                ));
            }
            b'\r' if next.first() == Some(&b'\n') => {}
            b'\t' | b'\n' | b'\x0c' => {}
            0..=31 | 127 => return Err(Fault::new(at, format!("the control character {:?}", byte as char))),
            _ => {}
        }
    }
    Ok(())
}

/// Whether only space comes before the end of the line.
fn joins_lines(rest: &[u8]) -> bool {
    let mut bytes = rest.iter().skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\x0c'));
    matches!(bytes.next(), None | Some(b'\n'))
}

/// Length of space or of a comment, if that comes next.
fn space(rest: &str, at: usize) -> Result<Option<usize>, Fault> {
    let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']).len();
    if blank > 0 {
        return Ok(Some(blank));
    }
    if rest.starts_with("//") {
        return Ok(Some(rest.find('\n').unwrap_or(rest.len())));
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        let end = comment.find("*/").ok_or_else(|| Fault::new(at, "the comment isn't closed"))?;
        return Ok(Some(end + 4));
    }
    Ok(None)
}

fn token(rest: &str, at: usize) -> Result<(TokenKind<'_>, usize), Fault> {
    let bytes = rest.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    if bytes[0].is_ascii_alphabetic() || bytes[0] == b'_' {
        let end = bytes.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'));
        let word = &rest[..end.unwrap_or(rest.len())];
        if word == "_Pragma" {
            return Err(Fault::new(at, "pragmas aren't allowed"));
        }
        return Ok((TokenKind::Word(word), word.len()));
    }
    if is_digit(0) || bytes[0] == b'.' && is_digit(1) {
        let length = number_length(bytes);
        return Ok((TokenKind::Number(&rest[..length]), length));
    }
    if bytes[0] == b'"' || bytes[0] == b'\'' {
        return quoted(rest, at);
    }
    if bytes[0] == b'#' || rest.starts_with("%:") {
        return Err(Fault::new(at, "lines of the preprocessor aren't allowed"));
    }
    if let Some((digraph, mark)) = DIGRAPHS.iter().find(|(digraph, _)| rest.starts_with(digraph)) {
        return Ok((TokenKind::Mark(mark), digraph.len()));
    }
    match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
        Some(mark) => Ok((TokenKind::Mark(mark), mark.len())),
        None => Err(Fault::new(at, format!("{:?} has no meaning in C", rest.chars().next().unwrap_or_default()))),
    }
}

/// The preprocessor takes as much for a number as could be one.
fn number_length(bytes: &[u8]) -> usize {
    let mut end = 1;
    while let Some(&byte) = bytes.get(end) {
        let sign = matches!(byte, b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E' | b'p' | b'P');
        if !(sign || byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {
            break;
        }
        end += 1;
    }
    end
}

/// A string or a character, which ends on its line.
fn quoted(rest: &str, at: usize) -> Result<(TokenKind<'_>, usize), Fault> {
    let bytes = rest.as_bytes();
    let (quote, what) = if bytes[0] == b'"' { (b'"', "string") } else { (b'\'', "character") };
    let mut content = Vec::new();
    let mut end = 1;
    loop {
        match bytes.get(end) {
            None | Some(b'\n') => return Err(Fault::new(at, format!("the {what} isn't closed on its line"))),
            Some(b'\\') => {
                let (byte, length) = escape(&bytes[end + 1..]).ok_or_else(|| {
                    Fault::new(at + end, "this escape isn't known: write a byte that has none as \\xHH")
                })?;
                content.push(byte);
                end += 1 + length;
            }
            Some(byte) if *byte == quote => break,
            Some(byte) => {
                content.push(*byte);
                end += 1;
            }
        }
    }
    match (quote, content.as_slice()) {
        (b'"', _) => Ok((TokenKind::Text(content), end + 1)),
        (_, [byte]) => Ok((TokenKind::Character(i64::from(*byte as i8)), end + 1)),
        _ => Err(Fault::new(at, "a character is one byte between single quotes")),
    }
}

/// The byte that an escape stands for, and the length of what follows the backslash.
fn escape(rest: &[u8]) -> Option<(u8, usize)> {
    let first = *rest.first()?;
    let simple = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'\\' | b'\'' | b'"' | b'?' => first,
        b'x' => return numeric(&rest[1..], 16, usize::MAX).map(|(byte, length)| (byte, length + 1)),
        b'0'..=b'7' => return numeric(rest, 8, 3),
        _ => return None,
    };
    Some((simple, 1))
}

fn numeric(digits: &[u8], radix: u32, most: usize) -> Option<(u8, usize)> {
    let length = digits.iter().take(most).take_while(|digit| (**digit as char).is_digit(radix)).count();
    let text = std::str::from_utf8(&digits[..length]).ok()?;
    Some((u8::from_str_radix(text, radix).ok()?, length))
}

/// Whether brackets of all kinds are closed, in order.
///
/// # Errors
/// The first bracket that isn't closed, or that closes nothing.
pub fn check_brackets(tokens: &[Token]) -> Result<(), Fault> {
    let mut open: Vec<(&str, usize)> = Vec::new();
    for token in tokens {
        let TokenKind::Mark(mark) = token.kind else { continue };
        let closes = match mark {
            "(" | "[" | "{" => {
                open.push((mark, token.at));
                continue;
            }
            ")" => "(",
            "]" => "[",
            "}" => "{",
            _ => continue,
        };
        match open.pop() {
            Some((opened, _)) if opened == closes => {}
            Some((opened, _)) => return Err(Fault::new(token.at, format!("`{mark}` stands where `{opened}` is open"))),
            None => return Err(Fault::new(token.at, format!("`{mark}` closes what this text hasn't opened"))),
        }
    }
    match open.last() {
        Some((mark, at)) => Err(Fault::new(*at, format!("`{mark}` isn't closed"))),
        None => Ok(()),
    }
}

/// Whether a text is an identifier of C that isn't a keyword.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        && !KEYWORDS.contains(&text)
}

/// The keywords of C99, and those of later C that compilers already know.
pub const KEYWORDS: [&str; 46] = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "_Bool",
    "_Complex",
    "_Imaginary",
    "_Alignas",
    "_Alignof",
    "_Atomic",
    "_Generic",
    "_Noreturn",
    "_Static_assert",
    "_Thread_local",
    "asm",
    "typeof",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        match tokens(text).and_then(|tokens| check_brackets(&tokens)) {
            Ok(()) => "none".into(),
            Err(fault) => format!("{}: {}", fault.at, fault.message),
        }
    }

    #[test]
    fn tokens_are_cut_as_c_cuts_them() {
        let text = "a->b[0x1F] += .5e-3f /* \" */ + 'x' \"q\\n\\x41\" // end '";
        let shown: Vec<String> = tokens(text).unwrap().iter().map(|token| format!("{:?}", token.kind)).collect();
        let expected = [
            "Word(\"a\")",
            "Mark(\"->\")",
            "Word(\"b\")",
            "Mark(\"[\")",
            "Number(\"0x1F\")",
            "Mark(\"]\")",
            "Mark(\"+=\")",
            "Number(\".5e-3f\")",
            "Mark(\"+\")",
            "Character(120)",
            "Text([113, 10, 65])",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_breaks_out_of_its_function() {
        for (text, message) in [
            ("{ a(b[1]); }", "none"),
            ("x = \"}\"; // }", "none"),
            ("}", "0: `}` closes what this text hasn't opened"),
            ("{ (", "2: `(` isn't closed"),
            ("{ ( }", "4: `}` stands where `(` is open"),
            ("<% %>", "none"),
            ("%>", "0: `}` closes what this text hasn't opened"),
            ("#define x", "0: lines of the preprocessor aren't allowed"),
            ("a\n %:define x", "3: lines of the preprocessor aren't allowed"),
            ("\"abc", "0: the string isn't closed on its line"),
            ("'ab'", "0: a character is one byte between single quotes"),
            ("/* open", "0: the comment isn't closed"),
            ("// joined \\", "10: a backslash at the end of a line would join it to the next one"),
            ("/\\  \n* open", "1: a backslash at the end of a line would join it to the next one"),
            ("\"??/\"", "1: C reads `??` and a mark as another mark (a trigraph): write it another way"),
            ("a\rb", "1: the control character '\\r'"),
            ("_Pragma(\"x\")", "0: pragmas aren't allowed"),
            ("a @ b", "2: '@' has no meaning in C"),
            ("\"\\q\"", "1: this escape isn't known: write a byte that has none as \\xHH"),
        ] {
            assert_eq!(fault(text), message, "{text:?}");
        }
    }
}
