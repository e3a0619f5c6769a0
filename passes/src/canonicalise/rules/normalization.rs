//! Means, normalisations and softmax, as exporters spell them out.

use crate::rewrite::{Class, Match, Rule, Term, View};
use crate::sketch::{Sketch, binary, reshape, unary};
use mlc_ir::ops::{Binary, Normalize, Reduce, ReduceFunction, Softmax};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Float, Generator, Graph, Op, OpKind, Value};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::reassociation(
        "sum-over-count-as-mean",
        "sum(x) / n = mean(x) of n elements",
        &[OpKind::Binary],
        sum_over_count,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(1, 3);
            let (x, axes) = (s.input(&shape), s.random.axes(shape.len()));
            let count = axes.iter().map(|&axis| shape[axis]).product::<usize>() as f64;
            let keep_axes = s.random.one_in(2);
            let sum = s.apply(Reduce { function: ReduceFunction::Sum, axes, keep_axes }, &[x]);
            let divided = s.random.one_in(2);
            let number = s.splat(DType::F32, &[], if divided { count } else { 1.0 / count });
            let y = s.apply(binary(if divided { B::Divide } else { B::Multiply }), &[sum, number]);
            s.finish(y)
        },
    ),
    Rule::reassociation(
        "spelled-normalization-as-normalize",
        "(x - mean(x)) / sqrt(mean((x - mean(x))^2) + e), also without the mean, is a normalisation",
        &[OpKind::Binary],
        spelled_normalization,
        sample_normalization,
    ),
    Rule::reassociation(
        "spelled-softmax-as-softmax",
        "e^z / sum(e^z) and z - log(sum(e^z)) of z = x - max(x) are softmax and its logarithm",
        &[OpKind::Binary],
        spelled_softmax,
        sample_softmax,
    ),
];

/// The operands of the ways in which a value is a binary function.
fn binaries(view: &dyn View, class: Class, function: B) -> Vec<(Class, Class)> {
    let found = view.applications(class).into_iter();
    let same = |op: &Op| matches!(op, Op::Binary(binary) if binary.function == function);
    found.filter(|inner| same(inner.op)).map(|inner| (inner.operands[0], inner.operands[1])).collect()
}

/// The operands of the ways in which a value is a unary function.
fn unaries(view: &dyn View, class: Class, function: U) -> Vec<Class> {
    let found = view.applications(class).into_iter();
    let same = |op: &Op| matches!(op, Op::Unary(unary) if unary.function == function);
    found.filter(|inner| same(inner.op)).map(|inner| inner.operands[0]).collect()
}

/// The ways in which a value is a reduction that broadcasts to its operand as one that keeps its axes does: (x, axes). Axes
/// that were dropped may have been put back by a reshape.
fn reductions(view: &dyn View, class: Class, function: ReduceFunction) -> Vec<(Class, Vec<usize>)> {
    let shape = &view.ty(class).shape;
    let mut found = Vec::new();
    for outer in view.applications(class) {
        let reshaped = match outer.op {
            Op::Reshape(_) => view.applications(outer.operands[0]),
            _ => std::iter::once(outer).collect(),
        };
        for inner in reshaped {
            let Op::Reduce(reduce) = inner.op else { continue };
            let from = &view.ty(inner.operands[0]).shape;
            let kept =
                from.iter().enumerate().map(|(axis, &extent)| if reduce.axes.contains(&axis) { 1 } else { extent });
            let missing = from.len().checked_sub(shape.len());
            let aligned =
                missing.is_some_and(|missing| std::iter::repeat_n(1, missing).chain(shape.iter().copied()).eq(kept));
            if reduce.function == function && aligned {
                found.push((inner.operands[0], reduce.axes.clone()));
            }
        }
    }
    found
}

fn sum_over_count(m: &Match<'_>) -> Vec<Term> {
    let Op::Binary(Binary { function }) = m.op else { return Vec::new() };
    let Some(number) = m.view.splat(m.operands[1]).filter(|number| number.dtype().is_float()) else {
        return Vec::new();
    };
    if m.operand_type(0) != m.ty {
        return Vec::new();
    }
    let terms = m.inner(0).into_iter().filter_map(|inner| {
        let Op::Reduce(reduce) = inner.op else { return None };
        let shape = &m.view.ty(inner.operands[0]).shape;
        let count = reduce.axes.iter().map(|&axis| shape[axis]).product::<usize>() as f64;
        let mean = match function {
            B::Divide => number.to_f64() == count,
            // The reciprocal as a number of the type is.
            B::Multiply => number == mlc_ir::Literal::float(number.dtype(), 1.0 / count),
            _ => false,
        };
        let mean = mean && reduce.function == ReduceFunction::Sum && count > 0.0;
        let op = Reduce { function: ReduceFunction::Mean, ..reduce.clone() };
        mean.then(|| Term::apply(op, [inner.operands[0].into()]))
    });
    terms.collect()
}

