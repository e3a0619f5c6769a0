//! Rescalings of sums as straight lines: the results that integers give are a staircase, and where a line in single precision, rounded to
//! an integer, has all of its steps, three instructions rescale a vector. That is found out step by step for each output, as all numbers
//! but the sum are constants; a kernel of whose outputs one has no such line is rescaled as its expression says. Numbers that are rounded
//! twice have the steps of the two signs on two lines of one slope. Where results of negative sums are kept, so that there is hardly ever a
//! line for both, an offset is chosen by the sign, in two instructions more.
//!
//! Lines that are rounded down by every instruction ([`Integers::Below`]) are there for nearly all outputs. Where instructions only round to
//! the nearest number, each step keeps a distance from the middle of two integers: there are fewer lines, so that about half of the
//! kernels of real networks are rescaled so.

use super::KernelWriter;
use super::bounds::{ANYTHING, Bounds};
use super::scales::{Added, Factors, Sums, factors_of};
use crate::loops::{Expr, Index, Integers, ValueType, Var};
use crate::target::ByteDots;
use mlc_ir::scalar::{BinaryFunction, Expression, ScalarNode};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType};
use std::collections::BTreeSet;

/// Lanes of the vectors that have instructions which round down by themselves.
const WIDEST: usize = 16;

/// Integers below this are singles.
const EXACT: i64 = 1 << 24;

/// Slopes that are tried to either side of a rescaling's scale, in steps of the last bit.
const SLOPES: u32 = 128;

/// The lines of a kernel's outputs.
pub struct Lines {
    integers: Integers,
    slopes: Var,
    offsets: Var,
    /// Where sums of the two signs have lines of their own.
    negative: Option<Negative>,
    /// What each output's sum begins with beside its first term.
    pub moved: Vec<i64>,
}

/// Lines of negative sums.
#[derive(Clone, Copy)]
struct Negative {
    /// The sums that zero has become, below which they are.
    zeros: Var,
    offsets: Var,
}

/// `slope * (sum + moved) + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    slope: f32,
    offset: f32,
    /// The offset of negative sums.
    negative: f32,
    moved: i64,
}

impl Line {
    fn is_one(&self) -> bool {
        self.offset == self.negative
    }
}

impl Lines {
    /// Those of a kernel whose epilogue first makes bytes of its sums by rescaling them, which it then no longer does: it begins with the limits of what
    /// [`Lines::value`] gives. The tables have room for `padded` outputs.
    pub fn take(kernel: &mut KernelWriter<'_>, sums: &Sums, padded: usize) -> Option<Lines> {
        let outputs = sums.first.len();
        let integers = integers(kernel)?;
        let Rescaling { step, inner, factors } = rescaling(kernel, outputs)?;
        let all = factors.list(outputs).into_iter().zip(&sums.first);
        let lines: Vec<Line> = all
            .map(|(own, first)| line(&factors, own, moved(sums.products, *first)?, integers))
            .collect::<Option<_>>()?;
        let table = |kernel: &mut KernelWriter<'_>, name: &str, dtype: DType, of: fn(&Line) -> f64| {
            let mut values: Vec<f64> = lines.iter().map(of).collect();
            values.resize(padded, 0.0);
            let ty = TensorType::new(dtype, [padded]);
            let tensor = match dtype {
                DType::I32 => Tensor::from_integers(ty, values.into_iter().map(|value| value as i64).collect()),
                _ => Tensor::from_floats(ty, values),
            };
            let values = Attribute::from_tensor(&tensor);
            match factors.operand {
                Some(number) => kernel.pack(number, name, values.ty().clone(), move || Some(values.clone())),
                None => kernel.table(name, values),
            }
        };
        let slopes = table(kernel, "slopes", DType::F32, |line| line.slope.into());
        let offsets = table(kernel, "offsets", DType::F32, |line| line.offset.into());
        let negative = (!lines.iter().all(Line::is_one)).then(|| Negative {
            zeros: table(kernel, "zeros", DType::I32, |line| line.moved as f64),
            offsets: table(kernel, "negative_offsets", DType::F32, |line| line.negative.into()),
        });
        let moved = lines.iter().map(|line| line.moved).collect();
        begin_with_limits(kernel, step, &inner, &factors);
        Some(Lines { integers, slopes, offsets, negative, moved })
    }

    /// What becomes of the sums of a vector of outputs, the first of which has a number among the tables' entries.
    pub fn value(&self, kernel: &mut KernelWriter<'_>, sums: Expr, output: &Index, lanes: usize) -> Expr {
        let load = |dtype, pointer| Expr::Load { pointer, index: output.clone(), ty: ValueType::vector(dtype, lanes) };
        let (slopes, mut offsets) = (load(DType::F32, self.slopes), load(DType::F32, self.offsets));
        let mut sums = sums;
        if let Some(Negative { zeros, offsets: negative }) = self.negative {
            sums = kernel.b.define("sum", sums);
            let is_negative = Expr::binary(BinaryFunction::Less, sums.clone(), load(DType::I32, zeros));
            offsets = Expr::Select(Box::new(is_negative), Box::new(load(DType::F32, negative)), Box::new(offsets));
        }
        Expr::Line(self.integers, Box::new([sums, slopes, offsets]))
    }
}

