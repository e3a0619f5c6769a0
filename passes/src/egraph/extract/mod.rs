//! Extraction: which node of each class to compute, by what the whole graph costs when shared values are paid once.
//!
//! [`greedy`] gives a start that decides class by class; [`moves`] then changes one class, or all classes that would share a
//! new ingredient, as long as the whole gets cheaper. Without the latter a merged kernel is never chosen: to each sibling
//! alone it looks as dear as all siblings together.

mod constants;
mod greedy;
mod moves;
mod problem;

use super::language::ENode;
use egg::Id;
use indexmap::IndexMap;
use problem::Choice;

pub use problem::Problem;

/// What was chosen.
pub struct Selection {
    /// For each class that the graph needs, the node that computes it; operands before users. Constants are leaves.
    pub nodes: IndexMap<Id, ENode>,
    /// For each constant class of the space, the node that computes it from constants that don't depend on it.
    pub constants: IndexMap<Id, ENode>,
    /// Cost of the graph as it was.
    pub cost_before: u64,
    /// Cost of the chosen graph.
    pub cost_after: u64,
}

impl Problem {
    /// Chooses. The source graph itself is always an answer.
    pub fn solve(&self) -> Option<Selection> {
        let (_, cost_before) = self.schedule(&self.start)?;
        let mut choice = greedy::choose(self);
        let mut cost = self.schedule(&choice).map(|(_, cost)| cost);
        if cost.is_none_or(|cost| cost > cost_before) {
            choice = self.completed_start(&choice);
            cost = self.schedule(&choice).map(|(_, cost)| cost);
        }
        let choice = moves::improve(self, choice, cost?);
        let (order, cost_after) = self.schedule(&choice)?;
        let nodes = order.iter().filter_map(|&class| {
            let option = &self.options[class][choice[class]?];
            Some((self.ids[class], option.node.clone()))
        });
        Some(Selection { nodes: nodes.collect(), constants: self.constants.clone(), cost_before, cost_after })
    }

    /// The source's choice, with the greedy one for classes that the source doesn't have.
    fn completed_start(&self, greedy: &Choice) -> Choice {
        self.start.iter().zip(greedy).map(|(start, greedy)| start.or(*greedy)).collect()
    }
}
