//! The walk over a model's operators: each is looked up in the format's tables and imported, regions and functions where they
//! are used.
//!
//! Everything that stands in the way is reported in one go: an operator that can't be imported leaves its results *unknown*,
//! and what depends on them is looked up, but not imported. Operators that aren't supported are counted by their type.

use crate::call::{Call, Parts, Site};
use crate::custom::Refusal;
use crate::fault::Fault;
use crate::importer::{Handler, Importer, Names, Operators};
use crate::item::Item;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic};

/// Deepest nesting of calls and regions; a function that calls itself ends here.
const DEEPEST_NESTING: usize = 100;

/// What was found in the tables.
enum Found<F: Operators> {
    Handler(Handler<F>),
    /// The user describes it.
    Described,
    /// It isn't supported, which has been counted.
    Unsupported,
}

impl<'m, F: Operators> Importer<'m, F> {
    /// Imports operators in their order into the innermost region.
    pub fn import_operators(&mut self, operators: impl IntoIterator<Item = F::Operator<'m>>) {
        for operator in operators {
            if !self.count_operator() {
                return;
            }
            match self.site(operator) {
                Ok(site) => self.import_operator(&site),
                Err(diagnostic) => {
                    self.findings.push(diagnostic);
                    self.bind_unknown(operator);
                }
            }
        }
    }

    fn bind_unknown(&mut self, operator: F::Operator<'m>) {
        for name in F::results(self.model, operator).into_iter().flatten() {
            self.innermost_mut().items.insert(name, F::Item::unknown());
        }
    }

    fn import_operator(&mut self, site: &Site<'m, F>) {
        match self.results_of(site) {
            Ok(Some(results)) => {
                if let Err(fault) = self.bind_results(site, results) {
                    self.report(site, fault);
                }
            }
            Ok(None) => self.bind_unknown(site.operator),
            Err(fault) => {
                self.report(site, fault);
                self.bind_unknown(site.operator);
            }
        }
    }

    /// What an operator with named operands computes; `None` when that can't be known.
    fn results_of(&mut self, site: &Site<'m, F>) -> Result<Option<Vec<F::Item>>, Fault> {
        let operands = F::operands(self.model, site.operator).into_iter();
        let inputs = operands.map(|name| name.map_or_else(|| Ok(F::Item::absent()), |name| self.resolve(name)));
        let inputs = inputs.collect::<Result<Vec<_>, Fault>>()?;
        let is_replaced = self.takes_description(site.domain, site.kind);
        if !is_replaced && let Some((body, scope)) = F::function(self.model, self.scope(), site.operator)? {
            return self.inline(site, body, scope, inputs).map(Some);
        }
        self.apply(site, inputs)
    }

    /// What an operator computes of its operands; `None` when that can't be known.
    ///
    /// # Errors
    /// When the operator can't be imported in this form.
    pub fn apply(&mut self, site: &Site<'m, F>, inputs: Vec<F::Item>) -> Result<Option<Vec<F::Item>>, Fault> {
        let found = self.look_up(site)?;
        if inputs.iter().any(Item::is_unknown) && !matches!(found, Found::Unsupported) {
            self.look_into_regions(site);
            return Ok(None);
        }
        let handler = match found {
            Found::Handler(handler) => handler,
            Found::Described => return self.described(site, inputs),
            Found::Unsupported => return Ok(None),
        };
        if let Handler::Control(import) = handler {
            return import(self, site, inputs).map(Some);
        }
        let attributes = F::attributes(self.scope(), site.operator)?;
        self.builder.begin(&site.name);
        let Importer { model, builder, notes, dimensions, bodies, .. } = self;
        let notes = &mut notes[bodies.depth()];
        let mut call = Call::new(Parts { site, model: *model, builder, notes, dimensions, inputs, attributes });
        let one = |value| vec![F::Item::of(value)];
        let results = match handler {
            Handler::One(import) => import(&mut call).map(one),
            Handler::Unary(function) => call.unary(function).map(one),
            Handler::Binary(function) => call.binary(function).map(one),
            Handler::Many(import) => import(&mut call).map(|results| F::arrange(call.model, site.operator, results)),
            Handler::Control(_) | Handler::Refused(_) => Ok(Vec::new()),
        }?;
        for (code, message) in call.finish()? {
            self.warn(site, code, &message);
        }
        Ok(Some(results))
    }

    /// What a described operator computes; `None` when its description, or what it leads to, has been told to be wrong.
    fn described(&mut self, site: &Site<'m, F>, inputs: Vec<F::Item>) -> Result<Option<Vec<F::Item>>, Fault> {
        match self.apply_described(site, inputs) {
            Ok(results) => Ok(Some(results)),
            Err(Refusal::Fault(fault)) => Err(fault),
            Err(Refusal::Described(finding)) => {
                self.findings.push(Diagnostic { location: site.location.clone(), ..finding });
                Ok(None)
            }
        }
    }

