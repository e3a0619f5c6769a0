//! Makes the graph again that [`write`](super::write()) printed: node by node, with nothing left out and nothing simplified.

mod comment;
mod finding;
mod map;

use super::lexer::Place;
use super::metadata::Constants;
use super::quantization;
use super::ranks::parse_ranks;
use super::spelling::{Source, unspell};
use super::syntax::{
    Argument, AttributeValue, Binding, ExpressionId, ExpressionKind, Function, FunctionId, Module, Number, Type,
};
use comment::NodeComment;
use finding::{at, unlike};
use mlc_import::Fault;
use mlc_ir::ops::Map;
use mlc_ir::{Attribute, Code, Diagnostic, Graph, Literal, NodeId, Op, State, Subgraph, TensorType, Value};
use std::collections::BTreeMap;

/// The attribute that tells a function that [`write`](super::write()) printed.
const MARK: &str = "mlc_graph";

/// How deep bodies of loops may nest.
const MOST_DEEP: usize = 32;

/// The function `@main`, if mlc printed it.
pub(super) fn printed_main(module: &Module<'_>) -> Option<FunctionId> {
    let (_, main) = module.definitions.iter().find(|(name, _)| *name == "main")?;
    attribute(&module.functions[*main], MARK).map(|_| *main)
}

/// The graph of a text whose `@main` mlc printed.
///
/// # Errors
/// The first thing that isn't as mlc prints it.
pub(super) fn restore(module: &Module<'_>, main: FunctionId) -> Result<Graph, Diagnostic> {
    let constants = Constants::parse(module.metadata)?;
    let mut restorer = Restorer { module, constants, bodies: BTreeMap::new(), depth: 0 };
    restorer.restored(main)
}

fn attribute<'m>(function: &'m Function<'_>, name: &str) -> Option<&'m Argument<'m>> {
    function.attributes.iter().find(|attribute| attribute.name == name)
}

struct Restorer<'a> {
    module: &'a Module<'a>,
    constants: Constants<'a>,
    /// Bodies of loops by their names.
    bodies: BTreeMap<String, Subgraph>,
    depth: usize,
}

/// A graph while its function is read.
struct Restored<'a> {
    graph: Graph,
    locals: BTreeMap<&'a str, NodeId>,
    numbers: BTreeMap<u32, NodeId>,
    functions: BTreeMap<u32, FunctionId>,
}

impl Source for Restorer<'_> {
    fn graph(&mut self, name: &str) -> Result<Subgraph, Fault> {
        self.body(name)
    }

    fn constant(&mut self, key: &str, index: usize) -> Result<Attribute, Fault> {
        self.constants.constant(key, index)
    }
}

impl<'a> Restorer<'a> {
    fn restored(&mut self, function: FunctionId) -> Result<Graph, Diagnostic> {
        let module = self.module;
        let function = &module.functions[function];
        let name = match attribute(function, MARK).map(|attribute| &attribute.value) {
            Some(AttributeValue::Text(name)) => name,
            _ => return Err(unlike(function.place, format!("the function needs an attribute `{MARK}` with a name"))),
        };
        let mut restored = Restored {
            graph: Graph::new(name.as_str()),
            locals: BTreeMap::new(),
            numbers: BTreeMap::new(),
            functions: BTreeMap::new(),
        };
        let places = places(function)?;
        let mut inputs = function.parameters.iter().zip(places).peekable();
        for binding in &function.body.bindings {
            while let Some((parameter, _)) = inputs.next_if(|(_, place)| *place <= restored.graph.len()) {
                self.input(&mut restored, parameter)?;
            }
            let Binding::Graph(number, expression) = binding else {
                return Err(unlike(function.place, "a function that mlc prints binds numbers only"));
            };
            self.binding(&mut restored, *number, *expression)?;
        }
        for (parameter, _) in inputs {
            self.input(&mut restored, parameter)?;
        }
        self.outputs(&mut restored, function)?;
        self.states(&mut restored, function)?;
        if let Some(attribute) = attribute(function, "mlc_quantization") {
            let wrong = || unlike(attribute.place, "`mlc_quantization` is a list of ports, scales and zero points");
            restored.graph.quantization = quantization::parse(&attribute.value).ok_or_else(wrong)?;
        }
        if let Some(attribute) = attribute(function, "mlc_ranks") {
            let distribution = parse_ranks(&attribute.value);
            let wrong = || unlike(attribute.place, "`mlc_ranks` is a rank, the number of ranks, and messages");
            restored.graph.distribution = Some(distribution.ok_or_else(wrong)?);
        }
        Ok(restored.graph)
    }

