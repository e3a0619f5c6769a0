//! Saturation: rules fire in rounds until nothing new appears or a budget is used up. Budgets count nodes, rounds and
//! matches; no clock takes part.

use super::language::Head;
use super::space::Space;
use crate::rewrite::{Class, Match, Rule, Search, Term, View};
use egg::Id;
use indexmap::IndexMap;
use mlc_ir::OpKind;
use serde::Serialize;

/// How much a saturation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// It stops at so many e-nodes.
    pub nodes: usize,
    /// It stops after so many rounds.
    pub iterations: usize,
    /// A rule with more matches in a round skips the round; the limit doubles each time.
    pub matches: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { nodes: 20_000, iterations: 12, matches: 2_000 }
    }
}

/// Why a saturation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// No rule has anything new to say.
    Saturated,
    /// The number of e-nodes.
    NodeLimit,
    /// The number of rounds.
    IterationLimit,
}

/// What a saturation did.
#[derive(Debug, Clone)]
pub struct Saturation {
    /// How often each rule joined two classes.
    pub fired: IndexMap<&'static str, usize>,
    /// How many right sides each rule built that no operator accepts or that have another type.
    pub refused: IndexMap<&'static str, usize>,
    /// Rounds.
    pub iterations: usize,
    /// Why it ended.
    pub stop: StopReason,
}

/// Lets rules fire on a space.
pub fn saturate(space: &mut Space, rules: &[Rule], budget: Budget) -> Saturation {
    let mut result = Saturation {
        fired: IndexMap::new(),
        refused: IndexMap::new(),
        iterations: 0,
        stop: StopReason::IterationLimit,
    };
    let mut limits: Vec<usize> = vec![budget.matches; rules.len()];
    while result.iterations < budget.iterations {
        result.iterations += 1;
        let found = search(space, rules);
        let mut changed = false;
        for (number, matches) in found.into_iter().enumerate() {
            if matches.len() > limits[number] {
                limits[number] *= 2;
                changed = true;
                continue;
            }
            for (class, term) in matches {
                if space.egraph.nodes().len() >= budget.nodes {
                    space.egraph.rebuild();
                    result.stop = StopReason::NodeLimit;
                    return result;
                }
                changed |= fire(space, &rules[number], class, &term, &mut result);
            }
        }
        space.egraph.rebuild();
        if !changed {
            result.stop = StopReason::Saturated;
            return result;
        }
    }
    result
}

/// The matches of each rule, in the order of classes.
fn search(space: &Space, rules: &[Rule]) -> Vec<Vec<(Id, Term)>> {
    let mut by_kind: IndexMap<OpKind, Vec<(usize, crate::rewrite::Find)>> = IndexMap::new();
    let mut found: Vec<Vec<(Id, Term)>> = vec![Vec::new(); rules.len()];
    for (number, rule) in rules.iter().enumerate() {
        match rule.search {
            Search::Each(kinds, find) => {
                kinds.iter().for_each(|&kind| by_kind.entry(kind).or_default().push((number, find)));
            }
            Search::Groups(find) => found[number] = find(space),
        }
    }
    for class in space.classes() {
        search_class(space, class, &by_kind, &mut found);
    }
    found
}

fn search_class(
    space: &Space,
    class: Class,
    by_kind: &IndexMap<OpKind, Vec<(usize, crate::rewrite::Find)>>,
    found: &mut [Vec<(Id, Term)>],
) {
    if space.egraph[class].data.results.len() != 1 || space.is_constant(class) {
        return;
    }
    for node in &space.egraph[class].nodes {
        let (Head::Op(_), Some(op)) = (&node.head, &node.op) else { continue };
        let Some(rules) = by_kind.get(&op.kind()) else { continue };
        let site = Match { view: space, op, operands: &node.children, ty: &node.results[0] };
        for &(number, find) in rules {
            found[number].extend(find(&site).into_iter().map(|term| (class, term)));
        }
    }
}

fn fire(space: &mut Space, rule: &Rule, class: Id, term: &Term, result: &mut Saturation) -> bool {
    let built = space.build(term, class).filter(|&built| space.ty(built) == space.ty(class));
    let Some(built) = built else {
        *result.refused.entry(rule.name).or_default() += 1;
        return false;
    };
    let joined =
        space.egraph.find(built) != space.egraph.find(class) && space.egraph.union_trusted(class, built, rule.name);
    if joined {
        *result.fired.entry(rule.name).or_default() += 1;
    }
    joined
}
