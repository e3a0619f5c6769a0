//! Networks as firmware on emulated boards: golden outputs, sizes that agree with what is promised, figures that don't grow. What
//! lacks its tools here is skipped, and says so.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::quantized::floating_point_kernels;
use mlc_ir::parallel;
use mlc_ir::{Graph, Objective, Tensor, text};
use mlc_tests::case::Case;
use mlc_tests::firmware::{
    MACHINES, Measured, NETWORKS, NETWORKS_IN_HALVES, build, find, measure, measure_for, measure_in_halves, missing,
    page, stale, target,
};
use mlc_tests::micro::{self, Arena};
use mlc_tests::paths;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Whether a machine's tools are here.
fn available(machine: &str) -> bool {
    let missing = missing(machine);
    if let Some(reason) = &missing {
        eprintln!("skipped on {machine}: {reason}");
    }
    missing.is_none()
}

#[test]
fn networks_compute_golden_outputs_and_their_figures_are_on_the_page() {
    let mut networks: Vec<(&str, Vec<Measured>)> = Vec::new();
    let mut complete = true;
    let singles = NETWORKS.map(|(name, folder)| (name, folder, measure as Measure));
    let in_halves = |case: &Case, machine: &str| measure_in_halves(case, machine, Objective::Balanced);
    let halves = NETWORKS_IN_HALVES.map(|(name, folder)| (name, folder, in_halves as Measure));
    for (name, folder, measure) in singles.into_iter().chain(halves) {
        let Some(case) = find(folder) else {
            eprintln!("skipped: there is no {folder} here");
            complete = false;
            continue;
        };
        let machines: Vec<&str> = MACHINES.into_iter().filter(|machine| available(machine)).collect();
        complete &= machines.len() == MACHINES.len();
        let rows = parallel::map(&machines, 2, |machine| measure(&case, machine));
        let rows = rows.into_iter().collect::<Result<Vec<Measured>, String>>();
        let rows = rows.unwrap_or_else(|fault| panic!("{fault}"));
        for row in &rows {
            assert_eq!(row.footprint.data_bytes, 0, "{name} on {}: weights lie in RAM", row.machine);
            let beyond = row.footprint.ram_bytes - row.arena_bytes;
            assert!(beyond < 64, "{name} on {}: {beyond} bytes of RAM beside the arena", row.machine);
            bounded(name, row);
        }
        networks.push((name, rows));
    }
    let (arenas, all_are_here) = arenas();
    complete &= all_are_here;
    let measured = page(&networks, &micro::section(&arenas));
    let path = paths::repository().join("docs/footprint.md");
    if paths::bless() && complete {
        std::fs::write(&path, &measured).unwrap();
    }
    let faults = stale(&std::fs::read_to_string(&path).unwrap_or_default(), &measured);
    let command = "MLC_BLESS=1 cargo test -p mlc-tests firmware::";
    assert!(faults.is_empty(), "docs/footprint.md is stale: run {command}\n{}", faults.join("\n"));
}

/// The arenas of int8 networks, and whether all of them are here.
fn arenas() -> (Vec<Arena>, bool) {
    // The page is about those that the other sections have in floating point, too.
    let networks = &micro::NETWORKS[..4];
    let cases: Vec<_> = networks.iter().filter_map(|network| Some((network, micro::find(network)?))).collect();
    let arenas = parallel::map(&cases, 2, |(network, case)| micro::arenas(network, case));
    let arenas = arenas.into_iter().collect::<Result<Vec<_>, String>>().unwrap_or_else(|fault| panic!("{fault}"));
    (arenas.concat(), cases.len() == networks.len())
}