/// The step of an epilogue that makes a byte of a sum by rescaling it, what it is computed of, and by what.
struct Rescaling {
    step: usize,
    inner: BTreeSet<usize>,
    factors: Factors,
}

/// The rescaling in a kernel's epilogue, if that makes nothing else of the sum.
fn rescaling(kernel: &KernelWriter<'_>, outputs: usize) -> Option<Rescaling> {
    let nodes = kernel.epilogue.as_ref()?.expression.nodes();
    let mut casts = (0..nodes.len()).filter(|&step| matches!(nodes[step], ScalarNode::Cast(..)));
    let (step, factors) = casts.find_map(|step| Some((step, factors_of(kernel, outputs, step)?)))?;
    let inner = inside(nodes, step);
    let is_apart = |&other: &usize| !inner.contains(&other);
    let mut outside = (0..nodes.len()).filter(is_apart).flat_map(|other| nodes[other].children());
    let is_left = outside.any(|child| child as usize != step && inner.contains(&(child as usize)));
    (!is_left).then_some(Rescaling { step, inner, factors })
}

/// A step and those that it is computed of, without literals and other operands than the sum, which others may share.
fn inside(nodes: &[ScalarNode], step: usize) -> BTreeSet<usize> {
    let (mut inner, mut left) = (BTreeSet::new(), vec![step]);
    while let Some(id) = left.pop() {
        let is_shared =
            matches!(nodes[id], ScalarNode::Literal(_)) || matches!(nodes[id], ScalarNode::Operand(k) if k > 0);
        if !is_shared && inner.insert(id) {
            left.extend(nodes[id].children().map(|child| child as usize));
        }
    }
    inner
}

