//! The runtime on microcontrollers: every source compiles for them, and the tests' graph runs on emulated ones.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::path::Path;
use std::process::Command;

struct Device {
    compiler: &'static str,
    options: &'static [&'static str],
    /// Where code and data go.
    memories: [&'static str; 2],
    emulator: &'static str,
    machine: &'static [&'static str],
}

const CORTEX_M4: Device = Device {
    compiler: "arm-none-eabi-gcc",
    options: &["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"],
    memories: ["0x00000000", "0x20000000"],
    emulator: "qemu-system-arm",
    machine: &["-M", "mps2-an386"],
};

const RISCV32: Device = Device {
    compiler: "riscv64-unknown-elf-gcc",
    options: &["-march=rv32imac", "-mabi=ilp32", "-mcmodel=medany"],
    memories: ["0x80000000", "0x80400000"],
    emulator: "qemu-system-riscv32",
    machine: &["-M", "virt", "-m", "32M", "-bios", "none"],
};

const STRICT: &[&str] =
    &["-std=c99", "-O2", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wmissing-prototypes"];

/// Whether a program is there; says so when it isn't.
fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// Builds the tests' graph with all of the runtime for a device and runs it.
fn run(device: &Device) {
    if !installed(device.compiler) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let firmware = folder.path().join("firmware.elf");
    let sources = mlc_runtime::FILES.iter().map(|file| file.path);
    let hosted = ["platform/posix", "transport/", "threads/"];
    let is_for_devices = |path: &&str| path.ends_with(".c") && !hosted.iter().any(|folder| path.starts_with(folder));
    let sources = sources.filter(is_for_devices);
    let output = Command::new(device.compiler)
        .args(STRICT)
        .args(device.options)
        .args(["--specs=picolibc.specs", "--crt0=semihost", "--oslib=semihost", "-Iinclude", "-Icrt_config"])
        .arg(format!("-Wl,--defsym=__flash={},--defsym=__flash_size=0x400000", device.memories[0]))
        .arg(format!("-Wl,--defsym=__ram={},--defsym=__ram_size=0x400000", device.memories[1]))
        .arg("-Wl,--defsym=__stack_size=0x4000")
        .args(sources)
        .args(["tests/c/device.c", "tests/c/graph_fixture.c", "-o"])
        .arg(&firmware)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    if !installed(device.emulator) || !installed("timeout") {
        return;
    }
    let output = Command::new("timeout")
        .args(["120", device.emulator])
        .args(device.machine)
        .args(["-nographic", "-monitor", "none", "-serial", "none"])
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(&firmware)
        .output()
        .unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // 7 is the status that the program ends with, so that the default of 0 is no success.
    assert_eq!((output.status.code(), printed.as_str()), (Some(7), "outputs: -10 -12 -32\n"));
}

#[test]
fn cortex_m4() {
    run(&CORTEX_M4);
}

#[test]
fn riscv32() {
    run(&RISCV32);
}
