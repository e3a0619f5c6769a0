//! Which thread computes what of a phase: turns of loops, or units as a whole, by price.

use super::team::Team;
use crate::loops::level::{Level, Unchanging, only_loop};
use crate::loops::parallel::{Knowledge, Touched, are_disjoint, is_independent};
use crate::loops::{Expr, Function, Index, Relation, Stmt, Var, VarInfo, VarKind};
use crate::price::price;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};
use std::collections::BTreeSet;

/// Most units of a level that are looked at one by one.
const MOST_UNITS: usize = 64;
/// Turns for each thread from which on a loop needn't be cut anywhere else.
const MANY_TURNS: i64 = 16;
/// By how much a cut inside of loops must be better than one of their turns.
const BETTER: f64 = 0.97;

/// A loop around statements, and what is defined before them in it.
#[derive(Debug, Clone)]
pub struct Around {
    /// The loop, without its body.
    pub head: Stmt,
    /// Definitions at the beginning of its body.
    pub pure: Vec<Stmt>,
}

/// A loop with another body.
pub fn with_body(head: &Stmt, inside: Vec<Stmt>) -> Stmt {
    let mut copy = head.clone();
    if let Stmt::For { body, .. } = &mut copy {
        *body = inside;
    }
    copy
}

/// Where statements stand.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    pub team: &'a Team<'a>,
    pub function: &'a Function,
    pub kinds: &'a [VarKind],
    pub unchanging: &'a Unchanging,
    /// What is known there.
    pub knowledge: Knowledge<'a>,
    /// Definitions of the function's own block.
    pub pure: Vec<Stmt>,
    /// The loops around them, outermost first.
    pub around: Vec<Around>,
    /// Counters of those of these loops which all threads run through, each at its own pace, if turns of one of them may touch what
    /// others write.
    pub free: BTreeSet<Var>,
}

impl Context<'_> {
    /// Time of statements, in all turns of the loops around them.
    pub fn price(&self, statements: &[Stmt]) -> f64 {
        let inside = statements.to_vec();
        let body = self
            .around
            .iter()
            .rev()
            .fold(inside, |body, around| vec![with_body(&around.head, [around.pure.clone(), body].concat())]);
        let function = Function { body: [self.pure.clone(), body].concat(), ..self.function.clone() };
        price(&function, self.team.target, &self.team.working_set).time as f64
    }

    /// The context of a loop's body, and the body as a level. `is_free` says whether threads run through it, each at its own pace.
    pub fn inside(&self, code: &Stmt, is_free: bool) -> Option<(Self, Level)> {
        let Stmt::For { var, body, parallel, .. } = code else { return None };
        let level = Level::of(body, self.kinds, self.unchanging);
        let mut inner = self.clone();
        inner.knowledge.learn(code);
        level.pure.iter().for_each(|statement| inner.knowledge.learn(statement));
        if is_free && (!parallel || !self.free.is_empty()) {
            inner.free.insert(*var);
        }
        inner.around.push(Around { head: with_body(code, Vec::new()), pure: level.pure.clone() });
        Some((inner, level))
    }

    /// What is touched by each of some units, and what is known behind all of them.
    pub fn touched(&self, units: &[Vec<Stmt>]) -> (Vec<Touched>, Knowledge<'_>) {
        let mut knowledge = self.knowledge.clone();
        let touched = |unit: &Vec<Stmt>| {
            let mut own = Touched::default();
            own.block(unit, &mut knowledge);
            own
        };
        (units.iter().map(touched).collect(), knowledge)
    }
}

/// How a unit is shared.
#[derive(Debug, Clone)]
enum Unit {
    /// The turns of a loop: the numbers of the first that is not in the shares so far.
    Turns(Vec<i64>),
    /// All of it is in one share.
    Whole(usize),
    /// The body of a loop, all turns of which each thread runs through.
    Inside(Box<(Level, Shares)>),
}

/// How the units of a level are shared.
#[derive(Debug, Clone)]
pub struct Shares {
    units: Vec<Unit>,
    /// Time of each share.
    pub times: Vec<f64>,
}

impl Shares {
    /// Time of the longest share.
    pub fn longest(&self) -> f64 {
        self.times.iter().copied().fold(0.0, f64::max)
    }

    /// Whether more than one thread has something to do of what takes so long in all.
    pub fn are_several(&self, total: f64) -> bool {
        self.longest() < 0.9 * total
    }
}

/// Shares units that don't touch each other's results, whose prices are given.
pub fn share(context: &Context<'_>, units: &[Vec<Stmt>], prices: &[f64]) -> Shares {
    let by_turns = cut(context, units, prices, false);
    let total: f64 = prices.iter().sum();
    let even = total / context.team.threads as f64;
    if by_turns.longest() <= even / BETTER {
        return by_turns;
    }
    let inside = cut(context, units, prices, true);
    if inside.longest() < BETTER * by_turns.longest() { inside } else { by_turns }
}

