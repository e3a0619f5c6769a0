//! [`Importer`]: a model while it becomes a graph, and what an operator's table entry says ([`Handler`]).

use crate::bodies::Bodies;
use crate::builder::Builder;
use crate::call::{Call, Site};
use crate::custom::CustomCalls;
use crate::fault::Fault;
use crate::findings::{Findings, UnsupportedUse};
use crate::format::Format;
use crate::item::Item;
use crate::options::{ImportOptions, Imported};
use crate::support::OperatorSupport;
use indexmap::IndexMap;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Code, Diagnostic, Graph, Location, Value};
use std::collections::BTreeMap;

/// Imports an operator that has one result, a tensor.
pub type ImportOne<F> = for<'m> fn(&mut Call<'_, 'm, F>) -> Result<Value, Fault>;

/// Imports an operator that has several results, or ones that aren't tensors.
pub type ImportMany<F> = for<'m> fn(&mut Call<'_, 'm, F>) -> Result<Vec<<F as Format>::Item>, Fault>;

/// Imports an operator that holds regions, from its operands to its results.
pub type ImportControl<F> =
    for<'m> fn(&mut Importer<'m, F>, &Site<'m, F>, Vec<<F as Format>::Item>) -> Result<Vec<<F as Format>::Item>, Fault>;

/// How an operator is imported.
pub enum Handler<F: Format> {
    /// It has one result, a tensor.
    One(ImportOne<F>),
    /// It has several results, or ones that aren't tensors.
    Many(ImportMany<F>),
    /// It is a function of each element of its only operand.
    Unary(UnaryFunction),
    /// It is a function of the elements of its two operands, which broadcast.
    Binary(BinaryFunction),
    /// It holds regions.
    Control(ImportControl<F>),
    /// It is known, and can't be imported for this reason.
    Refused(&'static str),
}

impl<F: Format> Clone for Handler<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Format> Copy for Handler<F> {}

/// An operator that a format's tables know.
pub struct Entry<F: Format> {
    /// Its operator set; empty for the format's own.
    pub domain: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// First version of the set in which it is supported, in formats that have versions.
    pub since: Option<i64>,
    /// How it is imported.
    pub handler: Handler<F>,
}

/// A table of a format without operator sets and versions: types, and how each is imported.
pub type Table<F> = &'static [(&'static str, Handler<F>)];

/// The entries of such tables, in order.
pub fn entries<F: Format>(tables: &'static [Table<F>]) -> impl Iterator<Item = Entry<F>> {
    let operators = tables.iter().copied().flatten();
    operators.map(|&(kind, handler)| Entry { domain: "", kind, since: None, handler })
}

/// A format's tables.
pub trait Operators: Format {
    /// Every operator that is known, each once.
    fn entries() -> impl Iterator<Item = Entry<Self>>;

    /// The operators that are known, sorted by operator set and type.
    fn support() -> Vec<OperatorSupport> {
        let support = |entry: Entry<Self>| {
            let (since, refused) = match entry.handler {
                Handler::Refused(reason) => (None, Some(reason)),
                _ => (entry.since, None),
            };
            OperatorSupport { domain: entry.domain, name: entry.kind, since, refused }
        };
        let mut found: Vec<OperatorSupport> = Self::entries().map(support).collect();
        found.sort_unstable();
        found
    }
}

/// The names of a region or of a function.
pub(crate) struct Names<'m, F: Format> {
    pub items: IndexMap<F::Name<'m>, F::Item>,
    /// Put before the names of operators.
    pub prefix: String,
    /// Whether the regions around it are hidden.
    pub closed: bool,
    pub scope: F::Scope<'m>,
}

/// A model while it becomes a graph.
pub struct Importer<'m, F: Format> {
    /// The model.
    pub model: F::Model<'m>,
    /// Builds the graph: the model's, or that of the body of a loop.
    pub builder: Builder,
    /// Extents of the model's named dimensions, as far as they are known.
    pub dimensions: BTreeMap<String, usize>,
    /// What is to be told so far.
    pub findings: Findings,
    /// Names by the region that they belong to, outermost first.
    pub(crate) names: Vec<Names<'m, F>>,
    /// Bodies of loops around what is being imported.
    pub(crate) bodies: Bodies,
    /// What the format remembers of values; for each graph, outermost first.
    pub(crate) notes: Vec<IndexMap<Value, F::Note>>,
    pub(crate) entries: IndexMap<(&'static str, &'static str), Entry<F>>,
    /// What the user describes.
    pub(crate) custom: CustomCalls,
    /// How many branches on which data decide are around what is being imported.
    pub(crate) undecided: usize,
    /// Operators imported so far.
    operators: usize,
}