/// The ways in which a value divides another one: x / y, or x * f(y) with f(y) = 1 / sqrt(y). Each is (x, what stands under
/// the root).
fn over_roots(m: &Match<'_>) -> Vec<(Class, Class)> {
    let Op::Binary(Binary { function }) = m.op else { return Vec::new() };
    let [left, right] = *m.operands else { return Vec::new() };
    let roots = |class: Class| unaries(m.view, class, U::Sqrt);
    let inverse_roots = |class: Class| {
        let mut found = unaries(m.view, class, U::Rsqrt);
        for root in unaries(m.view, class, U::Reciprocal) {
            found.extend(roots(root));
        }
        for (below, exponent) in binaries(m.view, class, B::Power) {
            let is_root = m.view.splat(exponent).is_some_and(|exponent| exponent.to_f64() == -0.5);
            found.extend(is_root.then_some(below));
        }
        for (one, root) in binaries(m.view, class, B::Divide) {
            let is_one = m.view.splat(one).is_some_and(|one| one.to_f64() == 1.0);
            found.extend(roots(root).into_iter().filter(|_| is_one));
        }
        found
    };
    match function {
        B::Divide => roots(right).into_iter().map(|below| (left, below)).collect(),
        B::Multiply => {
            let pairs = [(left, right), (right, left)];
            pairs.into_iter().flat_map(|(x, factor)| inverse_roots(factor).into_iter().map(move |y| (x, y))).collect()
        }
        _ => Vec::new(),
    }
}

/// The ways in which a value is the mean of squares, with a number added: (what is squared, axes, the number).
fn mean_squares(view: &dyn View, class: Class) -> Vec<(Class, Vec<usize>, f64)> {
    let mut sums: Vec<(Class, f64)> = vec![(class, 0.0)];
    for (x, y) in binaries(view, class, B::Add) {
        let shifted = [(x, y), (y, x)].into_iter().find_map(|(x, y)| Some((x, view.splat(y)?.to_f64())));
        sums.extend(shifted.filter(|(x, number)| view.ty(*x) == view.ty(class) && number.is_finite()));
    }
    let mut found = Vec::new();
    for (mean, epsilon) in sums {
        for (squares, axes) in reductions(view, mean, ReduceFunction::Mean) {
            let products = binaries(view, squares, B::Multiply).into_iter().filter(|(x, y)| x == y).map(|(x, _)| x);
            for x in unaries(view, squares, U::Square).into_iter().chain(products) {
                found.push((x, axes.clone(), epsilon));
            }
        }
    }
    found
}

/// The ways in which a value is x less a reduction of x: (x, axes).
fn centred(view: &dyn View, class: Class, function: ReduceFunction) -> Vec<(Class, Vec<usize>)> {
    let mut found = Vec::new();
    for (x, least) in binaries(view, class, B::Subtract) {
        let own = reductions(view, least, function).into_iter().filter(|(from, _)| *from == x);
        found.extend(own);
    }
    found
}

fn spelled_normalization(m: &Match<'_>) -> Vec<Term> {
    let mut terms = Vec::new();
    for (x, below) in over_roots(m) {
        if m.view.ty(x) != m.ty || m.view.is_constant(x) {
            continue;
        }
        for (squared, axes, epsilon) in mean_squares(m.view, below) {
            if squared != x || !m.ty.dtype.is_float() {
                continue;
            }
            let normalize = |center| Normalize { axes: axes.clone(), epsilon: Float(epsilon), center };
            let whole = centred(m.view, x, ReduceFunction::Mean).into_iter().filter(|(_, own)| *own == axes);
            terms.extend(whole.map(|(x, _)| Term::apply(normalize(true), [x.into()])));
            terms.push(Term::apply(normalize(false), [x.into()]));
        }
    }
    terms
}

/// The ways in which a value is the sum of exponentials over one axis: (exponents, axis).
fn sums_of_exponentials(view: &dyn View, class: Class) -> Vec<(Class, usize)> {
    let mut found = Vec::new();
    for (exponentials, axes) in reductions(view, class, ReduceFunction::Sum) {
        if let [axis] = axes[..] {
            found.extend(unaries(view, exponentials, U::Exp).into_iter().map(|exponent| (exponent, axis)));
        }
    }
    found
}

