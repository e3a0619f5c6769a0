//! Half precision on emulated machines: conversions by their instructions, networks beside the same in single precision.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::{FloatingPoint, Target};
use mlc_ir::{DType, Generator, Graph, Objective, Tensor, TensorType, text};
use mlc_tests::firmware::{find, measure_for, measure_in_halves, missing, target};
use mlc_tests::random::{Bounds, judge};
use std::process::Command;

/// Machines with instructions for halves: two conversions, vectors that compute with halves, conversions of vectors.
const MACHINES: [&str; 6] = ["cortex-m4", "cortex-m7", "cortex-m55", "aarch64", "cortex-a76", "armv7-neon"];

fn available() -> impl Iterator<Item = &'static str> {
    MACHINES.into_iter().filter(|machine| {
        let missing = missing(machine);
        if let Some(reason) = &missing {
            eprintln!("skipped on {machine}: {reason}");
        }
        missing.is_none()
    })
}

/// What a graph computes on a machine.
fn outputs(graph: &Graph, inputs: &[Tensor], machine: &str, objective: Objective) -> Vec<Tensor> {
    let target = target(machine).unwrap().with_objective(objective);
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {}).unwrap();
    let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap());
    program
        .and_then(|program| program.run(inputs))
        .unwrap_or_else(|fault| panic!("{machine}: {fault} {:?}", fault.notes))
}

/// The most instructions that DS-CNN in halves takes on a machine, for a thousand of those in singles.
const BOUNDS: [(&str, u64); 2] = [("cortex-m4", 1300), ("cortex-m55", 700)];

#[test]
fn halves_are_about_as_fast_as_singles_or_faster() {
    let Some(case) = find("net_mlperftiny_dscnn_kws") else { return eprintln!("skipped: there is no DS-CNN here") };
    for (machine, most) in BOUNDS.into_iter().filter(|(machine, _)| available().any(|own| own == *machine)) {
        let singles = measure_for(&case, machine, Objective::Speed).unwrap_or_else(|fault| panic!("{fault}"));
        let halves = measure_in_halves(&case, machine, Objective::Speed).unwrap_or_else(|fault| panic!("{fault}"));
        let (own, other) = (halves.cost.instructions, singles.cost.instructions);
        assert!(own * 1000 <= other * most, "{machine}: {own} instructions instead of {other}");
        assert!(halves.arena_bytes * 2 <= singles.arena_bytes + 64, "{machine}: {} bytes of arena", halves.arena_bytes);
        let constants = [&halves, &singles].map(|measured| measured.footprint.constants_bytes);
        assert!(constants[0] * 2 <= constants[1] + 1024, "{machine}: {constants:?} bytes of constants");
    }
}

#[test]
fn instructions_convert_as_the_evaluator_does() {
    let bits: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let halves = Tensor::from_le_bytes(TensorType::new(DType::F16, [1 << 16]), &bits);
    let mut generator = Generator::new(9);
    let mut singles: Vec<f64> = halves.to_floats().windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let beside: Vec<f64> = singles.iter().step_by(5).map(|&middle| f64::from((middle as f32).next_up())).collect();
    singles.truncate((1 << 15) - 4);
    singles.extend(beside);
    singles.extend([65519.996, 65520.0, 65504.0, f64::INFINITY]);
    singles.extend((0..9999).map(|_| f64::from(f32::from_bits(generator.bits() as u32))));
    let singles = Tensor::from_floats(TensorType::new(DType::F32, [singles.len()]), singles);
    // Steps of two elements are for single ones where there are vectors.
    let convert = |from: &Tensor, step: usize, to: DType| {
        let count = from.shape()[0];
        let text = format!(
            "mlc 1\ngraph @g(%x: {0}[{1}]) -> (\"y\": {to}[{1}], \"z\": {to}[{2}]) {{\n  %y = cast %x {{dtype = {to}}}\n  \
             %s = slice %x {{starts = [0], sizes = [{2}], steps = [{step}]}}\n  %z = cast %s {{dtype = {to}}}\n  \
             return %y, %z\n}}\n",
            from.ty().dtype,
            count,
            count.div_ceil(step)
        );
        text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
    };
    for (from, graph) in [(&halves, convert(&halves, 3, DType::F32)), (&singles, convert(&singles, 3, DType::F16))] {
        let expected = mlc_ir::evaluate(&graph, std::slice::from_ref(from)).unwrap();
        for machine in available() {
            let found = outputs(&graph, std::slice::from_ref(from), machine, Objective::Speed);
            for (found, expected) in found.iter().zip(&expected) {
                for (place, (x, y)) in found.to_floats().into_iter().zip(expected.to_floats()).enumerate() {
                    let same = x.to_bits() == y.to_bits() || x == y || x.is_nan() && y.is_nan();
                    assert!(same, "{machine}: element {place} of {} is {x:e}, not {y:e}", found.ty());
                }
            }
        }
    }
}