    fn input(
        &mut self,
        restored: &mut Restored<'a>,
        parameter: &'a super::syntax::Parameter<'a>,
    ) -> Result<(), Diagnostic> {
        let comment = NodeComment::parse(parameter.comment, parameter.place)?;
        let extents = match &parameter.ty {
            Some(Type::Tensor(dtype, extents)) => {
                extents.iter().copied().collect::<Option<Vec<usize>>>().map(|extents| (*dtype, extents))
            }
            _ => None,
        };
        let Some((dtype, extents)) = extents else { return Err(unlike(parameter.place, "an input needs a type")) };
        let ty = TensorType::new(dtype, &extents);
        if ty.checked_bytes().is_none() {
            return Err(at(parameter.place, Fault::operands(format!("the input {ty} is too large"))));
        }
        let value = restored.graph.add_input(&comment.name, ty);
        comment.settle(&mut restored.graph, value.node, parameter.place)?;
        restored.locals.insert(&parameter.name, value.node);
        Ok(())
    }

    fn binding(&mut self, restored: &mut Restored<'a>, number: u32, id: ExpressionId) -> Result<(), Diagnostic> {
        let module = self.module;
        let expression = &module.expressions[id];
        let place = expression.place;
        if let ExpressionKind::Function(function) = expression.kind {
            restored.functions.insert(number, function);
            return Ok(());
        }
        let comment = NodeComment::parse(expression.comment, place)?;
        let node = match &expression.kind {
            ExpressionKind::Literal(Number(literal)) => {
                restored.graph.add_constant(&comment.name, literal.to_attribute()).node
            }
            ExpressionKind::Meta(key, index) => {
                let constant = self.constants.constant(key, *index).map_err(|fault| at(place, fault))?;
                restored.graph.add_constant(&comment.name, constant).node
            }
            ExpressionKind::Call(function, arguments) => {
                let function = match &module.expressions[*function].kind {
                    ExpressionKind::Graph(number) => restored.functions.get(number),
                    _ => None,
                };
                let function =
                    function.ok_or_else(|| unlike(place, "what is called isn't a function of this graph"))?;
                let expression = map::expression(module, &module.functions[*function])?;
                let operands = self.operands(restored, arguments)?.0;
                add(&mut restored.graph, Map { expression }.into(), &operands, &comment, place)?
            }
            ExpressionKind::Operator(name, arguments, attributes) => {
                let (operands, literal) = self.operands(restored, arguments)?;
                let types: Vec<TensorType> =
                    operands.iter().map(|&operand| restored.graph.ty(operand).clone()).collect();
                let op = unspell(name, attributes, literal, &types, self);
                let op = op.map_err(|fault| at(place, fault))?;
                add(&mut restored.graph, op, &operands, &comment, place)?
            }
            _ => return Err(unlike(place, "mlc prints no such binding")),
        };
        comment.settle(&mut restored.graph, node, place)?;
        restored.numbers.insert(number, node);
        Ok(())
    }

    fn body(&mut self, name: &str) -> Result<Subgraph, Fault> {
        if let Some(body) = self.bodies.get(name) {
            return Ok(body.clone());
        }
        if self.depth >= MOST_DEEP {
            return Err(Fault::variant(format!("the bodies of loops nest deeper than {MOST_DEEP} levels")));
        }
        let found = self.module.definitions.iter().find(|(known, _)| *known == name);
        let (_, function) = found.ok_or_else(|| Fault::new(Code::UndefinedValue, format!("@{name} isn't defined")))?;
        self.depth += 1;
        let graph = self.restored(*function);
        self.depth -= 1;
        let graph = graph.map_err(|error| Fault::new(error.code, error.message))?;
        let body = Subgraph::new(graph);
        self.bodies.insert(name.to_owned(), body.clone());
        Ok(body)
    }