impl<'m, F: Operators> Importer<'m, F> {
    /// Starts a graph. `scope` is what the format knows in the model's own region.
    pub fn new(model: F::Model<'m>, scope: F::Scope<'m>, options: &ImportOptions) -> Self {
        let name = if options.name.is_empty() { "model" } else { &options.name };
        let names = Names { items: IndexMap::new(), prefix: String::new(), closed: true, scope };
        Importer {
            model,
            builder: new_builder::<F>(name),
            dimensions: options.dimensions.iter().map(|(name, &extent)| (name.clone(), extent)).collect(),
            findings: Findings::default(),
            names: vec![names],
            bodies: Bodies::default(),
            notes: vec![IndexMap::new()],
            entries: F::entries().map(|entry| ((entry.domain, entry.kind), entry)).collect(),
            custom: CustomCalls::new(options.custom.clone()),
            undecided: 0,
            operators: 0,
        }
    }

    /// Ends the import.
    ///
    /// # Errors
    /// Everything that stands in the way: operators that aren't supported first, then other errors.
    pub fn finish(self) -> Result<Imported, Vec<Diagnostic>> {
        if self.findings.failed() {
            return Err(self.findings.into_errors(&F::support(), F::help_for_unknown));
        }
        let graph: Graph = self.builder.finish();
        Ok(Imported::new(graph, self.findings.into_diagnostics()))
    }
}

/// A builder as the format's models want it.
pub(crate) fn new_builder<F: Format>(name: &str) -> Builder {
    let mut builder = Builder::new(name);
    if F::COMPUTES_SHAPES {
        builder.compute_constants();
    }
    builder
}

impl<'m, F: Format> Importer<'m, F> {
    /// Whether a description that the user gives takes the place of an operator that the format's tables may have.
    pub fn takes_description(&self, domain: &str, kind: &str) -> bool {
        self.custom.replace_own() && self.custom.knows(domain, kind)
    }

    /// Whether something stands in the way.
    pub fn failed(&self) -> bool {
        self.findings.failed()
    }

    /// Notes an error at an operator.
    pub fn report(&mut self, site: &Site<'m, F>, fault: Fault) {
        let message = format!("{}: {}", site.title(), fault.message);
        self.findings.report(site.location.clone(), Fault { message, ..fault });
    }

    /// Notes an error about an input, an output or another value by its name.
    pub fn report_value(&mut self, name: &str, fault: Fault) {
        self.findings.report(Location { node: Some(name.to_owned()), ..Location::default() }, fault);
    }

    /// Notes something that the user should know about an operator.
    pub fn warn(&mut self, site: &Site<'m, F>, code: Code, message: &str) {
        self.findings.push(Diagnostic::warning(code, site.location.clone(), format!("{}: {message}", site.title())));
    }

    /// An operator where it stands, by the innermost region.
    ///
    /// # Errors
    /// When the file doesn't say the version of its set.
    pub fn site(&self, operator: F::Operator<'m>) -> Result<Site<'m, F>, Diagnostic> {
        let names = self.innermost();
        let mut description = F::describe(operator);
        description.name.insert_str(0, &names.prefix);
        let location = description.location.at_operator(description.kind, &*description.name);
        match F::version(&names.scope, operator) {
            Ok(version) => Ok(Site {
                operator,
                kind: description.kind,
                domain: description.domain,
                version,
                name: description.name,
                location,
            }),
            Err(fault) => {
                let message = format!("{} `{}`: {}", description.kind, description.name, fault.message);
                Err(Diagnostic::error(fault.code, location, message))
            }
        }
    }

    /// What the format knows in the innermost region.
    pub fn scope(&self) -> &F::Scope<'m> {
        &self.innermost().scope
    }

