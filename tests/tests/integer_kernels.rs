//! Kernels of quantised networks on emulated microcontrollers, bit for bit the evaluator's: borders, strides, and sizes that tiles don't
//! divide. What lacks its tools here is skipped, and says so.

use mlc::inputs::random;
use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_ir::{DType, TensorType, evaluate, text};
use mlc_tests::firmware::{missing, target};
use mlc_tests::program::hasty;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A convolution of x [1, 7, 6, 5], or of fewer rows.
struct Layer {
    dtype: &'static str,
    rows: usize,
    window: [usize; 2],
    strides: [usize; 2],
    pads: [[usize; 2]; 2],
    groups: usize,
    outputs: usize,
    /// Where it isn't the smallest number of the type.
    low: Option<i64>,
    /// Outputs without weights, which begin with more than can be doubled.
    silent: std::ops::Range<usize>,
    /// Whether all weights of an output are the same.
    alike: bool,
    schedule: &'static str,
}

const ROWS: usize = 7;
/// What a window has to make one row of results.
const FEW_ROWS: usize = 3;
const COLUMNS: usize = 6;
const CHANNELS: usize = 5;

fn layers() -> Vec<Layer> {
    let mut list = Vec::new();
    for dtype in ["i8", "u8"] {
        let dense = |window, strides, pads, outputs, low, schedule| Layer {
            dtype,
            rows: ROWS,
            window,
            strides,
            pads,
            groups: 1,
            outputs,
            low,
            silent: 0..0,
            alike: false,
            schedule,
        };
        let depthwise = |window, strides, pads, low, schedule| Layer {
            groups: CHANNELS,
            ..dense(window, strides, pads, CHANNELS, low, schedule)
        };
        for stride in [1, 2] {
            for pads in [[[1, 1]; 2], [[0, 1]; 2], [[0, 0], [1, 1]]] {
                list.push(depthwise([3, 3], [stride; 2], pads, None, "row-pairs"));
            }
        }
        list.push(Layer { silent: 1..3, ..depthwise([3, 3], [1, 1], [[1, 1]; 2], None, "row-pairs") });
        for (strides, columns) in
            [([1, 1], [1, 1]), ([1, 1], [0, 1]), ([2, 1], [1, 0]), ([1, 1], [0, 0]), ([2, 2], [0, 1]), ([1, 2], [1, 1])]
        {
            let row = depthwise([3, 3], strides, [[0, 0], columns], None, "row-windows");
            list.push(Layer { rows: FEW_ROWS, ..row });
        }
        let row = depthwise([3, 3], [2, 2], [[0, 0]; 2], None, "row-windows");
        list.push(Layer { rows: FEW_ROWS, silent: 1..3, ..row });
        list.push(depthwise([3, 3], [1, 1], [[1, 1]; 2], Some(3), "planes"));
        list.push(depthwise([3, 3], [1, 2], [[1, 1]; 2], None, "planes"));
        list.push(depthwise([2, 5], [1, 1], [[1, 1], [2, 2]], None, "planes"));
        list.push(depthwise([5, 1], [1, 1], [[0, 0]; 2], None, "planes"));
        list.push(depthwise([3, 6], [2, 1], [[0, 0]; 2], None, "planes"));
        for (window, strides) in [([7, 6], [1, 1]), ([3, 2], [2, 1]), ([2, 1], [1, 3])] {
            list.push(Layer { alike: true, ..depthwise(window, strides, [[0, 0]; 2], None, "window-sums") });
        }
        for outputs in [3, 4, 6, 18] {
            list.push(dense([1, 1], [1, 1], [[0, 0]; 2], outputs, None, "pixel-dots"));
        }
        list.push(dense([1, 1], [1, 1], [[0, 0]; 2], 4, Some(1), "pixel-dots"));
        for silent in [3..6, 0..8] {
            list.push(Layer { silent, ..dense([1, 1], [1, 1], [[0, 0]; 2], 8, None, "pixel-dots") });
        }
        // Sixteen pixels are five times three, and one.
        list.push(Layer { silent: 4..6, ..dense([4, 3], [1, 1], [[0, 0]; 2], 8, None, "window-dots") });
        list.push(dense([3, 3], [1, 1], [[1, 1]; 2], 4, None, "window-dots"));
        list.push(dense([3, 3], [1, 1], [[1, 1]; 2], 4, None, "band-dots"));
        list.push(dense([3, 3], [2, 2], [[0, 1], [2, 2]], 3, None, "window-dots"));
        list.push(dense([2, 3], [3, 1], [[1, 0], [1, 1]], 2, Some(-5), "window-dots"));
        list.push(dense([3, 3], [2, 2], [[0, 1], [1, 1]], 3, None, "window-dots"));
        list.push(dense([2, 3], [2, 1], [[1, 0], [2, 2]], 2, Some(-5), "window-dots"));
        list.push(dense([7, 6], [1, 1], [[0, 0]; 2], 5, None, "pixel-dots"));
        // Three, five, four and two pixels in a row: threes and pairs, and rows of pairs alone.
        for schedule in ["direct-dots:pixels=3", "direct-dots:pixels=3,weights=wide"] {
            for outputs in [4, 6, 18, 20] {
                list.push(dense([3, 4], [1, 1], [[0, 0]; 2], outputs, None, schedule));
            }
            list.push(dense([1, 4], [2, 1], [[0, 0], [1, 1]], 8, Some(1), schedule));
            list.push(dense([2, 4], [1, 2], [[1, 0], [1, 1]], 12, None, schedule));
            list.push(dense([3, 4], [1, 1], [[0, 0], [1, 0]], 2, Some(3), schedule));
            list.push(Layer { silent: 2..6, ..dense([4, 4], [1, 1], [[0, 0], [0, 1]], 8, None, schedule) });
        }
        // What isn't pairs of outputs goes pixel by pixel.
        list.push(dense([3, 4], [1, 1], [[0, 0]; 2], 5, None, "direct-dots"));
    }
    list
}

