//! Rescalings of sums as straight lines: the results that integers give are a staircase, and where a line in single precision, rounded down, has
//! all of its steps, three instructions rescale a vector. That is found out step by step for each output, as all numbers but the sum are
//! constants; a kernel of whose outputs one has no such line is rescaled as its expression says. Where results of negative sums are kept, there
//! is hardly ever one: numbers that are rounded twice have the steps of the two signs on two lines.

use super::KernelWriter;
use super::bounds::{ANYTHING, Bounds};
use super::scales::{Added, Factors, Sums, factors};
use crate::loops::{Expr, Index, ValueType, Var};
use crate::target::ByteDots;
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType};

/// Lanes of the vectors that have a multiply-add which rounds down by itself.
const LANES: usize = 16;

/// Integers below this are singles.
const EXACT: i64 = 1 << 24;

/// Slopes that are tried to either side of a rescaling's scale, in steps of the last bit.
const SLOPES: u32 = 128;

/// The lines of a kernel's outputs.
pub struct Lines {
    slopes: Var,
    offsets: Var,
    /// What each output's sum begins with beside its first term.
    pub moved: Vec<i64>,
}

/// `slope * (sum + moved) + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    slope: f32,
    offset: f32,
    moved: i64,
}

impl Lines {
    /// Those of a kernel whose epilogue only rescales its sums, which it then no longer does: it limits and stores what
    /// [`Lines::value`] gives. The tables have room for `padded` outputs.
    pub fn take(kernel: &mut KernelWriter<'_>, sums: &Sums, padded: usize) -> Option<Lines> {
        let outputs = sums.first.len();
        if kernel.target.byte_dots == ByteDots::None || kernel.lanes(DType::I32) != LANES {
            return None;
        }
        let factors = factors(kernel, outputs)?;
        let all = factors.list(outputs).into_iter().zip(&sums.first);
        let lines: Vec<Line> =
            all.map(|(own, first)| line(&factors, own, moved(sums.products, *first)?)).collect::<Option<_>>()?;
        let table = |kernel: &mut KernelWriter<'_>, name: &str, of: fn(&Line) -> f32| {
            let mut values: Vec<f64> = lines.iter().map(|line| of(line).into()).collect();
            values.resize(padded, 0.0);
            let values = Attribute::from_tensor(&Tensor::from_floats(TensorType::new(DType::F32, [padded]), values));
            match factors.operand {
                Some(number) => kernel.pack(number, name, values.ty().clone(), move || Some(values.clone())),
                None => kernel.table(name, values),
            }
        };
        let (slopes, offsets) =
            (table(kernel, "slopes", |line| line.slope), table(kernel, "offsets", |line| line.offset));
        let moved = lines.iter().map(|line| line.moved).collect();
        kernel.bounds = vec![ANYTHING];
        if let Some(epilogue) = &mut kernel.epilogue {
            epilogue.operands.clear();
            epilogue.expression = limited(factors.dtype, factors.low);
        }
        Some(Lines { slopes, offsets, moved })
    }

    /// What becomes of the sums of a vector of outputs, the first of which has a number among the tables' entries.
    pub fn value(&self, sums: Expr, output: &Index, lanes: usize) -> Expr {
        let load = |pointer| Expr::Load { pointer, index: output.clone(), ty: ValueType::vector(DType::F32, lanes) };
        Expr::Line(Box::new([sums, load(self.slopes), load(self.offsets)]))
    }
}

/// An integer within limits as a byte.
fn limited(dtype: DType, low: i32) -> Expression {
    let high = dtype.integer_range(8).1 as i64;
    Expression::build(|b| {
        let (x, low) = (b.operand(0), b.literal(Literal::integer(DType::I32, low.into())));
        let raised = b.binary(BinaryFunction::Maximum, x, low);
        let high = b.literal(Literal::integer(DType::I32, high));
        let within = b.binary(BinaryFunction::Minimum, raised, high);
        b.cast(dtype, within)
    })
}

fn moved(bounds: Bounds, by: i64) -> Option<Bounds> {
    Some((bounds.0.checked_add(by)?, bounds.1.checked_add(by)?))
}

