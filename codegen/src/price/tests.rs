use super::Price;
use crate::execution::Execution;
use crate::target::{Overlap, Target};
use crate::{Options, ScheduleOptions, generate};

fn target(name: &str) -> Target {
    Target::embedded().into_iter().find(|target| target.name == name).unwrap()
}

/// Prices of the kernels of a graph, given as its inputs and body.
fn prices(target: &Target, text: &str) -> Vec<Price> {
    prices_by(target, text, ScheduleOptions::default())
}

/// The same with options of their schedules.
fn prices_by(target: &Target, text: &str, schedules: ScheduleOptions) -> Vec<Price> {
    let graph = mlc_ir::text::parse(&format!("mlc 1\ngraph @g{text}"), &()).unwrap();
    let options =
        Options { model_name: "g".into(), target: target.clone(), execution: Execution::default(), schedules };
    generate(&graph, &options).unwrap().kernels.iter().map(|kernel| kernel.price).collect()
}

fn matmul(target: &Target, rows: usize, steps: usize, outputs: usize) -> Price {
    let text = format!(
        "(%x: f32[{rows}, {steps}], %w: f32[{steps}, {outputs}]) -> (\"y\": f32[{rows}, {outputs}]) {{
  %y = matmul %x, %w {{transpose_left = false, transpose_right = false}} : f32[{rows}, {outputs}]
  return %y
}}
"
    );
    prices(target, &text)[0]
}

/// Asserts that a number is a share of another one, within a twentieth.
#[track_caller]
fn assert_near(found: u64, expected: f64) {
    let ratio = found as f64 / expected;
    assert!((0.95..=1.05).contains(&ratio), "{found} where about {expected:.0} was expected");
}

#[test]
fn instructions_grow_with_the_work() {
    let target = target("cortex-m4");
    let one = matmul(&target, 16, 64, 16).time as f64;
    assert_near(matmul(&target, 32, 64, 16).time, 2.0 * one);
    assert_near(matmul(&target, 16, 128, 16).time, 2.0 * one);
    // A multiply-add, and less than an instruction and a half of loads and loops beside it.
    let products = f64::from(16 * 64 * 16);
    assert!((products..2.5 * products).contains(&one), "{one} instructions for {products} products");
}

#[test]
fn code_is_as_long_however_often_its_loops_turn() {
    let target = target("cortex-m4");
    let [short, long] = [64, 6400].map(|steps| matmul(&target, 16, steps, 16));
    assert_eq!(short.code_bytes, long.code_bytes);
    assert!(long.time > 50 * short.time);
    // So many rows take the same tile.
    let [few, many] = [48, 4800].map(|rows| matmul(&target, rows, 64, 16));
    assert_eq!(few.code_bytes, many.code_bytes);
}

#[test]
fn what_fits_a_cache_comes_once() {
    let target = Target::host(32);
    assert_eq!(matmul(&target, 8, 32, 32).traffic_bytes, 0, "all of it stays in the nearest cache");
    let large = matmul(&target, 1, 2048, 2048);
    let weights = 4 * 2048 * 2048;
    assert_near(large.traffic_bytes, f64::from(weights));
    let slowest = target.machine.caches.last().unwrap().fill;
    let in_cache = matmul(&target, 1, 64, 64).time as f64 * 1024.0;
    assert!(large.time as f64 > in_cache, "weights that come from far take longer");
    assert!(large.time as f64 <= f64::from(weights) / slowest + in_cache);
}

#[test]
fn conditions_count_as_often_as_they_hold() {
    let convolution = |pads: &str, size: usize| {
        let text = format!(
            "(%x: f32[1, {size}, {size}, 4], %w: f32[3, 3, 4, 4]) -> (\"y\": f32[1, 16, 16, 4]) {{
  %y = convolution %x, %w {{strides = [1, 1], pads = {pads}, dilations = [1, 1], groups = 1}} : f32[1, 16, 16, 4]
  return %y
}}
"
        );
        prices(&Target::generic(), &text).iter().map(|price| price.time).sum::<u64>() as f64
    };
    let (bare, clipped) = (convolution("[[0, 0], [0, 0]]", 18), convolution("[[1, 1], [1, 1]]", 16));
    assert!(clipped > 0.8 * bare && clipped < 2.5 * bare, "{clipped} with a border, {bare} without");
}

