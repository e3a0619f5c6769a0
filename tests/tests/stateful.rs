//! Models that keep their states: a stream in pieces gives what the whole gives, and a reset starts anew.

use mlc::pipeline::{self, CompileOptions};
use mlc_codegen::{Execution, Pools, Port};
use mlc_ir::stateful;
use mlc_ir::{Generator, Graph, Tensor, TensorType, evaluate, evaluate_runs, text, verify};
use mlc_tests::compile::compile_graph;
use mlc_tests::mode::Mode;
use mlc_tests::program::Unpacked;

/// A projection, an lstm from a state that isn't 0, and a gru over its sequence.
const LAYERS: &str = "mlc 1
graph @stream(%x: f32[STEPS, 1, 5]) -> (\"y\": f32[STEPS, 1, 3]) {
  %w = constant f32[5, 16] random(seed = 1)
  %p = matmul %x, %w {transpose_left = false, transpose_right = false}
  %r = constant f32[4, 16] random(seed = 2)
  %b = constant f32[16] random(seed = 3)
  %h = constant f32[1, 4] random(seed = 4)
  %l = recurrent %p, %r, %b, %h, %h {cell = lstm, activations = [sigmoid(x0), tanh(x0), tanh(x0)], reverse = false, with = []}
  %v = constant f32[4, 9] random(seed = 5)
  %q = matmul %l, %v {transpose_left = false, transpose_right = false}
  %s = constant f32[3, 9] random(seed = 6)
  %c = constant f32[9] random(seed = 7)
  %zero = constant f32[] [0.0]
  %g = broadcast %zero {shape = [1, 3]}
  %y = recurrent %q, %s, %c, %g {cell = gru, activations = [sigmoid(x0), tanh(x0)], reverse = false, with = []}
  return %y
}
";

const WHOLE: usize = 6;
const PIECE: usize = 2;

fn graph(steps: usize) -> Graph {
    let graph =
        text::parse(&LAYERS.replace("STEPS", &steps.to_string()), &()).unwrap_or_else(|faults| panic!("{faults:?}"));
    verify(&graph).unwrap();
    graph
}

fn piece() -> Graph {
    let mut graph = graph(PIECE);
    assert!(stateful::keep_recurrent_states(&mut graph).unwrap().is_empty());
    verify(&graph).unwrap();
    graph
}

/// The whole stream, its pieces, and the outputs of the whole.
fn stream() -> (Tensor, Vec<Vec<Tensor>>, Tensor) {
    let x = Generator::new(1).tensor(&TensorType::new(mlc_ir::DType::F32, [WHOLE, 1, 5]));
    let values = x.to_floats();
    let ty = TensorType::new(mlc_ir::DType::F32, [PIECE, 1, 5]);
    let pieces = values.chunks(PIECE * 5).map(|chunk| vec![Tensor::from_floats(ty.clone(), chunk.to_vec())]);
    let pieces = pieces.collect();
    let y = evaluate(&graph(WHOLE), std::slice::from_ref(&x)).unwrap().remove(0);
    (x, pieces, y)
}

fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn pieces_of_a_stream_are_evaluated_like_the_whole() {
    let (_, pieces, y) = stream();
    let outputs = evaluate_runs(&piece(), &pieces).unwrap();
    let found: Vec<f64> = outputs.iter().flat_map(|outputs| outputs[0].to_floats()).collect();
    close(&found, &y.to_floats());
    let names: Vec<String> = piece().states.iter().map(|state| state.name.to_string()).collect();
    assert_eq!(names, ["l.hidden", "l.cell", "y.hidden"]);
}

/// Reads the whole stream, runs the pieces in a row, then resets and runs the first one again.
const MAIN: &str = "#include <stdio.h>
#include \"tvmgen_default.h\"
static float x[PIECES][PIECE * 5], y[PIECES][PIECE * 3], again[PIECE * 3];
int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[1], \"rb\") : NULL;
  if (!file || fread(x, 1, sizeof x, file) != sizeof x) return 2;
  fclose(file);
  for (int k = 0; k < PIECES; ++k) {
    struct tvmgen_default_inputs inputs = {x[k]};
    struct tvmgen_default_outputs outputs = {y[k]};
    if (tvmgen_default_run(&inputs, &outputs) != 0) return 3;
  }
  struct tvmgen_default_inputs inputs = {x[0]};
  struct tvmgen_default_outputs outputs = {again};
  if (tvmgen_default_reset() != 0 || tvmgen_default_run(&inputs, &outputs) != 0) return 3;
  file = fopen(argv[2], \"wb\");
  if (!file || fwrite(y, 1, sizeof y, file) != sizeof y || fwrite(again, 1, sizeof again, file) != sizeof again) return 2;
  return fclose(file) == 0 ? 0 : 2;
}
";

