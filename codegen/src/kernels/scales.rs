//! Epilogues that only rescale sums and store them as bytes, as quantised networks have them: a routine does that for many sums.

use super::bounds::{self, Bounds};
use super::{Argument, Epilogue, KernelWriter};
use crate::loops::{Known, Var};
use mlc_ir::scalar::{BinaryFunction as B, Rounding, ScalarNode};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType};

/// What is known of the sums that are rescaled.
#[derive(Debug)]
pub struct Sums {
    /// Bounds of sums of products.
    pub products: Bounds,
    /// What each output's begin with.
    pub first: Vec<i64>,
    /// The outputs all of whose weights are zero.
    pub silent: Vec<bool>,
}

/// How sums are rescaled.
#[derive(Debug, Clone)]
pub struct Scales {
    /// For each output its multiplier, its shift less 32, and twice what is added and 1, shifted to the left by that.
    pub table: Var,
    /// The outputs with the multiplier 0: their results don't depend on their sums.
    pub idle: Vec<bool>,
    /// What the result isn't below.
    pub low: i32,
    /// What it is stored as.
    pub dtype: DType,
}

/// By what the sums of each output are rescaled, if that is the same for all, or a constant for each.
pub struct Factors {
    multipliers: Numbers,
    shifts: Numbers,
    /// The number of an operand of the epilogue that holds one of them.
    pub operand: Option<usize>,
    /// Added to the rescaled number.
    pub added: i32,
    /// What the result isn't below.
    pub low: i32,
    /// What it is stored as.
    pub dtype: DType,
}

impl Factors {
    /// Of each output its multiplier and its shift.
    pub fn list(&self, outputs: usize) -> Vec<(i64, i64)> {
        self.multipliers.list(outputs).into_iter().zip(self.shifts.list(outputs)).collect()
    }

    /// The same multiplier and shift for all outputs.
    #[cfg(test)]
    pub fn of_all((multiplier, shift): (i64, i64), added: i32, low: i32, dtype: DType) -> Factors {
        let [multipliers, shifts] = [multiplier, shift].map(Numbers::Literal);
        Factors { multipliers, shifts, operand: None, added, low, dtype }
    }

    /// Whether the lower limit is above the smallest number that is stored.
    pub fn is_limited(&self) -> bool {
        f64::from(self.low) > self.dtype.integer_range(8).0
    }
}

/// One number for all outputs, or one for each.
enum Numbers {
    Literal(i64),
    Constant(Attribute),
}

impl Scales {
    /// The lower limit, if it isn't the smallest number of the type.
    pub fn limit(&self) -> Option<i64> {
        (f64::from(self.low) > self.dtype.integer_range(8).0).then_some(self.low.into())
    }
}

impl Numbers {
    fn of(epilogue: &Epilogue, node: ScalarNode, outputs: usize) -> Option<(Numbers, Option<usize>)> {
        match node {
            ScalarNode::Literal(Literal::Integer(_, number)) => Some((Numbers::Literal(number), None)),
            ScalarNode::Operand(k) => {
                let argument = epilogue.operands.get((k as usize).checked_sub(1)?)?;
                Some((Numbers::Constant(per_output(argument, outputs)?), Some(k as usize)))
            }
            _ => None,
        }
    }

    fn list(&self, outputs: usize) -> Vec<i64> {
        match self {
            Numbers::Literal(number) => vec![*number; outputs],
            Numbers::Constant(constant) => {
                let list = constant.to_tensor().to_integers();
                if list.len() == 1 { vec![list[0]; outputs] } else { list }
            }
        }
    }
}

/// Words of 32 bits.
pub(super) fn numbers(list: Vec<i64>) -> Attribute {
    Attribute::from_tensor(&Tensor::from_integers(TensorType::new(DType::I32, [list.len()]), list))
}

/// The values of a constant of 32-bit integers that only changes from output to output.
pub fn per_output(argument: &Argument, outputs: usize) -> Option<Attribute> {
    let constant = argument.constant.as_ref().filter(|constant| constant.ty().dtype == DType::I32)?;
    let elements = constant.ty().elements();
    let last = constant.ty().shape.last().copied().unwrap_or(1);
    (elements == last && (elements == 1 || elements == outputs)).then(|| constant.clone())
}

/// What is added to a rescaled number, and the limits of what that makes.
pub struct Added {
    pub added: i32,
    pub low: i32,
    pub high: i32,
}

impl Added {
    /// What sums that are rescaled by some factors get.
    pub fn of(factors: &Factors) -> Added {
        Added { added: factors.added, low: factors.low, high: factors.dtype.integer_range(8).1 as i32 }
    }

