//! Parses graphs.

use super::cursor::Cursor;
use super::lexer::{Kind, Token, lex, plain_or_quoted};
use super::suggest::nearest;
use super::{ConstantSource, VERSION, constants, expression, values};
use crate::diagnostics::{Code, Diagnostic, Location};
use crate::distribution::{Distribution, Message, Transfer};
use crate::fields::FieldValue;
use crate::graph::{Graph, NodeId, State, Value};
use crate::ops::OpKind;
use crate::subgraph::Subgraph;
use crate::types::TensorType;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How deep lists, operators and graphs may nest.
const MAXIMUM_DEPTH: usize = 32;

/// Faults are collected up to this many.
const MAXIMUM_FAULTS: usize = 50;

/// Parses the text form of a graph. Types behind operators may be left out; where they are given they are checked.
///
/// # Errors
/// Everything that is wrong with the text, with lines and columns.
pub fn parse(text: &str, constants: &dyn ConstantSource) -> Result<Graph, Vec<Diagnostic>> {
    let tokens = lex(text).map_err(|fault| vec![fault])?;
    let mut cursor = Cursor::new(tokens);
    version(&mut cursor).map_err(|fault| vec![fault])?;
    let graph = Parser::new(&mut cursor, constants, 0).parse()?;
    if *cursor.kind() == Kind::End { Ok(graph) } else { Err(vec![cursor.unexpected("the end of the text")]) }
}

fn version(cursor: &mut Cursor<'_>) -> Result<(), Diagnostic> {
    cursor.expect_word("mlc")?;
    let token = cursor.peek().clone();
    let version = values::extent(cursor)?;
    if version == VERSION as usize {
        return Ok(());
    }
    Err(token.error(format!("the text form's version is {version}, {VERSION} expected")))
}

/// Parses a graph inside of an operator, `depth` values deep. Of several faults the first is reported.
fn graph(cursor: &mut Cursor<'_>, constants: &dyn ConstantSource, depth: usize) -> Result<Graph, Diagnostic> {
    Parser::new(cursor, constants, depth).parse().map_err(|faults| {
        let more = faults.len() - 1;
        let place = Location::default();
        let first = faults.into_iter().next();
        let first = first.unwrap_or_else(|| Diagnostic::error(Code::TextSyntax, place, "the graph is faulty"));
        if more == 0 { first } else { first.with_note(format!("{more} more findings in this graph")) }
    })
}

struct Parser<'a, 'text> {
    cursor: &'a mut Cursor<'text>,
    constants: &'a dyn ConstantSource,
    /// How deep its operators' values are.
    depth: usize,
    graph: Graph,
    nodes: BTreeMap<String, NodeId>,
    /// Names whose definition is at fault; their uses aren't reported again.
    failed: BTreeSet<String>,
    faults: Vec<Diagnostic>,
}

/// The use of a value, and where it is.
type Operand<'text> = (Token<'text>, String, u32);

/// The name of an output, and its type where it is given.
type DeclaredOutput = (String, Option<TensorType>);

impl<'a, 'text> Parser<'a, 'text> {
    fn new(cursor: &'a mut Cursor<'text>, constants: &'a dyn ConstantSource, depth: usize) -> Self {
        let (nodes, failed, faults) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Parser { cursor, constants, depth, graph: Graph::default(), nodes, failed, faults }
    }

    fn parse(mut self) -> Result<Graph, Vec<Diagnostic>> {
        let outcome = self.graph();
        self.faults.extend(outcome.err());
        if self.faults.is_empty() { Ok(self.graph) } else { Err(self.faults) }
    }

    fn graph(&mut self) -> Result<(), Diagnostic> {
        self.cursor.expect_word("graph")?;
        let Kind::Symbol(name) = self.cursor.kind() else { return Err(self.cursor.unexpected("`@` and a name")) };
        self.graph.name = name.clone();
        self.cursor.next();
        self.inputs()?;
        let outputs = self.outputs()?;
        self.cursor.expect('{')?;
        while let Kind::Value(name, _) = self.cursor.kind() {
            let name = name.clone();
            let start = self.cursor.position();
            if let Err(fault) = self.statement() {
                if !self.nodes.contains_key(&name) {
                    self.failed.insert(name);
                }
                self.faults.push(fault);
                if self.faults.len() >= MAXIMUM_FAULTS {
                    return Ok(());
                }
                self.cursor.skip_to_statement(start);
            }
        }
        while self.cursor.accept_word("state") {
            self.state(&outputs)?;
        }
        while self.cursor.accept_word("quantization") {
            self.quantization(&outputs)?;
        }
        if self.cursor.accept_word("rank") {
            self.distribution(&outputs)?;
        }
        self.results(outputs)?;
        self.cursor.expect('}')
    }

