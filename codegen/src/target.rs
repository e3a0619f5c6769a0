//! [`Target`]: what the code generator must know of a machine, as data.

use serde::Serialize;

/// How vectors are spelled in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorSpelling {
    /// No vectors: strict C99.
    None,
    /// GNU vector types, `__attribute__((vector_size(n)))`, of gcc and clang.
    Gnu,
}

/// A machine that C is generated for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Name on the command line.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// How vectors are spelled.
    pub vectors: VectorSpelling,
    /// Bytes of a vector register; element size for targets without vectors.
    pub vector_bytes: usize,
    /// Number of vector registers, or of floating-point registers for targets without vectors.
    pub registers: usize,
    /// Alignment of buffers in bytes.
    pub alignment: usize,
    /// Options that the generated Makefile gives the C compiler.
    pub c_flags: Vec<String>,
}

impl Target {
    /// Strict C99 for any machine.
    pub fn generic() -> Target {
        Target {
            name: "generic".into(),
            summary: "strict C99 without extensions, for any machine".into(),
            vectors: VectorSpelling::None,
            vector_bytes: 4,
            registers: 16,
            alignment: 16,
            c_flags: ["-std=c99", "-O3", "-ffp-contract=fast"].map(String::from).to_vec(),
        }
    }

    /// The machine that mlc runs on, by the width of its vectors in bytes (16, 32 or 64) as the driver detected it.
    pub fn host(vector_bytes: usize) -> Target {
        Target {
            name: "host".into(),
            summary: format!("this machine: GNU vector types of {vector_bytes} bytes"),
            vectors: VectorSpelling::Gnu,
            vector_bytes,
            registers: if vector_bytes >= 64 || cfg!(target_arch = "aarch64") { 32 } else { 16 },
            alignment: 64,
            c_flags: ["-std=gnu99", "-O3", "-march=native", "-ffp-contract=fast"].map(String::from).to_vec(),
        }
    }

    /// Lanes of a vector of elements of `size` bytes; 1 for targets without vectors.
    pub fn lanes(&self, size: usize) -> usize {
        match self.vectors {
            VectorSpelling::None => 1,
            VectorSpelling::Gnu => (self.vector_bytes / size).max(1),
        }
    }
}
