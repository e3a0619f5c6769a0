//! Projects for microcontrollers build and run on emulated boards, and those that can't are refused.

use crate::common::mlc;
use std::path::Path;
use std::process::Command;

/// A product with a matrix of its own; of zeros it makes the hyperbolic tangents of `b`.
const PRODUCT: &str = r#"mlc 1
graph @product(%x: f32[1, 8]) -> ("y": f32[1, 16]) {
  %w = constant f32[8, 16] random(seed = 3)
  %b = constant f32[16] random(seed = 4)
  %m = matmul %x, %w {transpose_left = false, transpose_right = false} : f32[1, 16]
  %s = binary %m, %b {function = add} : f32[1, 16]
  %y = unary %s {function = tanh} : f32[1, 16]
  return %y
}
"#;

const TARGETS: [&str; 6] = ["cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m55", "riscv32", "riscv32-soft"];

/// What a shell says to commands in a folder; all must succeed. `mlc` is the one under test.
fn shell(folder: &Path, commands: &str) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_mlc")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let paths = std::iter::once(own).chain(std::env::split_paths(&path));
    let mut command = Command::new("sh");
    command.args(["-e", "-c", commands]).current_dir(folder).env("PATH", std::env::join_paths(paths).unwrap());
    for variable in ["CC", "CFLAGS", "AR", "LDFLAGS", "C_LIBRARY"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{commands}: {said}");
    said
}

/// Whether a machine's tools are missing, which is said.
fn is_missing(target: &str) -> bool {
    let (compiler, emulator) = match target.starts_with("riscv") {
        true => ("riscv64-unknown-elf-gcc", "qemu-system-riscv32"),
        false => ("arm-none-eabi-gcc", "qemu-system-arm"),
    };
    let absent = [compiler, emulator].into_iter().find(|tool| Command::new(tool).arg("--version").output().is_err());
    if let Some(tool) = absent {
        eprintln!("skipped: there is no {tool}");
    }
    absent.is_some()
}

fn archive(folder: &Path, target: &str) -> String {
    std::fs::write(folder.join("product.mlc"), PRODUCT).unwrap();
    let archive = format!("{target}.tar");
    mlc(folder, 0, &["compile", "product.mlc", "--target", target, "--model-name", "net", "-o", &archive]);
    archive
}

/// The numbers that a program has printed of the output.
fn printed(said: &str) -> Vec<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("y: ")).unwrap_or_else(|| panic!("{said}"));
    line.trim_end_matches(" ...").split(' ').map(|number| number.parse().unwrap()).collect()
}

/// Runs the commands that `mlc project` prints, and holds what the firmware says to what a program of this machine says.
fn builds_and_runs(template: &str, targets: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let native = archive(folder, "generic");
    mlc(folder, 0, &["project", &native, "--template", "posix", "-o", "native"]);
    let expected = printed(&shell(folder, "cd native; make; build/net"));
    assert_eq!(expected.len(), 8);
    for target in targets.iter().filter(|target| !is_missing(target)) {
        let archive = archive(folder, target);
        let said = mlc(folder, 0, &["project", &archive, "--template", template, "-o", target]);
        let next: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("  ")).collect();
        assert_eq!(next.len(), 3, "{said}");
        let said = shell(folder, &next.join("\n"));
        let lights: Vec<&str> = said.lines().filter(|line| line.starts_with("light ")).collect();
        assert_eq!(lights, ["light on", "light off", "light on", "light off"], "{target}: {said}");
        for (found, expected) in printed(&said).iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-4, "{target}: {found} {expected}");
        }
    }
}

#[test]
fn firmware_of_every_microcontroller_blinks_on_its_board() {
    builds_and_runs("bare-metal", &TARGETS);
}

#[test]
fn firmware_is_built_by_cmake_too() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("skipped: there is no cmake");
        return;
    }
    // One whose vectors must be moved, one whose needn't, one that has none.
    builds_and_runs("cmake", &["cortex-m55", "cortex-m4", "riscv32"]);
}

#[test]
fn the_light_is_the_boards() {
    if is_missing("cortex-m4") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = archive(folder.path(), "cortex-m4");
    mlc(folder.path(), 0, &["project", &archive, "--template", "bare-metal", "-o", "blink"]);
    let said = shell(folder.path(), "cd blink; make; make -n emulate | sed 's/$/ -trace mps2_fpgaio_write/' | sh 2>&1");
    // Emulators that were built without traces are silent.
    let written: Vec<&str> = said.lines().filter(|line| line.contains("FPGAIO write: offset 0x0 ")).collect();
    if written.is_empty() {
        assert!(said.contains("light on"), "{said}");
        return;
    }
    let data: Vec<bool> = written.iter().map(|line| line.contains("data 0x1 ")).collect();
    assert_eq!(data, [true, false, true, false], "{said}");
}

#[test]
fn projects_that_cannot_work_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let refused = [
        ("cortex-m4", "posix", "'--template bare-metal'"),
        ("generic", "bare-metal", "one of cortex-m0plus, "),
        ("host", "bare-metal", "one of cortex-m0plus, "),
        ("host", "zephyr", "'--target generic'"),
        ("aarch64", "arduino", "'--target generic'"),
        ("cortex-m4", "esp-idf", "'--target generic'"),
        ("cortex-m55", "platformio", "'--target generic'"),
        ("wasm32-simd128", "platformio", "'--target generic'"),
    ];
    for (target, template, help) in refused {
        let archive = archive(folder, target);
        let said = mlc(folder, 2, &["project", &archive, "--template", template, "-o", "none"]);
        assert!(said.contains(&format!("error[MLC0004]: the template '{template}'")), "{said}");
        assert!(target == "generic" || said.contains(&format!("'{target}'")), "{said}");
        assert!(said.contains(help), "{said}");
        assert!(!folder.join("none").exists());
    }
    for (target, template) in
        [("cortex-m4", "zephyr"), ("riscv32", "esp-idf"), ("cortex-m7", "platformio"), ("generic", "arduino")]
    {
        let archive = archive(folder, target);
        mlc(folder, 0, &["project", &archive, "--template", template, "-o", &format!("{target}-{template}")]);
    }
}
