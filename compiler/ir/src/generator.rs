//! [`Generator`]: seeded random numbers for samples of operators, rules and graphs. The same seed gives the same numbers everywhere.

use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType};

/// A small deterministic generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Generator {
    state: u64,
}

impl Generator {
    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Generator { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `low..=high`.
    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + (self.bits() % (high.saturating_sub(low) as u64 + 1)) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.range(1, n.max(1)) == 1
    }

    /// One of the choices. Precondition: there is one.
    pub fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.range(0, choices.len() - 1)].clone()
    }

    /// A file with some of its bytes changed, and often with its end cut off: what readers of files must survive.
    pub fn damaged(&mut self, file: &[u8]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for _ in 0..self.range(1, 4) {
            if let Some(last) = bytes.len().checked_sub(1) {
                bytes[self.range(0, last)] = self.bits() as u8;
            }
        }
        if self.one_in(8) {
            bytes.truncate(self.range(0, bytes.len()));
        }
        bytes
    }

    /// A double in -1..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A small extent; 1 is common.
    pub fn extent(&mut self) -> usize {
        self.choose(&[1, 1, 2, 3, 4, 5, 7, 8])
    }

    /// A shape of a rank in the range, of small extents.
    pub fn shape(&mut self, low_rank: usize, high_rank: usize) -> Shape {
        let rank = self.range(low_rank, high_rank);
        (0..rank).map(|_| self.extent()).collect()
    }

    /// A shape that broadcasts to the given one.
    pub fn broadcastable(&mut self, shape: &[usize]) -> Shape {
        let skipped = if self.one_in(3) { self.range(0, shape.len()) } else { 0 };
        shape[skipped..].iter().map(|&extent| if self.one_in(4) { 1 } else { extent }).collect()
    }

    /// One or more axes of a tensor of this rank, ascending. Precondition: the rank isn't 0.
    pub fn axes(&mut self, rank: usize) -> Vec<usize> {
        let sure = self.range(0, rank - 1);
        (0..rank).filter(|&axis| axis == sure || self.one_in(3)).collect()
    }

    /// A data type for operators that only move elements: mostly f32.
    pub fn movement_dtype(&mut self) -> DType {
        if self.one_in(8) { DType::Bool } else { self.number_dtype() }
    }

    /// A floating-point type: mostly f32.
    pub fn float_dtype(&mut self) -> DType {
        use DType::{Bf16, F16, F32, F64};
        self.choose(&[F32, F32, F32, F32, F32, F32, F64, F16, Bf16])
    }

    /// An integer type.
    pub fn integer_dtype(&mut self) -> DType {
        use DType::{I8, I16, I32, I64, U8, U16, U32, U64};
        self.choose(&[I8, U8, I16, U16, I32, U32, I64, U64])
    }

    /// Any type but bool: mostly f32.
    pub fn number_dtype(&mut self) -> DType {
        if self.one_in(3) { self.integer_dtype() } else { self.float_dtype() }
    }

    /// Random values that suit a type: floats in -2..2, small integers.
    pub fn tensor(&mut self, ty: &TensorType) -> Tensor {
        let elements = ty.elements();
        if ty.dtype.is_float() {
            let values = (0..elements).map(|_| self.unit() * 2.0).collect();
            return Tensor::from_floats(ty.clone(), values);
        }
        let low = if ty.dtype.is_signed() { -5 } else { 0 };
        let high = if ty.dtype == DType::Bool { 1 } else { 9 };
        let values = (0..elements).map(|_| self.range(0, (high - low) as usize) as i64 + low).collect();
        Tensor::from_integers(ty.clone(), values)
    }
}
