//! The parser of expressions, with its stack on the heap.

use super::function::Function;
use super::tree::{Children, Expression, Node, NodeId};
use crate::value::parse_complex;

/// What is wrong in an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}")]
pub struct ExpressionError {
    /// Where in the text, in bytes from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: ExpressionErrorKind,
}

/// The ways in which an expression can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionErrorKind {
    /// There is nothing to evaluate.
    #[error("the expression is empty")]
    Empty,
    /// An opening bracket has no partner.
    #[error("`{0}` is never closed")]
    NotClosed(char),
    /// A closing bracket has no partner, or the wrong one.
    #[error("`{0}` closes nothing")]
    NotOpened(char),
    /// A parenthesis without a function's name before it.
    #[error("expected the name of a function before `(`")]
    NoFunction,
    /// A call of something that isn't a function.
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    /// A function with too few or too many arguments.
    #[error("`{}` takes {}, found {found}", .function.name(), arity_text(*.function))]
    Arity {
        /// The function.
        function: Function,
        /// How many arguments the text has.
        found: usize,
    },
    /// Two items without a comma between them, or more than one expression.
    #[error("expected `,` or a closing bracket")]
    NoSeparator,
    /// `@` without a plain number behind it.
    #[error("`{0}` isn't an input; expected @0, @1 and so on")]
    Input(String),
    /// A word that begins like a number and isn't one.
    #[error("`{0}` isn't a number")]
    Number(String),
    /// More than 2^32-1 parts.
    #[error("the expression is too long")]
    TooLong,
}

fn arity_text(function: Function) -> String {
    let arity = function.arity();
    match (*arity.start(), *arity.end()) {
        (1, 1) => "1 argument".to_owned(),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} or {most} arguments"),
    }
}

/// A call or list whose closing bracket hasn't come yet. The outermost one stands for the whole text.
struct Open {
    kind: OpenKind,
    column: usize,
    /// Where its items begin on the stack of finished items.
    first_item: usize,
    /// Whether an item has come since the last comma.
    has_item: bool,
}

enum OpenKind {
    Text,
    Call(Function),
    List,
}

struct Parser {
    expression: Expression,
    open: Vec<Open>,
    items: Vec<NodeId>,
}

pub(super) fn parse(text: &str) -> Result<Expression, ExpressionError> {
    // Every part takes at least one byte, so this bounds all indices.
    if u32::try_from(text.len()).is_err() {
        return Err(ExpressionError { column: 1, kind: ExpressionErrorKind::TooLong });
    }
    let mut parser = Parser {
        expression: Expression { nodes: Vec::new(), children: Vec::new() },
        open: vec![Open { kind: OpenKind::Text, column: 1, first_item: 0, has_item: false }],
        items: Vec::new(),
    };
    if pieces(text).any(|piece| piece.is_bare_function()) {
        return parser.polish(text);
    }
    for piece in pieces(text) {
        let opens_call = piece.mark == Some('(');
        if opens_call {
            parser.open_call(piece.word, piece.column)?;
        } else if !piece.word.is_empty() {
            parser.word(piece.word, piece.column)?;
        }
        if let (Some(mark), false) = (piece.mark, opens_call) {
            parser.mark(mark, piece.column + piece.word.len())?;
        }
    }
    parser.finish()
}

/// A word, perhaps an empty one, and the bracket or comma behind it.
struct Piece<'a> {
    word: &'a str,
    /// Where the word begins, in bytes from 1.
    column: usize,
    mark: Option<char>,
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(['(', ')', ',', '[', ']']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let piece = Piece { word, column: at + 1, mark: after.chars().next() };
        at += length + 1;
        Some(piece)
    })
}

impl Piece<'_> {
    /// Whether this is a function without its parenthesis. The exporter takes these two for numbers.
    fn is_bare_function(&self) -> bool {
        self.mark != Some('(') && [Function::Expm1, Function::Log1p].iter().any(|function| function.name() == self.word)
    }
}

impl Parser {
    fn fail<T>(column: usize, kind: ExpressionErrorKind) -> Result<T, ExpressionError> {
        Err(ExpressionError { column, kind })
    }

    /// Notes that an item begins here.
    fn begin_item(&mut self, column: usize) -> Result<(), ExpressionError> {
        match self.open.last_mut() {
            Some(open) if !open.has_item => {
                open.has_item = true;
                Ok(())
            }
            _ => Self::fail(column, ExpressionErrorKind::NoSeparator),
        }
    }

    /// Parses an expression in which the exporter took functions for numbers: all its parentheses are misplaced, such as in
    /// `add(log1p,@0),@1` for `add(log1p(@0),@1)`. What is left is Polish notation, where a function stands before as many
    /// arguments as it takes.
    fn polish(mut self, text: &str) -> Result<Expression, ExpressionError> {
        let words: Vec<Piece<'_>> = pieces(text).collect();
        if let Some(piece) = words.iter().find(|piece| matches!(piece.mark, Some('[' | ']'))) {
            return Self::fail(piece.column + piece.word.len(), ExpressionErrorKind::NoSeparator);
        }
        for piece in words.iter().rev().filter(|piece| !piece.word.is_empty()) {
            let (word, column) = (piece.word, piece.column);
            let Some(function) = Function::from_name(word) else {
                let node = literal(word).map_err(|kind| ExpressionError { column, kind })?;
                self.finish_item(node);
                continue;
            };
            let arity = *function.arity().end();
            let Some(first) = self.items.len().checked_sub(arity) else {
                return Self::fail(column, ExpressionErrorKind::Arity { function, found: self.items.len() });
            };
            // The last argument was found first.
            let children = self.add_children(first, true);
            self.finish_item(Node::Call(function, children));
        }
        match self.items[..] {
            [] => Self::fail(1, ExpressionErrorKind::Empty),
            [_] => Ok(self.expression),
            _ => Self::fail(1, ExpressionErrorKind::NoSeparator),
        }
    }

