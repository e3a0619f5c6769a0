//! Winograd's convolutions: against the evaluator at every kind of edge, and against sums in double precision, beside which they may
//! err by twenty times what plain convolutions do. Needs a C compiler.

use crate::common::{check_by, embedded, run};
use crate::dense::graph_of;
use mlc_codegen::{Execution, FloatingPoint, Module, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Generator, Graph, Objective, Op, Tensor, TensorType};
use std::collections::BTreeMap;

fn by(schedule: &str) -> ScheduleOptions {
    ScheduleOptions { forced: BTreeMap::from([("result".into(), schedule.into())]), ..ScheduleOptions::default() }
}

fn convolution(x: [usize; 4], window: [usize; 2], outputs: usize, pads: [(usize, usize); 2]) -> (Op, Vec<TensorType>) {
    moving([1, 1], x, window, outputs, pads)
}

/// One whose window moves by so many elements.
fn moving(
    strides: [usize; 2],
    x: [usize; 4],
    window: [usize; 2],
    outputs: usize,
    pads: [(usize, usize); 2],
) -> (Op, Vec<TensorType>) {
    let (strides, pads) = (strides.to_vec(), pads.to_vec());
    let op = Convolution { strides, dilations: vec![1; 2], pads, groups: 1, border: 0, sums: None };
    let weights = TensorType::new(DType::F32, [window[0], window[1], x[3], outputs]);
    (op.into(), vec![TensorType::new(DType::F32, x), weights])
}

/// Results of a tile, and layers that such tiles fit: last tiles that are moved back along either axis and along both, several turns
/// with fewer tiles in the last one, several items, channels and outputs that no vector divides, one of either, borders on one side
/// only, windows of one row or column; windows that move by two along one axis or both, of odd and even numbers of taps, from elements of which
/// the last are met or not.
fn layers() -> Vec<(usize, Op, Vec<TensorType>)> {
    let ones = [(1, 1), (1, 1)];
    let of = |size: usize, (op, types): (Op, Vec<TensorType>)| (size, op, types);
    vec![
        of(4, convolution([1, 8, 8, 16], [3, 3], 16, ones)),
        of(4, convolution([3, 7, 9, 5], [3, 3], 19, ones)),
        of(4, convolution([1, 6, 11, 33], [3, 3], 3, [(0, 0), (0, 0)])),
        of(4, convolution([2, 5, 4, 20], [3, 3], 40, [(2, 0), (0, 3)])),
        of(4, convolution([1, 47, 45, 4], [3, 3], 66, ones)),
        of(4, convolution([1, 4, 4, 1], [3, 3], 1, ones)),
        of(2, convolution([2, 5, 7, 12], [3, 3], 18, ones)),
        of(2, convolution([1, 2, 3, 64], [3, 3], 17, ones)),
        of(2, convolution([1, 14, 14, 40], [3, 3], 24, [(1, 0), (0, 1)])),
        of(4, convolution([1, 9, 10, 6], [1, 3], 20, [(0, 0), (1, 1)])),
        of(2, convolution([1, 9, 10, 6], [3, 1], 20, [(1, 1), (0, 0)])),
        of(2, convolution([1, 5, 9, 21], [1, 7], 18, [(0, 0), (3, 3)])),
        of(2, convolution([2, 9, 5, 8], [7, 1], 20, [(3, 3), (0, 0)])),
        of(4, convolution([1, 9, 10, 3], [5, 5], 20, [(2, 2), (2, 2)])),
        of(2, convolution([1, 8, 7, 12], [5, 3], 17, [(2, 2), (1, 1)])),
        of(3, convolution([1, 8, 9, 12], [2, 2], 17, [(0, 0), (0, 1)])),
        of(5, convolution([2, 8, 9, 5], [4, 2], 12, [(1, 2), (0, 0)])),
        of(3, moving([2, 2], [1, 16, 16, 16], [3, 3], 16, ones)),
        of(5, moving([2, 2], [2, 17, 12, 21], [3, 3], 19, ones)),
        of(3, moving([2, 2], [1, 9, 14, 6], [3, 3], 33, [(0, 0), (0, 1)])),
        of(3, moving([2, 2], [1, 15, 18, 3], [7, 7], 20, [(3, 3), (3, 2)])),
        of(5, moving([2, 2], [1, 12, 11, 8], [4, 4], 18, ones)),
        of(4, moving([2, 2], [1, 13, 14, 7], [5, 5], 17, [(2, 2), (2, 2)])),
        of(2, moving([2, 2], [1, 9, 8, 4], [6, 5], 20, [(2, 2), (2, 2)])),
        of(3, moving([2, 1], [1, 9, 8, 7], [3, 2], 16, [(1, 1), (0, 0)])),
        of(3, moving([1, 2], [1, 6, 17, 20], [1, 3], 18, [(0, 0), (1, 1)])),
        of(3, moving([2, 2], [1, 9, 15, 20], [1, 3], 10, [(0, 0), (1, 1)])),
        of(4, moving([1, 2], [1, 9, 10, 5], [3, 6], 18, [(1, 1), (2, 2)])),
    ]
}