#[test]
fn arenas_are_smaller_than_those_of_tensorflow_lite_micro() {
    let (arenas, _) = arenas();
    for Arena { what, arena_bytes, io_bytes, micro_bytes } in &arenas {
        assert!(((arena_bytes + io_bytes) as u64) < *micro_bytes, "{what}: {arena_bytes} + {io_bytes}");
    }
    let present = std::fs::read_to_string(paths::repository().join("docs/footprint.md")).unwrap();
    let faults = stale(&present, &micro::section(&arenas));
    assert!(faults.is_empty(), "docs/footprint.md is stale: {}", faults.join("\n"));
}

/// How a case is measured on a machine.
type Measure = fn(&Case, &str) -> Result<Measured, String>;

/// Bounds of executed instructions and of the arena: no more than the activations that live at one time take.
fn bounded(name: &str, row: &Measured) {
    let bound = match (name, row.machine.as_str()) {
        ("DS-CNN", "cortex-m4" | "cortex-m7") => 9_000_000,
        ("DS-CNN", "cortex-m55") => 5_000_000,
        ("ResNet-8", "cortex-m4" | "cortex-m7") => 45_000_000,
        _ => u64::MAX,
    };
    let instructions = row.cost.instructions;
    assert!(instructions <= bound, "{name} on {}: {instructions} instructions", row.machine);
    let arena = match name {
        "DS-CNN" => 64_000,
        "ResNet-8" => 128 << 10,
        "autoencoder" => 1 << 10,
        _ => usize::MAX,
    };
    assert!(row.arena_bytes <= arena, "{name} on {}: {} bytes of arena", row.machine, row.arena_bytes);
}

/// A network that onnxruntime's own tool quantised: no kernel of it computes with real numbers, and every machine gets its bits.
#[test]
fn quantised_networks_have_the_bits_of_onnxruntime() {
    let case = Case::read(&paths::data().join("onnx/quantized_network_static")).unwrap();
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    for machine in ["cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32"].into_iter().filter(|name| available(name)) {
        let built = build(&case, machine, machine).unwrap();
        assert!(floating_point_kernels(&built.compiled.graph, &built.compiled.module).is_empty(), "{machine}");
        let (outputs, cost) = built.program.run_counted(&inputs).unwrap();
        assert_eq!(outputs[0].to_floats(), case.outputs[0].value.to_floats(), "{machine}");
        let instructions = cost.map_or(0, |cost| cost.instructions);
        assert!(machine != "cortex-m4" || instructions < 150_000, "{instructions} instructions");
    }
}

#[test]
fn code_is_what_it_is_made_for() {
    let machine = "cortex-m4";
    if !available(machine) {
        return;
    }
    for (name, folder) in NETWORKS {
        let Some(case) = find(folder) else {
            eprintln!("skipped: there is no {folder} here");
            continue;
        };
        let all = parallel::map(&Objective::ALL, 2, |objective| measure_for(&case, machine, *objective));
        let all = all.into_iter().collect::<Result<Vec<Measured>, String>>().unwrap_or_else(|fault| panic!("{fault}"));
        let [speed, size, ram, balanced] = &all[..] else { panic!("{} objectives", all.len()) };
        let code = (size.code_bytes(), speed.code_bytes());
        assert!(code.0 * 10 <= code.1 * 6, "{name}: {} bytes of code instead of {}", code.0, code.1);
        let within = |row: &Measured, percent: u64| {
            let (own, least) = (row.cost.instructions, speed.cost.instructions);
            assert!(own * 100 <= least * percent, "{name}: {own} instructions instead of {least}");
        };
        within(size, 160);
        // Rings may be worth a twentieth, as predicted.
        within(balanced, 108);
        assert!(balanced.code_bytes() <= speed.code_bytes() + 64, "{name}: {}", balanced.code_bytes());
        assert!(all.iter().all(|other| ram.arena_bytes <= other.arena_bytes), "{name}: {} of arena", ram.arena_bytes);
        assert!(name != "ResNet-8" || size.code_bytes() <= 12 << 10, "{} bytes of code", size.code_bytes());
    }
}