/// Sums of products in halves: windows that are cut at the border, even and odd channels, rests of vectors, sums longer than a run,
/// channels by themselves, epilogues of simple steps and of others, and what isn't a sum of products.
const GRAPHS: [(&str, [&str; 2], &str); 6] = [
    (
        "windows",
        ["f16[1, 7, 9, 3]", "f16[1, 6, 3, 5]"],
        "  %v = constant f16[3, 3, 3, 6] random(seed = 1)
  %w = constant f16[3, 3, 6, 21] random(seed = 2)
  %u = constant f16[2, 2, 21, 5] random(seed = 3)
  %b = constant f16[21] random(seed = 4)
  %p = convolution %x, %v {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %q = convolution %p, %w {strides = [1, 2], dilations = [1, 1], pads = [[1, 1], [1, 0]], groups = 1}
  %r = binary %q, %b {function = add}
  %s = unary %r {function = relu}
  %y = convolution %s, %u {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}",
    ),
    (
        "channels",
        ["f16[1, 6, 8, 16]", "f16[1, 2, 3, 6]"],
        "  %v = constant f16[3, 3, 1, 16] random(seed = 1)
  %w = constant f16[3, 3, 1, 32] random(seed = 2)
  %u = constant f16[1, 1, 32, 6] random(seed = 3)
  %t = constant f16[3, 2, 1, 6] random(seed = 4)
  %p = convolution %x, %v {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 16}
  %q = convolution %p, %w {strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 16}
  %r = convolution %q, %u {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %y = convolution %r, %t {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [0, 1]], groups = 6}",
    ),
    (
        "long sums",
        ["f16[5, 203]", "f16[5, 13]"],
        "  %v = constant f16[203, 130] random(seed = 1)
  %w = constant f16[130, 13] random(seed = 2)
  %b = constant f16[13] random(seed = 3)
  %six = constant f16[] [6.0]
  %h = unary %x {function = tanh}
  %p = matmul %h, %v {transpose_left = false, transpose_right = false}
  %l = binary %p, %six {function = minimum}
  %q = matmul %l, %w {transpose_left = false, transpose_right = false}
  %r = binary %q, %b {function = add}
  %m = binary %r, %six {function = maximum}
  %y = binary %m, %b {function = multiply}",
    ),
    (
        "functions",
        ["f16[3, 8]", "f16[3, 24]"],
        "  %v = constant f16[8, 20] random(seed = 1)
  %w = constant f16[20, 24] random(seed = 2)
  %p = matmul %x, %v {transpose_left = false, transpose_right = false}
  %q = unary %p {function = sigmoid}
  %r = matmul %q, %w {transpose_left = false, transpose_right = false}
  %y = unary %r {function = absolute}",
    ),
    (
        "pools",
        ["f16[1, 8, 8, 11]", "f16[1, 4, 4, 11]"],
        "  %a = average_pool %x {window = [3, 3], strides = [2, 2], dilations = [1, 1], pads = [[1, 1], [1, 1]], counted_pads = [[1, 1], [1, 1]]}
  %m = max_pool %x {window = [2, 2], strides = [2, 2], dilations = [1, 1], pads = [[0, 0], [0, 0]]}
  %y = binary %a, %m {function = add}",
    ),
    (
        "the exponent of singles",
        ["bf16[4, 30]", "f16[4, 9]"],
        "  %v = constant bf16[30, 9] random(seed = 1)
  %p = matmul %x, %v {transpose_left = false, transpose_right = false}
  %q = unary %p {function = relu}
  %h = cast %q {dtype = f16}
  %y = binary %h, %h {function = add}",
    ),
];

#[test]
fn operators_on_halves_compute_what_the_evaluator_says() {
    for case in GRAPHS {
        let (name, graph) = (case.0, parsed(case));
        let x = Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let inputs = [x];
        let bounds = Bounds::of(&graph, &inputs).unwrap();
        for machine in available() {
            for objective in [Objective::Speed, Objective::Size] {
                let found = outputs(&graph, &inputs, machine, objective);
                let compared = judge(&graph, &inputs, &bounds, &found);
                let compared =
                    compared.unwrap_or_else(|fault| panic!("{name} on {machine} for {objective:?}: {fault}"));
                assert!(compared.agreeing > 0, "{name}: nothing is compared");
            }
        }
    }
}

/// Sums of products are sums of halves where vectors compute with them, unless code must be strict.
#[test]
fn vectors_compute_with_halves() {
    let graph = parsed(GRAPHS[0]);
    let code = |floating_point| {
        let target = target("cortex-a76").unwrap().with_floating_point(floating_point);
        let options = CompileOptions { target, ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        compiled.module.sources[0].text.clone()
    };
    let (fast, strict) = (code(FloatingPoint::Fast), code(FloatingPoint::Strict));
    assert!(fast.contains("typedef _Float16 f16x8 ") && fast.contains("f16x8 sum_0_0 "), "{fast}");
    assert!(!strict.contains("f16x8 sum_0_0 ") && strict.contains("f32x4 sum_0_0 "), "{strict}");
}

/// The machine whose vectors of 64 bytes compute with halves.
const WIDE: &str = "x86-64-v4-fp16";

/// What the C compiler of this machine makes of a text, as assembly; or what it has against it.
fn assembly(text: &str, flags: &[String]) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let [source, result] = ["x.c", "x.s"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new("cc");
    command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-S"]).arg(&source).arg("-o").arg(&result);
    let output = command.output().map_err(|error| error.to_string())?;
    let faults = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(std::fs::read_to_string(&result).unwrap()) } else { Err(faults) }
}

/// Whether the C compiler of this machine has vectors of halves with some options.
fn has_halves(flags: &[String]) -> bool {
    let vector = "typedef _Float16 half __attribute__((vector_size(64)));\nextern half x;\nhalf x;\n";
    let found = assembly(vector, flags);
    if let Err(faults) = &found {
        eprintln!("skipped: {faults}");
    }
    found.is_ok()
}

fn parsed((name, [input, output], body): (&str, [&str; 2], &str)) -> Graph {
    let text = format!("mlc 1\ngraph @g(%x: {input}) -> (\"y\": {output}) {{\n{body}\n  return %y\n}}\n");
    text::parse(&text, &()).unwrap_or_else(|faults| panic!("{name}: {faults:?}"))
}

/// Rests of wide vectors, sums longer than a run, borders and channels by themselves. C compilers need long for vectors that they compute lane
/// by lane.
const SMALL: [(&str, [&str; 2], &str); 2] = [
    (
        "products",
        ["f16[2, 130]", "f16[2, 40]"],
        "  %w = constant f16[130, 40] random(seed = 1)
  %b = constant f16[40] random(seed = 2)
  %p = matmul %x, %w {transpose_left = false, transpose_right = false}
  %q = binary %p, %b {function = add}
  %y = unary %q {function = relu}",
    ),
    (
        "windows",
        ["f16[1, 3, 3, 2]", "f16[1, 3, 3, 32]"],
        "  %v = constant f16[2, 2, 2, 32] random(seed = 1)
  %w = constant f16[2, 2, 1, 32] random(seed = 2)
  %p = convolution %x, %v {strides = [1, 1], dilations = [1, 1], pads = [[1, 0], [0, 1]], groups = 1}
  %y = convolution %p, %w {strides = [1, 1], dilations = [1, 1], pads = [[0, 1], [1, 0]], groups = 32}",
    ),
];

/// A C compiler for another processor computes the same text lane by lane, by way of singles, and rounds each product and each sum.
#[test]
fn text_for_wide_vectors_of_halves_computes_what_the_evaluator_says() {
    let target = Target::host(64).with_half_vectors(true).with_objective(Objective::Size);
    if !has_halves(&target.c_flags) {
        return;
    }
    for case in SMALL {
        let graph = parsed(case);
        let inputs = [Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0])];
        let bounds = Bounds::of(&graph, &inputs).unwrap();
        let options = CompileOptions { target: target.clone(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        assert!(compiled.module.sources[0].text.contains("f16x32 sum_0_0 "), "{}", case.0);
        let program = Toolchain::from_variable(None).build(&compiled.bundle().unwrap()).unwrap();
        let found = program.run(&inputs).unwrap();
        let compared = judge(&graph, &inputs, &bounds, &found).unwrap_or_else(|fault| panic!("{}: {fault}", case.0));
        assert!(compared.agreeing > 0, "{}: nothing is compared", case.0);
    }
}

/// Products with a sum and sums of sums are single instructions where the processor has them.
#[test]
fn wide_vectors_of_halves_are_instructions() {
    let target = target(WIDE).unwrap();
    if !has_halves(&target.c_flags) {
        return;
    }
    let mut found = String::new();
    for case in GRAPHS {
        let options = CompileOptions { target: target.clone(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&parsed(case), &options, &mut |_, _| {}).unwrap();
        let text = &compiled.module.sources[0].text;
        found += &assembly(text, &target.c_flags).unwrap_or_else(|faults| panic!("{}: {faults}\n{text}", case.0));
    }
    let instructions: Vec<&str> = found.split_whitespace().filter(|word| word.ends_with("ph")).collect();
    for (start, most) in [("vfmadd", 2), ("vaddph", 1)] {
        assert!(instructions.iter().filter(|own| own.starts_with(start)).count() >= most, "{instructions:?}");
    }
}

/// Every order of numbers that are not whole, and of those that are none.
#[test]
fn vectors_of_halves_compare_as_the_evaluator_does() {
    let special = [0.0, -0.0, 1.0, -1.0, 6e-8, -6e-8, 65504.0, -65504.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let pairs = special.iter().flat_map(|&x| special.iter().map(move |&y| (x, y)));
    let (mut left, mut right): (Vec<f64>, Vec<f64>) = pairs.unzip();
    left.resize(128, 0.5);
    right.resize(128, -0.25);
    let constant = |values: &[f64]| {
        let texts: Vec<String> = values.iter().map(|&value| mlc_ir::types::Float(value).to_string()).collect();
        format!("[{}]", texts.join(", "))
    };
    for step in
        ["unary %p {function = relu}", "binary %p, %r {function = maximum}", "binary %p, %r {function = minimum}"]
    {
        // A product with one keeps the numbers and makes what follows its epilogue.
        let text = format!(
            "mlc 1\ngraph @g(%x: f16[1, 1, 1, 128]) -> (\"y\": f16[1, 1, 1, 128]) {{\n  \
             %w = constant f16[1, 1, 1, 128] splat(1.0)\n  %r = constant f16[128] {}\n  \
             %p = convolution %x, %w {{strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 128}}\n  \
             %y = {step}\n  return %y\n}}\n",
            constant(&right)
        );
        let graph = text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
        let x = [Tensor::from_floats(TensorType::new(DType::F16, [1, 1, 1, 128]), left.clone())];
        let expected = mlc_ir::evaluate(&graph, &x).unwrap();
        for machine in available().filter(|&machine| matches!(machine, "cortex-a76" | "cortex-m55")) {
            let found = outputs(&graph, &x, machine, Objective::Speed);
            for (place, (x, y)) in found[0].to_floats().into_iter().zip(expected[0].to_floats()).enumerate() {
                assert!(x == y || x.is_nan() && y.is_nan(), "{machine}: {step}: element {place} is {x:e}, not {y:e}");
            }
        }
    }
}

#[test]
fn weights_in_halves_take_half_the_flash_and_move_outputs_little() {
    let Some(case) = find("net_mlperftiny_dscnn_kws") else { return eprintln!("skipped: there is no DS-CNN here") };
    let loaded = mlc_tests::compile::load(&case).unwrap();
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    for (machine, half, most) in [
        ("cortex-m4", DType::F16, 1300),
        ("cortex-m55", DType::F16, 1400),
        ("cortex-m55", DType::Bf16, 1400),
        ("aarch64", DType::F16, 0),
    ] {
        if !available().any(|own| own == machine) {
            continue;
        }
        let options =
            CompileOptions { target: target(machine).unwrap(), weights_type: Some(half), ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
        assert_eq!((compiled.narrowed.narrowed.len(), compiled.narrowed.kept.len()), (10, 0));
        let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
        let (outputs, cost) = program.run_counted(&inputs).unwrap();
        // The code computes what the network with rounded weights does, and that is near to what the other one does.
        let bounds = Bounds::of(&compiled.graph, &inputs).unwrap();
        judge(&compiled.graph, &inputs, &bounds, &outputs).unwrap_or_else(|fault| panic!("{machine} {half}: {fault}"));
        let golden = case.outputs[0].value.to_floats();
        let largest = golden.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
        let near = if half == DType::F16 { 2e-3 } else { 2e-2 };
        for (found, golden) in outputs[0].to_floats().iter().zip(golden) {
            assert!((found - golden).abs() <= near * largest, "{machine} {half}: {found} instead of {golden}");
        }
        let Some((cost, footprint)) = cost.zip(program.footprint) else { continue };
        let singles = measure_for(&case, machine, Objective::Speed).unwrap_or_else(|fault| panic!("{fault}"));
        let (own, other) = (footprint.constants_bytes, singles.footprint.constants_bytes);
        assert!(own * 100 <= other * 53, "{machine}: {own} bytes of constants instead of {other}");
        let (own, other) = (cost.instructions, singles.cost.instructions);
        assert!(own * 1000 <= other * most, "{machine} {half}: {own} instructions instead of {other}");
    }
}
