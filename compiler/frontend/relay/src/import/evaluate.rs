//! What expressions are: functions are inlined, branches are decided, operators are given to the engine.

use super::format::{Application, Relay, source_name};
use super::item::{Item, Tuple};
use super::scope::{Meaning, Scope};
use crate::lexer::Place;
use crate::metadata::Constants;
use crate::syntax::{Binding, Block, ExpressionId, ExpressionKind, Module, Number, Parameter};
use mlc_import::{Fault, Importer};
use mlc_ir::Code;
use std::rc::Rc;

/// How deep expressions of functions that call each other may nest.
const MOST_DEEP: usize = 240;

/// A text while it becomes a graph.
pub(super) struct Evaluator<'a> {
    pub module: &'a Module<'a>,
    pub importer: Importer<'a, Relay>,
    constants: Constants<'a>,
    depth: usize,
}

impl<'a> Evaluator<'a> {
    pub fn new(module: &'a Module<'a>, constants: Constants<'a>, importer: Importer<'a, Relay>) -> Self {
        Evaluator { module, importer, constants, depth: 0 }
    }

    pub fn report(&mut self, place: Place, fault: Fault) {
        self.importer.findings.report(place.location(), fault);
    }

    /// What an expression is; [`Meaning::UNKNOWN`] after a finding.
    fn evaluate(&mut self, id: ExpressionId, scope: &Rc<Scope<'a>>) -> Meaning<'a> {
        let place = self.module.expressions[id].place;
        if self.depth >= MOST_DEEP {
            self.report(
                place,
                Fault::variant(format!("functions and expressions nest deeper than {MOST_DEEP} levels")),
            );
            return Meaning::UNKNOWN;
        }
        if self.importer.is_full() {
            return Meaning::UNKNOWN;
        }
        self.depth += 1;
        let item = self.evaluate_kind(id, scope);
        self.depth -= 1;
        item.unwrap_or_else(|fault| {
            self.report(place, fault);
            Meaning::UNKNOWN
        })
    }

    fn evaluate_kind(&mut self, id: ExpressionId, scope: &Rc<Scope<'a>>) -> Result<Meaning<'a>, Fault> {
        let module = self.module;
        let expression = &module.expressions[id];
        Ok(match &expression.kind {
            ExpressionKind::Local(name) => scope.local(name).ok_or_else(|| undefined(&format!("%{name}")))?,
            ExpressionKind::Graph(number) => scope.graph(*number).ok_or_else(|| undefined(&format!("%{number}")))?,
            ExpressionKind::Global(name) => {
                let found = module.definitions.iter().find(|(known, _)| known == name);
                let (_, function) = found.ok_or_else(|| undefined(&format!("@{name}")))?;
                Meaning::Function(*function, Rc::new(Scope::default()))
            }
            ExpressionKind::Literal(Number(literal)) => {
                self.importer.builder.begin(&source_name("number", expression.comment));
                Meaning::of(self.importer.builder.literal(*literal))
            }
            ExpressionKind::Meta(key, index) => {
                let constant = self.constants.constant(key, *index)?;
                let name = source_name("constant", expression.comment);
                Meaning::of(self.importer.builder.named_constant(&name, constant))
            }
            ExpressionKind::Tuple(parts) => {
                let items = self.operands(parts, scope, "functions in tuples aren't supported")?;
                Meaning::Operand(Item::Tuple(Tuple::new(items)?))
            }
            ExpressionKind::Projection(tuple, index) => self.projection(*tuple, *index, scope)?,
            ExpressionKind::Operator(name, arguments, attributes) => {
                let operands = self.operands(arguments, scope, "functions that operators take aren't supported")?;
                let (place, comment) = (expression.place, expression.comment);
                self.operator(Application { name, place, comment, attributes }, operands)
            }
            ExpressionKind::Call(function, arguments) => {
                let function = self.evaluate(*function, scope);
                let operands = self.operands(arguments, scope, "functions that take functions aren't supported")?;
                self.call(function, operands)?
            }
            ExpressionKind::Function(function) => Meaning::Function(*function, Rc::clone(scope)),
            ExpressionKind::If(condition, first, second) => {
                let condition = self.evaluate(*condition, scope);
                let chosen = match self.truth(&condition)? {
                    None => return Ok(Meaning::UNKNOWN),
                    Some(true) => first,
                    Some(false) => second,
                };
                self.closed_block(chosen, &Scope::inside(scope))?
            }
        })
    }

    /// Which branch a condition chooses; `None` when that isn't known because of another finding.
    fn truth(&self, condition: &Meaning<'a>) -> Result<Option<bool>, Fault> {
        let Meaning::Operand(Item::Tensor(value)) = condition else {
            return if condition.is_unknown() { Ok(None) } else { Err(Fault::operands("a condition is a tensor")) };
        };
        let constant = self.importer.builder.graph().constant(*value).filter(|constant| constant.ty().elements() == 1);
        let constant = constant.ok_or_else(|| {
            Fault::variant("the condition depends on the data; only conditions of constants are supported")
        })?;
        Ok(Some(constant.to_tensor().to_floats()[0] != 0.0))
    }

    fn projection(&mut self, tuple: ExpressionId, index: usize, scope: &Rc<Scope<'a>>) -> Result<Meaning<'a>, Fault> {
        if let ExpressionKind::Local(name) = &self.module.expressions[tuple].kind
            && let Some(item) = scope.local(&format!("{name}.{index}"))
        {
            return Ok(item);
        }
        match self.evaluate(tuple, scope) {
            Meaning::Operand(Item::Tuple(Tuple { items, .. })) => {
                let item = items.get(index).cloned().ok_or_else(|| {
                    let message = format!("the tuple has {} members, there is no member {index}", items.len());
                    Fault::new(Code::UndefinedValue, message)
                });
                item.map(Meaning::Operand)
            }
            Meaning::Operand(Item::Unknown) => Ok(Meaning::UNKNOWN),
            _ => Err(Fault::operands(format!("member {index} of something that isn't a tuple"))),
        }
    }

    pub fn block(&mut self, block: &'a Block<'a>, scope: &Rc<Scope<'a>>) -> Meaning<'a> {
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
            scope.bind(&variable.name, Meaning::UNKNOWN);
        }
    }

    fn call(&mut self, function: Meaning<'a>, operands: Vec<Item>) -> Result<Meaning<'a>, Fault> {
        let (function, outer) = match function {
            Meaning::Function(function, outer) => (function, outer),
            Meaning::Operand(Item::Unknown) => return Ok(Meaning::UNKNOWN),
            Meaning::Operand(_) => return Err(Fault::operands("what is called isn't a function")),
        };
        let module = self.module;
        let function = &module.functions[function];
        if function.parameters.len() != operands.len() {
            let message =
                format!("the function takes {} arguments, {} are given", function.parameters.len(), operands.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        let scope = Scope::inside(&outer);
        for (parameter, item) in function.parameters.iter().zip(operands) {
            scope.bind(&parameter.name, Meaning::Operand(item));
        }
        self.closed_block(&function.body, &scope)
    }

    /// A block from which no function escapes, so that nothing holds on to its names.
    fn closed_block(&mut self, block: &'a Block<'a>, scope: &Rc<Scope<'a>>) -> Result<Meaning<'a>, Fault> {
        let result = self.block(block, scope);
        scope.clear();
        match result {
            Meaning::Function(..) => Err(Fault::variant("functions that give functions aren't supported")),
            item => Ok(item),
        }
    }

    /// What expressions are, none of which may be a function.
    fn operands(
        &mut self,
        expressions: &[ExpressionId],
        scope: &Rc<Scope<'a>>,
        function: &str,
    ) -> Result<Vec<Item>, Fault> {
        let meanings: Vec<Meaning<'a>> = expressions.iter().map(|&part| self.evaluate(part, scope)).collect();
        let operand = |meaning| match meaning {
            Meaning::Operand(item) => Ok(item),
            Meaning::Function(..) => Err(Fault::variant(function)),
        };
        meanings.into_iter().map(operand).collect()
    }

    fn operator(&mut self, application: Application<'a>, operands: Vec<Item>) -> Meaning<'a> {
        if !self.importer.count_operator() {
            return Meaning::UNKNOWN;
        }
        let site = match self.importer.site(application) {
            Ok(site) => site,
            Err(diagnostic) => {
                self.importer.findings.push(diagnostic);
                return Meaning::UNKNOWN;
            }
        };
        let results = self.importer.apply(&site, operands);
        let result = results.map(|results| results.and_then(|mut results| results.pop()).unwrap_or(Item::Unknown));
        Meaning::Operand(result.unwrap_or_else(|fault| {
            self.importer.report(&site, fault);
            Item::Unknown
        }))
    }
}

fn undefined(name: &str) -> Fault {
    Fault::new(Code::UndefinedValue, format!("{name} isn't defined"))
}
