//! Machines that run Linux, and WebAssembly, that code can be generated for wherever mlc runs.

use super::{
    Borders, ByteDots, FEW_GENERAL_REGISTERS, FloatingPoint, MANY_GENERAL_REGISTERS, Machine, ProcessorBits, System,
    Target, Tools, VectorSpelling,
};
use mlc_ir::Objective;

/// What sets one of these machines apart from another.
struct Computer {
    name: &'static str,
    summary: &'static str,
    /// Bytes of a vector register; that of an `f32` where there are no vectors.
    vector_bytes: usize,
    registers: usize,
    /// See [`Target::general_registers`].
    general_registers: usize,
    /// See [`Target::wide_registers`].
    wide_registers: bool,
    byte_dots: ByteDots,
    /// See [`Target::memory_operands`].
    memory_operands: bool,
    /// Whether vectors compute with halves.
    half_vectors: bool,
    machine: fn() -> Machine,
    /// Options that choose the machine.
    machine_flags: &'static [&'static str],
    /// Options for code that needn't keep to each floating-point operation.
    fast_flags: &'static [&'static str],
    /// What the names of its compiler and tools start with; empty where they are those of any such machine.
    tool_prefix: &'static str,
    /// Names of the levels that code for it has kernels for.
    levels: &'static [&'static str],
    /// How code knows it, where it is such a level.
    processor: Option<ProcessorBits>,
}

/// A processor of 64 bits with vectors of 16 bytes and 32 registers, which those below differ from.
const COMPUTER: Computer = Computer {
    name: "",
    summary: "",
    vector_bytes: 16,
    registers: 32,
    general_registers: FEW_GENERAL_REGISTERS,
    wide_registers: false,
    byte_dots: ByteDots::None,
    memory_operands: false,
    half_vectors: false,
    machine: Machine::host,
    machine_flags: &[],
    fast_flags: &[],
    tool_prefix: "",
    levels: &[],
    processor: None,
};

const AARCH64: &str = "aarch64-linux-gnu-";

const COMPUTERS: [Computer; 11] = [
    Computer {
        name: "x86-64",
        summary: "x86-64 from SSE4.2 on: kernels for -v2, -v3 and -v4, of which each run takes the last that the machine has",
        registers: 16,
        machine_flags: &["-march=x86-64"],
        levels: &["x86-64-v2", "x86-64-v3", "x86-64-v4"],
        ..COMPUTER
    },
    Computer {
        name: "x86-64-v2",
        summary: "x86-64 with SSE4.2: vectors of 16 bytes",
        registers: 16,
        byte_dots: ByteDots::Pairs,
        machine_flags: &["-march=x86-64-v2"],
        processor: Some(ProcessorBits::X86_64_V2),
        ..COMPUTER
    },
    Computer {
        name: "x86-64-v3",
        summary: "x86-64 with AVX2 and FMA: vectors of 32 bytes",
        vector_bytes: 32,
        registers: 16,
        byte_dots: ByteDots::Pairs,
        memory_operands: true,
        machine_flags: &["-march=x86-64-v3"],
        processor: Some(ProcessorBits::X86_64_V3),
        ..COMPUTER
    },
    Computer {
        name: "x86-64-v4",
        summary: "x86-64 with AVX-512: vectors of 64 bytes",
        vector_bytes: 64,
        byte_dots: ByteDots::Pairs,
        machine_flags: &["-march=x86-64-v4", "-mprefer-vector-width=512"],
        processor: Some(ProcessorBits::X86_64_V4),
        ..COMPUTER
    },
    Computer {
        name: "x86-64-v4-fp16",
        summary: "x86-64 with AVX-512, its VNNI and FP16: vectors of 64 bytes that compute with halves",
        vector_bytes: 64,
        byte_dots: ByteDots::Quads,
        half_vectors: true,
        machine_flags: &["-march=x86-64-v4", "-mavx512vnni", "-mavx512fp16", "-mprefer-vector-width=512"],
        ..COMPUTER
    },
    Computer {
        name: "aarch64",
        summary: "64-bit Arm with NEON, any of them",
        byte_dots: ByteDots::SwappedQuads,
        machine: Machine::arm_host,
        machine_flags: &["-march=armv8-a"],
        tool_prefix: AARCH64,
        ..COMPUTER
    },
    Computer {
        name: "cortex-a53",
        summary: "Arm Cortex-A53, such as a Raspberry Pi 3's",
        byte_dots: ByteDots::SwappedQuads,
        machine: Machine::little,
        machine_flags: &["-mcpu=cortex-a53"],
        tool_prefix: AARCH64,
        ..COMPUTER
    },
    Computer {
        name: "cortex-a76",
        summary: "Arm Cortex-A76, such as a Raspberry Pi 5's",
        byte_dots: ByteDots::SignedQuads,
        half_vectors: true,
        machine_flags: &["-mcpu=cortex-a76"],
        tool_prefix: AARCH64,
        ..COMPUTER
    },
    Computer {
        name: "armv7-neon",
        summary: "32-bit Arm with NEON, such as a Cortex-A7",
        registers: 16,
        byte_dots: ByteDots::SwappedQuads,
        machine: Machine::little,
        machine_flags: &["-march=armv7-a", "-mfpu=neon-vfpv4", "-mfloat-abi=hard"],
        fast_flags: &NEON_FLAGS,
        tool_prefix: "arm-linux-gnueabihf-",
        ..COMPUTER
    },
    Computer {
        name: "riscv64",
        summary: "64-bit RISC-V without vectors (rv64gc)",
        vector_bytes: 4,
        wide_registers: true,
        general_registers: MANY_GENERAL_REGISTERS,
        machine: Machine::little,
        machine_flags: &["-march=rv64gc", "-mabi=lp64d"],
        tool_prefix: "riscv64-linux-gnu-",
        ..COMPUTER
    },
    Computer {
        name: "wasm32-simd128",
        summary: "WebAssembly with vectors of 16 bytes and the system interface WASI",
        registers: 16,
        byte_dots: ByteDots::Pairs,
        machine_flags: &["--target=wasm32-wasi", "-msimd128"],
        tool_prefix: "llvm-",
        ..COMPUTER
    },
];

