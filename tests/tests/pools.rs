//! Intermediate results in several memories of the caller: what the ordinary archives compute, under sanitizers and on emulated boards.

use mlc::pipeline::{self, CompileOptions, Compiled};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface, MemoryPool, Pools};
use mlc_ir::{Code, Diagnostic, Generator, Graph, Objective, Tensor, text};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::load;
use mlc_tests::firmware::{find, missing};
use mlc_tests::mode::Mode;
use mlc_tests::program::{Unpacked, hasty, main_source};
use mlc_tests::rows::RESIDUAL;

fn pool(name: &str, bytes: usize, is_slow: bool) -> MemoryPool {
    MemoryPool { name: name.into(), bytes, is_slow }
}

fn compile(graph: &Graph, mode: &Mode, pools: &[MemoryPool]) -> Result<Compiled, Vec<Diagnostic>> {
    let whose = if pools.is_empty() { Pools::Internal } else { Pools::External };
    let execution = Execution { pools: whose, ..Execution::default() };
    let (target, pools) = (mode.target.clone(), pools.to_vec());
    pipeline::compile(graph, &CompileOptions { target, execution, pools, ..CompileOptions::default() }, &mut |_, _| {})
}

fn run(compiled: &Compiled, mode: &Mode, inputs: &[Tensor]) -> Vec<Tensor> {
    let unpacked = Unpacked::new(&compiled.archive().unwrap()).unwrap();
    let program = unpacked.build(&main_source(&compiled.module), &mode.build).unwrap();
    program.run(inputs, &compiled.module.outputs).unwrap()
}

fn equal(found: &[Tensor], golden: &[Tensor], what: &str) {
    for (found, golden) in found.iter().zip(golden) {
        compare(found, golden, Tolerance::EXACT).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
}

fn modes() -> [Mode; 3] {
    let generic = Mode::generic(true);
    let board = Mode::microcontroller("cortex-m4", true).unwrap();
    [generic, board.clone(), board.with_objective(Objective::Ram)]
}

#[test]
fn divided_arenas_compute_the_same() {
    let case = find("net_mlperftiny_dscnn_kws").unwrap();
    let network = load(&case).unwrap().graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let residual = text::parse(RESIDUAL, &()).unwrap();
    let mut generator = Generator::new(5);
    let of = |graph: &Graph, generator: &mut Generator| -> Vec<Tensor> {
        graph.inputs().iter().map(|&input| generator.tensor(&graph.node(input).results[0])).collect()
    };
    let random = of(&residual, &mut generator);
    for (graph, inputs) in [(&network, &inputs), (&residual, &random)] {
        for mode in modes() {
            let ordinary = compile(graph, &mode, &[]).unwrap();
            let arena = ordinary.module.plan.arena_bytes;
            let golden = run(&ordinary, &mode, inputs);
            for share in [0, 3, 6] {
                let pools = [pool("psram", arena, true), pool("dtcm", arena * share / 10, false)];
                let compiled = compile(graph, &mode, &pools).unwrap();
                let what = format!("{} on {} with {share} tenths", graph.name, mode.name);
                equal(&run(&compiled, &mode, inputs), &golden, &what);
                let plan = &compiled.module.plan;
                let [slow, fast] = &plan.pools[..] else { panic!("{what}: {:?}", plan.pools) };
                assert!(fast.bytes <= arena * share / 10 && slow.bytes <= arena, "{what}");
                assert_eq!(slow.offset + slow.bytes + fast.bytes, plan.arena_bytes, "{what}");
                assert!(share < 6 || fast.bytes > 0, "{what}");
                eprintln!("{what}: {} of {arena} bytes are fast, {} slow", fast.bytes, slow.bytes);
            }
        }
    }
}

#[test]
fn boards_have_several_memories() {
    let machine = "cortex-m4";
    if let Some(reason) = missing(machine) {
        eprintln!("skipped on {machine}: {reason}");
        return;
    }
    let case = find("net_mlperftiny_dscnn_kws").unwrap();
    let graph = load(&case).unwrap().graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let mode = Mode::microcontroller(machine, false).unwrap();
    let program =
        |compiled: &Compiled| hasty(Toolchain::emulated(machine).unwrap()).build(&compiled.bundle().unwrap()).unwrap();
    let ordinary = program(&compile(&graph, &mode, &[]).unwrap()).run(&inputs).unwrap();
    let pools = [pool("dtcm", 12 << 10, false), pool("sram", 64 << 10, false), pool("psram", 1 << 20, true)];
    let divided = compile(&graph, &mode, &pools).unwrap();
    assert!(divided.module.plan.pools[0].bytes > 0 && divided.module.plan.pools[2].bytes == 0);
    equal(&program(&divided).run(&inputs).unwrap(), &ordinary, machine);
}

#[test]
fn what_does_not_fit_is_refused_with_figures() {
    let graph = text::parse(RESIDUAL, &()).unwrap();
    let mode = Mode::generic(false);
    let faults = compile(&graph, &mode, &[pool("dtcm", 256, false), pool("psram", 512, true)]).unwrap_err();
    assert_eq!(faults[0].code, Code::MemoryExceeded);
    assert!(faults[0].message.contains("'dtcm' has 256, 'psram' has 512"), "{faults:?}");
    for execution in [
        Execution { graph: true, pools: Pools::External, ..Execution::default() },
        Execution { aot: Some(Interface::Packed), ..Execution::default() },
    ] {
        let pools = vec![pool("psram", 1 << 20, true)];
        let options = CompileOptions { execution, pools, ..CompileOptions::default() };
        let faults = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap_err();
        assert!(faults[0].code == Code::OptionMismatch && faults[0].message.contains("several memories"), "{faults:?}");
    }
}
