//! Folds: all elements along the reduced axes of a space combined, in several accumulators so that one sum needn't wait for the
//! other.

use super::KernelWriter;
use super::space::fitting_lanes;
use crate::loops::{Expr, Index, Nest, Var};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// Accumulators that a fold keeps going.
const ACCUMULATORS: usize = 4;
const AXIS_NAMES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];

/// What combines elements, and from what on.
#[derive(Debug, Clone, Copy)]
pub struct Fold {
    /// Name of the accumulators in C.
    pub name: &'static str,
    /// An associative and commutative function.
    pub function: BinaryFunction,
    /// Its neutral element.
    pub start: Literal,
}

impl Fold {
    /// A sum of values of a type.
    pub fn sum(dtype: DType) -> Fold {
        Fold { name: "sum", function: BinaryFunction::Add, start: Literal::of(dtype, 0.0) }
    }

    /// The largest value of a type; NaN wins.
    pub fn largest(dtype: DType) -> Fold {
        let start = if dtype.is_float() {
            Literal::float(dtype, f64::NEG_INFINITY)
        } else {
            Literal::integer(dtype, lowest(dtype))
        };
        Fold { name: "largest", function: BinaryFunction::Maximum, start }
    }

    /// The smallest value of a type; NaN wins.
    pub fn smallest(dtype: DType) -> Fold {
        let start = if dtype.is_float() {
            Literal::float(dtype, f64::INFINITY)
        } else {
            Literal::integer(dtype, !lowest(dtype))
        };
        Fold { name: "smallest", function: BinaryFunction::Minimum, start }
    }

    /// Whether it says if all elements, or any, are true.
    pub fn is_of_truth(&self) -> bool {
        matches!(self.function, BinaryFunction::And | BinaryFunction::Or)
    }

    /// Whether the result depends on the order of the elements, and the code must keep it.
    fn is_ordered(&self, kernel: &KernelWriter<'_>) -> bool {
        let rounds = matches!(self.function, BinaryFunction::Add | BinaryFunction::Multiply);
        kernel.target.is_strict() && rounds && self.start.dtype().is_float()
    }

    fn accumulator(&self, kernel: &mut KernelWriter<'_>, lanes: usize) -> Var {
        let start = Expr::Literal(self.start);
        let start = if lanes == 1 { start } else { Expr::Splat(Box::new(start), lanes) };
        kernel.b.mutable(self.name, start)
    }

    fn add(&self, kernel: &mut KernelWriter<'_>, accumulator: Var, value: Expr) {
        kernel.b.assign(accumulator, Expr::binary(self.function, Expr::Var(accumulator), value));
    }

    fn combined(&self, values: Vec<Expr>) -> Option<Expr> {
        values.into_iter().reduce(|left, right| Expr::binary(self.function, left, right))
    }

    /// Combines `element(indices, k)` over a shape, for each k below `vectors`: values of `lanes` lanes.
    pub fn across(
        &self,
        kernel: &mut KernelWriter<'_>,
        shape: &[usize],
        vectors: usize,
        lanes: usize,
        element: &dyn Fn(&mut KernelWriter<'_>, &[Index], usize) -> Expr,
    ) -> Vec<Expr> {
        let Some((&last, outer)) = shape.split_last() else {
            return (0..vectors).map(|vector| element(kernel, &[], vector)).collect();
        };
        let several = self.start.dtype().is_float() && !self.is_ordered(kernel);
        let unrolled = if several { (ACCUMULATORS / vectors).clamp(1, last.max(1)) } else { 1 };
        let accumulators: Vec<Vec<Var>> =
            (0..vectors).map(|_| (0..unrolled).map(|_| self.accumulator(kernel, lanes)).collect()).collect();
        kernel.for_shape(&AXIS_NAMES, outer, &mut |kernel, indices| {
            let full = last / unrolled * unrolled;
            let step = |kernel: &mut KernelWriter<'_>, index: &Index, count: usize| {
                for turn in 0..count {
                    let indices: Vec<Index> = indices.iter().cloned().chain([index.offset(turn as i64)]).collect();
                    for (vector, own) in accumulators.iter().enumerate() {
                        let value = element(kernel, &indices, vector);
                        self.add(kernel, own[turn], value);
                    }
                }
            };
            kernel.for_range("r", Index::default(), Index::from(full), unrolled as i64, |kernel, index| {
                step(kernel, &index, unrolled);
            });
            step(kernel, &Index::from(full), last - full);
        });
        let combine = |own: Vec<Var>| self.combined(own.into_iter().map(Expr::Var).collect());
        accumulators.into_iter().filter_map(combine).collect()
    }

