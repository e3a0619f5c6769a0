//! Weights that are copied into working memory ahead of the kernels that read them: by hooks that copy as late as they may, and destroy what
//! lies in the place from the beginning of a copy on, archives compute what ordinary ones do.

use mlc::pipeline::{self, CompileOptions, Compiled};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, MemoryPool, Pools};
use mlc_ir::{Code, Graph, Objective, Tensor};
use mlc_tests::case::Case;
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::load;
use mlc_tests::firmware::missing;
use mlc_tests::mode::Mode;
use mlc_tests::paths;
use mlc_tests::program::{Unpacked, main_source};

/// A channel for memory that copies nothing before it is waited for, or, in programs that are run without `LATE`, at once.
const CHANNEL: &str = "
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static struct { void *to; const void *from; uint32_t bytes; } queue[64];
static int waiting;
void on_fetch(void *to, const void *from, uint32_t bytes);
void on_fetched(void);
void on_fetch(void *to, const void *from, uint32_t bytes) {
  if (getenv(\"LATE\") == NULL) {
    memcpy(to, from, bytes);
    return;
  }
  memset(to, 0xA5, bytes);
  queue[waiting].to = to;
  queue[waiting].from = from;
  queue[waiting].bytes = bytes;
  ++waiting;
}
void on_fetched(void) {
  for (int k = 0; k < waiting; ++k) {
    memcpy(queue[k].to, queue[k].from, queue[k].bytes);
  }
  waiting = 0;
}
";

fn compile(graph: &Graph, options: CompileOptions) -> Compiled {
    pipeline::compile(graph, &options, &mut |_, _| {}).unwrap()
}

fn run(compiled: &Compiled, mode: &Mode, inputs: &[Tensor]) -> Vec<Tensor> {
    let unpacked = Unpacked::new(&compiled.archive().unwrap()).unwrap();
    let program = unpacked.build(&main_source(&compiled.module), &mode.build).unwrap();
    program.run(inputs, &compiled.module.outputs).unwrap()
}

/// What a program with [`CHANNEL`] computes where that copies at once, and where it copies late.
fn run_hooked(compiled: &Compiled, mode: &Mode, inputs: &[Tensor]) -> [Vec<Tensor>; 2] {
    let mode = mode.clone().with_flags(["-DTVMGEN_DEFAULT_FETCH=on_fetch", "-DTVMGEN_DEFAULT_FETCHED=on_fetched"]);
    let unpacked = Unpacked::new(&compiled.archive().unwrap()).unwrap();
    let program = unpacked.build(&(main_source(&compiled.module) + CHANNEL), &mode.build).unwrap();
    let outputs = &compiled.module.outputs;
    [&[][..], &[("LATE", "1")]].map(|variables| program.run_with(variables, inputs, outputs).unwrap())
}

fn equal(found: &[Tensor], golden: &[Tensor], what: &str) {
    for (found, golden) in found.iter().zip(golden) {
        compare(found, golden, Tolerance::EXACT).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
}

/// Another plan may sum up in another order.
fn right(found: &[Tensor], case: &Case, what: &str) {
    for (found, golden) in found.iter().zip(&case.outputs) {
        let whole = case.whole_tolerance.filter(|_| golden.value.ty().dtype.is_integer());
        let tolerance = whole.unwrap_or(case.tolerance);
        compare(found, &golden.value, tolerance).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
}

/// Bytes of the constants that a program copies, and how often it waits for them.
fn copied(compiled: &Compiled) -> (usize, usize) {
    let buffers = compiled.module.plan.buffers.iter();
    let bytes = buffers.filter(|buffer| buffer.values[0].starts_with("fetched ")).map(|buffer| buffer.bytes).sum();
    let text = &compiled.module.sources[0].text;
    (bytes, text.matches("  TVMGEN_DEFAULT_FETCHED();").count())
}

/// Networks of plain kernels, of rows in rings, of bytes, and with a loop.
const NETWORKS: [&str; 4] = [
    "pnnx/net_mlperftiny_dscnn_kws",
    "pnnx/net_mlperftiny_resnet8",
    "onnx/quantized_network_qdq",
    "onnx/loop_100_turns_captured",
];

fn case(name: &str) -> Case {
    Case::read(&paths::data().join(name)).unwrap()
}

#[test]
fn late_copies_are_in_time_and_destroy_nothing() {
    let mut waits = 0;
    for name in NETWORKS {
        let case = case(name);
        let graph = load(&case).unwrap().graph;
        let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
        let board = Mode::microcontroller("cortex-m4", true).unwrap();
        for mode in [Mode::generic(true), board.clone(), board.with_objective(Objective::Ram)] {
            let options = || CompileOptions { target: mode.target.clone(), ..CompileOptions::default() };
            for least in [4, 4096] {
                let what = format!("{name} on {}, from {least} bytes on", mode.name);
                let compiled = compile(&graph, CompileOptions { fetched_bytes: Some(least), ..options() });
                let [at_once, late] = run_hooked(&compiled, &mode, &inputs);
                right(&at_once, &case, &what);
                equal(&late, &at_once, &what);
                waits += copied(&compiled).1;
            }
        }
    }
    assert!(waits > 60, "{waits}");
}

#[test]
fn constants_of_two_parts_lie_in_memory_at_a_time() {
    let graph = load(&case(NETWORKS[0])).unwrap().graph;
    let target = mlc::targets::find("cortex-m7").unwrap().with_objective(Objective::Speed);
    let options = || CompileOptions { target: target.clone(), ..CompileOptions::default() };
    let (whole, fetched) =
        (compile(&graph, options()), compile(&graph, CompileOptions { fetched_bytes: Some(1024), ..options() }));
    assert_eq!(copied(&whole), (0, 0));
    assert!(!whole.module.sources[0].text.contains("FETCH"));
    let (bytes, waits) = copied(&fetched);
    // Each of the four pointwise convolutions has 16 KiB of weights.
    assert!(bytes >= 4 * 16384 && waits >= 4, "{bytes} bytes, {waits} waits");
    let more = fetched.module.plan.arena_bytes - whole.module.plan.arena_bytes;
    assert!((16384..=2 * 16384 + 8192).contains(&more), "{more} of {bytes} bytes");
}

#[test]
fn fetched_weights_lie_in_pools() {
    let case = case(NETWORKS[0]);
    let graph = load(&case).unwrap().graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let mode = Mode::microcontroller("cortex-m4", true).unwrap();
    let pool = |name: &str, bytes: usize, is_slow: bool| MemoryPool { name: name.into(), bytes, is_slow };
    let pools = vec![pool("psram", 1 << 20, true), pool("dtcm", 48 << 10, false)];
    let execution = Execution { pools: Pools::External, ..Execution::default() };
    let options = || CompileOptions { target: mode.target.clone(), ..CompileOptions::default() };
    let divided = compile(&graph, CompileOptions { execution, pools, fetched_bytes: Some(1024), ..options() });
    right(&run(&divided, &mode, &inputs), &case, "in pools");
    let [_, fast] = &divided.module.plan.pools[..] else { panic!("{:?}", divided.module.plan.pools) };
    let buffers = divided.module.plan.buffers.iter();
    let (in_fast, in_slow): (Vec<_>, Vec<_>) = buffers
        .filter(|buffer| buffer.values[0].starts_with("fetched "))
        .partition(|buffer| buffer.offset >= fast.offset);
    assert!(!in_fast.is_empty(), "{in_slow:?}");
}

#[test]
fn rows_come_one_by_one_beside_fetched_weights() {
    let case = case(NETWORKS[1]);
    let graph = load(&case).unwrap().graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let mode = Mode::microcontroller("cortex-m4", true).unwrap();
    let execution = Execution { feed: Some(0), ..Execution::default() };
    let (target, fetched_bytes) = (mode.target.clone(), Some(1024));
    let compiled = compile(&graph, CompileOptions { target, execution, fetched_bytes, ..CompileOptions::default() });
    // Rows have their pixels' channels side by side; which numbers they hold doesn't matter here.
    let unhooked = run(&compiled, &mode, &inputs);
    for hooked in run_hooked(&compiled, &mode, &inputs) {
        equal(&hooked, &unhooked, "fed");
    }
    assert!(copied(&compiled).1 > 1);
}

#[test]
fn boards_fetch_weights() {
    let machine = "cortex-m7";
    if let Some(reason) = missing(machine) {
        eprintln!("skipped on {machine}: {reason}");
        return;
    }
    let case = case(NETWORKS[0]);
    let graph = load(&case).unwrap().graph;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let mode = Mode::microcontroller(machine, false).unwrap();
    let (target, fetched_bytes) = (mode.target.clone(), Some(1024));
    let bundle =
        compile(&graph, CompileOptions { target, fetched_bytes, ..CompileOptions::default() }).bundle().unwrap();
    let program = Toolchain::emulated(machine).unwrap().build(&bundle).unwrap();
    right(&program.run(&inputs).unwrap(), &case, machine);
}

#[test]
fn the_graph_executor_fetches_nothing() {
    let graph = load(&case(NETWORKS[0])).unwrap().graph;
    let execution = Execution { graph: true, ..Execution::default() };
    let options = CompileOptions { execution, fetched_bytes: Some(1024), ..CompileOptions::default() };
    let faults = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap_err();
    assert!(faults[0].code == Code::OptionMismatch && faults[0].message.contains("graph executor"), "{faults:?}");
}
