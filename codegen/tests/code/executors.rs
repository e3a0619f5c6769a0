//! The forms in which a model is packed: for every interface, executor and form of weights, the archive builds with a C compiler
//! and nothing else, under sanitizers and without a warning, and its example prints the same. Needs make and a C compiler.

use mlc_codegen::package::{FormatVersion, Package, PackageModel};
use mlc_codegen::{Execution, Interface, Module, Options, Pools, ScheduleOptions, Target, WeightsAs, generate};
use std::path::Path;
use std::process::Command;

/// Branches that are joined, a border, an in-place sum and a recurrent scratch: buffers have several writers, share memory, and
/// are passed on from kernel to kernel.
const MODEL: &str = r#"mlc 1
graph @branches(%x: f32[1, 6, 6, 4], %shift: f32[8]) -> ("joined": f32[1, 6, 6, 16], "chances": f32[1, 576]) {
  %w1 = constant f32[3, 3, 4, 8] random(seed = 1)
  %w2 = constant f32[1, 1, 4, 8] random(seed = 2)
  %b = constant f32[8] [0.5, 1.0, -2.0, 0.25, 1.5, -0.75, 0.1, 3.0]
  %left = convolution %x, %w1 {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %leftb = map %left, %b {expression = maximum(add(x0, x1), 0.0_f32)}
  %right = convolution %x, %w2 {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %rightb = map %right, %shift {expression = tanh(add(x0, x1))}
  %sum = map %leftb, %rightb {expression = add(x0, add(x1, 0.125_f32))}
  %joined = concat %leftb, %sum {axis = 3}
  %flat = reshape %joined {shape = [1, 576]}
  %chances = softmax %flat {axis = 1, logarithm = false}
  return %joined, %chances
}
"#;

fn module(name: &str, execution: Execution, target: &Target) -> Module {
    let graph = mlc_ir::text::parse(MODEL, &()).unwrap();
    let options =
        Options { model_name: name.into(), target: target.clone(), execution, schedules: ScheduleOptions::default() };
    generate(&graph, &options).unwrap()
}

/// Writes the files of an archive.
pub fn unpack(package: &Package<'_>, folder: &Path) {
    for (path, bytes) in package.files().unwrap() {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// What the example of an archive prints.
pub fn example(package: &Package<'_>, flags: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    unpack(package, folder.path());
    let mut make = Command::new("make");
    make.args(["-s", "-j2", "-C", folder.path().to_str().unwrap(), "example"]);
    make.arg(format!("CFLAGS={flags} -Wall -Wextra -Werror -O0 -fsanitize=address,undefined"));
    let built = make.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(folder.path().join("build/example")).current_dir(folder.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// The forms of an archive.
pub fn executions() -> Vec<Execution> {
    let aot = |interface| Execution { aot: Some(interface), ..Execution::default() };
    let graph = Execution { aot: None, graph: true, ..Execution::default() };
    vec![
        aot(Interface::C),
        aot(Interface::Packed),
        aot(Interface::PackedEntry),
        graph,
        Execution { graph: true, ..aot(Interface::C) },
        Execution { graph: true, ..aot(Interface::Packed) },
        Execution { pools: Pools::External, ..aot(Interface::C) },
        Execution { weights: WeightsAs::Incbin, ..aot(Interface::C) },
        Execution { weights: WeightsAs::Binary, ..aot(Interface::C) },
        Execution { weights: WeightsAs::Binary, pools: Pools::External, graph: true, ..aot(Interface::C) },
    ]
}

#[test]
fn c_compiler_builds_every_form_and_all_print_the_same() {
    let target = Target::generic();
    let mut expected = None;
    for execution in executions() {
        let module = module("net", execution, &target);
        let printed = example(&Package::of(&module, &target, ""), "-std=c99 -Wconversion -pedantic");
        assert!(printed.starts_with("joined: 0.5 1 0 0.25 1.5 0 0.1 3 ...\nchances: "), "{printed}");
        assert_eq!(&printed, expected.get_or_insert(printed.clone()), "{execution:?}");
    }
}

#[test]
fn c_compiler_links_weights_of_an_object_file() {
    let target = Target::host(16);
    if target.object_format().is_none() {
        eprintln!("skipped: object files of this machine aren't known");
        return;
    }
    let execution = Execution { weights: WeightsAs::Object, ..Execution::default() };
    let module = module("net", execution, &target);
    let printed = example(&Package::of(&module, &target, ""), &target.c_flags.join(" "));
    assert!(printed.starts_with("joined: 0.5 1 0 0.25 1.5 0 0.1 3 ...\nchances: "), "{printed}");
}

#[test]
fn c_compiler_builds_two_models_of_one_archive() {
    let target = Target::generic();
    // Names that two models might share: of structures and arenas, of a registry, of tables.
    for execution in executions().into_iter().take(4) {
        let (first, second) = (module("first", execution, &target), module("second", execution, &target));
        let models = [&first, &second].map(|module| PackageModel { module, graph_text: "", relay: None }).to_vec();
        let package = Package { models, ..Package::of(&first, &target, "") };
        let printed = example(&package, "-std=c99");
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 4, "{printed}");
        assert_eq!(lines[..2], lines[2..], "{execution:?}");
    }
}

#[test]
fn one_model_fits_into_old_versions_and_two_do_not() {
    let target = Target::generic();
    let execution = Execution { graph: true, ..Execution::default() };
    let (first, second) = (module("first", execution, &target), module("second", execution, &target));
    for (version, number) in [(FormatVersion::Five, 5), (FormatVersion::Six, 6)] {
        let package = Package { version, ..Package::of(&first, &target, "") };
        let files = package.files().unwrap();
        assert!(files.contains_key("executor-config/graph/graph.json"));
        let metadata: serde_json::Value = serde_json::from_slice(&files["metadata.json"]).unwrap();
        assert_eq!(metadata["version"], number);
        assert_eq!(metadata["executors"], serde_json::json!(["aot", "graph"]));
        assert_eq!(metadata["target"].is_object(), number == 5, "{metadata}");
        let models = [&first, &second].map(|module| PackageModel { module, graph_text: "", relay: None }).to_vec();
        let two = Package { models, ..package };
        assert!(two.files().unwrap_err().to_string().contains("a place for one only"));
    }
    let models = [&first, &first].map(|module| PackageModel { module, graph_text: "", relay: None }).to_vec();
    let twins = Package { models, ..Package::of(&first, &target, "") };
    assert!(twins.files().unwrap_err().to_string().contains("the same name"));
}

#[test]
fn object_files_need_a_machine() {
    let target = Target::generic();
    let execution = Execution { weights: WeightsAs::Object, ..Execution::default() };
    let module = module("net", execution, &target);
    let error = Package::of(&module, &target, "").files().unwrap_err();
    assert!(error.to_string().contains("no object files for the target 'generic'"), "{error}");
}

#[test]
fn a_graph_is_as_reviewed() {
    let target = Target::generic();
    let module = module("net", Execution { aot: None, graph: true, ..Execution::default() }, &target);
    let files = Package::of(&module, &target, "").files().unwrap();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../snapshots/package");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        for (name, path) in [
            ("graph_json", "executor-config/graph/net.graph"),
            ("graph_metadata", "metadata.json"),
            ("graph_registry", "codegen/host/src/net_lib0.c"),
            ("graph_makefile", "Makefile"),
            ("graph_example", "example/main.c"),
        ] {
            insta::assert_snapshot!(name, std::str::from_utf8(&files[path]).unwrap());
        }
    });
}
