//! Damaged model files meet the command: it ends by itself, within seconds and little memory, and what must be refused is.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// No user waits longer for a refusal.
const TIME: Duration = Duration::from_secs(2);
/// Resident memory of the command in KiB, the program itself included.
const MEMORY: usize = 200 << 10;
/// How often the memory is looked at; the system keeps the highest value.
const INTERVAL: Duration = Duration::from_millis(1);

/// The lists of files that have no folders of their own.
const LISTS: [&str; 2] = ["manifest.json", "index.json"];

/// The folders of damaged models: the repository's own, and those of the whole collection where it is at hand.
fn cases() -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("MLC_CONFORMANCE_DIR").map(PathBuf::from);
    let collection = named.unwrap_or_else(|| repository.join("../shared/conformance"));
    let mut cases = Vec::new();
    for folder in [repository.join("tests/data"), collection] {
        for format in ["pnnx-malformed", "onnx-malformed", "ark-malformed", "tennis-malformed", "tflite-malformed"] {
            let Ok(entries) = std::fs::read_dir(folder.join(format)) else { continue };
            let paths = entries.map(|entry| entry.unwrap().path());
            cases.extend(paths.filter(|path| !LISTS.iter().any(|list| path.ends_with(list))));
        }
    }
    cases.sort();
    cases
}

/// The most resident memory that the command had so far, in KiB; `None` when it has ended or hasn't begun.
///
/// A process that is being started is let go a moment before it has memory of its own: until then the memory that is told for it,
/// and the program, is that of whoever started it, here all the tests.
fn peak_memory(process: u32) -> Option<usize> {
    if std::fs::read_link(format!("/proc/{process}/exe")).ok()? != *COMMAND {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The time that processors have spent on a process so far; `None` when it has ended. That of the clock depends on what else is running.
fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Behind the name, which may hold anything: the times of the process and of the system for it are fields 14 and 15, in hundredths.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let hundredths: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * hundredths))
}

/// The command as the system names it: without links on the way.
static COMMAND: LazyLock<PathBuf> = LazyLock::new(|| std::fs::canonicalize(env!("CARGO_BIN_EXE_mlc")).unwrap());

/// What the command says to a model, the time that processors have spent on it, and the memory.
fn compile(model: &Path, out: &Path) -> (Output, Duration, usize) {
    let start = Instant::now();
    let mut command = Command::new(&*COMMAND);
    command.arg("compile").arg(model).arg("-o").arg(out).env_remove("RUST_BACKTRACE");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut memory, mut time) = (0, Duration::ZERO);
    while child.try_wait().unwrap().is_none() && start.elapsed() < 10 * TIME {
        memory = memory.max(peak_memory(child.id()).unwrap_or(0));
        time = time.max(processor_time(child.id()).unwrap_or_default());
        std::thread::sleep(INTERVAL);
    }
    if start.elapsed() >= 10 * TIME {
        child.kill().unwrap();
    }
    (child.wait_with_output().unwrap(), time, memory)
}

/// The model of a case, and whether it must be refused: a folder says it itself, for a file the list beside it does.
fn described(case: &Path) -> (PathBuf, bool) {
    let read =
        |path: PathBuf| -> serde_json::Value { serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap() };
    if case.is_dir() {
        let description = read(case.join("case.json"));
        let name = if description["format"] == "onnx" { "model.onnx" } else { "model.pnnx.param" };
        return (case.join(name), description["expect"] == "error");
    }
    let list = LISTS.iter().map(|list| case.with_file_name(list)).find(|list| list.is_file()).map(read).unwrap();
    let files = list.get("files").unwrap_or(&list);
    (case.to_owned(), files[case.file_name().unwrap().to_str().unwrap()]["expect"] == "error")
}

