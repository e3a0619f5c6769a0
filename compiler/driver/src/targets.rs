//! The machines that code can be generated for, by name.

use mlc_codegen::Target;

/// All targets, the default first.
pub fn all() -> Vec<Target> {
    let mut targets = vec![Target::host(vector_bytes()), Target::generic()];
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
