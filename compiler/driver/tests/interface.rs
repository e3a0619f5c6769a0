//! Options that give a model the interface that its users want: the header, the metadata and every command follow.

use crate::common::mlc;
use mlc::npy;
use mlc_ir::{DType, Tensor, TensorType};
use std::path::Path;

/// sigmoid(x + b), and x + b, under names of a converter.
const MODEL: &str = r#"mlc 1
graph @tiny(%"serving/x:0": f32[2, 3]) -> ("Identity:0": f32[2, 3], "sum": f32[2, 3]) {
  %b = constant f32[3] [0.5, -1.0, 2.0]
  %sum = binary %"serving/x:0", %b {function = add}
  %p = unary %sum {function = sigmoid}
  return %p, %sum
}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.mlc"), MODEL).unwrap();
    write(folder.path(), "x.npy", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    folder
}

fn write(folder: &Path, name: &str, shape: &[usize], values: &[f64]) {
    let tensor = Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec());
    std::fs::write(folder.join(name), npy::format(&tensor)).unwrap();
}

fn read(folder: &Path, name: &str, dtype: DType, shape: &[usize]) -> Vec<f64> {
    npy::read_tensor(&folder.join(name), &TensorType::new(dtype, shape)).unwrap().to_floats()
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

const SUM: [f64; 6] = [0.5, 0.0, 4.0, 3.5, 3.0, 7.0];

#[test]
fn c_compiler_finds_inputs_and_outputs_under_their_new_names() {
    let folder = folder();
    let folder = folder.path();
    let names = ["--rename", "serving/x:0=audio", "--rename", "Identity:0=scores"];
    let with = |arguments: &[&str]| mlc(folder, 0, &[arguments, &names].concat());
    with(&["compile", "model.mlc", "--emit", "dir", "-o", "c", "--model-name", "kws"]);
    let header = text(folder, "c/codegen/host/include/tvmgen_kws.h");
    for part in ["* audio; /* \"audio\"", "void* scores;", "TVMGEN_KWS_AUDIO_SIZE 24", "TVMGEN_KWS_SCORES_SIZE 24"] {
        assert!(header.contains(part), "'{part}' isn't in {header}");
    }
    for file in ["metadata.json", "codegen/host/include/tvmgen_kws.h", "src/kws.json", "src/kws.mlc", "src/kws.relay"] {
        let text = text(folder, &format!("c/{file}"));
        assert!(text.contains("audio") && !text.contains("serving") && !text.contains("Identity"), "{file}: {text}");
    }
    with(&["compile", "model.mlc", "-o", "kws.tar"]);
    mlc(folder, 0, &["run", "kws.tar", "--input", "audio=x.npy", "--output-dir", "archive"]);
    with(&["run", "model.mlc", "--input", "audio=x.npy", "--output-dir", "model"]);
    for name in ["archive", "model"] {
        assert_eq!(read(folder, &format!("{name}/sum.npy"), DType::F32, &[2, 3]), SUM);
        assert!(folder.join(name).join("scores.npy").is_file());
    }
    write(folder, "sum.npy", &[2, 3], &SUM);
    let said = with(&["verify", "model.mlc", "--input", "audio=x.npy", "--expect", "sum=sum.npy"]);
    assert!(said.contains("sum: ok"), "{said}");
    let said = with(&["inspect", "model.mlc"]);
    assert!(said.contains("  audio: f32[2, 3]") && said.contains("  scores: f32[2, 3]"), "{said}");
    // Of several models, each gets it.
    std::fs::write(folder.join("other.mlc"), MODEL).unwrap();
    mlc(folder, 0, &["compile", "model.mlc", "other.mlc", "--rename", "sum=total", "--emit", "c", "-o", "two"]);
    for model in ["model", "other"] {
        assert!(text(folder, &format!("two/tvmgen_{model}.h")).contains("void* total;"));
    }
    // The new name may be any; in C it is spelled as others are.
    mlc(folder, 0, &["compile", "model.mlc", "--rename", "sum=for", "--emit", "c", "-o", "d"]);
    assert!(text(folder, "d/tvmgen_default.h").contains("void* _for; /* \"for\""));
}

#[test]
fn names_that_cannot_be_given_are_refused() {
    let folder = folder();
    let folder = folder.path();
    for (wrong, said) in [
        ("y=z", "no input and no output 'y'"),
        ("y=z", "its inputs are: serving/x:0"),
        ("y=z", "its outputs are: Identity:0, sum"),
        ("Identity:0=sum", "'Identity:0' can't have the name 'sum'"),
        ("sum=", "OLD=NEW"),
        ("sum", "OLD=NEW"),
    ] {
        for command in ["compile", "run", "bench", "verify", "inspect", "report"] {
            let told = mlc(folder, 2, &[command, "model.mlc", "--rename", wrong]);
            assert!(told.contains(said), "{command} {wrong}: {told}");
        }
    }
    mlc(folder, 0, &["compile", "model.mlc", "-o", "model.tar"]);
    for command in ["run", "inspect"] {
        let told = mlc(folder, 2, &[command, "model.tar", "--rename", "sum=total"]);
        assert!(told.contains("was decided then") && told.contains("'mlc compile'"), "{told}");
    }
}

#[test]
fn c_compiler_runs_archives_without_their_model() {
    let folder = folder();
    let folder = folder.path();
    for (options, file) in [
        (&[][..], "src/default.relay"),
        (&["--executor", "graph", "--mlf-version", "5"], "src/relay.txt"),
        (&["--interface-api", "packed"], "src/default.relay"),
    ] {
        mlc(folder, 0, &[&["compile", "model.mlc", "-o", "whole.tar"], options].concat());
        mlc(folder, 0, &[&["compile", "model.mlc", "--no-source-model", "-o", "lean.tar"], options].concat());
        let [whole, lean] = ["whole.tar", "lean.tar"].map(|name| std::fs::read(folder.join(name)).unwrap());
        let holds = |archive: &[u8]| archive.windows(file.len()).any(|bytes| bytes == file.as_bytes());
        assert!(holds(&whole) && !holds(&lean) && lean.len() < whole.len(), "{options:?}");
        mlc(folder, 0, &["run", "lean.tar", "--input", "x.npy", "--output-dir", "out"]);
        assert_eq!(read(folder, "out/sum.npy", DType::F32, &[2, 3]), SUM);
        mlc(folder, 0, &["inspect", "lean.tar"]);
        mlc(folder, 0, &["compile", "whole.tar", "--from", "relay", "-o", "again.tar"]);
        let told = mlc(folder, 2, &["compile", "lean.tar", "--from", "relay", "-o", "again.tar"]);
        let parts = [file, "--no-source-model", "give the model itself"];
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    }
}

const IMAGES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/pnnx/net_mlperftiny_resnet8/model.pnnx.param");

#[test]
fn c_compiler_computes_of_raw_numbers_what_the_model_computes_of_normalised_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shape = [1, 3, 32, 32];
    let pixels: Vec<i64> = (0..3 * 32 * 32).map(|place| (place * 7919 + place / 32 * 31) % 256).collect();
    for (dtype, shift, options, means, deviations) in [
        (DType::U8, 0, "123.675:116.28:103.53,58.395:57.12:57.375", [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]),
        (DType::I8, 128, "0,64", [0.0; 3], [64.0; 3]),
        (DType::I16, 0, "pnnx_input_0=127.5,100:120:140", [127.5; 3], [100.0, 120.0, 140.0]),
    ] {
        let raw: Vec<i64> = pixels.iter().map(|pixel| pixel - shift).collect();
        let normal = |(place, &raw): (usize, &i64)| {
            let channel = place / (32 * 32);
            f64::from((raw as f32 - means[channel] as f32) / deviations[channel] as f32)
        };
        write(folder, "floats.npy", &shape, &raw.iter().enumerate().map(normal).collect::<Vec<_>>());
        let tensor = Tensor::from_integers(TensorType::new(dtype, shape), raw.clone());
        std::fs::write(folder.join("raw.npy"), npy::format(&tensor)).unwrap();
        mlc(folder, 0, &["run", IMAGES, "--input", "floats.npy", "--output-dir", "expected"]);
        let output = std::fs::read_dir(folder.join("expected")).unwrap().map(|entry| entry.unwrap().file_name());
        let output = output.map(|name| name.into_string().unwrap()).find(|name| name.ends_with(".npy")).unwrap();
        let (raw_type, expected) = (dtype.name(), format!("expected/{output}"));
        let typed = [IMAGES, "--input-type", raw_type, "--normalize", options, "--input", "raw.npy"];
        // Numbers are widened alike for all types.
        let rules = if dtype == DType::U8 { &["fast", "strict"][..] } else { &["fast"] };
        for fp in rules {
            let tolerance = ["--fp", fp, "--expect", &expected, "--atol", "1e-5", "--rtol", "1e-4"];
            mlc(folder, 0, &[&["verify"], &typed[..], &tolerance].concat());
        }
        mlc(folder, 0, &[&["verify"], &typed[..]].concat());
        // Floats that are yet to be normalised, too.
        let floats: Vec<f64> = raw.iter().map(|&raw| raw as f64).collect();
        write(folder, "floats.npy", &shape, &floats);
        let tolerance = ["--input", "floats.npy", "--expect", &expected, "--atol", "1e-5", "--rtol", "1e-4"];
        mlc(folder, 0, &[&["verify", IMAGES, "--normalize", options], &tolerance[..]].concat());
    }
}

