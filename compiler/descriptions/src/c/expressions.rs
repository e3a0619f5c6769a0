//! Parses expressions of the C subset.

use super::functions::{Function, constant};
use super::operators::{Binary, Unary};
use super::parser::Parser;
use super::syntax::{Expr, ExprKind, Member};
use super::token::{Fault, TokenKind};
use super::type_names::{starts_type, type_name};
use super::types::IntType;
use mlc_ir::text::nearest;

/// Binary operators by precedence, the loosest first; `&&` and `||` are looser than all of them.
const LEVELS: [&[(&str, Binary)]; 8] = [
    &[("|", Binary::Or)],
    &[("^", Binary::Xor)],
    &[("&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[("<", Binary::Less), (">", Binary::Greater), ("<=", Binary::LessEqual), (">=", Binary::GreaterEqual)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

const ASSIGNMENTS: [(&str, Option<Binary>); 11] = [
    ("=", None),
    ("+=", Some(Binary::Add)),
    ("-=", Some(Binary::Subtract)),
    ("*=", Some(Binary::Multiply)),
    ("/=", Some(Binary::Divide)),
    ("%=", Some(Binary::Remainder)),
    ("<<=", Some(Binary::ShiftLeft)),
    (">>=", Some(Binary::ShiftRight)),
    ("&=", Some(Binary::And)),
    ("^=", Some(Binary::Xor)),
    ("|=", Some(Binary::Or)),
];

/// The most elements of an array in braces whose extent is a number.
const MOST_ELEMENTS: usize = 4096;

/// An expression, commas included.
pub(super) fn expression(parser: &mut Parser) -> Result<Expr, Fault> {
    let first = assignment(parser)?;
    if !parser.is_mark(",") {
        return Ok(first);
    }
    let at = first.at;
    let mut all = vec![first];
    while parser.take(",") {
        all.push(assignment(parser)?);
    }
    Ok(Expr { kind: ExprKind::Sequence(all), at })
}

/// An expression without commas.
pub(super) fn assignment(parser: &mut Parser) -> Result<Expr, Fault> {
    parser.nested(|parser| {
        let at = parser.at();
        let target = choice(parser)?;
        let Some((_, operator)) = parser.mark().and_then(|mark| ASSIGNMENTS.iter().find(|(known, _)| *known == mark))
        else {
            return Ok(target);
        };
        parser.next();
        let value = assignment(parser)?;
        Ok(Expr { kind: ExprKind::Assign(Box::new(target), *operator, Box::new(value)), at })
    })
}

fn choice(parser: &mut Parser) -> Result<Expr, Fault> {
    let condition = logical(parser, "||", |parser| logical(parser, "&&", |parser| binary(parser, 0)))?;
    if !parser.take("?") {
        return Ok(condition);
    }
    parser.nested(|parser| {
        let at = condition.at;
        let yes = expression(parser)?;
        parser.expect(":")?;
        let no = choice(parser)?;
        Ok(Expr { kind: ExprKind::Choose(Box::new([condition, yes, no])), at })
    })
}

fn logical(
    parser: &mut Parser,
    mark: &str,
    operand: impl Fn(&mut Parser) -> Result<Expr, Fault>,
) -> Result<Expr, Fault> {
    let first = operand(parser)?;
    if !parser.is_mark(mark) {
        return Ok(first);
    }
    let at = first.at;
    let mut all = vec![first];
    while parser.take(mark) {
        all.push(operand(parser)?);
    }
    Ok(Expr { kind: if mark == "||" { ExprKind::Any(all) } else { ExprKind::All(all) }, at })
}

fn binary(parser: &mut Parser, level: usize) -> Result<Expr, Fault> {
    let Some(operators) = LEVELS.get(level) else { return unary(parser) };
    let first = binary(parser, level + 1)?;
    let mut rest = Vec::new();
    while let Some((_, operator)) = parser.mark().and_then(|mark| operators.iter().find(|(known, _)| *known == mark)) {
        parser.next();
        rest.push((*operator, binary(parser, level + 1)?));
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let at = first.at;
    Ok(Expr { kind: ExprKind::Chain(Box::new(first), rest), at })
}

fn unary(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    let operator = match parser.mark() {
        Some("-") => Unary::Minus,
        Some("+") => Unary::Plus,
        Some("!") => Unary::Not,
        Some("~") => Unary::Complement,
        Some("*") => Unary::Target,
        Some("&") => Unary::Address,
        Some(mark @ ("++" | "--")) => {
            parser.next();
            let target = parser.nested(unary)?;
            return Ok(Expr { kind: ExprKind::Step(Box::new(target), if mark == "++" { 1 } else { -1 }, false), at });
        }
        Some("(") if starts_type(parser, 1) => return cast(parser),
        _ if parser.word(0) == Some("sizeof") => return size(parser),
        _ => return postfix(parser),
    };
    parser.next();
    let operand = parser.nested(unary)?;
    Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), at })
}

/// A conversion, or a compound literal.
fn cast(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    parser.expect("(")?;
    let ty = type_name(parser)?;
    if parser.take("[") {
        let extent = if parser.is_mark("]") { None } else { Some(parser.nested(assignment)?) };
        parser.expect("]")?;
        parser.expect(")")?;
        let mut elements = braces(parser)?;
        match extent.map(|extent| extent.kind) {
            None => {}
            // The others are zero.
            Some(ExprKind::Int(count, _)) if (elements.len()..=MOST_ELEMENTS).contains(&(count as usize)) => {
                elements.resize(count as usize, Expr { kind: ExprKind::Int(0, IntType::INT), at });
            }
            Some(_) => return Err(Fault::new(at, "the extent isn't a number, or doesn't fit the elements")),
        }
        let slot = parser.names.unnamed(ty, true).ok_or_else(|| Fault::new(at, "there are too many variables"))?;
        return Ok(Expr { kind: ExprKind::Compound(slot, elements), at });
    }
    parser.expect(")")?;
    let operand = parser.nested(unary)?;
    Ok(Expr { kind: ExprKind::Cast(ty, Box::new(operand)), at })
}

/// The elements in braces.
pub(super) fn braces(parser: &mut Parser) -> Result<Vec<Expr>, Fault> {
    parser.expect("{")?;
    let mut elements = Vec::new();
    while !parser.take("}") {
        elements.push(assignment(parser)?);
        if !parser.take(",") && !parser.is_mark("}") {
            return Err(parser.unexpected("`,` or `}`"));
        }
    }
    Ok(elements)
}

fn size(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    parser.next();
    if parser.is_mark("(") && starts_type(parser, 1) {
        parser.next();
        let ty = type_name(parser)?;
        parser.expect(")")?;
        let bytes = ty.size().ok_or_else(|| Fault::new(at, format!("the size of `{ty}` isn't known")))?;
        return Ok(Expr { kind: ExprKind::Int(bytes as i64, IntType::SIZE), at });
    }
    let operand = parser.nested(unary)?;
    if has_effects(&operand) {
        return Err(Fault::new(at, "`sizeof` of calls and assignments isn't in the subset of C that can be evaluated"));
    }
    Ok(Expr { kind: ExprKind::SizeOf(Box::new(operand)), at })
}

/// Whether computing an operand of `sizeof`, which C doesn't do, would change something.
fn has_effects(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Member(operand, _, _) | ExprKind::Unary(_, operand) | ExprKind::Cast(_, operand) => {
            has_effects(operand)
        }
        ExprKind::Index(array, index) => has_effects(array) || has_effects(index),
        ExprKind::Chain(first, rest) => has_effects(first) || rest.iter().any(|(_, operand)| has_effects(operand)),
        ExprKind::Int(..) | ExprKind::Double(_) | ExprKind::Single(_) | ExprKind::Slot(_) | ExprKind::Null => false,
        _ => true,
    }
}