    pub(crate) fn innermost(&self) -> &Names<'m, F> {
        &self.names[self.names.len() - 1]
    }

    pub(crate) fn innermost_mut(&mut self) -> &mut Names<'m, F> {
        let last = self.names.len() - 1;
        &mut self.names[last]
    }

    /// Counts an operator that can't be imported.
    pub(crate) fn add_unsupported(&mut self, site: &Site<'m, F>, reason: Option<&'static str>) {
        let &Site { domain, kind, version, .. } = site;
        let location = site.location.clone();
        self.findings.add_unsupported(UnsupportedUse { domain, kind, version, name: &site.name, location, reason });
    }

    /// Counts an operator that is imported; `false` once there are too many, of which one error tells.
    pub fn count_operator(&mut self) -> bool {
        self.operators += 1;
        if self.operators == F::MOST_OPERATORS + 1 {
            let message =
                format!("the model has more than {} operators, loops and functions written out", F::MOST_OPERATORS);
            self.findings.push(Diagnostic::error(Code::NumberOutOfRange, Location::default(), message));
        }
        self.operators <= F::MOST_OPERATORS
    }

    /// Whether so many operators were imported that no more are.
    pub fn is_full(&self) -> bool {
        self.operators > F::MOST_OPERATORS
    }

    /// The scopes that the innermost one sees, itself first: regions see what is around them, functions don't.
    fn visible(&self) -> impl Iterator<Item = usize> + use<F> {
        let outermost = self.names.iter().rposition(|names| names.closed).unwrap_or(0);
        (outermost..self.names.len()).rev()
    }

    /// What a name stands for, seen from the innermost region.
    ///
    /// # Errors
    /// When nothing defines it, or its constant can't be read.
    pub fn resolve(&mut self, name: F::Name<'m>) -> Result<F::Item, Fault> {
        for index in self.visible() {
            let depth = self.bodies.around(index);
            if let Some(item) = self.names[index].items.get(&name) {
                let item = item.clone();
                return Ok(self.seen_inside(item, depth));
            }
            if let Some(constant) = F::constant(self.model, &self.names[index].scope, name) {
                let (attribute, note) = constant
                    .map_err(|fault| Fault { message: format!("the constant `{name}`: {}", fault.message), ..fault })?;
                let value = self.builder_at(depth).named_constant(&name.to_string(), attribute);
                if let Some(note) = note {
                    self.notes[depth].insert(value, note);
                }
                let item = F::Item::of(value);
                self.names[index].items.insert(name, item.clone());
                return Ok(self.seen_inside(item, depth));
            }
        }
        let message = format!("`{name}` is used, but nothing before defines it");
        Err(Fault::new(Code::UndefinedValue, message)
            .with_help("the operators must be in topological order; a cycle has none"))
    }

    /// Defines a name in the innermost region.
    ///
    /// # Errors
    /// When it is defined already.
    pub fn define(&mut self, name: F::Name<'m>, item: F::Item) -> Result<(), Fault> {
        if self.innermost_mut().items.insert(name, item).is_some() {
            return Err(Fault::new(Code::DuplicateDefinition, format!("`{name}` is defined twice")));
        }
        Ok(())
    }

    /// Remembers something of a value of the graph that is being built.
    pub fn set_note(&mut self, value: Value, note: F::Note) {
        let depth = self.bodies.depth();
        self.notes[depth].insert(value, note);
    }

    /// The builder of the graph at a depth.
    fn builder_at(&mut self, depth: usize) -> &mut Builder {
        self.bodies.builder_at(depth).unwrap_or(&mut self.builder)
    }

    /// What an item of the graph at a depth is inside of the innermost body.
    fn seen_inside(&mut self, item: F::Item, depth: usize) -> F::Item {
        if depth == self.bodies.depth() {
            return item;
        }
        let Importer { bodies, builder, notes, .. } = self;
        item.map(&mut |value| bodies.captured(value, depth, builder, notes))
    }

    /// What a value of the graph around the innermost body is inside of it.
    pub(crate) fn seen_in_body(&mut self, value: Value) -> Value {
        let Importer { bodies, builder, notes, .. } = self;
        bodies.captured(value, bodies.depth() - 1, builder, notes)
    }

    /// Starts a body of a loop: from now on the importer's builder is the body's.
    pub(crate) fn begin_body(&mut self, builder: Builder) {
        let outer = std::mem::replace(&mut self.builder, builder);
        self.bodies.push(outer, self.names.len());
        self.notes.push(IndexMap::new());
    }

    /// Ends a body. Gives its builder and the values that became inputs behind those it had; `None` when there is no body.
    pub(crate) fn end_body(&mut self) -> Option<(Builder, Vec<Value>)> {
        let (outer, captured) = self.bodies.pop()?;
        self.notes.pop();
        Some((std::mem::replace(&mut self.builder, outer), captured))
    }
}
