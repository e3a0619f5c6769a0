//! Phases of a kernel: which units threads compute at the same time, and what one thread does between.

use super::share::{Context, Shares, Writer, new_index, share, with_body};
use super::team::{LEAST_GAIN, Phase, Split, Team};
use crate::loops::level::{Level, Unchanging, defined, only_loop};
use crate::loops::parallel::{are_disjoint, knowledge};
use crate::loops::{Function, Overlaps, Parameter, Stmt, Var, VarInfo, VarKind, mentioned, remove_all_unused};
use crate::module::SplitSummary;
use std::collections::BTreeSet;

/// Most units of a block that are looked at one by one.
const MOST_UNITS: usize = 128;

/// A kernel over threads, if that is worth it.
pub fn split(function: &Function, team: &Team<'_>) -> Option<Split> {
    let kinds: Vec<VarKind> = function.vars.iter().map(|var| var.kind).collect();
    let known = knowledge(function, &kinds);
    let unchanging = Unchanging::of(function, &known);
    let level = Level::of(&function.body, &kinds, &unchanging);
    let mut context = Context {
        team,
        function,
        kinds: &kinds,
        unchanging: &unchanging,
        knowledge: known,
        pure: level.pure.clone(),
        around: Vec::new(),
        free: BTreeSet::new(),
    };
    level.pure.iter().for_each(|statement| context.knowledge.learn(statement));
    let whole = context.price(&function.body);
    let mut phases = Phases { vars: function.vars.clone(), list: Vec::new(), launches: 0.0, gain: 0.0, shared: 0.0 };
    // Nothing can be won of less.
    if whole < team.cost.launch {
        return None;
    }
    let mut body = phases.region(&context, &level)?;
    remove_all_unused(&mut body);
    let Phases { vars, list, launches, gain, shared } = phases;
    let phase = |function| Phase { function: Function { vars: vars.clone(), ..function } };
    let phases = list.into_iter().map(phase).collect();
    let percent = (100.0 * shared / whole.max(1.0)).round().min(100.0) as u64;
    let function = Function { body, vars: vars.clone(), ..function.clone() };
    Some(Split { function, phases, summary: SplitSummary { launches: launches as u64, percent }, gain })
}

/// The phases found so far.
struct Phases {
    vars: Vec<VarInfo>,
    list: Vec<Function>,
    launches: f64,
    gain: f64,
    /// Time of what threads compute.
    shared: f64,
}

/// Units between two of which all threads wait for each other.
enum Group {
    /// They touch nothing of each other's results.
    Apart(Vec<usize>),
    /// A loop with phases in its body.
    Loop(Stmt),
}

impl Phases {
    /// The statements of one thread for a block; nothing where no threads are worth it.
    fn region(&mut self, context: &Context<'_>, level: &Level) -> Option<Vec<Stmt>> {
        if level.units.len() > MOST_UNITS {
            return None;
        }
        let prices: Vec<f64> = level.units.iter().map(|unit| context.price(unit)).collect();
        let (touched, known) = context.touched(&level.units);
        let before = self.list.len();
        let mut groups = vec![Group::Apart(Vec::new())];
        for (number, unit) in level.units.iter().enumerate() {
            let own = std::slice::from_ref(unit);
            if self.least(context) < prices[number]
                && !share(context, own, &prices[number..=number]).are_several(prices[number])
                && let Some(code) = only_loop(unit).and_then(|code| self.inside(context, code))
            {
                groups.extend([Group::Loop(code), Group::Apart(Vec::new())]);
                continue;
            }
            let is_apart = |&other: &usize| are_disjoint(&touched[other], &touched[number], &known);
            match groups.last_mut() {
                Some(Group::Apart(list)) if list.iter().all(is_apart) => list.push(number),
                _ => groups.push(Group::Apart(vec![number])),
            }
        }
        let mut body = level.pure.clone();
        for group in groups {
            match group {
                Group::Loop(code) => body.push(code),
                Group::Apart(list) => {
                    let units: Vec<Vec<Stmt>> = list.iter().map(|&number| level.units[number].clone()).collect();
                    let prices: Vec<f64> = list.iter().map(|&number| prices[number]).collect();
                    body.extend(self.phase(context, &units, &prices));
                }
            }
        }
        (self.list.len() > before).then_some(body)
    }