    /// Values of arguments; a number among them is returned beside them.
    fn operands(
        &self,
        restored: &Restored<'a>,
        arguments: &[ExpressionId],
    ) -> Result<(Vec<Value>, Option<Literal>), Diagnostic> {
        let (mut values, mut literal) = (Vec::new(), None);
        for &argument in arguments {
            let expression = &self.module.expressions[argument];
            match &expression.kind {
                ExpressionKind::Tuple(parts) => {
                    for &part in parts {
                        values.push(self.value(restored, part)?);
                    }
                }
                ExpressionKind::Literal(Number(number)) => literal = Some(*number),
                _ => values.push(self.value(restored, argument)?),
            }
        }
        Ok((values, literal))
    }

    fn value(&self, restored: &Restored<'a>, id: ExpressionId) -> Result<Value, Diagnostic> {
        let expression = &self.module.expressions[id];
        let node_of = |id: ExpressionId| match &self.module.expressions[id].kind {
            ExpressionKind::Graph(number) => restored.numbers.get(number).copied(),
            ExpressionKind::Local(name) => restored.locals.get(name.as_str()).copied(),
            _ => None,
        };
        let value = match expression.kind {
            ExpressionKind::Projection(tuple, slot) => {
                node_of(tuple).zip(u32::try_from(slot).ok()).map(|(node, slot)| Value { node, slot })
            }
            _ => node_of(id).map(Value::from),
        };
        let exists = |value: &Value| (value.slot as usize) < restored.graph.node(value.node).results.len();
        value
            .filter(exists)
            .ok_or_else(|| at(expression.place, Fault::new(Code::UndefinedValue, "the operand isn't defined before")))
    }

    fn outputs(&mut self, restored: &mut Restored<'a>, function: &'a Function<'a>) -> Result<(), Diagnostic> {
        let names = attribute(function, "output_tensor_names").map(|attribute| &attribute.value);
        let Some(AttributeValue::List(names)) = names else {
            return Err(unlike(function.place, "the function needs an attribute `output_tensor_names`"));
        };
        let (values, _) = self.operands(restored, &[function.body.result])?;
        if values.len() != names.len() {
            let message = format!("{} outputs have {} names", values.len(), names.len());
            return Err(unlike(function.place, message));
        }
        for (name, value) in names.iter().zip(values) {
            let AttributeValue::Text(name) = name else {
                return Err(unlike(function.place, "the name of an output is a string"));
            };
            restored.graph.add_output(name, value);
        }
        Ok(())
    }

    fn states(&mut self, restored: &mut Restored<'a>, function: &'a Function<'a>) -> Result<(), Diagnostic> {
        let Some(attribute) = attribute(function, "mlc_states") else { return Ok(()) };
        let wrong = || unlike(attribute.place, "a state is a name, an input, an output and a constant");
        let AttributeValue::List(states) = &attribute.value else { return Err(wrong()) };
        for state in states {
            let AttributeValue::List(parts) = state else { return Err(wrong()) };
            let [
                AttributeValue::Text(name),
                AttributeValue::Integer(input),
                AttributeValue::Integer(output),
                AttributeValue::Meta(key, index),
            ] = &parts[..]
            else {
                return Err(wrong());
            };
            let (Ok(input), Ok(output)) = (usize::try_from(*input), usize::try_from(*output)) else {
                return Err(wrong());
            };
            let initial = self.constants.constant(key, *index).map_err(|fault| at(attribute.place, fault))?;
            restored.graph.states.push(State { name: name.as_str().into(), input, output, initial });
        }
        Ok(())
    }
}

/// How many nodes there are before each input.
fn places(function: &Function<'_>) -> Result<Vec<usize>, Diagnostic> {
    let Some(attribute) = attribute(function, "mlc_places") else {
        return Ok((0..function.parameters.len()).collect());
    };
    let AttributeValue::List(places) = &attribute.value else {
        return Err(unlike(attribute.place, "`mlc_places` is a list"));
    };
    let places = places.iter().map(|place| match place {
        AttributeValue::Integer(place) => usize::try_from(*place).ok(),
        _ => None,
    });
    let places: Option<Vec<usize>> = places.collect();
    places
        .filter(|places| places.len() == function.parameters.len())
        .ok_or_else(|| unlike(attribute.place, "`mlc_places` has a number for each input"))
}

fn add(
    graph: &mut Graph,
    op: Op,
    operands: &[Value],
    comment: &NodeComment,
    place: Place,
) -> Result<NodeId, Diagnostic> {
    let name = op.name();
    let added = graph.add(op, operands, &comment.name);
    added.map_err(|error| at(place, Fault { message: format!("{name}: {error}"), ..Fault::from(error) }))
}