fn postfix(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    let mut value = primary(parser)?;
    let mut count = 0;
    loop {
        parser.check_row(count)?;
        count += 1;
        let kind = match parser.mark() {
            Some("[") => {
                parser.next();
                let index = expression(parser)?;
                parser.expect("]")?;
                ExprKind::Index(Box::new(value), Box::new(index))
            }
            Some(mark @ ("." | "->")) => {
                parser.next();
                let name = parser.word(0).ok_or_else(|| parser.unexpected("a member"))?;
                let member = Member::named(name).ok_or_else(|| {
                    parser.fault(format!("the member '{name}' can't be looked at while shapes are inferred"))
                })?;
                parser.next();
                ExprKind::Member(Box::new(value), member, mark == "->")
            }
            Some(mark @ ("++" | "--")) => {
                parser.next();
                ExprKind::Step(Box::new(value), if mark == "++" { 1 } else { -1 }, true)
            }
            _ => return Ok(value),
        };
        value = Expr { kind, at };
    }
}

fn primary(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    let fault = parser.unexpected("a value");
    let kind = match parser.peek(0) {
        Some(TokenKind::Word(_)) => return named(parser),
        Some(TokenKind::Mark("(")) => {
            parser.next();
            let value = parser.nested(expression)?;
            parser.expect(")")?;
            return Ok(value);
        }
        Some(TokenKind::Text(_)) => return Ok(text(parser)),
        Some(TokenKind::Number(number)) => {
            let number = *number;
            number_constant(number)
                .ok_or_else(|| parser.fault(format!("`{number}` isn't a number of C, or too large")))?
        }
        Some(TokenKind::Character(value)) => ExprKind::Int(*value, IntType::INT),
        _ => return Err(fault),
    };
    parser.next();
    Ok(Expr { kind, at })
}

