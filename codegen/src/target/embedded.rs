//! The microcontrollers that code can be generated for.

use super::{
    Borders, ByteDots, FEW_GENERAL_REGISTERS, FloatingPoint, MANY_GENERAL_REGISTERS, Machine, Memories, System, Target,
    Tools, VectorSpelling,
};
use mlc_ir::Objective;

/// What sets one microcontroller apart from another.
struct Part {
    name: &'static str,
    summary: &'static str,
    vectors: VectorSpelling,
    vector_bytes: usize,
    registers: usize,
    /// See [`Target::general_registers`].
    general_registers: usize,
    float_unit: bool,
    dsp: bool,
    /// See [`Target::pixel_pairs`].
    pixel_pairs: bool,
    alignment: usize,
    tool_prefix: &'static str,
    /// Options that choose the machine.
    machine_flags: &'static [&'static str],
    /// Memories of a usual part in KiB: flash and RAM.
    memories: (usize, usize),
    /// What instructions cost.
    machine: fn() -> Machine,
    /// See [`Machine::trust`].
    trust: Option<f64>,
}

const ARM: &str = "arm-none-eabi-";
const RISCV: &str = "riscv64-unknown-elf-";

/// Options of all of them. Sections of their own let the linker drop what a program doesn't use. Loops that look at a condition which doesn't
/// change in them aren't written once for each answer: that made the code of quantised networks up to five times as large, and none faster.
const FLAGS: [&str; 7] = [
    "-std=gnu99",
    "-O3",
    "-fno-unswitch-loops",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-ffunction-sections",
    "-fdata-sections",
];

/// Elements of x that a later turn of a tile's loop reads again aren't kept until then: there are no registers for them, and to keep them
/// in memory took twice the time of some convolutions.
const KEEPS_NO_ELEMENTS: &str = "-fno-predictive-commoning";

/// Loads of a tile stay between its products: those that gcc moves up when it makes instructions of expressions push sums out of registers.
const KEEPS_ORDER: &str = "-fno-tree-ter";

/// Sums of integers are added in the order of the tile: gcc otherwise adds up products of several steps first, whose factors take registers.
const ADDS_IN_ORDER: &str = "-fno-tree-reassoc";

/// A 32-bit core with a floating-point unit and its 32 registers, which the parts below differ from.
const CORE: Part = Part {
    name: "",
    summary: "",
    vectors: VectorSpelling::None,
    vector_bytes: 4,
    registers: 32,
    general_registers: FEW_GENERAL_REGISTERS,
    float_unit: true,
    dsp: false,
    pixel_pairs: false,
    alignment: 8,
    tool_prefix: ARM,
    machine_flags: &[],
    memories: (1024, 256),
    machine: Machine::in_order,
    trust: None,
};