#[test]
fn functions_of_the_c_library_are_dear() {
    let map = |function: &str| {
        let text = format!(
            "(%x: f32[256]) -> (\"y\": f32[256]) {{\n  %y = unary %x {{function = {function}}} : f32[256]\n  return %y\n}}\n"
        );
        prices(&target("cortex-m4"), &text)[0].time
    };
    assert!(map("tanh") > 10 * map("negate"));
    assert!(
        prices(
            &target("cortex-m0plus"),
            "(%x: f32[64]) -> (\"y\": f32[64]) {\n  %y = binary %x, %x {function = add} : f32[64]\n  return %y\n}\n"
        )[0]
        .time
            > 64 * 50
    );
}

#[test]
fn what_lies_far_from_its_pointer_costs_more_where_loads_reach_less() {
    let near = target("riscv32");
    let mut far = near.clone();
    far.machine.reach = None;
    // Rows of 2 KiB: a tile of several of them reaches beyond 4 KiB.
    let (some, none) = (matmul(&near, 16, 512, 16), matmul(&far, 16, 512, 16));
    assert!(some.time > none.time, "{some:?} {none:?}");
    // All of it lies within 4 KiB.
    assert_eq!(matmul(&near, 8, 8, 8), matmul(&far, 8, 8, 8));
}

#[test]
fn turns_of_a_tile_end_where_its_weights_are_out_of_reach() {
    let near = target("cortex-m55");
    let mut far = near.clone();
    far.machine.reach = None;
    // A step has four vectors of weights: eight steps lie within 512 bytes, and twice as many would be written out.
    let (some, all) = (matmul(&near, 1, 640, 64), matmul(&far, 1, 640, 64));
    assert!(3 * some.code_bytes < 2 * all.code_bytes, "{some:?} {all:?}");
}

#[test]
fn copies_of_few_elements_are_written_out_and_others_made_by_a_routine() {
    let copy = |elements: usize| {
        let text = format!(
            "(%x: f32[64, {elements}], %v: f32[64, 2]) -> (\"y\": f32[64, {0}]) {{
  %y = concat %x, %v {{axis = 1}} : f32[64, {0}]
  return %y
}}
",
            elements + 2
        );
        prices(&target("riscv32"), &text)[0].time
    };
    // A load and a store for each of 16; a call of the C library, which moves bytes one by one, would take 20 for each.
    assert!(copy(16) < 64 * 16 * 3, "{}", copy(16));
    assert!((64 * 17..64 * 17 * 5).contains(&copy(17)), "{}", copy(17));
}

#[test]
fn routines_are_no_longer_for_what_they_execute() {
    let convolution = |channels: usize| {
        let text = format!(
            "(%x: i8[1, 8, 9, {channels}]) -> (\"y\": i32[1, 8, 9, 8]) {{
  %w = constant i8[1, 1, {channels}, 8] random(seed = 1)
  %y = convolution %x, %w {{strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1, sums = i32}} : i32[1, 8, 9, 8]
  return %y
}}
"
        );
        prices(&target("cortex-m4"), &text)[0]
    };
    let (few, many) = (convolution(16), convolution(256));
    assert!(many.time > 8 * few.time, "{few:?} {many:?}");
    assert_eq!(many.code_bytes, few.code_bytes);
}

#[test]
fn short_loops_are_written_out() {
    let sums = |target: &Target, length: usize| {
        let text = format!(
            "(%x: f32[512, {length}]) -> (\"y\": f32[512]) {{
  %y = reduce %x {{function = sum, axes = [1], keep_axes = false}} : f32[512]
  return %y
}}
"
        );
        prices(target, &text)[0]
    };
    let compiled = target("cortex-m4");
    let mut kept = compiled.clone();
    kept.machine.written_out = 0.0;
    let (short, loops) = (sums(&compiled, 12), sums(&kept, 12));
    assert!(short.time < loops.time, "nobody counts turns: {short:?} {loops:?}");
    assert!(short.code_bytes > loops.code_bytes, "every turn is written: {short:?} {loops:?}");
    assert_eq!(sums(&compiled, 1200), sums(&kept, 1200), "a long loop stays one");
}

#[test]
fn c_compilers_move_vectors_by_calls_and_make_vectors_of_loops() {
    let copy = "(%x: f32[4096], %v: f32[4]) -> (\"y\": f32[4100]) {
  %y = concat %x, %v {axis = 0} : f32[4100]
  return %y
}
";
    let time: u64 = prices(&target("cortex-m55"), copy).iter().map(|price| price.time).sum();
    assert!(time > 4 * 4 * 4096, "each byte by itself: {time}");
    let normalized = "(%x: f32[64, 64]) -> (\"y\": f32[64, 64]) {
  %y = normalize %x {axes = [1], epsilon = 1e-5, center = true} : f32[64, 64]
  return %y
}
";
    let [scalars, vectors] = ["cortex-m4", "cortex-m55"].map(|name| prices(&target(name), normalized)[0].time);
    assert!(2 * vectors < scalars, "{vectors} {scalars}");
}