#[test]
fn sizes_in_metadata_header_and_objects_agree() {
    let machine = "cortex-m4";
    if !available(machine) {
        return;
    }
    for folder in ["net_mlperftiny_dscnn_kws", "net_mlperftiny_resnet8"] {
        let case = find(folder).unwrap();
        let loaded = mlc_tests::compile::load(&case).unwrap();
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
        let files = compiled.files().unwrap();
        let read = |path: &str| String::from_utf8(files[path].clone()).unwrap();
        let metadata: serde_json::Value = serde_json::from_str(&read("metadata.json")).unwrap();
        let main = &metadata["modules"]["default"]["memory"]["functions"]["main"][0];
        let said = |key: &str| main[key].as_u64().unwrap();
        let header = read("codegen/host/include/tvmgen_default.h");
        let defined = |name: &str| -> u64 {
            let start = header.find(&format!("#define {name} ")).unwrap();
            header[start..].lines().next().unwrap().split_whitespace().nth(2).unwrap().parse().unwrap()
        };
        assert_eq!(said("workspace_size_bytes"), defined("TVMGEN_DEFAULT_WORKSPACE_SIZE"));
        assert_eq!(said("constants_size_bytes"), defined("TVMGEN_DEFAULT_CONSTANTS_SIZE"));
        let temporary = tempfile::tempdir().unwrap();
        let objects = temporary.path().join("archive");
        mlc::files::write_folder(&objects, files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
            .unwrap();
        let mut make = Command::new("make");
        make.current_dir(&objects).arg("CPPFLAGS=--specs=picolibc.specs").env_remove("CC").env_remove("AR");
        let made = make.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (data, bss, constants) = sections(&objects.join("build/libdefault.a"));
        assert_eq!(data, 0, "{folder}: weights lie in RAM");
        assert_eq!(bss, said("workspace_size_bytes"), "{folder}");
        // The descriptors' strings and shapes, and what a compiler makes tables of, come on top.
        let excess = constants.checked_sub(said("constants_size_bytes"));
        assert!(excess.is_some_and(|excess| excess < 4096), "{folder}: {constants} bytes of constants");
    }
}

/// Bytes of a library's sections of data, of zeroes and of constants.
fn sections(library: &Path) -> (u64, u64, u64) {
    let output = Command::new("arm-none-eabi-size").arg("-A").arg(library).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let sum = |prefix: &str| {
        let lines = listing.lines().filter(|line| line.starts_with(prefix));
        lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
    };
    (sum(".data"), sum(".bss"), sum(".rodata"))
}

/// A product of int8 matrices, the work of processors without floating-point instructions.
const INTEGERS: &str = r#"mlc 1
graph @integers(%x: i8[4, 32]) -> ("y": i32[4, 16]) {
  %w = constant i8[32, 16] random(seed = 3)
  %a = cast %x {dtype = i32}
  %b = cast %w {dtype = i32}
  %y = matmul %a, %b {transpose_left = false, transpose_right = false}
  return %y
}
"#;

#[test]
fn integers_run_on_processors_without_floating_point_instructions() {
    let graph = text::parse(INTEGERS, &()).unwrap();
    let input = mlc_ir::Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0]);
    let expected = mlc_ir::evaluate(&graph, std::slice::from_ref(&input)).unwrap();
    for machine in ["cortex-m0plus", "riscv32-soft"] {
        if !available(machine) {
            continue;
        }
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
        assert_eq!(program.run(std::slice::from_ref(&input)).unwrap(), expected, "{machine}");
    }
}

/// Numbers from `low` to `high`, always the same.
fn numbers(seed: &mut u64, count: usize, low: i64, high: i64) -> String {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + ((*seed >> 33) as i64).rem_euclid(high - low + 1)
    };
    let list: Vec<String> = (0..count).map(|_| next().to_string()).collect();
    list.join(", ")
}

