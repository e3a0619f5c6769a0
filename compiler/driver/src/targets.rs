//! The machines that code can be generated for, by name.

use mlc_codegen::{ByteDots, Target};

/// All targets, the default first.
pub fn all() -> Vec<Target> {
    let host = Target::host(vector_bytes()).with_byte_dots(byte_dots()).with_half_vectors(half_vectors());
    let mut targets = vec![host, Target::generic()];
    targets.extend(Target::embedded());
    targets.extend(Target::computers());
    targets
}

/// The target of a name.
pub fn find(name: &str) -> Option<Target> {
    all().into_iter().find(|target| target.name == name)
}

/// Bytes of this machine's vector registers.
fn vector_bytes() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            return 64;
        }
        if std::arch::is_x86_feature_detected!("avx") {
            return 32;
        }
    }
    16
}

/// Whether this machine's vectors compute with halves.
fn half_vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512fp16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// What this machine's vectors, of [`vector_bytes`], have for sums of products of bytes.
fn byte_dots() -> ByteDots {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let is_wide = has!("avx512f");
        if is_wide && has!("avx512vnni") && has!("avx512vl") || !is_wide && has!("avxvnni") {
            return ByteDots::Quads;
        }
        if is_wide && has!("avx512bw") || !is_wide && has!("avx2") {
            return ByteDots::Pairs;
        }
    }
    #[cfg(target_arch = "aarch64")]
    let least =
        if std::arch::is_aarch64_feature_detected!("dotprod") { ByteDots::SignedQuads } else { ByteDots::SwappedQuads };
    #[cfg(not(target_arch = "aarch64"))]
    let least = ByteDots::None;
    least
}
