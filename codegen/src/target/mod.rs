//! [`Target`]: what the code generator must know of a machine, as data.

mod embedded;
mod levels;
mod linux;
mod machine;
mod object_format;
mod processor;
mod tools;
mod tuning;

pub use machine::{Cache, Instructions, LINE_BYTES, Library, Machine, Overlap, ThreadCost};
pub use object_format::ObjectFormat;
pub use processor::ProcessorBits;
pub use tools::{System, Tools};
pub use tuning::{StepCost, Tuning, WinogradCost};

use mlc_ir::Objective;
use serde::{Deserialize, Serialize};

/// How vectors are spelled in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorSpelling {
    /// No vectors: strict C99.
    None,
    /// GNU vector types, `__attribute__((vector_size(n)))`, of gcc and clang.
    Gnu,
    /// Two texts of a kernel, between which the C compiler chooses by what it says of the machine: of GNU vector types of 16 bytes, for
    /// `f32`, and strict C99 of single values.
    Either,
    /// The same types with Arm's intrinsics of `arm_mve.h` where C compilers don't find the instruction: for `f32` and what is
    /// made of sums, products and comparisons.
    Mve,
}

/// Instructions of vectors that add products of bytes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ByteDots {
    /// None.
    #[default]
    None,
    /// Two products of 16 bits, and of four bytes in two steps: `pmaddwd` of x86, `i32x4.dot_i16x8_s` of WebAssembly.
    Pairs,
    /// Four products of an unsigned and a signed byte: `vpdpbusd` of AVX-VNNI and AVX512-VNNI.
    Quads,
    /// Four products of signed bytes: `sdot` of Armv8.2.
    SignedQuads,
    /// Four products of signed bytes in three steps of NEON: `smull` and `smlal` of bytes to 16 bits, and `sadalp`, which adds neighbours
    /// of these to 32 bits. Every second lane has its two pairs of weights in the other order.
    SwappedQuads,
}

impl ByteDots {
    /// Whether they are Arm's, which multiply signed bytes.
    pub fn is_arm(self) -> bool {
        matches!(self, ByteDots::SignedQuads | ByteDots::SwappedQuads)
    }

    /// Whether products of two numbers of 16 bits take less time than those of all the bytes that are added at once.
    pub fn has_quick_words(self) -> bool {
        matches!(self, ByteDots::Pairs | ByteDots::SwappedQuads)
    }

    /// Whether each lane has bytes of its own on both sides, in one order.
    pub fn has_own_words(self) -> bool {
        !matches!(self, ByteDots::None | ByteDots::SwappedQuads)
    }
}

/// General registers of a machine of 16, beside pointers and counters.
const FEW_GENERAL_REGISTERS: usize = 10;

/// Of the 31 general registers of RISC-V, those that aren't pointers or counters of a tile's loops.
const MANY_GENERAL_REGISTERS: usize = 24;

/// How closely generated code keeps to the model's floating-point operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloatingPoint {
    /// Operation by operation: every sum in the order of its elements, every step rounded to its type, transcendental
    /// functions of the C library, and no contraction to multiply-adds.
    Strict,
    /// Rounded otherwise where that is faster: sums in several parts, polynomials, multiply-adds, products by reciprocals.
    #[default]
    Fast,
}

impl FloatingPoint {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            FloatingPoint::Strict => "strict",
            FloatingPoint::Fast => "fast",
        }
    }
}

/// Sizes of a microcontroller's memories in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memories {
    /// Memory that programs and constants lie in.
    pub flash_bytes: usize,
    /// Memory that can be written.
    pub ram_bytes: usize,
}

/// Where the zero borders of convolutions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Borders {
    /// In the arena, around the operand, so that no tile differs from another.
    Memory,
    /// Nowhere: taps that would meet the border are left out. Takes less memory.
    Clipped,
}