    fn inputs(&mut self) -> Result<(), Diagnostic> {
        self.cursor.expect('(')?;
        if self.cursor.accept(')') {
            return Ok(());
        }
        loop {
            let name = self.new_name()?;
            self.cursor.expect(':')?;
            let ty = values::tensor_type(self.cursor)?;
            let origins = self.origins()?;
            let value = self.graph.add_input(&name, ty);
            self.define(name, value.node, origins);
            if self.cursor.accept(')') {
                return Ok(());
            }
            self.cursor.expect(',')?;
        }
    }

    fn outputs(&mut self) -> Result<Vec<DeclaredOutput>, Diagnostic> {
        if *self.cursor.kind() != Kind::Arrow {
            return Err(self.cursor.unexpected("`->`"));
        }
        self.cursor.next();
        self.cursor.expect('(')?;
        self.cursor.list(')', |cursor| {
            let name = cursor.text("the name of an output in quotes")?;
            let ty = if cursor.accept(':') { Some(values::tensor_type(cursor)?) } else { None };
            Ok((name, ty))
        })
    }

    /// The name of a definition, which must be new.
    fn new_name(&mut self) -> Result<String, Diagnostic> {
        let token = self.cursor.peek().clone();
        let Kind::Value(name, slot) = &token.kind else { return Err(self.cursor.unexpected("`%` and a name")) };
        if slot.is_some() {
            return Err(token.error("a definition names the node, not one of its results"));
        }
        if self.nodes.contains_key(name) || self.failed.contains(name) {
            let message = format!("%{} is defined twice", plain_or_quoted(name));
            return Err(token.fault(Code::DuplicateDefinition, message));
        }
        self.cursor.next();
        Ok(name.clone())
    }

    fn define(&mut self, name: String, node: NodeId, origins: BTreeSet<Arc<str>>) {
        *self.graph.origins_mut(node) = origins;
        self.nodes.insert(name, node);
    }

    fn origins(&mut self) -> Result<BTreeSet<Arc<str>>, Diagnostic> {
        if !self.cursor.accept_word("from") {
            return Ok(BTreeSet::new());
        }
        self.cursor.expect('(')?;
        let origins = self.cursor.list(')', |cursor| cursor.text("a name in quotes"))?;
        Ok(origins.into_iter().map(Arc::from).collect())
    }

    fn statement(&mut self) -> Result<(), Diagnostic> {
        let name_token = self.cursor.peek().clone();
        let name = self.new_name()?;
        self.cursor.expect('=')?;
        let token = self.cursor.peek().clone();
        let operator = self.cursor.word("the name of an operator")?;
        match operator {
            "input" => Err(token.error("inputs are declared behind the graph's name")),
            "constant" => {
                let value = constants::parse(self.cursor, self.constants)?;
                let origins = self.origins()?;
                let value = self.graph.add_constant(&name, value);
                self.define(name, value.node, origins);
                Ok(())
            }
            operator => {
                let kind = operator_kind(&token, operator)?;
                self.application(name, &name_token, kind, &token)
            }
        }
    }

    fn application(
        &mut self,
        name: String,
        name_token: &Token<'text>,
        kind: OpKind,
        token: &Token<'text>,
    ) -> Result<(), Diagnostic> {
        // Only a function of an archive may have nothing but results.
        let operands = match kind {
            OpKind::Extern if self.cursor.at_mark('{') => Vec::new(),
            _ => self.operands(name_token)?,
        };
        let fields = if self.cursor.at_mark('{') { self.fields(kind)? } else { Vec::new() };
        let types = self.types()?;
        let origins = self.origins()?;
        let op = kind.with_fields(&fields).map_err(|message| token.error(format!("{}: {message}", kind.name())))?;
        if operands.iter().any(|(_, operand, _)| self.failed.contains(operand)) {
            self.failed.insert(name);
            return Ok(());
        }
        let operands: Vec<Value> = operands.iter().map(|operand| self.value(operand)).collect::<Result<_, _>>()?;
        let added = self.graph.add(op, &operands, &name);
        let node = added.map_err(|error| token.error(format!("{}: {error}", kind.name())))?;
        self.define(name, node, origins);
        let found = &self.graph.node(node).results;
        match types {
            Some((token, types)) if types != *found => {
                let found: Vec<String> = found.iter().map(ToString::to_string).collect();
                Err(token.fault(Code::ShapeMismatch, format!("the results are {}", found.join(", "))))
            }
            _ => Ok(()),
        }
    }

    fn fields(&mut self, kind: OpKind) -> Result<Vec<(String, FieldValue)>, Diagnostic> {
        fields(self.cursor, self.constants, kind, self.depth)
    }

