//! The softmax of quantised tensors, as the micro reference kernels of TensorFlow Lite compute it.

use super::Builder;
use super::fixed_point::{
    Factor, exponential, inverse_of_successor, normalized, plus, product, rounded_right, rounded_right_by,
    shifted_left, whole,
};
use super::integer_arithmetic::Scaled;
use super::rescaling::{Stored, place};
use crate::fault::Fault;
use mlc_ir::ops::{Gather, Map, Op, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, Expression, ExpressionBuilder, ScalarId};
use mlc_ir::{DType, Graph, Value};

// Exponentials of the distances from the largest number are in Q0, their sum has 12 integer bits.
const SUM_BITS: i64 = 12;

impl Builder {
    /// The softmax of `beta * x` along an axis, of integers of 8 bits, in steps of a 256th: the zero point stands for 0, whatever
    /// `stored` says it is.
    ///
    /// # Errors
    /// When the scale is too small for the fixed-point numbers, or the axis isn't there.
    pub fn softmax_of_integers(&mut self, x: Scaled, axis: usize, beta: f64, stored: Stored) -> Result<Value, Fault> {
        let factor = (beta * f64::from(x.scale) * f64::from(1 << 26)).min(f64::from(i32::MAX));
        let factor = Factor::of(factor)?;
        if factor.exponent() < 0 {
            return Err(Fault::variant(format!("a softmax of numbers of the scale {} isn't supported", x.scale)));
        }
        let bits = factor.exponent();
        let least = -(31.0 * f64::from(1 << 26) / 2f64.powi(bits as i32)).floor() as i64;
        let largest = self.reduce(ReduceFunction::Maximum, x.integers, &[axis], true)?;
        let distances = self.map(&[largest, x.integers], distance)?;
        let exponentials = self.integer_function(distances, |b, distance| {
            let zero = whole(b, 0);
            let x = b.binary(B::Subtract, zero, distance);
            let least = whole(b, least);
            let is_near = b.binary(B::GreaterEqual, x, least);
            // What is farther away would leave 32 bits.
            let near = b.binary(B::Maximum, x, least);
            let shifted = shifted_left(b, near, bits);
            let number = whole(b, factor.number);
            let scaled = product(b, shifted, number);
            let y = exponential(b, scaled, 5);
            let y = b.select(is_near, y, zero);
            b.cast(DType::I32, y)
        })?;
        let summands = self.integer_function(exponentials, |b, x| {
            let y = rounded_right(b, x, SUM_BITS);
            b.cast(DType::I32, y)
        })?;
        let sum = self.reduce(ReduceFunction::Sum, summands, &[axis], true)?;
        let inverse = self.map(&[sum], inverse)?;
        Ok(self.map(&[exponentials, inverse, sum], |b| quotient(b, stored))?)
    }
}

/// How far a number is below the largest.
fn distance(b: &mut ExpressionBuilder) -> ScalarId {
    let [largest, x] = [0, 1].map(|operand| {
        let operand = b.operand(operand);
        b.cast(DType::I16, operand)
    });
    let distance = b.binary(B::Subtract, largest, x);
    b.cast(DType::U8, distance)
}

/// The inverse of a sum, but for a power of two.
fn inverse(b: &mut ExpressionBuilder) -> ScalarId {
    let sum = b.operand(0);
    let sum = b.cast(DType::I64, sum);
    let (filled, _) = normalized(b, sum);
    let fraction = plus(b, filled, -(1 << 31));
    let inverse = inverse_of_successor(b, fraction);
    b.cast(DType::I32, inverse)
}

/// An exponential times the inverse of the sum.
fn quotient(b: &mut ExpressionBuilder, stored: Stored) -> ScalarId {
    let [exponential, inverse, sum] = [0, 1, 2].map(|operand| {
        let operand = b.operand(operand);
        b.cast(DType::I64, operand)
    });
    let (_, zeros) = normalized(b, sum);
    let y = product(b, inverse, exponential);
    let width = 8 * stored.dtype.size() as i64;
    let most = whole(b, SUM_BITS + 31 - width);
    let bits = b.binary(B::Subtract, most, zeros);
    let y = rounded_right_by(b, y, bits);
    let offset = if stored.dtype == DType::U8 { 0 } else { i64::from(i8::MIN) };
    Stored { zero_point: offset, ..stored }.store(b, DType::I64, y)
}

/// What a value is the softmax of along an axis, if it is one as [`Builder::softmax_of_integers`] makes them of any scale. Of its results
/// none is smaller than that of a smaller number.
pub fn operand_of_softmax(graph: &Graph, value: Value, axis: usize) -> Option<Value> {
    let along = |value: Value, wanted: ReduceFunction| match &graph.node(value.node).op {
        Op::Reduce(Reduce { function, axes, keep_axes: true }) if *function == wanted && axes[..] == [axis] => {
            Some(graph.operands(value.node)[0])
        }
        _ => None,
    };
    let map = |value: Value, expected: Expression| match &graph.node(value.node).op {
        Op::Map(Map { expression }) if *expression == expected => Some(graph.operands(value.node)),
        _ => None,
    };
    let stored = Stored::of(graph.ty(value).dtype, 0);
    let operands = map(value, Expression::build(|b| quotient(b, stored)))?;
    let [exponentials, inverses, sum] = operands[..] else { return None };
    along(sum, ReduceFunction::Sum)?;
    let is_own = map(inverses, Expression::build(inverse))? == [sum];
    let Op::Gather(Gather { axis: 0 }) = &graph.node(exponentials.node).op else { return None };
    let [table, places] = graph.operands(exponentials.node)[..] else { return None };
    let falls = graph.constant(table)?.to_tensor().to_integers();
    let falls = falls.windows(2).all(|pair| pair[0] >= pair[1]) && falls.last().is_some_and(|&least| least >= 0);
    let distances = map(places, Expression::build(|b| place(b, 0)))?;
    let [largest, x] = map(*distances.first()?, Expression::build(distance))?[..] else { return None };
    (is_own && falls && along(largest, ReduceFunction::Maximum)? == x).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{Generator, TensorType, evaluate};

    #[test]
    fn softmax_of_integers_keeps_the_order_and_is_known_again() {
        for (dtype, scale, beta) in [(DType::I8, 0.05, 1.0), (DType::U8, 0.5, 1.0), (DType::I8, 4.0, 0.25)] {
            let mut builder = Builder::new("g");
            builder.compute_constants();
            let x = builder.input("x", TensorType::new(dtype, [16, 9]));
            let scaled = Scaled { integers: x, scale, zero_point: 0 };
            let y = builder.softmax_of_integers(scaled, 1, beta, Stored::of(dtype, 0)).unwrap();
            builder.output("y", y);
            let graph = builder.finish();
            let y = graph.outputs()[0].value;
            assert_eq!(operand_of_softmax(&graph, y, 1), Some(graph.inputs()[0].into()));
            assert_eq!(operand_of_softmax(&graph, y, 0), None);
            let x = Generator::new(3).tensor(&TensorType::new(dtype, [16, 9]));
            let y = evaluate(&graph, std::slice::from_ref(&x)).unwrap()[0].to_integers();
            for (x, y) in x.to_integers().chunks(9).zip(y.chunks(9)) {
                let pairs = (0..9).flat_map(|a| (0..9).map(move |b| (a, b)));
                assert!(pairs.into_iter().all(|(a, b)| x[a] < x[b] || y[a] >= y[b]), "{x:?} {y:?}");
            }
        }
    }
}
