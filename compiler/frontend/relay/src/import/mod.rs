//! From Relay text to a [`Graph`](mlc_ir::Graph): functions are inlined, branches are decided, each operator is looked up in
//! the tables of the files beside this one.
//!
//! Everything that stands in the way is reported in one go: what can't be imported is *unknown*, and so is what depends on it.

mod call;
pub(super) mod elementary;
mod elementwise;
mod image;
mod interface;
mod movement;
mod nn;
mod normalization;
mod qnn;
mod reduction;
mod registry;
mod scope;
mod slicing;
mod window;

use super::Parameters;
use super::lexer::Place;
use super::metadata::Constants;
use super::syntax::{Argument, Binding, Block, ExpressionId, ExpressionKind, FunctionId, Module, Number, Parameter};
use call::Call;
use indexmap::IndexMap;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_import::support::Use;
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Attribute, Code, Diagnostic, Location, Value};
use registry::{Handler, find_handler, unsupported};
use scope::Scope;
use std::rc::Rc;

pub use registry::operator_support;

/// What an expression stands for.
#[derive(Clone)]
enum Item<'a> {
    /// A tensor.
    Tensor(Value),
    /// Several.
    Tuple(Tuple<'a>),
    /// A function, and the names that it sees.
    Function(FunctionId, Rc<Scope<'a>>),
    /// What couldn't be imported.
    Unknown,
}

/// Several tensors, or tuples of them.
#[derive(Clone)]
struct Tuple<'a> {
    items: Rc<[Item<'a>]>,
    /// How many there are in all, those of inner tuples counted.
    members: usize,
    /// How deep tuples nest in it.
    depth: usize,
    /// Whether one of them couldn't be imported.
    unknown: bool,
}

impl<'a> Tuple<'a> {
    fn new(items: Vec<Item<'a>>) -> Result<Self, Fault> {
        let (mut members, mut depth, mut unknown) = (0usize, 0, false);
        for item in &items {
            match item {
                Item::Tensor(_) => members += 1,
                Item::Tuple(inner) => {
                    members = members.saturating_add(inner.members + 1);
                    depth = depth.max(inner.depth);
                    unknown |= inner.unknown;
                }
                Item::Unknown => unknown = true,
                Item::Function(..) => return Err(Fault::variant("functions in tuples aren't supported")),
            }
        }
        if members > MOST_MEMBERS || depth >= MOST_TUPLES {
            let message = format!("the tuple has more than {MOST_MEMBERS} members, or tuples {MOST_TUPLES} deep");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        Ok(Tuple { items: items.into(), members, depth: depth + 1, unknown })
    }
}

/// Most operators that are imported, functions counted with every use: no small text may keep mlc busy for long.
const MOST_OPERATORS: usize = 1 << 17;

/// Most members of a tuple once its tuples are written out.
const MOST_MEMBERS: usize = 1 << 16;

/// How deep tuples may nest.
const MOST_TUPLES: usize = 32;

/// How deep expressions of functions that call each other may nest.
const MOST_DEEP: usize = 240;

/// Most elements of a constant that is computed while a model is imported.
const MOST_FOLDED_ELEMENTS: usize = 1 << 16;

/// Makes a graph of a text.
///
/// # Errors
/// Everything that stands in the way.
pub(super) fn import(
    module: &Module<'_>,
    parameters: &Parameters,
    options: &ImportOptions,
) -> Result<Imported, Vec<Diagnostic>> {
    let constants = Constants::parse(module.metadata).map_err(|fault| vec![fault])?;
    let name = if options.name.is_empty() { "model" } else { &options.name };
    let mut builder = Builder::new(name);
    builder.fold_up_to(MOST_FOLDED_ELEMENTS);
    let unsupported = IndexMap::new();
    let mut importer =
        Importer { module, constants, builder, unsupported, findings: Vec::new(), operators: 0, depth: 0 };
    importer.import_main(parameters, options);
    if importer.failed() {
        return Err(importer.into_errors());
    }
    Ok(Imported { graph: importer.builder.finish(), warnings: importer.findings })
}

/// A text while it becomes a graph.
struct Importer<'a> {
    module: &'a Module<'a>,
    constants: Constants<'a>,
    builder: Builder,
    /// Operators that can't be imported, with their places and why.
    unsupported: IndexMap<&'a str, (Option<&'static str>, Vec<Use>)>,
    findings: Vec<Diagnostic>,
    /// Operators imported so far.
    operators: usize,
    depth: usize,
}

impl<'a> Importer<'a> {
    fn failed(&self) -> bool {
        !self.unsupported.is_empty() || self.findings.iter().any(Diagnostic::is_error)
    }

    fn into_errors(mut self) -> Vec<Diagnostic> {
        let mut errors: Vec<Diagnostic> =
            self.unsupported.iter().map(|(name, (reason, uses))| unsupported(name, *reason, uses)).collect();
        self.findings.sort_by_key(|finding| !finding.is_error());
        errors.extend(self.findings);
        errors
    }

