//! From an ONNX [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this one,
//! and expressed by the operators of the intermediate representation.
//!
//! What only depends on constants and shapes is computed at once, node by node, so that shape arithmetic leaves no trace.
//! The model's own functions are inlined, subgraphs see the values around them.
//!
//! Everything that stands in the way is reported in one go: an operator that can't be imported leaves its results *unknown*,
//! and what depends on them is looked up, but not imported. Operators that aren't supported are counted by their type.

mod arithmetic;
mod attention;
mod body;
mod call;
mod classical;
mod contributed;
mod control;
#[cfg(test)]
mod control_tests;
mod conversion;
mod convolution;
mod einsum;
mod elementwise;
mod ensemble;
mod function;
mod indexing;
mod integer_products;
mod interface;
mod interpolation;
mod joining;
mod labels;
mod linear;
mod linear_attention;
mod matrix;
mod ngrams;
mod normalization;
mod ordering;
mod pooling;
mod qlinear;
mod quantization;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod rotary;
mod sampling;
mod scope;
mod shape;
mod signal;
mod slicing;
mod softmax;
mod structure;
mod support_vectors;
mod turns;
mod window;

use super::external::ExternalData;
use super::proto::{GraphProto, NodeProto};
use super::read::{Model, normalized_domain};
use body::Body;
use call::Call;
use indexmap::IndexMap;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Code, Diagnostic, Location, Value};
use registry::{Handler, Unsupported, find_handler};
use scope::Scope;
use std::collections::BTreeMap;
use std::rc::Rc;

pub use registry::operator_support;

/// What a name of the model stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// A tensor.
    Tensor(Value),
    /// A sequence of tensors, known while the model is imported.
    Sequence(Vec<Value>),
    /// Nothing: an optional operand or result that isn't there.
    Absent,
    /// The result of an operator that couldn't be imported.
    Unknown,
}

/// Most operators that are imported, functions, unrolled loops and branches counted with every use: no small file may keep
/// mlc busy for long.
const MOST_NODES: usize = 1 << 20;

/// Most elements of a constant that is computed while a model is imported; larger ones are left to the optimiser.
const MOST_FOLDED_ELEMENTS: usize = 1 << 16;

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: operators that aren't supported, all at once; attributes and operands that don't fit;
/// unknown input shapes.
pub fn import(
    model: &Model,
    external: &dyn ExternalData,
    options: &ImportOptions,
) -> Result<Imported, Vec<Diagnostic>> {
    let name = if options.name.is_empty() { "model" } else { &options.name };
    let mut builder = Builder::new(name);
    builder.fold_up_to(MOST_FOLDED_ELEMENTS);
    let mut importer = Importer {
        model,
        external,
        builder,
        scopes: vec![Scope::of_model(model)],
        bodies: Vec::new(),
        dimensions: BTreeMap::new(),
        packed: vec![IndexMap::new()],
        unsupported: Unsupported::default(),
        nodes: 0,
        findings: Vec::new(),
    };
    importer.import_inputs(options);
    if !importer.failed() {
        importer.import_nodes(&model.graph.node);
    }
    if !importer.failed() {
        importer.import_outputs();
    }
    if importer.failed() {
        return Err(importer.into_errors());
    }
    Ok(Imported { graph: importer.builder.finish(), warnings: importer.findings })
}

/// A model while it becomes a graph.
pub(super) struct Importer<'a> {
    model: &'a Model,
    external: &'a dyn ExternalData,
    builder: Builder,
    /// Names by the graph or function that they belong to, outermost first.
    scopes: Vec<Scope<'a>>,
    /// Bodies of loops around what is being imported, outermost first.
    bodies: Vec<Body>,
    /// Extents of named dimensions.
    dimensions: BTreeMap<String, usize>,
    /// Bits of an element, for values that hold integers narrower than a byte; for each graph, outermost first.
    packed: Vec<IndexMap<Value, usize>>,
    unsupported: Unsupported,
    /// Operators imported so far.
    nodes: usize,
    findings: Vec<Diagnostic>,
}

