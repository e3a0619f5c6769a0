//! Greedy extraction on a directed acyclic graph: each class takes the node whose set of needed classes is cheapest.

use super::problem::{Choice, Problem};
use std::ops::Range;

/// Passes over all classes before the search gives up on improving.
const PASSES: usize = 30;

/// Words that are looked at together.
const BLOCK: usize = 16;

/// A set of class numbers.
#[derive(Clone, Default)]
struct Set {
    words: Vec<u64>,
    /// The words that may have something in them, in whole blocks.
    range: Range<usize>,
    len: usize,
}

impl Set {
    fn new(classes: usize) -> Self {
        Set { words: vec![0; classes.div_ceil(64).next_multiple_of(BLOCK)], range: 0..0, len: 0 }
    }

    fn insert(&mut self, class: usize) {
        self.len += usize::from(!self.contains(class));
        self.words[class / 64] |= 1 << (class % 64);
        let start = class / 64 / BLOCK * BLOCK;
        self.grow(&(start..start + BLOCK));
    }

    fn grow(&mut self, range: &Range<usize>) {
        self.range = match self.range.is_empty() {
            true => range.clone(),
            false => self.range.start.min(range.start)..self.range.end.max(range.end),
        };
    }

    fn contains(&self, class: usize) -> bool {
        self.words[class / 64] >> (class % 64) & 1 == 1
    }

    fn meets(&self, other: &Set) -> bool {
        let common = self.range.start.max(other.range.start)..self.range.end.min(other.range.end);
        let (Some(own), Some(other)) = (self.words.get(common.clone()), other.words.get(common)) else { return false };
        let both =
            |(own, other): (&[u64], &[u64])| own.iter().zip(other).fold(0, |all, (own, other)| all | own & other);
        own.chunks(BLOCK).zip(other.chunks(BLOCK)).any(|blocks| both(blocks) != 0)
    }

    /// Takes in another set; `added` is told what is new.
    fn unite(&mut self, other: &Set, mut added: impl FnMut(usize)) {
        if other.range.is_empty() {
            return;
        }
        self.grow(&other.range);
        for start in other.range.clone().step_by(BLOCK) {
            let block = start..start + BLOCK;
            let pairs = self.words[block.clone()].iter().zip(&other.words[block.clone()]);
            if pairs.fold(0, |all, (own, other)| all | other & !own) == 0 {
                continue;
            }
            for index in block {
                let mut new = other.words[index] & !self.words[index];
                self.words[index] |= new;
                while new != 0 {
                    self.len += 1;
                    added(index * 64 + new.trailing_zeros() as usize);
                    new &= new - 1;
                }
            }
        }
    }
}

struct Best {
    option: usize,
    /// Of the option.
    own: u64,
    /// Of all that is needed, when it was chosen.
    cost: u64,
    needs: Set,
    /// What the needed classes cost after so many changes.
    total: i128,
    changes: usize,
}

/// Another cost of a class.
struct Change {
    class: usize,
    more: i128,
}

struct Search<'a> {
    problem: &'a Problem,
    best: Vec<Option<Best>>,
    /// What each option of each class cost by itself when it was looked at.
    own: Vec<Vec<Option<u64>>>,
    changes: Vec<Change>,
    /// The classes that took another option in this pass, and in the one before.
    changed: [Set; 2],
}

/// Chooses an option for every class that can be computed. A stale set may hide a cycle: the caller checks.
pub(super) fn choose(problem: &Problem) -> Choice {
    let mut search = Search {
        problem,
        best: problem.options.iter().map(|_| None).collect(),
        own: problem.options.iter().map(|options| vec![None; options.len()]).collect(),
        changes: Vec::new(),
        changed: [(); 2].map(|()| Set::new(problem.options.len())),
    };
    for _ in 0..PASSES {
        search.pass();
        if search.changed[0].len == 0 {
            break;
        }
    }
    search.best.into_iter().map(|best| best.map(|best| best.option)).collect()
}

impl Search<'_> {
    fn pass(&mut self) {
        let classes = self.problem.options.len();
        self.changed = [Set::new(classes), std::mem::take(&mut self.changed[0])];
        for class in 0..classes {
            let mut better: Option<Best> = None;
            for option in 0..self.problem.options[class].len() {
                let Some(candidate) = self.candidate(class, option) else { continue };
                let least = better.as_ref().or(self.best[class].as_ref());
                if least.is_none_or(|least| candidate.cost < least.cost) {
                    better = Some(candidate);
                }
            }
            if let Some(better) = better {
                self.take(class, better);
            }
        }
    }

    fn take(&mut self, class: usize, mut better: Best) {
        if let Some(before) = &self.best[class] {
            self.changes.push(Change { class, more: i128::from(better.own) - i128::from(before.own) });
        }
        better.changes = self.changes.len();
        self.best[class] = Some(better);
        self.changed[0].insert(class);
    }

    /// An option with what it needs; `None` where that can't be computed, needs the class itself, or costs what it did.
    fn candidate(&mut self, class: usize, option: usize) -> Option<Best> {
        let chosen = &self.problem.options[class][option];
        let mut is_new = false;
        let mut largest: Option<usize> = None;
        for &child in &chosen.children {
            let Best { needs, .. } = self.best[child].as_ref()?;
            if needs.contains(class) {
                return None;
            }
            is_new |= self.changed.iter().any(|changed| needs.meets(changed));
            let size = |child: usize| self.best[child].as_ref().map(|best| best.needs.len);
            if largest.is_none_or(|largest| size(largest) < size(child)) {
                largest = Some(child);
            }
        }
        let own = chosen.cost(|child| self.best[child].as_ref().map(|best| best.option));
        let before = self.own[class][option].replace(own);
        if !is_new && before == Some(own) {
            return None;
        }
        let (mut needs, mut total) = largest.map_or_else(
            || Some((Set::new(self.problem.options.len()), 0)),
            |largest| self.settled(largest).map(|best| (best.needs.clone(), best.total)),
        )?;
        for child in chosen.children.iter().filter_map(|&child| self.best[child].as_ref()) {
            needs.unite(&child.needs, |class| total += self.own_cost(class));
        }
        total += i128::from(own);
        needs.insert(class);
        let cost = u64::try_from(total).unwrap_or(u64::MAX);
        Some(Best { option, own, cost, needs, total, changes: 0 })
    }

    fn own_cost(&self, class: usize) -> i128 {
        self.best[class].as_ref().map_or(0, |best| best.own.into())
    }

    /// What is best for a class, its total being what is needed costs now.
    fn settled(&mut self, class: usize) -> Option<&Best> {
        let best = self.best[class].as_mut()?;
        let since = self.changes[best.changes..].iter().filter(|change| best.needs.contains(change.class));
        best.total += since.map(|change| change.more).sum::<i128>();
        best.changes = self.changes.len();
        Some(best)
    }
}