    fn look_up(&mut self, site: &Site<'m, F>) -> Result<Found<F>, Fault> {
        let entry = self.entries.get(&(site.domain, site.kind));
        let is_described = self.custom.knows(site.domain, site.kind);
        if is_described && self.custom.replace_own() {
            return Ok(Found::Described);
        }
        let (reason, since) = match entry.map(|entry| (entry.handler, entry.since)) {
            None => (None, None),
            Some((Handler::Refused(reason), _)) => (Some(reason), None),
            Some((handler, since)) => match (site.version, since) {
                (Some(version), Some(since)) if version < since => (None, Some((version, since))),
                _ if is_described => return Err(described_twice()),
                _ => return Ok(Found::Handler(handler)),
            },
        };
        if is_described {
            return Ok(Found::Described);
        }
        if let Some((version, since)) = since {
            let message = format!("version {version} isn't supported, version {since} and later are");
            return Err(Fault::variant(message).with_help(F::HELP_FOR_OLD_VERSION));
        }
        self.add_unsupported(site, reason);
        Ok(Found::Unsupported)
    }

    fn bind_results(&mut self, site: &Site<'m, F>, results: Vec<F::Item>) -> Result<(), Fault> {
        let names = F::results(self.model, site.operator);
        let wanted = names.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if wanted > results.len() {
            let message = format!("the operator gives {} results, the model names {wanted}", results.len());
            self.bind_unknown(site.operator);
            return Err(Fault::new(Code::OperandCount, message));
        }
        let mut first = Ok(());
        for (name, item) in names.into_iter().zip(results) {
            let Some(name) = name else { continue };
            let checked = F::check_result(self.model, &mut self.dimensions, &self.builder, name, &item);
            first = first.and(checked).and(self.define(name, item));
        }
        first
    }

    /// Counts the operators of an operator's regions that aren't supported, when the operator itself can't be imported.
    fn look_into_regions(&mut self, site: &Site<'m, F>) {
        let mut pending = F::regions(site.operator);
        while let Some(region) = pending.pop() {
            for operator in F::operators(region) {
                pending.extend(F::regions(operator));
                let Ok(inner) = self.site(operator) else { continue };
                if F::calls_function(self.model, operator) || self.custom.knows(inner.domain, inner.kind) {
                    continue;
                }
                let reason = match self.entries.get(&(inner.domain, inner.kind)).map(|entry| entry.handler) {
                    None => None,
                    Some(Handler::Refused(reason)) => Some(reason),
                    Some(_) => continue,
                };
                self.add_unsupported(&inner, reason);
            }
        }
    }

    /// Imports a region: its inputs get the items, its outputs are returned. It sees the names around it, unless the format closes it.
    ///
    /// # Errors
    /// When the numbers of inputs don't fit, or an output isn't defined.
    pub fn import_region(
        &mut self,
        region: F::Region<'m>,
        inputs: Vec<F::Item>,
        prefix: String,
    ) -> Result<Vec<F::Item>, Fault> {
        let expected = F::region_inputs(region).len();
        if inputs.len() != expected {
            let message =
                format!("the graph `{}` takes {expected} values, {} are given", F::region_name(region), inputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        let scope = F::inner_scope(self.scope(), region);
        self.walk(region, inputs, Names { items: IndexMap::new(), prefix, closed: F::CLOSED_REGIONS, scope })
    }

    /// Imports a function's body in place of a call.
    fn inline(
        &mut self,
        site: &Site<'m, F>,
        body: F::Region<'m>,
        scope: F::Scope<'m>,
        mut inputs: Vec<F::Item>,
    ) -> Result<Vec<F::Item>, Fault> {
        if self.names.len() > DEEPEST_NESTING {
            let message = format!("functions call each other more than {DEEPEST_NESTING} levels deep");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        let expected = F::region_inputs(body).len();
        if inputs.len() > expected {
            let message = format!("the function takes {expected} operands, {} are given", inputs.len());
            return Err(Fault::new(Code::OperandCount, message));
        }
        inputs.resize(expected, F::Item::absent());
        let prefix = format!("{}.", site.name);
        self.walk(body, inputs, Names { items: IndexMap::new(), prefix, closed: true, scope })
    }

    fn walk(
        &mut self,
        region: F::Region<'m>,
        inputs: Vec<F::Item>,
        mut names: Names<'m, F>,
    ) -> Result<Vec<F::Item>, Fault> {
        names.items.extend(F::region_inputs(region).into_iter().zip(inputs));
        self.names.push(names);
        self.import_operators(F::operators(region));
        let outputs = F::region_outputs(region).into_iter().map(|output| self.resolve(output)).collect();
        self.names.pop();
        outputs
    }
}

/// What is said of an operator that mlc has and the user describes.
fn described_twice() -> Fault {
    Fault::new(Code::DuplicateDefinition, "it is described, and mlc has an operator of that name")
        .with_help("--op-override takes the description; give the description another name otherwise")
}