/// An operator of the model where it stands.
#[derive(Debug, Clone)]
pub(super) struct Site<'a> {
    pub node: &'a NodeProto,
    /// Its operator set.
    pub domain: &'a str,
    /// The version of its operator set.
    pub version: i64,
    /// Its name, or that of its first result, after the names of the functions and graphs around it.
    pub name: String,
}

impl Site<'_> {
    /// Where it is, for messages.
    pub fn location(&self) -> Location {
        Location::default().at_operator(&self.node.op_type, &self.name)
    }
}

impl<'a> Importer<'a> {
    fn failed(&self) -> bool {
        !self.unsupported.is_empty() || self.findings.iter().any(Diagnostic::is_error)
    }

    /// All findings, errors first.
    fn into_errors(mut self) -> Vec<Diagnostic> {
        let mut errors = self.unsupported.diagnostics();
        self.findings.sort_by_key(|finding| !finding.is_error());
        errors.extend(self.findings);
        errors
    }

    /// Notes an error at an operator.
    pub(super) fn report(&mut self, site: &Site<'_>, fault: Fault) {
        let message = format!("{} `{}`: {}", site.node.op_type, site.name, fault.message);
        let mut diagnostic = Diagnostic::error(fault.code, site.location(), message);
        if let Some(help) = fault.help {
            diagnostic = diagnostic.with_help(help);
        }
        self.findings.push(diagnostic);
    }

    fn warn(&mut self, site: &Site<'_>, code: Code, message: &str) {
        let message = format!("{} `{}`: {message}", site.node.op_type, site.name);
        self.findings.push(Diagnostic::warning(code, site.location(), message));
    }