#[test]
fn generated_code_goes_on_where_the_last_run_ended_until_it_is_reset() {
    let (x, _, y) = stream();
    let main = MAIN.replace("PIECES", &(WHOLE / PIECE).to_string()).replace("PIECE", &PIECE.to_string());
    for mode in [Mode::generic(true), Mode::host(true)] {
        let compiled = compile_graph(&piece(), "default", &mode.target).unwrap_or_else(|faults| panic!("{faults:?}"));
        let module = &compiled.module;
        assert_eq!((module.inputs.len(), module.outputs.len(), module.state_bytes()), (1, 1, 4 * (4 + 4 + 3)));
        let unpacked = Unpacked::new(&compiled.archive).unwrap();
        let read = |path: &str| std::fs::read_to_string(unpacked.path().join(path)).unwrap();
        assert!(read("metadata.json").contains("\"state_size_bytes\": 44"));
        assert!(read("codegen/host/include/tvmgen_default.h").contains("#define TVMGEN_DEFAULT_STATE_SIZE 44"));
        assert!(read("src/default.json").contains("\"name\": \"l.cell\""));
        let program = unpacked.build(&main, &mode.build).unwrap_or_else(|error| panic!("{error}"));
        let port =
            |steps: usize| Port { ty: TensorType::new(mlc_ir::DType::F32, [steps, 1, 3]), ..module.outputs[0].clone() };
        let outputs = program.run(std::slice::from_ref(&x), &[port(WHOLE), port(PIECE)]).unwrap();
        close(&outputs[0].to_floats(), &y.to_floats());
        assert_eq!(outputs[1].to_floats(), outputs[0].to_floats()[..PIECE * 3]);
    }
}

