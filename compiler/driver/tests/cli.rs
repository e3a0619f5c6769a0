//! The command `mlc` as its users meet it: help, results, messages, exit status, and what is left on the disk.

mod callers_memory;
mod states;

use mlc::npy;
use mlc_ir::{DType, Tensor, TensorType};
use std::path::Path;
use std::process::{Command, Output};

/// sigmoid(x + b), and x + b.
const MODEL: &str = r#"mlc 1
graph @tiny(%x: f32[2, 3]) -> ("p": f32[2, 3], "s/um": f32[2, 3]) {
  %b = constant f32[3] [0.5, -1.0, 2.0]
  %sum = binary %x, %b {function = add} : f32[2, 3]
  %p = unary %sum {function = sigmoid} : f32[2, 3]
  return %p, %sum
}
"#;

/// relu(x + 1), and something that isn't supported if asked for.
fn pnnx(operator: &str) -> String {
    format!(
        "7767517\n4 3\npnnx.Input               in                       0 1 x #x=(1,4)f32\n\
         pnnx.Expression          add                      1 1 x a expr=add(@0,1) #x=(1,4)f32 #a=(1,4)f32\n\
         {operator:<24} act                      1 1 a y #a=(1,4)f32 #y=(1,4)f32\n\
         pnnx.Output              out                      1 0 y #y=(1,4)f32\n"
    )
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("model.mlc", MODEL);
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), contents).unwrap();
    }

    fn write_array(&self, name: &str, shape: &[usize], values: &[f64]) {
        let tensor = Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec());
        self.write(name, npy::format(&tensor));
    }

    fn read_array(&self, name: &str, shape: &[usize]) -> Vec<f64> {
        npy::read_tensor(&self.path().join(name), &TensorType::new(DType::F32, shape)).unwrap().to_floats()
    }

    /// Names of everything in the folder, sorted.
    fn listing(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
        command.args(arguments).current_dir(self.path());
        for variable in ["SOURCE_DATE_EPOCH", "COLUMNS", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        command
    }

    fn mlc(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(arguments).output().unwrap())
    }
}

struct Outcome {
    status: i32,
    out: String,
    err: String,
}