    /// A loop that one thread runs through, with phases in its body.
    fn inside(&mut self, context: &Context<'_>, code: &Stmt) -> Option<Stmt> {
        let (inner, level) = context.inside(code, false)?;
        self.region(&inner, &level).map(|body| with_body(code, body))
    }

    /// The time from which on a launch is worth it, in all turns of the loops around it.
    fn least(&self, context: &Context<'_>) -> f64 {
        LEAST_GAIN * context.team.cost.launch * turns(context)
    }

    /// The launch of a phase, or its units where that isn't worth it.
    fn phase(&mut self, context: &Context<'_>, units: &[Vec<Stmt>], prices: &[f64]) -> Vec<Stmt> {
        let total: f64 = prices.iter().sum();
        let shares = share(context, units, prices);
        let gain = total - shares.longest();
        if gain < self.least(context) {
            return units.concat();
        }
        let launches = turns(context);
        self.launches += launches;
        self.gain += gain - launches * context.team.cost.launch;
        self.shared += total;
        vec![self.launch(context, units, &shares)]
    }

    fn launch(&mut self, context: &Context<'_>, units: &[Vec<Stmt>], shares: &Shares) -> Stmt {
        let share = new_index(&mut self.vars, "share");
        let own = Writer { vars: &mut self.vars, share }.write(units, shares);
        let around = context.around.iter().flat_map(|around| around.pure.clone());
        let mut body: Vec<Stmt> = context.pure.iter().cloned().chain(around).chain(own).collect();
        remove_all_unused(&mut body);
        let free = free_variables(&body);
        let arguments: Vec<Var> = free.into_iter().filter(|&var| var != share).collect();
        let of = |&var: &Var| {
            let known = context.function.parameters.iter().find(|parameter| parameter.var == var);
            known.cloned().unwrap_or(Parameter { var, restrict: false, overlaps: Overlaps::Never })
        };
        let parameters = arguments.iter().chain([&share]).map(of).collect();
        let phase = self.list.len();
        let comment = vec![format!("A share of {}.", context.function.name)];
        self.list.push(Function { name: String::new(), comment, parameters, vars: Vec::new(), body });
        Stmt::Launch { phase, arguments }
    }
}

/// How often what is at a place runs.
fn turns(context: &Context<'_>) -> f64 {
    let one = |head: &Stmt| {
        let Stmt::For { start, end, step, .. } = head else { return 1.0 };
        let bounds = context.knowledge.interval(start).zip(context.knowledge.interval(end));
        bounds.map_or(1.0, |(start, end)| ((end.1 - start.0) as f64 / *step as f64).ceil().max(1.0))
    };
    context.around.iter().map(|around| one(&around.head)).product()
}

/// Variables that statements know but don't define, in the order of their numbers.
fn free_variables(body: &[Stmt]) -> BTreeSet<Var> {
    let mut own = BTreeSet::new();
    definitions(body, &mut own);
    mentioned(body).difference(&own).copied().collect()
}

fn definitions(body: &[Stmt], own: &mut BTreeSet<Var>) {
    for statement in body {
        own.extend(defined(statement));
        match statement {
            Stmt::For { var, body, .. } => {
                own.insert(*var);
                definitions(body, own);
            }
            Stmt::If { then, otherwise, .. } => {
                definitions(then, own);
                definitions(otherwise, own);
            }
            Stmt::IfValue { then, .. } => definitions(then, own),
            _ => {}
        }
    }
}
