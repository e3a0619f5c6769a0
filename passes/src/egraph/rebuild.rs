//! The way out: a graph from a selection, with derived constants computed and names kept.

use super::extract::Selection;
use super::language::{ENode, Head};
use super::provenance::Ancestry;
use super::space::Space;
use egg::Id;
use indexmap::{IndexMap, IndexSet};
use mlc_ir::folding;
use mlc_ir::{Attribute, Graph, NodeId, Op, OperatorError, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A graph that came out, and what each of its nodes was made of.
pub struct Rebuilt {
    /// The graph.
    pub graph: Graph,
    /// For each new node, its class and the nodes of the source that it replaces.
    pub made_of: IndexMap<NodeId, (Id, Vec<NodeId>)>,
}

struct Rebuilder<'s> {
    space: &'s Space,
    selection: &'s Selection,
    ancestry: Ancestry<'s>,
    graph: Graph,
    values: IndexMap<Id, Value>,
    constants: IndexMap<Id, Attribute>,
    made_of: IndexMap<NodeId, (Id, Vec<NodeId>)>,
}

/// Builds the selected graph.
///
/// # Errors
/// When an operator refuses its operands, or a constant can't be computed; both would be faults of a rule.
pub fn from_egraph(space: &Space, selection: &Selection) -> Result<Rebuilt, OperatorError> {
    let mut rebuilder = Rebuilder {
        space,
        selection,
        ancestry: Ancestry::new(space, selection),
        graph: Graph::new(space.source.name.clone()),
        values: IndexMap::new(),
        constants: IndexMap::new(),
        made_of: IndexMap::new(),
    };
    rebuilder.graph.take_interface(&space.source);
    for &input in space.source.inputs() {
        let node = space.source.node(input);
        let value = rebuilder.graph.add_input(&node.name, node.results[0].clone());
        rebuilder.values.insert(space.egraph.find(space.ids[&input]), value);
    }
    for class in rebuilder.order() {
        if let Some(node) = selection.nodes.get(&class) {
            rebuilder.node(class, node)?;
        }
    }
    Ok(Rebuilt { graph: rebuilder.graph, made_of: rebuilder.made_of })
}

impl Rebuilder<'_> {
    /// The chosen classes, operands before users, else in the order of the source.
    fn order(&self) -> Vec<Id> {
        let nodes = &self.selection.nodes;
        let find = |child: &Id| self.space.egraph.find(*child);
        let mut users: IndexMap<Id, Vec<Id>> = IndexMap::new();
        let mut missing: IndexMap<Id, usize> = IndexMap::new();
        let mut ready: BTreeSet<(usize, Id)> = BTreeSet::new();
        for (&class, node) in nodes {
            let constant = self.space.egraph[class].data.constant;
            let operands: BTreeSet<Id> = node.children.iter().filter(|_| !constant).map(find).collect();
            operands.iter().for_each(|&operand| users.entry(operand).or_default().push(class));
            if operands.is_empty() {
                ready.insert((self.ancestry.position(class), class));
            }
            missing.insert(class, operands.len());
        }
        let mut order = Vec::with_capacity(nodes.len());
        while let Some((_, class)) = ready.pop_first() {
            order.push(class);
            for user in users.get(&class).into_iter().flatten() {
                let Some(count) = missing.get_mut(user) else { continue };
                *count -= 1;
                if *count == 0 {
                    ready.insert((self.ancestry.position(*user), *user));
                }
            }
        }
        order
    }

    fn node(&mut self, class: Id, node: &ENode) -> Result<(), OperatorError> {
        if self.space.egraph[class].data.constant {
            return Ok(());
        }
        match (&node.head, &node.op) {
            (Head::Op(_), Some(op)) => self.operator(class, op, node),
            (Head::Projection(slot), _) => {
                let tuple = self.value(node.children[0])?;
                self.values.insert(class, Value { node: tuple.node, slot: *slot });
                Ok(())
            }
            (Head::Outputs, _) => {
                let names: Vec<Arc<str>> =
                    self.space.source.outputs().iter().map(|output| output.name.clone()).collect();
                for (name, &child) in names.iter().zip(&node.children) {
                    let value = self.value(child)?;
                    self.graph.add_output(name, value);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn operator(&mut self, class: Id, op: &Op, node: &ENode) -> Result<(), OperatorError> {
        let operands = node.children.iter().map(|&child| self.value(child)).collect::<Result<Vec<_>, _>>()?;
        let made_of = self.ancestry.replaced(class);
        let name = self.ancestry.name(class, &made_of, op);
        let origins = self.ancestry.origins(&made_of);
        let id = self.graph.add_with_origins(op.clone(), &operands, &name, origins)?;
        self.values.insert(class, id.into());
        self.made_of.insert(id, (class, made_of));
        Ok(())
    }

    fn value(&mut self, child: Id) -> Result<Value, OperatorError> {
        let class = self.space.egraph.find(child);
        if let Some(&value) = self.values.get(&class) {
            return Ok(value);
        }
        let attribute = self.constant(class)?;
        let name = self.ancestry.constant_name(class);
        let value = self.graph.add_constant(&name, attribute);
        self.values.insert(class, value);
        Ok(value)
    }

    /// The elements of a constant class. Works on a list of its own: a model may compute constants in a long chain.
    fn constant(&mut self, class: Id) -> Result<Attribute, OperatorError> {
        let root = self.space.egraph.find(class);
        let mut stack = IndexSet::from([root]);
        while let Some(&class) = stack.last() {
            if self.constants.contains_key(&class) {
                stack.pop();
                continue;
            }
            let node = self.selection.constants.get(&class).ok_or_else(not_constant)?;
            let operands: Vec<Id> = node.children.iter().map(|&child| self.space.egraph.find(child)).collect();
            let missing = operands.iter().copied().find(|operand| !self.constants.contains_key(operand));
            match missing {
                Some(operand) if stack.contains(&operand) => return Err(not_constant()),
                Some(operand) => {
                    stack.insert(operand);
                }
                None => {
                    let value = self.computed(class, node, &operands)?;
                    self.constants.insert(class, value);
                }
            }
        }
        self.constants.get(&root).cloned().ok_or_else(not_constant)
    }

    fn computed(&self, class: Id, node: &ENode, operands: &[Id]) -> Result<Attribute, OperatorError> {
        if let Some(value) = &self.space.egraph[class].data.value {
            return Ok(value.clone());
        }
        let references: Vec<&Attribute> = operands.iter().filter_map(|operand| self.constants.get(operand)).collect();
        let op = node.op.as_deref().ok_or_else(not_constant)?;
        folding::compute(op, &references)?.into_iter().next().ok_or_else(not_constant)
    }
}

fn not_constant() -> OperatorError {
    OperatorError::Evaluation("a value that isn't constant was taken for one".into())
}
