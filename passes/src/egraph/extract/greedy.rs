//! Greedy extraction on a directed acyclic graph: each class takes the node whose set of needed classes is cheapest.

use super::problem::{Choice, Problem};

/// Passes over all classes before the search gives up on improving.
const PASSES: usize = 30;

/// A set of class numbers.
#[derive(Clone, Default)]
struct Set {
    words: Vec<u64>,
}

impl Set {
    fn new(classes: usize) -> Self {
        Set { words: vec![0; classes.div_ceil(64)] }
    }

    fn insert(&mut self, class: usize) {
        self.words[class / 64] |= 1 << (class % 64);
    }

    fn contains(&self, class: usize) -> bool {
        self.words[class / 64] >> (class % 64) & 1 == 1
    }

    fn unite(&mut self, other: &Set) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let within = |word: u64| {
            std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|&left| left != 0)
                .map(|left| left.trailing_zeros() as usize)
        };
        self.words.iter().enumerate().flat_map(move |(index, &word)| within(word).map(move |bit| index * 64 + bit))
    }
}

struct Best {
    option: usize,
    /// Of the option.
    own: u64,
    /// Of all that is needed.
    cost: u64,
    needs: Set,
}

/// Chooses an option for every class that can be computed. A stale set may hide a cycle: the caller checks.
pub(super) fn choose(problem: &Problem) -> Choice {
    let classes = problem.options.len();
    let mut best: Vec<Option<Best>> = (0..classes).map(|_| None).collect();
    let mut own_cost = vec![0u64; classes];
    for _ in 0..PASSES {
        let mut changed = false;
        for class in 0..classes {
            for option in 0..problem.options[class].len() {
                let Some(candidate) = candidate(problem, &best, &own_cost, class, option) else { continue };
                if best[class].as_ref().is_none_or(|best| candidate.cost < best.cost) {
                    own_cost[class] = candidate.own;
                    best[class] = Some(candidate);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    best.into_iter().map(|best| best.map(|best| best.option)).collect()
}

fn candidate(problem: &Problem, best: &[Option<Best>], own_cost: &[u64], class: usize, option: usize) -> Option<Best> {
    let chosen = &problem.options[class][option];
    let mut needs = Set::new(problem.options.len());
    for &child in &chosen.children {
        needs.unite(&best[child].as_ref()?.needs);
    }
    if needs.contains(class) {
        return None;
    }
    let own = chosen.cost(|child| best[child].as_ref().map(|best| best.option));
    let cost = needs.iter().fold(own, |sum, class| sum.saturating_add(own_cost[class]));
    needs.insert(class);
    Some(Best { option, own, cost, needs })
}
