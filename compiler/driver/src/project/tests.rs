use super::*;
use crate::npy::read_tensor;
use crate::pipeline::{CompileOptions, LoadOptions, compile, load};
use clap::ValueEnum;
use mlc_codegen::{Execution, Interface, Pools, WeightsAs};
use std::path::Path;
use std::process::Command;

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/pnnx/net_lenet_relu_maxpool");

fn bundle(execution: Execution) -> Bundle {
    bundle_for("generic", execution)
}

fn bundle_for(target: &str, execution: Execution) -> Bundle {
    let target = crate::targets::find(target).unwrap();
    let loaded = load(&Path::new(CASE).join("model.pnnx.param"), &LoadOptions::default()).unwrap();
    let options = CompileOptions { execution, target, ..CompileOptions::default() };
    let compiled = compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
    Bundle::parse(&compiled.archive().unwrap()).unwrap()
}

/// Puts a project into a folder, and the case's input beside it as raw numbers.
fn made(bundle: &Bundle, template: Template) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, bytes) in project(bundle, template).unwrap() {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let input = read_tensor(&Path::new(CASE).join("input_0.npy"), &bundle.inputs[0].ty).unwrap();
    std::fs::write(folder.path().join("input"), input.to_le_bytes()).unwrap();
    folder
}

/// Whether a program wrote the case's output.
fn assert_golden(bundle: &Bundle, folder: &Path) {
    let golden = read_tensor(&Path::new(CASE).join("output_0.npy"), &bundle.outputs[0].ty).unwrap().to_floats();
    let bytes = std::fs::read(folder.join("output")).unwrap();
    let found: Vec<f64> = bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect();
    assert_eq!(found.len(), golden.len());
    for (found, golden) in found.iter().zip(&golden) {
        assert!((found - golden).abs() <= 1e-5 + 1e-5 * golden.abs(), "{found} {golden}");
    }
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", String::from_utf8_lossy(&output.stdout));
}

fn is_missing(program: &str) -> bool {
    let missing = Command::new(program).arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: there is no {program}");
    }
    missing
}

/// The templates that take code for any machine.
fn made_for_any_machine() -> impl Iterator<Item = Template> {
    Template::value_variants().iter().copied().filter(|template| *template != Template::BareMetal)
}

#[test]
fn posix_project_builds_and_computes_the_golden_output() {
    for weights in [WeightsAs::C, WeightsAs::Incbin] {
        for pools in [Pools::Internal, Pools::External] {
            let bundle = bundle(Execution { weights, pools, ..Execution::default() });
            let folder = made(&bundle, Template::Posix);
            succeed(Command::new("make").arg("CFLAGS=-std=c99 -O1 -Wall -Wextra -Werror").current_dir(folder.path()));
            let mut program = Command::new(folder.path().join("build/default"));
            succeed(program.args(["input", "output"]).current_dir(folder.path()));
            assert_golden(&bundle, folder.path());
        }
    }
}

#[test]
fn cmake_project_builds_and_computes_the_golden_output() {
    if is_missing("cmake") {
        return;
    }
    let bundle = bundle(Execution::default());
    let folder = made(&bundle, Template::Cmake);
    succeed(Command::new("cmake").args(["-B", "build"]).current_dir(folder.path()));
    succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder.path()));
    let mut program = Command::new(folder.path().join("build/run_default"));
    succeed(program.args(["input", "output"]).current_dir(folder.path()));
    assert_golden(&bundle, folder.path());
}

#[test]
fn crate_builds_and_computes_the_golden_output() {
    let bundle = bundle(Execution::default());
    let folder = made(&bundle, Template::Cargo);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "-q", "--release", "--example", "run", "--", "input", "output"]);
    // Variables of the run of this test aren't meant for another package.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO") && name != "CARGO_HOME") {
        cargo.env_remove(name);
    }
    succeed(cargo.env("CARGO_TARGET_DIR", folder.path().join("target")).current_dir(folder.path()));
    assert_golden(&bundle, folder.path());
}