    /// Combines `element(indices)` over a small shape without a loop.
    pub fn written_out(
        &self,
        kernel: &mut KernelWriter<'_>,
        counts: &[i64],
        lanes: usize,
        element: &dyn Fn(&mut KernelWriter<'_>, &[Index]) -> Expr,
    ) -> Expr {
        let mut positions: Vec<Vec<Index>> = vec![Vec::new()];
        for &count in counts {
            let longer = |position: Vec<Index>| {
                (0..count).map(move |index| position.iter().cloned().chain([Index::from(index)]).collect::<Vec<_>>())
            };
            positions = positions.into_iter().flat_map(longer).collect();
        }
        let Some((first, rest)) = positions.split_first() else {
            return Expr::Var(self.accumulator(kernel, lanes));
        };
        let first = element(kernel, first);
        if rest.is_empty() {
            return first;
        }
        let accumulator = kernel.b.mutable(self.name, first);
        for position in rest {
            let value = element(kernel, position);
            self.add(kernel, accumulator, value);
        }
        Expr::Var(accumulator)
    }

    /// Combines `element(indices, k)` over a shape whose extents are computed, for each k below `vectors`.
    pub fn counted(
        &self,
        kernel: &mut KernelWriter<'_>,
        names: &[&str],
        counts: &[Index],
        vectors: usize,
        lanes: usize,
        element: &dyn Fn(&mut KernelWriter<'_>, &[Index], usize) -> Expr,
    ) -> Vec<Expr> {
        let accumulators: Vec<Var> = (0..vectors).map(|_| self.accumulator(kernel, lanes)).collect();
        self.counted_level(kernel, names, counts, &mut Vec::new(), &mut |kernel, indices| {
            for (vector, &accumulator) in accumulators.iter().enumerate() {
                let value = element(kernel, indices, vector);
                self.add(kernel, accumulator, value);
            }
        });
        accumulators.into_iter().map(Expr::Var).collect()
    }

    fn counted_level(
        &self,
        kernel: &mut KernelWriter<'_>,
        names: &[&str],
        counts: &[Index],
        indices: &mut Vec<Index>,
        body: &mut dyn FnMut(&mut KernelWriter<'_>, &[Index]),
    ) {
        let axis = indices.len();
        let Some(count) = counts.get(axis) else { return body(kernel, indices) };
        let name = names.get(axis).copied().unwrap_or("k");
        kernel.for_range(name, Index::default(), count.clone(), 1, |kernel, index| {
            indices.push(index);
            self.counted_level(kernel, names, counts, indices, body);
            indices.pop();
        });
    }

    /// Combines `element(indices, lanes)` over a shape whose last axis is walked in vectors of at most `lanes` lanes.
    pub fn along(
        &self,
        kernel: &mut KernelWriter<'_>,
        shape: &[usize],
        lanes: usize,
        element: &dyn Fn(&mut KernelWriter<'_>, &[Index], usize) -> Expr,
    ) -> Expr {
        let last = shape.last().copied().unwrap_or(1);
        let lanes = fitting_lanes(last, lanes, self.start.dtype());
        if lanes == 1 || self.is_ordered(kernel) {
            let values = self.across(kernel, shape, 1, 1, &|kernel, indices, _| element(kernel, indices, 1));
            return self.combined(values).unwrap_or(Expr::Literal(self.start));
        }
        let outer = &shape[..shape.len() - 1];
        let unrolled = (last / lanes).min(ACCUMULATORS);
        let block = unrolled * lanes;
        let (full, vectors) = (last / block * block, last / lanes * lanes);
        let accumulators: Vec<Var> = (0..unrolled).map(|_| self.accumulator(kernel, lanes)).collect();
        let rest = (vectors < last).then(|| self.accumulator(kernel, 1));
        kernel.for_shape(&AXIS_NAMES, outer, &mut |kernel, indices| {
            let at = |index: Index| indices.iter().cloned().chain([index]).collect::<Vec<_>>();
            let step = |kernel: &mut KernelWriter<'_>, index: &Index, count: usize| {
                for (turn, &accumulator) in accumulators[..count].iter().enumerate() {
                    let value = element(kernel, &at(index.offset((turn * lanes) as i64)), lanes);
                    self.add(kernel, accumulator, value);
                }
            };
            kernel.for_range("r", Index::default(), Index::from(full), block as i64, |kernel, index| {
                step(kernel, &index, unrolled);
            });
            step(kernel, &Index::from(full), (vectors - full) / lanes);
            if let Some(rest) = rest {
                kernel.for_range("r", Index::from(vectors), Index::from(last), 1, |kernel, index| {
                    let value = element(kernel, &at(index), 1);
                    self.add(kernel, rest, value);
                });
            }
        });
        let vector = self.combined(accumulators.into_iter().map(Expr::Var).collect());
        let folded = vector.map(|vector| Expr::Fold(self.function, Box::new(vector)));
        let values = folded.into_iter().chain(rest.map(Expr::Var)).collect();
        self.combined(values).unwrap_or(Expr::Literal(self.start))
    }
}

/// The smallest value of an integer type.
fn lowest(dtype: DType) -> i64 {
    if dtype.is_signed() { i64::MIN >> (64 - 8 * dtype.size()) } else { 0 }
}
