//! `mlc opgen`, as its users meet it.

use crate::common;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn mlc(folder: &Path, arguments: &[&str]) -> Output {
    common::output(folder, &[&["opgen"], arguments].concat())
}

/// Standard output of a command that succeeds.
fn success(folder: &Path, arguments: &[&str]) -> String {
    let output = mlc(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that ends with a status.
fn failure(folder: &Path, status: i32, arguments: &[&str]) -> String {
    let output = mlc(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{said}");
    said
}

/// A case of the repository.
fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/lightnet-opdesc").join(name)
}

#[test]
fn descriptions_are_checked_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    for (number, name) in ["none_and_cpu_pair", "row_view_owner_offset"].iter().enumerate() {
        std::fs::copy(case(name).join("op.json"), folder.path().join(format!("{number}.json"))).unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "not a description").unwrap();
    let expected = "scaled_add (none): 2 inputs, 1 output, 1 parameter; checks and shapes\n\
                    scaled_add_cpu (cpu): 2 inputs, 1 output, 1 parameter; checks, shapes and code\n\
                    row_view_cpu (cpu): 1 input, 1 output, 2 parameters; checks and shapes, nothing to run\n";
    assert_eq!(success(folder.path(), &["--check", "."]), expected);
    // A file that is named twice is read once, but an operator is described once.
    assert_eq!(success(folder.path(), &["--check", "0.json", "."]), expected);
    std::fs::copy(folder.path().join("0.json"), folder.path().join("2.op")).unwrap();
    assert!(failure(folder.path(), 1, &["--check", "."]).contains("'scaled_add' is described twice"));
}

#[test]
fn all_problems_are_shown_in_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"optype\": \"a_cpu\", \"author\": \"b\", \"arch\": \"cpu\", \"tensors_in\": [], \"params\": [],\n\
                 \"tensors_out\": [{\"arg_name\": \"dst\", \"mtype\": \"LN_MEM_ROM\", \"custom\": \"dst_ndim = x;\"}]}";
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    let said = failure(folder.path(), 1, &["--check", "a.json"]);
    for part in [
        "a.json:2:46, /tensors_out/0/mtype",
        "(unknown-value)",
        "a.json:2:82, /tensors_out/0/custom",
        "'x' isn't known here",
        "(bad-snippet)",
    ] {
        assert!(said.contains(part), "{part} isn't in {said}");
    }
    let json = failure(folder.path(), 1, &["--check", "a.json", "--message-format", "json"]);
    let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&first["code"], &first["location"]["json_path"]), (&"MLC0501".into(), &"/tensors_out/0/mtype".into()));
}

#[test]
fn a_new_description_is_one_to_start_from() {
    let folder = tempfile::tempdir().unwrap();
    let text = success(folder.path(), &["--new", "clip"]);
    assert!(text.contains("\"optype\": \"clip_cpu\""), "{text}");
    success(folder.path(), &["--new", "clip", "-o", "clip.json"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("clip.json")).unwrap(), text);
    assert!(success(folder.path(), &["--check", "clip.json"]).starts_with("clip_cpu (cpu): 1 input"));
    assert!(failure(folder.path(), 2, &["--new", "clip", "-o", "clip.json"]).contains("exists already"));
    assert!(failure(folder.path(), 2, &["--new", "two words"]).contains("isn't an identifier of C"));
    assert!(failure(folder.path(), 2, &["clip.json"]).contains("--check"));
    success(folder.path(), &["clip.json", "-o", "clip"]);
    compile(&folder.path().join("clip"));
    failure(folder.path(), 2, &[]);
}

/// The C compilers that are there: the usual one, and one for a microcontroller.
fn compilers() -> Vec<Vec<&'static str>> {
    let arm = [
        "arm-none-eabi-gcc",
        "--specs=picolibc.specs",
        "-mcpu=cortex-m4",
        "-mthumb",
        "-mfpu=fpv4-sp-d16",
        "-mfloat-abi=hard",
    ];
    let all = [vec!["cc"], arm.to_vec()];
    let is_there = |compiler: &Vec<&str>| Command::new(compiler[0]).arg("--version").output().is_ok();
    all.into_iter().filter(is_there).collect()
}

/// Compiles every C file of a folder strictly.
fn compile(folder: &Path) {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "c")).collect();
    assert!(sources.len() > 1);
    for compiler in compilers() {
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]).args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-c"]).args(&sources);
        let output = command.current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn c_compilers_take_the_c_of_all_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    let mut written = 0;
    for entry in std::fs::read_dir(case("")).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let description =
            ["op.json", "op.op"].map(|file| case.join(file)).into_iter().find(|path| path.is_file()).unwrap();
        if !name.starts_with("bad_") {
            success(folder.path(), &[description.to_str().unwrap(), "-o", &name]);
            // An operator without a phase has nothing to compile beside its header.
            compile(&folder.path().join(&name));
            written += 1;
        }
    }
    assert!(written > 10, "{written}");
}

#[test]
fn c_is_only_written_where_there_is_some() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, arch: &str, run: &str| {
        let text = format!(
            "{{\"optype\": \"x_{arch}\", \"author\": \"*/ int x;\", \"arch\": \"{arch}\", \"tensors_in\": [], \
             \"tensors_out\": [], \"params\": [], \"run\": \"{run}\"}}"
        );
        std::fs::write(folder.path().join(name), text).unwrap();
    };
    write("cuda.json", "cuda", "launch();");
    write("empty.json", "cpu", "");
    write("one.json", "cpu", "");
    assert!(failure(folder.path(), 2, &["cuda.json", "-o", "out"]).contains("no C to write"));
    assert!(failure(folder.path(), 1, &["empty.json", "-o", "out"]).contains("the `run` of 'x_cpu' is empty"));
    assert!(!folder.path().join("out").exists());
    write("one.json", "cpu", "int a = 0; // the end");
    success(folder.path(), &["cuda.json", "one.json", "-o", "out"]);
    let source = std::fs::read_to_string(folder.path().join("out/x_cpu.c")).unwrap();
    assert!(source.starts_with("/* The operator x_cpu, by __ int x_."), "{source}");
}

#[test]
fn hostile_descriptions_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let long = 1 << 20;
    let output = |dims: &str| {
        format!(
            "{{\"optype\": \"a_cpu\", \"author\": \"b\", \"arch\": \"cpu\", \"tensors_in\": [], \"params\": [], \"tensors_out\": \
             [{{\"arg_name\": \"dst\", \"mtype\": \"LN_MEM_CPU\", \"ndim\": \"{dims}\", \"dims\": [1], \"dtype\": 1}}]}}"
        )
    };
    let texts = [
        output(&format!("{}1{}", "(".repeat(long), ")".repeat(long))),
        output(&format!("{}x", "1 + ".repeat(long))),
        output(&"dst->".repeat(long)),
        "[".repeat(long),
        "{\"a\":".repeat(long),
        format!("{{\"ops\": [{}]}}", vec!["{}"; long].join(",")),
        format!("a {{ x: [{}] }}", "`".repeat(long)),
        format!(
            "a {{ x: `{}` }} {}",
            "x".repeat(long),
            (0..999).map(|k| format!("b{k} : a {{ y{k}: 1 }} ")).collect::<String>()
        ),
    ];
    for text in texts {
        std::fs::write(folder.path().join("a.json"), &text).unwrap();
        let start = Instant::now();
        failure(folder.path(), 1, &["--check", "a.json"]);
        let time = start.elapsed();
        // A third of a second where nothing else runs.
        assert!(time < Duration::from_secs(5), "{time:?}: {}", &text[..100]);
    }
}
