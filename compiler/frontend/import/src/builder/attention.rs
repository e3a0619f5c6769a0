//! Parts of attention layers over [batch, heads, length, features].

use super::Builder;
use mlc_ir::ops::{Matmul, Reduce, ReduceFunction, Softmax};
use mlc_ir::scalar::{BinaryFunction, ExpressionBuilder, ScalarId};
use mlc_ir::{Attribute, DType, OperatorError, Tensor, TensorType, Value};

/// Longest sequence that a mask is made for.
const MOST_PLACES: usize = 1 << 24;

/// Which keys a query may see by their places. Query i stands at place i + offset, key j at place j.
#[derive(Debug, Clone, Copy, Default)]
pub struct Band {
    /// How far before the query a key may be; any distance when absent.
    pub before: Option<usize>,
    /// How far behind the query a key may be; any distance when absent.
    pub behind: Option<usize>,
}

/// Where the queries stand among the keys.
#[derive(Debug, Clone, Copy)]
pub enum Offset {
    /// The place of the first query.
    Fixed(usize),
    /// The place of the first query of each batch, as i64 [batch, 1, 1, 1].
    Computed(Value),
}

impl Builder {
    /// [N, L, heads * E] as [N, heads, L, E].
    ///
    /// # Errors
    /// When the features don't split into so many heads.
    pub fn split_heads(&mut self, x: Value, heads: usize) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let &[batch, length, width] = &shape[..] else {
            return Err(OperatorError::types(format!("{} must have three axes", self.ty(x))));
        };
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(OperatorError::types(format!("{width} features don't split into {heads} heads")));
        }
        let split = self.reshape(x, &[batch, length, heads, width / heads])?;
        self.transpose(split, &[0, 2, 1, 3])
    }

    /// [N, heads, L, E] as [N, L, heads * E].
    ///
    /// # Errors
    /// When it doesn't have four axes.
    pub fn merge_heads(&mut self, x: Value) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let &[batch, heads, length, width] = &shape[..] else {
            return Err(OperatorError::types(format!("{} must have four axes", self.ty(x))));
        };
        let x = self.transpose(x, &[0, 2, 1, 3])?;
        self.reshape(x, &[batch, length, heads * width])
    }

    /// Product of the matrices of left [N, H, L, K] and right [N, G, K, M], or [N, G, M, K] when that is transposed; H / G
    /// consecutive matrices on the left share one on the right. The result is [N, H, L, M].
    ///
    /// # Errors
    /// When the matrices don't fit, or H isn't a multiple of G.
    pub fn grouped_matmul(&mut self, left: Value, right: Value, transpose_right: bool) -> Result<Value, OperatorError> {
        let op = Matmul { transpose_left: false, transpose_right, sums: None };
        let (shape, groups) = (self.shape(left), self.shape(right).get(1).copied());
        let (&[batch, heads, rows, inner], Some(groups)) = (&shape[..], groups) else {
            return Err(OperatorError::types(format!("{} must have four axes", self.ty(left))));
        };
        if heads == groups {
            return self.apply(op, &[left, right]);
        }
        if groups == 0 || !heads.is_multiple_of(groups) {
            return Err(OperatorError::types(format!("{heads} heads can't share those of {groups} groups")));
        }
        let left = self.reshape(left, &[batch, groups, heads / groups, rows, inner])?;
        let right = self.insert_axis(right, 2)?;
        let product = self.apply(op, &[left, right])?;
        let columns = self.shape(product)[4];
        self.reshape(product, &[batch, heads, rows, columns])
    }

    /// The numbers from 0 up as a row or a column of i64.
    fn places(&mut self, shape: [usize; 2]) -> Result<Value, OperatorError> {
        let count = shape[0].max(shape[1]);
        if count > MOST_PLACES {
            return Err(OperatorError::field(format!("{count} places are too many for a mask")));
        }
        let values = (0..count as i64).collect();
        let tensor = Tensor::from_integers(TensorType::new(DType::I64, shape), values);
        Ok(self.constant("places", Attribute::from_tensor(&tensor)))
    }

    /// What to add to scores so that each query sees the keys of a band only: 0 or minus infinity, as [queries, keys], or
    /// [batch, 1, queries, keys] for an offset that is computed.
    ///
    /// # Errors
    /// When the computed offset isn't of i64 with four axes.
    pub fn band_mask(
        &mut self,
        band: Band,
        (queries, keys): (usize, usize),
        offset: Offset,
        dtype: DType,
    ) -> Result<Value, OperatorError> {
        let mut operands = vec![self.places([queries, 1])?, self.places([1, keys])?];
        if let Offset::Computed(offset) = offset {
            operands.push(offset);
        }
        self.map(&operands, |b| {
            let (query, key) = (b.operand(0), b.operand(1));
            let offset = match offset {
                Offset::Fixed(offset) => b.number(DType::I64, offset as f64),
                Offset::Computed(_) => b.operand(2),
            };
            let place = b.binary(BinaryFunction::Add, query, offset);
            let before = band.before.map(|reach| within(b, place, key, reach));
            let behind = band.behind.map(|reach| within(b, key, place, reach));
            let seen = match (before, behind) {
                (Some(before), Some(behind)) => b.binary(BinaryFunction::And, before, behind),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => b.binary(BinaryFunction::Equal, key, key),
            };
            additive(b, seen, dtype, f64::NEG_INFINITY)
        })
    }

    /// Whether each key is among the first of its batch; their numbers are i64 [batch, 1, 1, 1].
    ///
    /// # Errors
    /// When the counts aren't of i64.
    pub fn padding(&mut self, counts: Value, keys: usize) -> Result<Value, OperatorError> {
        let places = self.places([1, keys])?;
        self.binary(BinaryFunction::Less, places, counts)
    }

    /// A bool mask, true where scores stay, as numbers to add: 0 or the given one.
    ///
    /// # Errors
    /// When the mask isn't of bools.
    pub fn additive_mask(&mut self, seen: Value, dtype: DType, hidden: f64) -> Result<Value, OperatorError> {
        self.map(&[seen], |b| {
            let seen = b.operand(0);
            additive(b, seen, dtype, hidden)
        })
    }

    /// Softmax along the last axis of scores to which a mask was added; rows that the mask hides as a whole become 0.
    ///
    /// # Errors
    /// When the scores aren't floats, or have no axis.
    pub fn masked_softmax(&mut self, scores: Value, mask: Value) -> Result<Value, OperatorError> {
        let weights = self.softmax_of_last(scores)?;
        let axis = self.rank(mask).saturating_sub(1);
        let reduce = Reduce { function: ReduceFunction::Maximum, axes: vec![axis], keep_axes: true };
        let largest = self.apply(reduce, &[mask])?;
        let hidden = self.binary_number(BinaryFunction::Equal, largest, f64::NEG_INFINITY)?;
        let none = self
            .graph()
            .constant(hidden)
            .is_some_and(|hidden| hidden.to_tensor().to_integers().iter().all(|&hidden| hidden == 0));
        if none {
            return Ok(weights);
        }
        let zero = self.number(self.dtype(weights), 0.0);
        self.select(hidden, zero, weights)
    }

    /// Softmax along the last axis.
    ///
    /// # Errors
    /// When it isn't of floats, or has no axis.
    pub fn softmax_of_last(&mut self, x: Value) -> Result<Value, OperatorError> {
        let axis = self.rank(x).saturating_sub(1);
        self.apply(Softmax { axis, logarithm: false }, &[x])
    }
}