const PARTS: [Part; 6] = [
    Part {
        name: "cortex-m0plus",
        summary: "Arm Cortex-M0+: no floating-point unit, made for int8",
        registers: 4,
        general_registers: 4,
        float_unit: false,
        pixel_pairs: true,
        machine_flags: &["-mcpu=cortex-m0plus", "-mthumb", "-mfloat-abi=soft"],
        memories: (256, 32),
        machine: Machine::cortex_m0,
        ..CORE
    },
    Part {
        name: "cortex-m4",
        summary: "Arm Cortex-M4F: f32 in hardware",
        dsp: true,
        // Sums of a tile are moved from register to register where loads are moved up.
        machine_flags: &[
            "-mcpu=cortex-m4",
            "-mthumb",
            "-mfpu=fpv4-sp-d16",
            "-mfloat-abi=hard",
            "-fno-schedule-insns",
            KEEPS_NO_ELEMENTS,
        ],
        machine: Machine::cortex_m,
        trust: Some(0.1),
        ..CORE
    },
    Part {
        name: "cortex-m7",
        summary: "Arm Cortex-M7: f32 and f64 in hardware",
        dsp: true,
        machine_flags: &["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard", KEEPS_NO_ELEMENTS],
        memories: (2048, 512),
        machine: Machine::cortex_m,
        trust: Some(0.1),
        ..CORE
    },
    Part {
        name: "cortex-m55",
        summary: "Arm Cortex-M55 with its vector extension (MVE)",
        dsp: true,
        vectors: VectorSpelling::Mve,
        vector_bytes: 16,
        registers: 8,
        alignment: 16,
        // Tiles fill the eight vector registers: loads that gcc moves up, or keeps for another block, would push sums out of them.
        machine_flags: &[
            "-mcpu=cortex-m55",
            "-mthumb",
            "-mfloat-abi=hard",
            "-fno-schedule-insns",
            "-fno-gcse",
            "-fno-cse-follow-jumps",
        ],
        memories: (2048, 1024),
        machine: Machine::helium,
        ..CORE
    },
    Part {
        name: "riscv32",
        summary: "32-bit RISC-V with f32 in hardware (rv32imafc)",
        general_registers: MANY_GENERAL_REGISTERS,
        tool_prefix: RISCV,
        // With 24 sums and what is multiplied in 32 registers there is no room for loads that gcc moves up.
        machine_flags: &[
            "-march=rv32imafc",
            "-mabi=ilp32f",
            "-mcmodel=medany",
            "-fno-schedule-insns",
            KEEPS_NO_ELEMENTS,
            KEEPS_ORDER,
            ADDS_IN_ORDER,
        ],
        machine: Machine::riscv,
        ..CORE
    },
    Part {
        name: "riscv32-soft",
        summary: "32-bit RISC-V without a floating-point unit (rv32imac), made for int8",
        registers: 8,
        general_registers: MANY_GENERAL_REGISTERS,
        float_unit: false,
        tool_prefix: RISCV,
        machine_flags: &[
            "-march=rv32imac",
            "-mabi=ilp32",
            "-mcmodel=medany",
            "-fno-schedule-insns",
            KEEPS_ORDER,
            ADDS_IN_ORDER,
        ],
        memories: (512, 128),
        machine: Machine::soft_float,
        ..CORE
    },
];

impl Part {
    fn target(&self) -> Target {
        let (flash, ram) = self.memories;
        let machine = (self.machine)();
        Target {
            name: self.name.into(),
            summary: self.summary.into(),
            vectors: self.vectors,
            vector_bytes: self.vector_bytes,
            registers: self.registers,
            general_registers: self.general_registers,
            float_unit: self.float_unit,
            dsp: self.dsp,
            half_vectors: self.vectors == VectorSpelling::Mve,
            half_pairs: self.dsp && self.float_unit && self.vectors == VectorSpelling::None,
            pixel_pairs: self.pixel_pairs,
            wide_registers: false,
            byte_dots: ByteDots::None,
            memory_operands: false,
            alignment: self.alignment,
            borders: Borders::Clipped,
            bands: false,
            in_order: true,
            machine: Machine { trust: self.trust, ..machine },
            c_flags: FLAGS.iter().chain(self.machine_flags).copied().map(String::from).collect(),
            fast_flags: Vec::new(),
            tools: Some(Tools::gnu(self.tool_prefix, System::None)),
            levels: Vec::new(),
            processor: None,
            memories: Some(Memories { flash_bytes: flash << 10, ram_bytes: ram << 10 }),
            floating_point: FloatingPoint::Fast,
            objective: Objective::Balanced,
        }
    }
}

impl Target {
    /// The microcontrollers, the smallest of each family first.
    pub fn embedded() -> Vec<Target> {
        PARTS.iter().map(Part::target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_consistent() {
        let targets = Target::embedded();
        for (index, target) in targets.iter().enumerate() {
            assert!(!targets[..index].iter().any(|other| other.name == target.name), "{} twice", target.name);
            assert!(target.alignment.is_power_of_two() && target.alignment >= target.vector_bytes.min(16));
            let memories = target.memories.unwrap();
            assert!(memories.flash_bytes >= memories.ram_bytes);
            let soft = target.c_flags.iter().any(|flag| flag == "-mfloat-abi=soft" || flag == "-mabi=ilp32");
            assert_eq!(target.float_unit, !soft, "{}", target.name);
            let strict = target.clone().with_floating_point(FloatingPoint::Strict);
            assert!(strict.c_flags.contains(&"-ffp-contract=off".to_owned()));
        }
    }
}
