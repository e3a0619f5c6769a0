//! Networks that are computed row by row where memory counts: what the evaluator computes, under sanitizers, in a fraction of the memory.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface, Limits, Target};
use mlc_ir::{Generator, Graph, Objective, Tensor, evaluate, text};
use mlc_tests::case::Case;
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::{Compiled, compile_kernels};
use mlc_tests::firmware::{build, find, measure_for, missing, target};
use mlc_tests::mode::Mode;
use mlc_tests::program::{Unpacked, main_source};
use mlc_tests::rows::{BYTES, CHAIN, MASKED, RESIDUAL};

/// Runs what was compiled in a mode.
fn run(compiled: &Compiled, mode: &Mode, inputs: &[Tensor]) -> Vec<Tensor> {
    let unpacked = Unpacked::new(&compiled.archive).unwrap();
    let program = unpacked.build(&main_source(&compiled.module), &mode.build).unwrap();
    program.run(inputs, &compiled.module.outputs).unwrap()
}

fn modes() -> Vec<Mode> {
    let boards = ["cortex-m4", "cortex-m0plus"].into_iter().filter_map(|name| Mode::microcontroller(name, true));
    [Mode::generic(true), Mode::host(true)].into_iter().chain(boards).collect()
}

fn compiled(graph: &Graph, target: &Target) -> Compiled {
    compile_kernels(graph, "test", target).unwrap_or_else(|errors| panic!("{errors:?}"))
}

#[test]
fn stripes_compute_the_same_in_a_fraction_of_the_memory() {
    for (source, share) in [(CHAIN, 3), (RESIDUAL, 2), (BYTES, 2), (MASKED, 1)] {
        let graph = text::parse(source, &()).unwrap();
        let input = Generator::new(9).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for mode in modes() {
            let plain = compiled(&graph, &mode.target.clone().with_objective(Objective::Speed));
            let mode = mode.with_objective(Objective::Ram);
            let stripes = compiled(&graph, &mode.target);
            let (own, whole) = (stripes.module.plan.arena_bytes, plain.module.plan.arena_bytes);
            assert!(own * share <= whole, "{} on {}: {own} bytes instead of {whole}", graph.name, mode.name);
            let outputs = run(&stripes, &mode, std::slice::from_ref(&input));
            for (found, golden) in outputs.iter().zip(&expected) {
                let is_float = golden.ty().dtype.is_float();
                // Sums cancel: they are as exact as the largest of them.
                let largest = golden.to_floats().into_iter().map(f64::abs).fold(0.0, f64::max);
                let near = Tolerance { absolute: 2e-6 * largest, relative: 0.0 };
                let tolerance = if is_float { near } else { Tolerance::EXACT };
                let same = compare(found, golden, tolerance);
                same.unwrap_or_else(|fault| panic!("{} on {}: {fault}", graph.name, mode.name));
            }
        }
    }
}

/// Networks with the bytes of arena that they may take.
const NETWORKS: [(&str, usize); 2] = [("net_mlperftiny_dscnn_kws", 22_700), ("net_mlperftiny_resnet8", 53_000)];

#[test]
fn executors_run_stripes() {
    for (name, bytes) in NETWORKS {
        let case = find(name).unwrap();
        let loaded = mlc_tests::compile::load(&case).unwrap();
        let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
        let aot = |interface| Execution { aot: Some(interface), ..Execution::default() };
        let graph = Execution { aot: None, graph: true, ..Execution::default() };
        let both = Execution { graph: true, ..Execution::default() };
        for execution in [aot(Interface::C), aot(Interface::Packed), graph, both] {
            let target = Target::generic().with_objective(Objective::Ram);
            let options = CompileOptions { target, execution, ..CompileOptions::default() };
            let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
            let arena = compiled.module.plan.arena_bytes;
            assert!(arena <= bytes, "{name}: {arena} bytes");
            let program = Toolchain::default().build(&compiled.bundle().unwrap()).unwrap();
            for (output, golden) in program.run(&inputs).unwrap().iter().zip(&case.outputs) {
                let same = compare(output, &golden.value, case.tolerance);
                same.unwrap_or_else(|fault| panic!("{name} under {execution:?}: {fault}"));
            }
        }
    }
}