#[test]
fn raw_inputs_are_in_the_header_and_what_cannot_be_is_refused() {
    let folder = folder();
    let folder = folder.path();
    mlc(
        folder,
        0,
        &[
            "compile",
            "model.mlc",
            "--input-type",
            "serving/x:0=u8",
            "--rename",
            "serving/x:0=x",
            "--emit",
            "dir",
            "-o",
            "c",
        ],
    );
    let header = text(folder, "c/codegen/host/include/tvmgen_default.h");
    assert!(header.contains("\"x\": u8[2, 3]") && header.contains("TVMGEN_DEFAULT_X_SIZE 6"), "{header}");
    assert!(mlc(folder, 0, &["inspect", "model.mlc", "--input-type", "i8"]).contains("serving/x:0: i8[2, 3]"));
    for (options, said) in [
        (&["--input-type", "f32"][..], "none of u8, i8, u16, i16"),
        (&["--input-type", "y=u8"], "no input 'y'"),
        (&["--input-type", "u8", "--input-type", "serving/x:0=i8"], "--input-type is given twice"),
        (&["--normalize", "1"], "MEAN,DEVIATION"),
        (&["--normalize", "1,0"], "divided by 0"),
        (&["--normalize", "1:2:3:4,1"], "4 numbers are given for the channels of the input 'serving/x:0': f32[2, 3]"),
        (&["--normalize", "1,1", "--normalize", "2,2"], "--normalize is given twice"),
    ] {
        let told = mlc(folder, 2, &[&["compile", "model.mlc", "-o", "no.tar"], options].concat());
        assert!(told.contains(said), "{options:?}: {told}");
    }
}