/// A graph of all layers, each of one of its inputs.
fn graph(layers: &[Layer]) -> String {
    let (mut results, mut body, mut names) = (Vec::new(), String::new(), Vec::new());
    for (n, layer) in layers.iter().enumerate() {
        let Layer { dtype, window, strides, pads, groups, outputs, low, silent, alike, .. } = layer;
        let size = |axis: usize| {
            let extent = [layer.rows, COLUMNS][axis] + pads[axis][0] + pads[axis][1];
            (extent - window[axis]) / strides[axis] + 1
        };
        let ty = format!("{dtype}[1, {}, {}, {outputs}]", size(0), size(1));
        let (least, most, border, added) = if *dtype == "i8" { (-128, 127, -7, -9) } else { (0, 255, 9, 30) };
        let x = format!("{dtype}x{}", layer.rows);
        let low = low.unwrap_or(least);
        let numbers =
            |of: fn(usize) -> usize| (0..*outputs).map(|output| of(output).to_string()).collect::<Vec<_>>().join(", ");
        let (multipliers, shifts) =
            (numbers(|output| (1 << 30) + output % 18 * 58_765_432), numbers(|output| 35 + output % 4));
        let (rows, columns) = (window[0], window[1]);
        let inner = CHANNELS / groups;
        let is_silent = |element: usize| silent.contains(&(element % outputs));
        // No two layers have the same weights: they would be computed once.
        let weight = |element: usize| match if *alike { element % outputs } else { element } {
            own if is_silent(own) => 0,
            own => ((own * 89 + n) % 255) as i64 - 127,
        };
        let weights: Vec<i64> = (0..rows * columns * inner * outputs).map(weight).collect();
        let first: Vec<i64> = (0..*outputs)
            .map(|output| if is_silent(output) { (1 << 30) + 5 } else { 300 * output as i64 - 500 })
            .collect();
        writeln!(
            body,
            "  %w{n} = constant i8[{rows}, {columns}, {inner}, {outputs}] {weights:?}\n  \
               %b{n} = constant i32[{outputs}] {first:?}\n  \
               %m{n} = constant i32[{outputs}] [{multipliers}]\n  \
               %s{n} = constant i32[{outputs}] [{shifts}]\n  \
               %y{n} = kernel %{x}, %w{n}, %b{n}, %m{n}, %s{n} {{anchor = convolution {{strides = {strides:?}, \
               dilations = [1, 1], pads = {pads:?}, groups = {groups}, border = {border}, sums = i32}}, anchor_operands = 2, \
               expression = cast_{dtype}(minimum(maximum(add(rescale_twice(add(x0, x1), x2, x3), {added}_i32), \
               {low}_i32), {most}_i32))}} : {ty}"
        )
        .unwrap();
        results.push(format!("\"y{n}\": {ty}"));
        names.push(format!("%y{n}"));
    }
    let inputs: Vec<String> = inputs().iter().map(|(name, ty)| format!("%{name}: {ty}")).collect();
    format!(
        "mlc 1\ngraph @t({}) -> ({}) {{\n{body}  return {}\n}}\n",
        inputs.join(", "),
        results.join(", "),
        names.join(", ")
    )
}

/// The names and types of what layers read.
fn inputs() -> Vec<(String, TensorType)> {
    let all = [DType::I8, DType::U8].into_iter().flat_map(|dtype| [ROWS, FEW_ROWS].map(|rows| (dtype, rows)));
    all.map(|(dtype, rows)| (format!("{dtype}x{rows}"), TensorType::new(dtype, [1, rows, COLUMNS, CHANNELS]))).collect()
}

#[test]
fn routines_compute_what_the_evaluator_does() {
    // An emulated board's command line has room for so many files.
    layers().chunks(16).for_each(agrees);
}

