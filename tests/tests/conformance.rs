//! The repository's own models, each from its file to the original framework's numbers; and damaged files. All models run on the
//! generic target, PNNX's also on others: the `conformance` program runs every format on every target.

use mlc_tests::conformance::{Status, failures, run, summary};
use mlc_tests::mode::Mode;
use mlc_tests::paths;
use mlc_tests::program::c_compiler;
use std::process::Command;

/// Every case of the folder passes: a refusal is a failure too, for what the repository carries is supported. Each becomes an archive, a
/// program of its own.
fn check(format: &str, mode: &Mode) {
    check_programs(format, mode, false);
}

/// The same, of which many become one program: C compilers take most of their time to begin and to end.
fn check_together(format: &str, mode: &Mode) {
    check_programs(format, mode, true);
}

fn check_programs(format: &str, mode: &Mode, together: bool) {
    let outcomes = run(&paths::data(), format, mode, "", 2, together).unwrap();
    assert!(!outcomes.is_empty(), "there are no cases of {format}");
    let all = outcomes.iter().all(|outcome| outcome.status == Status::Passed);
    assert!(all, "{format} on {}: {}\n{}", mode.name, summary(&outcomes), failures(&outcomes));
}

#[test]
fn models_on_the_generic_target() {
    check_together("pnnx", &Mode::generic(false));
    // The C compiler has optimised kernels of most operators by now.
    let mode = Mode::generic(false).unoptimised();
    check_together("onnx", &mode);
    check("relay", &mode);
    check("lightnet", &mode);
    check_together("ark", &mode);
    check_together("tennis", &mode);
    check_together("tflite", &mode);
}

#[test]
fn models_on_the_generic_target_where_there_are_no_vectors() {
    check_together("pnnx", &Mode::generic(true).with_flags(["-DMLC_VECTORS=0"]));
}

#[test]
fn models_on_the_host() {
    check_together("tflite", &Mode::host(false));
    let mode = Mode::host(false).unoptimised();
    check("pnnx", &mode);
    check_together("relay", &mode);
    check_together("ark", &mode);
    check_together("lightnet", &mode);
    check_together("tennis", &mode);
}

#[test]
fn models_with_the_schedules_of_a_microcontroller() {
    check_together("pnnx", &Mode::microcontroller("cortex-m4", false).unwrap());
}

/// At `-O3` gcc 11 and 12 mask the loads in arms of selections wrongly.
#[test]
fn selections_with_the_c_compilers_optimisation() {
    let mut modes = vec![Mode::host(false), Mode::generic(false)];
    modes.extend(["cortex-m4", "riscv32"].map(|name| Mode::microcontroller(name, false).unwrap()));
    for compiler in compilers() {
        for (mode, level) in modes.iter().flat_map(|mode| [(mode, "-O2"), (mode, "-O3")]) {
            let mode = mode.clone().compiled_by(&compiler).with_flags([level, "-march=native"]);
            for case in ["where_const_row", "lpnorm_middle_axis"] {
                let outcomes = run(&paths::data(), "onnx", &mode, case, 2, false).unwrap();
                let statuses: Vec<&Status> = outcomes.iter().map(|outcome| &outcome.status).collect();
                assert_eq!(statuses, [&Status::Passed], "{case} on {}", mode.name);
            }
        }
    }
}

/// The C compilers that are there: the usual one and clang.
fn compilers() -> Vec<String> {
    let is_there = |name: &String| Command::new(name).arg("--version").output().is_ok();
    let (there, missing): (Vec<String>, Vec<String>) = [c_compiler(), "clang".into()].into_iter().partition(is_there);
    missing.iter().for_each(|name| eprintln!("skipped: there is no `{name}`"));
    there
}

#[test]
fn damaged_files() {
    check("pnnx-malformed", &Mode::generic(false));
    check("onnx-malformed", &Mode::generic(false));
    check("relay-malformed", &Mode::generic(false));
    check("ark-malformed", &Mode::generic(false));
    check("tennis-malformed", &Mode::generic(false));
    check("tflite-malformed", &Mode::generic(false));
}