    /// Takes the items from one on, as the children of a node.
    fn add_children(&mut self, first_item: usize, reversed: bool) -> Children {
        let start = self.expression.children.len();
        self.expression.children.extend(self.items.drain(first_item..));
        if reversed {
            self.expression.children[start..].reverse();
        }
        Children { start: start as u32, end: self.expression.children.len() as u32 }
    }

    fn finish_item(&mut self, node: Node) {
        let id = self.add_node(node);
        self.items.push(id);
    }

    fn add_node(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.expression.nodes.len() as u32);
        self.expression.nodes.push(node);
        id
    }

    fn word(&mut self, word: &str, column: usize) -> Result<(), ExpressionError> {
        self.begin_item(column)?;
        let node = literal(word).map_err(|kind| ExpressionError { column, kind })?;
        self.finish_item(node);
        Ok(())
    }

    fn open_call(&mut self, name: &str, column: usize) -> Result<(), ExpressionError> {
        if name.is_empty() {
            return Self::fail(column, ExpressionErrorKind::NoFunction);
        }
        let Some(function) = Function::from_name(name) else {
            return Self::fail(column, ExpressionErrorKind::UnknownFunction(name.to_owned()));
        };
        self.begin_item(column)?;
        self.push_open(OpenKind::Call(function), column);
        Ok(())
    }

    fn push_open(&mut self, kind: OpenKind, column: usize) {
        self.open.push(Open { kind, column, first_item: self.items.len(), has_item: false });
    }

    /// One of `[ , ) ]`.
    fn mark(&mut self, mark: char, column: usize) -> Result<(), ExpressionError> {
        match mark {
            '[' => {
                self.begin_item(column)?;
                self.push_open(OpenKind::List, column);
                Ok(())
            }
            ',' => match self.open.last_mut() {
                Some(open) if !matches!(open.kind, OpenKind::Text) => {
                    open.has_item = false;
                    Ok(())
                }
                _ => Self::fail(column, ExpressionErrorKind::NoSeparator),
            },
            _ => self.close(mark, column),
        }
    }

    fn close(&mut self, mark: char, column: usize) -> Result<(), ExpressionError> {
        let matches = match self.open.last().map(|open| &open.kind) {
            Some(OpenKind::Call(_)) => mark == ')',
            Some(OpenKind::List) => mark == ']',
            Some(OpenKind::Text) | None => false,
        };
        let Some(open) = self.open.pop_if(|_| matches) else {
            return Self::fail(column, ExpressionErrorKind::NotOpened(mark));
        };
        let children = self.add_children(open.first_item, false);
        let found = (children.end - children.start) as usize;
        let node = match open.kind {
            OpenKind::Call(function) if !function.arity().contains(&found) => {
                return Self::fail(open.column, ExpressionErrorKind::Arity { function, found });
            }
            OpenKind::Call(function) => Node::Call(function, children),
            OpenKind::List | OpenKind::Text => Node::List(children),
        };
        self.finish_item(node);
        Ok(())
    }

    fn finish(mut self) -> Result<Expression, ExpressionError> {
        if let Some(open) = self.open.pop() {
            let kind = match open.kind {
                OpenKind::Text if self.expression.nodes.is_empty() => ExpressionErrorKind::Empty,
                OpenKind::Text => return Ok(self.expression),
                OpenKind::Call(_) => ExpressionErrorKind::NotClosed('('),
                OpenKind::List => ExpressionErrorKind::NotClosed('['),
            };
            return Self::fail(open.column, kind);
        }
        Self::fail(1, ExpressionErrorKind::Empty)
    }
}

fn literal(word: &str) -> Result<Node, ExpressionErrorKind> {
    if let Some(digits) = word.strip_prefix('@') {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        return match digits.parse() {
            Ok(index) if plain => Ok(Node::Input(index)),
            _ => Err(ExpressionErrorKind::Input(word.to_owned())),
        };
    }
    match word {
        "True" => return Ok(Node::Bool(true)),
        "False" => return Ok(Node::Bool(false)),
        "None" => return Ok(Node::None),
        "inf" => return Ok(Node::Float(f64::INFINITY)),
        "-inf" => return Ok(Node::Float(f64::NEG_INFINITY)),
        "nan" | "-nan" => return Ok(Node::Float(f64::NAN)),
        _ => {}
    }
    if !word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.')) {
        return Ok(Node::Word(word.to_owned()));
    }
    if let Ok(value) = word.parse() {
        return Ok(Node::Int(value));
    }
    if let Some(value) = parse_complex(word) {
        return Ok(Node::Complex(value));
    }
    match word.parse() {
        Ok(value) => Ok(Node::Float(value)),
        Err(_) => Err(ExpressionErrorKind::Number(word.to_owned())),
    }
}

impl Expression {
    /// Parses an expression, and checks that brackets balance and that every function gets its number of arguments.
    /// Empty items, as in `add(@0,,1)`, are skipped.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        parse(text)
    }
}
