//! [`Simplifier`]: a graph under construction in which equal applications are one, and every application is simplified before
//! it is added.

use crate::rewrite::{Application, Class, Match, Rule, Search, Term, View};
use egg::Id;
use indexmap::IndexMap;
use mlc_ir::folding;
use mlc_ir::ops::Constant;
use mlc_ir::{Attribute, Category, Graph, Literal, NodeId, Op, OperatorError, TensorType, Value};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many rules may fire in a row on one application.
const FUEL: u32 = 100;

/// One value of the graph under construction.
struct Entry {
    value: Value,
    operands: Vec<Class>,
    constant: bool,
    splat: Option<Literal>,
    output: bool,
}

/// What a new node is called and which source operators it stands for.
#[derive(Clone, Default)]
pub(crate) struct Provenance {
    /// Name of the node.
    pub(crate) name: Arc<str>,
    /// Source operators.
    pub(crate) origins: BTreeSet<Arc<str>>,
}

/// See the module.
pub(crate) struct Simplifier<'r> {
    /// What has been built.
    pub(crate) graph: Graph,
    rules: &'r [Rule],
    fold: bool,
    entries: Vec<Entry>,
    first_class: IndexMap<NodeId, Class>,
    known: IndexMap<(Op, Vec<Class>), NodeId>,
    /// How often each rule fired.
    pub(crate) fired: IndexMap<&'static str, usize>,
    /// Names of nodes, with the rules that made them what they are.
    pub(crate) steps: IndexMap<Arc<str>, Vec<&'static str>>,
}

impl<'r> Simplifier<'r> {
    /// A simplifier that applies rules and, with `fold`, computes small constants.
    pub(crate) fn new(name: &str, rules: &'r [Rule], fold: bool) -> Self {
        Simplifier {
            graph: Graph::new(name),
            rules,
            fold,
            entries: Vec::new(),
            first_class: IndexMap::new(),
            known: IndexMap::new(),
            fired: IndexMap::new(),
            steps: IndexMap::new(),
        }
    }

    /// The value of a class.
    pub(crate) fn value_of(&self, class: Class) -> Value {
        self.entries[usize::from(class)].value
    }

    /// The class of a value of the graph under construction.
    pub(crate) fn class_of(&self, value: Value) -> Class {
        self.result(self.first_class[&value.node], value.slot)
    }

    /// Appends an input.
    pub(crate) fn input(&mut self, name: &str, ty: TensorType) -> Class {
        let value = self.graph.add_input(name, ty);
        self.register(value.node, &[])
    }

    /// Appends an output.
    pub(crate) fn output(&mut self, name: &str, class: Class) {
        self.entries[usize::from(class)].output = true;
        self.graph.add_output(name, self.value_of(class));
    }

    /// The class of another result of the node that computes `class`.
    pub(crate) fn result(&self, class: Class, slot: u32) -> Class {
        Id::from(usize::from(class) + slot as usize)
    }

