//! Faults that users met, each with what must hold since.

use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A product with a matrix of its own.
const PRODUCT: &str = r#"mlc 1
graph @product(%x: f32[1, 8]) -> ("y": f32[1, 16]) {
  %w = constant f32[8, 16] random(seed = 3)
  %b = constant f32[16] random(seed = 4)
  %m = matmul %x, %w {transpose_left = false, transpose_right = false} : f32[1, 16]
  %s = binary %m, %b {function = add} : f32[1, 16]
  %y = unary %s {function = tanh} : f32[1, 16]
  return %y
}
"#;

/// The first column has differences of two sums that are equal but for rounding; the others are the input.
const CANCELLING: &str = r#"mlc 1
graph @cancelling(%x: f32[64, 512]) -> ("y": f32[64, 513]) {
  %w = constant f32[512, 1] random(seed = 3)
  %v = constant f32[1, 512] random(seed = 3)
  %a = matmul %x, %w {transpose_left = false, transpose_right = false} : f32[64, 1]
  %p = binary %x, %v {function = multiply} : f32[64, 512]
  %b = reduce %p {function = sum, axes = [1], keep_axes = true} : f32[64, 1]
  %d = binary %a, %b {function = subtract} : f32[64, 1]
  %c = constant f32[] [1000.0]
  %z = binary %d, %c {function = multiply} : f32[64, 1]
  %y = concat %z, %x {axis = 1} : f32[64, 513]
  return %y
}
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("product.mlc", PRODUCT);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
        command.args(arguments).current_dir(self.0.path());
        for variable in ["SOURCE_DATE_EPOCH", "CC", "RUST_BACKTRACE"] {
            command.env_remove(variable);
        }
        command.output().unwrap()
    }

    /// Standard output and standard error of a command that succeeds.
    fn succeed(&self, arguments: &[&str]) -> (Vec<u8>, String) {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        (output.stdout, said)
    }

    /// Standard error of a command that fails with a status.
    fn fail(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        said
    }
}

/// Whether a tool isn't there, which is said.
#[allow(clippy::print_stderr)]
fn is_missing(tool: &str) -> bool {
    let missing = Command::new(tool).arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: there is no {tool}");
    }
    missing
}

