//! Walks a function: its blocks of statements with how often each runs, its loops, and where it reads and writes.

use super::count::{Counter, Counts};
use super::samples::Samples;
use crate::loops::{Atom, Expr, Function, Index, Stmt, Var};
use crate::target::{Overlap, Target, VectorSpelling};
use mlc_ir::DType;
use mlc_ir::scalar::BinaryFunction;
use std::collections::{BTreeMap, BTreeSet};

/// Statements that run together.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// How often.
    pub weight: f64,
    /// Instructions of one time, as the loop program has them.
    pub counts: Counts,
    /// What C compilers leave of them.
    pub share: f64,
}

/// Reads or writes of a statement.
#[derive(Debug, Clone)]
pub struct Access {
    /// The parameter that it goes through.
    pub root: Var,
    /// Numbers of the loops around it, outermost first.
    pub loops: Vec<usize>,
    /// Bytes that a turn of each moves it.
    pub strides: Vec<f64>,
    /// First byte at the first turn of all.
    pub offset: f64,
    /// Bytes of one time.
    pub bytes: f64,
}

/// What a walk has found.
#[derive(Debug, Default)]
pub struct Walked {
    pub blocks: Vec<Block>,
    /// Mean number of turns of each loop.
    pub loops: Vec<f64>,
    pub accesses: Vec<Access>,
}

impl Walked {
    /// Instructions as they stand in the code.
    pub fn instructions(&self) -> f64 {
        self.blocks.iter().map(|block| block.share * block.counts.written()).sum()
    }
}

/// Walks a function.
pub fn walk(function: &Function, target: &Target) -> Walked {
    let mut walker = Walker {
        function,
        counter: Counter { target, vars: &function.vars },
        walked: Walked::default(),
        path: Vec::new(),
        reached: Vec::new(),
        indices: BTreeMap::new(),
        pointers: BTreeMap::new(),
    };
    walker.block(&function.body, &Samples::new());
    walker.walked
}

/// `constant + sum of factor * turn of a loop`.
#[derive(Debug, Clone, Default)]
struct Linear {
    constant: f64,
    turns: BTreeMap<usize, f64>,
}

impl Linear {
    fn add(&mut self, other: &Linear, factor: f64) {
        self.constant += factor * other.constant;
        for (&number, &own) in &other.turns {
            *self.turns.entry(number).or_insert(0.0) += factor * own;
        }
    }
}

struct Walker<'a> {
    function: &'a Function,
    counter: Counter<'a>,
    walked: Walked,
    path: Vec<usize>,
    /// Of each block that is being walked the bytes that it reads and writes at, by the pointer that they are counted from.
    reached: Vec<BTreeMap<Var, BTreeSet<i64>>>,
    indices: BTreeMap<Var, Linear>,
    pointers: BTreeMap<Var, (Var, Linear)>,
}