#[test]
fn what_a_loop_moves_costs_and_what_it_keeps_does_not() {
    // A row of 64 numbers beside one that all rows share: the shared one is in a register where a loop keeps it.
    let map = |target: &Target, other: &str| {
        let text = format!(
            "(%x: f32[512, 64], %v: f32[{other}]) -> (\"y\": f32[512, 64]) {{
  %y = binary %x, %v {{function = add}} : f32[512, 64]
  return %y
}}
"
        );
        prices(target, &text)[0].time
    };
    let kept = target("riscv32");
    let mut loaded = kept.clone();
    loaded.machine.written_out = 0.0;
    let elements = 512 * 64;
    let (shared, own) = (map(&kept, "1, 1"), map(&kept, "512, 64"));
    assert!(own > shared + elements, "a pointer more to move, and a load: {own} {shared}");
    assert!(map(&loaded, "1, 1") > shared + elements / 2, "where C compilers keep nothing it is loaded: {shared}");
}

#[test]
fn loops_that_fill_memory_are_calls_of_the_c_library() {
    let pad = |name: &str| {
        let text = "(%x: f32[1, 2, 2, 64]) -> (\"y\": f32[1, 2, 66, 64]) {
  %y = pad %x {pads = [[0, 0], [0, 0], [0, 64], [0, 0]], mode = constant, value = 0.0_f32} : f32[1, 2, 66, 64]
  return %y
}
";
        prices(&target(name), text).iter().map(|price| price.time).sum::<u64>()
    };
    let bytes = 4 * 2 * 64 * 64;
    // One byte after the other: a store, a pointer, a comparison and a branch.
    assert!((4 * bytes..5 * bytes).contains(&pad("riscv32")), "{} instructions for {bytes} bytes", pad("riscv32"));
}

#[test]
fn arms_vectors_bound_by_bits_and_divide_by_lanes() {
    let steps = |name: &str, step: &str| {
        let text = format!(
            "(%x: f32[4096]) -> (\"y\": f32[4096]) {{\n  %b = constant f32[1] [6.0]\n  %y = {step} : f32[4096]\n  return %y\n}}\n"
        );
        prices(&target(name), &text)[0].time
    };
    let bounded = steps("cortex-m55", "binary %x, %b {function = minimum}");
    let compared = steps("cortex-m55", "binary %x, %x {function = minimum}");
    assert!(bounded < compared, "{bounded} {compared}");
    let divided = steps("cortex-m55", "binary %b, %x {function = divide}");
    assert!(divided > 4096, "a division for each lane: {divided}");
    let [scalars, vectors] = ["cortex-m4", "cortex-m55"].map(|name| steps(name, "unary %x {function = exp}"));
    assert!(4 * vectors < scalars, "{vectors} {scalars}");
}

#[test]
fn constants_come_from_behind_caches_that_operands_lie_in() {
    let text = "(%x: f32[1, 4096]) -> (\"y\": f32[1, 256]) {
  %a = unary %x {function = sin}
  %w = constant f32[4096, 256] random(seed = 1)
  %y = matmul %a, %w {transpose_left = false, transpose_right = false} : f32[1, 256]
  return %y
}
";
    let [map, product] = prices(&Target::host(32), text)[..] else { panic!("two kernels") };
    // What the map reads and writes fits into the nearest cache; the weights are four megabytes.
    assert_eq!(map.traffic_bytes, 0);
    assert!(product.traffic_bytes >= 4 << 20, "{} bytes", product.traffic_bytes);
}

#[test]
fn units_take_halves_of_long_vectors_one_after_the_other() {
    let [short, long] = [32, 64].map(|bytes| matmul(&Target::host(bytes), 48, 512, 64));
    let ratio = long.time as f64 / short.time as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}: {} and {}", long.time, short.time);
    let mut wide = Target::host(64);
    wide.machine.unit_bytes = None;
    let whole = matmul(&wide, 48, 512, 64);
    assert!((0.45..0.6).contains(&(whole.time as f64 / long.time as f64)), "{} and {}", whole.time, long.time);
    assert_eq!(whole.code_bytes, long.code_bytes);
}

