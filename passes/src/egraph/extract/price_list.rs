//! What the applications of a space cost. A deep network has the same one many times; it is asked for once.

use crate::egraph::language::{ENode, Head};
use crate::egraph::maps::{Map, Set};
use crate::egraph::space::Space;
use egg::Id;
use mlc_ir::{Known, Op, PricedOperand, Prices, TensorType, Weights};
use smallvec::SmallVec;

/// Prices, and what their parts are worth.
#[derive(Clone, Copy)]
pub struct Goal<'a> {
    /// What things cost.
    pub prices: &'a dyn Prices,
    /// How costs are compared.
    pub weights: Weights,
}

/// An operator of the space, and for each operand the number of its type and what is known of it.
type Question = (Head, SmallVec<[(usize, Known); 4]>);

/// See the module. It serves one space, however much rules add to that.
pub struct PriceList<'a> {
    pub(super) goal: Goal<'a>,
    types: Set<TensorType>,
    known: Map<Question, u64>,
}

impl<'a> PriceList<'a> {
    /// Prices of which none is known yet.
    pub fn new(goal: Goal<'a>) -> Self {
        PriceList { goal, types: Set::default(), known: Map::default() }
    }

    /// What an e-node costs that applies an operator.
    pub(super) fn application(&mut self, space: &Space, node: &ENode, op: &Op) -> u64 {
        let mut question = (node.head.clone(), SmallVec::new());
        for &child in &node.children {
            let Some(ty) = space.egraph[child].data.results.first() else { continue };
            let number = match self.types.get_index_of(ty) {
                Some(number) => number,
                None => self.types.insert_full(ty.clone()).0,
            };
            question.1.push((number, known(space, child)));
        }
        if let Some(&cost) = self.known.get(&question) {
            return cost;
        }
        let cost = self.goal.weights.weigh(self.goal.prices.application(op, &operands(space, node), &node.results));
        self.known.insert(question, cost);
        cost
    }
}

/// The operands of an e-node.
pub(super) fn operands(space: &Space, node: &ENode) -> Vec<PricedOperand> {
    let operand = |&child: &Id| {
        let ty = space.egraph[child].data.results.first()?.clone();
        Some(PricedOperand { ty, known: known(space, child) })
    };
    node.children.iter().filter_map(operand).collect()
}

fn known(space: &Space, class: Id) -> Known {
    let facts = &space.egraph[class].data;
    match facts.splat {
        Some(_) => Known::Splat,
        None if facts.constant => Known::Constant,
        None => Known::Type,
    }
}
