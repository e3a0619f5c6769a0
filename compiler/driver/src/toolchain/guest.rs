//! Guests: programs of another kind of processor that run under an emulator beside this machine's own, with its files and its
//! system.

use mlc_codegen::Target;
use std::path::Path;
use std::process::Command;

/// What stands for a machine that runs Linux, or for a WebAssembly runtime.
#[derive(Debug, PartialEq, Eq)]
pub struct Guest {
    /// Name of the target whose code it runs.
    pub target: &'static str,
    /// The command that a program and its arguments are put behind; empty where the program runs by itself.
    runner: &'static [&'static str],
    /// Options of the linker.
    link_flags: &'static [&'static str],
    /// Names of the packages that hold compiler, C library and emulator.
    packages: &'static str,
}

/// Runs a WebAssembly program on the files of the present folder, by the runtime wasmtime of Python's registry.
const WASI: &str = include_str!("wasi.py");

const X86: Guest = Guest { target: "", runner: &[], link_flags: &[], packages: "gcc and qemu-user" };
const AARCH64: Guest = Guest {
    target: "aarch64",
    runner: &["qemu-aarch64"],
    link_flags: &["-static"],
    packages: "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user",
};

static GUESTS: [Guest; 11] = [
    Guest { target: "x86-64", ..X86 },
    Guest { target: "x86-64-v2", ..X86 },
    Guest { target: "x86-64-v3", ..X86 },
    Guest { target: "x86-64-v4", ..X86 },
    Guest { target: "x86-64-v4-fp16", ..X86 },
    AARCH64,
    Guest { target: "cortex-a53", ..AARCH64 },
    Guest { target: "cortex-a76", ..AARCH64 },
    Guest {
        target: "armv7-neon",
        runner: &["qemu-arm"],
        link_flags: &["-static"],
        packages: "gcc-arm-linux-gnueabihf, libc6-dev-armhf-cross and qemu-user",
    },
    Guest {
        target: "riscv64",
        runner: &["qemu-riscv64"],
        link_flags: &["-static"],
        packages: "gcc-riscv64-linux-gnu, libc6-dev-riscv64-cross and qemu-user",
    },
    Guest {
        target: "wasm32-simd128",
        runner: &["python3", "-c", WASI],
        link_flags: &[],
        packages: "clang, lld, wasi-libc and libclang-rt-dev-wasm32, and Python's registry has the runtime, wasmtime",
    },
];

/// All guests.
pub fn guests() -> impl Iterator<Item = &'static Guest> {
    GUESTS.iter()
}

impl Guest {
    /// The target whose code it runs.
    pub(super) fn target(&self) -> Option<Target> {
        Target::computers().into_iter().find(|target| target.name == self.target)
    }

    /// Name of the C compiler.
    pub(super) fn compiler(&self) -> String {
        let tools = self.target().and_then(|target| target.tools);
        // Machines of this family share a compiler, which is this machine's own where it is one of them.
        let native = if cfg!(target_arch = "x86_64") { "cc" } else { "x86_64-linux-gnu-gcc" };
        tools.map_or_else(|| native.to_owned(), |tools| tools.compiler)
    }

    /// What the user can do when a tool is missing.
    pub(super) fn help(&self) -> String {
        format!("Debian and its kin have what it takes in the packages {}", self.packages)
    }

    /// Options of the linker.
    pub fn link_flags(&self) -> &[&str] {
        self.link_flags
    }

    /// The words in front of a program: none where this processor can run it.
    pub fn runner(&self) -> Vec<&str> {
        if self.runner.is_empty() && !self.runs_here() {
            vec!["qemu-x86_64", "-cpu", "max"]
        } else {
            self.runner.to_vec()
        }
    }

    /// The command that runs a program with arguments.
    pub fn command(&self, executable: &Path, arguments: &[&str]) -> Command {
        let runner = self.runner();
        let mut command = match runner.split_first() {
            Some((program, more)) => {
                let mut command = Command::new(program);
                command.args(more).arg(executable);
                command
            }
            None => Command::new(executable),
        };
        command.args(arguments);
        command
    }

    /// Whether its programs run under an emulator: this processor may be one of its kind.
    pub fn is_emulated(&self) -> bool {
        !self.runner().is_empty()
    }

    /// Whether the emulator that its programs run under has no such instructions.
    pub fn is_beyond_emulator(&self) -> bool {
        self.is_emulated() && self.target.starts_with("x86-64-v4")
    }

    /// Whether this machine's processor is of this kind.
    fn runs_here(&self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            match self.target {
                "x86-64" | "x86-64-v2" => has!("sse4.2") && has!("popcnt"),
                "x86-64-v3" => has!("avx2") && has!("fma") && has!("bmi2") && has!("f16c"),
                "x86-64-v4" => has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl"),
                "x86-64-v4-fp16" => has!("avx512fp16") && has!("avx512vnni"),
                _ => false,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_computer_has_a_guest() {
        let targets: Vec<String> = Target::computers().into_iter().map(|target| target.name).collect();
        assert_eq!(guests().map(|guest| guest.target).collect::<Vec<_>>(), targets);
        assert!(guests().all(|guest| guest.target().is_some()));
    }
}