/// What is still to be given to threads: so many pieces of the same time.
struct Pieces {
    count: i64,
    time: f64,
}

/// Shares units, loops of few turns inside of them if that is wanted.
fn cut(context: &Context<'_>, units: &[Vec<Stmt>], prices: &[f64], inside: bool) -> Shares {
    let threads = context.team.threads;
    let mut times = vec![0.0; threads];
    let mut open: Vec<Option<Pieces>> = Vec::new();
    let mut result: Vec<Unit> = Vec::new();
    for (unit, &time) in units.iter().zip(prices) {
        let turns = turns(context, unit);
        let is_coarse = turns.is_none_or(|turns| turns < MANY_TURNS * threads as i64);
        let found = if is_coarse && (inside || turns.is_none()) { within(context, unit, time) } else { None };
        if let Some(found) = found {
            times.iter_mut().zip(&found.1.times).for_each(|(own, more)| *own += more);
            result.push(Unit::Inside(Box::new(found)));
            open.push(None);
        } else {
            let count = turns.unwrap_or(1);
            result.push(if turns.is_some() { Unit::Turns(Vec::new()) } else { Unit::Whole(0) });
            open.push(Some(Pieces { count, time: time / count.max(1) as f64 }));
        }
    }
    // Where each share of what is open ends, if all get the same in the end.
    let rest: f64 = open.iter().flatten().map(|pieces| pieces.count as f64 * pieces.time).sum();
    let even = (rest + times.iter().sum::<f64>()) / threads as f64;
    let room: Vec<f64> = times.iter().map(|time| (even - time).max(0.0)).collect();
    let scale = rest / room.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let ends: Vec<f64> = room
        .iter()
        .scan(0.0, |end, own| {
            *end += own * scale;
            Some(*end)
        })
        .collect();
    let mut first = 0.0;
    for (unit, pieces) in result.iter_mut().zip(open) {
        let Some(Pieces { count, time }) = pieces else { continue };
        // A piece is in the share in which its middle is.
        let before = |end: f64| (((end - first) / time.max(f64::MIN_POSITIVE) - 0.5).ceil() as i64).clamp(0, count);
        let mut cuts: Vec<i64> = ends.iter().map(|&end| before(end)).collect();
        if let Some(last) = cuts.last_mut() {
            *last = count;
        }
        let mut start = 0;
        for (own, &end) in times.iter_mut().zip(&cuts) {
            *own += (end - start) as f64 * time;
            start = end;
        }
        match unit {
            Unit::Whole(share) => *share = cuts.iter().position(|&end| end > 0).unwrap_or(0),
            Unit::Turns(list) => *list = cuts,
            Unit::Inside(_) => {}
        }
        first += count as f64 * time;
    }
    Shares { units: result, times }
}

/// How many turns a unit has that different threads may compute, if it is a loop of such; the most of them where that isn't constant.
fn turns(context: &Context<'_>, unit: &[Stmt]) -> Option<i64> {
    let code @ Stmt::For { var, start, end, step, body, parallel, .. } = only_loop(unit)? else { return None };
    let mut knowledge = context.knowledge.clone();
    knowledge.learn(code);
    let is_shared = match context.free.is_empty() {
        true => *parallel,
        false => is_independent(*var, *step, body, &knowledge, &context.free),
    };
    let (start, end) = (start.as_constant()?, context.knowledge.interval(end)?.1);
    (is_shared && *step > 0 && end > start).then(|| (end - start + step - 1) / step)
}

/// Shares the body of a loop, if its parts can be computed anywhere.
fn within(context: &Context<'_>, unit: &[Stmt], time: f64) -> Option<(Level, Shares)> {
    let code = only_loop(unit)?;
    let (inner, level) = context.inside(code, true)?;
    if level.units.len() > MOST_UNITS {
        return None;
    }
    let (touched, knowledge) = inner.touched(&level.units);
    let is_apart = |number: usize| (0..number).all(|other| are_disjoint(&touched[other], &touched[number], &knowledge));
    if !(0..level.units.len()).all(is_apart) {
        return None;
    }
    let mut prices: Vec<f64> = level.units.iter().map(|unit| inner.price(unit)).collect();
    // What the loop itself costs, all threads pay; prices of parts are relative.
    let scale = time / prices.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    prices.iter_mut().for_each(|price| *price *= scale);
    let shares = share(&inner, &level.units, &prices);
    // One thread would do all of it.
    shares.are_several(time).then_some((level, shares))
}