    /// Operands up to the fields or the types. A name with a definition's `=` behind it belongs to the next statement.
    fn operands(&mut self, own: &Token<'text>) -> Result<Vec<Operand<'text>>, Diagnostic> {
        let mut operands = Vec::new();
        if !matches!(self.cursor.kind(), Kind::Value(..)) || *self.cursor.second() == Kind::Mark('=') {
            return Err(own.error("the operator has no operands"));
        }
        loop {
            operands.push(self.operand()?);
            if !self.cursor.accept(',') {
                return Ok(operands);
            }
        }
    }

    fn operand(&mut self) -> Result<Operand<'text>, Diagnostic> {
        let token = self.cursor.peek().clone();
        let Kind::Value(name, slot) = token.kind.clone() else { return Err(self.cursor.unexpected("an operand")) };
        self.cursor.next();
        Ok((token, name, slot.unwrap_or(0)))
    }

    fn types(&mut self) -> Result<Option<(Token<'text>, Vec<TensorType>)>, Diagnostic> {
        if !self.cursor.accept(':') {
            return Ok(None);
        }
        let token = self.cursor.peek().clone();
        let mut types = Vec::new();
        loop {
            types.push(values::tensor_type(self.cursor)?);
            if !self.cursor.accept(',') {
                return Ok(Some((token, types)));
            }
        }
    }

    fn value(&self, (token, name, slot): &Operand<'text>) -> Result<Value, Diagnostic> {
        let Some(&node) = self.nodes.get(name) else {
            let fault = token.fault(Code::UndefinedValue, format!("%{} isn't defined before", plain_or_quoted(name)));
            return Err(match nearest(name, self.nodes.keys().map(String::as_str)) {
                Some(near) => fault.with_help(format!("is %{} meant?", plain_or_quoted(near))),
                None => fault,
            });
        };
        let count = self.graph.node(node).results.len();
        if *slot as usize >= count {
            let message = format!("%{} has {count} results, there is no result {slot}", plain_or_quoted(name));
            return Err(token.fault(Code::UndefinedValue, message));
        }
        Ok(Value { node, slot: *slot })
    }

    /// A state, behind the word itself.
    fn state(&mut self, outputs: &[DeclaredOutput]) -> Result<(), Diagnostic> {
        let name = self.cursor.text("the name of a state in quotes")?;
        self.cursor.expect_word("from")?;
        let output = self.output_number(outputs)?;
        self.cursor.expect_word("to")?;
        let input = self.input_number("a state goes to an input of the graph")?;
        self.cursor.expect('=')?;
        let initial = constants::parse(self.cursor, self.constants)?;
        self.graph.states.push(State { name: name.into(), input, output, initial });
        Ok(())
    }

    /// What integers at an input or an output stand for, behind the word itself.
    fn quantization(&mut self, outputs: &[DeclaredOutput]) -> Result<(), Diagnostic> {
        if matches!(self.cursor.kind(), Kind::Value(..)) {
            let input = self.input_number("inputs and outputs of the graph have a quantization")?;
            let own = values::quantization(self.cursor)?;
            self.graph.quantization.inputs.insert(input, own);
        } else {
            let output = self.output_number(outputs)?;
            let own = values::quantization(self.cursor)?;
            self.graph.quantization.outputs.insert(output, own);
        }
        Ok(())
    }

    /// The graph's place among the ranks, behind the first word, and its messages.
    fn distribution(&mut self, outputs: &[DeclaredOutput]) -> Result<(), Diagnostic> {
        let rank = values::extent(self.cursor)?;
        self.cursor.expect_word("of")?;
        let count = values::extent(self.cursor)?;
        let mut messages = Vec::new();
        loop {
            let transfer = if self.cursor.accept_word("send") {
                let output = self.output_number(outputs)?;
                self.cursor.expect_word("to")?;
                Transfer::Send { output }
            } else if self.cursor.accept_word("receive") {
                let input = self.input_number("an input of the graph is received")?;
                self.cursor.expect_word("from")?;
                Transfer::Receive { input }
            } else {
                break;
            };
            let peer = values::extent(self.cursor)?;
            self.cursor.expect_word("tag")?;
            messages.push(Message { transfer, peer, tag: values::tag(self.cursor)? });
        }
        self.graph.distribution = Some(Distribution { rank, count, messages });
        Ok(())
    }

    /// The number of an output that is named in quotes.
    fn output_number(&mut self, outputs: &[DeclaredOutput]) -> Result<usize, Diagnostic> {
        let token = self.cursor.peek().clone();
        let text = self.cursor.text("the name of an output in quotes")?;
        let output = outputs.iter().position(|(output, _)| *output == text);
        output.ok_or_else(|| token.fault(Code::UndefinedValue, format!("there is no output \"{text}\"")))
    }

    /// The number of the input that the value here is; `otherwise` says what is wrong when it is none.
    fn input_number(&mut self, otherwise: &str) -> Result<usize, Diagnostic> {
        let operand = self.operand()?;
        let value = self.value(&operand)?;
        let input = self.graph.inputs().iter().position(|&input| Value::from(input) == value);
        input.ok_or_else(|| operand.0.error(otherwise))
    }