/// Logits of two rows, and their softmax.
const CLASSES: &str = r#"mlc 1
graph @classes(%x: f32[2, 4]) -> ("scores": f32[2, 4], "x": f32[2, 4]) {
  %w = constant f32[4] [1.0, -1.0, 1.0, 2.0]
  %l = binary %x, %w {function = multiply}
  %s = softmax %l {axis = 1, logarithm = false}
  return %s, %x
}
"#;

#[test]
fn c_compiler_finds_the_largest_entry_without_its_softmax() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("classes.mlc"), CLASSES).unwrap();
    write(folder, "x.npy", &[2, 4], &[1.0, -7.0, 2.0, 3.0, 5.0, 0.5, 5.0, 0.0]);
    for fp in ["fast", "strict"] {
        let options = ["--argmax=scores", "--fp", fp];
        mlc(folder, 0, &[&["compile", "classes.mlc", "--emit", "dir", "-o", fp], &options[..]].concat());
        let kernels = text(folder, &format!("{fp}/src/default.mlc"));
        assert!(kernels.contains("arg_reduce") && !kernels.contains("softmax"), "{kernels}");
        assert!(text(folder, &format!("{fp}/codegen/host/include/tvmgen_default.h")).contains("\"scores\": i32[2]"));
        mlc(folder, 0, &[&["run", "classes.mlc", "--input", "x.npy", "--output-dir", "out"], &options[..]].concat());
        assert_eq!(read(folder, "out/scores.npy", DType::I32, &[2]), [1.0, 0.0]);
        mlc(folder, 0, &[&["verify", "classes.mlc"], &options[..]].concat());
    }
    // The softmax of integers is several operators, of which none is left; it rounds many scores to equal ones.
    let classes = "tests/data/tflite/softmax_batch_int8/model.tflite";
    let classes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(classes);
    let classes = classes.to_str().unwrap();
    mlc(folder, 0, &["compile", classes, "--argmax", "--emit", "dir", "-o", "integers"]);
    let kernels = text(folder, "integers/src/default.mlc");
    assert!(
        kernels.contains("arg_reduce") && !kernels.contains("gather") && !kernels.contains("= reduce"),
        "{kernels}"
    );
    mlc(folder, 0, &["verify", classes, "--argmax"]);
    // The only output needs no name, and the option takes no file for one.
    assert!(mlc(folder, 0, &["inspect", "--argmax", IMAGES]).contains(": i32[1]"));
    mlc(folder, 0, &["verify", "--argmax", IMAGES]);
    for (option, said) in [("--argmax", "the model has 2 outputs, and none is named"), ("--argmax=y", "no output 'y'")]
    {
        let told = mlc(folder, 2, &["compile", "classes.mlc", option, "-o", "no.tar"]);
        assert!(told.contains(said) && told.contains("its outputs are: scores, x"), "{option}: {told}");
    }
    let twice = ["compile", IMAGES, "--argmax", "--argmax=body.7", "-o", "no.tar"];
    assert!(mlc(folder, 2, &twice).contains("--argmax is given twice for one output"));
}

