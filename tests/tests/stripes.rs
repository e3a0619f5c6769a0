//! Networks that are computed row by row where memory counts: what the evaluator computes, under sanitizers, in a fraction of the memory.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::lower::{Considered, Halo, Span};
use mlc_codegen::{Execution, Interface, Limits, MemoryPlan, Module, ScheduleOptions, Target};
use mlc_ir::{Generator, Graph, Objective, Tensor, evaluate, text};
use mlc_tests::case::Case;
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::{Compiled, compile_kernels, compile_scheduled};
use mlc_tests::firmware::{build, find, measure_for, missing, target};
use mlc_tests::micro;
use mlc_tests::mode::Mode;
use mlc_tests::program::{Unpacked, hasty, main_source};
use mlc_tests::rows::{BYTES, CHAIN, MASKED, RESIDUAL};

/// Rows of branches that are joined, in the stripe and as its result.
const JOINED: &str = r#"mlc 1
graph @joined(%x: f32[1, 24, 12, 3]) -> ("y": f32[1, 11, 5, 12]) {
  %w0 = constant f32[3, 3, 3, 16] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[1, 1, 16, 4] random(seed = 2)
  %s0 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w2 = constant f32[1, 1, 4, 8] random(seed = 3)
  %a0 = convolution %s0, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w3 = constant f32[3, 3, 4, 8] random(seed = 4)
  %b0 = convolution %s0, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %j0 = concat %a0, %b0 {axis = 3}
  %p0 = max_pool %j0 {window = [3, 3], strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %s1 = convolution %p0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %b1 = convolution %s1, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %y = concat %s1, %b1 {axis = 3}
  return %y
}
"#;

/// Rows that are repeated, and joined to those that they were pooled of.
const UPSAMPLED: &str = r#"mlc 1
graph @upsampled(%x: f32[1, 32, 12, 3]) -> ("y": f32[1, 32, 12, 2]) {
  %w0 = constant f32[3, 3, 3, 8] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %p0 = max_pool %c0 {window = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %w1 = constant f32[3, 3, 8, 8] random(seed = 2)
  %c1 = convolution %p0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %u0 = resize %c1 {axes = [1, 2], sizes = [32, 12], ratios = [0.5, 0.5], mode = nearest, coordinates = asymmetric}
  %j0 = concat %u0, %c0 {axis = 3}
  %w2 = constant f32[3, 3, 16, 8] random(seed = 3)
  %c2 = convolution %j0, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w3 = constant f32[1, 1, 8, 2] random(seed = 4)
  %y = convolution %c2, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

/// Bytes that are added up at the end, by constant weights that are all alike.
const POOLED: &str = r#"mlc 1
graph @pooled(%x: i8[1, 25, 5, 4]) -> ("y": i8[1, 1, 1, 8]) {
  %w0 = constant i8[3, 3, 4, 8] random(seed = 1)
  %c0 = kernel %x, %w0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 4_i32), -128_i32), 127_i32))}
  %w1 = constant i8[3, 3, 1, 8] random(seed = 2)
  %c1 = kernel %c0, %w1 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 8, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  %ones = constant i8[25, 5, 1, 8] splat(1)
  %y = kernel %c1, %ones {anchor = convolution {strides = [25, 5], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 8, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 5_i32), -128_i32), 127_i32))}
  return %y
}
"#;

/// Tensors of few rows, of which windows need all at one time: their results lie over them at a distance.
const FLAT: &str = r#"mlc 1
graph @flat(%x: f32[1, 3, 40, 2]) -> ("y": f32[1, 3, 38, 2]) {
  %w0 = constant f32[1, 1, 2, 16] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w1 = constant f32[3, 3, 1, 16] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 16}
  %w2 = constant f32[3, 3, 1, 16] random(seed = 3)
  %c2 = convolution %c1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 16}
  %p = max_pool %c2 {window = [1, 3], strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %w3 = constant f32[1, 1, 16, 2] random(seed = 4)
  %y = convolution %p, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

/// Blocks around which their operands go, written over these.
const BLOCKS: &str = r#"mlc 1
graph @blocks(%x: f32[1, 16, 12, 3]) -> ("y": f32[1, 16, 12, 2]) {
  %w0 = constant f32[3, 3, 3, 24] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[1, 1, 24, 32] random(seed = 2)
  %w2 = constant f32[7, 3, 1, 32] random(seed = 3)
  %w3 = constant f32[1, 1, 32, 24] random(seed = 4)
  %e0 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %d0 = convolution %e0, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[3, 3], [1, 1]], groups = 32}
  %r0 = kernel %d0, %w3, %c0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}, anchor_operands = 2, expression = add(x0, x1)}
  %e1 = convolution %r0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %d1 = convolution %e1, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[3, 3], [1, 1]], groups = 32}
  %r1 = kernel %d1, %w3, %r0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}, anchor_operands = 2, expression = add(x0, x1)}
  %w4 = constant f32[1, 1, 24, 2] random(seed = 5)
  %y = convolution %r1, %w4 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  return %y
}
"#;

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

