//! A checksum that is the same on every machine and in every version.

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
        self.0 = bytes.iter().fold(self.0, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }

    /// The checksum so far.
    pub fn sum(self) -> u64 {
        self.0
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
}