#[test]
fn boards_run_stripes() {
    let machine = "cortex-m4";
    if let Some(reason) = missing(machine) {
        eprintln!("skipped on {machine}: {reason}");
        return;
    }
    for (name, bytes) in NETWORKS {
        let case = find(name).unwrap();
        let [ram, speed] =
            [Objective::Ram, Objective::Speed].map(|objective| measure_for(&case, machine, objective).unwrap());
        assert!(ram.arena_bytes <= bytes, "{name}: {} bytes", ram.arena_bytes);
        let (own, least) = (ram.cost.instructions, speed.cost.instructions);
        assert!(own * 100 <= least * 108, "{name}: {own} instructions instead of {least}");
        eprintln!(
            "{name}: {own} instructions and {} bytes of arena instead of {least} and {}",
            ram.arena_bytes, speed.arena_bytes
        );
    }
}

/// Kernels of a stripe don't run in the order in which they are listed.
#[test]
fn kernels_of_stripes_are_measured_one_by_one() {
    let machine = "cortex-m4";
    if let Some(reason) = missing(machine) {
        eprintln!("skipped on {machine}: {reason}");
        return;
    }
    let case = find(NETWORKS[0].0).unwrap();
    let built = build(&case, machine, machine).unwrap();
    let kernels = &built.compiled.module.kernels;
    assert!(kernels.iter().any(|kernel| kernel.inside > 0), "there is no stripe");
    let program = Toolchain::emulated(machine).unwrap().build_to_profile(&built.compiled.bundle().unwrap()).unwrap();
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let measured = program.bench_kernels(&inputs, 1).unwrap();
    let total = built.program.bench(&inputs, 1).unwrap()[0];
    let sum: u64 = measured.iter().sum();
    assert!(sum.abs_diff(total) * 50 < total, "{sum} instructions of {total}");
    let large = kernels.iter().zip(measured).filter(|(kernel, _)| kernel.price.time * 20 > total);
    for (kernel, count) in large {
        let predicted = kernel.price.time;
        assert!(count.abs_diff(predicted) * 4 < predicted, "{}: {count} instead of {predicted}", kernel.function);
    }
}

/// Predicted and measured time of a network in a program that takes no more than so many bytes of RAM.
fn times(case: &Case, machine: &str, ram_bytes: Option<usize>) -> (u64, u64) {
    let target = target(machine).unwrap().with_objective(Objective::Speed);
    let limits = Limits { ram_bytes, ..Limits::default() };
    let loaded = mlc_tests::compile::load(case).unwrap();
    let options = CompileOptions { target, limits, ..CompileOptions::default() };
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
    let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let predicted = compiled.module.kernels.iter().map(|kernel| kernel.price.time).sum();
    (predicted, program.bench(&inputs, 1).unwrap()[0])
}

#[test]
fn programs_within_a_limit_take_what_their_price_says() {
    for machine in ["cortex-m4", "riscv32"] {
        if let Some(reason) = missing(machine) {
            eprintln!("skipped on {machine}: {reason}");
            continue;
        }
        for (name, bytes) in NETWORKS {
            let case = find(name).unwrap();
            // Inputs and outputs come on top.
            let limits = [None, Some(bytes + (13 << 10))];
            for (predicted, measured) in limits.map(|limit| times(&case, machine, limit)) {
                eprintln!("{name} on {machine}: {predicted} predicted, {measured} measured");
                assert!(predicted.abs_diff(measured) * 10 <= measured, "{name} on {machine}: {predicted}, {measured}");
            }
        }
    }
}
