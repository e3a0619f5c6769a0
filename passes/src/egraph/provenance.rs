//! [`Ancestry`]: which nodes of the source graph a chosen node replaces, and what it is called after them.
//!
//! A node replaces the source nodes between its class and the classes that the chosen graph still computes. This follows
//! from the two graphs alone, so that no rule has to know about names.

use super::extract::Selection;
use super::maps::{Map, Set};
use super::space::Space;
use egg::Id;
use indexmap::IndexSet;
use mlc_ir::{Category, NodeId, Op, OpKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
pub struct Ancestry<'s> {
    space: &'s Space,
    selection: &'s Selection,
    sources: Map<Id, Vec<NodeId>>,
    built_for: Map<Id, Set<Id>>,
}

impl<'s> Ancestry<'s> {
    /// Indexes source nodes by their class.
    pub fn new(space: &'s Space, selection: &'s Selection) -> Self {
        let mut sources: Map<Id, Vec<NodeId>> = Map::default();
        for (&node, &id) in &space.ids {
            sources.entry(space.egraph.find(id)).or_default().push(node);
        }
        let mut built_for: Map<Id, Set<Id>> = Map::default();
        for (&built, sites) in &space.built_for {
            let entry = built_for.entry(space.egraph.find(built)).or_default();
            entry.extend(sites.iter().map(|&site| space.egraph.find(site)));
        }
        Ancestry { space, selection, sources, built_for }
    }

    /// The source nodes of a class, or of the classes for which it was built.
    fn roots(&self, class: Id) -> Vec<NodeId> {
        let mut seen = IndexSet::from([class]);
        let mut roots = Vec::new();
        let mut next = 0;
        while let Some(&class) = seen.get_index(next) {
            next += 1;
            match self.sources.get(&class) {
                Some(nodes) => roots.extend(nodes.iter().copied()),
                None => seen.extend(self.built_for.get(&class).into_iter().flatten().copied()),
            }
        }
        roots
    }

    /// The source nodes that the chosen node of a class replaces, in the source's order.
    pub fn replaced(&self, class: Id) -> Vec<NodeId> {
        let source = &self.space.source;
        let mut seen: BTreeSet<NodeId> = BTreeSet::new();
        let mut stack = self.roots(class);
        while let Some(node) = stack.pop() {
            if source.node(node).op.category() == Category::Source || !seen.insert(node) {
                continue;
            }
            for operand in source.operands(node) {
                let class = self.space.egraph.find(self.space.ids[&operand.node]);
                if !self.selection.nodes.contains_key(&class) {
                    stack.push(operand.node);
                }
            }
        }
        let mut replaced: Vec<NodeId> = seen.into_iter().collect();
        replaced.sort_by_key(|node| self.space.ids.get_index_of(node));
        replaced
    }

    /// Where in the source a class has its place: its first source node's, or that of the classes it was built for.
    pub fn position(&self, class: Id) -> usize {
        let roots = self.roots(class);
        roots.iter().filter_map(|&node| self.space.ids.get_index_of(&node)).min().unwrap_or(usize::MAX)
    }

    /// The name of a new node of a class: that of a replaced node of its kind, else of the last replaced one. Of several,
    /// a value of the source takes the last, which is nearest to it; a value that serves several takes the first.
    pub fn name(&self, class: Id, replaced: &[NodeId], op: &Op) -> Arc<str> {
        let node = |id: NodeId| self.space.source.node(id);
        let mut same = replaced.iter().filter(|&&id| main_kind(&node(id).op) == main_kind(op));
        let same = if self.sources.contains_key(&class) { same.next_back() } else { same.next() };
        same.or(replaced.last()).map_or_else(|| op.name().into(), |&id| node(id).name.clone())
    }

    /// The source operators that replaced nodes stand for.
    pub fn origins(&self, replaced: &[NodeId]) -> BTreeSet<Arc<str>> {
        replaced.iter().flat_map(|&id| self.space.source.node(id).origins.iter().cloned()).collect()
    }

    /// The name of a constant: that of the first constant of the source it is computed from.
    pub fn constant_name(&self, class: Id) -> Arc<str> {
        let mut class = self.space.egraph.find(class);
        for _ in 0..100 {
            if let Some(node) = self.sources.get(&class).and_then(|nodes| nodes.first()) {
                return self.space.source.node(*node).name.clone();
            }
            let first = self.space.egraph[class].nodes.iter().find_map(|node| node.children.first());
            match first {
                Some(&child) => class = self.space.egraph.find(child),
                None => break,
            }
        }
        "constant".into()
    }
}

/// The kind of an operator, or of a kernel's anchor.
fn main_kind(op: &Op) -> OpKind {
    match op {
        Op::Kernel(kernel) => kernel.anchor.kind(),
        op => op.kind(),
    }
}
