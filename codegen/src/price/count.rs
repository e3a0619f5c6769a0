//! Instructions of a block of statements.

use crate::loops::{Atom, Expr, Index, Known, ValueType, VarInfo, extremes, value_type};
use crate::target::{ByteDots, Instructions, Library, Target, VectorSpelling};
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// Instructions by kind, as [`Instructions`] names them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    pub multiply_add: f64,
    pub float: f64,
    pub maximum: f64,
    pub divide: f64,
    pub function: f64,
    pub exp: f64,
    pub log: f64,
    pub tanh: f64,
    pub erf: f64,
    pub other: f64,
    pub copied_byte: f64,
    pub filled_byte: f64,
    pub convert: f64,
    pub integer: f64,
    pub load: f64,
    /// Loads whose element or vector is in a register already.
    pub kept: f64,
    pub store: f64,
    /// Those of all these that are second halves of an instruction, whose vector is wider than what units take at once.
    pub second_half: f64,
    pub lane: f64,
    pub turn: f64,
    pub branch: f64,
    pub address: f64,
    /// Address arithmetic in all turns of a loop, which stands in the code once.
    pub moved_address: f64,
    /// Pointers that a block reads and writes through.
    pub pointer: f64,
    /// Bases that they are counted from beside those.
    pub far: f64,
    /// What routines execute.
    pub routine: f64,
    /// Arguments of their calls.
    pub argument: f64,
    /// Loops, however often they turn.
    pub loops: f64,
    /// Sums that wait for each other.
    pub chain: f64,
}

/// Instructions of a maximum, which looks at NaN.
const MAXIMUM: f64 = 3.0;

/// Part of a maximum that the greater of a float and a number takes, which needn't be looked at.
const BOUNDED: f64 = 0.6;

/// Instructions that begin a loop, count its turns and end them.
const LOOP: f64 = 4.0;

impl Counts {
    /// Instructions times what each costs, by the unit that it needs: arithmetic, loads, stores, the rest.
    fn units(&self, each: &Instructions) -> [f64; 4] {
        let arithmetic = self.multiply_add * each.multiply_add
            + self.float * each.float
            + self.maximum * each.maximum
            + self.divide * each.divide
            + self.function * each.function
            + self.library(each)
            + self.copied_byte * each.copied_byte
            + self.filled_byte * each.filled_byte
            + self.convert * each.convert
            + self.lane * each.lane;
        let others = (self.integer + self.routine) * each.integer
            + (self.address + self.moved_address) * each.address
            + self.pointer * each.pointer
            + self.far * each.far
            + self.turn * each.turn
            + self.branch * each.branch;
        [arithmetic, (self.load - self.kept) * each.load, self.store * each.store, others]
    }

    /// Calls of the C library's functions.
    fn calls(&mut self) -> [&mut f64; 5] {
        [&mut self.exp, &mut self.log, &mut self.tanh, &mut self.erf, &mut self.other]
    }

    fn library(&self, each: &Instructions) -> f64 {
        let Library { exp, log, tanh, erf, other } = each.library;
        self.exp * exp + self.log * log + self.tanh * tanh + self.erf * erf + self.other * other
    }

    /// Time where one instruction follows the other.
    pub fn one_by_one(&self, each: &Instructions) -> f64 {
        self.units(each).iter().sum()
    }

    /// Time that each unit takes where they work at once, and that of starting `width` instructions a cycle.
    pub fn at_once(&self, each: &Instructions, width: f64) -> [f64; 5] {
        let [arithmetic, load, store, others] = self.units(each);
        [arithmetic, load, store, others, self.instructions() / width]
    }

    /// Instructions as they stand in the code.
    pub fn written(&self) -> f64 {
        self.instructions() - 2.0 * self.turn + LOOP * self.loops - self.routine + self.argument
    }

    /// Instructions in all, functions as calls.
    pub fn instructions(&self) -> f64 {
        self.multiply_add
            + self.float
            + MAXIMUM * self.maximum
            + self.divide
            + self.function
            + self.exp
            + self.log
            + self.tanh
            + self.erf
            + self.other
            + self.convert
            + self.integer
            + self.routine
            + self.load
            + self.store
            + self.lane
            + 2.0 * self.turn
            + self.branch
            + self.address
            - self.second_half
    }
}