fn spelled_softmax(m: &Match<'_>) -> Vec<Term> {
    let Op::Binary(Binary { function }) = m.op else { return Vec::new() };
    let [left, right] = *m.operands else { return Vec::new() };
    // Exponents, and the sum of their exponentials.
    let mut spelled: Vec<(Class, Class)> = Vec::new();
    match function {
        B::Divide => spelled.extend(unaries(m.view, left, U::Exp).into_iter().map(|exponent| (exponent, right))),
        B::Multiply => {
            for (x, factor) in [(left, right), (right, left)] {
                let sums = unaries(m.view, factor, U::Reciprocal);
                let exponents = unaries(m.view, x, U::Exp);
                spelled.extend(exponents.iter().flat_map(|&exponent| sums.iter().map(move |&sum| (exponent, sum))));
            }
        }
        B::Subtract => spelled.extend(unaries(m.view, right, U::Log).into_iter().map(|sum| (left, sum))),
        _ => {}
    }
    let mut terms = Vec::new();
    for (exponent, sum) in spelled.into_iter().filter(|(exponent, _)| m.view.ty(*exponent) == m.ty) {
        for (own, axis) in sums_of_exponentials(m.view, sum).into_iter().filter(|(own, _)| *own == exponent) {
            let softmax = Softmax { axis, logarithm: *function == B::Subtract };
            let below = centred(m.view, own, ReduceFunction::Maximum).into_iter().filter(|(_, axes)| *axes == [axis]);
            terms.extend(below.map(|(x, _)| Term::apply(softmax.clone(), [x.into()])));
        }
    }
    terms
}

/// A reduction over axes that stay, in one operator or in two.
fn reduced(s: &mut Sketch<'_>, function: ReduceFunction, axes: &[usize], x: Value) -> Value {
    let keep_axes = s.random.one_in(2);
    let mut shape = s.shape(x);
    axes.iter().for_each(|&axis| shape[axis] = 1);
    let y = s.apply(Reduce { function, axes: axes.to_vec(), keep_axes }, &[x]);
    if keep_axes { y } else { s.apply(reshape(&shape), &[y]) }
}

fn sample_normalization(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let axes = s.random.axes(shape.len());
    let mut x = s.input(&shape);
    if s.random.one_in(2) {
        let mean = reduced(&mut s, ReduceFunction::Mean, &axes, x);
        x = s.apply(binary(B::Subtract), &[x, mean]);
    }
    let squares =
        if s.random.one_in(2) { s.apply(unary(U::Square), &[x]) } else { s.apply(binary(B::Multiply), &[x, x]) };
    let mut variance = reduced(&mut s, ReduceFunction::Mean, &axes, squares);
    let epsilon = s.random.choose(&[0.0, 0.001, 1.0]);
    if epsilon != 0.0 {
        let number = s.splat(DType::F32, &[], epsilon);
        let operands = if s.random.one_in(2) { [variance, number] } else { [number, variance] };
        variance = s.apply(binary(B::Add), &operands);
    }
    let root = s.apply(unary(U::Sqrt), &[variance]);
    let y = match s.random.range(0, 4) {
        0 => s.apply(binary(B::Divide), &[x, root]),
        4 => {
            let exponent = s.splat(DType::F32, &[], -0.5);
            let factor = s.apply(binary(B::Power), &[variance, exponent]);
            s.apply(binary(B::Multiply), &[x, factor])
        }
        1 => {
            let factor = s.apply(unary(U::Rsqrt), &[variance]);
            s.apply(binary(B::Multiply), &[x, factor])
        }
        2 => {
            let factor = s.apply(unary(U::Reciprocal), &[root]);
            s.apply(binary(B::Multiply), &[factor, x])
        }
        _ => {
            let one = s.splat(DType::F32, &[], 1.0);
            let factor = s.apply(binary(B::Divide), &[one, root]);
            s.apply(binary(B::Multiply), &[x, factor])
        }
    };
    s.finish(y)
}

fn sample_softmax(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let axis = s.random.range(0, shape.len() - 1);
    let x = s.input(&shape);
    let largest = reduced(&mut s, ReduceFunction::Maximum, &[axis], x);
    let exponent = s.apply(binary(B::Subtract), &[x, largest]);
    let exponential = s.apply(unary(U::Exp), &[exponent]);
    let sum = reduced(&mut s, ReduceFunction::Sum, &[axis], exponential);
    let y = match s.random.range(0, 2) {
        0 => s.apply(binary(B::Divide), &[exponential, sum]),
        1 => {
            let factor = s.apply(unary(U::Reciprocal), &[sum]);
            s.apply(binary(B::Multiply), &[factor, exponential])
        }
        _ => {
            let logarithm = s.apply(unary(U::Log), &[sum]);
            s.apply(binary(B::Subtract), &[exponent, logarithm])
        }
    };
    s.finish(y)
}
