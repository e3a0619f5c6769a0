//! Chains of kernels whose results lie over what they are made of, one upwards, the next one downwards: what the evaluator computes, under sanitizers, in
//! little more than one tensor.

use mlc_ir::{Generator, Graph, Objective, evaluate, text};
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::compile_kernels;
use mlc_tests::mode::Mode;
use mlc_tests::program::{Unpacked, main_source};

/// Bytes of each tensor between the first kernel and the last one.
const BYTES: usize = 3 * 40 * 12 * 4;

/// Tensors of so few rows that windows need all of them at one time; `channels` is how many of 12 each of three kernels mixes.
fn flat(channels: usize) -> Graph {
    let groups = 12 / channels;
    let window = |pads: &str, groups: usize| {
        format!("{{strides = [1, 1], dilations = [1, 1], pads = [[{pads}], [{pads}]], groups = {groups}}}")
    };
    let between = |number: usize| {
        format!(
            "  %w{number} = constant f32[3, 3, {channels}, 12] random(seed = {number})\n  \
               %c{number} = convolution %c{before}, %w{number} {window}\n",
            before = number - 1,
            window = window("1, 1", groups),
        )
    };
    let source = format!(
        "mlc 1\ngraph @flat{channels}(%x: f32[1, 3, 40, 2]) -> (\"y\": f32[1, 3, 40, 2]) {{\n  \
           %w0 = constant f32[3, 3, 2, 12] random(seed = 8)\n  \
           %c0 = convolution %x, %w0 {first}\n{between}  \
           %w4 = constant f32[1, 1, 12, 2] random(seed = 9)\n  \
           %y = convolution %c3, %w4 {last}\n  \
           return %y\n}}\n",
        first = window("1, 1", 1),
        between = (1..=3).map(between).collect::<String>(),
        last = window("0, 0", 1),
    );
    text::parse(&source, &()).unwrap_or_else(|error| panic!("{error:?}\n{source}"))
}

#[test]
fn results_that_lie_over_operands_by_turns_upwards_and_downwards_are_right() {
    let boards = ["cortex-m4", "cortex-m0plus"].into_iter().filter_map(|name| Mode::microcontroller(name, true));
    let modes: Vec<Mode> = [Mode::generic(true), Mode::host(true)].into_iter().chain(boards).collect();
    let (mut directions, mut by_pixels) = ([0; 2], 0);
    for graph in [flat(1), flat(12)] {
        let input = Generator::new(9).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for mode in &modes {
            let mode = mode.clone().with_objective(Objective::Ram);
            let place = format!("{} on {}", graph.name, mode.name);
            let compiled = compile_kernels(&graph, "test", &mode.target).unwrap_or_else(|errors| panic!("{errors:?}"));
            let own = compiled.module.plan.arena_bytes;
            assert!(own < BYTES + BYTES / 2, "{place}: {own} bytes");
            for kernel in &compiled.module.kernels {
                let is_down = |direction: &str| usize::from(direction == "downwards");
                kernel.laid_over.iter().for_each(|own| directions[is_down(own.direction)] += 1);
                let taken = kernel.choice.taken();
                by_pixels += usize::from(taken.is_some_and(|own| own.schedule.to_string().contains("order=pixels")));
            }
            let unpacked = Unpacked::new(&compiled.archive).unwrap();
            let program = unpacked.build(&main_source(&compiled.module), &mode.build).unwrap();
            let outputs = program.run(std::slice::from_ref(&input), &compiled.module.outputs).unwrap();
            let largest = expected[0].to_floats().into_iter().map(f64::abs).fold(0.0, f64::max);
            let near = Tolerance { absolute: 2e-6 * largest, relative: 0.0 };
            compare(&outputs[0], &expected[0], near).unwrap_or_else(|fault| panic!("{place}: {fault}"));
        }
    }
    assert!(directions.iter().all(|&count| count > 6) && by_pixels > 2, "{directions:?} {by_pixels}");
}
