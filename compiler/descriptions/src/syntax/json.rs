//! JSON, and the relaxed form of it: comments, trailing commas, and strings of several lines between `'''` and `'''`.

use super::cursor::Cursor;
use super::tree::{Kind, Member, Text, TextBuilder, Tree};
use crate::problem::{Problem, ProblemKind};
use crate::source::Place;

const OPEN: &str = "the string isn't closed on its line";

/// The value that a file holds.
pub(super) fn parse(text: &str, file: u32) -> Result<Tree, Problem> {
    let mut cursor = Cursor { text, file, at: 0, hash_comments: true };
    cursor.skip_space();
    let tree = value(&mut cursor, 0)?;
    cursor.skip_space();
    match cursor.peek() {
        None => Ok(tree),
        Some(_) => Err(cursor.unexpected("the end of the file")),
    }
}

fn value(cursor: &mut Cursor, depth: usize) -> Result<Tree, Problem> {
    let place = cursor.place();
    cursor.check_depth(depth)?;
    let kind = match cursor.peek() {
        Some(b'{') => object(cursor, depth)?,
        Some(b'[') => cursor.values(depth, value)?,
        Some(b'"') => Kind::Text(string(cursor)?),
        Some(b'\'') if cursor.rest().starts_with("'''") => Kind::Text(lines(cursor)?),
        Some(b'-' | b'0'..=b'9') => Kind::Number(cursor.number(true)?),
        _ => word(cursor)?,
    };
    Ok(Tree { kind, place })
}

fn word(cursor: &mut Cursor) -> Result<Kind, Problem> {
    let start = cursor.at;
    let kind = match cursor.word() {
        "true" => Kind::Bool(true),
        "false" => Kind::Bool(false),
        "null" => Kind::Null,
        _ => {
            cursor.at = start;
            return Err(cursor.unexpected("a value"));
        }
    };
    Ok(kind)
}

fn object(cursor: &mut Cursor, depth: usize) -> Result<Kind, Problem> {
    let mut members: Vec<Member> = Vec::new();
    cursor.list(b'}', |cursor| {
        let place = cursor.place();
        if cursor.peek() != Some(b'"') {
            return Err(cursor.unexpected("a key in double quotes"));
        }
        let name = string(cursor)?;
        if !cursor.take(b':') {
            return Err(cursor.unexpected("`:`"));
        }
        cursor.skip_space();
        let value = value(cursor, depth + 1)?;
        push(&mut members, Member { name: name.as_str().into(), place, value })
    })?;
    Ok(Kind::Object(members))
}

/// The most members of an object, so that looking for a name among them stays quick.
const MOST_MEMBERS: usize = 1000;

/// Adds a member whose key must be new.
pub(super) fn push(members: &mut Vec<Member>, member: Member) -> Result<(), Problem> {
    if members.iter().any(|known| known.name == member.name) {
        let message = format!("the key '{}' is there twice", member.name);
        return Err(Problem { kind: ProblemKind::DuplicateName, ..Problem::syntax(member.place, message) });
    }
    if members.len() >= MOST_MEMBERS {
        return Err(Problem::syntax(member.place, format!("an object has more than {MOST_MEMBERS} members")));
    }
    members.push(member);
    Ok(())
}

fn string(cursor: &mut Cursor) -> Result<Text, Problem> {
    let start = cursor.place();
    cursor.at += 1;
    let first = cursor.at;
    let mut text = TextBuilder::new(cursor.file);
    loop {
        let rest = cursor.rest();
        let plain = rest.find(['"', '\\', '\n']).ok_or_else(|| Problem::syntax(start, OPEN))?;
        text.push_str(&rest[..plain], cursor.at);
        cursor.at += plain;
        match cursor.peek() {
            Some(b'"') => {
                cursor.at += 1;
                return Ok(text.finish(first));
            }
            Some(b'\\') => {
                let at = cursor.at;
                text.push(escape(cursor)?, at);
            }
            _ => return Err(Problem::syntax(start, OPEN)),
        }
    }
}

fn escape(cursor: &mut Cursor) -> Result<char, Problem> {
    let place = cursor.place();
    cursor.at += 1;
    let letter = match cursor.peek() {
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'f') => '\u{c}',
        Some(b'b') => '\u{8}',
        Some(mark @ (b'"' | b'\\' | b'/')) => mark as char,
        Some(b'u') => return unicode(cursor, place),
        _ => {
            return Err(Problem::syntax(
                place,
                "the escapes of JSON are \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX",
            ));
        }
    };
    cursor.at += 1;
    Ok(letter)
}

/// The letter of `uXXXX`, or of two such that are a surrogate pair.
fn unicode(cursor: &mut Cursor, place: Place) -> Result<char, Problem> {
    let unit = |cursor: &mut Cursor| {
        let digits = cursor.rest().get(1..5).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        cursor.at += 5;
        digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let fault = || Problem::syntax(place, "the escape \\uXXXX has four hexadecimal digits and names a letter");
    let first = unit(cursor).ok_or_else(fault)?;
    let code = if (0xd800..0xdc00).contains(&first) && cursor.rest().starts_with("\\u") {
        cursor.at += 1;
        let second = unit(cursor).filter(|second| (0xdc00..0xe000).contains(second)).ok_or_else(fault)?;
        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
    } else {
        first
    };
    char::from_u32(code).ok_or_else(fault)
}

/// A string of several lines: from the line after `'''` to the one that ends in `'''`, or in that and a comma.
fn lines(cursor: &mut Cursor) -> Result<Text, Problem> {
    let start = cursor.place();
    cursor.at += 3;
    let opening = cursor.rest().split('\n').next().unwrap_or_default();
    if !opening.trim().is_empty() {
        return Err(Problem::syntax(
            cursor.place(),
            "nothing may follow ''' on its line: the text starts on the next one",
        ));
    }
    cursor.at += opening.len() + 1;
    let first = cursor.at;
    let mut text = TextBuilder::new(cursor.file);
    let mut break_at = None;
    while !cursor.rest().is_empty() {
        let line = cursor.rest().split('\n').next().unwrap_or_default();
        let content = line.trim_end();
        let content = content.strip_suffix(',').unwrap_or(content).trim_end();
        if let Some(lost) = content.strip_suffix("'''") {
            if !lost.trim().is_empty() {
                let message = "text before ''' on the line that closes it would be lost: put it on a line of its own";
                return Err(Problem::syntax(cursor.place(), message));
            }
            cursor.at += content.len();
            return Ok(text.finish(first));
        }
        if let Some(at) = break_at {
            text.push('\n', at);
        }
        text.push_str(line.strip_suffix('\r').unwrap_or(line), cursor.at);
        cursor.at += line.len();
        break_at = Some(cursor.at);
        cursor.at = (cursor.at + 1).min(cursor.text.len());
    }
    Err(Problem::syntax(start, "unmatched triple quotes (''')"))
}
