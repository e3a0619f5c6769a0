//! Parses names of types.

use super::parser::Parser;
use super::token::Fault;
use super::types::{Base, IntType, Type};

/// Words that combine to the name of a type.
const WORDS: [&str; 9] = ["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"];

/// Words that say nothing about a value.
const QUALIFIERS: [&str; 2] = ["const", "volatile"];

/// Whether a type begins some tokens ahead.
pub(super) fn starts_type(parser: &Parser, ahead: usize) -> bool {
    parser.word(ahead).is_some_and(|word| {
        let known = WORDS.contains(&word) || QUALIFIERS.contains(&word) || Type::named(word).is_some();
        // A variable of the name hides the type.
        known && parser.names.find(word).is_none()
    })
}

/// A type with its stars.
pub(super) fn type_name(parser: &mut Parser) -> Result<Type, Fault> {
    let base = base_type(parser)?;
    stars(parser, base)
}

/// The stars behind a type.
pub(super) fn stars(parser: &mut Parser, mut ty: Type) -> Result<Type, Fault> {
    while parser.take("*") {
        if ty.stars >= 2 {
            return Err(parser.fault("pointers of three stars aren't in the subset of C that can be evaluated"));
        }
        ty = ty.pointer();
        while parser.word(0).is_some_and(|word| QUALIFIERS.contains(&word)) {
            parser.next();
        }
    }
    Ok(ty)
}

/// A type without stars.
pub(super) fn base_type(parser: &mut Parser) -> Result<Type, Fault> {
    let at = parser.at();
    let (mut words, mut named) = (Vec::new(), None);
    while starts_type(parser, 0) {
        let word = parser.word(0).unwrap_or_default();
        if WORDS.contains(&word) {
            words.push(word);
        } else if !QUALIFIERS.contains(&word) {
            if named.is_some() || !words.is_empty() {
                break;
            }
            named = Type::named(word);
        }
        parser.next();
    }
    let ty = match (named, words.is_empty()) {
        (Some(ty), true) => Some(ty),
        (None, false) => combined(&words),
        _ => None,
    };
    ty.ok_or_else(|| Fault::new(at, "this isn't a type of the subset of C that can be evaluated"))
}

fn combined(words: &[&str]) -> Option<Type> {
    let count = |wanted| words.iter().filter(|word| **word == wanted).count();
    let others = |allowed: &[&str]| words.iter().any(|word| !allowed.contains(word));
    for (name, ty) in [("void", Type::VOID), ("float", Type::FLOAT), ("double", Type::DOUBLE)] {
        if count(name) == 1 {
            return (words.len() == 1).then_some(ty);
        }
    }
    if count("signed") + count("unsigned") > 1 || words.iter().any(|word| *word != "long" && count(word) > 1) {
        return None;
    }
    let signed = count("unsigned") == 0;
    let bytes = if count("char") == 1 {
        if others(&["char", "signed", "unsigned"]) {
            return None;
        }
        1
    } else if count("short") == 1 {
        if others(&["short", "int", "signed", "unsigned"]) {
            return None;
        }
        2
    } else {
        match count("long") {
            0 => 4,
            1 | 2 => 8,
            _ => return None,
        }
    };
    Some(Type { base: Base::Int(IntType { bytes, signed }), stars: 0 })
}
