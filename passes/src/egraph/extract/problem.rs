//! The e-graph as extraction sees it: the options of each class, what they need and what they cost.

use super::constants;
use crate::cost::CostModel;
use crate::egraph::language::{ENode, Head};
use crate::egraph::space::Space;
use crate::rewrite::View;
use egg::{Id, Language};
use indexmap::IndexMap;
use mlc_ir::TensorType;

/// One node of a class, with dense class numbers.
pub(super) struct Candidate {
    pub(super) cost: u64,
    pub(super) children: Vec<usize>,
    pub(super) node: ENode,
}

/// The e-graph with dense class numbers and costs.
pub struct Problem {
    /// Class of each number.
    pub(super) ids: Vec<Id>,
    pub(super) options: Vec<Vec<Candidate>>,
    root: usize,
    pub(super) start: Vec<Option<usize>>,
    pub(super) constants: IndexMap<Id, ENode>,
}

/// For each class number the option chosen, where the class can be computed.
pub(super) type Choice = Vec<Option<usize>>;

impl Problem {
    /// Reads a space.
    pub fn new(space: &Space, model: &CostModel) -> Problem {
        let ids = space.classes();
        let constants = constants::computed_by(space, &ids);
        let numbers: IndexMap<Id, usize> = ids.iter().enumerate().map(|(number, &id)| (id, number)).collect();
        let options: Vec<Vec<Candidate>> =
            ids.iter().map(|&id| options(space, id, &numbers, &constants, model)).collect();
        let mut start = vec![None; ids.len()];
        for (&node, &id) in &space.ids {
            let number = numbers[&space.egraph.find(id)];
            if constants.contains_key(&ids[number]) {
                // Its only option is as good as the source's own way to compute it: both are leaves.
                start[number] = Some(0);
                continue;
            }
            let children: Vec<Id> = space.egraph.nodes()[usize::from(id)]
                .children()
                .iter()
                .map(|&child| space.egraph.find(child))
                .collect();
            let head = &space.egraph.nodes()[usize::from(id)].head;
            let same = |option: &Candidate| option.node.head == *head && option.node.children[..] == children[..];
            if start[number].is_none() {
                start[number] = options[number].iter().position(same);
            }
            debug_assert!(space.source.node(node).results.len() != 1 || !options[number].is_empty());
        }
        let root = numbers[&space.egraph.find(space.root)];
        for (number, options) in options.iter().enumerate() {
            let structural = |option: &Candidate| matches!(option.node.head, Head::Projection(_) | Head::Outputs);
            if start[number].is_none() && options.iter().any(structural) {
                start[number] = options.iter().position(structural);
            }
        }
        Problem { ids, options, root, start, constants }
    }

    /// The classes that a choice needs, operands before users, and their cost; `None` on a cycle or a gap.
    pub(super) fn schedule(&self, choice: &Choice) -> Option<(Vec<usize>, u64)> {
        let mut state = vec![0u8; self.ids.len()];
        let mut order = Vec::new();
        let mut cost = 0u64;
        let mut stack = vec![(self.root, 0usize)];
        state[self.root] = 1;
        while let Some((class, position)) = stack.pop() {
            let option = &self.options[class][choice[class]?];
            match option.children.get(position) {
                Some(&child) => {
                    stack.push((class, position + 1));
                    match state[child] {
                        0 => {
                            state[child] = 1;
                            stack.push((child, 0));
                        }
                        1 => return None,
                        _ => {}
                    }
                }
                None => {
                    state[class] = 2;
                    cost = cost.saturating_add(option.cost);
                    order.push(class);
                }
            }
        }
        Some((order, cost))
    }
}

fn options(
    space: &Space,
    id: Id,
    numbers: &IndexMap<Id, usize>,
    constants: &IndexMap<Id, ENode>,
    model: &CostModel,
) -> Vec<Candidate> {
    let class = &space.egraph[id];
    if let Some(node) = constants.get(&id) {
        let cost = model.constant(&class.data.results[0], class.data.splat.is_some());
        return vec![Candidate { cost, children: Vec::new(), node: node.clone() }];
    }
    let option = |node: &ENode| {
        let types: Vec<TensorType> =
            node.children.iter().filter_map(|&child| space.egraph[child].data.results.first().cloned()).collect();
        let cost = match (&node.head, &node.op) {
            (Head::Op(_), Some(op)) => model.application(op, &types, &node.results),
            _ => 0,
        };
        let mut children: Vec<usize> = Vec::new();
        for child in &node.children {
            let number = numbers[&space.egraph.find(*child)];
            if !children.contains(&number) {
                children.push(number);
            }
        }
        Candidate { cost, children, node: node.clone() }
    };
    class.nodes.iter().map(option).collect()
}
