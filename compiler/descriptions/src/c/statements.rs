//! Parses statements of the C subset, and whole texts.

use super::expressions::{assignment, braces, expression, message};
use super::functions::Function;
use super::names::Names;
use super::parser::Parser;
use super::syntax::{Code, Declaration, Expr, ExprKind, Initial, Loop, Statement};
use super::token::{Fault, TokenKind};
use super::type_names::{base_type, stars, starts_type};
use super::types::{Base, Type};

/// Parses statements. What they declare outside of braces stays known.
///
/// # Errors
/// The first fault.
pub fn parse_statements(
    text: &str,
    returns: bool,
    names: &mut Names,
    strings: &mut Vec<Vec<u8>>,
) -> Result<Code, Fault> {
    let mut parser = Parser::new(text, names, strings)?;
    parser.returns = returns;
    let mut statements = Vec::new();
    while !parser.is_end() {
        statements.push(statement(&mut parser)?);
    }
    Ok(Code { statements })
}

/// Parses one expression.
///
/// # Errors
/// The first fault.
pub fn parse_expression(text: &str, names: &mut Names, strings: &mut Vec<Vec<u8>>) -> Result<Expr, Fault> {
    let mut parser = Parser::new(text, names, strings)?;
    let value = assignment(&mut parser)?;
    if parser.is_end() { Ok(value) } else { Err(parser.unexpected("the end of the expression")) }
}

/// A check: a condition, and perhaps a message with its arguments, of which the first is a string. Without one, the text of
/// the condition is the message.
///
/// # Errors
/// The first fault.
pub fn parse_check(text: &str, names: &mut Names, strings: &mut Vec<Vec<u8>>) -> Result<Expr, Fault> {
    let mut parser = Parser::new(text, names, strings)?;
    let condition = assignment(&mut parser)?;
    let at = condition.at;
    let mut arguments = vec![condition];
    while parser.take(",") {
        if arguments.len() == 1 && !matches!(parser.peek(0), Some(TokenKind::Text(_))) {
            return Err(parser.unexpected("the message as a string"));
        }
        arguments.push(assignment(&mut parser)?);
        if !matches!(arguments[1].kind, ExprKind::Text(_)) {
            return Err(Fault::new(arguments[1].at, "the message must be a string and nothing more"));
        }
    }
    if !parser.is_end() {
        return Err(parser.unexpected("`,` or the end of the check"));
    }
    if arguments.len() == 1 {
        arguments.extend(message(text.trim(), at, strings));
    }
    Ok(Expr { kind: ExprKind::Call(Function::SatisfyMessage, arguments), at })
}

fn statement(parser: &mut Parser) -> Result<Statement, Fault> {
    parser.nested(|parser| {
        if starts_type(parser, 0) {
            let statement = declaration(parser)?;
            parser.expect(";")?;
            return Ok(statement);
        }
        if parser.take(";") {
            return Ok(Statement::Block(Vec::new()));
        }
        if parser.is_mark("{") {
            return block(parser);
        }
        if let Some(word) = parser.word(0)
            && let Some(statement) = keyword(parser, word)?
        {
            return Ok(statement);
        }
        let value = expression(parser)?;
        parser.expect(";")?;
        Ok(Statement::Expression(value))
    })
}

fn block(parser: &mut Parser) -> Result<Statement, Fault> {
    parser.expect("{")?;
    parser.names.open();
    let mut statements = Vec::new();
    while !parser.take("}") {
        statements.push(statement(parser)?);
    }
    parser.names.close();
    Ok(Statement::Block(statements))
}

/// The statement that a keyword begins, if the word is one.
fn keyword(parser: &mut Parser, word: &str) -> Result<Option<Statement>, Fault> {
    let found = match word {
        "if" => condition(parser)?,
        "for" | "while" | "do" => repetition(parser, word)?,
        "break" | "continue" => {
            if parser.loops == 0 {
                return Err(parser.fault(format!("`{word}` stands outside of a loop")));
            }
            parser.next();
            parser.expect(";")?;
            if word == "break" { Statement::Break } else { Statement::Continue }
        }
        "return" => {
            if !parser.returns {
                return Err(parser.fault("only `calc_offset` returns a value"));
            }
            parser.next();
            let value = expression(parser)?;
            parser.expect(";")?;
            Statement::Return(Some(value))
        }
        "switch" | "case" | "default" | "goto" | "static" | "struct" | "union" | "enum" | "typedef" | "extern"
        | "asm" => {
            return Err(parser.fault(format!("`{word}` isn't in the subset of C that can be evaluated")));
        }
        _ => return Ok(None),
    };
    Ok(Some(found))
}

