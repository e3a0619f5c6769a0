//! The `.op` grammar: named objects with bare keys, which may inherit from others.

use super::cursor::Cursor;
use super::json::push;
use super::tree::{Kind, Member, Text, TextBuilder, Tree};
use crate::problem::Problem;
use crate::source::Place;

/// A named object of a file.
pub(super) struct NamedObject {
    pub name: String,
    pub place: Place,
    /// Name of the object that it inherits from.
    pub base: Option<(String, Place)>,
    pub tree: Tree,
}

/// The objects of a file.
pub(super) fn parse(text: &str, file: u32) -> Result<Vec<NamedObject>, Problem> {
    let mut cursor = Cursor { text, file, at: 0, hash_comments: false };
    let mut objects = Vec::new();
    loop {
        cursor.skip_space();
        if cursor.peek().is_none() && !objects.is_empty() {
            return Ok(objects);
        }
        objects.push(named_object(&mut cursor)?);
        // A file may end in a stray comma.
        let comma = cursor.at;
        if cursor.take(b',') {
            cursor.skip_space();
            if cursor.peek().is_some() {
                return Err(Problem::syntax(cursor.place_at(comma), "objects aren't separated by commas"));
            }
        }
    }
}

fn identifier(cursor: &mut Cursor, what: &str) -> Result<(String, Place), Problem> {
    cursor.skip_space();
    let place = cursor.place();
    let word = cursor.word();
    if word.is_empty() { Err(cursor.unexpected(what)) } else { Ok((word.to_owned(), place)) }
}

fn named_object(cursor: &mut Cursor) -> Result<NamedObject, Problem> {
    let (name, place) = identifier(cursor, "the name of an object")?;
    let base = if cursor.take(b':') { Some(identifier(cursor, "the name of the base object")?) } else { None };
    cursor.skip_space();
    if cursor.peek() != Some(b'{') {
        return Err(cursor.unexpected("`{`"));
    }
    let tree = Tree { place: cursor.place(), kind: object(cursor, 0)? };
    Ok(NamedObject { name, place, base, tree })
}

fn object(cursor: &mut Cursor, depth: usize) -> Result<Kind, Problem> {
    let mut members: Vec<Member> = Vec::new();
    cursor.list(b'}', |cursor| {
        let (name, place) = identifier(cursor, "a key")?;
        if !cursor.take(b':') {
            return Err(cursor.unexpected("`:`"));
        }
        let value = value(cursor, depth + 1)?;
        push(&mut members, Member { name: name.into(), place, value })
    })?;
    Ok(Kind::Object(members))
}

fn value(cursor: &mut Cursor, depth: usize) -> Result<Tree, Problem> {
    cursor.skip_space();
    let place = cursor.place();
    cursor.check_depth(depth)?;
    let kind = match cursor.peek() {
        Some(b'{') => object(cursor, depth)?,
        Some(b'[') => cursor.values(depth, value)?,
        Some(quote @ (b'"' | b'\'' | b'`')) => Kind::Text(string(cursor, quote)?),
        Some(b'-') if !is_number(cursor) => {
            cursor.at += 1;
            Kind::Deletion
        }
        Some(b'+' | b'-' | b'.' | b'0'..=b'9') => Kind::Number(cursor.number(false)?),
        _ => word(cursor)?,
    };
    Ok(Tree { kind, place })
}

/// Whether a minus belongs to a number.
fn is_number(cursor: &Cursor) -> bool {
    cursor.rest()[1..].starts_with(|next: char| next.is_ascii_digit() || next == '.')
}

/// `true` is 1, `false` and `null` are 0: fields take the numbers for the words.
fn word(cursor: &mut Cursor) -> Result<Kind, Problem> {
    let start = cursor.at;
    match cursor.word() {
        "true" => Ok(Kind::Number(1.0)),
        "false" | "null" => Ok(Kind::Number(0.0)),
        _ => {
            cursor.at = start;
            Err(cursor.unexpected("a value"))
        }
    }
}

/// A string in double quotes has escapes; the other two are taken as they stand, a backslash only keeps a quote from closing them.
fn string(cursor: &mut Cursor, quote: u8) -> Result<Text, Problem> {
    let start = cursor.place();
    cursor.at += 1;
    let first = cursor.at;
    let mut text = TextBuilder::new(cursor.file);
    let quote = quote as char;
    loop {
        let rest = cursor.rest();
        let stop = [quote, '\\', if quote == '\'' { '\n' } else { quote }];
        let plain = rest.find(stop).ok_or_else(|| Problem::syntax(start, "the string isn't closed"))?;
        text.push_str(&rest[..plain], cursor.at);
        cursor.at += plain;
        let mut letters = cursor.rest().chars();
        match letters.next() {
            Some('\\') => {}
            Some('\n') => return Err(Problem::syntax(start, "a string in single quotes isn't closed on its line")),
            _ => {
                cursor.at += 1;
                return Ok(text.finish(first));
            }
        }
        let letter = letters.next().ok_or_else(|| Problem::syntax(start, "the string isn't closed"))?;
        let at = cursor.at;
        cursor.at += 1 + letter.len_utf8();
        if quote == '"' {
            text.push(unescape(letter), at);
        } else {
            text.push_str(&cursor.text[at..cursor.at], at);
        }
    }
}

fn unescape(letter: char) -> char {
    match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'f' => '\u{c}',
        'b' => '\u{8}',
        other => other,
    }
}
