//! [`Ceilings`]: what a machine can do at most, for the roofline of Williams, Waterman and Patterson (Communications of the ACM 52(4), 2009).

use crate::target::{ByteDots, Overlap, Target, VectorSpelling};
use mlc_ir::DType;
use serde::Serialize;

/// The most that a machine does in a unit of its prices: a cycle, or an executed instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceilings {
    /// Products that are added up.
    pub multiply_adds: f64,
    /// Bytes that come from each place: the registers' own memory, then what is behind each cache.
    pub bytes: Vec<(String, f64)>,
}

impl Ceilings {
    /// Those of a target for products of a type, by the costs that its prices are made of.
    pub fn of(target: &Target, dtype: DType) -> Ceilings {
        let machine = &target.machine;
        let each = &machine.instructions;
        let lanes = (target.vector_bytes / 4).max(1) as f64;
        let per_lane = match (dtype.size(), target.vectors, target.byte_dots) {
            (1, VectorSpelling::Mve, _) => 4.0,
            (1, _, ByteDots::Quads | ByteDots::SignedQuads) => 4.0,
            (1, _, ByteDots::SwappedQuads) => 4.0 / 3.0,
            (1 | 2, _, ByteDots::Pairs) => 2.0,
            (1 | 2, ..) if target.dsp => 2.0,
            (2, VectorSpelling::Mve, _) => 2.0,
            _ => 1.0,
        };
        let loaded = target.vector_bytes.max(4) as f64 / each.load;
        let nearest = match machine.overlap {
            Overlap::None => "memory".to_owned(),
            Overlap::Ports { .. } => "nearest cache".to_owned(),
        };
        let caches = machine.caches.iter().map(|cache| (format!("behind {} KiB", cache.bytes >> 10), cache.fill));
        Ceilings {
            multiply_adds: lanes * per_lane / each.multiply_add,
            bytes: std::iter::once((nearest, loaded)).chain(caches).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_vectors_and_small_numbers_raise_the_ceiling() {
        let of = |target: &Target, dtype| Ceilings::of(target, dtype).multiply_adds;
        let (host, generic) = (Target::host(64), Target::generic());
        assert_eq!(of(&host, DType::F32), 32.0);
        assert_eq!(of(&generic, DType::F32), 8.0);
        assert_eq!(of(&host.clone().with_byte_dots(ByteDots::Quads), DType::I8), 4.0 * of(&host, DType::I8));
    }

    #[test]
    fn caches_give_less_the_farther_they_are() {
        let bytes = Ceilings::of(&Target::host(64), DType::F32).bytes;
        assert!(bytes.is_sorted_by(|near, far| near.1 > far.1), "{bytes:?}");
    }
}