impl Walker<'_> {
    fn block(&mut self, body: &[Stmt], samples: &Samples) {
        let mut samples = samples.clone();
        let mut counts = Counts::default();
        let mut chains: BTreeMap<Var, f64> = BTreeMap::new();
        self.reached.push(BTreeMap::new());
        for statement in body {
            self.statement(statement, &mut samples, &mut counts, &mut chains);
        }
        for places in self.reached.pop().unwrap_or_default().values() {
            counts.pointer += 1.0;
            let reach = self.counter.target.machine.reach;
            counts.far += reach.map_or(0, |reach| further_bases(places, reach)) as f64;
        }
        // Sums that a block begins don't wait for those of the turn before.
        let begun: BTreeSet<Var> = body.iter().filter_map(defined).collect();
        let carried = chains.iter().filter(|(var, _)| !begun.contains(var));
        counts.chain = carried.map(|(_, &links)| links).fold(0.0, f64::max);
        let share = if self.copies(body) { self.copy_share() } else { 1.0 };
        self.walked.blocks.push(Block { weight: samples.mean(), counts, share });
    }

    /// Whether statements only move single elements, which C compilers of wide machines do in vectors of their own.
    fn copies(&self, body: &[Stmt]) -> bool {
        let is_copy =
            |statement: &Stmt| matches!(statement, Stmt::Store { value: Expr::Load { ty, .. }, .. } if ty.lanes == 1);
        !body.is_empty() && body.iter().all(is_copy)
    }

    /// Bytes that a turn of a loop moves, if it moves or fills one element after the other and does nothing else.
    fn block_copy(&self, var: Var, step: i64, body: &[Stmt]) -> Option<f64> {
        let follows = |index: &Index| {
            step == 1 && index.terms.iter().any(|(atom, factor)| *atom == Atom::Var(var) && *factor == 1)
        };
        match body {
            [Stmt::Store { index, value: Expr::Load { index: from, ty, .. }, .. }] if ty.lanes == 1 => {
                (follows(index) && follows(from)).then_some(ty.dtype.size() as f64)
            }
            [Stmt::Store { index, value: Expr::Literal(literal), .. }] => {
                follows(index).then_some(literal.dtype().size() as f64)
            }
            _ => None,
        }
    }

    /// What is left of the instructions of a copy of single elements.
    fn copy_share(&self) -> f64 {
        let Target { machine, vectors, vector_bytes, .. } = self.counter.target;
        match (machine.overlap, vectors) {
            (Overlap::None, _) => 1.0,
            (_, VectorSpelling::None) => 0.5,
            _ => 8.0 / (*vector_bytes).max(16) as f64,
        }
    }

    fn statement(
        &mut self,
        statement: &Stmt,
        samples: &mut Samples,
        counts: &mut Counts,
        chains: &mut BTreeMap<Var, f64>,
    ) {
        match statement {
            Stmt::For { var, start, end, step, body, .. } => {
                let mut inner = samples.clone();
                let turns = inner.enter(*var, start, end, *step);
                let number = self.walked.loops.len();
                self.walked.loops.push(turns);
                let mut place = self.linear(start);
                place.add(&Linear { constant: 0.0, turns: BTreeMap::from([(number, 1.0)]) }, *step as f64);
                self.indices.insert(*var, place);
                self.path.push(number);
                self.block(body, &inner);
                self.path.pop();
                counts.loops += 1.0;
                match self.block_copy(*var, *step, body) {
                    // C compilers write them one after the other.
                    Some(_) if turns <= UNROLLED => {}
                    Some(bytes) => {
                        counts.copied_byte += bytes * turns;
                        counts.branch += 1.0;
                        // What the loop would do.
                        self.walked.blocks.pop();
                    }
                    None => counts.turn += turns,
                }
            }
            Stmt::Define { value, .. } => self.value(value, counts),
            Stmt::DefineIndex { var, value } => {
                samples.define(*var, value);
                let place = self.linear(value);
                self.indices.insert(*var, place);
                counts.address += 1.0;
                self.counter.index(value, counts);
            }
            Stmt::Assign { var, value } => {
                self.value(value, counts);
                if adds_to(value, *var) {
                    *chains.entry(*var).or_insert(0.0) += 1.0;
                }
            }
            Stmt::Pointer { var, base, offset } => {
                let mut place = self.linear(offset);
                let mut root = *base;
                if let Some((pointer, before)) = self.pointers.get(base) {
                    root = *pointer;
                    place.add(before, 1.0);
                }
                self.pointers.insert(*var, (root, place));
                counts.address += 1.0;
                self.counter.index(offset, counts);
            }
            Stmt::Store { pointer, index, stride, valid, value } => {
                self.value(value, counts);
                let ty = self.function.ty(value);
                let is_vector = ty.lanes > 1 && *stride == 1 && *valid == ty.lanes;
                counts.store += if is_vector { 1.0 } else { *valid as f64 };
                counts.lane += if is_vector || ty.lanes == 1 { 0.0 } else { *valid as f64 };
                self.counter.index(index, counts);
                self.access(*pointer, index, *valid, *stride, ty.dtype);
            }
            Stmt::If { conditions, then, otherwise } => {
                counts.branch += 1.0;
                for (body, hold) in [(then, true), (otherwise, false)] {
                    if !body.is_empty() {
                        let mut inside = samples.clone();
                        inside.assume(conditions, hold);
                        self.block(body, &inside);
                    }
                }
            }
            Stmt::IfValue { condition, then } => {
                self.value(condition, counts);
                counts.branch += 1.0;
                self.block(then, samples);
            }
            Stmt::Routine { routine, pointers, numbers } => {
                counts.integer += routine.instructions(numbers);
                for ((pointer, index), elements) in pointers.iter().zip(routine.elements(numbers)) {
                    self.counter.index(index, counts);
                    let dtype = self.function.ty(&Expr::Var(*pointer)).dtype;
                    self.access(*pointer, index, elements, 1, dtype);
                }
            }
            Stmt::Array { .. } | Stmt::Comment(_) => {}
        }
    }

    fn value(&mut self, value: &Expr, counts: &mut Counts) {
        self.counter.value(value, counts);
        self.loads(value);
    }

    fn loads(&mut self, value: &Expr) {
        match value {
            Expr::Load { pointer, index, ty } => self.access(*pointer, index, ty.lanes, 1, ty.dtype),
            Expr::Pair { pointer, index } => self.access(*pointer, index, 2, 1, DType::I16),
            Expr::Quad { pointer, index } => self.access(*pointer, index, 4, 1, DType::I8),
            Expr::Gather { pointer, index, stride, valid, ty } => {
                self.access(*pointer, index, *valid, *stride, ty.dtype);
            }
            other => {
                for child in other.children() {
                    self.loads(child);
                }
            }
        }
    }

    fn access(&mut self, pointer: Var, index: &Index, elements: usize, stride: i64, dtype: DType) {
        let mut place = self.linear(index);
        let mut root = pointer;
        if let Some((own, before)) = self.pointers.get(&pointer) {
            root = *own;
            place.add(before, 1.0);
        }
        if let Some(reached) = self.reached.last_mut() {
            let places = reached.entry(pointer).or_default();
            places.insert(index.constant.saturating_mul(dtype.size() as i64));
        }
        let size = dtype.size() as f64;
        let apart = stride.unsigned_abs().max(1) as f64;
        let strides = self.path.iter().map(|number| size * place.turns.get(number).copied().unwrap_or(0.0));
        let strides = strides.collect();
        let bytes = size * ((elements.max(1) - 1) as f64 * apart + 1.0);
        let offset = size * place.constant;
        self.walked.accesses.push(Access { root, loops: self.path.clone(), strides, offset, bytes });
    }

    /// An index as a sum over turns of loops. What a division leaves moves as what is divided.
    fn linear(&self, index: &Index) -> Linear {
        let mut sum = Linear { constant: index.constant as f64, turns: BTreeMap::new() };
        for (atom, factor) in &index.terms {
            let factor = *factor as f64;
            match atom {
                Atom::Var(var) => {
                    if let Some(place) = self.indices.get(var) {
                        sum.add(place, factor);
                    }
                }
                Atom::Quotient(inner, divisor) => sum.add(&self.linear(inner), factor / *divisor as f64),
                Atom::Remainder(inner, _) => sum.add(&self.linear(inner), factor),
                Atom::Maximum(left, _) | Atom::Minimum(left, _) => sum.add(&self.linear(left), factor),
                Atom::Value(_) => {}
            }
        }
        sum
    }
}

/// Most turns of a loop that moves one element a turn and that C compilers leave nothing of.
const UNROLLED: f64 = 16.0;

/// How many bases beside the first one these places are counted from, if a base reaches so many bytes.
fn further_bases(places: &BTreeSet<i64>, reach: i64) -> usize {
    let (mut bases, mut first) = (0usize, None);
    for &place in places {
        if first.is_none_or(|first| place - first >= reach) {
            (bases, first) = (bases + 1, Some(place));
        }
    }
    bases.saturating_sub(1)
}

/// The variable that a statement begins.
fn defined(statement: &Stmt) -> Option<Var> {
    match statement {
        Stmt::Define { var, .. } => Some(*var),
        _ => None,
    }
}

/// Whether a value is the sum of a variable and something else.
fn adds_to(value: &Expr, var: Var) -> bool {
    match value {
        Expr::Binary(BinaryFunction::Add | BinaryFunction::Subtract | BinaryFunction::Maximum, x, y) => {
            [x, y].iter().any(|operand| matches!(***operand, Expr::Var(own) if own == var))
        }
        _ => false,
    }
}