#[test]
fn projects_hold_the_archive_unchanged_and_no_open_word() {
    let bundle = bundle(Execution::default());
    for template in made_for_any_machine() {
        let files = project(&bundle, template).unwrap();
        for (path, bytes) in bundle.archive().files() {
            let moved = match template {
                Template::Arduino => path
                    .strip_prefix("codegen/host/include/")
                    .or(path.strip_prefix("codegen/host/src/"))
                    .map(|name| format!("src/{name}")),
                _ => Some(format!("model/{path}")),
            };
            assert!(moved.is_none_or(|path| files[&path] == bytes.as_ref()), "{template:?} {path}");
        }
        for (path, _) in template.files(None) {
            let path = path.replace("@MODEL@", "default");
            let text = String::from_utf8(files[&path].clone()).unwrap();
            let open = text
                .split('@')
                .skip(1)
                .find(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
            // Of make's '$@' and '$(@D)' no word is left.
            assert!(open.is_none(), "{template:?} {path}: {open:?}");
        }
    }
}

#[test]
fn templates_are_as_reviewed() {
    let bundle = bundle(Execution::default());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../../../snapshots/project");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        let firmware = bundle_for("cortex-m55", Execution::default());
        let boards = [Template::BareMetal, Template::Cmake].map(|template| (template, &firmware));
        for (template, bundle) in made_for_any_machine().map(|template| (template, &bundle)).chain(boards) {
            let board = machines::board(bundle.target().as_ref(), template).unwrap();
            let files = project(bundle, template).unwrap();
            let mut text = String::new();
            for (path, _) in template.files(board) {
                let path = path.replace("@MODEL@", "default");
                text += &format!("==== {path}\n{}\n", String::from_utf8_lossy(&files[&path]));
            }
            let machine = if board.is_some() { "-firmware" } else { "" };
            insta::assert_snapshot!(format!("{template:?}{machine}").to_ascii_lowercase(), text);
        }
    });
}

#[test]
fn projects_begin_a_stream_before_its_first_run() {
    let counter = "mlc 1\ngraph @g(%x: f32[2], %s: f32[2]) -> (\"y\": f32[2], \"n\": f32[2]) {\n  %n = binary %s, %x {function = add}\n  \
                   state \"s\" from \"n\" to %s = f32[2] [3.0, 4.0]\n  return %n, %n\n}\n";
    let graph = mlc_ir::text::parse(counter, &()).unwrap();
    let execution = Execution { states: Pools::External, ..Execution::default() };
    let options = CompileOptions { execution, ..CompileOptions::default() };
    let compiled = compile(&graph, &options, &mut |_, _| {}).unwrap();
    let bundle = Bundle::parse(&compiled.archive().unwrap()).unwrap();
    let files = project(&bundle, Template::Posix).unwrap();
    let main = String::from_utf8(files["src/main.c"].clone()).unwrap();
    assert!(main.contains("    (void)tvmgen_default_reset(&pools); /* a new stream */\n"), "{main}");
}

#[test]
fn archives_that_no_project_can_call_are_refused() {
    let graph = Execution { aot: None, graph: true, ..Execution::default() };
    let packed = Execution { aot: Some(Interface::Packed), ..Execution::default() };
    let binary = Execution { weights: WeightsAs::Binary, ..Execution::default() };
    for (execution, message) in [(graph, "the C interface"), (packed, "the C interface"), (binary, "to be loaded")] {
        let error = project(&bundle(execution), Template::Cmake).unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
    let external = Execution { pools: Pools::External, ..Execution::default() };
    let error = project(&bundle(external), Template::Cargo).unwrap_err();
    assert!(error.message.contains("no place for memory pools"), "{error}");
}

#[test]
fn hostile_names_stay_inside_of_comments() {
    let mut bundle = bundle(Execution::default());
    bundle.inputs[0].name = "a*/ \"b\\%s\n@MODEL@".into();
    let files = project(&bundle, Template::Posix).unwrap();
    let main = String::from_utf8(files["src/main.c"].clone()).unwrap();
    assert!(main.contains("/* a_/__b__s_@MODEL@: f32"), "{main}");
}
