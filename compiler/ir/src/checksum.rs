//! A checksum that is the same on every machine and in every version.

use std::ops::Range;

/// FNV-1a of 64 bits, over what it is fed (G. Fowler, L. C. Noll, K.-P. Vo).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.add(byte));
    }

    /// How many are fed together at most.
    pub const TOGETHER: usize = 4;

    /// Adds to each of at most [`Fnv::TOGETHER`] checksums bytes of its own, in less time than one after the other: while a byte waits for the product of the
    /// one before, those of the others are multiplied.
    pub fn feed_together(mut pairs: Vec<(&mut Fnv, &[u8])>) {
        pairs.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
        let mut start = 0;
        while let Some((_, shortest)) = pairs.last() {
            let part = start..shortest.len();
            start = part.end;
            match pairs.len() {
                Fnv::TOGETHER => feed_each::<{ Fnv::TOGETHER }>(&mut pairs, part),
                3 => feed_each::<3>(&mut pairs, part),
                2 => feed_each::<2>(&mut pairs, part),
                _ => pairs.iter_mut().for_each(|(sum, bytes)| sum.feed(&bytes[part.clone()])),
            }
            pairs.pop();
        }
    }

    fn add(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    /// The checksum so far.
    pub fn sum(self) -> u64 {
        self.0
    }
}

/// Adds a part of the bytes of so many to their checksums, which are in registers meanwhile.
fn feed_each<const COUNT: usize>(pairs: &mut [(&mut Fnv, &[u8])], part: Range<usize>) {
    let Some(pairs) = pairs.first_chunk_mut::<COUNT>() else { return };
    let mut sums = pairs.each_ref().map(|(sum, _)| **sum);
    let bytes = pairs.each_ref().map(|(_, bytes)| &bytes[part.clone()]);
    for place in 0..part.len() {
        for (sum, bytes) in sums.iter_mut().zip(bytes) {
            sum.add(bytes[place]);
        }
    }
    for ((sum, _), own) in pairs.iter_mut().zip(sums) {
        **sum = own;
    }
}

#[cfg(test)]
mod tests {
    use super::Fnv;

    #[test]
    fn sums_are_the_published_ones() {
        let sum = |text: &str| {
            let mut sum = Fnv::default();
            sum.feed(text.as_bytes());
            sum.sum()
        };
        assert_eq!(
            [sum(""), sum("a"), sum("foobar")],
            [0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]
        );
    }

    #[test]
    fn sums_of_several_are_those_of_each() {
        let bytes: Vec<u8> = (0..=255).collect();
        for lengths in [&[256, 0, 7, 7][..], &[3, 100, 99], &[1, 2], &[5], &[], &[0, 0, 0, 0]] {
            let mut sums = vec![Fnv::default(); lengths.len()];
            let pairs = sums.iter_mut().zip(lengths).map(|(sum, &length)| (sum, &bytes[256 - length..]));
            Fnv::feed_together(pairs.collect());
            for (sum, &length) in sums.into_iter().zip(lengths) {
                let mut alone = Fnv::default();
                alone.feed(&bytes[256 - length..]);
                assert_eq!(sum, alone, "{lengths:?}");
            }
        }
    }
}