/// Layers of bytes: whole vectors and rests of products, outputs, channels and pixels, moved windows, borders; sums that are rescaled by
/// factors of the outputs, limited, added to other bytes; and such an addition alone.
fn layers_of_bytes() -> String {
    // x, window, outputs, stride, groups.
    let layers = [
        ([5, 5, 16], [1, 1], 16, 1, 1),
        ([4, 5, 6], [1, 1], 7, 1, 1),
        ([6, 5, 16], [3, 3], 18, 1, 1),
        ([9, 7, 3], [3, 3], 8, 2, 1),
        ([12, 6, 1], [10, 4], 16, 2, 1),
        ([1, 1, 112], [1, 1], 12, 1, 1),
        ([1, 1, 37], [1, 1], 16, 1, 1),
        ([6, 5, 8], [3, 3], 8, 1, 8),
        ([7, 6, 19], [3, 3], 19, 1, 19),
        ([9, 8, 5], [3, 3], 5, 2, 5),
        ([8, 6, 7], [2, 4], 7, 2, 7),
        ([1, 8, 17], [3, 3], 17, 1, 17),
        ([2, 9, 32], [3, 3], 32, 1, 32),
    ];
    let (mut inputs, mut outputs, mut body, mut names) = (String::new(), String::new(), String::new(), String::new());
    let mut seed = 1;
    for (number, ([height, width, channels], [rows, columns], count, stride, groups)) in layers.into_iter().enumerate()
    {
        let ys = format!("1, {}, {}, {count}", (height - 1) / stride + 1, (width - 1) / stride + 1);
        let own = channels / groups;
        let weights = numbers(&mut seed, rows * columns * own * count, -127, 127);
        let bias = numbers(&mut seed, count, -50_000, 50_000);
        let multipliers = numbers(&mut seed, count - 2, 1 << 30, i32::MAX.into());
        let shifts = numbers(&mut seed, count, 34, 42);
        let low = if number % 3 == 0 { -11 } else { -128 };
        let pads = [rows, columns].map(|taps| format!("[{}, {}]", (taps - 1) / 2, taps / 2)).join(", ");
        let rescaled =
            format!("cast_i8(minimum(maximum(add(rescale_twice(add(x0, x1), x2, x3), 3_i32), {low}_i32), 127_i32))");
        let (operands, expression) = match number % 4 {
            2 => (
                format!(", %z{number}"),
                format!(
                    "cast_i8(minimum(maximum(add(rescale_twice(add(rescale_twice(shift_left(subtract(cast_i32(x4), -5_i32), \
                     20_i32), 1673821475_i32, 33_i32), rescale_twice(shift_left(subtract(cast_i32({rescaled}), 3_i32), 20_i32), \
                     1073741824_i32, 31_i32)), 1798123456_i32, 49_i32), -7_i32), -128_i32), 127_i32))"
                ),
            ),
            _ => (String::new(), rescaled),
        };
        inputs += &format!("%x{number}: i8[1, {height}, {width}, {channels}], %z{number}: i8[{ys}], ");
        outputs += &format!("\"y{number}\": i8[{ys}], \"s{number}\": i8[{ys}], ");
        names += &format!("%y{number}, %s{number}, ");
        body += &format!(
            "  %w{number} = constant i8[{rows}, {columns}, {own}, {count}] [{weights}]\n  \
             %b{number} = constant i32[{count}] [{bias}]\n  \
             %m{number} = constant i32[{count}] [{multipliers}, 1073741824, 2147483647]\n  \
             %r{number} = constant i32[{count}] [{shifts}]\n  \
             %y{number} = kernel %x{number}, %w{number}, %b{number}, %m{number}, %r{number}{operands} {{anchor = convolution {{strides = \
             [{stride}, {stride}], dilations = [1, 1], pads = [{pads}], groups = {groups}, border = -9, sums = i32}}, anchor_operands = 2, \
             expression = {expression}}} : i8[{ys}]\n  \
             %s{number} = map %y{number}, %z{number} {{expression = cast_i8(minimum(maximum(add(rescale_twice(add(rescale_twice(\
             shift_left(subtract(cast_i32(x0), -3_i32), 20_i32), 1173741824_i32, 32_i32), rescale_twice(shift_left(subtract(cast_i32(x1), \
             9_i32), 20_i32), 1973741824_i32, 34_i32)), 1398123456_i32, 49_i32), 4_i32), -128_i32), 127_i32))}} : i8[{ys}]\n"
        );
    }
    let [inputs, outputs, names] = [&inputs, &outputs, &names].map(|list| list.trim_end_matches(", "));
    format!("mlc 1\ngraph @layers({inputs}) -> ({outputs}) {{\n{body}  return {names}\n}}\n")
}

