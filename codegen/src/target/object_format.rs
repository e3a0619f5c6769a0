//! Object files of targets.

use super::tools::{System, Tools};
use object::Architecture;
use object::elf::{EF_ARM_ABI_FLOAT_HARD, EF_ARM_ABI_FLOAT_SOFT};

/// An ELF file, little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectFormat {
    /// The machine.
    pub architecture: Architecture,
    /// The machine's flags in the header: linkers refuse to join files of different calling conventions.
    pub flags: u32,
}

impl ObjectFormat {
    /// That of a target, by its compiler, or by its name where it is this machine's.
    pub(super) fn of(name: &str, tools: Option<&Tools>, float_unit: bool) -> Option<ObjectFormat> {
        let float = |hard: u32, soft: u32| if float_unit { hard } else { soft };
        let arm = EABI_5 | float(EF_ARM_ABI_FLOAT_HARD, EF_ARM_ABI_FLOAT_SOFT);
        let Some(tools) = tools else {
            return match name {
                "host" => host(),
                name if name.starts_with("x86-64") => {
                    Some(ObjectFormat { architecture: Architecture::X86_64, flags: 0 })
                }
                _ => None,
            };
        };
        let (architecture, flags) = match (tools.compiler.split('-').next()?, tools.system) {
            ("arm", _) => (Architecture::Arm, arm),
            ("aarch64", _) => (Architecture::Aarch64, 0),
            ("riscv64", System::Linux) => (Architecture::Riscv64, RISCV_COMPRESSED | RISCV_FLOAT_DOUBLE),
            ("riscv64", _) => (Architecture::Riscv32, RISCV_COMPRESSED | float(RISCV_FLOAT_SINGLE, 0)),
            _ => return None,
        };
        Some(ObjectFormat { architecture, flags })
    }
}

/// Version 5 of the Arm EABI.
const EABI_5: u32 = 0x0500_0000;
/// Compressed instructions (RISC-V psABI, section "File header").
const RISCV_COMPRESSED: u32 = 1;
/// Floats in registers of single precision.
const RISCV_FLOAT_SINGLE: u32 = 2;
/// Floats in registers of double precision.
const RISCV_FLOAT_DOUBLE: u32 = 4;

/// This machine, where its object files are ELF.
fn host() -> Option<ObjectFormat> {
    if !cfg!(any(target_os = "linux", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")) {
        return None;
    }
    let architecture = match std::env::consts::ARCH {
        "x86_64" => Architecture::X86_64,
        "aarch64" => Architecture::Aarch64,
        _ => return None,
    };
    Some(ObjectFormat { architecture, flags: 0 })
}