/// A machine that C is generated for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// Name on the command line.
    pub name: String,
    /// One line about it.
    pub summary: String,
    /// How vectors are spelled.
    pub vectors: VectorSpelling,
    /// Bytes of a vector register; element size for targets without vectors.
    pub vector_bytes: usize,
    /// Number of vector registers, or of floating-point registers for targets without vectors; where there is no
    /// floating-point unit, of general registers that hold a sum.
    pub registers: usize,
    /// General registers that hold sums of integers and what is multiplied, where these aren't in vectors.
    pub general_registers: usize,
    /// Whether the machine has instructions for `f32`; without them, a multiply-add takes a hundred instructions and more.
    pub float_unit: bool,
    /// Whether it has instructions for two products of 16 bits at once: Arm's DSP extension.
    pub dsp: bool,
    /// Whether it has instructions that make singles of either of two halves in a floating-point register: Arm's `vcvtb` and `vcvtt`.
    pub half_pairs: bool,
    /// Whether its vectors compute with halves.
    pub half_vectors: bool,
    /// Whether one product of 32 bits is the fastest way to two of bytes: its multiplier takes one cycle, and it has nothing wider.
    pub pixel_pairs: bool,
    /// Whether its general registers have 64 bits and sums of integers are in them: one product of these is two pixels' of bytes.
    pub wide_registers: bool,
    /// Which instructions its vectors have for sums of products of bytes.
    pub byte_dots: ByteDots,
    /// Whether instructions on vectors take one of them from memory, and registers are few: gcc, tuned for some of these machines, reads a
    /// vector that several products take for each of them, and loads take longer than products then.
    pub memory_operands: bool,
    /// Alignment of buffers in bytes.
    pub alignment: usize,
    /// Where the zero borders of convolutions are.
    pub borders: Borders,
    /// Whether borders of bytes are in bands, rows that a kernel copies for itself, where its routines gather what they read; otherwise in the
    /// arena. Not a property of the machine: lowering looks at both where memory counts.
    pub bands: bool,
    /// Whether it runs one instruction after the other, so that each counts; other machines load while they compute.
    pub in_order: bool,
    /// What its instructions and memory cost.
    #[serde(skip)]
    pub machine: Machine,
    /// Options that the generated Makefile gives the C compiler.
    pub c_flags: Vec<String>,
    /// Those of them that code has only where it needn't keep to each floating-point operation.
    pub fast_flags: Vec<String>,
    /// The programs that make machine code for it; `None` when they are this machine's.
    pub tools: Option<Tools>,
    /// The targets of which code for this one has kernels each, and takes those of the last that the machine has; of this one's data, only
    /// what isn't about kernels counts then. None of a machine that is one.
    #[serde(serialize_with = "levels::by_names", skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Target>,
    /// How code knows that it runs on such a machine, if it can be one of several levels.
    #[serde(skip)]
    pub processor: Option<ProcessorBits>,
    /// Memories of a usual part, for the user to know; nothing is held to them unless `--ram` or `--flash` says so.
    pub memories: Option<Memories>,
    /// How closely its code keeps to the model's operations; not a property of the machine, but of the code for it.
    #[serde(skip)]
    pub floating_point: FloatingPoint,
    /// What its code is made for; until the user says it, what suits the machine.
    #[serde(skip)]
    pub objective: Objective,
}

