//! Every operator's schedule on every kind of target, against the evaluator: random operators over random layouts.

mod case;
mod instances;
mod program;
mod reviewed;

use crate::common::SANITIZERS;
use case::{Build, Case, Which, build, overwritable, schedules};
use instances::{byte_products, empty, every_dtype, larger_cases, samples, wide_products};
use mlc_codegen::Target;
use mlc_codegen::lower::view::View;
use mlc_ir::{Objective, OpKind};

/// Builds under sanitizers, a plain one and an optimised one.
fn builds() -> Vec<Build> {
    let strict = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"];
    let generic = |text: &'static str| {
        let flags = strict.into_iter().chain(SANITIZERS).chain([text]).collect();
        Build { target: Target::generic(), flags, which: Which::All }
    };
    let mut builds = Vec::from(["-DMLC_VECTORS=1", "-DMLC_VECTORS=0"].map(generic));
    for bytes in [16, 32, 64] {
        let how: &[&str] = match bytes {
            16 => &["-O0"],
            32 => &SANITIZERS,
            _ => &["-O1"],
        };
        let flags = ["-std=gnu99", "-Wall", "-Wextra", "-Wno-psabi", "-march=native", "-Werror"];
        let flags = flags.iter().chain(how).copied().collect();
        builds.push(Build { target: Target::host(bytes), flags, which: Which::All });
    }
    builds
}

/// The same where memory counts, under sanitizers. How vectors are spelled has nothing to do with it.
fn builds_for_ram(which: Which) -> Vec<Build> {
    let has_vectors = |build: &Build| !build.flags.contains(&"-DMLC_VECTORS=0");
    let sanitized = builds().into_iter().filter(|build| build.is_sanitized() && has_vectors(build));
    sanitized.map(|build| Build { target: build.target.with_objective(Objective::Ram), which, ..build }).collect()
}

fn check(cases: &[Case]) {
    check_by(cases, builds());
}

fn check_by(cases: &[Case], builds: Vec<Build>) {
    if !program::compiler_is_there() {
        return;
    }
    for build in builds {
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
fn kernels_compute_the_same_downwards() {
    let cases: Vec<Case> = samples(3).into_iter().chain(larger_cases(4)).chain(wide_products()).collect();
    check_by(&cases, builds_for_ram(Which::Downwards));
}

#[test]
fn bytes_that_are_gathered_compute_the_same_downwards() {
    let cases = byte_products();
    let flags: Vec<&str> = ["-std=c99", "-Wall", "-Wextra", "-Werror"].into_iter().chain(SANITIZERS).collect();
    let mut builds = Vec::new();
    for (board, gathers) in [("cortex-m4", "window-dots"), ("cortex-m0plus", "window-pairs")] {
        let target = Target::embedded().into_iter().find(|target| target.name == board).unwrap();
        let target = target.with_objective(Objective::Ram);
        let mut found = 0;
        for case in &cases {
            let all = schedules(case, &target).unwrap();
            for schedule in all.iter().filter(|own| own.is_named(gathers)) {
                let built = build(case, schedule, &target).unwrap();
                let result = &case.results[0].view;
                let is_dense = *result == View::dense(result.dtype, &result.shape);
                assert!(built.downwards().is_some() || !is_dense, "{} by {schedule} for {board}", case.name);
                found += usize::from(is_dense);
            }
        }
        assert_eq!(found, cases.len() / 2, "{found} of {gathers} for {board}");
        builds.push(Build { target, flags: flags.clone(), which: Which::Downwards });
    }
    check_by(&cases, builds);
}

#[test]
fn tiles_compute_the_same_pixel_by_pixel() {
    check_by(&wide_products(), builds_for_ram(Which::ByPixels));
}

#[test]
fn results_may_lie_over_the_operands_that_schedules_allow() {
    let cases = || samples(4).into_iter().chain(larger_cases(6));
    let most = cases().map(|case| case.operands.len()).max().unwrap_or(0);
    // Which operands are alike is seen when the kernel is built.
    let over = |operand: usize| {
        let alike = move |case: &Case| {
            let view = |memory: &case::Memory| View { offset: 0, ..memory.view.clone() };
            case.operands.get(operand).is_some_and(|own| view(own) == view(&case.results[0]))
        };
        cases().filter(alike).map(move |case| case.over(operand))
    };
    let cases: Vec<Case> = (0..most).flat_map(over).collect();
    for kind in [OpKind::Map, OpKind::Softmax, OpKind::Normalize, OpKind::Cumulative, OpKind::Kernel] {
        let met = cases.iter().any(|case| {
            let schedules = schedules(case, &Target::host(32)).unwrap();
            let operand = case.overwritten.unwrap_or(0);
            case.op.kind() == kind
                && schedules.iter().any(|own| overwritable(case, own, &Target::host(32)).contains(&operand))
        });
        assert!(met, "no case of {}", kind.name());
    }
    check(&cases);
}

#[test]
fn every_data_type_computes_what_the_evaluator_says() {
    check(&every_dtype());
}

#[test]
fn empty_tensors_and_windows_compute_what_the_evaluator_says() {
    check(&empty());
}
