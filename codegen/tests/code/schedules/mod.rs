//! Every operator's schedule on every kind of target, against the evaluator: random operators over random layouts.

mod case;
mod instances;
mod program;
mod reviewed;

use case::{Build, Case};
use instances::{empty, every_dtype, larger_cases, samples};
use mlc_codegen::Target;

/// Sanitizers see every access of code that isn't optimised, which takes half the time to compile; the other builds are.
fn builds() -> Vec<Build> {
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0"];
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];
    let mut builds = vec![Build { target: Target::generic(), flags: strict.into_iter().chain(sanitized).collect() }];
    for bytes in [16, 32, 64] {
        let how: &[&str] = if bytes == 32 { &sanitized } else { &["-O1"] };
        let flags = ["-std=gnu99", "-Wall", "-Wextra", "-Wno-psabi", "-march=native", "-Werror"];
        builds.push(Build { target: Target::host(bytes), flags: flags.iter().chain(how).copied().collect() });
    }
    builds
}

fn check(cases: &[Case]) {
    if !program::compiler_is_there() {
        return;
    }
    for build in builds() {
        let failures = program::run(cases, &build);
        let shown: Vec<&String> = failures.iter().take(20).collect();
        assert!(failures.is_empty(), "{} of {} cases fail: {shown:#?}", failures.len(), cases.len());
    }
}

#[test]
fn samples_compute_what_the_evaluator_says() {
    check(&samples(8));
}

#[test]
fn larger_operators_compute_what_the_evaluator_says() {
    check(&larger_cases(10));
}

#[test]
fn every_data_type_computes_what_the_evaluator_says() {
    check(&every_dtype());
}

#[test]
fn empty_tensors_and_windows_compute_what_the_evaluator_says() {
    check(&empty());
}
