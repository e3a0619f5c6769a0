//! From bytes to lines: the magic, the counts, and the tokens of each operator.

use super::report::Report;
use mlc_ir::{Code, Diagnostic, Location};
use std::borrow::Cow;

const MAGIC: &str = "7767517";
const LONGEST_LINE: usize = 16 << 20;

/// The `.param` file, cut into tokens.
pub(super) struct File<'a> {
    pub(super) operand_count: u64,
    /// Where the operand count stands.
    pub(super) operand_count_place: Location,
    pub(super) operators: Vec<OperatorLine<'a>>,
}

/// A word of a line.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// In bytes, from 1.
    pub(super) column: u32,
}

/// One operator's line.
pub(super) struct OperatorLine<'a> {
    pub(super) number: u32,
    pub(super) kind: Token<'a>,
    pub(super) name: Token<'a>,
    pub(super) inputs: Vec<Token<'a>>,
    pub(super) outputs: Vec<Token<'a>>,
    pub(super) key_values: Vec<KeyValue<'a>>,
}

impl OperatorLine<'_> {
    /// A place on the line, from the column of a token.
    pub(super) fn at(&self, column: u32) -> Location {
        Location::line_column(self.number, column).at_operator(shorten(self.kind.text), shorten(self.name.text))
    }
}

/// A text for a message. Names can take megabytes, and a line has room for a million mistakes.
pub(super) fn shorten(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

/// What a key's prefix makes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefix {
    Parameter,
    Attribute,
    Label,
    Shape,
}

/// A token `key=value`.
#[derive(Clone, Copy)]
pub(super) struct KeyValue<'a> {
    pub(super) prefix: Prefix,
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    pub(super) column: u32,
    pub(super) value_column: u32,
}

struct Line<'a> {
    number: u32,
    tokens: Vec<Token<'a>>,
}

impl Line<'_> {
    fn at(&self, index: usize) -> Location {
        let column = self.tokens.get(index).map_or(1, |token| token.column);
        Location::line_column(self.number, column)
    }

    fn end(&self) -> u32 {
        self.tokens.last().map_or(1, |token| token.column + token.text.len() as u32)
    }
}

/// Cuts the file into operators. `None` if its structure is wrong.
pub(super) fn parse<'a>(param: &'a [u8], report: &mut Report) -> Option<File<'a>> {
    check_magic(param, report)?;
    let mut lines = split(param, report).into_iter();
    lines.next();
    let Some(counts) = lines.next() else {
        let location = Location::line_column(2, 1);
        let message = "the file ends before the operator count and the operand count";
        report.push(Diagnostic::error(Code::Syntax, location, message));
        return None;
    };
    let [operator_count, operand_count] = parse_counts(&counts, report)?;
    let lines: Vec<Line<'a>> = lines.collect();
    refuse_ncnn(&lines, report)?;
    let operators: Vec<_> = lines.iter().filter_map(|line| parse_operator(line, report)).collect();
    check_operator_count(operator_count, &counts, &lines, report)?;
    if report.has_errors() {
        return None;
    }
    Some(File { operand_count, operand_count_place: counts.at(1), operators })
}

/// The lines that aren't blank.
fn split<'a>(param: &'a [u8], report: &mut Report) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    for (index, bytes) in param.split(|&byte| byte == b'\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        match tokenize(bytes, number) {
            Ok(tokens) if tokens.is_empty() => {}
            Ok(tokens) => lines.push(Line { number, tokens }),
            Err(diagnostic) => report.push(*diagnostic),
        }
    }
    lines
}

fn tokenize(bytes: &[u8], number: u32) -> Result<Vec<Token<'_>>, Box<Diagnostic>> {
    let fail = |column: usize, message: String| {
        let location = Location::line_column(number, u32::try_from(column).unwrap_or(u32::MAX));
        Err(Box::new(Diagnostic::error(Code::Syntax, location, message)))
    };
    if bytes.len() > LONGEST_LINE {
        return fail(1, format!("line of {} bytes; at most {LONGEST_LINE} are read", bytes.len()));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return fail(error.valid_up_to() + 1, "the text isn't valid UTF-8".to_owned()),
    };
    let is_blank = |character: char| matches!(character, ' ' | '\t' | '\r');
    if let Some((at, character)) = text.char_indices().find(|&(_, c)| c.is_control() && !is_blank(c)) {
        return fail(at + 1, format!("control character U+{:04X} in the text", u32::from(character)));
    }
    let mut tokens = Vec::new();
    let mut column = 1;
    for piece in text.split(is_blank) {
        if !piece.is_empty() {
            tokens.push(Token { text: piece, column });
        }
        column += piece.len() as u32 + 1;
    }
    Ok(tokens)
}

fn check_magic(param: &[u8], report: &mut Report) -> Option<()> {
    let first = param.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if first.trim_ascii_end() == MAGIC.as_bytes() {
        return Some(());
    }
    let location = Location::line_column(1, 1);
    let mut diagnostic = Diagnostic::error(Code::Syntax, location, format!("the first line isn't {MAGIC}"));
    if param.starts_with(b"PK") {
        diagnostic = diagnostic.with_help("this is the archive of weights; name the .pnnx.param file instead");
    } else if param.starts_with(b"\xef\xbb\xbf") {
        diagnostic = diagnostic.with_help("remove the byte order mark at the beginning of the file");
    } else {
        diagnostic = diagnostic.with_help("a .pnnx.param file begins with a line that holds only this number");
    }
    report.push(diagnostic);
    None
}