/// A new integer variable; the name is made unique by a number.
pub fn new_index(vars: &mut Vec<VarInfo>, base: &str) -> Var {
    let is_taken = |name: &str| vars.iter().any(|var| var.name == name);
    let numbered = (1..).map(|number| format!("{base}_{number}"));
    let name = std::iter::once(base.to_owned()).chain(numbered).find(|name| !is_taken(name));
    vars.push(VarInfo { name: name.unwrap_or_default(), kind: VarKind::Index });
    vars.len() as Var - 1
}

/// Writes the function of a share.
pub struct Writer<'a> {
    /// Variables, those of the function first.
    pub vars: &'a mut Vec<VarInfo>,
    /// The number of the share.
    pub share: Var,
}

impl Writer<'_> {
    /// The statements of a share of some units.
    pub fn write(&mut self, units: &[Vec<Stmt>], shares: &Shares) -> Vec<Stmt> {
        let mut text: Vec<Stmt> = Vec::new();
        for (unit, how) in units.iter().zip(&shares.units) {
            match how {
                Unit::Whole(number) => self.whole(*number, unit, &mut text),
                Unit::Turns(cuts) => {
                    text.extend(only_loop(unit).map(|code| self.turns(code, cuts)).unwrap_or_default())
                }
                Unit::Inside(inside) => {
                    let (level, shares) = &**inside;
                    let body = [level.pure.clone(), self.write(&level.units, shares)].concat();
                    text.extend(only_loop(unit).map(|code| with_body(code, body)));
                }
            }
        }
        text
    }

    /// Statements that one share has.
    fn whole(&self, number: usize, unit: &[Stmt], text: &mut Vec<Stmt>) {
        let condition = vec![(Index::var(self.share), Relation::Equal, Index::from(number))];
        match text.last_mut() {
            Some(Stmt::If { conditions, then, .. }) if *conditions == condition => then.extend(unit.to_vec()),
            _ => text.push(Stmt::If { conditions: condition, then: unit.to_vec(), otherwise: Vec::new() }),
        }
    }

    /// A loop over the turns of a share.
    fn turns(&mut self, code: &Stmt, cuts: &[i64]) -> Vec<Stmt> {
        let Stmt::For { var, start, end, step, parallel, descends, rolled, body } = code else { return Vec::new() };
        let first = start.as_constant().unwrap_or(0);
        let bound = |turn: i64| first + turn * step;
        let ends: Vec<i64> = cuts.iter().map(|&turn| bound(turn)).collect();
        let starts: Vec<i64> = [0].iter().chain(cuts).take(cuts.len()).map(|&turn| bound(turn)).collect();
        let (from, to) = (self.by_share(&starts), self.by_share(&ends));
        let name = self.vars[*var as usize].name.clone();
        let mut text = Vec::new();
        let mut named = |what: &str, value: Index| {
            if value.as_constant().is_some() {
                return value;
            }
            let var = new_index(self.vars, &format!("{what}_{name}"));
            text.push(Stmt::DefineIndex { var, value });
            Index::var(var)
        };
        let from = named("first", from);
        let mut counts = starts.iter().zip(&ends).map(|(start, end)| end - start);
        let to = match (end.as_constant(), counts.next()) {
            // That all shares have as many turns, C compilers shall see: of loops that turn so often they make better code.
            (Some(_), Some(count)) if counts.all(|other| other == count) => from.clone().offset(count),
            // The last turn may begin nearer to the end than a step.
            (Some(_), _) => to,
            (None, _) => to.minimum(end),
        };
        let to = named("end", to);
        text.push(Stmt::For {
            var: *var,
            start: from,
            end: to,
            step: *step,
            parallel: *parallel,
            descends: *descends,
            rolled: *rolled,
            body: body.clone(),
        });
        text
    }

    /// One of some numbers, by the number of the share.
    fn by_share(&self, values: &[i64]) -> Index {
        let step = values.get(1).zip(values.first()).map_or(0, |(second, first)| second - first);
        if values.windows(2).all(|pair| pair[1] - pair[0] == step) {
            return Index::var(self.share).times(step).offset(values.first().copied().unwrap_or(0));
        }
        let number = |value: i64| Expr::Literal(Literal::Integer(DType::I32, value));
        let mut list = values.iter().enumerate().rev();
        let last = list.next().map_or(0, |(_, &value)| value);
        Index::value(list.fold(number(last), |rest, (share, &value)| {
            let is_before = Expr::binary(BinaryFunction::LessEqual, Expr::Var(self.share), number(share as i64));
            Expr::Select(Box::new(is_before), Box::new(number(value)), Box::new(rest))
        }))
    }
}