/// Constant data as input, and memory by a plain pointer as microTVM's structures have it.
const POINTERS: &str = "#include \"tvmgen_default.h\"
static const float constant[6] = {0, 1, 2, 3, 4, 5};
static float p[6], sum[6];
int main(void) {
  void* plain = sum;
  struct tvmgen_default_inputs inputs = {constant};
  struct tvmgen_default_outputs outputs = {p, sum};
  if (tvmgen_default_run(&inputs, &outputs) != 0 || sum[5] != 7.0f) return 1;
  inputs.serving_x_0 = plain;
  outputs.sum = p;
  outputs.Identity_0 = sum;
  return tvmgen_default_run(&inputs, &outputs);
}
";

#[test]
fn c_compiler_takes_constant_and_other_memory_as_inputs_without_a_cast() {
    let folder = folder();
    let folder = folder.path();
    mlc(folder, 0, &["compile", "model.mlc", "--emit", "c", "-o", "c"]);
    std::fs::write(folder.join("c/main.c"), POINTERS).unwrap();
    let flags = ["-std=c99", "-Wall", "-Wextra", "-Wcast-qual", "-Werror", "-pedantic", "-o", "main", "main.c"];
    let sources = ["default_lib0.c", "default_lib1.c", "default_lib2.c", "-lm"];
    let mut compiler = std::process::Command::new("cc");
    let built = compiler.args(flags).args(sources).current_dir(folder.join("c")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    assert!(std::process::Command::new(folder.join("c/main")).status().unwrap().success());
}

/// An input of each kind whose C type isn't its own name, and outputs of theirs.
const KINDS: &str = r#"mlc 1
graph @kinds(%h: f16[4], %b: bool[4], %c: i8[4], %x: f32[4]) -> ("h2": f16[4], "b2": bool[4], "c2": i8[4], "x2": f32[4]) {
  %h2 = binary %h, %h {function = add}
  %b2 = unary %b {function = not}
  %c2 = binary %c, %c {function = add}
  %x2 = binary %x, %x {function = add}
  return %h2, %b2, %c2, %x2
}
"#;

/// The members are of these types, which the C compiler tells.
const TYPED: &str = "#include \"tvmgen_default.h\"
static const uint16_t h[4] = {0x3c00, 0xc000, 0, 0x3800};
static const uint8_t b[4] = {1, 0, 0, 1};
static const int8_t c[4] = {1, -2, 3, 4};
static const float x[4] = {0.5f, 1.0f, 2.0f, -3.0f};
static uint16_t h2[4];
static uint8_t b2[4];
static int8_t c2[4];
static float x2[4];
int main(void) {
  struct tvmgen_default_inputs inputs = {h, b, c, WRONG};
  struct tvmgen_default_outputs outputs = {h2, b2, c2, x2};
  if (tvmgen_default_run(&inputs, &outputs) != 0) return 1;
  return h2[0] == 0x4000 && b2[1] == 1 && b2[0] == 0 && c2[1] == -4 && x2[3] == -6.0f ? 0 : 2;
}
";

#[test]
fn c_compiler_tells_wrong_memory_from_right_where_pointers_have_types() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("kinds.mlc"), KINDS).unwrap();
    mlc(folder, 0, &["compile", "kinds.mlc", "--typed-pointers", "--emit", "c", "-o", "c"]);
    let header = text(folder, "c/tvmgen_default.h");
    for member in
        ["  const uint16_t* h; /* \"h\": f16[4], the bits of each number */", "  int8_t* c2;", "  const uint8_t* b;"]
    {
        assert!(header.contains(member), "{header}");
    }
    let sources = ["main.c", "default_lib0.c"];
    let c = [&["cc", "-std=c99", "-pedantic", "-o", "main", "default_lib1.c", "default_lib2.c"], &sources[..]].concat();
    // The kernels are C; what calls them, and whoever calls that, may be C++.
    let c_plus_plus = [&["c++", "-xc++", "-c"], &sources[..]].concat();
    for (buffer, fits) in [("x", true), ("c", false)] {
        std::fs::write(folder.join("c/main.c"), TYPED.replace("WRONG", buffer)).unwrap();
        for command in [&c, &c_plus_plus] {
            let mut compiler = std::process::Command::new(command[0]);
            compiler.args(["-Wall", "-Wextra", "-Werror"]).args(&command[1..]);
            let built = compiler.current_dir(folder.join("c")).output().unwrap();
            let said = String::from_utf8_lossy(&built.stderr);
            assert_eq!(built.status.success(), fits, "{said}");
            assert!(fits || said.contains("int8_t") && said.contains("float"), "{said}");
        }
        let ran = || std::process::Command::new(folder.join("c/main")).status().unwrap().code();
        assert!(!fits || ran() == Some(0));
    }
    mlc(folder, 0, &["compile", "kinds.mlc", "--typed-pointers", "-o", "kinds.tar"]);
    mlc(folder, 0, &["run", "kinds.tar", "--output-dir", "outputs"]);
    mlc(folder, 0, &["project", "kinds.tar", "--template", "posix", "-o", "project"]);
    let packed = ["compile", "kinds.mlc", "--typed-pointers", "--interface-api", "packed"];
    assert!(mlc(folder, 2, &packed).contains("only the C interface has pointers that could have types"));
}

