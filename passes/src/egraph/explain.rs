//! Chains of rule names, read from egg's explanations.

use super::extract::Selection;
use super::language::{ENode, Head};
use super::rebuild::Rebuilt;
use super::space::Space;
use egg::{Id, Language, TreeTerm};
use indexmap::{IndexMap, IndexSet};
use mlc_ir::NodeId;
use smallvec::SmallVec;
use std::rc::Rc;

/// Rules of one value at most; a longer chain is cut.
const LIMIT: usize = 64;

/// For each new node the rules that turn the source's term for its class into the chosen one.
///
/// Precondition: the space was made to explain.
pub fn chains(space: &mut Space, rebuilt: &Rebuilt, selection: &Selection) -> IndexMap<NodeId, Vec<String>> {
    let first = first_ids(space);
    let chosen = &selection.nodes;
    let mut chains = IndexMap::new();
    for (&new, (class, made_of)) in &rebuilt.made_of {
        let operands = chosen.get(class).into_iter().flat_map(|node| node.children.iter().copied());
        let mut rules = of_constants(space, selection, &first, operands);
        let node = chosen.get(class).map(|node| canonical(space, node));
        let target = node.and_then(|node| first.get(&node).copied());
        let original = made_of.iter().rev().find_map(|node| {
            let id = space.ids[node];
            (space.egraph.find(id) == *class).then_some(id)
        });
        if let (Some(original), Some(target)) = (original, target)
            && original != target
        {
            let explanation = space.egraph.explain_id_equivalence(original, target);
            let mut seen = IndexSet::new();
            collect(&explanation.explanation_trees, &mut rules, &mut seen, 0);
        } else if let (None, Some(target)) = (original, target) {
            // Equal to nothing that the source computes: a step towards something that is, such as a merged product.
            rules.extend(space.built_by.get(&target).map(|rule| (*rule).to_owned()));
        }
        chains.insert(new, rules.into_iter().collect());
    }
    chains
}

/// The rules that wrote how constant operands are computed: what was folded into weights shows in nothing else of a kernel.
fn of_constants(
    space: &Space,
    selection: &Selection,
    first: &IndexMap<Key, Id>,
    operands: impl Iterator<Item = Id>,
) -> IndexSet<String> {
    let mut rules = IndexSet::new();
    let mut open: Vec<Id> = operands.collect();
    let mut seen: IndexSet<Id> = IndexSet::new();
    while let Some(class) = open.pop().map(|id| space.egraph.find(id)) {
        if rules.len() >= LIMIT || !seen.insert(class) {
            continue;
        }
        let Some(node) = selection.constants.get(&class) else { continue };
        let made_by = first.get(&canonical(space, node)).and_then(|id| space.built_by.get(id));
        rules.extend(made_by.map(|rule| (*rule).to_owned()));
        open.extend(node.children().iter().rev().copied());
    }
    rules
}

type Key = (Head, SmallVec<[Id; 4]>);

fn canonical(space: &Space, node: &ENode) -> Key {
    (node.head.clone(), node.children().iter().map(|&child| space.egraph.find(child)).collect())
}

/// The first id of each node, up to equality of its children.
fn first_ids(space: &Space) -> IndexMap<Key, Id> {
    let mut first = IndexMap::new();
    for (index, node) in space.egraph.nodes().iter().enumerate() {
        first.entry(canonical(space, node)).or_insert(Id::from(index));
    }
    first
}

/// Rules of a proof and, where an operand was rewritten on the way, of that proof.
fn collect(
    proof: &[Rc<TreeTerm<ENode>>],
    rules: &mut IndexSet<String>,
    seen: &mut IndexSet<*const TreeTerm<ENode>>,
    depth: usize,
) {
    for term in proof {
        if rules.len() >= LIMIT || !seen.insert(Rc::as_ptr(term)) {
            continue;
        }
        for rule in [term.backward_rule, term.forward_rule].into_iter().flatten() {
            rules.insert(rule.to_string());
        }
        if depth < 2 {
            term.child_proofs.iter().for_each(|proof| collect(proof, rules, seen, depth + 1));
        }
    }
}
