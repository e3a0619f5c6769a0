//! Sums of products of integers, as they are stored, and zero points where they cost nothing.

use super::real::{Real, binary, is_narrow, one_integer, range, real, reals, reshaped, scalar, steps};
use super::samples;
use crate::rewrite::{Class, Match, Rule, Term};
use mlc_ir::ops::{
    AveragePool, Binary, Cast, Constant, Convolution, Matmul, Reduce, ReduceFunction, TransposedConvolution, Unary,
};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Literal, Op, OpKind, Tensor, TensorType};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::reassociation(
        "products-of-integers",
        "sum((s x) (t w)) = s t sum(x w); sums of integers are exact",
        &[OpKind::Convolution, OpKind::Matmul, OpKind::TransposedConvolution],
        products_of_integers,
        samples::products,
    ),
    Rule::reassociation(
        "mean-of-integers-as-sum",
        "a mean is a sum of products with 1, scaled",
        &[OpKind::AveragePool],
        mean_as_sum,
        samples::average_pool_of,
    ),
    Rule::exact(
        "narrow-operands-of-integer-products",
        "sum((x - z) w) = sum(x w) - z sum(w), where the border is z too",
        &[OpKind::Convolution, OpKind::Matmul, OpKind::TransposedConvolution],
        narrow_operands,
        samples::centred_products,
    ),
];

/// The scale of weights as a vector along the last axis of the result, or one number.
pub(super) fn along_results(m: &Match<'_>, weights: &Real) -> Option<Term> {
    let ty = m.view.ty(weights.scale);
    let elements = ty.elements();
    if elements == 1 {
        return Some(scalar(m.view, weights.scale));
    }
    let rank = m.view.ty(weights.integers).rank();
    let from_end = match m.op {
        Op::Convolution(_) => 1,
        Op::TransposedConvolution(op) if op.groups == 1 => 1,
        Op::Matmul(op) if rank >= 2 => 1 + usize::from(op.transpose_right),
        _ => return None,
    };
    let extent = ty.rank().checked_sub(from_end).map(|axis| ty.shape[axis]);
    (extent == Some(elements)).then(|| reshaped(weights.scale.into(), &[elements]))
}

/// Whether the operator sums up products of operands of its result's type.
pub(super) fn is_plain(op: &Op) -> bool {
    match op {
        Op::Convolution(Convolution { sums, border, .. }) => sums.is_none() && *border == 0,
        Op::Matmul(Matmul { sums, .. }) | Op::TransposedConvolution(TransposedConvolution { sums, .. }) => {
            sums.is_none()
        }
        _ => false,
    }
}

fn products_of_integers(m: &Match<'_>) -> Vec<Term> {
    if !is_plain(m.op) || m.ty.dtype != DType::F32 || m.ty.rank() == 0 {
        return Vec::new();
    }
    let mut terms = Vec::new();
    for x in reals(m.view, m.operands[0]) {
        for weights in reals(m.view, m.operands[1]) {
            let narrow = [x, weights].iter().all(|own| is_narrow(m.view.ty(own.integers).dtype));
            if narrow && x.is_uniform(m.view) && sums_fit(m, &x, &weights) {
                terms.extend(sums_of_integers(m, &x, &weights));
            }
        }
    }
    terms
}

/// Whether no sum exceeds 32 bits.
pub(super) fn sums_fit(m: &Match<'_>, x: &Real, weights: &Real) -> bool {
    let steps = steps(m.op, &m.operand_type(0).shape, &m.operand_type(1).shape);
    let largest = x.largest(m.view).checked_mul(weights.largest(m.view));
    let sum = steps.and_then(|steps| largest?.checked_mul(steps as i64));
    sum.is_some_and(|sum| sum <= i64::from(i32::MAX))
}

fn sums_of_integers(m: &Match<'_>, x: &Real, weights: &Real) -> Option<Term> {
    (x.scales(m.view).is_some() && weights.scales(m.view).is_some()).then_some(())?;
    let scale = binary(B::Multiply, along_results(m, weights)?, scalar(m.view, x.scale));
    let sums = Term::apply(m.op.clone(), [x.centred(), weights.centred()]);
    Some(real(sums, scale, None))
}

/// Where all windows have as many elements.
fn mean_as_sum(m: &Match<'_>) -> Vec<Term> {
    let Op::AveragePool(AveragePool { window, strides, dilations, pads, counted_pads }) = m.op else {
        return Vec::new();
    };
    let Some(&channels) = m.ty.shape.last() else { return Vec::new() };
    let elements: usize = window.iter().product();
    if m.ty.dtype != DType::F32 || (pads != counted_pads && pads.iter().any(|&pad| pad != (0, 0))) {
        return Vec::new();
    }
    let op = Convolution {
        strides: strides.clone(),
        dilations: dilations.clone(),
        pads: pads.clone(),
        groups: channels,
        border: 0,
        sums: None,
    };
    let mut shape = window.clone();
    shape.extend([1, channels]);
    let number = |literal: Literal, shape: &[usize]| {
        let value = Tensor::splat(TensorType::new(literal.dtype(), shape), literal);
        Term::apply(Constant { value: Attribute::from_tensor(&value) }, [])
    };
    let ones = Term::apply(Cast { dtype: DType::I32 }, [number(Literal::integer(DType::I8, 1), &shape)]);
    let fits = |own: &Real| {
        let sum = own.largest(m.view).checked_mul(elements as i64);
        let narrow = is_narrow(m.view.ty(own.integers).dtype);
        narrow && own.one_scale(m.view).is_some() && sum.is_some_and(|sum| sum <= i64::from(i32::MAX))
    };
    let found = reals(m.view, m.operands[0]).into_iter().filter(fits);
    let sums = found.map(|own| {
        let count = number(Literal::float(DType::F32, elements as f64), &[]);
        let scale = binary(B::Divide, scalar(m.view, own.scale), count);
        real(Term::apply(op.clone(), [own.centred(), ones.clone()]), scale, None)
    });
    sums.collect()
}

