//! Extraction: which node of each class to compute, by what the whole graph costs when shared values are paid once.
//!
//! [`greedy`] gives a start that decides class by class; [`moves`] then changes one class, or all classes that would share a
//! new ingredient, as long as the whole gets cheaper. Without the latter a merged kernel is never chosen: to each sibling
//! alone it looks as dear as all siblings together.

mod constants;
mod greedy;
mod moves;
mod price_list;
mod problem;

use super::language::ENode;
use super::maps::Map;
use super::space::Space;
use egg::Id;
use problem::Choice;

pub use price_list::{Goal, PriceList};
pub use problem::Problem;

/// What was chosen.
pub struct Selection {
    /// For each class that the graph needs, the node that computes it; operands before users. Constants are leaves.
    pub nodes: Map<Id, ENode>,
    /// For each constant class of the space, the node that computes it from constants that don't depend on it.
    pub constants: Map<Id, ENode>,
    /// Cost of the graph as it was.
    pub cost_before: u64,
    /// Cost of the chosen graph.
    pub cost_after: u64,
}

impl Problem {
    /// Chooses. The source graph itself is always an answer, and so is `earlier`, what was chosen of the same space before rules
    /// went on filling it: nodes that were cheapest together then, of which moves find what has become cheaper since.
    pub fn solve(&self, space: &Space, earlier: Option<&Selection>) -> Option<Selection> {
        let (_, cost_before) = self.schedule(&self.start)?;
        let greedy = greedy::choose(self);
        let mut starts = vec![greedy.clone(), completed(&self.start, &greedy)];
        if let Some(earlier) = earlier {
            starts.insert(0, completed(&self.choice_of(space, &earlier.nodes), &greedy));
        }
        let cost = |choice: &Choice| self.schedule(choice).map(|(_, cost)| cost);
        starts.retain(|choice| cost(choice).is_some());
        // The source is a start where nothing else can be scheduled, or is cheaper.
        if starts.len() > 1 && starts[..starts.len() - 1].iter().any(|choice| cost(choice) <= Some(cost_before)) {
            starts.pop();
        }
        let improved = starts.into_iter().map(|choice| moves::improve(self, choice));
        let choice = improved.min_by_key(|choice| cost(choice).unwrap_or(u64::MAX))?;
        let (order, cost_after) = self.schedule(&choice)?;
        let nodes = order.iter().filter_map(|&class| {
            let option = &self.options[class][choice[class]?];
            Some((self.ids[class], option.node.clone()))
        });
        Some(Selection { nodes: nodes.collect(), constants: self.constants.clone(), cost_before, cost_after })
    }
}

/// A choice, with another one for classes that it doesn't say.
fn completed(choice: &Choice, other: &Choice) -> Choice {
    choice.iter().zip(other).map(|(own, other)| own.or(*other)).collect()
}
