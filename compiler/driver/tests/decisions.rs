//! Which graph is taken depends on the target, and layout, siblings and fusion are weighed against each other.

use mlc::pipeline::{CompileOptions, LoadOptions, compile, load};
use mlc_codegen::{TargetPrices, generate};
use mlc_ir::{Graph, Objective, text};
use mlc_passes::{OptimizeOptions, Pipeline, optimize};
use std::path::Path;
use std::rc::Rc;

/// Two convolutions on one input, and the gate that multiplies them, as WaveNet has it.
const GATE: &str = "mlc 1
graph @gate(%x: f32[1, 64, 16]) -> (\"y\": f32[1, 64, 16]) {
  %a = constant f32[2, 16, 16] random(seed = 1)
  %b = constant f32[2, 16, 16] random(seed = 2)
  %f = convolution %x, %a {strides = [1], dilations = [1], pads = [[1, 0]], groups = 1} : f32[1, 64, 16]
  %g = convolution %x, %b {strides = [1], dilations = [1], pads = [[1, 0]], groups = 1} : f32[1, 64, 16]
  %t = unary %f {function = tanh} : f32[1, 64, 16]
  %s = unary %g {function = sigmoid} : f32[1, 64, 16]
  %y = binary %t, %s {function = multiply} : f32[1, 64, 16]
  return %y
}
";

/// Two convolutions of bytes, whose sums are rescaled to bytes that are added, as a residual block with a convolution in its shortcut has them.
const SHORTCUT: &str = "mlc 1
graph @shortcut(%x: i8[1, 8, 8, 16], %z: i8[1, 8, 8, 32]) -> (\"y\": i8[1, 8, 8, 32]) {
  %a = constant i8[1, 1, 16, 32] random(seed = 1)
  %b = constant i8[3, 3, 32, 32] random(seed = 2)
  %f = convolution %x, %a {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1, sums = i32} : i32[1, 8, 8, 32]
  %g = convolution %z, %b {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, sums = i32} : i32[1, 8, 8, 32]
  %p = map %f {expression = cast_i8(minimum(maximum(add(rescale_twice(x0, 1500000000_i32, 40_i32), -17_i32), -128_i32), 127_i32))} : i8[1, 8, 8, 32]
  %q = map %g {expression = cast_i8(minimum(maximum(add(rescale_twice(x0, 1600000000_i32, 42_i32), 4_i32), -128_i32), 127_i32))} : i8[1, 8, 8, 32]
  %y = map %p, %q {expression = cast_i8(minimum(maximum(shift_right(add(multiply(cast_i32(x0), 1763302_i32), multiply(cast_i32(x1), 4456128_i32)), 23_i32), -128_i32), 127_i32))} : i8[1, 8, 8, 32]
  return %y
}
";

/// The types of what the convolutions of the chosen graph compute.
fn convolutions(source: &str, target: &str) -> Vec<String> {
    let graph = text::parse(source, &()).unwrap();
    let target = mlc::targets::find(target).unwrap();
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = compile(&graph, &options, &mut |_, _| {}).unwrap();
    let graph = &compiled.graph;
    let nodes = graph.topological_order().into_iter().map(|id| graph.node(id));
    let anchored = nodes.filter(|node| match &node.op {
        mlc_ir::Op::Kernel(kernel) => matches!(*kernel.anchor, mlc_ir::Op::Convolution(_)),
        op => matches!(op, mlc_ir::Op::Convolution(_)),
    });
    anchored.map(|node| node.results[0].to_string()).collect()
}

/// On a microcontroller a merged product saves nothing that the gate's epilogue doesn't save too, and takes twice the memory; in vectors
/// of 16 lanes functions such as `tanh` in every place of a tile take the registers that its sums have.
#[test]
fn gated_siblings_merge_on_one_target_and_fuse_with_their_gate_on_another() {
    assert_eq!(convolutions(GATE, "cortex-m4"), ["f32[1, 64, 16]", "f32[1, 64, 16]"]);
    assert_eq!(convolutions(GATE, "x86-64-v4"), ["f32[1, 64, 32]"]);
}

/// The shortcut's sums could be rescaled where they are added, too; as bytes they take a quarter of the memory.
#[test]
fn sums_of_a_shortcut_become_bytes_where_they_are_computed() {
    for target in ["cortex-m4", "cortex-m55", "riscv32", "x86-64-v4"] {
        assert_eq!(convolutions(SHORTCUT, target), ["i8[1, 8, 8, 32]", "i8[1, 8, 8, 32]"], "{target}");
    }
}

/// What a network of the repository takes on a target: RAM, flash and time as predicted.
fn taken(network: &str, target: &str, objective: Objective) -> [f64; 3] {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pnnx").join(network).join("model.pnnx.param");
    let graph = load(&path, &LoadOptions::default()).unwrap_or_else(|failure| panic!("{failure:?}")).graph;
    let target = mlc::targets::find(target).unwrap().with_objective(objective);
    let options = CompileOptions { target, ..CompileOptions::default() };
    let module = compile(&graph, &options, &mut |_, _| {}).unwrap().module;
    let time: u64 = module.kernels.iter().map(|kernel| kernel.price.time).sum();
    let flash = module.constants_bytes() as u64 + module.code_bytes();
    [mlc_codegen::ram_bytes(&module) as u64, flash, time].map(|part| part as f64)
}

