//! [`ProcessorBits`]: how code finds out what machine it runs on.

use serde::Serialize;

/// Bits of what an x86-64 processor says of itself by the instruction `cpuid`, and of the registers that the operating system keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ProcessorBits {
    /// Of the third register of leaf 1.
    pub features: u32,
    /// Of the second register of leaf 7.
    pub more_features: u32,
    /// Of the third register of leaf 0x80000001.
    pub extended_features: u32,
    /// Of the control register that says which registers are kept from one process to the next.
    pub kept_registers: u32,
}

/// A number with some bits.
const fn bits<const N: usize>(positions: [u32; N]) -> u32 {
    let (mut bits, mut k) = (0, 0);
    while k < N {
        bits |= 1 << positions[k];
        k += 1;
    }
    bits
}

impl ProcessorBits {
    /// x86-64-v2 of the System V ABI: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2 and POPCNT; LAHF.
    pub(super) const X86_64_V2: ProcessorBits = ProcessorBits {
        features: bits([0, 9, 13, 19, 20, 23]),
        more_features: 0,
        extended_features: bits([0]),
        kept_registers: 0,
    };

    /// x86-64-v3: FMA, MOVBE, OSXSAVE, AVX and F16C; BMI1, AVX2 and BMI2; LZCNT; registers of 16 and of 32 bytes.
    pub(super) const X86_64_V3: ProcessorBits = ProcessorBits {
        features: bits([12, 22, 27, 28, 29]),
        more_features: bits([3, 5, 8]),
        extended_features: bits([5]),
        kept_registers: bits([1, 2]),
    };

    /// x86-64-v4: AVX-512 F, DQ, CD, BW and VL; masks, and all registers of 64 bytes.
    pub(super) const X86_64_V4: ProcessorBits = ProcessorBits {
        features: bits([27]),
        more_features: bits([16, 17, 28, 30, 31]),
        extended_features: 0,
        kept_registers: bits([1, 2, 5, 6, 7]),
    };
}