/// Counts instructions of values over a function's variables.
pub struct Counter<'a> {
    pub target: &'a Target,
    pub vars: &'a [VarInfo],
}

/// Instructions that rescale a register of lanes.
fn steps_of_lanes(known: Known) -> f64 {
    match known {
        Known::Cut => 8.0,
        Known::Near => 11.0,
        _ => 14.0,
    }
}

/// Slots of multiply–adds that the product of two vectors of pairs and its sum take, where the sum may be another unit's: measured on a Zen 3, whose tiles of 6
/// pixels and 16 outputs do 26 products a cycle.
const ADDED_PRODUCT: f64 = 1.25;

impl Counter<'_> {
    /// Vector registers, or scalar ones, that a value takes.
    fn registers(&self, ty: ValueType) -> f64 {
        if ty.lanes == 1 {
            return 1.0;
        }
        let size = if ty.dtype == DType::Bool { 4 } else { ty.dtype.size() };
        (ty.lanes * size).div_ceil(self.target.vector_bytes.max(1)).max(1) as f64
    }

    /// How often units are busy with `times` instructions on values of a type.
    pub fn slots(&self, ty: ValueType, times: f64, counts: &mut Counts) -> f64 {
        let registers = self.registers(ty);
        let Target { vector_bytes, machine, .. } = self.target;
        let halves =
            if ty.lanes == 1 { 1 } else { vector_bytes.div_ceil(machine.unit_bytes.unwrap_or(*vector_bytes).max(1)) };
        // A vector of fewer bytes than a register is one of the shorter ones.
        let bytes = ty.lanes * if ty.dtype == DType::Bool { 4 } else { ty.dtype.size() };
        let halves = if bytes * 2 <= *vector_bytes { 1 } else { halves.max(1) };
        counts.second_half += times * registers * (halves - 1) as f64;
        times * registers * halves as f64
    }

    fn ty(&self, expr: &Expr) -> ValueType {
        value_type(self.vars, expr)
    }

    /// Adds the instructions that compute a value.
    pub fn value(&self, expr: &Expr, counts: &mut Counts) {
        let registers = self.registers(self.ty(expr));
        match expr {
            Expr::Literal(_) | Expr::Var(_) | Expr::BitCast(..) | Expr::Held(_) => {}
            Expr::Load { index, .. } => {
                counts.load += self.slots(self.ty(expr), 1.0, counts);
                self.index(index, counts);
            }
            Expr::Gather { index, valid, .. } => {
                let is_one = self.target.vectors == VectorSpelling::Mve;
                counts.load += if is_one { registers } else { *valid as f64 };
                counts.lane += if is_one { 0.0 } else { *valid as f64 };
                // Offsets are in a vector, and there is no further one.
                counts.address += if is_one { registers } else { 0.0 };
                self.index(index, counts);
            }
            Expr::Unary(function, x) => self.unary(*function, x, counts),
            Expr::Binary(function, x, y) => {
                if self.multiplies_and_adds(*function, x, y, counts) {
                    return;
                }
                let (x, y_lanes) = (self.ty(x), self.ty(y).lanes);
                self.binary(*function, ValueType { lanes: x.lanes.max(y_lanes), ..x }, y, counts);
            }
            Expr::Select(condition, x, y) => {
                self.arithmetic(self.ty(expr), counts);
                self.value(condition, counts);
                return self.arms([x, y], registers == 1.0, counts);
            }
            // A narrow integer is widened by the load.
            Expr::Cast(to, x)
                if registers == 1.0 && to.is_integer() && matches!(**x, Expr::Load { ty, .. } if ty.lanes == 1) => {}
            Expr::Pair { index, .. } | Expr::Quad { index, .. } => {
                counts.load += 1.0;
                self.index(index, counts);
            }
            Expr::HalfOf { .. } => counts.float += 1.0,
            // Products of pairs in vectors are added by an instruction of their own, for which there are more units.
            Expr::Dot(_) if self.ty(expr).lanes > 1 => {
                // Arm has two instructions for the numbers of a lane, each of which adds.
                let steps = if self.target.byte_dots.is_arm() { 2.0 } else { ADDED_PRODUCT };
                counts.multiply_add += self.slots(self.ty(expr), steps, counts)
            }
            Expr::Dot(_) => counts.multiply_add += 1.0,
            Expr::WidePairs { index, .. } => {
                counts.load += self.slots(self.ty(expr), 1.0, counts);
                counts.convert += self.slots(self.ty(expr), 1.0, counts);
                self.index(index, counts);
            }
            Expr::QuadDot(_) => {
                let steps = match self.target.byte_dots {
                    ByteDots::Quads | ByteDots::SignedQuads => 1.0,
                    ByteDots::SwappedQuads => 3.0,
                    // Products of pairs are two, each of which is added by itself.
                    ByteDots::Pairs | ByteDots::None => 4.0,
                };
                counts.multiply_add += self.slots(self.ty(expr), steps, counts);
            }
            Expr::Rescale(rescaling, _) if self.ty(expr).lanes > 1 && self.target.byte_dots != ByteDots::None => {
                counts.integer += self.slots(self.ty(expr), steps_of_lanes(rescaling.known), counts);
            }
            Expr::Rescale(..) => counts.integer += 8.0,
            Expr::Line(..) => counts.integer += self.slots(self.ty(expr), 3.0, counts),
            Expr::Saturate(..) => counts.integer += 1.0,
            Expr::Cast(to, x) => {
                let from = self.ty(x);
                let wider = if self.registers(from) > registers { from } else { self.ty(expr) };
                counts.convert += if *to == from.dtype { 0.0 } else { self.slots(wider, 1.0, counts) };
            }
            // A scalar that is loaded is spread by the load.
            Expr::Splat(x, _) => {
                counts.lane +=
                    if matches!(**x, Expr::Load { .. } | Expr::Pair { .. } | Expr::Quad { .. } | Expr::Literal(_)) {
                        0.0
                    } else {
                        0.5
                    }
            }
            Expr::Lane(..) => counts.lane += 1.0,
            Expr::Fold(function, x) => {
                let ty = self.ty(x);
                let by_halves = ty.lanes.ilog2().saturating_sub(1) as usize;
                let steps = if self.target.vectors == VectorSpelling::Mve { ty.lanes - 1 } else { by_halves };
                for _ in 0..steps {
                    counts.lane += 2.0;
                    self.binary(*function, ty, x, counts);
                }
            }
            Expr::Index(_, index) => {
                counts.integer += 1.0;
                self.index(index, counts);
            }
        }
        expr.children().for_each(|child| self.value(child, counts));
    }

    /// Adds the instructions of what is selected from. Of single values C compilers jump over calls for the arm that isn't taken: each counts
    /// as taken every second time.
    fn arms(&self, arms: [&Expr; 2], is_single: bool, counts: &mut Counts) {
        let before = counts.calls().map(|calls| *calls);
        arms.into_iter().for_each(|arm| self.value(arm, counts));
        if is_single {
            counts.calls().into_iter().zip(before).for_each(|(calls, before)| *calls = (*calls + before) / 2.0);
        }
    }

    /// Counts a sum with a product as one instruction, where the target rounds them as one.
    fn multiplies_and_adds(&self, function: BinaryFunction, x: &Expr, y: &Expr, counts: &mut Counts) -> bool {
        let ty = self.ty(x);
        let product = |expr: &Expr| matches!(expr, Expr::Binary(BinaryFunction::Multiply, ..));
        let is_sum = matches!(function, BinaryFunction::Add | BinaryFunction::Subtract);
        if !is_sum || !ty.dtype.is_float() || self.target.is_strict() {
            return false;
        }
        let (product, other) = match (product(y), product(x)) {
            (true, _) => (y, x),
            (_, true) => (x, y),
            _ => return false,
        };
        let ty = ValueType { lanes: ty.lanes.max(self.ty(y).lanes), ..ty };
        counts.multiply_add += self.slots(ty, 1.0, counts);
        self.value(other, counts);
        product.children().for_each(|child| self.value(child, counts));
        true
    }

    fn arithmetic(&self, ty: ValueType, counts: &mut Counts) {
        let registers = self.slots(ty, 1.0, counts);
        if ty.dtype.is_float() { counts.float += registers } else { counts.integer += registers }
    }

    /// Quotients or square roots. Arm's vectors have none: lanes are scalar registers, into which a copy of the dividend goes.
    fn quotients(&self, ty: ValueType, counts: &mut Counts) {
        let is_by_lanes = self.target.vectors == VectorSpelling::Mve && ty.lanes > 1;
        let copies = if is_by_lanes { self.registers(ty) } else { 0.0 };
        counts.lane += copies;
        counts.divide += if is_by_lanes { ty.lanes as f64 } else { self.slots(ty, 1.0, counts) };
    }

    fn binary(&self, function: BinaryFunction, ty: ValueType, y: &Expr, counts: &mut Counts) {
        use BinaryFunction as B;
        let is_mve = self.target.vectors == VectorSpelling::Mve;
        if extremes::bound(function, ty, y, is_mve).is_some() {
            return match () {
                () if is_mve && ty.lanes > 1 => counts.integer += self.slots(ty, 3.0, counts),
                () if extremes::has_instruction(ty, self.target) => counts.float += self.slots(ty, 1.0, counts),
                () => counts.maximum += self.slots(ty, BOUNDED, counts),
            };
        }
        match function {
            B::Divide if ty.dtype.is_float() => self.quotients(ty, counts),
            B::Divide | B::FloorDivide | B::Modulo | B::Remainder => counts.divide += ty.lanes as f64,
            B::Power | B::Atan2 | B::LogAddExp => counts.other += ty.lanes as f64,
            B::Maximum | B::Minimum if ty.dtype.is_float() => counts.maximum += self.slots(ty, 1.0, counts),
            _ => self.arithmetic(ty, counts),
        }
    }

    fn unary(&self, function: UnaryFunction, x: &Expr, counts: &mut Counts) {
        use UnaryFunction as U;
        let ty = self.ty(x);
        let is_fast = ty.lanes > 1 && ty.dtype == DType::F32 && !self.target.is_strict();
        let lanes = ty.lanes as f64;
        // In vectors, in units of an exponential function; and what the C library has.
        let (fast, library) = match function {
            U::Sqrt => return self.quotients(ty, counts),
            U::Exp => (1.0, &mut counts.exp),
            U::Log | U::Sin | U::Cos => (1.4, &mut counts.log),
            U::Tanh | U::Log1p => (1.8, &mut counts.tanh),
            U::Erf | U::Expm1 => (2.4, &mut counts.erf),
            // Limited and added to, and the bits of the sum less those of what was added.
            U::RoundToInteger => {
                counts.float += self.slots(ty, 3.0, counts);
                return counts.integer += self.slots(ty, 2.0, counts);
            }
            U::Relu if extremes::has_instruction(ty, self.target) => return self.arithmetic(ty, counts),
            U::Relu | U::Sign => {
                counts.float += self.slots(ty, 1.0, counts);
                // Flags are moved to where a condition can look at them, and the condition begins.
                counts.integer += if self.target.vectors == VectorSpelling::Mve && ty.lanes == 1 { 2.0 } else { 0.0 };
                return self.arithmetic(ty, counts);
            }
            U::Negate
            | U::Absolute
            | U::Not
            | U::IsNan
            | U::IsInfinite
            | U::Ceil
            | U::Floor
            | U::Round
            | U::Truncate => return self.arithmetic(ty, counts),
            _ => (2.0, &mut counts.other),
        };
        if is_fast {
            counts.function += self.slots(ty, fast, counts);
        } else {
            *library += lanes;
        }
    }

    /// Adds the arithmetic of an index that isn't a sum of loop counters, which C compilers count along with the loop.
    pub fn index(&self, index: &Index, counts: &mut Counts) {
        for (atom, _) in &index.terms {
            match atom {
                Atom::Var(_) => {}
                Atom::Quotient(inner, _) | Atom::Remainder(inner, _) => {
                    counts.integer += 3.0;
                    self.index(inner, counts);
                }
                Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                    counts.integer += 2.0;
                    self.index(left, counts);
                    self.index(right, counts);
                }
                Atom::Value(value) => {
                    counts.address += 1.0;
                    self.value(value, counts);
                }
            }
        }
    }
}
