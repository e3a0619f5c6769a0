//! Emulated boards: what stands for a microcontroller where there is none. Facts of QEMU's machines.

use mlc_codegen::Target;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// A region of memory.
#[derive(Debug, PartialEq, Eq)]
struct Region {
    start: u32,
    bytes: u32,
}

/// How executed instructions are counted. The emulator is told to let a nanosecond pass per instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// By the timer that all Cortex-M have; so many hundredths of an instruction pass per tick.
    SysTick(u32),
    /// By the counter of retired instructions that RISC-V has.
    Retired,
}

/// An emulated board and what programs for it are built with.
#[derive(Debug, PartialEq, Eq)]
pub struct Board {
    /// Name of the target whose code it runs.
    pub target: &'static str,
    /// The emulator's name of the board.
    pub machine: &'static str,
    emulator: &'static str,
    /// Options beside those of all boards.
    options: &'static [&'static str],
    /// Where code and constants lie.
    flash: Region,
    ram: Region,
    pub(super) counter: Counter,
    /// Debian's names of the packages that hold compiler, C library and emulator.
    packages: &'static str,
    /// The register whose lowest bit is a light.
    light: Option<u32>,
}

/// File name of the linker script of a board.
pub(crate) const MEMORY_SCRIPT: &str = "memory.ld";

/// Options of the linker for a program with `main`: start-up code, and files that go through a debugger or an emulator.
pub(crate) const START_UP: [&str; 2] = ["--crt0=semihost", "--oslib=semihost"];

/// Options of `objcopy` that take the vectors out of a program.
pub(crate) const VECTORS_ONLY: [&str; 4] = ["-O", "binary", "-j", ".init"];

/// Bytes of the stack of a program on a board.
pub(super) const STACK_BYTES: u32 = 64 << 10;

const ARM_PACKAGES: &str = "gcc-arm-none-eabi, picolibc-arm-none-eabi and qemu-system-arm";
const RISCV_PACKAGES: &str = "gcc-riscv64-unknown-elf, picolibc-riscv64-unknown-elf and qemu-system-misc";

const fn mebibytes(start: u32, number: u32) -> Region {
    Region { start, bytes: number << 20 }
}

/// The boards with a 25 MHz timer; the one with a Cortex-M3 runs the code of smaller processors too.
const fn mps2(target: &'static str, machine: &'static str, ram: Region) -> Board {
    Board {
        target,
        machine,
        emulator: "qemu-system-arm",
        options: &[],
        flash: mebibytes(0, 4),
        ram,
        counter: Counter::SysTick(4000),
        packages: ARM_PACKAGES,
        light: Some(0x4002_8000),
    }
}

const fn virt(target: &'static str) -> Board {
    Board {
        target,
        machine: "virt",
        emulator: "qemu-system-riscv32",
        options: &["-m", "128M", "-bios", "none"],
        flash: mebibytes(0x8000_0000, 64),
        ram: mebibytes(0x8400_0000, 64),
        counter: Counter::Retired,
        packages: RISCV_PACKAGES,
        light: None,
    }
}

static BOARDS: [Board; 6] = [
    mps2("cortex-m0plus", "mps2-an385", mebibytes(0x2100_0000, 16)),
    mps2("cortex-m4", "mps2-an386", mebibytes(0x2100_0000, 16)),
    mps2("cortex-m7", "mps2-an500", mebibytes(0x6000_0000, 16)),
    Board {
        // The memory at address 0 is too small for some models.
        flash: mebibytes(0x6000_0000, 32),
        counter: Counter::SysTick(3125),
        light: Some(0x4930_2000),
        ..mps2("cortex-m55", "mps3-an547", mebibytes(0x6200_0000, 32))
    },
    virt("riscv32"),
    virt("riscv32-soft"),
];

/// All boards.
pub fn boards() -> impl Iterator<Item = &'static Board> {
    BOARDS.iter()
}

impl Board {
    /// What the user can do when a tool is missing.
    pub(super) fn help(&self) -> String {
        format!("Debian and its kin have what it takes in the packages {}", self.packages)
    }

    /// The board of a target, by its name.
    pub fn of_target(target: &str) -> Option<&'static Board> {
        boards().find(|board| board.target == target)
    }

    /// The linker script [`MEMORY_SCRIPT`]: where code, data and stack lie; the rest is that of the C library.
    pub fn memory_script(&self) -> String {
        let Board { machine, flash, ram, .. } = self;
        format!(
            "/* Memories of the board {machine}, and bytes of the stack. */\n\
             __flash = {:#010x};\n__flash_size = {:#x};\n__ram = {:#010x};\n__ram_size = {:#x};\n__stack_size = {STACK_BYTES:#x};\n\
             INCLUDE picolibc.ld\n",
            flash.start, flash.bytes, ram.start, ram.bytes,
        )
    }

    /// The register whose lowest bit is a light, if the board has one.
    pub fn light(&self) -> Option<u32> {
        self.light
    }

    /// Whether the processor looks for its vectors, the section `.init`, elsewhere than where the linker puts them.
    pub(crate) fn moves_vectors(&self) -> bool {
        self.counter != Counter::Retired && self.flash.start != 0
    }

    /// The command that runs a program with arguments; `vectors` is the file of the section `.init`.
    pub(crate) fn command(&self, executable: &Path, vectors: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.emulator);
        command.args(["-M", self.machine]).args(self.options).arg("-kernel").arg(executable);
        if self.moves_vectors() {
            let mut device = OsString::from("loader,addr=0,force-raw=on,file=");
            device.push(vectors);
            command.arg("-device").arg(device);
        }
        let arguments: String = arguments.iter().map(|argument| format!(",arg={argument}")).collect();
        command.args(["-nographic", "-monitor", "none", "-serial", "none", "-icount", "shift=0"]);
        command.arg("-semihosting-config").arg(format!("enable=on,target=native{arguments}"));
        command
    }

    /// The emulator's name.
    pub(super) fn emulator(&self) -> &'static str {
        self.emulator
    }

    /// The target whose code it runs.
    pub(super) fn target(&self) -> Option<Target> {
        Target::embedded().into_iter().find(|target| target.name == self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_microcontroller_has_a_board() {
        let targets: Vec<String> = Target::embedded().into_iter().map(|target| target.name).collect();
        assert_eq!(boards().map(|board| board.target).collect::<Vec<_>>(), targets);
        assert!(boards().all(|board| board.target().is_some()));
    }
}