/// The epilogue with the limits of an integer in the place of a step, and the operands that it still has.
fn begin_with_limits(kernel: &mut KernelWriter<'_>, step: usize, inner: &BTreeSet<usize>, factors: &Factors) {
    let Some(epilogue) = &mut kernel.epilogue else { return };
    let nodes = epilogue.expression.nodes().to_vec();
    let mut used = BTreeSet::new();
    for (id, node) in nodes.iter().enumerate() {
        let children = node.children().map(|child| nodes[child as usize]);
        let operands = children.filter_map(|child| if let ScalarNode::Operand(k) = child { Some(k) } else { None });
        used.extend(operands.filter(|&k| k > 0 && !inner.contains(&id)));
    }
    let number = |k: u32| used.iter().position(|&own| own == k).map_or(0, |place| place as u32 + 1);
    let high = factors.dtype.integer_range(8).1 as i64;
    epilogue.expression = Expression::build(|b| {
        let mut map = vec![0; nodes.len()];
        for (id, node) in nodes.iter().enumerate() {
            map[id] = match *node {
                _ if id == step => {
                    let (x, low) = (b.operand(0), b.literal(Literal::integer(DType::I32, factors.low.into())));
                    let raised = b.binary(BinaryFunction::Maximum, x, low);
                    let high = b.literal(Literal::integer(DType::I32, high));
                    let within = b.binary(BinaryFunction::Minimum, raised, high);
                    b.cast(factors.dtype, within)
                }
                _ if inner.contains(&id) => continue,
                ScalarNode::Operand(k) if !used.contains(&k) => continue,
                ScalarNode::Operand(k) => b.operand(number(k)),
                other => b.push(other.map_children(|child| map[child as usize])),
            };
        }
        map.last().copied().unwrap_or(0)
    });
    let kept = |k: usize| used.contains(&(k as u32 + 1));
    let operands = std::mem::take(&mut epilogue.operands).into_iter().enumerate();
    epilogue.operands = operands.filter(|(k, _)| kept(*k)).map(|(_, operand)| operand).collect();
    let bounds = |&k: &u32| kernel.bounds.get(k as usize).copied().unwrap_or(ANYTHING);
    kernel.bounds = std::iter::once(ANYTHING).chain(used.iter().map(bounds)).collect();
}

fn moved(bounds: Bounds, by: i64) -> Option<Bounds> {
    Some((bounds.0.checked_add(by)?, bounds.1.checked_add(by)?))
}

/// How a kernel's lines become integers, if its machine has instructions for them. Arm rescales integers in as few.
fn integers(kernel: &KernelWriter<'_>) -> Option<Integers> {
    let dots = kernel.target.byte_dots;
    match kernel.lanes(DType::I32) {
        _ if dots == ByteDots::None || dots.is_arm() => None,
        1 => None,
        WIDEST => Some(Integers::Below),
        _ => Some(Integers::Nearest),
    }
}

/// How far above a number the middle is of the values that become it.
fn middle(integers: Integers) -> f64 {
    match integers {
        Integers::Below => 0.5,
        Integers::Nearest => 0.0,
    }
}

/// The line of an output, by its multiplier and its shift, for sums within bounds.
fn line(factors: &Factors, (multiplier, shift): (i64, i64), bounds: Bounds, integers: Integers) -> Option<Line> {
    let words = i64::from(i32::MIN)..=i64::from(i32::MAX);
    if !(32..=62).contains(&shift) || !(0..=*words.end()).contains(&multiplier) {
        return None;
    }
    if !words.contains(&bounds.0) || !words.contains(&bounds.1) {
        return None;
    }
    let added = Added::of(factors);
    let result = |sum: i64| added.result(sum, multiplier, shift);
    let (least, most) = (result(bounds.0), result(bounds.1));
    if least == most {
        let offset = (least as f64 + middle(integers)) as f32;
        return Some(Line { slope: 0.0, offset, negative: offset, moved: 0 });
    }
    let scale = multiplier as f64 / (1_u64 << shift) as f64;
    let moved = ((f64::from(added.added) + middle(integers)) / scale).round() as i64;
    let mut steps = Steps::new(integers);
    for step in least + 1..=most {
        let first = first_sum(&result, step, ((step - i64::from(added.added)) as f64 - 0.5) / scale);
        steps.reached.push((first, step));
        steps.below.push((first - 1, step));
    }
    if least > added.low.into() {
        steps.reached.push((bounds.0, least));
    }
    if most < added.high.into() {
        steps.below.push((bounds.1, most + 1));
    }
    let is_word = words.contains(&(bounds.0 + moved)) && words.contains(&(bounds.1 + moved));
    if !is_word || !steps.are_exact(moved) {
        return None;
    }
    let bits = (scale as f32).to_bits();
    let slopes = (0..=SLOPES).flat_map(|apart| [bits.checked_add(apart), bits.checked_sub(apart)]).flatten();
    let slopes: Vec<f32> = slopes.map(f32::from_bits).collect();
    let of_all = |&slope: &f32| {
        let offset = steps.offset(slope, moved)?;
        Some(Line { slope, offset, negative: offset, moved })
    };
    let [negative, others] = steps.by_sign((result(-1), result(0)), &added);
    let of_signs = |&slope: &f32| {
        let (offset, negative) = (others.offset(slope, moved)?, negative.offset(slope, moved)?);
        Some(Line { slope, offset, negative, moved })
    };
    slopes.iter().find_map(of_all).or_else(|| slopes.iter().find_map(of_signs))
}