/// One string, or several in a row, which are one.
fn text(parser: &mut Parser) -> Expr {
    let at = parser.at();
    let mut bytes = Vec::new();
    while let Some(TokenKind::Text(part)) = parser.peek(0) {
        bytes.extend_from_slice(part);
        parser.next();
    }
    parser.strings.push(bytes);
    Expr { kind: ExprKind::Text(parser.strings.len() - 1), at }
}

/// A variable, a constant, or a call.
fn named(parser: &mut Parser) -> Result<Expr, Fault> {
    let at = parser.at();
    let name = parser.word(0).unwrap_or_default();
    if matches!(parser.peek(1), Some(TokenKind::Mark("("))) {
        return call(parser, name);
    }
    let kind = if let Some(slot) = parser.names.find(name) {
        ExprKind::Slot(slot)
    } else if let Some(value) = constant(name) {
        ExprKind::Int(value, IntType::INT)
    } else {
        match name {
            "NULL" => ExprKind::Null,
            "INFINITY" => ExprKind::Single(f32::INFINITY),
            _ => {
                let near = nearest(name, parser.names.all());
                let hint = near.map_or(String::new(), |near| format!("; '{near}' is"));
                return Err(parser.fault(format!("'{name}' isn't known here{hint}")));
            }
        }
    };
    parser.next();
    Ok(Expr { kind, at })
}

fn call(parser: &mut Parser, name: &str) -> Result<Expr, Fault> {
    let at = parser.at();
    let (function, least, most) = Function::named(name)
        .ok_or_else(|| parser.fault(format!("the function '{name}' can't be called while shapes are inferred")))?;
    parser.next();
    parser.expect("(")?;
    let opening = parser.at();
    let mut arguments = Vec::new();
    while !parser.take(")") {
        arguments.push(assignment(parser)?);
        if !parser.take(",") && !parser.is_mark(")") {
            return Err(parser.unexpected("`,` or `)`"));
        }
    }
    if !(least..=most).contains(&arguments.len()) {
        let wanted = if least == most { format!("{least}") } else { format!("{least} or more") };
        return Err(Fault::new(at, format!("'{name}' takes {wanted} arguments, not {}", arguments.len())));
    }
    if function == Function::Satisfy {
        // Without a message, the text of the condition is it.
        let text = parser.text.get(opening..parser.at()).unwrap_or_default().trim_end();
        let text = text.strip_suffix(')').unwrap_or(text).trim();
        arguments.extend(message(text, at, parser.strings));
        return Ok(Expr { kind: ExprKind::Call(Function::SatisfyMessage, arguments), at });
    }
    Ok(Expr { kind: ExprKind::Call(function, arguments), at })
}

/// The arguments of a message that is a text as it stands.
pub(super) fn message(text: &str, at: usize, strings: &mut Vec<Vec<u8>>) -> [Expr; 2] {
    ["%s", text].map(|text| {
        strings.push(text.as_bytes().to_vec());
        Expr { kind: ExprKind::Text(strings.len() - 1), at }
    })
}

/// The constant that a number is, of the type that C gives it.
fn number_constant(text: &str) -> Option<ExprKind> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0x") {
        return integer(digits, 16);
    }
    if lower.contains(['.', 'e']) {
        return match lower.strip_suffix('f') {
            Some(digits) => digits.parse::<f32>().ok().map(ExprKind::Single),
            None => lower.parse::<f64>().ok().map(ExprKind::Double),
        };
    }
    match lower.strip_prefix('0') {
        Some(digits) if digits.starts_with(|digit: char| digit.is_ascii_digit()) => integer(digits, 8),
        _ => integer(&lower, 10),
    }
}

fn integer(text: &str, radix: u32) -> Option<ExprKind> {
    let digits = text.trim_end_matches(['u', 'l']);
    let suffix = &text[digits.len()..];
    if suffix.matches('u').count() > 1 || suffix.matches('l').count() > 2 || !digits.chars().all(|c| c.is_digit(radix))
    {
        return None;
    }
    let value = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let (unsigned, long) = (suffix.contains('u'), suffix.contains('l'));
    let types = [
        (IntType::INT, !unsigned && !long),
        (IntType { bytes: 4, signed: false }, !long && (unsigned || radix != 10)),
        (IntType::LONG, !unsigned),
        (IntType::SIZE, unsigned || radix != 10),
    ];
    let (ty, _) = types.into_iter().find(|(ty, allowed)| *allowed && value <= ty.range().1)?;
    Some(ExprKind::Int(value as u64 as i64, ty))
}