    /// Applies an operator, simplified. Gives the class of the first result.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    pub(crate) fn apply(
        &mut self,
        op: Op,
        operands: Vec<Class>,
        from: &Provenance,
        fuel: u32,
    ) -> Result<Class, OperatorError> {
        let types: Vec<TensorType> = operands.iter().map(|&operand| self.ty(operand).clone()).collect();
        let results = op.infer(&types)?;
        if let [ty] = &results[..]
            && fuel > 0
            && let Some((rule, class)) = self.simplified(&op, &operands, ty, from, fuel)
        {
            *self.fired.entry(rule).or_default() += 1;
            let name = self.graph.node(self.value_of(class).node).name.clone();
            self.steps.entry(name).or_default().push(rule);
            return Ok(class);
        }
        let op = self.folded(&op, &operands, &results).unwrap_or(op);
        let operands = if op.category() == Category::Source { Vec::new() } else { operands };
        self.add(op, operands, from)
    }

    fn simplified(
        &mut self,
        op: &Op,
        operands: &[Class],
        ty: &TensorType,
        from: &Provenance,
        fuel: u32,
    ) -> Option<(&'static str, Class)> {
        for rule in self.rules {
            let Search::Each(kinds, find) = rule.search else { continue };
            if !kinds.contains(&op.kind()) {
                continue;
            }
            for term in find(&Match { view: self, op, operands, ty }) {
                if let Ok(class) = self.build(&term, from, fuel - 1)
                    && self.ty(class) == ty
                {
                    return Some((rule.name, class));
                }
            }
        }
        None
    }

    /// Builds a term, simplified.
    ///
    /// # Errors
    /// When an operator doesn't accept its operands.
    pub(crate) fn build(&mut self, term: &Term, from: &Provenance, fuel: u32) -> Result<Class, OperatorError> {
        match term {
            Term::Value(class) => Ok(*class),
            Term::Apply(op, operands) => {
                let operands =
                    operands.iter().map(|operand| self.build(operand, from, fuel)).collect::<Result<Vec<_>, _>>()?;
                self.apply((**op).clone(), operands, from, fuel)
            }
        }
    }

    /// An operator over constants as one of them, where it is computed early; a value that can't be stays as it is.
    fn folded(&mut self, op: &Op, operands: &[Class], results: &[TensorType]) -> Option<Op> {
        if !self.fold || results.len() != 1 {
            return None;
        }
        let values: Vec<&Attribute> = operands.iter().map(|&operand| self.value(operand)).collect::<Option<_>>()?;
        let value = folding::compute_early(op, &values).ok()??.into_iter().next()?;
        *self.fired.entry("fold-constants").or_default() += 1;
        Some(Constant { value }.into())
    }

    fn add(&mut self, op: Op, operands: Vec<Class>, from: &Provenance) -> Result<Class, OperatorError> {
        let key = (op, operands);
        if let Some(&node) = self.known.get(&key) {
            *self.fired.entry("share-equal-applications").or_default() += 1;
            self.graph.origins_mut(node).extend(from.origins.iter().cloned());
            return Ok(self.first_class[&node]);
        }
        let values: Vec<Value> = key.1.iter().map(|&operand| self.value_of(operand)).collect();
        let node = self.graph.add_with_origins(key.0.clone(), &values, &from.name, from.origins.clone())?;
        let class = self.register(node, &key.1);
        self.known.insert(key, node);
        Ok(class)
    }

    fn register(&mut self, node: NodeId, operands: &[Class]) -> Class {
        let first = Id::from(self.entries.len());
        let op = &self.graph.node(node).op;
        let source = op.category() == Category::Source;
        let constant = match op {
            Op::Constant(_) => true,
            op if self.graph.node(node).results.len() != 1 || !folding::is_computable(op) => false,
            _ => !source && !operands.is_empty() && operands.iter().all(|&operand| self.is_constant(operand)),
        };
        let splat = match op {
            Op::Constant(constant) => constant.value.splat(),
            _ => None,
        };
        for slot in 0..self.graph.node(node).results.len() as u32 {
            let value = Value { node, slot };
            self.entries.push(Entry { value, operands: operands.to_vec(), constant, splat, output: false });
        }
        self.first_class.insert(node, first);
        first
    }

    /// Copies a graph into the one under construction. Gives the class of each node's first result.
    ///
    /// # Errors
    /// When a rule or the graph is at fault; an operator refused operands.
    pub(crate) fn import(&mut self, graph: &Graph) -> Result<IndexMap<NodeId, Class>, OperatorError> {
        let mut classes: IndexMap<NodeId, Class> = IndexMap::new();
        for &input in graph.inputs() {
            let node = graph.node(input);
            classes.insert(input, self.input(&node.name, node.results[0].clone()));
        }
        for id in graph.topological_order() {
            let node = graph.node(id);
            if matches!(node.op, Op::Input(_)) {
                continue;
            }
            let operands =
                graph.operands(id).into_iter().map(|value| self.result(classes[&value.node], value.slot)).collect();
            let mut origins = node.origins.clone();
            if origins.is_empty() && node.op.category() != Category::Source {
                origins.insert(node.name.clone());
            }
            let from = Provenance { name: node.name.clone(), origins };
            classes.insert(id, self.apply(node.op.clone(), operands, &from, FUEL)?);
        }
        for output in graph.outputs() {
            let class = self.result(classes[&output.value.node], output.value.slot);
            self.output(&output.name, class);
        }
        Ok(classes)
    }
}

impl View for Simplifier<'_> {
    fn ty(&self, class: Class) -> &TensorType {
        self.graph.ty(self.value_of(class))
    }

    fn applications(&self, class: Class) -> SmallVec<[Application<'_>; 4]> {
        let entry = &self.entries[usize::from(class)];
        let node = self.graph.node(entry.value.node);
        if node.results.len() != 1 {
            return SmallVec::new();
        }
        SmallVec::from_iter([Application { op: &node.op, operands: &entry.operands }])
    }

    fn is_constant(&self, class: Class) -> bool {
        self.entries[usize::from(class)].constant
    }

    fn splat(&self, class: Class) -> Option<Literal> {
        self.entries[usize::from(class)].splat
    }

    fn value(&self, class: Class) -> Option<&Attribute> {
        self.graph.constant(self.value_of(class))
    }

    fn classes(&self) -> Vec<Class> {
        (0..self.entries.len()).map(Id::from).collect()
    }

    fn is_chosen(&self, _class: Class) -> bool {
        true
    }

    fn is_output(&self, class: Class) -> bool {
        self.entries[usize::from(class)].output
    }
}