/// Sums at which a line is to become a number at least, and some at which it is to become one below it.
struct Steps {
    integers: Integers,
    reached: Vec<(i64, i64)>,
    below: Vec<(i64, i64)>,
}

impl Steps {
    fn new(integers: Integers) -> Steps {
        Steps { integers, reached: Vec::new(), below: Vec::new() }
    }

    /// Whether singles hold the sums, and those next to zero, exactly once they are moved.
    fn are_exact(&self, moved: i64) -> bool {
        moved.abs() < EXACT - 1 && self.reached.iter().chain(&self.below).all(|(sum, _)| (sum + moved).abs() < EXACT)
    }

    /// Those of negative sums and those of the others, where the results of -1 and 0 are what they are.
    fn by_sign(&self, (last, first): (i64, i64), added: &Added) -> [Steps; 2] {
        let is_negative = |(sum, _): &(i64, i64)| *sum < 0;
        let (mut negative, mut others) = (Steps::new(self.integers), Steps::new(self.integers));
        (negative.reached, others.reached) = self.reached.iter().partition(|step| is_negative(step));
        (negative.below, others.below) = self.below.iter().partition(|step| is_negative(step));
        if last < added.high.into() {
            negative.below.push((-1, last + 1));
        }
        if first > added.low.into() {
            others.reached.push((0, first));
        }
        [negative, others]
    }

    /// An offset by which a line of some slope is where it is to be, a multiple of the slope's last bit: then doubles hold all of the line,
    /// too.
    fn offset(&self, slope: f32, moved: i64) -> Option<f32> {
        let rest = |&(sum, step): &(i64, i64)| self.begin(step) - f64::from(slope) * (sum + moved) as f64;
        let least = self.reached.iter().map(rest).fold(f64::NEG_INFINITY, f64::max);
        let most = self.below.iter().map(rest).fold(f64::INFINITY, f64::min);
        let unit = f64::from(f32::from_bits(slope.to_bits() + 1)) - f64::from(slope);
        let middle = match (least.is_finite(), most.is_finite()) {
            (true, true) => (least + most) / 2.0,
            (true, false) => least + 0.25,
            (false, true) => most - 0.25,
            (false, false) => 0.0,
        };
        let offset = (middle / unit).round() * unit;
        let is_single = offset.abs() < unit * EXACT as f64;
        (is_single && least <= offset && offset < most && self.are_met(slope, moved, offset as f32))
            .then_some(offset as f32)
    }

    /// Where the values begin that become a number.
    fn begin(&self, step: i64) -> f64 {
        step as f64 + middle(self.integers) - 0.5
    }

    /// Whether singles that are rounded to the nearest number, their product first or not, are on the right side of all steps.
    fn are_met(&self, slope: f32, moved: i64, offset: f32) -> bool {
        if self.integers == Integers::Below {
            return true;
        }
        let values = |sum: i64| {
            let sum = (sum + moved) as f32;
            [slope.mul_add(sum, offset), slope * sum + offset].map(f64::from)
        };
        let is_reached = |&(sum, step): &(i64, i64)| values(sum).iter().all(|&value| value > self.begin(step));
        let is_below = |&(sum, step): &(i64, i64)| values(sum).iter().all(|&value| value < self.begin(step));
        self.reached.iter().all(is_reached) && self.below.iter().all(is_below)
    }
}