fn is_near(outputs: &[Tensor], expected: &[Tensor], place: &str) {
    for (found, golden) in outputs.iter().zip(expected) {
        let is_float = golden.ty().dtype.is_float();
        // Sums cancel: they are as exact as the largest of them.
        let largest = golden.to_floats().into_iter().map(f64::abs).fold(0.0, f64::max);
        let near = Tolerance { absolute: 2e-6 * largest, relative: 0.0 };
        let tolerance = if is_float { near } else { Tolerance::EXACT };
        compare(found, golden, tolerance).unwrap_or_else(|fault| panic!("{place}: {fault}"));
    }
}

#[test]
fn stripes_compute_the_same_in_a_fraction_of_the_memory() {
    let mut laid_over = 0;
    let networks = [
        (CHAIN, 3),
        (RESIDUAL, 2),
        (BYTES, 2),
        (MASKED, 1),
        (JOINED, 2),
        (UPSAMPLED, 2),
        (POOLED, 2),
        (FLAT, 1),
        (BLOCKS, 1),
    ];
    for (source, share) in networks {
        let graph = text::parse(source, &()).unwrap();
        let input = Generator::new(9).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for mode in modes() {
            let plain = compiled(&graph, &mode.target.clone().with_objective(Objective::Speed));
            let mode = mode.with_objective(Objective::Ram);
            let stripes = compiled(&graph, &mode.target);
            let (own, whole) = (stripes.module.plan.arena_bytes, plain.module.plan.arena_bytes);
            assert!(own * share <= whole, "{} on {}: {own} bytes instead of {whole}", graph.name, mode.name);
            laid_over += overlaps(&stripes.module.plan);
            assert_eq!(overlaps(&plain.module.plan), 0, "{} on {}", graph.name, mode.name);
            eprintln!(
                "{} on {}: {own} bytes instead of {whole}, {} overlaps",
                graph.name,
                mode.name,
                overlaps(&stripes.module.plan)
            );
            let outputs = run(&stripes, &mode, std::slice::from_ref(&input));
            is_near(&outputs, &expected, &format!("{} on {}", graph.name, mode.name));
        }
    }
    assert!(laid_over > 4, "{laid_over} results lie over operands");
}

/// A tall image: windows, strides and a residual, and rows that are repeated.
const TALL: &str = r#"mlc 1
graph @tall(%x: f32[1, 96, 16, 3]) -> ("y": f32[1, 96, 16, 4]) {
  %w0 = constant f32[3, 3, 3, 16] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[3, 3, 1, 16] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 16}
  %w2 = constant f32[3, 3, 16, 16] random(seed = 3)
  %r = kernel %c1, %w2, %c1 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %u = resize %r {axes = [1, 2], sizes = [96, 16], ratios = [0.5, 0.5], mode = nearest, coordinates = asymmetric}
  %w3 = constant f32[3, 3, 16, 4] random(seed = 4)
  %y = convolution %u, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  return %y
}
"#;

/// The same of bytes whose borders aren't zero, without those that are repeated.
const TALL_BYTES: &str = r#"mlc 1
graph @tall_bytes(%x: i8[1, 96, 16, 4]) -> ("y": i8[1, 48, 8, 4]) {
  %w0 = constant i8[3, 3, 4, 16] random(seed = 1)
  %c0 = kernel %x, %w0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = -7, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 4_i32), -128_i32), 127_i32))}
  %w1 = constant i8[3, 3, 1, 16] random(seed = 2)
  %c1 = kernel %c0, %w1 {anchor = convolution {strides = [2, 2], dilations = [1, 1], pads = [[1, 0], [1, 0]], groups = 16, border = 3, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  %w2 = constant i8[5, 5, 16, 4] random(seed = 3)
  %y = kernel %c1, %w2 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[2, 2], [2, 2]], groups = 1, border = 5, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 6_i32), -128_i32), 127_i32))}
  return %y
}
"#;

