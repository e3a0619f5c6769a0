//! Which node computes each constant class. Rules may make a constant of one that they make of it again, so not every node
//! of such a class can be evaluated.

use crate::egraph::language::ENode;
use crate::egraph::maps::Map;
use crate::egraph::space::Space;
use egg::Id;

/// For each constant class a node whose operands come before it; a constant itself if there is one. `classes` are those of
/// the space.
pub(super) fn computed_by(space: &Space, classes: &[Id]) -> Map<Id, ENode> {
    let mut known: Map<Id, ENode> = Map::default();
    let mut open: Vec<Id> = classes.iter().copied().filter(|&id| space.egraph[id].data.constant).collect();
    loop {
        let before = known.len();
        open.retain(|&id| {
            let nodes = &space.egraph[id].nodes;
            let leaf = nodes.iter().find(|node| node.children.is_empty());
            let is_known =
                |node: &&ENode| node.children.iter().all(|&child| known.contains_key(&space.egraph.find(child)));
            let found = leaf.or_else(|| nodes.iter().find(is_known)).cloned();
            let is_open = found.is_none();
            known.extend(found.map(|node| (id, node)));
            is_open
        });
        if known.len() == before {
            return known;
        }
    }
}