#[test]
fn sums_wait_for_each_other_where_a_machine_does_not_look_ahead() {
    // One sum after the other, each of few products.
    let text = "(%x: f32[1, 64, 64, 8], %w: f32[3, 3, 1, 8]) -> (\"y\": f32[1, 62, 62, 8]) {
  %y = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 8}
  return %y
}
";
    let time = |window: f64| {
        let mut target = Target::host(32);
        target.objective = mlc_ir::Objective::Size;
        let Overlap::Ports { width, latency, .. } = target.machine.overlap else { panic!("a host") };
        target.machine.overlap = Overlap::Ports { width, latency, window };
        prices(&target, text)[0].time
    };
    assert!(10 * time(300.0) < 9 * time(1.0), "{} and {}", time(300.0), time(1.0));
}

/// A depthwise convolution whose taps are written out.
const WRITTEN_OUT: &str = "channels-outside:pixels=3,weights=registers";

/// Bytes that a depthwise convolution with windows of 3 × 3 brings from behind the nearest cache if it goes vector of channels by vector, and
/// those of its operand and result.
fn depthwise(size: usize, channels: usize, schedule: &str) -> (u64, u64) {
    let text = format!(
        "(%x: f32[1, {0}, {0}, {channels}]) -> (\"y\": f32[1, {size}, {size}, {channels}]) {{
  %w = constant f32[3, 3, 1, {channels}] random(seed = 1)
  %y = convolution %x, %w {{strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = {channels}}}
  return %y
}}
",
        size + 2
    );
    let touched = 4 * channels * (size * size + (size + 2) * (size + 2));
    let forced = [("y".into(), schedule.into())].into();
    let prices = prices_by(&Target::host(32), &text, ScheduleOptions { forced, ..ScheduleOptions::default() });
    (prices[0].traffic_bytes, touched as u64)
}

#[test]
fn lines_at_multiples_of_a_power_of_two_compete() {
    // Of the 64 pixels of an image, each vector of channels is in a line of its own; 48 KiB in all. Lines 480 bytes apart are all over the
    // cache, lines 512 bytes apart in an eighth of it, so that half a line is driven out before the next vector asks for the other half.
    let [(apart, touched), (alike, more)] = [120, 128].map(|channels| depthwise(6, channels, WRITTEN_OUT));
    assert!((touched..touched + touched / 4).contains(&apart), "{apart} bytes of {touched}");
    assert!(2 * alike > 3 * more, "{alike} bytes of {more}");
}

#[test]
fn taps_of_windows_bring_what_they_have_in_common_once() {
    // The second one has a loop over the rows of a window, which meets the rows that the loop over the image's comes to.
    for schedule in [WRITTEN_OUT, "channels-outside:pixels=8,weights=memory"] {
        // A pixel of 16 channels is a line, half of which is asked for at a time.
        for (channels, times) in [(8, 1), (16, 2)] {
            let (bytes, touched) = depthwise(112, channels, schedule);
            let most = times * touched * 3 / 2;
            assert!(
                (touched..most).contains(&bytes),
                "{schedule}: {bytes} bytes of {touched}, not nine times the operand"
            );
        }
    }
}

#[test]
fn copies_of_three_planes_are_written_out_on_hosts() {
    // An image whose channels become innermost: three loads and stores a pixel, which are no loop.
    let text = "(%x: f32[1, 3, 64, 64]) -> (\"y\": f32[1, 66, 66, 3]) {
  %t = transpose %x {permutation = [0, 2, 3, 1]}
  %y = pad %t {pads = [[0, 0], [1, 1], [1, 1], [0, 0]], mode = constant, value = 0.0_f32} : f32[1, 66, 66, 3]
  return %y
}
";
    let written_out = Target::host(32);
    let mut kept = written_out.clone();
    kept.machine.written_out = 0.0;
    let [short, long] =
        [&written_out, &kept].map(|target| prices(target, text).iter().map(|price| price.time).sum::<u64>());
    assert!(3 * short < 2 * long, "{short} and {long} cycles for {} numbers", 3 * 64 * 64);
}

#[test]
fn elements_that_are_copied_as_vectors_share_a_turn() {
    // Rows that become columns, which C compilers move in vectors where they may take those of the machine.
    let text = "(%x: f32[1, 64, 64]) -> (\"y\": f32[1, 64, 64]) {
  %y = transpose %x {permutation = [0, 2, 1]}
  return %y
}
";
    let [wide, single] = [Target::host(32), Target::generic()].map(|target| prices(&target, text)[0].time);
    assert!(3 * wide < 2 * single, "{wide} and {single} cycles for {} numbers", 64 * 64);
}
