//! Models whose input is given row by row: what the ordinary archives compute, bit by bit, under sanitizers, with rows in pieces of any size.

use mlc::pipeline::{self, CompileOptions, Compiled};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface, Limits, Pools, WeightsAs};
use mlc_ir::{Code, Diagnostic, Generator, Graph, Objective, Tensor, evaluate, text};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::load;
use mlc_tests::firmware::{find, missing, target};
use mlc_tests::micro;
use mlc_tests::mode::Mode;
use mlc_tests::program::{self, Unpacked};
use mlc_tests::rows::{BYTES, CHAIN, RESIDUAL};
use std::fmt::Write as _;

/// A network, with what it takes.
struct Network {
    name: String,
    graph: Graph,
    inputs: Vec<Tensor>,
}

impl Network {
    fn of_text(source: &str) -> Network {
        let graph = text::parse(source, &()).unwrap();
        let mut generator = Generator::new(9);
        let input = |&input: &_| generator.tensor(&graph.node(input).results[0]);
        let inputs = graph.inputs().iter().map(input).collect();
        Network { name: graph.name.to_string(), graph, inputs }
    }

    fn of_case(case: &mlc_tests::case::Case) -> Network {
        let inputs = case.inputs.iter().map(|input| input.value.clone()).collect();
        Network { name: case.name.clone(), graph: load(case).unwrap().graph, inputs }
    }

    /// MLPerf Tiny's networks in singles, whose channels come first, and, where the collection is at hand, in bytes.
    fn collection() -> Vec<Network> {
        let singles = ["net_mlperftiny_dscnn_kws", "net_mlperftiny_resnet8"];
        let mut cases: Vec<_> = singles.iter().map(|name| find(name).unwrap()).collect();
        let bytes = micro::NETWORKS.iter().filter(|network| ["kws01", "vww01"].contains(&network.name()));
        cases.extend(bytes.filter_map(micro::find));
        cases.iter().map(Network::of_case).collect()
    }

    fn compile(&self, options: &CompileOptions) -> Result<Compiled, Vec<Diagnostic>> {
        pipeline::compile(&self.graph, options, &mut |_, _| {})
    }

    /// The inputs as the compiled code wants them: pixels have their channels side by side.
    fn as_fed(&self, compiled: &Compiled) -> Vec<Tensor> {
        let ports = compiled.module.inputs.iter().zip(&self.inputs);
        ports
            .map(|(port, input)| if input.shape() == &port.ty.shape[..] { input.clone() } else { rows(input, port) })
            .collect()
    }
}

/// An image whose channels come first in the form of a port.
fn rows(input: &Tensor, port: &mlc_codegen::Port) -> Tensor {
    let source = match input.shape() {
        [1, channels, height, width] if *channels > 1 => format!(
            "mlc 1\ngraph @t(%x: {}[1, {channels}, {height}, {width}]) -> (\"y\": {}[1, {height}, {width}, {channels}]) {{\n  \
             %y = transpose %x {{permutation = [0, 2, 3, 1]}}\n  return %y\n}}\n",
            port.ty.dtype, port.ty.dtype
        ),
        _ => return Tensor::from_le_bytes(port.ty.clone(), &input.to_le_bytes()),
    };
    evaluate(&text::parse(&source, &()).unwrap(), std::slice::from_ref(input)).unwrap().remove(0)
}