fn condition(parser: &mut Parser) -> Result<Statement, Fault> {
    let mut arms = Vec::new();
    loop {
        parser.next();
        parser.expect("(")?;
        let test = expression(parser)?;
        parser.expect(")")?;
        arms.push((test, scoped(parser)?));
        if parser.word(0) != Some("else") {
            return Ok(Statement::If(arms, None));
        }
        parser.next();
        if parser.word(0) != Some("if") {
            let rest = scoped(parser)?;
            return Ok(Statement::If(arms, Some(Box::new(rest))));
        }
    }
}

/// A statement that is a block of its own.
fn scoped(parser: &mut Parser) -> Result<Statement, Fault> {
    parser.names.open();
    let statement = statement(parser);
    parser.names.close();
    statement
}

fn repetition(parser: &mut Parser, word: &str) -> Result<Statement, Fault> {
    let at = parser.at();
    parser.next();
    parser.names.open();
    let mut found = Loop {
        first: Statement::Block(Vec::new()),
        condition: None,
        next: None,
        body: Statement::Block(Vec::new()),
        once: word == "do",
        at,
    };
    if word != "do" {
        parser.expect("(")?;
    }
    match word {
        "for" => {
            if starts_type(parser, 0) {
                found.first = declaration(parser)?;
            } else if !parser.is_mark(";") {
                found.first = Statement::Expression(expression(parser)?);
            }
            parser.expect(";")?;
            if !parser.is_mark(";") {
                found.condition = Some(expression(parser)?);
            }
            parser.expect(";")?;
            if !parser.is_mark(")") {
                found.next = Some(expression(parser)?);
            }
        }
        "while" => found.condition = Some(expression(parser)?),
        _ => {}
    }
    if word != "do" {
        parser.expect(")")?;
    }
    parser.loops += 1;
    found.body = scoped(parser)?;
    parser.loops -= 1;
    if word == "do" {
        if parser.word(0) != Some("while") {
            return Err(parser.unexpected("`while`"));
        }
        parser.next();
        parser.expect("(")?;
        found.condition = Some(expression(parser)?);
        parser.expect(")")?;
        parser.expect(";")?;
    }
    parser.names.close();
    Ok(Statement::Loop(Box::new(found)))
}

fn declaration(parser: &mut Parser) -> Result<Statement, Fault> {
    let base = base_type(parser)?;
    let mut declarations = Vec::new();
    loop {
        let ty = stars(parser, base)?;
        declarations.push(declarator(parser, ty)?);
        if !parser.take(",") {
            return Ok(Statement::Declare(declarations));
        }
    }
}

fn declarator(parser: &mut Parser, ty: Type) -> Result<Declaration, Fault> {
    let at = parser.at();
    let name = parser.word(0).ok_or_else(|| parser.unexpected("the name of a variable"))?;
    if matches!(ty, Type { base: Base::Void | Base::Record(_), stars: 0 }) {
        return Err(parser.fault(format!("there are no variables of type `{ty}` here, only pointers to it")));
    }
    if !super::token::is_name(name) {
        return Err(parser.unexpected("the name of a variable"));
    }
    parser.next();
    let mut extent = None;
    let array = parser.take("[");
    if array {
        if !parser.is_mark("]") {
            extent = Some(assignment(parser)?);
        }
        parser.expect("]")?;
        if parser.is_mark("[") {
            return Err(parser.fault("arrays have one dimension in the subset of C that can be evaluated"));
        }
    }
    let slot = parser.names.declare(name, ty, array).map_err(|message| Fault::new(at, message))?;
    let initial = if !parser.take("=") {
        Initial::None
    } else if parser.is_mark("{") {
        Initial::Elements(braces(parser)?)
    } else {
        Initial::Value(assignment(parser)?)
    };
    match (&initial, array) {
        (Initial::Elements(_), false) => Err(Fault::new(at, "only arrays have their values in braces")),
        (Initial::Value(_), true) if !matches!(ty, Type::CHAR) => {
            Err(Fault::new(at, "arrays have their values in braces"))
        }
        (Initial::None, true) if extent.is_none() => Err(Fault::new(at, format!("the array '{name}' has no extent"))),
        _ => Ok(Declaration { slot, extent, initial, at }),
    }
}
