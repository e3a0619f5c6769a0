//! From a PNNX [`Model`] to a [`Graph`](mlc_ir::Graph): every operator is looked up in the tables of the files beside this
//! one, and expressed by the operators of the intermediate representation.
//!
//! Graph inputs bear the names of the `pnnx.Input` operators; [`ImportOptions::input_shapes`] also takes the name of the
//! input's operand, or its number among the inputs. Outputs bear the name of the operator that makes them when it makes one
//! output only, else `output_<k>`. Tuples and lists of outputs are flattened. Shapes in the file are checked against the
//! inferred ones, never believed. A complex input or output is a tensor with a last axis of real and imaginary part.
//!
//! Operators that aren't known are reported all at once, before anything else. After that, every operator that can't be
//! imported is reported, except those that depend on one that failed.

mod activation;
mod arithmetic;
mod attention;
mod call;
mod comparison;
mod complex;
mod convolution;
mod creation;
mod einsum;
mod expression;
mod fourier;
mod functions;
mod indexing;
mod interface;
mod item;
mod joining;
mod linear;
mod normalization;
mod ordering;
mod padding;
mod pooling;
mod recurrent;
mod reduction;
mod registry;
mod resizing;
mod sampling;
mod shape;
mod slicing;
mod unfolding;
mod writing;

use crate::model::{Dimension, Model, OperandId, Operator};
use call::Call;
use item::{Item, dtype_of};
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Code, Diagnostic, Location};
use registry::{Handler, find_handler};
use std::collections::BTreeMap;

pub use registry::operator_support;

/// Makes a graph of a model.
///
/// # Errors
/// Everything that stands in the way: unknown operators, parameters and operands that don't fit, shapes that aren't known
/// or disagree with the file.
pub fn import(model: &Model, options: &ImportOptions) -> Result<Imported, Vec<Diagnostic>> {
    let unsupported = registry::unsupported(model);
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    let name = if options.name.is_empty() { "model" } else { &options.name };
    let mut importer = Importer {
        model,
        builder: Builder::new(name),
        items: vec![Item::Unknown; model.operands.len()],
        symbols: options.dimensions.iter().map(|(name, &extent)| (name.clone(), extent)).collect(),
        findings: Vec::new(),
    };
    importer.import_inputs(options);
    if importer.findings.iter().any(Diagnostic::is_error) {
        return Err(importer.into_errors());
    }
    for operator in &model.operators {
        importer.import_operator(operator);
    }
    if !importer.findings.iter().any(Diagnostic::is_error) {
        importer.import_outputs();
    }
    if importer.findings.iter().any(Diagnostic::is_error) {
        return Err(importer.into_errors());
    }
    Ok(Imported { graph: importer.builder.finish(), warnings: importer.findings })
}

/// A model while it becomes a graph.
struct Importer<'a> {
    model: &'a Model,
    builder: Builder,
    /// What each operand holds, by its index.
    items: Vec<Item>,
    /// Extents of the `%name` dimensions seen so far.
    symbols: BTreeMap<String, usize>,
    findings: Vec<Diagnostic>,
}

/// Where an operator stands.
fn place(operator: &Operator) -> Location {
    let location = if operator.line > 0 { Location::line(operator.line) } else { Location::default() };
    location.at_operator(&operator.kind, &operator.name)
}