/// A sum that goes on from run to run, times a factor.
const STREAM: &str = r#"mlc 1
graph @stream(%x: f32[2], %f: f32[], %s: f32[2]) -> ("y": f32[2], "next": f32[2]) {
  %n = binary %s, %x {function = add}
  %y = binary %n, %f {function = multiply}
  return %y, %n
}
"#;

#[test]
fn c_compiler_runs_several_steps_in_one_process() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("stream.mlc"), STREAM).unwrap();
    write(folder, "x.npy", &[3, 2], &[1.0, 2.0, 10.0, 20.0, 100.0, 200.0]);
    write(folder, "f.npy", &[], &[2.0]);
    write(folder, "fs.npy", &[3], &[1.0, 2.0, 3.0]);
    write(folder, "two.npy", &[2], &[1.0, 2.0]);
    write(folder, "none.npy", &[0, 2], &[]);
    mlc(folder, 0, &["compile", "stream.mlc", "--state", "s=next", "-o", "stream.tar"]);
    for (model, factors, expected) in [
        (&["stream.mlc", "--state", "s=next"][..], "f=f.npy", [2.0, 4.0, 22.0, 44.0, 222.0, 444.0]),
        (&["stream.tar"], "f=fs.npy", [1.0, 2.0, 22.0, 44.0, 333.0, 666.0]),
    ] {
        let options = ["--steps", "--input", "x.npy", "--input", factors, "--output-dir", "out"];
        mlc(folder, 0, &[&["run"], model, &options[..]].concat());
        assert_eq!(read(folder, "out/y.npy", DType::F32, &[3, 2]), expected);
        let list: serde_json::Value = serde_json::from_str(&text(folder, "out/outputs.json")).unwrap();
        assert_eq!(list[0]["shape"], serde_json::json!([3, 2]));
    }
    // A first axis of extent 1 may be that of the runs.
    write(folder, "rows.npy", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    std::fs::write(folder.join("row.mlc"), MODEL.replace("[2, 3]", "[1, 3]")).unwrap();
    mlc(folder, 0, &["run", "row.mlc", "--steps", "--input", "rows.npy", "--output-dir", "out"]);
    assert_eq!(read(folder, "out/sum.npy", DType::F32, &[2, 1, 3]), SUM);
    // One run of one step is a run.
    mlc(folder, 0, &["run", "stream.tar", "--steps", "--input", "two.npy", "--input", "f.npy", "--output-dir", "out"]);
    assert_eq!(read(folder, "out/y.npy", DType::F32, &[1, 2]), [2.0, 4.0]);
    for (inputs, status, said) in [
        (&["--input", "x.npy", "--input", "two.npy"][..], 2, "the input 'f' is of 2 runs, 'x' is of 3"),
        (&["--input", "none.npy", "--input", "f.npy"], 1, "the array is of no run"),
        (&["--input", "fs.npy", "--input", "f.npy"], 1, "has shape [3], [2] expected"),
        (&[], 2, "add --input"),
        (&["--input", "x.npy", "--layers", "no"], 2, "cannot be used with"),
    ] {
        let told = mlc(folder, status, &[&["run", "stream.tar", "--steps"], inputs].concat());
        assert!(told.contains(said), "{inputs:?}: {told}");
    }
}

#[test]
fn normalisation_goes_into_the_weights_of_a_convolution() {
    let folder = folder();
    let folder = folder.path();
    let borderless = IMAGES.replace("net_mlperftiny_resnet8", "op_conv2d_1");
    let pixels = "123.675:116.28:103.53,58.395:57.12:57.375";
    for (model, numbers, left) in [(IMAGES, pixels, true), (IMAGES, "0,255", false), (&borderless, pixels, false)] {
        let options = ["--input-type", "u8", "--normalize", numbers];
        let graph = mlc(folder, 0, &[&["compile", model, "--emit", "ir", "-q"], &options[..]].concat());
        let divides = ["divide", "multiply"].iter().any(|function| graph.contains(function));
        assert!(graph.contains("cast") && !divides, "{model} {numbers}: {graph}");
        // Means can't where a border of zeros is around what they are taken of.
        assert_eq!(graph.contains("= map"), left, "{model} {numbers}: {graph}");
        mlc(folder, 0, &[&["verify", model], &options[..]].concat());
    }
}
