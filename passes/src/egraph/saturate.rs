//! Saturation: rules fire in rounds until nothing new appears or a budget is used up. Budgets count nodes, rounds and
//! matches; no clock takes part.

use super::language::Head;
use super::space::Space;
use crate::rewrite::{Class, Match, Rule, Search, Term, View, Watch};
use egg::Id;
use indexmap::IndexMap;
use mlc_ir::{Category, OpKind};
use serde::Serialize;
use std::collections::BTreeSet;

/// Operators on the longest path of a pattern: a rule sees a change so many levels below at most.
const PATTERN_DEPTH: usize = 4;

/// How much a saturation may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// It stops at so many e-nodes, or earlier on a small graph, see [`Budget::for_graph`].
    pub nodes: usize,
    /// It stops after so many rounds. Moving a transpose through a network takes as many rounds as the network is deep.
    pub iterations: usize,
    /// A rule with more matches in a round skips the round; the limit doubles each time. Of a large graph each node may have a few.
    pub matches: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Budget { nodes: 20_000, iterations: 200, matches: 2_000 }
    }
}

impl Budget {
    /// The budget for a graph of so many nodes: saturations that end at all keep to a few e-nodes per node.
    pub fn for_graph(self, nodes: usize) -> Budget {
        let usual = nodes.saturating_mul(20).saturating_add(500);
        let least = nodes.saturating_mul(4);
        Budget {
            nodes: usual.min(self.nodes).max(least),
            iterations: self.iterations.max(nodes / 4),
            matches: self.matches.max(nodes.saturating_mul(16)),
        }
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
    let mut fresh = space.classes();
    // Rules on the whole program have the first word, and the last.
    let mut with_groups = true;
    let mut watches = Watches::new();
    while result.iterations < budget.iterations {
        result.iterations += 1;
        let (found, is_heard) = search(space, rules, &fresh, with_groups.then_some(&mut watches));
        let first_new = space.made().len();
        let mut joined: Vec<Id> = Vec::new();
        let mut changed = false;
        let mut skipped = false;
        for (number, matches) in found.into_iter().enumerate() {
            if matches.len() > limits[number] {
                limits[number] *= 2;
                skipped = true;
                // What it found must be found again.
                watches.shift_remove(&number);
                continue;
            }
            for (class, term) in matches {
                if space.made().len() >= budget.nodes {
                    space.restore();
                    result.stop = StopReason::NodeLimit;
                    return result;
                }
                if fire(space, &rules[number], class, &term, &mut result) {
                    changed = true;
                    joined.push(class);
                }
            }
        }
        space.restore();
        joined.extend_from_slice(&space.made()[first_new..]);
        fresh = if skipped { space.classes() } else { neighbourhood(space, &joined) };
        let is_quiet = !changed && !skipped && !is_heard;
        if is_quiet && with_groups {
            result.stop = StopReason::Saturated;
            return result;
        }
        with_groups = is_heard || is_quiet;
    }
    result
}

/// The classes whose matches may have changed: these, and what uses them within the reach of a pattern.
fn neighbourhood(space: &Space, changed: &[Id]) -> Vec<Class> {
    let mut reached: BTreeSet<Id> = changed.iter().map(|&id| space.egraph.find(id)).collect();
    let mut frontier: Vec<Id> = reached.iter().copied().collect();
    for _ in 1..PATTERN_DEPTH {
        let parents = frontier.iter().flat_map(|&class| space.egraph[class].parents());
        let parents: BTreeSet<Id> = parents.map(|parent| space.egraph.find(parent)).collect();
        frontier = parents.into_iter().filter(|&parent| reached.insert(parent)).collect();
    }
    reached.into_iter().collect()
}

/// Rules that remember, by number.
type Watches = IndexMap<usize, Box<dyn Watch>>;

/// The matches of each rule, in the order of classes, and whether one that remembers is among those who found something: of these only
/// the first speaks, for what it joins the next one needn't look at apart. Rules on single applications look at `fresh` classes only,
/// those on the whole program where there are watches.
fn search(
    space: &Space,
    rules: &[Rule],
    fresh: &[Class],
    mut watches: Option<&mut Watches>,
) -> (Vec<Vec<(Id, Term)>>, bool) {
    let mut by_kind: IndexMap<OpKind, Vec<(usize, crate::rewrite::Find)>> = IndexMap::new();
    let mut found: Vec<Vec<(Id, Term)>> = vec![Vec::new(); rules.len()];
    let mut has_found = false;
    for (number, rule) in rules.iter().enumerate() {
        match rule.search {
            Search::Each(kinds, find) => {
                kinds.iter().for_each(|&kind| by_kind.entry(kind).or_default().push((number, find)));
            }
            Search::Groups(find) if watches.is_some() => found[number] = find(space),
            Search::Groups(_) => {}
            Search::Watch(watch) => {
                let Some(watches) = watches.as_mut().filter(|_| !has_found) else { continue };
                found[number] = watches.entry(number).or_insert_with(watch).find(space);
                has_found = !found[number].is_empty();
            }
        }
    }
    for &class in fresh {
        search_class(space, class, &by_kind, &mut found);
    }
    (found, has_found)
}

fn search_class(
    space: &Space,
    class: Class,
    by_kind: &IndexMap<OpKind, Vec<(usize, crate::rewrite::Find)>>,
    found: &mut [Vec<(Id, Term)>],
) {
    if space.egraph[class].data.results.len() != 1 {
        return;
    }
    for node in &space.egraph[class].nodes {
        let (Head::Op(_), Some(op)) = (&node.head, &node.op) else { continue };
        // Constants are computed at the end whatever they look like, but moves of them must not pile up.
        if space.is_constant(class) && op.category() != Category::View {
            continue;
        }
        let Some(rules) = by_kind.get(&op.kind()) else { continue };
        let site = Match { view: space, op, operands: &node.children, ty: &node.results[0] };
        for &(number, find) in rules {
            found[number].extend(find(&site).into_iter().map(|term| (class, term)));
        }
    }
}

fn fire(space: &mut Space, rule: &Rule, class: Id, term: &Term, result: &mut Saturation) -> bool {
    let built = space.build(term, class, rule.name).filter(|&built| space.ty(built) == space.ty(class));
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