/// Graphs are chosen by time and flash; where the one for speed turns out to fit together better, it is what `balanced` takes, too.
#[test]
fn what_is_balanced_weighs_no_more_than_what_is_made_for_speed() {
    for target in ["cortex-m0plus", "cortex-m4"] {
        for network in ["net_dueling_dqn", "net_coord_attention", "net_lenet_relu_maxpool", "net_vit_tiny_separate_qkv"]
        {
            let weighed = |objective| {
                let [ram, flash, time] = taken(network, target, objective);
                ram * flash * time.powi(4)
            };
            let [balanced, speed] = [Objective::Balanced, Objective::Speed].map(weighed);
            assert!(balanced <= speed, "{network} on {target}: {}", balanced / speed);
        }
    }
}

/// The gate's time on a target, by its prices, after one decision or after one behind each of the stages that saturate.
fn time(target: &str, decisions: fn(Graph, &OptimizeOptions) -> Graph) -> u64 {
    let graph = text::parse(GATE, &()).unwrap();
    let target = mlc::targets::find(target).unwrap().with_objective(Objective::Speed);
    let prices = Rc::new(TargetPrices::new(&target, &graph));
    let options = OptimizeOptions { prices, weights: Objective::Speed.of_graphs(), ..OptimizeOptions::default() };
    let graph = decisions(graph, &options);
    let CompileOptions { model_name, execution, .. } = CompileOptions::default();
    let options = mlc_codegen::Options { model_name, target, execution, schedules: Default::default() };
    generate(&graph, &options).unwrap().kernels.iter().map(|kernel| kernel.price.time).sum()
}

fn at_once(graph: Graph, options: &OptimizeOptions) -> Graph {
    optimize(graph, options, &mut |_, _| {}).unwrap().0
}

fn one_by_one(graph: Graph, options: &OptimizeOptions) -> Graph {
    Pipeline::default()
        .stages
        .into_iter()
        .fold(graph, |graph, stage| Pipeline { stages: vec![stage] }.run(graph, options, &mut |_, _| {}).unwrap().0)
}

/// Siblings that are merged before anybody asks what becomes of their results are merged for good. On x86-64-v3 and x86-64-v4 a merged product and
/// the gate behind it take as long as two products, one with the gate as its epilogue, by prices and by the clock.
#[test]
fn one_decision_finds_what_decisions_one_after_the_other_miss() {
    for target in mlc::targets::all() {
        let (once, apart) = (time(&target.name, at_once), time(&target.name, one_by_one));
        assert!(once <= apart, "{}: {once} at once, {apart} one by one", target.name);
    }
    for target in ["generic", "cortex-m4", "riscv32", "x86-64-v2", "aarch64"] {
        let (once, apart) = (time(target, at_once), time(target, one_by_one));
        assert!(once < apart, "{target}: {once} at once, {apart} one by one");
    }
}

/// E-nodes that a chain of so many residual blocks grows to.
fn nodes_of_residual_blocks(count: usize) -> usize {
    let mut source = "mlc 1\ngraph @deep(%x0: f32[1, 4, 4, 8]) -> (\"y\": f32[1, 4, 4, 8]) {\n".to_owned();
    for block in 0..count {
        source += &format!(
            "  %w{block} = constant f32[3, 3, 8, 8] random(seed = {block})\n  \
             %b{block} = constant f32[8] random(seed = {block})\n  \
             %c{block} = convolution %x{block}, %w{block} {{strides = [1, 1], dilations = [1, 1], \
             pads = [[1, 1], [1, 1]], groups = 1}} : f32[1, 4, 4, 8]\n  \
             %s{block} = binary %c{block}, %b{block} {{function = add}} : f32[1, 4, 4, 8]\n  \
             %a{block} = binary %s{block}, %x{block} {{function = add}} : f32[1, 4, 4, 8]\n  \
             %x{} = unary %a{block} {{function = relu}} : f32[1, 4, 4, 8]\n",
            block + 1
        );
    }
    let graph = text::parse(&format!("{source}  return %x{count}\n}}\n"), &()).unwrap();
    let target = mlc::targets::find("cortex-m4").unwrap();
    let prices = Rc::new(TargetPrices::new(&target, &graph));
    let options = OptimizeOptions { prices, weights: Objective::Speed.of_graphs(), ..OptimizeOptions::default() };
    let (_, report) = optimize(graph, &options, &mut |_, _| {}).unwrap();
    report.stages.iter().filter_map(|stage| stage.saturation.as_ref()).map(|saturated| saturated.nodes).max().unwrap()
}

/// All elementwise operators of a chain of residual blocks hang together, and each block has an anchor: kernels of each block's anchor with what any
/// other block computes would be as many as pairs of blocks.
#[test]
fn a_block_more_is_as_many_e_nodes_more() {
    let [few, twice, more] = [12, 24, 36].map(nodes_of_residual_blocks);
    let (first, second) = (twice - few, more - twice);
    assert!(second * 10 <= first * 11, "12 blocks more have {first} e-nodes, 12 further ones {second}");
    assert!(first < 12 * 45, "a block has {} e-nodes", first / 12);
}
