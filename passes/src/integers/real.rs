//! [`Real`]: what stands for real numbers, `scale * (integer - zero point)`, as rules see it.

use crate::rewrite::{Class, Term, View};
use mlc_ir::ops::{Binary, Cast, Map, Matmul, Reshape};
use mlc_ir::scalar::{BinaryFunction as B, Expression, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Op, Shape, folding};

/// Constants of more elements aren't looked at.
const MOST_ELEMENTS: usize = 1 << 16;

/// Scales are between two to the power of this and its reciprocal, so that products and quotients of two are normal numbers.
const LARGEST_EXPONENT: i32 = 60;

/// A tensor of integers that is converted to real numbers, all of it at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Real {
    /// The integers.
    pub(super) integers: Class,
    /// One number for all of them, or more that broadcast to them.
    pub(super) scale: Class,
    /// The same, of the integers' type; none for 0.
    pub(super) zero: Option<Class>,
}

/// The conversion that importers spell: of integers, a scale and, maybe, a zero point.
pub(super) fn conversion(has_zero: bool) -> Map {
    let expression = Expression::build(|b| {
        let x = b.operand(0);
        let mut x = b.cast(DType::F32, x);
        if has_zero {
            let zero = b.operand(2);
            let zero = b.cast(DType::F32, zero);
            x = b.binary(B::Subtract, x, zero);
        }
        let scale = b.operand(1);
        b.binary(B::Multiply, x, scale)
    });
    Map { expression }
}

/// The quantisation that importers spell, of a number that has been divided by the scale.
pub(super) fn quantisation(dtype: DType, has_zero: bool) -> Map {
    let (low, high) = dtype.integer_range(8 * dtype.size());
    let expression = Expression::build(|b| {
        let x = b.operand(0);
        let mut x = b.unary(U::Round, x);
        if has_zero {
            let zero = b.operand(1);
            let zero = b.cast(DType::F32, zero);
            x = b.binary(B::Add, x, zero);
        }
        let (low, high) = (b.number(DType::F32, low), b.number(DType::F32, high));
        let x = b.binary(B::Maximum, x, low);
        let x = b.binary(B::Minimum, x, high);
        b.cast(dtype, x)
    });
    Map { expression }
}

/// The ways in which a value is converted from integers of up to 32 bits.
pub(super) fn reals(view: &dyn View, class: Class) -> Vec<Real> {
    let shape = &view.ty(class).shape;
    let found = view.applications(class).into_iter().filter_map(|application| {
        let Op::Map(map) = application.op else { return None };
        let (&integers, &scale) = (application.operands.first()?, application.operands.get(1)?);
        let zero = application.operands.get(2).copied();
        let ty = view.ty(integers);
        let is_exact = ty.dtype == DType::I32 && zero.is_none() || is_narrow(ty.dtype);
        let is_real = is_exact && view.ty(scale).dtype == DType::F32 && ty.shape == *shape;
        (is_real && *map == conversion(zero.is_some())).then_some(Real { integers, scale, zero })
    });
    found.collect()
}

/// Integers of up to 16 bits.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.is_integer() && dtype.size() <= 2
}

/// Integers converted to real numbers.
pub(super) fn real(integers: Term, scale: Term, zero: Option<Term>) -> Term {
    let map = conversion(zero.is_some());
    Term::apply(map, [integers, scale].into_iter().chain(zero))
}

impl Real {
    /// The integers without their zero point, in 32 bits.
    pub(super) fn centred(&self) -> Term {
        let wide = |class: Class| Term::apply(Cast { dtype: DType::I32 }, [class.into()]);
        match self.zero {
            Some(zero) => binary(B::Subtract, wide(self.integers), wide(zero)),
            None => wide(self.integers),
        }
    }

    /// The scales, all of which are positive, known, and neither very large nor very small.
    pub(super) fn scales(&self, view: &dyn View) -> Option<Vec<f64>> {
        positive(view, self.scale)
    }