/// What is wrong with the command's answer to a damaged model.
fn fault(case: &Path, out: &Path) -> Option<String> {
    let (model, must_fail) = described(case);
    let (output, time, memory) = compile(&model, out);
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        None => Some(format!("it is killed: {} {said}", output.status)),
        Some(101) => Some(format!("it panics: {said}")),
        Some(0) if must_fail => Some("it accepts the file".into()),
        Some(status) if status != 0 && !said.contains("error[MLC") => Some(format!("it doesn't say why: {said}")),
        Some(_) if memory > MEMORY => Some(format!("it takes {memory} KiB")),
        Some(_) if time > TIME => Some(format!("it takes {} ms", time.as_millis())),
        Some(_) => None,
    }
}

#[test]
fn damaged_models_are_answered_in_seconds_and_little_memory() {
    let (folder, cases) = (tempfile::tempdir().unwrap(), cases());
    assert!(cases.len() > 5, "{} damaged models", cases.len());
    let check =
        |case: &PathBuf| fault(case, &folder.path().join("a.tar")).map(|fault| format!("{}: {fault}", case.display()));
    let faults: Vec<String> = cases.iter().filter_map(check).collect();
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
}

/// Large ARK files, each with another thing without end.
#[test]
fn large_texts_take_little_more_memory_than_the_file() {
    const SIZE: usize = 16 << 20;
    const MORE: usize = 64 << 10;
    let numbers = "0,".repeat(SIZE / 2);
    let keys: Vec<String> = (0..SIZE / 12).map(|key| format!("\"{key}\":0")).collect();
    let model = |nodes: &str| format!("{{\"Rank\":0,\"WorldSize\":1,\"Nodes\":{nodes}}}");
    let node = |shape: &str, rest: &str| {
        format!(
            "{{\"Id\":0,\"ProducerNodeIds\":[],\"ConsumerNodeIds\":[{rest}],\"Op\":{{\"Type\":\"Tensor\",\"Name\":\"x\",\"IsVirtual\":true,\
             \"ReadTensors\":[],\"WriteTensors\":[],\"ResultTensors\":[{{\"Id\":0,\"DataType\":\"FP32\",\"Shape\":[{shape}1]}}],\"Args\":{{}}}}}}"
        )
    };
    let wrong = node("", "");
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("numbers", model(&format!("[{numbers}0]"))),
        ("lists", model(&"[".repeat(SIZE))),
        ("objects", model(&"{\"Op\":".repeat(SIZE / 6))),
        ("keys", format!("{{{}}}", keys.join(","))),
        ("unknown", format!("{{\"Nodes\":[],\"x\":{{{}}}}}", keys.join(","))),
        ("string", model(&format!("\"{}\"", "x".repeat(SIZE)))),
        ("shape", model(&format!("[{}]", node(&numbers, "")))),
        ("neighbours", model(&format!("[{}]", node("", &format!("{numbers}0"))))),
        ("nodes", model(&format!("[{}]", vec![wrong.as_str(); SIZE / wrong.len()].join(",")))),
    ] {
        let path = folder.path().join(format!("{name}.json"));
        std::fs::write(&path, &text).unwrap();
        let (output, time, memory) = compile(&path, &folder.path().join("a.tar"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("error[MLC"), "{name}: {}", output.status);
        assert!(said.len() < 1 << 16, "{name}: {} bytes are said", said.len());
        assert!(memory < (text.len() >> 10) + MORE, "{name}: {memory} KiB");
        assert!(time < TIME, "{name}: {} ms", time.as_millis());
    }
}

#[test]
fn memory_and_time_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("large.mlc");
    let text = "mlc 1\ngraph @large(%x: f32[1]) -> (\"y\": f32[16000000]) {\n  \
                %w = constant f32[16000000] random(seed = 1)\n  \
                %y = binary %x, %w {function = maximum} : f32[16000000]\n  return %z\n}\n";
    std::fs::write(&model, text).unwrap();
    let (_, time, memory) = compile(&model, &folder.path().join("a.tar"));
    assert!(time > Duration::ZERO && time < TIME, "{} ms", time.as_millis());
    assert!(memory > MEMORY / 2, "{memory} KiB for 64 MB of weights");
}