/// The first sum whose result is at least a number, which is near another one.
fn first_sum(result: &impl Fn(i64) -> i64, step: i64, near: f64) -> i64 {
    let mut sum = near.round() as i64;
    while result(sum) < step {
        sum += 1;
    }
    while result(sum - 1) >= step {
        sum -= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(added: i32, low: i32) -> Factors {
        Factors::of_all((0, 0), added, low, DType::I8)
    }

    /// What a vector computes of a sum, and doubles.
    fn value(integers: Integers, line: &Line, sum: i64, low: i32) -> i64 {
        let offset = if sum < 0 { line.negative } else { line.offset };
        let (slope, moved) = (line.slope, (sum + line.moved) as f32);
        let exact = f64::from(slope) * f64::from(moved) + f64::from(offset);
        let values = match integers {
            Integers::Below => vec![exact.floor()],
            Integers::Nearest => {
                let singles = [slope.mul_add(moved, offset), slope * moved + offset].map(f32::round_ties_even);
                singles.map(f64::from).into_iter().chain([(exact + 0.5).floor()]).collect()
            }
        };
        let values: Vec<i64> = values.into_iter().map(|value| (value as i64).clamp(low.into(), 127)).collect();
        assert!(values.iter().all(|value| *value == values[0]), "{line:?} of {sum}: {values:?}");
        values[0]
    }

    #[test]
    fn lines_have_all_steps() {
        for (integers, least) in [(Integers::Below, 190), (Integers::Nearest, 135)] {
            let mut generator = mlc_ir::Generator::new(11);
            let mut found = [0, 0];
            for number in 0..400 {
                let multiplier = (1 << 30) + generator.range(0, (1 << 30) - 1) as i64;
                let shift = generator.range(35, 44) as i64;
                let added = generator.range(0, 255) as i32 - 128;
                // Every second one limits its results to those of sums that aren't negative.
                let low = if number % 2 == 0 { -128 } else { added };
                let reach = generator.range(1, 1 << 20) as i64;
                let factors = factors(added, low);
                let Some(line) = line(&factors, (multiplier, shift), (-reach, reach), integers) else { continue };
                found[number % 2] += 1;
                let own = Added::of(&factors);
                for sum in (-reach..=reach).step_by(1 + reach as usize / 5000).chain([reach]) {
                    for sum in [sum - 1, sum, sum + 1].map(|sum| sum.clamp(-reach, reach)) {
                        let expected = own.result(sum, multiplier, shift);
                        assert_eq!(value(integers, &line, sum, low), expected, "{line:?} of {sum}");
                    }
                }
            }
            assert!(found.iter().all(|&found| found > least), "{integers:?}: {found:?}");
        }
    }

    #[test]
    fn halves_of_both_signs_are_on_two_lines() {
        // Every 1024th sum is halfway between two results, and is rounded away from zero.
        let scale = (1 << 30, 40);
        for integers in [Integers::Below, Integers::Nearest] {
            for (low, is_one) in [(-128, false), (0, true)] {
                let limited = factors(0, low);
                let line = line(&limited, scale, (-200_000, 200_000), integers).unwrap();
                let own = Added::of(&limited);
                assert_eq!(line.is_one(), is_one);
                for sum in -200_000..=200_000 {
                    assert_eq!(value(integers, &line, sum, low), own.result(sum, scale.0, scale.1), "{sum}");
                }
            }
        }
    }

    #[test]
    fn outputs_of_one_result_have_no_slope_and_sums_beyond_singles_no_line() {
        let factors = factors(7, -128);
        for (integers, offset) in [(Integers::Below, 7.5), (Integers::Nearest, 7.0)] {
            let line = |scale, bounds| line(&factors, scale, bounds, integers);
            let level = line((1 << 30, 50), (-100, 100)).unwrap();
            assert_eq!((level.slope, level.offset), (0.0, offset));
            assert_eq!(line((1 << 30, 58), (-(1 << 30), 1 << 30)), None);
            assert_eq!(line((1 << 30, 31), (-100, 100)), None);
            assert_eq!(line((1 << 30, 40), ANYTHING), None);
        }
    }
}