/// Graphs, and bytes of a cache that holds what a turn of their rows touches, but not whole results.
const CACHED: [(&str, usize); 2] = [(TALL, 64 << 10), (TALL_BYTES, 16 << 10)];

/// A machine whose memory behind a tiny cache is slow: it computes row by row for speed, in rings that slide through some more memory than
/// they take.
fn with_tiny_cache(target: &Target, bytes: usize) -> Target {
    let mut target = target.clone();
    target.machine.caches.truncate(2);
    target.machine.caches[1].bytes = bytes;
    target.machine.caches[1].fill = 0.001;
    target
}

/// How many rings slide in a program, and how many of them are moved to their front: rows of a turn come round, and who appends them asks whether
/// they have.
fn sliding(module: &Module) -> (usize, usize) {
    let lines = |what: &str| {
        let all = module.sources.iter().flat_map(|file| file.text.lines());
        all.filter(|line| line.contains(what) && line.contains(" % ")).count()
    };
    (lines("void *const row"), lines(" > 0 && "))
}

#[test]
fn rings_that_slide_hold_the_same_rows() {
    for (source, cache) in CACHED {
        let graph = text::parse(source, &()).unwrap();
        let input = Generator::new(9).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for mode in [Mode::generic(true), Mode::host(true)] {
            let place = format!("{} on {}", graph.name, mode.name);
            let stripes = compiled(&graph, &with_tiny_cache(&mode.target, cache));
            let (sliding, moving) = sliding(&stripes.module);
            assert!(sliding >= 2 && moving >= 2, "{place}: {sliding} rings slide, {moving} of them are moved");
            is_near(&run(&stripes, &mode, std::slice::from_ref(&input)), &expected, &place);
        }
    }
}

#[test]
fn executors_find_the_rows_of_rings_that_slide() {
    for (source, cache) in CACHED {
        let network = text::parse(source, &()).unwrap();
        let input = Generator::new(9).tensor(&network.node(network.inputs()[0]).results[0]);
        let expected = evaluate(&network, std::slice::from_ref(&input)).unwrap();
        let packed = Execution { aot: Some(Interface::Packed), ..Execution::default() };
        let graph = Execution { aot: None, graph: true, ..Execution::default() };
        for execution in [packed, graph] {
            let place = format!("{} under {execution:?}", network.name);
            let target = with_tiny_cache(&Target::generic(), cache);
            let options = CompileOptions { target, execution, ..CompileOptions::default() };
            let compiled = pipeline::compile(&network, &options, &mut |_, _| {}).unwrap();
            let (sliding, moving) = sliding(&compiled.module);
            assert!(sliding >= 2 && moving >= 2, "{place}: {sliding} rings slide, {moving} of them are moved");
            let program = hasty(Toolchain::default()).build(&compiled.bundle().unwrap()).unwrap();
            is_near(&program.run(std::slice::from_ref(&input)).unwrap(), &expected, &place);
        }
    }
}

/// A row of wide blocks, the first of which would need most memory: depthwise windows, strides, a residual and a branch.
const WIDE: &str = r#"mlc 1
graph @wide(%x: f32[1, 16, 64, 3]) -> ("y": f32[1, 4, 16, 8]) {
  %w0 = constant f32[3, 3, 3, 8] random(seed = 1)
  %c0 = convolution %x, %w0 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %w1 = constant f32[1, 1, 8, 16] random(seed = 2)
  %c1 = convolution %c0, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w2 = constant f32[3, 3, 1, 16] random(seed = 3)
  %c2 = convolution %c1, %w2 {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 16}
  %w3 = constant f32[1, 1, 16, 8] random(seed = 4)
  %c3 = convolution %c2, %w3 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %w4 = constant f32[3, 3, 8, 8] random(seed = 5)
  %r = kernel %c3, %w4, %c3 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}, anchor_operands = 2, expression = relu(add(x0, x1))}
  %p = max_pool %r {window = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %y = convolution %p, %w4 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  return %y
}
"#;