#[test]
fn layers_of_bytes_compute_on_boards_what_the_evaluator_does_in_every_bit() {
    let graph = text::parse(&layers_of_bytes(), &()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let mut seed = 3;
    let bytes = |ty: &mlc_ir::TensorType, seed: &mut u64| {
        let list = numbers(seed, ty.elements(), -128, 127);
        let list = list.split(", ").map(|number| number.parse().unwrap()).collect();
        Tensor::from_integers(ty.clone(), list)
    };
    let inputs: Vec<Tensor> = graph.inputs().iter().map(|&id| bytes(&graph.node(id).results[0], &mut seed)).collect();
    let expected = mlc_ir::evaluate(&graph, &inputs).unwrap();
    for machine in ["cortex-m55", "cortex-m4"].into_iter().filter(|machine| available(machine)) {
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        let kernels = &compiled.module.sources[0].text;
        let routines = ["mlc_sums_rescaled_i8_2x4(", "mlc_sums_rescaled_i8_1x8(", "mlc_patches_i8_2x2(", "vstrbq_s32("];
        let used = routines.iter().all(|routine| kernels.contains(routine));
        assert_eq!(used, machine == "cortex-m55", "{machine}");
        let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
        let found = program.run(&inputs).unwrap();
        for ((port, found), expected) in graph.outputs().iter().zip(&found).zip(&expected) {
            assert_eq!(found, expected, "{machine}: {}", port.name);
        }
    }
}

/// A function of the user's that keeps something, between two kernels and in a loop.
fn with_functions() -> Graph {
    let header = "struct gain { float by; int begun; };\n";
    let source = "#include <stddef.h>\n#include <stdint.h>\n#include \"gain.h\"\n\
        int32_t gain_begin(struct gain *self, const void *x, void *y, void *scratch);\n\
        int32_t gain_run(struct gain *self, const void *x, void *y, void *scratch);\n\
        int32_t gain_begin(struct gain *self, const void *x, void *y, void *scratch) {\n  \
        self->begun += x == NULL && y == NULL && scratch == NULL;\n  return 0;\n}\n\
        int32_t gain_run(struct gain *self, const void *x, void *y, void *scratch) {\n  int i;\n  float *part = scratch;\n  \
        if ((uintptr_t)scratch % 32 != 0 || (uintptr_t)x % 32 != 0) return 3;\n  \
        for (i = 0; i < 8; ++i) part[i] = self->by * ((const float *)x)[i];\n  \
        for (i = 0; i < 8; ++i) ((float *)y)[i] = part[7 - i];\n  return self->begun == 1 ? 0 : 4;\n}\n";
    let call = format!(
        "{{symbol = gain_run, convention = unpacked, operands = [f32[8]], results = [f32[8]], workspace = 32, alignment = 32, \
         operations = 16, overwrites = [[0, 0]], persistent = [], effect = 0, begin = gain_begin, end = none, \
         instance = [gain, \"gain.h\", \"{{1.5f, 0}}\"], sources = [[\"gain.h\", {header:?}], [\"gain.c\", {source:?}]]}}"
    );
    let text = format!(
        "mlc 1\ngraph @g(%x: f32[8]) -> (\"y\": f32[8]) {{\n  %a = unary %x {{function = relu}}\n  %b = extern %a {call}\n  \
         %c = unary %b {{function = tanh}}\n  %y = loop %c {{body = graph @body(%turn: i64[], %h: f32[8]) -> (\"h\": f32[8]) {{\n      \
         %next = extern %h {call}\n      return %next\n    }}, trip_count = 3, carried = 1, scanned = [], stacked = [], \
         conditional = false}}\n  return %y\n}}\n"
    );
    text::parse(&text, &()).unwrap()
}

#[test]
fn functions_of_users_run_on_boards() {
    let graph = with_functions();
    let input = mlc_ir::Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0]);
    let functions = mlc::functions::CFunctions::default();
    let expected = mlc_ir::evaluate_with(&graph, std::slice::from_ref(&input), &functions).unwrap()[0].to_floats();
    for machine in ["cortex-m4", "riscv32"] {
        if !available(machine) {
            continue;
        }
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        let program = Toolchain::emulated(machine).unwrap().build(&compiled.bundle().unwrap()).unwrap();
        let found = program.run(std::slice::from_ref(&input)).unwrap()[0].to_floats();
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(found.iter().zip(&expected).all(close), "{machine}: {found:?} {expected:?}");
    }
}