#[test]
fn a_dash_is_standard_output() {
    let folder = Folder::new();
    let (archive, said) = folder.succeed(&["compile", "product.mlc", "-o", "-"]);
    assert_eq!(said, "", "nothing is to be said of what was written");
    folder.succeed(&["compile", "product.mlc", "-o", "product.tar"]);
    assert!(archive == folder.read("product.tar"));
    let (objects, _) = folder.succeed(&["compile", "product.mlc", "-o", "-", "--emit-lib"]);
    assert!(objects.get(257..262) == Some(b"ustar") && objects != archive);
    let (explained, said) = folder.succeed(&["compile", "product.mlc", "-o", "-", "--explain"]);
    assert!(explained == archive && said.contains("fuse-epilogue"), "{said}");
    let (text, _) = folder.succeed(&["compile", "product.mlc", "--emit", "ir", "-o", "-"]);
    assert!(text.starts_with(b"mlc 1\ngraph @product"));
    for arguments in [
        &["compile", "product.mlc", "--emit", "dir", "-o", "-"][..],
        &["compile", "product.mlc", "--emit", "c", "-o", "-"],
        &["project", "product.tar", "--template", "posix", "-o", "-"],
    ] {
        assert!(folder.fail(2, arguments).contains("a folder can't be written to standard output"), "{arguments:?}");
    }
    assert!(!folder.path("-").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_that_is_full_is_told() {
    let folder = Folder::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.args(["compile", "product.mlc", "-o", "-"]).current_dir(folder.0.path());
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("MLC0002"), "{said}");
}

#[test]
fn c_compiler_gets_the_same_numbers_from_texts_with_weights_beside_them() {
    let folder = Folder::new();
    let (expected, _) = folder.succeed(&["run", "product.mlc"]);
    folder.succeed(&["compile", "product.mlc", "--emit", "ir", "-o", "d.mlc", "--dump-ir", "dump"]);
    assert!(folder.text("d.mlc").contains(" @w"), "{}", folder.text("d.mlc"));
    assert!(folder.path("d.mlc.safetensors").is_file());
    let stages: Vec<PathBuf> =
        std::fs::read_dir(folder.path("dump")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let stages = stages.iter().filter(|path| path.extension().is_some_and(|extension| extension == "mlc"));
    let stages: Vec<&str> = stages.map(|path| path.to_str().unwrap()).collect();
    assert!(stages.len() > 2 && folder.path("dump/weights.safetensors").is_file());
    for text in stages.into_iter().chain(["d.mlc"]) {
        let (found, _) = folder.succeed(&["run", text]);
        assert!(found == expected, "{text}: {}", String::from_utf8_lossy(&found));
    }
    std::fs::rename(folder.path("d.mlc.safetensors"), folder.path("elsewhere")).unwrap();
    assert!(folder.fail(1, &["run", "d.mlc"]).contains("MLC0105"));
    folder.succeed(&["run", "d.mlc", "--weights", "elsewhere"]);
    folder.write("d.mlc.safetensors", "nothing of that kind");
    assert!(folder.fail(1, &["run", "d.mlc"]).contains("MLC0107"));
    // Weights of another model with a constant of the same name.
    folder.write("other.mlc", PRODUCT.replace("seed = 3", "seed = 5"));
    folder.succeed(&["compile", "other.mlc", "--emit", "ir", "-o", "o.mlc"]);
    std::fs::rename(folder.path("o.mlc.safetensors"), folder.path("d.mlc.safetensors")).unwrap();
    assert!(folder.fail(1, &["run", "d.mlc"]).contains("MLC0106"));
}

#[test]
fn c_compiler_verifies_elements_that_rounding_moves() {
    let folder = Folder::new();
    folder.write("cancelling.mlc", CANCELLING);
    let plain = ["verify", "cancelling.mlc", "--atol", "1e-5", "--rtol", "1e-4", "--target", "generic"];
    assert!(folder.fail(1, &plain).contains("elements are outside the tolerance"));
    let (printed, _) = folder.succeed(&["verify", "cancelling.mlc", "--target", "generic"]);
    let printed = String::from_utf8(printed).unwrap();
    assert!(
        printed.starts_with("y: ok, 32832 elements") && printed.contains("as far as rounding may move"),
        "{printed}"
    );
}

#[test]
fn formats_without_a_reader_are_named_with_a_way_in() {
    let folder = Folder::new();
    let zipped = |names: &[&str]| {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for name in names {
            let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            archive.start_file(*name, options).unwrap();
            archive.write_all(b"x").unwrap();
        }
        archive.finish().unwrap().into_inner()
    };
    for (name, bytes, texts) in [
        ("script.pt", zipped(&["m/data.pkl", "m/code/m.py", "m/constants.pkl"]), ["TorchScript", "'pnnx FILE"]),
        ("state.pt", zipped(&["m/data.pkl", "m/data/0"]), ["PyTorch", "torch.onnx.export"]),
        ("old.pth", b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec(), ["PyTorch", "torch.onnx"]),
        ("m.h5", b"\x89HDF\r\n\x1a\n\0\0".to_vec(), ["Keras", "format=\"onnx\""]),
        ("m.keras", zipped(&["config.json", "model.weights.h5"]), ["Keras", "tf2onnx"]),
        ("saved_model.pb", b"\x08\x01\x12\x04\x0a\x02ab".to_vec(), ["SavedModel", "--saved-model"]),
        ("frozen.pb", b"\x0a\x0a\x0a\x01x\x12\x05Const".to_vec(), ["GraphDef", "--graphdef"]),
        ("m.safetensors", b"\x02\0\0\0\0\0\0\0{}".to_vec(), ["safetensors", "weights and no network"]),
        ("graph.json", b"{\"nodes\": [], \"arg_nodes\": []}".to_vec(), ["graph executor", "whole archive"]),
        ("metadata.json", b"{\"modules\": {}, \"version\": 7}".to_vec(), ["metadata", "whole archive"]),
        ("module.json", b"{\"root\": 1, \"nodes\": []}".to_vec(), ["Relay as JSON", ".relay"]),
    ] {
        folder.write(name, bytes);
        let said = folder.fail(1, &["compile", name]);
        assert!(said.contains("error[MLC0003]"), "{said}");
        for text in texts {
            assert!(said.contains(text), "{name}: {said}");
        }
        let is_torch = name.ends_with(".pt") || name.ends_with(".pth");
        assert!(is_torch || !said.contains("pnnx"), "pnnx reads what PyTorch writes: {said}");
    }
}

/// Bytes are multiplied by weights that no integers stand for, and become bytes again.
const REAL_WEIGHTS: &str = r#"mlc 1
graph @real_weights(%x: i8[2, 4]) -> ("y": i8[2, 3]) {
  %real = cast %x {dtype = f32} : f32[2, 4]
  %scale = constant f32[] [0.05]
  %scaled = binary %real, %scale {function = multiply} : f32[2, 4]
  %w = constant f32[4, 3] random(seed = 3)
  %product = matmul %scaled, %w {transpose_left = false, transpose_right = false} : f32[2, 3]
  %steps = constant f32[] [20.0]
  %large = binary %product, %steps {function = multiply} : f32[2, 3]
  %y = cast %large {dtype = i8} : i8[2, 3]
  return %y
}
"#;

const QUANTIZED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/onnx");

#[test]
fn integers_that_are_computed_in_floating_point_are_told_with_the_kernels() {
    let folder = Folder::new();
    folder.write("real_weights.mlc", REAL_WEIGHTS);
    let (_, said) = folder.succeed(&["compile", "real_weights.mlc", "-o", "a.tar"]);
    assert!(said.contains("warning[MLC0403]"), "{said}");
    let kernels: Vec<&str> = said.lines().filter(|line| line.contains("in the kernel tvmgen_default_")).collect();
    let reason = "`w` is a constant of real numbers, no integers stand for it";
    assert!(kernels.len() == 1 && kernels[0].ends_with(reason), "the product: {said}");
    let pairs = format!("{QUANTIZED}/quantized_network_qdq/model.onnx");
    let operators = format!("{QUANTIZED}/quantized_network_qlinear/model.onnx");
    for model in [pairs.as_str(), operators.as_str(), "product.mlc"] {
        let (_, said) = folder.succeed(&["compile", model, "-o", "b.tar"]);
        assert!(!said.contains("MLC0403"), "{said}");
    }
}

#[test]
fn pools_of_the_caller_count_as_ram() {
    if is_missing("qemu-system-arm") || is_missing("arm-none-eabi-gcc") {
        return;
    }
    let folder = Folder::new();
    let layers = PRODUCT.replace("unary %s {function = tanh}", "softmax %s {axis = 1, logarithm = false}");
    folder.write("layers.mlc", layers);
    let compile = ["compile", "layers.mlc", "--target", "cortex-m4", "--workspace-pools", "external", "-o", "m.tar"];
    folder.succeed(&compile);
    let (printed, _) = folder.succeed(&["run", "m.tar", "--on", "cortex-m4"]);
    let printed = String::from_utf8(printed).unwrap();
    let line = printed.lines().find(|line| line.starts_with("RAM ")).unwrap();
    assert!(line.contains(" of the caller's pools"), "{line}");
    let said = folder.fail(1, &["run", "m.tar", "--on", "cortex-m4", "--ram", "128"]);
    assert!(said.contains("MLC0402") && said.contains(" of the caller's pools"), "{said}");
}

/// An archive for a microcontroller that is unpacked, and a folder for a project.
fn archive_for(folder: &Folder, target: &str) {
    folder.succeed(&["compile", "product.mlc", "--target", target, "-o", "m.tar"]);
    std::fs::create_dir(folder.path("archive")).unwrap();
    run(Command::new("tar").args(["xf", "m.tar", "-C", "archive"]).current_dir(folder.0.path()));
}

fn run(command: &mut Command) {
    for variable in ["CC", "CFLAGS", "AR", "LDFLAGS", "C_LIBRARY"] {
        command.env_remove(variable);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn archives_and_projects_for_microcontrollers_build_without_a_hint() {
    if is_missing("arm-none-eabi-gcc") {
        return;
    }
    let folder = Folder::new();
    archive_for(&folder, "cortex-m4");
    run(Command::new("make").current_dir(folder.path("archive")));
    folder.succeed(&["project", "m.tar", "--template", "bare-metal", "-o", "firmware"]);
    run(Command::new("make").current_dir(folder.path("firmware")));
    assert!(is_for_arm(&folder.path("firmware/build/default.elf")));
    if is_missing("cmake") {
        return;
    }
    folder.succeed(&["project", "m.tar", "--template", "cmake", "-o", "cmake"]);
    for (name, program) in [("archive", "cmake/libdefault.a"), ("cmake", "build/run_default")] {
        let build = if name == "archive" { "cmake" } else { "build" };
        run(Command::new("cmake").args(["-B", build]).current_dir(folder.path(name)));
        run(Command::new("cmake").args(["--build", build]).current_dir(folder.path(name)));
        assert!(folder.path(name).join(program).is_file(), "{name}");
    }
    assert!(is_for_arm(&folder.path("cmake/build/run_default")));
}

/// Whether a file is an ELF program for Arm.
fn is_for_arm(path: &Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.starts_with(b"\x7fELF") && bytes[18] == 40
}

#[test]
fn a_crate_needs_no_atomic_exchange() {
    let folder = Folder::new();
    folder.succeed(&["compile", "product.mlc", "-o", "m.tar"]);
    folder.succeed(&["project", "m.tar", "--template", "cargo", "-o", "crate"]);
    let text = folder.text("crate/src/lib.rs");
    // As on a core without atomic operations: what isn't behind the condition finds no such module.
    assert!(text.contains("#[cfg(target_has_atomic = \"8\")]") && text.contains("core::sync::atomic"));
    folder.write(
        "lib.rs",
        text.replace("target_has_atomic = \"8\"", "any()").replace("core::sync::atomic", "core::sync::none"),
    );
    let rustc = std::env::var("RUSTC").unwrap_or("rustc".into());
    let arguments = ["--crate-type", "lib", "--edition", "2021", "--emit", "metadata", "-D", "warnings", "lib.rs"];
    run(Command::new(rustc).args(arguments).current_dir(folder.0.path()));
}

#[test]
fn c_compiler_takes_the_example_of_the_readme() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let example = readme.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new();
    let network = PRODUCT.replace("\"y\"", "\"scores\"").replace("%x", "%\"pnnx_input_0\"");
    folder.write("kws.mlc", network);
    folder.succeed(&["compile", "kws.mlc", "--model-name", "kws", "--target", "generic", "--emit", "dir", "-o", "kws"]);
    let (includes, body): (Vec<&str>, Vec<&str>) = example.lines().partition(|line| line.starts_with('#'));
    let aligned = ["audio", "scores"].map(|array| format!("__alignof__({array}) >= 16"));
    let program = format!(
        "{}\n#include <stdint.h>\nint main(void) {{\n{}\n  return status == 0 && {} ? 0 : 1;\n}}\n",
        includes.join("\n"),
        body.join("\n"),
        aligned.join(" && "),
    );
    folder.write("main.c", &program);
    let sources = ["main.c", "kws/codegen/host/src/kws_lib0.c", "kws/codegen/host/src/kws_lib1.c"];
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-Ikws/codegen/host/include",
        "-Ikws/runtime/include",
    ]);
    compiler
        .args(sources)
        .args(["kws/codegen/host/src/kws_lib2.c", "-lm", "-o", "example"])
        .current_dir(folder.0.path());
    run(&mut compiler);
    run(&mut Command::new(folder.path("example")));
}

#[cfg(unix)]
#[test]
fn c_compiler_is_not_given_weights_as_text_to_run_them() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.write("large.mlc", PRODUCT.replace("8, 16", "4096, 16").replace("1, 8", "1, 4096"));
    // A compiler that writes down how large the file of the constants is.
    let sizes = "case \"$file\" in *_lib2.c) wc -c < \"$file\" >> \"$SIZES\" ;; esac";
    folder.write("cc", format!("#!/bin/sh\nfor file in \"$@\"; do\n  {sizes}\ndone\nexec cc \"$@\"\n"));
    std::fs::set_permissions(folder.path("cc"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.args(["run", "large.mlc", "--target", "generic"]).current_dir(folder.0.path());
    let output = command.env("CC", folder.path("cc")).env("SIZES", folder.path("sizes")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sizes = std::fs::read_to_string(folder.path("sizes")).unwrap_or_default();
    assert!(sizes.lines().all(|size| size.trim().parse::<usize>().unwrap() < 10_000), "{sizes}");
}

/// A loop that data never end.
const ENDLESS: &str = r#"mlc 1
graph @endless(%x: i64[]) -> ("y": i64[]) {
  %go = constant bool[] [true]
  %y = loop %go, %x {body = graph @body(%i: i64[], %go: bool[], %x: i64[]) -> ("go": bool[], "x": i64[]) {
    %one = constant i64[] [1]
    %n = binary %x, %one {function = add} : i64[]
    %l = binary %n, %x {function = not_equal} : bool[]
    return %l, %n
  }, trip_count = none, carried = 2, scanned = [], stacked = [], conditional = true} : bool[], i64[]
  return %y:1
}
"#;

#[test]
fn a_loop_without_an_end_is_compiled_and_not_verified_for_ever() {
    let folder = Folder::new();
    folder.write("endless.mlc", ENDLESS);
    folder.succeed(&["compile", "endless.mlc", "-o", "endless.tar"]);
    let output = folder.output(&["verify", "endless.mlc"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the loop hasn't ended after 262144 turns"), "{said}");
}
