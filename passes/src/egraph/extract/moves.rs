//! Deterministic local search on a choice: single classes, then groups of classes that would share an ingredient, change
//! their option whenever the whole graph gets cheaper. What a change costs is computed where it matters, by counting users.

use super::problem::{Choice, Problem};

/// Passes over all moves.
const PASSES: usize = 20;

/// Improves a choice that can be scheduled until no move helps.
pub(super) fn improve(problem: &Problem, choice: Choice) -> Choice {
    let users = users(problem);
    let mut state = State::new(problem, choice, &users);
    for _ in 0..PASSES {
        let grouped = group_moves(&mut state);
        let single = single_moves(&mut state);
        if !grouped && !single {
            break;
        }
    }
    state.choice
}

/// For each class, the options (class, option) of other classes that use it.
fn users(problem: &Problem) -> Vec<Vec<(usize, usize)>> {
    let mut users: Vec<Vec<(usize, usize)>> = vec![Vec::new(); problem.options.len()];
    for (class, options) in problem.options.iter().enumerate() {
        for (number, option) in options.iter().enumerate() {
            option.children.iter().for_each(|&child| users[child].push((class, number)));
        }
    }
    users
}

/// A choice, and how often each class is used in it.
struct State<'a> {
    problem: &'a Problem,
    users: &'a [Vec<(usize, usize)>],
    choice: Choice,
    /// Uses by needed classes; the root is used once.
    uses: Vec<usize>,
    /// The classes whose uses have grown (`true`) or shrunk since the last change that was kept.
    log: Vec<(usize, bool)>,
}

impl<'a> State<'a> {
    fn new(problem: &'a Problem, choice: Choice, users: &'a [Vec<(usize, usize)>]) -> Self {
        let mut state = State { problem, users, choice, uses: Vec::new(), log: Vec::new() };
        state.count();
        state
    }

    fn count(&mut self) {
        self.uses = vec![0; self.problem.options.len()];
        self.need(self.problem.root);
        self.log.clear();
    }

    fn cost(&self, class: usize) -> i128 {
        let cost = |option: usize| self.problem.options[class][option].cost(|child| self.choice[child]);
        self.choice[class].map_or(0, cost).into()
    }

    /// One more use of a class: what its costs and those of what it needs are. `None` where something can't be computed.
    fn need(&mut self, class: usize) -> Option<i128> {
        let mut cost = 0;
        let mut open = vec![class];
        let mut complete = true;
        while let Some(class) = open.pop() {
            self.uses[class] += 1;
            self.log.push((class, true));
            if self.uses[class] == 1 {
                cost += self.cost(class);
                complete &= self.choice[class].is_some();
                open.extend(self.children(class));
            }
        }
        complete.then_some(cost)
    }

    /// One use less: what is saved.
    fn release(&mut self, class: usize) -> i128 {
        let mut saved = 0;
        let mut open = vec![class];
        while let Some(class) = open.pop() {
            self.uses[class] -= 1;
            self.log.push((class, false));
            if self.uses[class] == 0 {
                saved += self.cost(class);
                open.extend(self.children(class));
            }
        }
        saved
    }

    fn children(&self, class: usize) -> &'a [usize] {
        self.choice[class].map_or(&[], |option| &self.problem.options[class][option].children)
    }

    /// The needed options of other classes that see a class, as an operand or through a view.
    fn readers(&self, class: usize) -> Vec<usize> {
        let needed = |class: usize| {
            let needed = |(user, option): &(usize, usize)| self.uses[*user] > 0 && self.choice[*user] == Some(*option);
            self.users[class].iter().copied().filter(needed)
        };
        let mut readers: Vec<usize> = Vec::new();
        for (user, option) in needed(class) {
            readers.push(user);
            if self.problem.options[user][option].is_view() {
                readers.extend(needed(user).map(|(reader, _)| reader));
            }
        }
        readers.sort_unstable();
        readers.dedup();
        readers
    }

    /// Has a class take another option; gives what the graph costs more then, `None` where it can't be computed.
    fn take(&mut self, class: usize, option: Option<usize>) -> Option<i128> {
        if self.uses[class] == 0 {
            self.choice[class] = option;
            return Some(0);
        }
        let readers = self.readers(class);
        let costs = |state: &Self| state.cost(class) + readers.iter().map(|&reader| state.cost(reader)).sum::<i128>();
        let before = costs(self);
        let old = self.children(class);
        self.choice[class] = option;
        let mut change = costs(self) - before;
        let mut complete = option.is_some();
        // What is needed either way isn't released and needed again.
        for &child in self.children(class) {
            match self.need(child) {
                Some(cost) => change += cost,
                None => complete = false,
            }
        }
        for &child in old {
            change -= self.release(child);
        }
        complete.then_some(change)
    }

    /// Tries a changed choice; keeps it when it is cheaper.
    fn try_changes(&mut self, changes: &[(usize, usize)]) -> bool {
        let before: Vec<(usize, Option<usize>)> =
            changes.iter().map(|&(class, _)| (class, self.choice[class])).collect();
        let mut change = Some(0);
        for &(class, option) in changes {
            let more = self.take(class, Some(option));
            change = change.zip(more).map(|(sum, more)| sum + more);
        }
        let cheaper = change.is_some_and(|change| change < 0) && self.problem.schedule(&self.choice).is_some();
        if cheaper {
            // Uses within a cycle that was there between two changes would be counted still.
            self.count();
        } else {
            before.into_iter().rev().for_each(|(class, option)| self.choice[class] = option);
            for (class, grown) in std::mem::take(&mut self.log).into_iter().rev() {
                self.uses[class] = if grown { self.uses[class] - 1 } else { self.uses[class] + 1 };
            }
        }
        cheaper
    }
}

fn group_moves(state: &mut State<'_>) -> bool {
    let mut better = false;
    for users in state.users {
        let mut changes: Vec<(usize, usize)> = Vec::new();
        for &(class, option) in users {
            let new = state.uses[class] > 0 && state.choice[class] != Some(option);
            if new && !changes.iter().any(|&(other, _)| other == class) {
                changes.push((class, option));
            }
        }
        better |= changes.len() > 1 && state.try_changes(&changes);
    }
    better
}

fn single_moves(state: &mut State<'_>) -> bool {
    let mut better = false;
    for class in 0..state.choice.len() {
        for option in 0..state.problem.options[class].len() {
            if state.uses[class] > 0 && state.choice[class] != Some(option) {
                better |= state.try_changes(&[(class, option)]);
            }
        }
    }
    better
}