/// A program that gives the rows of the first input to a model in pieces, each in memory of its own size, which is gone afterwards: one row
/// at a time, then as many as a seed says, with faults in between that must be told; and whole. All must give the same outputs.
fn main_source(compiled: &Compiled) -> String {
    let module = &compiled.module;
    let model = &module.model_name;
    let prefix = format!("TVMGEN_{}", model.to_ascii_uppercase());
    let rows = module.fed_rows().unwrap();
    let outputs: usize = module.outputs.iter().map(|port| port.ty.bytes()).sum();
    let is_external = module.execution.pools == Pools::External && module.plan.arena_bytes > 0;
    let (mut text, mut fields, mut offset) = (String::new(), String::new(), 0);
    for port in &module.outputs {
        let _ = writeln!(fields, "  outputs.{} = out + {offset};", port.field);
        offset += port.ty.bytes();
    }
    let _ = write!(
        text,
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include \"tvmgen_{model}.h\"\n\n\
         #define CHECK(condition) if (!(condition)) {{ fprintf(stderr, \"ERROR: line %d\\n\", __LINE__); return 1; }}\n\
         static unsigned char in[{}] __attribute__((aligned(64)));\n\
         static unsigned char out[3 * {outputs}] __attribute__((aligned(64)));\n\n\
         int main(int argc, char** argv) {{\n  struct tvmgen_{model}_feeding feeding;\n  \
         struct tvmgen_{model}_inputs inputs;\n  struct tvmgen_{model}_outputs outputs;\n  unsigned long random = 7;\n  int way;\n  \
         FILE* file;\n",
        rows.port.ty.bytes()
    );
    let pools = if is_external { ", &pools" } else { "" };
    if is_external {
        let _ = writeln!(
            text,
            "  static unsigned char arena[{}] __attribute__((aligned(64)));\n  \
             struct tvmgen_{model}_workspace_pools pools = {{ arena }};",
            module.plan.arena_bytes
        );
    }
    let finished = if is_external { "memset(arena, 0xA5, sizeof arena);" } else { "" };
    text + &format!(
        "  CHECK(argc == 3)\n  file = fopen(argv[1], \"rb\");\n  CHECK(file && fread(in, 1, sizeof in, file) == sizeof in)\n  fclose(file);\n  \
         inputs.{input} = in;\n  for (way = 0; way < 2; ++way) {{\n    size_t row = 0;\n    unsigned char* const out_of_way = out + way * {outputs};\n\
         #define out out_of_way\n{fields}#undef out\n    {finished}\n    \
         CHECK(tvmgen_{model}_begin(&feeding, &outputs{pools}) == 0)\n    \
         while (row < {prefix}_FEED_ROWS) {{\n      size_t count = 1;\n      unsigned char* piece;\n      \
         CHECK(tvmgen_{model}_finish(&feeding) == {prefix}_FEED_ROWS_MISSING)\n      \
         CHECK(tvmgen_{model}_feed(&feeding, in, {prefix}_FEED_ROWS - row + 1) == {prefix}_FEED_TOO_MANY_ROWS)\n      \
         CHECK(tvmgen_{model}_feed(&feeding, in, (size_t)-1) == {prefix}_FEED_TOO_MANY_ROWS)\n      \
         if (way == 1) {{\n        random = random * 1103515245ul + 12345ul;\n        \
         count = (size_t)(random >> 16) % (random % 3 == 0 ? 40u : 5u);\n        \
         if (count > {prefix}_FEED_ROWS - row) {{\n          count = {prefix}_FEED_ROWS - row;\n        }}\n      }}\n      \
         /* Elements are aligned, and nothing else is. */\n      piece = malloc(count * {prefix}_FEED_ROW_SIZE + {size});\n      CHECK(piece)\n      \
         memcpy(piece + {size}, in + row * {prefix}_FEED_ROW_SIZE, count * {prefix}_FEED_ROW_SIZE);\n      \
         CHECK(tvmgen_{model}_feed(&feeding, piece + {size}, count) == 0)\n      free(piece);\n      row += count;\n    }}\n    \
         CHECK(tvmgen_{model}_finish(&feeding) == 0)\n    CHECK(tvmgen_{model}_finish(&feeding) == {prefix}_FEED_ROWS_MISSING)\n    \
         CHECK(tvmgen_{model}_feed(&feeding, in, 1) == {prefix}_FEED_TOO_MANY_ROWS)\n  }}\n  \
         {{\n    unsigned char* const whole = out + 2 * {outputs};\n#define out whole\n{fields}#undef out\n  }}\n  \
         CHECK(tvmgen_{model}_run(&inputs, &outputs{pools}) == 0)\n  \
         CHECK(memcmp(out, out + {outputs}, {outputs}) == 0)\n  CHECK(memcmp(out, out + 2 * {outputs}, {outputs}) == 0)\n  \
         file = fopen(argv[2], \"wb\");\n  CHECK(file && fwrite(out, 1, {outputs}, file) == {outputs})\n  return fclose(file);\n}}\n",
        input = rows.port.field,
        size = rows.port.ty.dtype.size(),
    )
}

