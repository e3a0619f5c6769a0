//! Parses Relay text, of both dialects: with a version in the first line and metadata at the end, or without.

use super::lexer::{Kind, Place, lex};
use super::syntax::{
    Argument, AttributeValue, Binding, Block, Expression, ExpressionId, ExpressionKind, Function, FunctionId, Module,
    Number, Parameter,
};
use mlc_ir::{DType, Diagnostic, Literal};

mod cursor;
mod number;
mod ty;

use cursor::{Parsed, Parser};

pub(super) use cursor::MOST_DEEP;

/// Parses a text.
///
/// # Errors
/// The first thing that breaks the grammar, with line and column.
pub(super) fn parse(text: &str) -> Result<Module<'_>, Diagnostic> {
    let tokens = lex(text).map_err(|fault| *fault)?;
    let mut parser = Parser { tokens, at: 0, depth: 0, module: Module::default() };
    parser.module().map_err(|fault| *fault)?;
    Ok(parser.module)
}

/// Operators between two expressions: mark, how strongly it binds, the name of the operator that it stands for.
const BINARY: [(&str, u32, &str); 10] = [
    ("*", 12, "multiply"),
    ("/", 12, "divide"),
    ("+", 10, "add"),
    ("-", 10, "subtract"),
    ("<", 8, "less"),
    ("<=", 8, "less_equal"),
    (">", 8, "greater"),
    (">=", 8, "greater_equal"),
    ("==", 7, "equal"),
    ("!=", 7, "not_equal"),
];

impl<'a> Parser<'a> {
    fn module(&mut self) -> Parsed<()> {
        if self.accept("#") {
            self.version()?;
        }
        loop {
            match *self.peek() {
                Kind::Word("def") => {
                    self.next();
                    self.definition()?;
                }
                Kind::Metadata(text) => {
                    self.module.metadata = Some((text, self.next().place));
                    return Ok(());
                }
                Kind::End => return Ok(()),
                Kind::Word("type") => return Err(self.place().error("definitions of types aren't supported")),
                _ => return Err(self.unexpected("`def`, `#[metadata]` or the end of the text")),
            }
        }
    }

    fn version(&mut self) -> Parsed<()> {
        self.expect("[")?;
        if !self.accept_word("version") {
            return Err(self.unexpected("`version`"));
        }
        self.expect("=")?;
        let token = self.next();
        match &token.kind {
            Kind::Text(version) if version.starts_with("0.0.") => self.expect("]"),
            Kind::Text(version) => Err(token.place.error(format!("the version is {version:?}, \"0.0.5\" expected"))),
            kind => Err(token.place.error(format!("{} found, a version in quotes expected", kind.describe()))),
        }
    }

    fn definition(&mut self) -> Parsed<()> {
        let place = self.place();
        let Kind::Global(name) = *self.peek() else { return Err(self.unexpected("`@` and a name")) };
        self.next();
        if self.module.definitions.iter().any(|(known, _)| *known == name) {
            return Err(place.error(format!("@{name} is defined twice")));
        }
        let function = self.function(place)?;
        self.module.definitions.push((name, function));
        Ok(())
    }

    /// A function from its parameters on.
    fn function(&mut self, place: Place) -> Parsed<FunctionId> {
        if self.at_mark("[") || self.at_mark("<") {
            return Err(self.place().error("parameters that stand for types aren't supported"));
        }
        self.expect("(")?;
        let (mut parameters, mut attributes) = (Vec::new(), Vec::new());
        while !self.at_mark(")") {
            match self.peek() {
                Kind::Local(_) => parameters.push(self.parameter()?),
                _ => attributes.push(self.argument()?),
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        if self.accept("->") {
            self.ty()?;
        }
        let body = self.block()?;
        self.module.functions.push(Function { place, parameters, attributes, body });
        Ok(self.module.functions.len() - 1)
    }

    /// `%name`, and all of a name that ends like a projection.
    fn variable(&mut self) -> Parsed<String> {
        let Kind::Local(name) = *self.peek() else { return Err(self.unexpected("`%` and a name")) };
        self.next();
        let mut name = name.to_owned();
        while let (Kind::Mark("."), Kind::Number(digits)) = (self.peek().clone(), self.second().clone()) {
            name = format!("{name}.{digits}");
            self.next();
            self.next();
        }
        Ok(name)
    }

    fn parameter(&mut self) -> Parsed<Parameter<'a>> {
        let place = self.place();
        let name = self.variable()?;
        let ty = if self.accept(":") { Some(self.ty()?) } else { None };
        Ok(Parameter { name, ty, place, comment: self.comment() })
    }

    fn block(&mut self) -> Parsed<Block<'a>> {
        self.nested(|parser| {
            parser.expect("{")?;
            let mut bindings = Vec::new();
            while let Some(binding) = parser.binding()? {
                bindings.push(binding);
            }
            let result = parser.expression(0)?;
            parser.expect("}")?;
            Ok(Block { bindings, result })
        })
    }

