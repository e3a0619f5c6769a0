//! Walks a function: its blocks of statements with how often each runs, its loops, and where it reads and writes.

mod streams;
mod vectors;

use super::count::{Counter, Counts};
use super::samples::Samples;
use crate::loops::{Atom, Expr, Function, Index, Stmt, ValueType, Var};
use crate::target::{Overlap, Target, VectorSpelling};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Objective};
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
    /// How often C compilers write them.
    pub copies: f64,
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
        instructions(&self.blocks)
    }
}

/// Instructions of blocks as they stand in the code.
fn instructions(blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.copies * block.share * block.counts.written()).sum()
}

/// Walks a function.
pub fn walk(function: &Function, target: &Target) -> Walked {
    let mut walker = Walker {
        function,
        counter: Counter { target, vars: &function.vars },
        walked: Walked::default(),
        path: Vec::new(),
        rolled: 0,
        reached: Vec::new(),
        streams: Vec::new(),
        conditions: 0,
        indices: BTreeMap::new(),
        pointers: BTreeMap::new(),
        begun: BTreeMap::new(),
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
    /// Loops so far that C compilers leave as loops.
    rolled: usize,
    /// Of each block that is being walked the bytes that it reads and writes at, by the pointer that they are counted from.
    reached: Vec<BTreeMap<Var, BTreeSet<i64>>>,
    /// What was read and written so far.
    streams: Vec<Stream>,
    /// Conditions around the statement at hand.
    conditions: usize,
    indices: BTreeMap<Var, Linear>,
    pointers: BTreeMap<Var, (Var, Linear)>,
    /// How many loops are around the statement that each value begins with.
    begun: BTreeMap<Var, usize>,
}

/// Bytes that C compilers have the C library copy or fill.
enum LibraryBytes {
    Copied(f64),
    Filled(f64),
}

/// A place that is read or written in all turns of the loops around it.
struct Stream {
    pointer: Var,
    /// Loops that move the place from the pointer, and by how many elements a turn.
    moved_by: BTreeMap<usize, f64>,
    /// Loops that the place depends on at all.
    depends_on: BTreeSet<usize>,
    /// Whether vectors are read or written there.
    is_vector: bool,
    /// Loads of one turn of all loops that are left, if they are all done in each.
    loads: Option<f64>,
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
            let reach = self.counter.target.machine.reach;
            counts.far += reach.map_or(0, |reach| further_bases(places, reach)) as f64;
        }
        // Sums that a block begins don't wait for those of the turn before.
        let begun: BTreeSet<Var> = body.iter().filter_map(defined).collect();
        let carried = chains.iter().filter(|(var, _)| !begun.contains(var));
        let waiting = carried.map(|(&var, &links)| links * self.waiting_share(var, counts.instructions()));
        counts.chain = waiting.fold(0.0, f64::max);
        let share = self.share_of(body);
        self.walked.blocks.push(Block { weight: samples.mean(), counts, share, copies: 1.0 });
    }

    /// The share of its links that a sum waits for, in a block of so many instructions: while one sum waits, instructions of those that
    /// begin after it are done, as far ahead as the machine sees.
    fn waiting_share(&self, sum: Var, instructions: f64) -> f64 {
        let Overlap::Ports { window, .. } = self.counter.target.machine.overlap else { return 1.0 };
        let around = self.path.get(self.begun.get(&sum).copied().unwrap_or(0)..).unwrap_or_default();
        let turns: f64 = around.iter().map(|&number| self.walked.loops[number]).product();
        (turns * instructions / window).min(1.0)
    }

    /// Whether statements only move single elements, or convert them, which C compilers of wide machines do in vectors of their own.
    fn copies(&self, body: &[Stmt]) -> bool {
        let is_single = |value: &Expr| matches!(value, Expr::Load { ty, .. } if ty.lanes == 1);
        let is_copy = |statement: &Stmt| match statement {
            Stmt::Store { value: Expr::Cast(_, value), .. } => is_single(value),
            Stmt::Store { value, .. } => is_single(value),
            _ => false,
        };
        !body.is_empty() && body.iter().all(is_copy)
    }

    /// The C library's work for a turn of a loop, if that moves or fills one element or vector after the other and does nothing else.
    fn block_copy(&self, var: Var, step: i64, body: &[Stmt]) -> Option<LibraryBytes> {
        let follows = |index: &Index, lanes: usize| {
            let moves = |(atom, factor): &(Atom, i64)| *atom == Atom::Var(var) && *factor == 1;
            step == lanes as i64 && index.terms.iter().any(moves)
        };
        let [Stmt::Store { index, value, stride, valid, .. }] = body else { return None };
        let ValueType { dtype, lanes } = self.function.ty(value);
        let is_whole = follows(index, lanes) && *stride == 1 && *valid == lanes;
        let bytes = (lanes * dtype.size()) as f64;
        match value {
            Expr::Load { index: from, .. } if follows(from, lanes) => Some(LibraryBytes::Copied(bytes)),
            Expr::Literal(_) => Some(LibraryBytes::Filled(bytes)),
            Expr::Splat(value, _) if matches!(**value, Expr::Literal(_)) => Some(LibraryBytes::Filled(bytes)),
            _ => None,
        }
        .filter(|_| is_whole)
    }

    /// Instructions up to which C compilers write the turns of a loop one after the other: none where they make small code.
    fn longest_written_out(&self) -> f64 {
        let Target { machine, objective, .. } = self.counter.target;
        if *objective == Objective::Size { 0.0 } else { machine.written_out }
    }

    /// What C compilers leave of the instructions of statements, by copying single elements in vectors.
    fn share_of(&self, body: &[Stmt]) -> f64 {
        if self.copies(body) { self.copy_share() } else { 1.0 }
    }

    /// What is left of the instructions of a copy of single elements.
    fn copy_share(&self) -> f64 {
        let Target { machine, vectors, vector_bytes, .. } = self.counter.target;
        match (machine.overlap, vectors) {
            (Overlap::None, _) => 1.0,
            (_, VectorSpelling::None | VectorSpelling::Either) => 0.5,
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
                let (first, rolled, stream) = (self.walked.blocks.len(), self.rolled, self.streams.len());
                self.path.push(number);
                self.block(body, &inner);
                self.path.pop();
                let moved = self.block_copy(*var, *step, body);
                let share = self.vector_share(*var, *step, turns, body);
                if let Some(own) = self.walked.blocks.last_mut() {
                    own.share *= share;
                }
                let is_fixed = start.terms.is_empty() && end.terms.is_empty() && rolled == self.rolled;
                let longest = self.longest_written_out();
                let blocks = &mut self.walked.blocks[first..];
                let is_short = is_fixed && turns * instructions(blocks) <= longest;
                match moved {
                    _ if turns <= MOST_TURNS && (is_short || moved.is_some()) => {
                        blocks.iter_mut().for_each(|block| block.copies *= turns);
                        for stream in &mut self.streams[stream..] {
                            stream.loads = stream.loads.map(|loads| loads * turns);
                        }
                    }
                    Some(bytes) => {
                        match bytes {
                            LibraryBytes::Copied(bytes) => counts.copied_byte += bytes * turns,
                            LibraryBytes::Filled(bytes) => counts.filled_byte += bytes * turns,
                        }
                        counts.branch += 1.0;
                        counts.loops += 1.0;
                        // What the loop would do.
                        self.walked.blocks.pop();
                    }
                    None => {
                        counts.loops += 1.0;
                        // A vector's elements are copied in one turn.
                        counts.turn += turns * self.share_of(body);
                        counts.pointer += turns * self.moved_by(number, stream) as f64;
                        counts.moved_address += turns * self.sums_of_addresses(number, stream);
                        let kept = self.kept_in(number, stream);
                        counts.kept += (turns - 1.0).max(0.0) * kept.in_registers;
                        counts.moved_address += turns * kept.on_stack;
                        self.streams[stream..].iter_mut().for_each(|stream| stream.loads = None);
                        self.rolled += 1;
                    }
                }
            }
            Stmt::Define { var, value, .. } => {
                self.begun.insert(*var, self.path.len());
                self.value(value, counts);
            }
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
                counts.store += if is_vector { self.counter.slots(ty, 1.0, counts) } else { *valid as f64 };
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
                        self.conditions += 1;
                        self.block(body, &inside);
                        self.conditions -= 1;
                    }
                }
            }
            Stmt::IfValue { condition, then } => {
                self.value(condition, counts);
                counts.branch += 1.0;
                self.conditions += 1;
                self.block(then, samples);
                self.conditions -= 1;
            }
            Stmt::Routine { routine, pointers, numbers } => {
                counts.routine += routine.instructions(numbers, &self.counter.target.machine.instructions);
                counts.argument += (pointers.len() + numbers.len()) as f64;
                for ((pointer, index), elements) in pointers.iter().zip(routine.elements(numbers)) {
                    self.counter.index(index, counts);
                    let dtype = self.function.ty(&Expr::Var(*pointer)).dtype;
                    self.access(*pointer, index, elements, 1, dtype);
                }
            }
            Stmt::Array { .. } | Stmt::Launch { .. } | Stmt::Comment(_) => {}
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
            Expr::WidePairs { pointer, index, lanes } => self.access(*pointer, index, 2 * lanes, 1, DType::I8),
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
        let moved_by = place.turns.clone();
        let mut root = pointer;
        if let Some((own, before)) = self.pointers.get(&pointer) {
            root = *own;
            place.add(before, 1.0);
        }
        let depends_on = place.turns.keys().copied().collect();
        let loads = (self.conditions == 0).then_some(1.0);
        let is_vector = elements > 1;
        self.streams.push(Stream { pointer, moved_by, depends_on, is_vector, loads });
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

    /// An index as a sum over turns of loops. What a division leaves moves as what is divided; of loops that it depends on otherwise it is
    /// no multiple of turns: all that there are around where it depends on data.
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
                Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                    sum.add(&self.linear(left), factor);
                    sum.add(&self.linear(right), 0.0);
                }
                Atom::Value(_) => self.path.iter().for_each(|&number| *sum.turns.entry(number).or_default() += 0.0),
            }
        }
        sum
    }
}

/// Most turns of a loop that C compilers leave nothing of.
const MOST_TURNS: f64 = 16.0;

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