impl Importer<'_> {
    /// All findings, errors first.
    fn into_errors(mut self) -> Vec<Diagnostic> {
        self.findings.sort_by_key(|finding| !finding.is_error());
        self.findings
    }

    fn report(&mut self, operator: &Operator, fault: Fault) {
        let message = format!("{} `{}`: {}", operator.kind, operator.name, fault.message);
        let mut diagnostic = Diagnostic::error(fault.code, place(operator), message);
        if let Some(help) = fault.help {
            diagnostic = diagnostic.with_help(help);
        }
        self.findings.push(diagnostic);
    }

    fn warn(&mut self, operator: &Operator, code: Code, message: &str) {
        let message = format!("{} `{}`: {message}", operator.kind, operator.name);
        self.findings.push(Diagnostic::warning(code, place(operator), message));
    }

    fn import_operator(&mut self, operator: &Operator) {
        if matches!(operator.kind.as_str(), "pnnx.Input" | "pnnx.Output") {
            return;
        }
        let inputs: Vec<Item> = operator.inputs.iter().map(|input| self.items[input.index()].clone()).collect();
        if inputs.iter().any(Item::is_unknown) {
            return;
        }
        let declared = operator.outputs.iter().map(|&output| self.declared_shape(output)).collect();
        self.builder.begin(&operator.name);
        let result_used = self.wanted_results(operator).iter().map(|&output| self.is_used(output)).collect();
        let mut call = Call::new(operator, &mut self.builder, inputs, declared, result_used);
        let results = match find_handler(&operator.kind) {
            Some(Handler::One(import)) => import(&mut call).map(|value| vec![Item::Tensor(value)]),
            Some(Handler::Many(import)) => import(&mut call),
            Some(Handler::Refused(reason)) => Err(Fault::new(Code::OperatorUnsupported, *reason)),
            None => Err(Fault::new(Code::OperatorUnsupported, "the operator isn't supported")),
        };
        let (unused, warnings) = (call.unused(), std::mem::take(&mut call.warnings));
        let results = match results {
            Ok(results) => results,
            Err(fault) => return self.report(operator, fault),
        };
        for unused in unused {
            self.warn(operator, Code::Unused, &format!("{unused} isn't known and doesn't count"));
        }
        for warning in warnings {
            self.warn(operator, Code::ShapeMismatch, &warning);
        }
        self.bind_results(operator, results);
    }

    fn bind_results(&mut self, operator: &Operator, results: Vec<Item>) {
        let results = if self.unpacking(operator).is_some() { vec![Item::List(results)] } else { results };
        if results.len() < operator.outputs.len() {
            let (found, expected) = (operator.outputs.len(), results.len());
            let message = format!("the operator gives {expected} results, the file names {found}");
            return self.report(operator, Fault::new(Code::OperandCount, message));
        }
        for (&output, result) in operator.outputs.iter().zip(results) {
            if let Err(fault) = self.check_shape(output, &result) {
                self.report(operator, fault);
            }
            self.items[output.index()] = result;
        }
    }

    /// The operator that takes apart the tuple which this operator's only output stands for.
    fn unpacking(&self, operator: &Operator) -> Option<&Operator> {
        let [output] = operator.outputs[..] else { return None };
        let kind = operator.kind.as_str();
        if matches!(find_handler(kind), Some(Handler::One(_)))
            || kind.starts_with("pnnx.")
            || kind.starts_with("prim::")
        {
            return None;
        }
        let consumers = &self.model.operand(output).consumers;
        let consumers = consumers.iter().map(|&consumer| self.model.operator(consumer));
        consumers.into_iter().find(|consumer| consumer.kind == "prim::TupleUnpack")
    }

    /// The operands that stand for an operator's results.
    fn wanted_results(&self, operator: &Operator) -> Vec<OperandId> {
        self.unpacking(operator).unwrap_or(operator).outputs.clone()
    }

    fn is_used(&self, operand: OperandId) -> bool {
        !self.model.operand(operand).consumers.is_empty()
    }

    /// The extents that the file gives for an operand, as far as they are known by now.
    fn declared_shape(&self, operand: OperandId) -> Option<Vec<Option<usize>>> {
        let declared = self.model.operand(operand).ty.as_ref()?;
        let extent = |dimension: &Dimension| match dimension {
            Dimension::Known(extent) => Some(*extent as usize),
            Dimension::Symbol(name) => self.symbols.get(name).copied(),
            Dimension::Unknown => None,
        };
        Some(declared.shape.iter().map(extent).collect())
    }

    /// Compares a tensor with what the file says about its operand, and learns named dimensions.
    fn check_shape(&mut self, operand: OperandId, item: &Item) -> Result<(), Fault> {
        let Some(declared) = &self.model.operand(operand).ty else { return Ok(()) };
        let (Item::Tensor(value) | Item::Complex(value, _)) = item else { return Ok(()) };
        let ty = self.builder.ty(*value);
        let mut fits = ty.rank() == declared.shape.len();
        for (&found, expected) in ty.shape.iter().zip(&declared.shape) {
            fits &= match expected {
                Dimension::Known(expected) => *expected as usize == found,
                Dimension::Unknown => true,
                Dimension::Symbol(name) => *self.symbols.entry(name.clone()).or_insert(found) == found,
            };
        }
        let real = matches!(item, Item::Tensor(_));
        let dtype_fits = !real || dtype_of(declared.element_type).is_none_or(|dtype| dtype == ty.dtype);
        if fits && dtype_fits {
            return Ok(());
        }
        let name = &self.model.operand(operand).name;
        let message = format!("result `{name}` is {ty}, the file says {declared}");
        Err(Fault::new(Code::ShapeMismatch, message).with_help(
            "the file was edited, or written for other input shapes: export the model again for the shapes you need",
        ))
    }
}

#[cfg(test)]
mod tests;