    /// The three numbers of an output in the table. `None` where its rescaling isn't one of those that are simple.
    fn scale(&self, sums: &Sums, output: usize, multiplier: i64, shift: i64) -> Option<[i64; 3]> {
        if !(32..=62).contains(&shift) || multiplier < 0 {
            return None;
        }
        let first = *sums.first.get(output)?;
        if sums.silent.get(output) == Some(&true) {
            return Some([0, 0, 2 * self.result(first, multiplier, shift) + 1]);
        }
        let bounds = (sums.products.0.saturating_add(first), sums.products.1.saturating_add(first));
        let is_small = bounds::known(Rounding::Twice, DType::I32, [bounds, (multiplier, multiplier), (shift, shift)]);
        // What is added is a part of the number before it is shifted: their sum must be a word.
        let twice = 2 * i64::from(self.added) + 1;
        let fits = is_small == Known::Small && twice.abs() << (shift - 32) < 1 << 30;
        fits.then(|| [multiplier, shift - 32, twice << (shift - 32)])
    }

    /// What becomes of a sum, by a shift to the right.
    pub fn result(&self, sum: i64, multiplier: i64, shift: i64) -> i64 {
        let once = (sum * multiplier + (1 << 30)) >> 31;
        let twice = (once + (1 << (shift - 32)) - i64::from(once < 0)) >> (shift - 31);
        (twice + i64::from(self.added)).clamp(self.low.into(), self.high.into())
    }
}

/// How a kernel's epilogue rescales sums, if it does that and nothing else; as a table.
pub fn scales(kernel: &mut KernelWriter<'_>, outputs: usize, sums: &Sums) -> Option<Scales> {
    let factors = factors(kernel, outputs)?;
    let Factors { operand, low, dtype, .. } = factors;
    let added = Added::of(&factors);
    let all = factors.list(outputs).into_iter().enumerate();
    let scales: Vec<[i64; 3]> =
        all.map(|(output, (multiplier, shift))| added.scale(sums, output, multiplier, shift)).collect::<Option<_>>()?;
    let idle = scales.iter().map(|scale| scale[0] == 0).collect();
    let ty = TensorType::new(DType::I32, [3 * outputs]);
    let values = move || Some(numbers(scales.concat()));
    let table = match operand {
        Some(number) => kernel.pack(number, "scales", ty, values),
        None => kernel.table("scales", values()?),
    };
    Some(Scales { table, idle, low, dtype })
}

/// How a kernel's epilogue rescales sums, if it does that and nothing else.
pub fn factors(kernel: &KernelWriter<'_>, outputs: usize) -> Option<Factors> {
    let last = kernel.epilogue.as_ref()?.expression.nodes().len().checked_sub(1)?;
    factors_of(kernel, outputs, last)
}

/// How a step of a kernel's epilogue makes a byte of a sum, if it rescales it and does nothing else.
pub fn factors_of(kernel: &KernelWriter<'_>, outputs: usize, step: usize) -> Option<Factors> {
    let epilogue = kernel.epilogue.clone()?;
    let nodes = epilogue.expression.nodes();
    let at = |id: u32| nodes[id as usize];
    let literal = |id: u32| match at(id) {
        ScalarNode::Literal(Literal::Integer(DType::I32, number)) => i32::try_from(number).ok(),
        _ => None,
    };
    let ScalarNode::Cast(dtype, limited) = *nodes.get(step)? else { return None };
    let ScalarNode::Binary(B::Minimum, raised, high) = at(limited) else { return None };
    let ScalarNode::Binary(B::Maximum, value, low) = at(raised) else { return None };
    let (least, most) = Some(dtype).filter(|dtype| dtype.is_byte())?.integer_range(8);
    let low = literal(low).filter(|&low| f64::from(low) >= least)?;
    literal(high).filter(|&high| f64::from(high) == most)?;
    let (rescaled, added) = match at(value) {
        ScalarNode::Binary(B::Add, rescaled, added) => (at(rescaled), literal(added)?),
        other => (other, 0),
    };
    let ScalarNode::Rescale(Rounding::Twice, [x, multiplier, shift]) = rescaled else { return None };
    if at(x) != ScalarNode::Operand(0) || added.unsigned_abs() >= 1 << 16 {
        return None;
    }
    let (multipliers, first) = Numbers::of(&epilogue, at(multiplier), outputs)?;
    let (shifts, second) = Numbers::of(&epilogue, at(shift), outputs)?;
    let sides: Vec<Bounds> = [(&multipliers, first), (&shifts, second)]
        .into_iter()
        .map(|(numbers, operand)| match (numbers, operand) {
            (Numbers::Literal(number), _) => (*number, *number),
            (_, operand) => operand.and_then(|k| kernel.bounds.get(k).copied()).unwrap_or(bounds::ANYTHING),
        })
        .collect();
    let sums = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
    let known = bounds::known(Rounding::Twice, DType::I32, [sums, sides[0], sides[1]]);
    // A rescaled number has 32 bits, but for the smallest one of all by itself.
    if known == Known::Nothing || sides[0].0 <= i32::MIN.into() {
        return None;
    }
    let operand = first.or(second).and_then(|k| epilogue.operands.get(k - 1)?.operand);
    Some(Factors { multipliers, shifts, operand, added, low, dtype })
}