    /// The scale, if it is one for all.
    pub(super) fn one_scale(&self, view: &dyn View) -> Option<f64> {
        match self.scales(view)?[..] {
            [scale] => Some(scale),
            _ => None,
        }
    }

    /// The zero point, if it is one for all and known.
    pub(super) fn zero_number(&self, view: &dyn View) -> Option<i64> {
        match self.zero {
            None => Some(0),
            Some(zero) => one_integer(view, zero),
        }
    }

    /// Whether there is one scale and one zero point.
    pub(super) fn is_uniform(&self, view: &dyn View) -> bool {
        let single = |class: Class| view.ty(class).elements() == 1;
        single(self.scale) && self.zero.is_none_or(single)
    }

    /// The largest magnitude that the integers may have without their zero point.
    pub(super) fn largest(&self, view: &dyn View) -> i64 {
        let dtype = view.ty(self.integers).dtype;
        let (low, high) = range(dtype);
        match self.zero_number(view) {
            Some(zero) => (low - zero).abs().max((high - zero).abs()),
            None => high - low,
        }
    }
}

/// The smallest and the largest number of an integer type of up to 32 bits.
pub(super) fn range(dtype: DType) -> (i64, i64) {
    let (low, high) = dtype.integer_range(8 * dtype.size());
    (low as i64, high as i64)
}

/// A constant of few elements, computed if need be.
pub(super) fn constant(view: &dyn View, class: Class) -> Option<Attribute> {
    if !view.is_constant(class) || view.ty(class).elements() > MOST_ELEMENTS {
        return None;
    }
    if let Some(value) = view.value(class) {
        return Some(value.clone());
    }
    view.applications(class).into_iter().find_map(|application| {
        let operands: Vec<Attribute> =
            application.operands.iter().map(|&operand| constant(view, operand)).collect::<Option<_>>()?;
        folding::compute(application.op, &operands.iter().collect::<Vec<_>>()).ok()?.into_iter().next()
    })
}

/// The one element of a constant of integers.
pub(super) fn one_integer(view: &dyn View, class: Class) -> Option<i64> {
    let constant = constant(view, class).filter(|constant| constant.ty().dtype.is_integer())?;
    match constant.to_tensor().to_integers()[..] {
        [number] => Some(number),
        _ => None,
    }
}

/// The elements of a constant, all of which are positive, and neither very large nor very small.
pub(super) fn positive(view: &dyn View, class: Class) -> Option<Vec<f64>> {
    let numbers = constant(view, class)?.to_tensor().to_floats();
    let largest = 2f64.powi(LARGEST_EXPONENT);
    let is_usual = |number: &f64| (1.0 / largest..=largest).contains(number);
    (!numbers.is_empty() && numbers.iter().all(is_usual)).then_some(numbers)
}

/// A value of one element as a number of rank 0.
pub(super) fn scalar(view: &dyn View, class: Class) -> Term {
    if view.ty(class).rank() == 0 { class.into() } else { reshaped(class.into(), &[]) }
}

/// A term under another shape.
pub(super) fn reshaped(term: Term, shape: &[usize]) -> Term {
    Term::apply(Reshape { shape: Shape::from(shape) }, [term])
}

/// A function of two terms.
pub(super) fn binary(function: B, x: Term, y: Term) -> Term {
    Term::apply(Binary { function }, [x, y])
}

/// How many products each sum has, of an operator over operands of some shapes that sums up products of x and weights.
pub(super) fn steps(op: &Op, x: &[usize], weights: &[usize]) -> Option<usize> {
    let summed = weights.split_last()?.1.iter().product();
    match op {
        Op::Convolution(_) | Op::TransposedConvolution(_) => Some(summed),
        Op::Matmul(Matmul { transpose_left, .. }) => {
            x.get(x.len().checked_sub(if *transpose_left { 2 } else { 1 })?).copied()
        }
        _ => None,
    }
}