impl Target {
    /// Strict C99 for any machine.
    pub fn generic() -> Target {
        Target {
            name: "generic".into(),
            summary: "strict C99 for any machine, and vectors where the C compiler has them".into(),
            vectors: VectorSpelling::Either,
            vector_bytes: 16,
            registers: 16,
            general_registers: FEW_GENERAL_REGISTERS,
            float_unit: true,
            dsp: false,
            half_pairs: false,
            half_vectors: false,
            pixel_pairs: false,
            wide_registers: false,
            byte_dots: ByteDots::None,
            memory_operands: false,
            alignment: 16,
            borders: Borders::Clipped,
            bands: false,
            in_order: false,
            // Prices of an x86-64 processor decide little for any other one.
            machine: Machine { trust_of_saving: None, trust_of_saved_bytes: None, ..Machine::host() },
            c_flags: ["-std=c99", "-O3", "-ffp-contract=fast"].map(String::from).to_vec(),
            fast_flags: Vec::new(),
            tools: None,
            levels: Vec::new(),
            processor: None,
            memories: None,
            floating_point: FloatingPoint::Fast,
            objective: Objective::Speed,
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
            general_registers: FEW_GENERAL_REGISTERS,
            float_unit: true,
            dsp: false,
            half_pairs: false,
            half_vectors: false,
            pixel_pairs: false,
            wide_registers: false,
            byte_dots: ByteDots::None,
            memory_operands: vector_bytes == 32 && cfg!(target_arch = "x86_64"),
            alignment: 64,
            borders: Borders::Memory,
            bands: false,
            in_order: false,
            machine: Machine { tuning: Tuning::host().for_vectors(vector_bytes), ..Machine::host() },
            c_flags: ["-std=gnu99", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno"]
                .map(String::from)
                .to_vec(),
            fast_flags: Vec::new(),
            tools: None,
            levels: Vec::new(),
            processor: None,
            memories: None,
            floating_point: FloatingPoint::Fast,
            objective: Objective::Speed,
        }
    }

    /// The same machine with instructions for sums of products of bytes.
    pub fn with_byte_dots(self, byte_dots: ByteDots) -> Target {
        Target { byte_dots, ..self }
    }

    /// The same machine, whose vectors compute with halves or don't.
    pub fn with_half_vectors(self, half_vectors: bool) -> Target {
        Target { half_vectors, ..self }
    }

    /// The same machine with code that keeps to floating-point operations as closely as asked for.
    pub fn with_floating_point(mut self, floating_point: FloatingPoint) -> Target {
        self.floating_point = floating_point;
        let contract = if floating_point == FloatingPoint::Strict { "off" } else { "fast" };
        for flag in self.c_flags.iter_mut().filter(|flag| flag.starts_with("-ffp-contract=")) {
            *flag = format!("-ffp-contract={contract}");
        }
        self.c_flags.retain(|flag| !self.fast_flags.contains(flag));
        if floating_point == FloatingPoint::Fast {
            self.c_flags.extend(self.fast_flags.iter().cloned());
        }
        self.levels = self.levels.into_iter().map(|level| level.with_floating_point(floating_point)).collect();
        self
    }

    /// The same machine with code that is made for something.
    pub fn with_objective(mut self, objective: Objective) -> Target {
        self.objective = objective;
        let level = if objective == Objective::Size { "-Os" } else { "-O3" };
        for flag in self.c_flags.iter_mut().filter(|flag| flag.starts_with("-O")) {
            *flag = level.to_owned();
        }
        self.levels = self.levels.into_iter().map(|level| level.with_objective(objective)).collect();
        self
    }

    /// Its object files; `None` where the target doesn't say a machine, or mlc doesn't know its format.
    pub fn object_format(&self) -> Option<ObjectFormat> {
        ObjectFormat::of(&self.name, self.tools.as_ref(), self.float_unit)
    }

    /// Whether code for it may be compiled for x86: it is made for that, or for any machine.
    pub fn may_be_x86(&self) -> bool {
        let is_x86 = |format: ObjectFormat| format.architecture == object::Architecture::X86_64;
        self.tools.is_none() && self.object_format().is_none_or(is_x86)
    }

    /// Whether all machines that code for it runs on keep the lowest byte of a number first; code says so to C compilers of others.
    pub fn is_little_endian(&self) -> bool {
        self.vectors != VectorSpelling::Either
    }

    /// Whether its C compilers know more than C99.
    pub fn has_extensions(&self) -> bool {
        self.c_flags.iter().any(|flag| flag.starts_with("-std=gnu"))
    }

    /// Whether memory is copied by a routine of our own: where one instruction runs after the other, C libraries are made to be small.
    pub fn copies_by_routine(&self) -> bool {
        self.machine.overlap == Overlap::None && self.has_extensions()
    }

    /// Whether rings of rows slide through some more memory than they take, so that they are moved less often: what a cache holds more is
    /// cheaper there than copies.
    pub fn rings_slide(&self) -> bool {
        !self.machine.caches.is_empty() && matches!(self.objective, Objective::Speed | Objective::Balanced)
    }

    /// Whether kernels stay functions of their own: C compilers move what doesn't change out of the loops around a kernel that they have
    /// put into its caller, and there are no registers to hold that while sums take all of them. A call takes less than one turn of what it saves.
    pub fn keeps_kernels_apart(&self) -> bool {
        self.has_extensions()
    }

    /// Whether sums keep their order and steps are rounded one by one.
    pub fn is_strict(&self) -> bool {
        self.floating_point == FloatingPoint::Strict
    }

    /// Lanes of a vector of elements of `size` bytes; 1 for targets without vectors.
    pub fn lanes(&self, size: usize) -> usize {
        match self.vectors {
            VectorSpelling::None => 1,
            VectorSpelling::Gnu => (self.vector_bytes / size).max(1),
            VectorSpelling::Either | VectorSpelling::Mve => {
                if size == 4 {
                    self.vector_bytes / size
                } else {
                    1
                }
            }
        }
    }
}