    fn results(&mut self, outputs: Vec<DeclaredOutput>) -> Result<(), Diagnostic> {
        let token = self.cursor.peek().clone();
        self.cursor.expect_word("return")?;
        let mut operands = Vec::new();
        if !self.cursor.at_mark('}') {
            operands.push(self.operand()?);
            while self.cursor.accept(',') {
                operands.push(self.operand()?);
            }
        }
        if operands.len() != outputs.len() {
            let message = format!("{} values returned, {} outputs declared", operands.len(), outputs.len());
            return Err(token.fault(Code::CountMismatch, message));
        }
        for ((name, ty), operand) in outputs.into_iter().zip(operands) {
            if self.failed.contains(&operand.1) {
                continue;
            }
            let value = self.value(&operand)?;
            let found = self.graph.ty(value);
            if ty.as_ref().is_some_and(|ty| ty != found) {
                return Err(operand.0.fault(Code::ShapeMismatch, format!("output \"{name}\" is {found}")));
            }
            self.graph.add_output(&name, value);
        }
        Ok(())
    }
}

/// Parses fields in braces.
fn fields(
    cursor: &mut Cursor<'_>,
    constants: &dyn ConstantSource,
    kind: OpKind,
    depth: usize,
) -> Result<Vec<(String, FieldValue)>, Diagnostic> {
    cursor.expect('{')?;
    cursor.list('}', |cursor| {
        let token = cursor.peek().clone();
        let name = cursor.word("the name of a field")?;
        let known = kind.field_descriptions().iter().map(|(known, _)| *known);
        if !known.clone().any(|known| known == name) {
            let fault = token.error(format!("{} has no field {name}", kind.name()));
            let list: Vec<&str> = known.clone().collect();
            return Err(match nearest(name, known) {
                Some(near) => fault.with_help(format!("is {near} meant?")),
                None => fault.with_note(format!("its fields are: {}", list.join(", "))),
            });
        }
        cursor.expect('=')?;
        Ok((name.to_owned(), value(cursor, constants, depth)?))
    })
}

/// Finds an operator by name.
fn operator_kind(token: &Token<'_>, name: &str) -> Result<OpKind, Diagnostic> {
    OpKind::parse(name).ok_or_else(|| {
        let fault = token.error(format!("there is no operator {name}"));
        match nearest(name, OpKind::ALL.iter().map(|kind| kind.name())) {
            Some(near) => fault.with_help(format!("is {near} meant?")),
            None => fault.with_help("`mlc ops` lists the operators"),
        }
    })
}

fn value(cursor: &mut Cursor<'_>, constants: &dyn ConstantSource, depth: usize) -> Result<FieldValue, Diagnostic> {
    let token = cursor.peek().clone();
    if depth >= MAXIMUM_DEPTH {
        return Err(token.error(format!("values nest deeper than {MAXIMUM_DEPTH}")));
    }
    match token.kind {
        Kind::Mark('[') => {
            cursor.next();
            cursor.list(']', |cursor| value(cursor, constants, depth + 1)).map(FieldValue::List)
        }
        Kind::Number(_) => values::number(cursor),
        Kind::Text(text) => {
            cursor.next();
            Ok(FieldValue::Text(text.into()))
        }
        Kind::Word(word) => word_value(cursor, constants, &token, word, depth),
        _ => Err(cursor.unexpected("a value")),
    }
}

fn word_value(
    cursor: &mut Cursor<'_>,
    constants: &dyn ConstantSource,
    token: &Token<'_>,
    word: &str,
    depth: usize,
) -> Result<FieldValue, Diagnostic> {
    if let Some(special) = values::special_number(cursor)? {
        return Ok(special);
    }
    match cursor.second() {
        Kind::Symbol(_) if word == "graph" => {
            graph(cursor, constants, depth + 1).map(|graph| FieldValue::of_graph(Subgraph::new(graph)))
        }
        Kind::Mark('(' | '=') => expression::parse(cursor).map(FieldValue::Expression),
        Kind::Mark('[' | '<') => constants::type_or_constant(cursor, constants),
        Kind::Mark('{') => {
            let kind = operator_kind(token, word)?;
            cursor.next();
            let fields = fields(cursor, constants, kind, depth + 1)?;
            let op = kind.with_fields(&fields).map_err(|message| token.error(format!("{word}: {message}")))?;
            Ok(FieldValue::of_operator(op))
        }
        _ => {
            cursor.next();
            Ok(match word {
                "true" => FieldValue::Bool(true),
                "false" => FieldValue::Bool(false),
                word => FieldValue::Word(word.to_owned()),
            })
        }
    }
}
