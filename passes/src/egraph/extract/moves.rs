//! Deterministic local search on a choice: single classes, then groups of classes that would share an ingredient, change
//! their option whenever the whole graph gets cheaper.

use super::problem::{Choice, Problem};

/// Passes over all moves.
const PASSES: usize = 20;

/// Improves a choice of this cost until no move helps.
pub(super) fn improve(problem: &Problem, mut choice: Choice, mut cost: u64) -> Choice {
    let users = users(problem);
    for _ in 0..PASSES {
        let before = cost;
        group_moves(problem, &users, &mut choice, &mut cost);
        single_moves(problem, &mut choice, &mut cost);
        if cost == before {
            break;
        }
    }
    choice
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

fn live(problem: &Problem, choice: &Choice) -> Vec<bool> {
    let mut live = vec![false; problem.options.len()];
    if let Some((order, _)) = problem.schedule(choice) {
        order.into_iter().for_each(|class| live[class] = true);
    }
    live
}

/// Tries a changed choice; keeps it when it is cheaper.
fn try_changes(problem: &Problem, choice: &mut Choice, cost: &mut u64, changes: &[(usize, usize)]) -> bool {
    let undo: Vec<(usize, Option<usize>)> = changes.iter().map(|&(class, _)| (class, choice[class])).collect();
    changes.iter().for_each(|&(class, option)| choice[class] = Some(option));
    match problem.schedule(choice) {
        Some((_, changed)) if changed < *cost => {
            *cost = changed;
            true
        }
        _ => {
            undo.into_iter().rev().for_each(|(class, option)| choice[class] = option);
            false
        }
    }
}

fn group_moves(problem: &Problem, users: &[Vec<(usize, usize)>], choice: &mut Choice, cost: &mut u64) {
    let mut needed = live(problem, choice);
    for users in users {
        let mut changes: Vec<(usize, usize)> = Vec::new();
        for &(class, option) in users {
            let new = needed[class] && choice[class] != Some(option);
            if new && !changes.iter().any(|&(other, _)| other == class) {
                changes.push((class, option));
            }
        }
        if changes.len() > 1 && try_changes(problem, choice, cost, &changes) {
            needed = live(problem, choice);
        }
    }
}

fn single_moves(problem: &Problem, choice: &mut Choice, cost: &mut u64) {
    let mut needed = live(problem, choice);
    for class in 0..problem.options.len() {
        for option in 0..problem.options[class].len() {
            if needed[class] && choice[class] != Some(option) && try_changes(problem, choice, cost, &[(class, option)])
            {
                needed = live(problem, choice);
            }
        }
    }
}