impl Outcome {
    fn of(output: Output) -> Outcome {
        Outcome {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn success(self) -> Outcome {
        assert_eq!(self.status, 0, "{}{}", self.out, self.err);
        self
    }

    /// Fails with this status and a message that holds these texts.
    fn failure(self, status: i32, texts: &[&str]) -> Outcome {
        assert_eq!(self.status, status, "{}{}", self.out, self.err);
        for text in texts {
            assert!(self.err.contains(text), "'{text}' isn't in: {}", self.err);
        }
        self
    }
}

fn snapshot(topic: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("../../../snapshots/{topic}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn help_is_as_reviewed() {
    let folder = Folder::new();
    snapshot("cli", "mlc", &folder.mlc(&["--help"]).success().out);
    let commands =
        ["compile", "run", "bench", "verify", "inspect", "convert", "opgen", "explain", "passes", "ops", "targets"];
    for command in commands {
        snapshot("cli", command, &folder.mlc(&[command, "--help"]).success().out);
    }
}

#[test]
fn mistakes_on_the_command_line_end_with_2() {
    let folder = Folder::new();
    for (arguments, text) in [
        (&[][..], "Usage"),
        (&["fly"], "unrecognized subcommand"),
        (&["compile"], "<MODEL>"),
        (&["compile", "model.mlc", "--nonsense"], "--nonsense"),
        (&["compile", "model.mlc", "--input-shape", "x"], "NAME=1,3,224,224"),
        (&["compile", "model.mlc", "--target", "pdp11"], "no target 'pdp11'"),
        (&["compile", "model.mlc", "-o", "model.mlc"], "would replace the model"),
        (&["run", "model.mlc", "--input", "y=a.npy"], "no input 'y'"),
        (&["explain", "MLC9999"], "no error code"),
        (&["bench", "model.mlc", "--runs", "0"], "--runs"),
        (&["verify", "model.mlc", "--atol", "-1"], "--atol"),
        (&["convert", "model.mlc", "x.onnx"], ".param"),
    ] {
        let outcome = folder.mlc(arguments).failure(2, &[]);
        assert!(outcome.err.contains(text) || outcome.out.contains(text), "{arguments:?}: {}", outcome.err);
    }
    let mut command = folder.command(&["compile", "model.mlc"]);
    let outcome = Outcome::of(command.env("SOURCE_DATE_EPOCH", "yesterday").output().unwrap());
    outcome.failure(2, &["SOURCE_DATE_EPOCH"]);
    assert_eq!(folder.listing(), ["model.mlc"]);
}

#[test]
fn faults_of_files_end_with_1_and_leave_nothing_behind() {
    let folder = Folder::new();
    folder.write("text", "hello");
    folder.write("empty", "");
    folder.write("lite.tflite", b"\x1c\0\0\0TFL3\0\0\0\0");
    folder.write("wrong.mlc", MODEL.replace("%x, %b", "%x, %nobody"));
    folder.write("binary.mlc", b"mlc 1\n\xff\xfe");
    folder.write("bad.npy", "NUMPY");
    folder.write_array("small.npy", &[2], &[1.0, 2.0]);
    folder.write("out.tar", "precious");
    let before = folder.listing();
    for (arguments, text) in [
        (&["compile", "missing.mlc"][..], "MLC0001"),
        (&["compile", "."], "MLC0001"),
        (&["compile", "text"], "MLC0003"),
        (&["compile", "empty", "-o", "out.tar"], "MLC0003"),
        (&["compile", "lite.tflite"], "the file is damaged at the model"),
        (&["compile", "wrong.mlc", "-o", "out.tar"], "nobody"),
        (&["compile", "binary.mlc"], "UTF-8"),
        (&["compile", "model.mlc", "-o", "no/folder/out.tar"], "MLC0002"),
        (&["run", "model.mlc", "--input", "bad.npy"], "not a .npy file"),
        (&["run", "model.mlc", "--input", "small.npy"], "has shape [2], [2, 3] expected"),
        (&["run", "text"], "MLC0003"),
        (&["inspect", "text"], "MLC0003"),
        (&["convert", "text", "new.param"], "MLC0003"),
    ] {
        let outcome = folder.mlc(arguments).failure(1, &["error[MLC"]);
        assert!(outcome.err.contains(text), "{arguments:?}: {}", outcome.err);
        assert!(!outcome.err.contains("defect"), "{arguments:?}: {}", outcome.err);
    }
    assert_eq!(folder.listing(), before);
    assert_eq!(std::fs::read_to_string(folder.path().join("out.tar")).unwrap(), "precious");
}

#[test]
fn messages_are_as_reviewed() {
    let folder = Folder::new();
    folder.write("wrong.mlc", MODEL.replace("%x, %b", "%x, %nobody").replace("sigmoid", "sigmund"));
    snapshot("errors", "two_faults", &folder.mlc(&["compile", "wrong.mlc"]).failure(1, &[]).err);
    snapshot("errors", "missing_file", &folder.mlc(&["compile", "missing.mlc"]).failure(1, &[]).err);
    let json = folder.mlc(&["compile", "missing.mlc", "--message-format", "json"]).failure(1, &[]).err;
    snapshot("errors", "missing_file_json", &json);
    assert_eq!(folder.mlc(&["compile", "missing.mlc", "-q"]).failure(1, &["MLC0001"]).out, "");
}

#[test]
fn archives_are_reproducible_and_named_after_the_model() {
    let folder = Folder::new();
    let compiled = folder.mlc(&["compile", "model.mlc", "--target", "generic"]).success();
    assert!(compiled.err.starts_with("wrote model.tar: "), "{}", compiled.err);
    folder.mlc(&["compile", "model.mlc", "--target", "generic", "-o", "again.tar", "-q"]).success();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("model.tar"), read("again.tar"));
    let mut later = folder.command(&["compile", "model.mlc", "--target", "generic", "-o", "later.tar"]);
    Outcome::of(later.env("SOURCE_DATE_EPOCH", "1700000000").output().unwrap()).success();
    assert_ne!(read("model.tar"), read("later.tar"));
    let inspected = folder.mlc(&["inspect", "later.tar", "--json"]).success();
    let report: serde_json::Value = serde_json::from_str(&inspected.out).unwrap();
    assert_eq!(report["models"][0]["model_name"], "default");
    assert_eq!(report["models"][0]["inputs"][0]["shape"], serde_json::json!([2, 3]));
}

#[test]
fn other_forms_of_output() {
    let folder = Folder::new();
    let text = folder.mlc(&["compile", "model.mlc", "--emit", "ir"]).success().out;
    assert!(text.starts_with("mlc 1\ngraph @tiny"), "{text}");
    folder.write("optimised.mlc", &text);
    folder.mlc(&["compile", "optimised.mlc", "--emit", "c", "-o", "sources", "--model-name", "My-Net"]).success();
    for file in ["tvmgen_my_net.h", "my_net_lib0.c", "my_net_lib1.c", "my_net_lib2.c"] {
        assert!(folder.path().join("sources").join(file).is_file(), "{file}");
    }
    folder.mlc(&["compile", "model.mlc", "--emit", "dir", "-o", "a/b", "--dump-ir", "dump"]).success();
    assert!(folder.path().join("a/b/metadata.json").is_file());
    let imported = std::fs::read_to_string(folder.path().join("dump/00-import.mlc")).unwrap();
    assert!(imported.contains("sigmoid"));
    assert!(std::fs::read_dir(folder.path().join("dump")).unwrap().count() > 1);
}

#[test]
fn c_compiler_runs_models_and_archives() {
    let folder = Folder::new();
    folder.write_array("x.npy", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    folder.mlc(&["run", "model.mlc", "--input", "x=x.npy", "--output-dir", "one"]).success();
    folder.mlc(&["compile", "model.mlc", "-o", "model.tar"]).success();
    folder.mlc(&["run", "model.tar", "--input", "x.npy", "--output-dir", "two"]).success();
    assert_eq!(folder.read_array("one/s_um.npy", &[2, 3]), [0.5, 0.0, 4.0, 3.5, 3.0, 7.0]);
    assert_eq!(folder.read_array("one/p.npy", &[2, 3]), folder.read_array("two/p.npy", &[2, 3]));
    let list = std::fs::read_to_string(folder.path().join("one/outputs.json")).unwrap();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(
        list,
        serde_json::json!([
            {"name": "p", "file": "p.npy", "dtype": "f32", "shape": [2, 3]},
            {"name": "s/um", "file": "s_um.npy", "dtype": "f32", "shape": [2, 3]},
        ])
    );
    let shown = folder.mlc(&["run", "model.tar", "--input", "x.npy"]).success().out;
    assert!(shown.contains("s/um: f32[2, 3]\n  min 0.000000 max 7.000000 mean 3.000000\n"), "{shown}");
    let random = folder.mlc(&["run", "model.tar"]).success();
    assert!(random.err.contains("random"), "{}", random.err);
}

#[test]
fn c_compiler_verifies_models() {
    let folder = Folder::new();
    let outcome = folder.mlc(&["verify", "model.mlc"]).success();
    assert!(outcome.out.contains("p: ok, 6 elements against the evaluator"), "{}", outcome.out);
    folder.write_array("x.npy", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    folder.write_array("sum.npy", &[2, 3], &[0.5, 0.0, 4.0, 3.5, 3.0, 7.0]);
    folder.mlc(&["verify", "model.mlc", "--input", "x.npy", "--expect", "s/um=sum.npy"]).success();
    folder.write_array("sum.npy", &[2, 3], &[0.5, 0.0, 4.0, 3.5, 3.0, 8.0]);
    let wrong = ["verify", "model.mlc", "--input", "x.npy", "--expect", "s/um=sum.npy", "--json"];
    let outcome = folder.mlc(&wrong).failure(1, &["error[MLC0007]", "1 of 6 elements", "at [1, 2]"]);
    let report: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(report[0]["passed"], false);
    assert_eq!(report[0]["worst"]["index"], serde_json::json!([1, 2]));
    folder.mlc(&["verify", "model.mlc", "--expect", "nothing=sum.npy"]).failure(2, &["names no output"]);
}

/// A recurrent layer, and a sum that the model passes by itself.
const STREAM: &str = r#"mlc 1
graph @stream(%x: f32[2, 1, 3], %s: f32[1, 3]) -> ("y": f32[2, 1, 3], "s.next": f32[1, 3]) {
  %r = constant f32[3, 3] random(seed = 1)
  %b = constant f32[3] [0.5, -1.0, 2.0]
  %h = constant f32[1, 3] splat(0.5)
  %y = recurrent %x, %r, %b, %h {cell = rnn, activations = [tanh(x0)], reverse = false, with = []}
  %n = binary %s, %y:1 {function = add}
  return %y, %n
}
"#;

#[test]
fn c_compiler_benchmarks_models() {
    let folder = Folder::new();
    let outcome = folder.mlc(&["bench", "model.mlc", "--runs", "4", "--json"]).success();
    let times: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(times["runs"], 4);
    let list = times["ns_per_inference"].as_array().unwrap();
    assert_eq!(list.len(), 4);
    assert_eq!(times["min_ns"], list.iter().map(|time| time.as_u64().unwrap()).min().unwrap());
    assert!(times.get("kernels").is_none());
}

#[test]
fn c_compiler_benchmarks_kernels() {
    let folder = Folder::new();
    let outcome = folder.mlc(&["bench", "model.mlc", "--runs", "3", "--per-kernel", "--json"]).success();
    let times: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    let kernels = times["kernels"].as_array().unwrap();
    assert!(!kernels.is_empty());
    for kernel in kernels {
        assert!(kernel["function"].as_str().unwrap().starts_with("tvmgen_default_"));
        assert!(kernel["min_ns"].as_u64().unwrap() < 1_000_000_000);
    }
    let text = folder.mlc(&["bench", "model.mlc", "--runs", "3", "--per-kernel"]).success().out;
    assert_eq!(text.lines().count(), 1 + kernels.len(), "{text}");
}

#[test]
fn c_compiler_runs_pnnx_models() {
    let folder = Folder::new();
    folder.write("m.pnnx.param", pnnx("F.relu"));
    folder.write_array("x.npy", &[1, 4], &[-2.0, -1.0, 0.0, 1.0]);
    folder.mlc(&["verify", "m.pnnx.param"]).success();
    folder.mlc(&["run", "m.pnnx.param", "--input", "x.npy", "--output-dir", "out"]).success();
    let outputs: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("out/outputs.json")).unwrap()).unwrap();
    let file = format!("out/{}", outputs[0]["file"].as_str().unwrap());
    assert_eq!(folder.read_array(&file, &[1, 4]), [0.0, 0.0, 1.0, 2.0]);
}

#[test]
fn c_compiler_runs_models_whose_shape_the_input_gives() {
    let folder = Folder::new();
    folder.write("m.pnnx.param", pnnx("F.relu").replace("(1,4)", "(1,?)"));
    folder.write_array("x.npy", &[1, 2], &[-2.0, 1.0]);
    folder.mlc(&["compile", "m.pnnx.param"]).failure(1, &["MLC0207", "--input-shape"]);
    for input in ["x.npy", "in=x.npy"] {
        folder.mlc(&["verify", "m.pnnx.param", "--input", input]).success();
    }
    folder.mlc(&["verify", "m.pnnx.param", "--input", "missing.npy"]).failure(1, &["MLC0207"]);
}

#[test]
fn pnnx_models_are_inspected_and_converted() {
    let folder = Folder::new();
    folder.write("m.pnnx.param", pnnx("F.relu").replace("  ", " "));
    snapshot("cli", "inspect_pnnx", &folder.mlc(&["inspect", "m.pnnx.param"]).success().out);
    folder.mlc(&["convert", "m.pnnx.param", "new.param"]).success();
    folder.mlc(&["convert", "new.param", "newer.param"]).success();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("new.param"), read("newer.param"));
    assert_eq!(read("new.bin"), read("newer.bin"));
}

#[test]
fn unsupported_operators_are_shown_in_their_file() {
    let folder = Folder::new();
    folder.write("m.pnnx.param", pnnx("F.unheard_of"));
    let outcome = folder.mlc(&["inspect", "m.pnnx.param"]).failure(1, &["MLC0201"]);
    assert!(outcome.out.contains("F.unheard_of"), "{}", outcome.out);
    snapshot("errors", "unsupported_operator", &outcome.err);
}

#[test]
fn a_missing_c_compiler_is_told() {
    let folder = Folder::new();
    let mut command = folder.command(&["run", "model.mlc"]);
    let outcome = Outcome::of(command.env("CC", "/nonexistent/cc").output().unwrap());
    outcome.failure(1, &["MLC0005", "/nonexistent/cc", "variable CC"]);
}

#[test]
fn listings_can_be_read_by_people_and_programs() {
    let folder = Folder::new();
    for (command, word) in [("passes", "canonicalise"), ("ops", "convolution"), ("targets", "generic")] {
        assert!(folder.mlc(&[command]).success().out.contains(word));
        let json: serde_json::Value = serde_json::from_str(&folder.mlc(&[command, "--json"]).success().out).unwrap();
        assert!(json.to_string().contains(word));
    }
    let codes = folder.mlc(&["explain"]).success().out;
    let code = codes.lines().find(|line| line.contains("operator unsupported")).unwrap();
    let page = folder.mlc(&["explain", &code[..7]]).success().out;
    assert!(page.starts_with("MLC0201: operator unsupported\n\n"), "{page}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    let mut child = folder.command(&["ops"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// x + x in half precision, and bfloat16.
const HALVES: &str = r#"mlc 1
graph @halves(%x: f16[2, 3], %b: bf16[2]) -> ("y": f16[2, 3], "c": bf16[2]) {
  %y = binary %x, %x {function = add} : f16[2, 3]
  %c = binary %b, %b {function = add} : bf16[2]
  return %y, %c
}
"#;

#[test]
fn half_precision_goes_in_and_out() {
    let folder = Folder::new();
    folder.write("halves.mlc", HALVES);
    folder.mlc(&["verify", "halves.mlc"]).success();
    let halves = TensorType::new(DType::F16, [2, 3]);
    let values = vec![1.0, -2.5, 65504.0, 6e-8, 0.1, f64::NAN];
    folder.write("x.npy", npy::format(&Tensor::from_floats(halves.clone(), values)));
    let bits = Tensor::from_integers(TensorType::new(DType::U16, [2]), vec![0x3f80, 0xc040]);
    folder.write("b.npy", npy::format(&bits));
    folder.mlc(&["run", "halves.mlc", "--input", "x.npy", "--input", "b.npy", "--output-dir", "out"]).success();
    let y = npy::read_tensor(&folder.path().join("out/y.npy"), &halves).unwrap().to_floats();
    assert_eq!(y[..3], [2.0, -5.0, f64::INFINITY]);
    assert!(y[5].is_nan());
    let c = npy::read_tensor(&folder.path().join("out/c.npy"), &TensorType::new(DType::Bf16, [2])).unwrap();
    assert_eq!(c.to_floats(), [2.0, -6.0]);
    folder.write_array("f.npy", &[2], &[1.0, 2.0]);
    let run = folder.mlc(&["run", "halves.mlc", "--input", "x.npy", "--input", "b=f.npy"]);
    run.failure(1, &["u16 (the bits of bf16) expected"]);
}

#[test]
fn strict_code_says_so_and_is_built_without_multiply_adds() {
    let folder = Folder::new();
    folder.mlc(&["compile", "model.mlc", "--fp", "strict", "--emit", "dir", "-o", "strict"]).success();
    folder.mlc(&["compile", "model.mlc", "--emit", "dir", "-o", "fast"]).success();
    let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    assert!(read("strict/src/default.json").contains("\"floating_point\": \"strict\""));
    assert!(read("fast/src/default.json").contains("\"floating_point\": \"fast\""));
    assert!(read("strict/metadata.json").contains("-fp=strict"));
    assert!(!read("fast/metadata.json").contains("-fp="));
    assert!(read("strict/Makefile").contains("-ffp-contract=off"));
    assert!(read("fast/Makefile").contains("-ffp-contract=fast"));
    for command in ["run", "bench", "verify"] {
        let fp = ["--fp", "strict"];
        let more = if command == "bench" { &["--runs", "1"][..] } else { &[] };
        folder.mlc(&[&[command, "model.mlc"][..], &fp, more].concat()).success();
    }
    folder.mlc(&["compile", "model.mlc", "--fp", "loose"]).failure(2, &["strict, fast"]);
}

#[test]
fn limits_of_memory_are_enforced_by_name() {
    let folder = Folder::new();
    folder.mlc(&["compile", "model.mlc", "--ram", "1K", "--flash", "1K", "-o", "fits.tar"]).success();
    let before = folder.listing();
    let outcome = folder.mlc(&["compile", "model.mlc", "--ram", "64", "--flash", "8", "-o", "no.tar"]);
    outcome.failure(1, &["MLC0402", "of RAM", "more than the limit of 64", "of flash", "input 'x'", "constant 'b'"]);
    assert_eq!(folder.listing(), before);
    folder.mlc(&["compile", "model.mlc", "--ram", "64KB"]).failure(2, &["is no size such as"]);
    folder.mlc(&["run", "fits.tar", "--ram", "64K"]).failure(2, &["the archive is compiled", "--on"]);
    folder.mlc(&["run", "model.mlc", "--on", "pdp11"]).failure(2, &["no emulator of 'pdp11'", "cortex-m55", "aarch64"]);
    folder.mlc(&["run", "model.mlc", "--target", "cortex-m4"]).failure(2, &["isn't this machine", "--on cortex-m4"]);
    folder.mlc(&["bench", "model.mlc", "--on", "riscv64"]).failure(2, &["times of 'riscv64' under an emulator"]);
}

#[test]
fn emulated_boards_run_models() {
    let folder = Folder::new();
    if Command::new("qemu-system-arm").arg("--version").output().is_err() {
        eprintln!("skipped: there is no qemu-system-arm");
        return;
    }
    folder.write_array("x.npy", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let run = ["run", "model.mlc", "--on", "cortex-m4", "--input", "x=x.npy", "--output-dir", "one"];
    let outcome = folder.mlc(&run).success();
    assert!(outcome.out.contains(" executed instructions\nflash "), "{}", outcome.out);
    assert_eq!(folder.read_array("one/s_um.npy", &[2, 3]), [0.5, 0.0, 4.0, 3.5, 3.0, 7.0]);
    folder.mlc(&[&run[..6], &["--flash", "100"]].concat()).failure(1, &["MLC0402", "of constants", "of code"]);
    folder.mlc(&["verify", "model.mlc", "--on", "cortex-m4"]).success();
    let outcome = folder.mlc(&["bench", "model.mlc", "--on", "cortex-m4", "--per-kernel", "--json"]).success();
    let counts: serde_json::Value = serde_json::from_str(&outcome.out).unwrap();
    assert_eq!(counts["runs"], 1);
    assert!(counts["min_instructions"].as_u64().unwrap() > 0);
    assert!(counts["kernels"][0]["min_instructions"].is_u64(), "{}", outcome.out);
}