/// The line of an output, by its multiplier and its shift, for sums within bounds.
fn line(factors: &Factors, (multiplier, shift): (i64, i64), bounds: Bounds) -> Option<Line> {
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
        return Some(Line { slope: 0.0, offset: least as f32 + 0.5, moved: 0 });
    }
    let scale = multiplier as f64 / (1_u64 << shift) as f64;
    let moved = ((f64::from(added.added) + 0.5) / scale).round() as i64;
    // At some sums the line is to be at a number at least, at some it is to be below one.
    let (mut reached, mut below) = (Vec::new(), Vec::new());
    for step in least + 1..=most {
        let first = first_sum(&result, step, ((step - i64::from(added.added)) as f64 - 0.5) / scale);
        reached.push((first, step));
        below.push((first - 1, step));
    }
    if least > added.low.into() {
        reached.push((bounds.0, least));
    }
    if most < added.high.into() {
        below.push((bounds.1, most + 1));
    }
    for (sum, _) in reached.iter_mut().chain(&mut below) {
        *sum += moved;
    }
    let is_exact = |(sum, _): &(i64, i64)| sum.abs() < EXACT;
    let is_word = words.contains(&(bounds.0 + moved)) && words.contains(&(bounds.1 + moved));
    if !is_word || !reached.iter().chain(&below).all(is_exact) {
        return None;
    }
    let bits = (scale as f32).to_bits();
    let slopes = (0..=SLOPES).flat_map(|apart| [bits.checked_add(apart), bits.checked_sub(apart)]).flatten();
    slopes.map(f32::from_bits).find_map(|slope| Some(Line { slope, offset: offset(slope, &reached, &below)?, moved }))
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

/// An offset by which a line of some slope is where it is to be, a multiple of the slope's last bit: then doubles hold all of the line, too.
fn offset(slope: f32, reached: &[(i64, i64)], below: &[(i64, i64)]) -> Option<f32> {
    let rest = |&(sum, step): &(i64, i64)| step as f64 - f64::from(slope) * sum as f64;
    let least = reached.iter().map(rest).fold(f64::NEG_INFINITY, f64::max);
    let most = below.iter().map(rest).fold(f64::INFINITY, f64::min);
    let unit = f64::from(f32::from_bits(slope.to_bits() + 1)) - f64::from(slope);
    let offset = ((least + most) / 2.0 / unit).round() * unit;
    let is_single = offset.abs() < unit * EXACT as f64;
    (is_single && least <= offset && offset < most).then_some(offset as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(added: i32, low: i32) -> Factors {
        Factors::of_all((0, 0), added, low, DType::I8)
    }

    /// What a vector computes of a sum.
    fn value(line: &Line, sum: i64, low: i32) -> i64 {
        let exact = f64::from(line.slope) * (sum + line.moved) as f64 + f64::from(line.offset);
        (exact.floor() as i64).clamp(low.into(), 127)
    }

    #[test]
    fn lines_have_all_steps() {
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
            let Some(line) = line(&factors, (multiplier, shift), (-reach, reach)) else { continue };
            found[number % 2] += 1;
            let own = Added::of(&factors);
            for sum in (-reach..=reach).step_by(1 + reach as usize / 5000).chain([reach]) {
                for sum in [sum - 1, sum, sum + 1].map(|sum| sum.clamp(-reach, reach)) {
                    assert_eq!(value(&line, sum, low), own.result(sum, multiplier, shift), "{line:?} of {sum}");
                }
            }
        }
        // Rounding twice moves the steps of negative sums, so that few lines have those of both signs.
        assert!(found[0] > 0 && found[1] > 195, "{found:?}");
    }

    #[test]
    fn halves_of_both_signs_are_no_line() {
        // Every 1024th sum is halfway between two results, and is rounded away from zero.
        let scale = (1 << 30, 40);
        assert_eq!(line(&factors(0, -128), scale, (-200_000, 200_000)), None);
        let limited = factors(0, 0);
        let (line, own) = (line(&limited, scale, (-200_000, 200_000)).unwrap(), Added::of(&limited));
        for sum in -200_000..=200_000 {
            assert_eq!(value(&line, sum, 0), own.result(sum, scale.0, scale.1), "{sum}");
        }
    }

    #[test]
    fn outputs_of_one_result_have_no_slope_and_sums_beyond_singles_no_line() {
        let factors = factors(7, -128);
        let level = line(&factors, (1 << 30, 50), (-100, 100)).unwrap();
        assert_eq!((level.slope, level.offset), (0.0, 7.5));
        assert_eq!(line(&factors, (1 << 30, 58), (-(1 << 30), 1 << 30)), None);
        assert_eq!(line(&factors, (1 << 30, 31), (-100, 100)), None);
        assert_eq!(line(&factors, (1 << 30, 40), ANYTHING), None);
    }
}