/// Runs a program around what was compiled, built as a mode says.
fn run(compiled: &Compiled, main: &str, mode: &Mode, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let unpacked = Unpacked::new(&compiled.archive().unwrap())?;
    unpacked.build(main, &mode.build)?.run(inputs, &compiled.module.outputs)
}

fn options(mode: &Mode, execution: Execution) -> CompileOptions {
    CompileOptions { target: mode.target.clone(), execution, ..CompileOptions::default() }
}

const FED: Execution = Execution {
    aot: Some(Interface::C),
    graph: false,
    pools: Pools::Internal,
    states: Pools::Internal,
    feed: Some(0),
    typed_pointers: false,
    weights: WeightsAs::C,
    threads: 1,
};

/// Compiles a network for a mode with its rows one after the other, and compares it with its ordinary archive.
fn check(network: &Network, mode: &Mode, execution: Execution) {
    let ordinary = network.compile(&options(mode, Execution::default())).unwrap();
    let fed =
        network.compile(&options(mode, execution)).unwrap_or_else(|faults| panic!("{}: {faults:?}", network.name));
    let golden = run(&ordinary, &program::main_source(&ordinary.module), mode, &network.inputs).unwrap();
    let found = run(&fed, &main_source(&fed), mode, &network.as_fed(&fed));
    let found = found.unwrap_or_else(|fault| panic!("{} on {}: {fault}", network.name, mode.name));
    for (found, golden) in found.iter().zip(&golden) {
        let same = compare(found, golden, Tolerance::EXACT);
        same.unwrap_or_else(|fault| panic!("{} on {}: {fault}", network.name, mode.name));
    }
    let (own, whole) = (mlc_codegen::ram_bytes(&fed.module), mlc_codegen::ram_bytes(&ordinary.module));
    eprintln!("{} on {}: {own} bytes of RAM instead of {whole}", network.name, mode.name);
    assert!(own < whole, "{} on {}: {own} instead of {whole} bytes", network.name, mode.name);
}

fn modes() -> Vec<Mode> {
    let boards = ["cortex-m4", "cortex-m0plus"].into_iter().filter_map(|name| Mode::microcontroller(name, true));
    let modes = [Mode::generic(true), Mode::host(true)].into_iter().chain(boards);
    modes.map(|mode| mode.with_objective(Objective::Ram)).collect()
}

#[test]
fn rows_in_any_pieces_give_the_same() {
    for source in [CHAIN, RESIDUAL, BYTES] {
        let network = Network::of_text(source);
        modes().iter().for_each(|mode| check(&network, mode, FED));
    }
}

#[test]
fn networks_are_fed() {
    let [generic, _, board, ..] = &modes()[..] else { panic!("there are fewer modes") };
    for network in Network::collection() {
        check(&network, board, FED);
        // Sanitized, it is the largest networks that take time.
        if network.inputs[0].ty().elements() < 1000 {
            check(&network, generic, Execution { pools: Pools::External, ..FED });
        }
    }
}