/// gcc computes vectors of `f32` in NEON of 32 bits, which takes denormals for zero, only if it may be unsafe; what else that would
/// allow it isn't.
const NEON_FLAGS: [&str; 5] = [
    "-funsafe-math-optimizations",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fsigned-zeros",
    "-ftrapping-math",
];

impl Computer {
    fn target(&self) -> Target {
        let tools = match self.tool_prefix {
            "" => None,
            "llvm-" => Some(Tools { compiler: "clang".into(), archiver: "llvm-ar".into(), system: System::Wasi }),
            prefix => Some(Tools::gnu(prefix, System::Linux)),
        };
        let mut machine = (self.machine)();
        // WASI has no threads.
        machine.threads = machine.threads.filter(|_| !tools.as_ref().is_some_and(|tools| tools.system == System::Wasi));
        let mut flags = vec!["-std=gnu99", "-O3"];
        flags.extend(self.machine_flags);
        flags.extend(["-ffp-contract=fast", "-fno-math-errno"]);
        let levels = self.levels.iter().filter_map(|name| COMPUTERS.iter().find(|computer| computer.name == *name));
        Target {
            name: self.name.into(),
            summary: self.summary.into(),
            vectors: if self.vector_bytes > 4 { VectorSpelling::Gnu } else { VectorSpelling::None },
            vector_bytes: self.vector_bytes,
            registers: self.registers,
            general_registers: self.general_registers,
            float_unit: true,
            dsp: false,
            half_pairs: false,
            half_vectors: self.half_vectors,
            pixel_pairs: false,
            wide_registers: self.wide_registers,
            byte_dots: self.byte_dots,
            memory_operands: self.memory_operands,
            alignment: 64,
            borders: Borders::Memory,
            bands: false,
            in_order: false,
            machine,
            c_flags: flags.into_iter().map(String::from).collect(),
            fast_flags: self.fast_flags.iter().copied().map(String::from).collect(),
            tools,
            levels: levels.map(Computer::target).collect(),
            processor: self.processor,
            memories: None,
            floating_point: FloatingPoint::Fast,
            objective: Objective::Speed,
        }
        .with_floating_point(FloatingPoint::Fast)
    }
}

impl Target {
    /// The machines that run Linux, and WebAssembly.
    pub fn computers() -> Vec<Target> {
        COMPUTERS.iter().map(Computer::target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_integers_take_the_registers_that_there_are() {
        let registers = |name: &str| {
            let own = Target::computers().into_iter().chain(Target::embedded()).find(|target| target.name == name);
            own.unwrap().general_registers
        };
        assert_eq!(registers("riscv64"), registers("riscv32"));
        assert!(registers("riscv64") > registers("armv7-neon"));
    }

    #[test]
    fn computers_are_consistent() {
        let targets = Target::computers();
        for (index, target) in targets.iter().enumerate() {
            assert!(!targets[..index].iter().any(|other| other.name == target.name), "{} twice", target.name);
            assert_eq!(target.vectors == VectorSpelling::None, target.vector_bytes == 4, "{}", target.name);
            assert!(target.vector_bytes.is_power_of_two() && target.alignment >= target.vector_bytes);
            let is_wasm = target.name.starts_with("wasm");
            assert_eq!(target.object_format().is_none(), is_wasm, "{}", target.name);
        }
    }

    #[test]
    fn strict_code_has_no_unsafe_options() {
        for target in Target::computers() {
            let strict = target.clone().with_floating_point(FloatingPoint::Strict);
            assert!(!strict.c_flags.iter().any(|flag| flag.contains("unsafe")), "{}", target.name);
            assert_eq!(strict.with_floating_point(FloatingPoint::Fast), target);
        }
    }
}