#[test]
fn tiles_of_every_edge_agree_with_the_evaluator() {
    let mut generator = Generator::new(5);
    for size in [5, 4, 3, 2] {
        let layers: Vec<_> = layers().into_iter().filter(|layer| layer.0 == size).collect();
        for (turn, bytes) in [16, 32, 64].into_iter().enumerate() {
            // Each layer has its epilogue for some vectors, and none for others.
            let graph = |(number, (_, op, types)): (usize, &(usize, Op, Vec<TensorType>))| {
                let epilogue = (number + turn).is_multiple_of(2);
                let name = format!("{op:?} {types:?} epilogue {epilogue}");
                graph_of(&name, op.clone(), types, true, epilogue, &mut generator)
            };
            let graphs: Vec<Graph> = layers.iter().enumerate().map(graph).collect();
            check_by(&graphs, &Target::host(bytes), &by(&format!("winograd:outputs={size}")), 1e-4);
        }
    }
}

/// A layer of so many rows and columns, 56 channels and 20 outputs, on several x of the same shape, which are one program's: C compilers
/// take most of the time.
struct Sums {
    window: [usize; 2],
    stride: usize,
    weights: Tensor,
    /// What each x is, and its elements.
    xs: Vec<(&'static str, Vec<f64>)>,
}

/// Taps, and elements that the window moves by.
type Window = ([usize; 2], usize);

/// A number by its row and column, and a random one.
type Number = fn([usize; 2], f64) -> f64;

const ROWS: usize = 16;
const CHANNELS: usize = 56;
const OUTPUTS: usize = 20;

/// Elements of so many rows and columns, each of which has so many.
fn fill([rows, columns]: [usize; 2], rest: usize, seed: u64, number: Number) -> Vec<f64> {
    let mut generator = Generator::new(seed);
    let mut random = || generator.range(0, 2_000_000) as f64 / 1e6 - 1.0;
    let places = 0..rows * columns * rest;
    places.map(|place| f64::from(number([place / rest / columns, place / rest % columns], random()) as f32)).collect()
}

impl Sums {
    fn new((window, stride): Window, weights: Number, xs: &[(&'static str, Number)]) -> Sums {
        let [height, width] = window;
        let ty = TensorType::new(DType::F32, [height, width, CHANNELS, OUTPUTS]);
        let weights = Tensor::from_floats(ty, fill(window, CHANNELS * OUTPUTS, 2, weights));
        let xs = xs.iter().map(|&(name, number)| (name, fill([ROWS; 2], CHANNELS, 1, number))).collect();
        Sums { window, stride, weights, xs }
    }

    /// All x as one.
    fn x(&self) -> Tensor {
        let ty = TensorType::new(DType::F32, [self.xs.len(), ROWS, ROWS, CHANNELS]);
        Tensor::from_floats(ty, self.xs.iter().flat_map(|(_, x)| x.iter().copied()).collect())
    }

    fn graph(&self) -> Graph {
        let x = [self.xs.len(), ROWS, ROWS, CHANNELS];
        let (op, types) = moving([self.stride; 2], x, self.window, OUTPUTS, [(0, 0), (0, 0)]);
        let mut graph = Graph::new("sums");
        let x = graph.add_input("x", types[0].clone());
        let weights = graph.add_constant("weights", Attribute::from_tensor(&self.weights));
        let node = graph.add(op, &[x, weights], "result").unwrap();
        graph.add_output("y", node.into());
        graph
    }

    /// The sums of one x in double precision.
    fn exact(&self, x: &[f64]) -> Vec<f64> {
        let weights = self.weights.to_floats();
        let [height, width] = self.window;
        let sum = |row: usize, column: usize, output: usize| -> f64 {
            let product = |place: usize| {
                let (tap, channel) = (place / CHANNELS, place % CHANNELS);
                let at = (row * self.stride + tap / width) * ROWS + column * self.stride + tap % width;
                x[at * CHANNELS + channel] * weights[place * OUTPUTS + output]
            };
            (0..height * width * CHANNELS).map(product).sum()
        };
        let [rows, columns] = [height, width].map(|taps| (ROWS - taps) / self.stride + 1);
        let places = (0..rows * columns).map(|place| (place / columns, place % columns));
        places
            .flat_map(|(row, column)| (0..OUTPUTS).map(move |output| (row, column, output)))
            .map(|(r, c, o)| sum(r, c, o))
            .collect()
    }

    /// The largest error of a schedule on each x; `None` without a C compiler.
    fn errors(&self, schedule: &str) -> Option<Vec<f64>> {
        let target = Target::host(32);
        let module = module(&self.graph(), &target, by(schedule)).unwrap();
        let output = run(&[module], &target, &self.x().to_le_bytes())?;
        let found: Vec<f64> =
            output.chunks_exact(4).map(|own| f64::from(f32::from_le_bytes(own.try_into().unwrap()))).collect();
        let of_each = found.chunks_exact(found.len() / self.xs.len()).zip(&self.xs);
        let error = |(found, (_, x)): (&[f64], &(&str, Vec<f64>))| {
            found.iter().zip(self.exact(x)).map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max)
        };
        Some(of_each.map(error).collect())
    }
}

fn module(graph: &Graph, target: &Target, schedules: ScheduleOptions) -> Result<Module, String> {
    let options =
        Options { model_name: "m".into(), target: target.clone(), execution: Execution::default(), schedules };
    generate(graph, &options).map_err(|errors| format!("{errors:?}"))
}

#[test]
fn errors_are_at_most_twenty_times_those_of_plain_convolutions() {
    // Windows, and the results of a tile along each axis of several taps. Phases of those that move by two have 2 and 4 taps.
    let windows: [(Window, &[usize]); 6] = [
        (([3, 3], 1), &[2, 4]),
        (([1, 7], 1), &[2]),
        (([7, 1], 1), &[2]),
        (([5, 5], 1), &[2, 4]),
        (([3, 3], 2), &[3, 5]),
        (([7, 7], 2), &[3, 5]),
    ];
    for (window, sizes) in windows {
        for sums in cases(window) {
            let Some(plain) = sums.errors("tiles") else { return };
            for outputs in sizes {
                let errors = sums.errors(&format!("winograd:outputs={outputs}")).unwrap();
                assert_eq!(errors.len(), plain.len());
                for ((error, plain), (name, _)) in errors.iter().zip(&plain).zip(&sums.xs) {
                    println!("{name}, {window:?}, {outputs} outputs: {:.2} times", error / plain);
                    assert!(*error <= 20.0 * plain, "{name}, {window:?}, {outputs} outputs: {error}, plain {plain}");
                }
            }
        }
    }
}

/// Sums that roundings could do much to.
fn cases(window: Window) -> [Sums; 3] {
    fn sign(place: [usize; 2]) -> f64 {
        if place[0].abs_diff(place[1]).is_multiple_of(2) { 1.0 } else { -1.0 }
    }
    let signs: Number = |place, random| sign(place) * (3.0 + random);
    let of_random_weights: [(&str, Number); 4] = [
        ("random", |_, random| random),
        ("large mean, small variation", |_, random| 1000.0 + random),
        ("of very different sizes", |place, random| random * 100f64.powi(place[1] as i32 % 3)),
        ("without negative numbers", |_, random| random.max(0.0)),
    ];
    [
        Sums::new(window, |_, random| random, &of_random_weights),
        Sums::new(window, |place, random| sign(place) * random, &[("alternating signs", signs)]),
        Sums::new(window, |_, random| 1.0 + 0.01 * random, &[("signs against each other", signs)]),
    ]
}

/// The schedule that a layer of so many rows, channels and outputs takes.
fn taken(rows: usize, channels: usize, target: &Target) -> String {
    taken_by(convolution([1, rows, rows, channels], [3, 3], channels, [(1, 1), (1, 1)]), target)
}

fn taken_by((op, types): (Op, Vec<TensorType>), target: &Target) -> String {
    let graph = graph_of("taken", op, &types, true, false, &mut Generator::new(1));
    let module = module(&graph, target, ScheduleOptions::default()).unwrap();
    let kernel = module.kernels.iter().find(|kernel| kernel.node == "result").unwrap();
    kernel.choice.taken().unwrap().schedule.to_string()
}

#[test]
fn windows_that_move_by_two_are_computed_so_where_that_is_faster() {
    for bytes in [32, 64] {
        let target = Target::host(bytes);
        let stem = moving([2, 2], [1, 224, 224, 3], [7, 7], 64, [(3, 2), (3, 2)]);
        assert!(taken_by(stem, &target).starts_with("winograd:outputs=5,"), "{bytes}");
        let deep = moving([2, 2], [1, 56, 56, 64], [3, 3], 128, [(1, 0), (1, 0)]);
        let schedule = taken_by(deep, &target);
        assert!(schedule.starts_with("winograd:outputs="), "{bytes}: {schedule}");
        // Few channels are transformed for too few products, and what few pixels share comes from memory.
        for (rows, channels, outputs) in [(32, 8, 8), (14, 256, 512)] {
            let own = moving([2, 2], [1, rows, rows, channels], [3, 3], outputs, [(1, 0), (1, 0)]);
            let schedule = taken_by(own, &target);
            assert!(schedule.starts_with("tiles"), "{bytes}, {rows} rows: {schedule}");
        }
    }
}

#[test]
fn large_layers_are_computed_so_where_that_is_faster() {
    let target = Target::host(64);
    for (rows, channels, outputs) in [(56, 64, 4), (28, 128, 4), (14, 256, 4), (7, 512, 2), (32, 16, 4), (5, 64, 2)] {
        let schedule = taken(rows, channels, &target);
        let start = format!("winograd:outputs={outputs},");
        assert!(schedule.starts_with(&start), "{rows} rows, {channels} channels: {schedule}");
    }
    // Where vectors are shorter, the largest of these weights take longer to come than their products.
    for (rows, channels, outputs) in [(14, 256, 4), (7, 512, 2)] {
        let schedule = taken(rows, channels, &Target::host(32));
        assert!(schedule.starts_with(&format!("winograd:outputs={outputs},")), "{rows} rows: {schedule}");
    }
    for (rows, channels) in [(3, 8), (1, 64)] {
        let schedule = taken(rows, channels, &target);
        assert!(schedule.starts_with("tiles"), "{rows} rows, {channels} channels: {schedule}");
    }
}

#[test]
fn plain_sums_stay_where_order_or_memory_count() {
    let host = || Target::host(64);
    let others = [
        host().with_floating_point(FloatingPoint::Strict),
        host().with_objective(Objective::Size),
        host().with_objective(Objective::Ram),
        Target::generic(),
        embedded("cortex-m4"),
        embedded("cortex-m55"),
    ];
    for target in others {
        let schedule = taken(28, 32, &target);
        assert!(!schedule.starts_with("winograd"), "{}: {schedule}", target.name);
    }
    let strict = host().with_floating_point(FloatingPoint::Strict);
    let (op, types) = convolution([1, 8, 8, 16], [3, 3], 16, [(1, 1), (1, 1)]);
    let graph = graph_of("strict", op, &types, true, false, &mut Generator::new(1));
    let error = module(&graph, &strict, by("winograd")).unwrap_err();
    assert!(error.contains("has no schedule"), "{error}");
}