    fn binding(&mut self) -> Parsed<Option<Binding<'a>>> {
        let binding = match (self.peek().clone(), self.second()) {
            (Kind::Graph(number), Kind::Mark("=")) => {
                self.next();
                self.next();
                Binding::Graph(number, self.expression(0)?)
            }
            (Kind::Word("let"), _) => {
                self.next();
                let name = self.variable()?;
                if self.accept(":") {
                    self.ty()?;
                }
                self.expect("=")?;
                Binding::Let(name, self.expression(0)?)
            }
            (Kind::Word("free_var"), _) => {
                self.next();
                Binding::Free(self.parameter()?)
            }
            _ => return Ok(None),
        };
        self.expect(";")?;
        Ok(Some(binding))
    }

    fn push(&mut self, kind: ExpressionKind<'a>, place: Place, parts: &[ExpressionId]) -> Parsed<ExpressionId> {
        let depth = 1 + parts.iter().map(|&part| self.module.expressions[part].depth).max().unwrap_or(0);
        if depth > MOST_DEEP {
            return Err(place.error(format!("the expression nests deeper than {MOST_DEEP} levels")));
        }
        self.module.expressions.push(Expression { kind, place, comment: self.comment(), depth });
        Ok(self.module.expressions.len() - 1)
    }

    /// An expression whose operators bind more strongly than `floor`.
    fn expression(&mut self, floor: u32) -> Parsed<ExpressionId> {
        self.nested(|parser| {
            let mut left = parser.postfix()?;
            loop {
                let Kind::Mark(mark) = *parser.peek() else { return Ok(left) };
                let Some(&(_, strength, name)) = BINARY.iter().find(|(known, ..)| *known == mark) else {
                    return Ok(left);
                };
                if strength <= floor {
                    return Ok(left);
                }
                let place = parser.next().place;
                let right = parser.expression(strength)?;
                let kind = ExpressionKind::Operator(name, vec![left, right], Vec::new());
                left = parser.push(kind, place, &[left, right])?;
            }
        })
    }

    /// A primary expression with calls and projections behind it.
    fn postfix(&mut self) -> Parsed<ExpressionId> {
        let place = self.place();
        let mut expression = self.primary()?;
        loop {
            if self.at_mark("(") {
                let (arguments, attributes) = self.arguments()?;
                if let Some(attribute) = attributes.first() {
                    return Err(attribute.place.error("a call of a function has no attributes"));
                }
                let parts = [&arguments[..], &[expression]].concat();
                expression = self.push(ExpressionKind::Call(expression, arguments), place, &parts)?;
            } else if self.accept(".") {
                // `.0.1` looks like a dot and a number.
                let Kind::Number(digits) = *self.peek() else { return Err(self.unexpected("the number of a result")) };
                for digits in digits.split('.') {
                    let index = digits.parse().map_err(|_| self.unexpected("the number of a result"))?;
                    expression = self.push(ExpressionKind::Projection(expression, index), place, &[expression])?;
                }
                self.next();
                let comment = self.comment();
                self.module.expressions[expression].comment = comment;
            } else {
                return Ok(expression);
            }
        }
    }

    /// Arguments and attributes in parentheses.
    fn arguments(&mut self) -> Parsed<(Vec<ExpressionId>, Vec<Argument<'a>>)> {
        self.expect("(")?;
        let (mut arguments, mut attributes) = (Vec::new(), Vec::new());
        while !self.at_mark(")") {
            match (self.peek(), self.second()) {
                (Kind::Word(_), Kind::Mark("=")) => attributes.push(self.argument()?),
                _ => arguments.push(self.expression(0)?),
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok((arguments, attributes))
    }

    fn primary(&mut self) -> Parsed<ExpressionId> {
        let place = self.place();
        let kind = match self.peek().clone() {
            Kind::Local(name) => {
                self.next();
                ExpressionKind::Local(name.to_owned())
            }
            Kind::Graph(number) => {
                self.next();
                ExpressionKind::Graph(number)
            }
            Kind::Global(name) => {
                self.next();
                ExpressionKind::Global(name)
            }
            Kind::Number(_) | Kind::Mark("-") => ExpressionKind::Literal(Number(self.literal()?)),
            Kind::Mark("(") => return self.parenthesised(place),
            Kind::Word("fn") => {
                self.next();
                ExpressionKind::Function(self.function(place)?)
            }
            Kind::Word("if") => return self.conditional(place),
            Kind::Word("meta") => {
                let (key, index) = self.meta()?;
                ExpressionKind::Meta(key, index)
            }
            Kind::Word("True" | "False") => {
                let value = self.next().kind == Kind::Word("True");
                ExpressionKind::Literal(Number(Literal::integer(DType::Bool, i64::from(value))))
            }
            Kind::Word(word) if number::special(word).is_some() => ExpressionKind::Literal(Number(self.literal()?)),
            Kind::Word(name) if matches!(self.second(), Kind::Mark("(")) => {
                self.next();
                let (arguments, attributes) = self.arguments()?;
                let parts = arguments.clone();
                return self.push(ExpressionKind::Operator(name, arguments, attributes), place, &parts);
            }
            _ => return Err(self.unexpected("an expression")),
        };
        self.push(kind, place, &[])
    }

    /// A tuple, or an expression in parentheses.
    fn parenthesised(&mut self, place: Place) -> Parsed<ExpressionId> {
        self.expect("(")?;
        let mut parts = Vec::new();
        while !self.at_mark(")") {
            parts.push(self.expression(0)?);
            if self.accept(",") {
                continue;
            }
            if parts.len() == 1 {
                self.expect(")")?;
                return Ok(parts[0]);
            }
            break;
        }
        self.expect(")")?;
        self.push(ExpressionKind::Tuple(parts.clone()), place, &parts)
    }

    fn conditional(&mut self, place: Place) -> Parsed<ExpressionId> {
        self.next();
        self.expect("(")?;
        let condition = self.expression(0)?;
        self.expect(")")?;
        let first = self.block()?;
        if !self.accept_word("else") {
            return Err(self.unexpected("`else`"));
        }
        let second = self.block()?;
        let parts = [condition, first.result, second.result];
        self.push(ExpressionKind::If(condition, first, second), place, &parts)
    }

    /// `meta[key][index]`
    fn meta(&mut self) -> Parsed<(&'a str, usize)> {
        self.next();
        self.expect("[")?;
        let key = self.word("the kind of an object")?;
        self.expect("]")?;
        self.expect("[")?;
        let index = self.index("the number of an object")?;
        self.expect("]")?;
        Ok((key, index))
    }

    fn argument(&mut self) -> Parsed<Argument<'a>> {
        let place = self.place();
        let name = self.word("an attribute")?;
        self.expect("=")?;
        Ok(Argument { name, value: self.attribute_value()?, place })
    }

    fn attribute_value(&mut self) -> Parsed<AttributeValue> {
        self.nested(|parser| {
            Ok(match parser.peek().clone() {
                Kind::Mark("[") => {
                    parser.next();
                    let mut values = Vec::new();
                    while !parser.at_mark("]") {
                        values.push(parser.attribute_value()?);
                        if !parser.accept(",") {
                            break;
                        }
                    }
                    parser.expect("]")?;
                    AttributeValue::List(values)
                }
                Kind::Text(text) => {
                    parser.next();
                    AttributeValue::Text(text)
                }
                Kind::Word("True" | "False") => AttributeValue::Bool(parser.next().kind == Kind::Word("True")),
                Kind::Word("None") => {
                    parser.next();
                    AttributeValue::None
                }
                Kind::Word("meta") => {
                    let (key, index) = parser.meta()?;
                    AttributeValue::Meta(key.to_owned(), index)
                }
                _ => parser.attribute_number()?,
            })
        })
    }
}

#[cfg(test)]
mod tests;