    fn site(&self, node: &'a NodeProto) -> Result<Site<'a>, Diagnostic> {
        let scope = self.scope();
        let domain = normalized_domain(&node.domain);
        let own = match (node.name.as_str(), node.output.iter().find(|output| !output.is_empty())) {
            ("", Some(output)) => output.as_str(),
            ("", None) => node.op_type.as_str(),
            (name, _) => name,
        };
        let name = format!("{}{own}", scope.prefix);
        match scope.opsets.get(domain) {
            Some(&version) => Ok(Site { node, domain, version, name }),
            None => {
                let set = if domain.is_empty() { "standard operators" } else { domain };
                let message =
                    format!("{} `{name}`: the model doesn't say which version of the {set} it uses", node.op_type);
                let location = Location::default().at_operator(&node.op_type, name);
                Err(Diagnostic::error(Code::UndefinedValue, location, message))
            }
        }
    }

    /// Imports operators in their order into the innermost scope.
    pub(super) fn import_nodes(&mut self, nodes: &'a [NodeProto]) {
        for node in nodes {
            self.nodes += 1;
            if self.nodes > MOST_NODES {
                let message =
                    format!("the model has more than {MOST_NODES} operators, loops and functions written out");
                let diagnostic = Diagnostic::error(Code::NumberOutOfRange, Location::default(), message);
                if self.nodes == MOST_NODES + 1 {
                    self.findings.push(diagnostic);
                }
                return;
            }
            match self.site(node) {
                Ok(site) => self.import_node(&site),
                Err(diagnostic) => {
                    self.findings.push(diagnostic);
                    self.bind_unknown(node);
                }
            }
        }
    }

    fn bind_unknown(&mut self, node: &'a NodeProto) {
        for output in &node.output {
            self.scope_mut().items.insert(output, Item::Unknown);
        }
    }

    fn import_node(&mut self, site: &Site<'a>) {
        match self.results_of(site) {
            Ok(Some(results)) => {
                if let Err(fault) = self.bind_results(site, results) {
                    self.report(site, fault);
                }
            }
            Ok(None) => self.bind_unknown(site.node),
            Err(fault) => {
                self.report(site, fault);
                self.bind_unknown(site.node);
            }
        }
    }

    /// What an operator computes; `None` when that can't be known.
    fn results_of(&mut self, site: &Site<'a>) -> Result<Option<Vec<Item>>, Fault> {
        let inputs = site.node.input.iter().map(|name| self.resolve(name)).collect::<Result<Vec<Item>, Fault>>()?;
        let known = !inputs.contains(&Item::Unknown);
        let model = self.model;
        if let Some(function) = model.functions.get(&(site.domain.to_owned(), site.node.op_type.clone())) {
            return self.call_function(site, function, inputs).map(Some);
        }
        let Some(operator) = find_handler(site.domain, &site.node.op_type) else {
            self.unsupported.add(site, None);
            return Ok(None);
        };
        if let Handler::Refused(reason) = operator.handler {
            self.unsupported.add(site, Some(reason));
            return Ok(None);
        }
        if site.version < operator.since {
            let message = format!("version {} isn't supported, version {} and later are", site.version, operator.since);
            return Err(Fault::variant(message)
                .with_help("convert the model to a newer opset, for example with onnx.version_converter"));
        }
        if !known {
            self.look_into_subgraphs(site);
            return Ok(None);
        }
        if let Handler::Control(import) = operator.handler {
            return import(self, site, inputs).map(Some);
        }
        let attributes = self.attributes(site.node)?;
        self.builder.begin(&site.name);
        let packed = &mut self.packed[self.bodies.len()];
        let mut call = Call::new(site.clone(), &mut self.builder, packed, self.external, inputs, attributes);
        let results = match operator.handler {
            Handler::One(import) => import(&mut call).map(|value| vec![Item::Tensor(value)]),
            Handler::Many(import) => import(&mut call),
            Handler::Control(_) | Handler::Refused(_) => Ok(Vec::new()),
        }?;
        let (unused, warnings) = (call.unused_attributes(), std::mem::take(&mut call.warnings));
        call.check_inputs_used()?;
        for name in unused {
            self.warn(site, Code::Unused, &format!("attribute `{name}` isn't known and doesn't count"));
        }
        for warning in warnings {
            self.warn(site, Code::VariantUnsupported, &warning);
        }
        Ok(Some(results))
    }

    fn bind_results(&mut self, site: &Site<'a>, results: Vec<Item>) -> Result<(), Fault> {
        let wanted = site.node.output.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        if wanted > results.len() {
            let message = format!("the operator gives {} results, the model names {wanted}", results.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        for (name, item) in site.node.output.iter().zip(results) {
            if !name.is_empty() {
                self.define(name, item)?;
            }
        }
        Ok(())
    }

    /// Counts the operators of an operator's graphs that aren't supported, when the operator itself can't be imported.
    fn look_into_subgraphs(&mut self, site: &Site<'a>) {
        let mut pending: Vec<&'a GraphProto> = site.node.graphs().collect();
        while let Some(graph) = pending.pop() {
            for node in &graph.node {
                pending.extend(node.graphs());
                let Ok(inner) = self.site(node) else { continue };
                let key = (inner.domain.to_owned(), node.op_type.clone());
                if self.model.functions.contains_key(&key) {
                    continue;
                }
                match find_handler(inner.domain, &node.op_type) {
                    None => self.unsupported.add(&inner, None),
                    Some(operator) => {
                        if let Handler::Refused(reason) = operator.handler {
                            self.unsupported.add(&inner, Some(reason));
                        }
                    }
                }
            }
        }
    }

    /// Imports a graph that an operator holds: its inputs get the items, its outputs are returned. It sees the names around it.
    ///
    /// # Errors
    /// When the numbers of inputs don't fit, or an output isn't defined.
    pub(super) fn import_subgraph(
        &mut self,
        graph: &'a GraphProto,
        inputs: Vec<Item>,
        prefix: String,
    ) -> Result<Vec<Item>, Fault> {
        if inputs.len() != graph.input.len() {
            let message =
                format!("the graph `{}` takes {} values, {} are given", graph.name, graph.input.len(), inputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        let opsets = Rc::clone(&self.scope().opsets);
        let mut scope = Scope::new(opsets, prefix);
        scope.add_graph(graph);
        scope.items.extend(graph.input.iter().map(|input| input.name.as_str()).zip(inputs));
        self.scopes.push(scope);
        self.import_nodes(&graph.node);
        let outputs = graph.output.iter().map(|output| self.resolve(&output.name)).collect();
        self.scopes.pop();
        outputs
    }
}

#[cfg(test)]
mod tests;