#[test]
fn boards_are_fed_row_by_row() {
    let machine = "cortex-m4";
    if let Some(reason) = missing(machine) {
        eprintln!("skipped on {machine}: {reason}");
        return;
    }
    let toolchain = Toolchain::emulated(machine).unwrap();
    let program = |compiled: &Compiled| toolchain.build(&compiled.bundle().unwrap()).unwrap();
    for network in Network::collection() {
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let ram = CompileOptions { target: options.target.clone().with_objective(Objective::Ram), ..options };
        let ordinary = network.compile(&ram).unwrap();
        let fed = network.compile(&CompileOptions { execution: FED, ..ram }).unwrap();
        let (golden, whole) = program(&ordinary).run_counted(&network.inputs).unwrap();
        let (found, own) = program(&fed).run_counted(&network.as_fed(&fed)).unwrap();
        for (found, golden) in found.iter().zip(&golden) {
            let same = compare(found, golden, Tolerance::EXACT);
            same.unwrap_or_else(|fault| panic!("{} on {machine}: {fault}", network.name));
        }
        let [own, whole] = [own, whole].map(|cost| cost.unwrap().instructions);
        eprintln!("{} on {machine}: {own} instructions instead of {whole}", network.name);
        assert!(own * 100 <= whole * 110, "{}: {own} instructions instead of {whole}", network.name);
    }
}

/// The RAM that a limit allows has one row of the input.
#[test]
fn limits_count_a_row() {
    let network = Network::of_text(RESIDUAL);
    let mode = Mode::microcontroller("cortex-m4", false).unwrap();
    let smallest = network.compile(&options(&mode.clone().with_objective(Objective::Ram), FED)).unwrap();
    let least = mlc_codegen::ram_bytes(&smallest.module);
    let row = smallest.module.fed_rows().unwrap().row_bytes;
    assert_eq!(least, smallest.module.plan.arena_bytes + row + smallest.module.outputs[0].ty.bytes());
    let within = |ram_bytes| {
        let limits = Limits { ram_bytes: Some(ram_bytes), ..Limits::default() };
        network.compile(&CompileOptions { limits, ..options(&mode, FED) })
    };
    within(least).unwrap();
    let faults = within(least - 1).unwrap_err();
    assert_eq!(faults[0].code, Code::MemoryExceeded);
    let named = mlc_codegen::ram_contributors(&smallest.module);
    assert!(named.iter().any(|own| own.what == "a row of input 'x'" && own.bytes == row), "{named:?}");
}

#[test]
fn what_cannot_be_fed_is_told_by_name() {
    let graph = |body: &str, result: &str| {
        format!("mlc 1\ngraph @g(%x: f32[1, 8, 8, 2]) -> (\"y\": f32{result}) {{\n{body}  return %y\n}}\n")
    };
    let flat = "  %r = reshape %x {shape = [1, 128]}\n  %w = constant f32[128, 4] random(seed = 1)\n  \
                %y = matmul %r, %w {transpose_left = false, transpose_right = false}\n";
    let turned = "  %t = transpose %x {permutation = [0, 2, 1, 3]}\n  %y = binary %t, %x {function = add}\n";
    let all = "  %m = max_pool %x {window = [8, 8], strides = [8, 8], dilations = [1, 1], pads = [[0, 0], [0, 0]]}\n  \
               %y = binary %x, %m {function = add}\n";
    for (body, result, reason) in [
        (flat, "[1, 4]", "the input 'x' has no rows: it is read as f32[1, 128]"),
        (turned, "[1, 8, 8, 2]", "the input 'x' can't be given row by row"),
        (all, "[1, 8, 8, 2]", "the input 'x' can't be given row by row"),
    ] {
        let network = Network::of_text(&graph(body, result));
        let faults = network.compile(&options(&Mode::generic(false), FED)).unwrap_err();
        assert!(faults[0].code == Code::InputNotFed && faults[0].message.contains(reason), "{faults:?}");
    }
    let network = Network::of_text(CHAIN);
    for (execution, reason) in [
        (Execution { graph: true, ..FED }, "only the C interface takes an input row by row"),
        (Execution { aot: Some(Interface::Packed), ..FED }, "only the C interface takes an input row by row"),
        (Execution { threads: 2, ..FED }, "rows that come one by one are computed by one thread"),
    ] {
        let faults = network.compile(&options(&Mode::generic(false), execution)).unwrap_err();
        assert!(faults[0].code == Code::OptionMismatch && faults[0].message == reason, "{faults:?}");
    }
}