/// The same of bytes whose borders aren't zero, in fewer layers.
const WIDE_BYTES: &str = r#"mlc 1
graph @wide_bytes(%x: i8[1, 12, 64, 4]) -> ("y": i8[1, 6, 32, 4]) {
  %w0 = constant i8[3, 3, 4, 16] random(seed = 1)
  %c0 = kernel %x, %w0 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = -7, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 4_i32), -128_i32), 127_i32))}
  %w1 = constant i8[3, 3, 1, 16] random(seed = 2)
  %c1 = kernel %c0, %w1 {anchor = convolution {strides = [2, 2], dilations = [1, 1], pads = [[0, 1], [0, 1]], groups = 16, border = 3, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  %w2 = constant i8[1, 1, 16, 4] random(seed = 3)
  %y = kernel %c1, %w2 {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1, sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(shift_right(x0, 2_i32), -128_i32), 127_i32))}
  return %y
}
"#;

/// Whether a program has patches that keep rows for each other.
fn keeps_rows(considered: &Considered) -> bool {
    let keeps = |span: &Span| span.patches > 1 && span.halo == Halo::Kept;
    considered.taken().is_some_and(|taken| taken.stripes.iter().any(keeps))
}

#[test]
fn patches_compute_the_same_in_less_memory() {
    let (mut in_patches, mut keeping) = (0, 0);
    for source in [WIDE, WIDE_BYTES, JOINED, UPSAMPLED] {
        let graph = text::parse(source, &()).unwrap();
        let input = Generator::new(9).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for mode in modes() {
            let mode = mode.with_objective(Objective::Ram);
            let rows = compiled(&graph, &mode.target);
            let most = ScheduleOptions { extra_work: Some(100_000), ..ScheduleOptions::default() };
            let patches = compile_scheduled(&graph, "test", &mode.target, most).unwrap();
            let (own, rings) = (patches.module.plan.arena_bytes, rows.module.plan.arena_bytes);
            let twice = patches.module.considered.twice();
            assert!(own <= rings && (twice == 0 || own < rings), "{} on {}: {own} of {rings}", graph.name, mode.name);
            in_patches += usize::from(twice > 0);
            assert_eq!(rows.module.considered.twice(), 0, "{} on {}", graph.name, mode.name);
            eprintln!("{} on {}: {own} bytes instead of {rings}, {twice} operations twice", graph.name, mode.name);
            // The fastest program that takes less keeps rows, where the smallest one computes them twice.
            let limit = ScheduleOptions { arena_bytes: Some(rings * 3 / 4), ..ScheduleOptions::default() };
            let within = compile_scheduled(&graph, "test", &mode.target, limit).unwrap();
            for program in [&patches, &rows, &within] {
                let keeps = keeps_rows(&program.module.considered);
                keeping += usize::from(keeps);
                // Rows alone are run by others.
                if keeps || program.module.considered.twice() > 0 {
                    let outputs = run(program, &mode, std::slice::from_ref(&input));
                    is_near(&outputs, &expected, &format!("{} on {}", graph.name, mode.name));
                }
            }
        }
    }
    assert!(in_patches > 7, "{in_patches} programs have patches that compute rows twice");
    assert!(keeping > 4, "{keeping} programs have patches that keep rows");
}

/// Pairs of buffers that live at one time and have bytes in common.
fn overlaps(plan: &MemoryPlan) -> usize {
    let pairs = plan
        .buffers
        .iter()
        .enumerate()
        .flat_map(|(number, own)| plan.buffers[..number].iter().map(move |other| (own, other)));
    let meet = pairs.filter(|(own, other)| {
        let together = own.first <= other.last && other.first <= own.last;
        together && own.offset < other.offset + other.bytes && other.offset < own.offset + own.bytes
    });
    meet.count()
}

/// Networks with the bytes of arena that they may take.
const NETWORKS: [(&str, usize); 2] = [("net_mlperftiny_dscnn_kws", 22_700), ("net_mlperftiny_resnet8", 53_000)];

/// The same of networks of bytes, where the collection of models is at hand.
const NETWORKS_OF_BYTES: [(&str, usize); 4] = [("kws01", 6_000), ("ic01", 13_200), ("vww01", 14_700), ("sww01", 3_900)];

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
            let program = hasty(Toolchain::default()).build(&compiled.bundle().unwrap()).unwrap();
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
    let of_bytes = |name: &str| micro::NETWORKS.iter().find(|network| network.name() == name).and_then(micro::find);
    let singles = NETWORKS.map(|(name, bytes)| (find(name).unwrap(), bytes));
    let bytes = NETWORKS_OF_BYTES.iter().filter_map(|&(name, bytes)| Some((of_bytes(name)?, bytes)));
    for (case, bytes) in singles.into_iter().chain(bytes) {
        let name = &case.name;
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
