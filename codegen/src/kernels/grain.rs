//! What the words hold that vectors of sums are made of ([`super::vector_quads`]): how many products of a lane there are at once.

use super::KernelWriter;
use crate::loops::{Expr, Index, ValueType, Var};
use crate::target::ByteDots;
use mlc_ir::DType;

/// Bytes of a word.
pub const QUAD: usize = 4;

/// Where the words of four lanes go.
pub type Order = fn(&[i64]) -> [i64; QUAD];

/// What a word holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// Four bytes.
    Quads,
    /// Two numbers of 16 bits that bytes have become, and those that weights become as they are loaded.
    Pairs,
    /// Two numbers of 16 bits that x and weights have already.
    Words,
}

impl Grain {
    /// What the machine multiplies at once.
    pub fn of(kernel: &KernelWriter<'_>) -> Grain {
        if kernel.target.byte_dots == ByteDots::Pairs { Grain::Pairs } else { Grain::Quads }
    }

    /// How the words of weights lie that four lanes have, if not one after the other.
    pub fn order(self, dots: ByteDots) -> Option<Order> {
        match self {
            Grain::Quads if dots == ByteDots::SwappedQuads => Some(swapped),
            Grain::Words if dots.is_arm() => Some(apart),
            Grain::Quads | Grain::Pairs | Grain::Words => None,
        }
    }

    /// Products of a lane.
    pub fn count(self) -> usize {
        match self {
            Grain::Quads => QUAD,
            Grain::Pairs | Grain::Words => 2,
        }
    }

    /// The type in which weights are stored, and how many of it are those of a lane.
    pub fn weights(self) -> (DType, usize) {
        match self {
            Grain::Quads | Grain::Words => (DType::I32, 1),
            Grain::Pairs => (DType::I8, self.count()),
        }
    }

    /// What the memory is called, and of which type its elements are, that bytes of a type are copied to.
    pub fn copied(self, dtype: DType) -> (&'static str, DType) {
        match self {
            Grain::Quads => ("bytes", dtype),
            Grain::Pairs | Grain::Words => ("wide", DType::I16),
        }
    }

    /// A word of what is copied.
    pub fn word(self, pointer: Var, index: Index) -> Expr {
        match self {
            Grain::Quads => Expr::Quad { pointer, index },
            Grain::Pairs | Grain::Words => Expr::Pair { pointer, index },
        }
    }

    /// Weights of some lanes, the first of which is behind as many words as the index says.
    pub fn load(self, kernel: &mut KernelWriter<'_>, pointer: Var, index: &Index, lanes: usize) -> Expr {
        let ty = ValueType::vector(DType::I32, lanes);
        let index = index.times(self.weights().1 as i64);
        match self {
            Grain::Quads | Grain::Words => kernel.shared("w", Expr::Load { pointer, index, ty }),
            Grain::Pairs => kernel.b.define("w", Expr::WidePairs { pointer, index, lanes }),
        }
    }

    /// A sum and the products of a word, the same in all lanes, with those of weights.
    pub fn dot(self, sum: Var, word: Expr, weights: Expr, lanes: usize) -> Expr {
        let children = Box::new([Expr::Var(sum), Expr::Splat(Box::new(word), lanes), weights]);
        match self {
            Grain::Quads => Expr::QuadDot(children),
            Grain::Pairs | Grain::Words => Expr::Dot(children),
        }
    }
}

/// The words of four lanes as machines take them that add the products of a lane's first and second pair of bytes before those of
/// neighbours: all first pairs, then all second ones, of every second lane the other way round, so that x only has to be turned by a pair.
fn swapped(words: &[i64]) -> [i64; QUAD] {
    by_halves(words, true)
}

/// The words of four lanes as Arm takes pairs: the first numbers of all lanes, then the second ones.
fn apart(words: &[i64]) -> [i64; QUAD] {
    by_halves(words, false)
}

/// The lower halves of four words, then their upper ones; of every second word the other way round if it is `turned`.
fn by_halves(words: &[i64], turned: bool) -> [i64; QUAD] {
    let half = |lane: usize, upper: bool| words[lane] >> (16 * i64::from(upper)) & 0xffff;
    std::array::from_fn(|place| {
        let (upper, even) = (place / 2 == 1, place % 2 * 2);
        i64::from((half(even, upper) | half(even + 1, upper != turned) << 16) as i32)
    })
}

/// Up to four bytes as a word, the first in its lowest bits.
pub fn quad(bytes: &[i8]) -> i64 {
    let mut word = [0; QUAD];
    word.iter_mut().zip(bytes).for_each(|(place, &byte)| *place = byte as u8);
    i32::from_le_bytes(word).into()
}

/// Two numbers of 16 bits as a word, the first in its lower half.
pub fn pair([low, high]: [i16; 2]) -> i64 {
    i32::from(low as u16).wrapping_add(i32::from(high) << 16).into()
}