#[test]
fn firmware_that_faults_hangs_or_does_not_fit_is_told() {
    for machine in ["cortex-m4", "cortex-m55", "riscv32"] {
        if !available(machine) {
            continue;
        }
        let graph = text::parse(INTEGERS, &()).unwrap();
        let input = mlc_ir::Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0]);
        let options = CompileOptions { target: target(machine).unwrap(), ..CompileOptions::default() };
        let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
        let toolchain = Toolchain { patience: Duration::from_secs(3), ..Toolchain::emulated(machine).unwrap() };
        for (statement, message) in [
            ("*(volatile int*)0xfffffff0 = 1;", "faulted"),
            ("for (;;) { }", "didn't end within 3 seconds"),
            ("static int large[64 << 20]; ((volatile int*)large)[1] = 1;", "doesn't fit the emulated board"),
            (
                "volatile char large[66000]; volatile int i; for (i = 0; i < 66000; ++i) large[i] = 1;",
                "stack overflowed",
            ),
        ] {
            let archive = with_statement(&compiled.archive().unwrap(), statement);
            let program = mlc::bundle::Bundle::parse(&archive.into()).and_then(|bundle| toolchain.build(&bundle));
            let fault = program.and_then(|program| program.run(std::slice::from_ref(&input))).unwrap_err();
            assert!(fault.message.contains(message), "{machine}: {statement}: {fault} {:?}", fault.notes);
        }
    }
}

/// The archive with a statement before what its entry does.
fn with_statement(archive: &[u8], statement: &str) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for entry in tar::Archive::new(archive).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut contents = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut contents).unwrap();
        let path = entry.path().unwrap().into_owned();
        if path.ends_with("default_lib0.c") {
            let text = String::from_utf8(contents).unwrap();
            let call = "  return tvmgen_default___tvm_main__(";
            assert!(text.contains(call));
            contents = text.replace(call, &format!("  {{ {statement} }}\n{call}")).into_bytes();
        }
        let mut header = entry.header().clone();
        header.set_size(contents.len() as u64);
        builder.append_data(&mut header, path, contents.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn code_for_another_machine_is_refused_by_name() {
    let graph = text::parse(INTEGERS, &()).unwrap();
    let bundle = |name: &str| {
        let options = CompileOptions { target: target(name).unwrap(), ..CompileOptions::default() };
        pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap().bundle().unwrap()
    };
    let fault = Toolchain::default().build(&bundle("cortex-m4")).unwrap_err();
    assert!(fault.message.contains("'cortex-m4', which isn't this machine"), "{fault}");
    let fault = Toolchain::emulated("cortex-m4").unwrap().build(&bundle("host")).unwrap_err();
    assert!(fault.message.contains("'host', which isn't 'cortex-m4'"), "{fault}");
}