/// Integers of up to 16 bits, less a zero point of the same type, in 32 bits, or a constant of such integers.
#[derive(Clone, Copy)]
struct Centred {
    integers: Class,
    dtype: DType,
    /// In 32 bits, and what it is known to be.
    zero: Option<(Class, Option<i64>)>,
}

/// What a value of the given shape is a conversion to 32 bits of.
fn widened(m: &Match<'_>, class: Class) -> Option<Class> {
    m.view.applications(class).into_iter().find_map(|application| match application.op {
        Op::Cast(Cast { dtype: DType::I32 }) => {
            application.operands.first().copied().filter(|&inner| is_narrow(m.view.ty(inner).dtype))
        }
        _ => None,
    })
}

/// The type of up to 16 bits that the elements of a constant fit in.
fn narrowest(m: &Match<'_>, class: Class) -> Option<DType> {
    let numbers = m.view.value(class)?.to_tensor().to_integers();
    [DType::I8, DType::I16].into_iter().find(|&dtype| {
        let (low, high) = range(dtype);
        numbers.iter().all(|number| (low..=high).contains(number))
    })
}

fn centred(m: &Match<'_>, k: usize) -> Option<Centred> {
    let class = m.operands[k];
    if let Some(dtype) = narrowest(m, class) {
        return Some(Centred { integers: class, dtype, zero: None });
    }
    if let Some(integers) = widened(m, class) {
        return Some(Centred { integers, dtype: m.view.ty(integers).dtype, zero: None });
    }
    m.inner(k).into_iter().find_map(|inner| {
        let (Op::Binary(Binary { function: B::Subtract }), &[wide, zero]) = (inner.op, inner.operands) else {
            return None;
        };
        let integers = widened(m, wide)?;
        let dtype = m.view.ty(integers).dtype;
        let number = one_integer(m.view, zero);
        let (low, high) = range(dtype);
        let is_alike = widened(m, zero).is_some_and(|zero| m.view.ty(zero).dtype == dtype);
        let is_within = number.is_some_and(|number| (low..=high).contains(&number));
        let fits = m.view.ty(wide) == m.operand_type(k) && (is_alike || is_within);
        fits.then_some(Centred { integers, dtype, zero: Some((zero, number)) })
    })
}

impl Centred {
    /// The integers as they are stored, or without their zero point in as few bits as do.
    fn narrowed(&self, m: &Match<'_>, k: usize) -> Option<Term> {
        let Some((_, number)) = self.zero else {
            let is_narrow = m.view.ty(self.integers).dtype == self.dtype;
            let converted = || Term::apply(Cast { dtype: self.dtype }, [self.integers.into()]);
            return Some(if is_narrow { self.integers.into() } else { converted() });
        };
        if self.dtype.size() > 1 {
            return None;
        }
        let (low, high) = range(self.dtype);
        let is_byte = number.is_some_and(|zero| low - zero >= -128 && high - zero <= 127);
        let dtype = if is_byte { DType::I8 } else { DType::I16 };
        Some(Term::apply(Cast { dtype }, [m.operands[k].into()]))
    }
}

fn narrow_operands(m: &Match<'_>) -> Vec<Term> {
    let is_wide = |k: usize| m.operand_type(k).dtype == DType::I32;
    if !is_plain(m.op) || !is_wide(0) || !is_wide(1) {
        return Vec::new();
    }
    let (Some(x), Some(weights)) = (centred(m, 0), centred(m, 1)) else { return Vec::new() };
    let Some(own) = weights.narrowed(m, 1) else { return Vec::new() };
    let stored = match x.zero {
        Some((zero, number)) => corrected(m, &x, own.clone(), zero, number),
        None => None,
    };
    let plain = || Some(Term::apply(with(m.op, 0)?, [x.narrowed(m, 0)?, own]));
    stored.or_else(plain).into_iter().collect()
}

/// The operator with sums of 32 bits and a border.
fn with(op: &Op, border: i64) -> Option<Op> {
    let sums = Some(DType::I32);
    Some(match op {
        Op::Convolution(op) => Convolution { sums, border, ..op.clone() }.into(),
        Op::Matmul(op) => Matmul { sums, ..op.clone() }.into(),
        Op::TransposedConvolution(op) => TransposedConvolution { sums, ..op.clone() }.into(),
        _ => return None,
    })
}

/// Of x as it is stored by constant weights, less what the zero point adds to the sums.
fn corrected(m: &Match<'_>, x: &Centred, weights: Term, zero: Class, number: Option<i64>) -> Option<Term> {
    let rank = m.operand_type(1).rank();
    let axes = match m.op {
        Op::Convolution(op) if number.is_some() || op.pads.iter().all(|&pad| pad == (0, 0)) => (0..rank - 1).collect(),
        Op::Matmul(op) if rank == 2 => vec![usize::from(op.transpose_right)],
        _ => return None,
    };
    if !m.view.is_constant(m.operands[1]) || m.view.ty(zero).elements() != 1 {
        return None;
    }
    let total = Reduce { function: ReduceFunction::Sum, axes, keep_axes: false };
    let below = Term::apply(Unary { function: U::Negate }, [scalar(m.view, zero)]);
    let correction = binary(B::Multiply, Term::apply(total, [m.operands[1].into()]), below);
    let border = if matches!(m.op, Op::Convolution(_)) { number.unwrap_or(0) } else { 0 };
    let sums = Term::apply(with(m.op, border)?, [x.integers.into(), weights]);
    Some(binary(B::Add, sums, correction))
}