fn parse_counts(line: &Line<'_>, report: &mut Report) -> Option<[u64; 2]> {
    let mut counts = [0; 2];
    for (index, (count, what)) in counts.iter_mut().zip(["operators", "operands"]).enumerate() {
        let text = line.tokens.get(index).map_or("", |token| token.text);
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = if text.is_empty() {
                format!("the number of {what} is missing")
            } else {
                format!("expected the number of {what}, found `{text}`")
            };
            let diagnostic = Diagnostic::error(Code::Syntax, line.at(index), message);
            report.push(diagnostic.with_help("the second line holds two numbers: operators and operands"));
            return None;
        }
        // A count that doesn't fit 64 bits can't be right either; the comparison with the true count reports it.
        *count = text.parse().unwrap_or(u64::MAX);
    }
    if line.tokens.len() > 2 {
        let message = "text behind the two counts is ignored";
        report.push(Diagnostic::warning(Code::Syntax, line.at(2), message));
    }
    Some(counts)
}

/// Files of ncnn begin with the same magic and have nearly the same lines.
fn refuse_ncnn(lines: &[Line<'_>], report: &mut Report) -> Option<()> {
    let kinds = || lines.iter().filter_map(|line| line.tokens.first());
    if lines.is_empty() || kinds().any(|kind| kind.text.contains('.') || kind.text.contains("::")) {
        return Some(());
    }
    let message = "this is a model of ncnn, not of PNNX: no operator has a type of PyTorch, such as nn.Conv2d";
    let diagnostic = Diagnostic::error(Code::RelatedFormat, lines[0].at(0), message);
    report.push(diagnostic.with_help("use the .pnnx.param file that the exporter wrote beside the .ncnn.param file"));
    None
}

fn check_operator_count(declared: u64, counts: &Line<'_>, lines: &[Line<'_>], report: &mut Report) -> Option<()> {
    let found = lines.len() as u64;
    if declared == found || (report.has_errors() && found < declared) {
        // A line that couldn't be read is missing among the lines, and has its own message.
        return Some(());
    }
    let message = format!("{declared} operators are declared, the file has {found}");
    let diagnostic = if declared < found {
        let extra = lines.get(declared as usize).map_or_else(Location::default, |line| line.at(0));
        Diagnostic::error(Code::CountMismatch, extra, message).with_related(counts.at(0), "declared here")
    } else {
        Diagnostic::error(Code::CountMismatch, counts.at(0), message).with_help("is the file complete?")
    };
    report.push(diagnostic);
    None
}

fn parse_operator<'a>(line: &Line<'a>, report: &mut Report) -> Option<OperatorLine<'a>> {
    let &[kind, name, input_count, output_count, ref rest @ ..] = line.tokens.as_slice() else {
        let message = "expected a type, a name, the number of inputs and the number of outputs";
        let location = Location::line_column(line.number, line.end());
        report.push(Diagnostic::error(Code::Syntax, location, message));
        return None;
    };
    let place =
        |column: u32| Location::line_column(line.number, column).at_operator(shorten(kind.text), shorten(name.text));
    let mut remaining = rest.len();
    let mut counts = [0; 2];
    for (count, (token, what)) in counts.iter_mut().zip([(input_count, "inputs"), (output_count, "outputs")]) {
        if token.text.is_empty() || !token.text.bytes().all(|byte| byte.is_ascii_digit()) {
            let message = format!("expected the number of {what}, found `{}`", token.text);
            report.push(Diagnostic::error(Code::Syntax, place(token.column), message));
            return None;
        }
        *count = token.text.parse().unwrap_or(usize::MAX);
        if *count > remaining {
            let message = format!("{} {what} are declared, but the line ends after {remaining}", token.text);
            let diagnostic = Diagnostic::error(Code::CountMismatch, place(token.column), message);
            report.push(diagnostic.with_related(place(line.end()), "the line ends here"));
            return None;
        }
        remaining -= *count;
    }
    let (inputs, rest) = rest.split_at(counts[0]);
    let (outputs, rest) = rest.split_at(counts[1]);
    let key_values = rest.iter().map(|token| parse_key_value(*token)).collect();
    Some(OperatorLine { number: line.number, kind, name, inputs: inputs.into(), outputs: outputs.into(), key_values })
}

fn parse_key_value(token: Token<'_>) -> KeyValue<'_> {
    let (prefix, text) = match token.text.as_bytes().first() {
        Some(b'@') => (Prefix::Attribute, &token.text[1..]),
        Some(b'$') => (Prefix::Label, &token.text[1..]),
        Some(b'#') => (Prefix::Shape, &token.text[1..]),
        _ => (Prefix::Parameter, token.text),
    };
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let value_column = token.column + (token.text.len() - value.len()) as u32;
    KeyValue { prefix, key, value, column: token.column, value_column }
}