/// Runs pieces of two streams in turns, then begins the first anew. The header says whether memory is the caller's, who gives each
/// stream a place for its states, and both the same arena.
const TWO_STREAMS: &str = "#include <stdio.h>
#include <string.h>
#include \"tvmgen_default.h\"
static float x[2][PIECES][PIECE * 5], y[2][PIECES][PIECE * 3], again[PIECE * 3];
#ifdef TVMGEN_DEFAULT_STATE_ALIGNMENT
#define ALIGNED __attribute__((aligned(TVMGEN_DEFAULT_STATE_ALIGNMENT)))
static uint8_t first[TVMGEN_DEFAULT_STATE_SIZE] ALIGNED, second[TVMGEN_DEFAULT_STATE_SIZE] ALIGNED;
static struct tvmgen_default_workspace_pools pools[2];
#define POOLS(k) &pools[k]
#define AND_POOLS(k) , &pools[k]
#else
#define POOLS(k)
#define AND_POOLS(k)
#endif
#ifdef TVMGEN_DEFAULT_GLOBAL_WORKSPACE_WORKSPACE_POOL_SIZE
static uint8_t arena[TVMGEN_DEFAULT_GLOBAL_WORKSPACE_WORKSPACE_POOL_SIZE] __attribute__((aligned(64)));
#endif
int main(int argc, char **argv) {
  FILE *file = argc == 3 ? fopen(argv[1], \"rb\") : NULL;
  if (!file || fread(x, 1, sizeof x, file) != sizeof x) return 2;
  fclose(file);
#ifdef TVMGEN_DEFAULT_GLOBAL_WORKSPACE_WORKSPACE_POOL_SIZE
  pools[0].global_workspace = pools[1].global_workspace = arena;
#endif
#ifdef TVMGEN_DEFAULT_STATE_ALIGNMENT
  memset(first, 0x7f, sizeof first);
  memset(second, 0x7f, sizeof second);
  pools[0].global_state_workspace = first;
  pools[1].global_state_workspace = second;
  if (tvmgen_default_reset(&pools[0]) != 0 || tvmgen_default_reset(&pools[1]) != 0) return 3;
#endif
  for (int k = 0; k < 2 * PIECES; ++k) {
    struct tvmgen_default_inputs inputs = {x[k % 2][k / 2]};
    struct tvmgen_default_outputs outputs = {y[k % 2][k / 2]};
    if (tvmgen_default_run(&inputs, &outputs AND_POOLS(k % 2)) != 0) return 3;
  }
  struct tvmgen_default_inputs inputs = {x[0][0]};
  struct tvmgen_default_outputs outputs = {again};
  if (tvmgen_default_reset(POOLS(0)) != 0 || tvmgen_default_run(&inputs, &outputs AND_POOLS(0)) != 0) return 3;
  file = fopen(argv[2], \"wb\");
  if (!file || fwrite(y, 1, sizeof y, file) != sizeof y || fwrite(again, 1, sizeof again, file) != sizeof again) return 2;
  return fclose(file) == 0 ? 0 : 2;
}
";

#[test]
fn streams_with_states_of_their_own_run_in_turns() {
    let streams = [1, 2].map(|seed| Generator::new(seed).tensor(&TensorType::new(mlc_ir::DType::F32, [WHOLE, 1, 5])));
    let alone = |x: &Tensor| evaluate(&graph(WHOLE), std::slice::from_ref(x)).unwrap()[0].to_floats();
    let expected: Vec<f64> = streams.iter().flat_map(alone).collect();
    let values: Vec<f64> = streams.iter().flat_map(Tensor::to_floats).collect();
    let x = Tensor::from_floats(TensorType::new(mlc_ir::DType::F32, [2, WHOLE, 1, 5]), values);
    let main = TWO_STREAMS.replace("PIECES", &(WHOLE / PIECE).to_string()).replace("PIECE", &PIECE.to_string());
    let strict = Mode::generic(true);
    for (pools, states) in
        [(Pools::Internal, Pools::Internal), (Pools::Internal, Pools::External), (Pools::External, Pools::External)]
    {
        let execution = Execution { pools, states, ..Execution::default() };
        let options = CompileOptions { target: strict.target.clone(), execution, ..CompileOptions::default() };
        let compiled = pipeline::compile(&piece(), &options, &mut |_, _| {}).unwrap();
        let unpacked = Unpacked::new(&compiled.archive().unwrap()).unwrap();
        let described = std::fs::read_to_string(unpacked.path().join("src/default.json")).unwrap();
        assert_eq!(described.contains("\"offset\": 32"), states == Pools::External, "{described}");
        let program = unpacked.build(&main, &strict.build).unwrap_or_else(|error| panic!("{error}"));
        let ty = |steps: usize| TensorType::new(mlc_ir::DType::F32, [steps, 1, 3]);
        let port = |steps: usize| Port { ty: ty(steps), ..compiled.module.outputs[0].clone() };
        let outputs = program.run(std::slice::from_ref(&x), &[port(2 * WHOLE), port(PIECE)]).unwrap();
        let found = outputs[0].to_floats();
        close(&outputs[1].to_floats(), &expected[..PIECE * 3]);
        match states {
            Pools::External => close(&found, &expected),
            Pools::Internal => {
                let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(apart > 0.01, "two streams can't go through one static state: {apart}");
            }
        }
    }
}

#[test]
fn what_cannot_be_kept_is_told() {
    let mut backwards =
        text::parse(&LAYERS.replace("STEPS", "2").replace("reverse = false", "reverse = true"), &()).unwrap();
    let error = stateful::keep_recurrent_states(&mut backwards).unwrap_err();
    assert!(error.message.contains("no forward recurrent operator"), "{error}");
    let mut mixed =
        text::parse(&LAYERS.replace("STEPS", "2").replacen("reverse = false", "reverse = true", 1), &()).unwrap();
    let warnings = stateful::keep_recurrent_states(&mut mixed).unwrap();
    assert!(warnings.len() == 1 && warnings[0].message.contains("runs backwards"), "{warnings:?}");
    assert_eq!(mixed.states.len(), 1);
    let mut graph = graph(2);
    for (input, output, message) in [
        ("z", "y", "the model has no input 'z'"),
        ("x", "z", "the model has no output 'z'"),
        ("x", "y", "the input 'x' is f32[2, 1, 5], the output 'y' is f32[2, 1, 3]"),
    ] {
        let error = stateful::tie(&mut graph, input, output).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
}
