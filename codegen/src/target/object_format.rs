//! Object files of targets.

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
    /// That of a target, by its name and the prefix of its compiler's name.
    pub(super) fn of(name: &str, tool_prefix: Option<&str>, float_unit: bool) -> Option<ObjectFormat> {
        match tool_prefix {
            Some("arm-none-eabi-") => {
                let float = if float_unit { EF_ARM_ABI_FLOAT_HARD } else { EF_ARM_ABI_FLOAT_SOFT };
                Some(ObjectFormat { architecture: Architecture::Arm, flags: EABI_5 | float })
            }
            Some("riscv64-unknown-elf-") => {
                let float = if float_unit { RISCV_FLOAT_SINGLE } else { 0 };
                Some(ObjectFormat { architecture: Architecture::Riscv32, flags: RISCV_COMPRESSED | float })
            }
            None if name == "host" => host(),
            _ => None,
        }
    }
}

/// Version 5 of the Arm EABI.
const EABI_5: u32 = 0x0500_0000;
/// Compressed instructions (RISC-V psABI, section "File header").
const RISCV_COMPRESSED: u32 = 1;
/// Floats in registers of single precision.
const RISCV_FLOAT_SINGLE: u32 = 2;

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