fn agrees(layers: &[Layer]) {
    let graph = text::parse(&graph(layers), &()).unwrap_or_else(|findings| panic!("{findings:?}"));
    let types = inputs();
    let inputs = random(3, &types.iter().map(|(name, ty)| (name.as_str(), ty)).collect::<Vec<_>>());
    let expected = evaluate(&graph, &inputs).unwrap();
    // What is written for the extension is C for a machine without it, too.
    for (written_for, machine) in [
        ("cortex-m4", "cortex-m4"),
        ("cortex-m4", "cortex-m0plus"),
        ("cortex-m0plus", "cortex-m0plus"),
        ("cortex-m0plus", "cortex-m4"),
        ("cortex-m55", "cortex-m55"),
        ("riscv32", "riscv32"),
    ] {
        if let Some(reason) = missing(machine) {
            eprintln!("skipped on {machine}: {reason}");
            continue;
        }
        let target = target(written_for).unwrap();
        let forced = |layer: &Layer| match written_for {
            _ if layer.alike => Some(layer.schedule.to_owned()),
            "cortex-m4" => Some(layer.schedule.to_owned()),
            "cortex-m0plus" if layer.schedule.starts_with("direct-dots") => Some("direct-dots".to_owned()),
            "cortex-m55" if layer.schedule.starts_with("direct-dots") => None,
            "cortex-m0plus" if layer.dtype == "i8" && layer.groups == 1 => {
                Some(layer.schedule.replace("dots", "pairs"))
            }
            "cortex-m55" if layer.groups == 1 => Some(layer.schedule.replace("dots", "vectors")),
            _ => None,
        };
        let named = |(n, layer): (usize, &Layer)| Some((format!("y{n}"), forced(layer)?));
        let schedules: BTreeMap<String, String> = layers.iter().enumerate().filter_map(named).collect();
        let options = CompileOptions { target, schedules, ..CompileOptions::default() };
        let compiled =
            pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap_or_else(|faults| panic!("{faults:?}"));
        let program = hasty(Toolchain::emulated(machine).unwrap()).build(&compiled.bundle().unwrap()).unwrap();
        let (outputs, _) = program.run_counted(&inputs).unwrap_or_else(|fault| panic!("{machine}: {fault:?}"));
        for (n, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
            assert_eq!(output, expected, "{written_for} on {machine}: y{n} by {}", layers[n].schedule);
        }
    }
}

/// Predicted instructions of a layer by one of its schedules on a machine, and executed ones.
fn predicted_and_executed(layer: &Layer, machine: &str, schedule: &str) -> [u64; 2] {
    let graph = text::parse(&graph(std::slice::from_ref(layer)), &()).unwrap();
    let types = inputs();
    let inputs = random(3, &types.iter().map(|(name, ty)| (name.as_str(), ty)).collect::<Vec<_>>());
    let schedules = BTreeMap::from([("y0".to_owned(), schedule.to_owned())]);
    let options = CompileOptions { target: target(machine).unwrap(), schedules, ..CompileOptions::default() };
    let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap_or_else(|faults| panic!("{faults:?}"));
    let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
    let cost = program.run_counted(&inputs).unwrap().1.unwrap();
    [compiled.module.kernels.iter().map(|kernel| kernel.price.time).sum(), cost.instructions]
}

/// A routine in C or in the assembly of a smaller machine isn't as fast as where the extension is, and its price says so. On RISC-V, tiles keep
/// their sums in registers.
#[test]
fn layers_of_bytes_cost_what_they_do_on_the_machine() {
    let is_large = |layer: &Layer| layer.schedule.starts_with("direct-dots") && layer.outputs == 20;
    let layer = layers().into_iter().find(is_large).unwrap();
    for (machine, schedules) in [
        ("cortex-m0plus", &["direct-dots", "window-pairs", "rolled:pixels=1,vectors=1,steps=4,weights=packed"][..]),
        (
            "cortex-m4",
            &[
                "direct-dots:pixels=3",
                "direct-dots:pixels=3,weights=wide",
                "window-dots",
                "tiles:vectors=2,weights=packed",
            ],
        ),
        (
            "riscv32",
            &["tiles:vectors=4,weights=packed", "tiles:vectors=3,weights=packed", "tiles:vectors=2,weights=packed"],
        ),
    ] {
        if let Some(reason) = missing(machine) {
            eprintln!("skipped on {machine}: {reason}");
            continue;
        }
        for schedule in schedules {
            let [predicted, executed] = predicted_and_executed(&layer, machine, schedule);
            let ratio = executed as f64 / predicted as f64;
            // The layer is small: beginning and ending routines counts.
            assert!(
                (0.7..1.45).contains(&ratio),
                "{schedule} on {machine}: {executed} executed, {predicted} predicted"
            );
        }
    }
}