/// Whether `first` is at most `reach` greater than `second`.
fn within(b: &mut ExpressionBuilder, first: ScalarId, second: ScalarId, reach: usize) -> ScalarId {
    let distance = b.binary(BinaryFunction::Subtract, first, second);
    let reach = b.number(DType::I64, reach as f64);
    b.binary(BinaryFunction::LessEqual, distance, reach)
}

fn additive(b: &mut ExpressionBuilder, seen: ScalarId, dtype: DType, hidden: f64) -> ScalarId {
    let (stay, block) = (b.number(dtype, 0.0), b.number(dtype, hidden));
    b.select(seen, stay, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> Builder {
        let mut builder = Builder::new("test");
        builder.compute_constants();
        builder
    }

    fn floats(builder: &Builder, value: Value) -> Vec<f64> {
        builder.graph().constant(value).unwrap().to_tensor().to_floats()
    }

    #[test]
    fn a_band_hides_what_is_too_far_away() {
        let mut builder = builder();
        let band = Band { before: Some(1), behind: Some(0) };
        let mask = builder.band_mask(band, (2, 4), Offset::Fixed(1), DType::F32).unwrap();
        let hidden = f64::NEG_INFINITY;
        assert_eq!(floats(&builder, mask), [0.0, 0.0, hidden, hidden, hidden, 0.0, 0.0, hidden]);
        let everything = builder.band_mask(Band::default(), (1, 3), Offset::Fixed(0), DType::F32).unwrap();
        assert_eq!(floats(&builder, everything), [0.0; 3]);
        assert!(builder.band_mask(band, (1, MOST_PLACES + 1), Offset::Fixed(0), DType::F32).is_err());
    }

    #[test]
    fn rows_that_a_mask_hides_have_no_weights() {
        let mut builder = builder();
        let mask = Attribute::from_f32(&[2, 2], &[0.0, 0.0, f32::NEG_INFINITY, f32::NEG_INFINITY]).unwrap();
        let mask = builder.constant("mask", mask);
        let weights = builder.masked_softmax(mask, mask).unwrap();
        assert_eq!(floats(&builder, weights), [0.5, 0.5, 0.0, 0.0]);
    }

    #[test]
    fn heads_share_the_matrices_of_their_group() {
        let mut builder = builder();
        let left = builder.constant("left", Attribute::from_f32(&[1, 4, 1, 1], &[1.0, 2.0, 3.0, 4.0]).unwrap());
        let right = builder.constant("right", Attribute::from_f32(&[1, 2, 1, 1], &[10.0, 100.0]).unwrap());
        let product = builder.grouped_matmul(left, right, false).unwrap();
        assert_eq!(floats(&builder, product), [10.0, 20.0, 300.0, 400.0]);
        assert!(builder.grouped_matmul(right, left, false).is_err());
    }
}