    fn report(&mut self, place: Place, fault: Fault) {
        let mut diagnostic = Diagnostic::error(fault.code, place.location(), fault.message);
        if let Some(help) = fault.help {
            diagnostic = diagnostic.with_help(help);
        }
        self.findings.push(diagnostic);
    }

    /// What an expression is; [`Item::Unknown`] after a finding.
    fn evaluate(&mut self, id: ExpressionId, scope: &Rc<Scope<'a>>) -> Item<'a> {
        let place = self.module.expressions[id].place;
        if self.depth >= MOST_DEEP {
            self.report(
                place,
                Fault::variant(format!("functions and expressions nest deeper than {MOST_DEEP} levels")),
            );
            return Item::Unknown;
        }
        if self.operators > MOST_OPERATORS {
            return Item::Unknown;
        }
        self.depth += 1;
        let item = self.evaluate_kind(id, scope);
        self.depth -= 1;
        item.unwrap_or_else(|fault| {
            self.report(place, fault);
            Item::Unknown
        })
    }

    fn evaluate_kind(&mut self, id: ExpressionId, scope: &Rc<Scope<'a>>) -> Result<Item<'a>, Fault> {
        let module = self.module;
        let expression = &module.expressions[id];
        Ok(match &expression.kind {
            ExpressionKind::Local(name) => scope.local(name).ok_or_else(|| undefined(&format!("%{name}")))?,
            ExpressionKind::Graph(number) => scope.graph(*number).ok_or_else(|| undefined(&format!("%{number}")))?,
            ExpressionKind::Global(name) => {
                let found = module.definitions.iter().find(|(known, _)| known == name);
                let (_, function) = found.ok_or_else(|| undefined(&format!("@{name}")))?;
                Item::Function(*function, Rc::new(Scope::default()))
            }
            ExpressionKind::Literal(Number(literal)) => {
                self.begin("number", expression.comment);
                Item::Tensor(self.builder.literal(*literal))
            }
            ExpressionKind::Meta(key, index) => {
                let constant = self.constants.constant(key, *index)?;
                Item::Tensor(self.builder.named_constant(&source_name("constant", expression.comment), constant))
            }
            ExpressionKind::Tuple(parts) => {
                Item::Tuple(Tuple::new(parts.iter().map(|&part| self.evaluate(part, scope)).collect())?)
            }
            ExpressionKind::Projection(tuple, index) => self.projection(*tuple, *index, scope)?,
            ExpressionKind::Operator(name, arguments, attributes) => {
                let arguments: Vec<Item<'a>> = arguments.iter().map(|&part| self.evaluate(part, scope)).collect();
                return self.operator((name, expression.place, expression.comment), arguments, attributes);
            }
            ExpressionKind::Call(function, arguments) => {
                let function = self.evaluate(*function, scope);
                let arguments: Vec<Item<'a>> = arguments.iter().map(|&part| self.evaluate(part, scope)).collect();
                return self.call(function, arguments);
            }
            ExpressionKind::Function(function) => Item::Function(*function, Rc::clone(scope)),
            ExpressionKind::If(condition, first, second) => {
                let condition = self.evaluate(*condition, scope);
                let chosen = match self.truth(&condition)? {
                    None => return Ok(Item::Unknown),
                    Some(true) => first,
                    Some(false) => second,
                };
                self.closed_block(chosen, &Scope::inside(scope))?
            }
        })
    }

    /// Which branch a condition chooses; `None` when that isn't known because of another finding.
    fn truth(&self, condition: &Item<'a>) -> Result<Option<bool>, Fault> {
        let Item::Tensor(value) = condition else {
            return if matches!(condition, Item::Unknown) {
                Ok(None)
            } else {
                Err(Fault::operands("a condition is a tensor"))
            };
        };
        let constant = self.builder.graph().constant(*value).filter(|constant| constant.ty().elements() == 1);
        let constant = constant.ok_or_else(|| {
            Fault::variant("the condition depends on the data; only conditions of constants are supported")
        })?;
        Ok(Some(constant.to_tensor().to_floats()[0] != 0.0))
    }

    fn projection(&mut self, tuple: ExpressionId, index: usize, scope: &Rc<Scope<'a>>) -> Result<Item<'a>, Fault> {
        if let ExpressionKind::Local(name) = &self.module.expressions[tuple].kind
            && let Some(item) = scope.local(&format!("{name}.{index}"))
        {
            return Ok(item);
        }
        match self.evaluate(tuple, scope) {
            Item::Tuple(Tuple { items, .. }) => items.get(index).cloned().ok_or_else(|| {
                let message = format!("the tuple has {} members, there is no member {index}", items.len());
                Fault::new(Code::UndefinedValue, message)
            }),
            Item::Unknown => Ok(Item::Unknown),
            _ => Err(Fault::operands(format!("member {index} of something that isn't a tuple"))),
        }
    }

    fn block(&mut self, block: &'a Block<'a>, scope: &Rc<Scope<'a>>) -> Item<'a> {
        for binding in &block.bindings {
            match binding {
                Binding::Graph(number, expression) => {
                    let item = self.evaluate(*expression, scope);
                    scope.bind_graph(*number, item);
                }
                Binding::Let(name, expression) => {
                    let item = self.evaluate(*expression, scope);
                    scope.bind(name, item);
                }
                Binding::Free(variable) => self.free_variable(variable, scope),
            }
        }
        self.evaluate(block.result, scope)
    }

    fn free_variable(&mut self, variable: &'a Parameter<'a>, scope: &Rc<Scope<'a>>) {
        if scope.local(&variable.name).is_none() {
            let message = format!("the variable %{} is free: nothing gives it a value", variable.name);
            self.report(variable.place, Fault::new(Code::UndefinedValue, message));
            scope.bind(&variable.name, Item::Unknown);
        }
    }

    fn call(&mut self, function: Item<'a>, arguments: Vec<Item<'a>>) -> Result<Item<'a>, Fault> {
        let (function, outer) = match function {
            Item::Function(function, outer) => (function, outer),
            Item::Unknown => return Ok(Item::Unknown),
            _ => return Err(Fault::operands("what is called isn't a function")),
        };
        let module = self.module;
        let function = &module.functions[function];
        if function.parameters.len() != arguments.len() {
            let message =
                format!("the function takes {} arguments, {} are given", function.parameters.len(), arguments.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        if arguments.iter().any(|item| matches!(item, Item::Function(..))) {
            return Err(Fault::variant("functions that take functions aren't supported"));
        }
        let scope = Scope::inside(&outer);
        for (parameter, item) in function.parameters.iter().zip(arguments) {
            scope.bind(&parameter.name, item);
        }
        self.closed_block(&function.body, &scope)
    }

    /// A block from which no function escapes, so that nothing holds on to its names.
    fn closed_block(&mut self, block: &'a Block<'a>, scope: &Rc<Scope<'a>>) -> Result<Item<'a>, Fault> {
        let result = self.block(block, scope);
        scope.clear();
        match result {
            Item::Function(..) => Err(Fault::variant("functions that give functions aren't supported")),
            item => Ok(item),
        }
    }

    fn begin(&mut self, operator: &str, comment: Option<&str>) {
        self.builder.begin(&source_name(operator, comment));
    }

    fn operator(
        &mut self,
        (name, place, comment): (&'a str, Place, Option<&'a str>),
        arguments: Vec<Item<'a>>,
        attributes: &'a [Argument<'a>],
    ) -> Result<Item<'a>, Fault> {
        self.operators += 1;
        if self.operators > MOST_OPERATORS {
            let message = format!("the text has more than {MOST_OPERATORS} operators, functions written out");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        let source = source_name(name, comment);
        let location = place.location().at_operator(name, &*source);
        let import = match find_handler(name) {
            Some(Handler::Refused(reason)) => Err(Some(reason)),
            None => Err(None),
            Some(import) => Ok(import),
        };
        let import = match import {
            Ok(import) => import,
            Err(reason) => {
                self.unsupported.entry(name).or_insert((reason, Vec::new())).1.push((location, source));
                return Ok(Item::Unknown);
            }
        };
        if arguments.iter().any(is_unknown) {
            return Ok(Item::Unknown);
        }
        self.builder.begin(&source);
        let mut call = Call::new(&mut self.builder, arguments, attributes);
        let outcome = match import {
            Handler::One(import) => import(&mut call).map(Item::Tensor),
            Handler::Unary(function) => elementwise::unary(&mut call, function).map(Item::Tensor),
            Handler::Binary(function) => elementwise::binary(&mut call, function).map(Item::Tensor),
            Handler::Many(import) => import(&mut call)
                .and_then(|values| Tuple::new(values.into_iter().map(Item::Tensor).collect()))
                .map(Item::Tuple),
            Handler::Refused(_) => Ok(Item::Unknown),
        };
        let outcome = outcome.and_then(|item| call.check_used().map(|()| item));
        outcome.or_else(|fault| {
            let mut diagnostic = Diagnostic::error(fault.code, location, format!("{name}: {}", fault.message));
            if let Some(help) = fault.help {
                diagnostic = diagnostic.with_help(help);
            }
            self.findings.push(diagnostic);
            Ok(Item::Unknown)
        })
    }
}

fn is_unknown(item: &Item<'_>) -> bool {
    match item {
        Item::Unknown => true,
        Item::Tuple(tuple) => tuple.unknown,
        _ => false,
    }
}

fn undefined(name: &str) -> Fault {
    Fault::new(Code::UndefinedValue, format!("{name} isn't defined"))
}

/// The name of an operator's source: what the comment behind it says, or the operator.
fn source_name(operator: &str, comment: Option<&str>) -> String {
    let span = comment.and_then(|comment| comment.split_once("span=")).map(|(_, span)| span.trim());
    let span = span.map(|span| span.split_once("*/").map_or(span, |(span, _)| span));
    match span {
        // `file:line:column`
        Some(span) if !span.is_empty() => {
            let mut parts = span.rsplitn(3, ':');
            let numbers = parts.next().is_some_and(is_number) && parts.next().is_some_and(is_number);
            match parts.next().filter(|name| numbers && !name.is_empty()) {
                Some(name) => name.to_owned(),
                None => span.to_owned(),
            }
        }
        _ => operator.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests;
