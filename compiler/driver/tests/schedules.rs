//! Schedules as users see them: listed, explained, and asked for.

use std::path::Path;
use std::process::Command;

/// A convolution that tiles of several sizes are worth a look for, and a softmax, twice.
const MODEL: &str = r#"mlc 1
graph @net(%x: f32[1, 10, 10, 8]) -> ("y": f32[1, 8, 8, 24]) {
  %w = constant f32[3, 3, 8, 24] random(seed = 1)
  %conv = convolution %x, %w {strides = [1, 1], pads = [[0, 0], [0, 0]], dilations = [1, 1], groups = 1} : f32[1, 8, 8, 24]
  %y = softmax %conv {axis = 3, logarithm = false} : f32[1, 8, 8, 24]
  return %y
}
"#;

/// Runs mlc on the model; its status, and what it prints and says.
fn mlc(folder: &Path, arguments: &[&str]) -> (i32, String) {
    std::fs::write(folder.join("net.mlc"), MODEL).unwrap();
    crate::common::said(folder, arguments)
}

/// Schedules of the kernel of a node in a listing, and the one that is taken.
fn listed(text: &str, node: &str) -> (Vec<String>, String) {
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("{node} ("))).skip(1);
    let (mut all, mut taken) = (Vec::new(), String::new());
    for line in lines.take_while(|line| line.starts_with("  ")) {
        let name = line[4..].split(": ").next().unwrap().to_owned();
        if line.starts_with("  * ") {
            taken.clone_from(&name);
        }
        all.push(name);
    }
    (all, taken)
}

#[test]
fn every_kernel_tells_its_schedules() {
    let folder = tempfile::tempdir().unwrap();
    let (status, inspected) = mlc(folder.path(), &["inspect", "net.mlc", "--schedules", "--target", "cortex-m4"]);
    assert_eq!(status, 0, "{inspected}");
    let (all, taken) = listed(&inspected, "conv");
    assert!(all.len() > 1 && all.contains(&taken), "{inspected}");
    let is_known = |schedule: &String| schedule.starts_with("tiles:vectors=") || schedule.starts_with("rolled:pixels=");
    assert!(all.iter().all(is_known), "{inspected}");
    for fact in
        [": time ", " of code", " of constants", " turns of its outermost loop don't touch each other's results"]
    {
        assert!(inspected.contains(fact), "{inspected}");
    }
    let (status, explained) = mlc(folder.path(), &["compile", "net.mlc", "--explain", "--target", "cortex-m4"]);
    assert_eq!(status, 0, "{explained}");
    assert_eq!(listed(&explained, "conv"), (all, taken));
    assert!(!listed(&explained, "y").0.is_empty(), "{explained}");
}

#[test]
fn code_is_made_for_what_is_asked_for_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let inspect = |more: &[&str]| {
        let (status, text) = mlc(folder.path(), &[&["inspect", "net.mlc", "--schedules"][..], more].concat());
        assert_eq!(status, 0, "{text}");
        text
    };
    let small = inspect(&["--target", "cortex-m4", "--optimize", "size"]);
    assert!(small.contains("schedules for cortex-m4, size:") && small.contains("the cheapest for size"), "{small}");
    assert!(listed(&small, "conv").1.starts_with("rolled:"), "{small}");
    let fast = inspect(&["--target", "cortex-m4", "--optimize", "speed"]);
    assert!(listed(&fast, "conv").1.starts_with("tiles:"), "{fast}");
    assert!(inspect(&["--target", "cortex-m4"]).contains("schedules for cortex-m4, balanced:"));
    assert!(inspect(&[]).contains("schedules for generic, speed:"));
    let compile = |objective: &str| {
        let arguments = ["compile", "net.mlc", "--target", "cortex-m4", "--optimize", objective, "--emit", "dir"];
        mlc(folder.path(), &[&arguments[..], &["-o", objective]].concat())
    };
    let read = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    for (objective, level) in [("speed", "-O3"), ("size", "-Os"), ("ram", "-O3"), ("balanced", "-O3")] {
        let (status, text) = compile(objective);
        assert_eq!(status, 0, "{text}");
        assert!(read(&format!("{objective}/src/default.json")).contains(&format!("\"objective\": \"{objective}\"")));
        let said = read(&format!("{objective}/metadata.json")).contains(&format!(" -optimize={objective}"));
        assert_eq!(said, objective != "speed");
        assert!(read(&format!("{objective}/Makefile")).contains(level));
    }
    let (status, text) = compile("smallness");
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("speed, size, ram, balanced"), "{text}");
}

#[test]
fn a_schedule_that_is_asked_for_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let compile = |schedule: &str, output: &str| {
        let option = format!("conv={schedule}");
        mlc(
            folder.path(),
            &["compile", "net.mlc", "--explain", "--target", "generic", "--schedule", &option, "-o", output],
        )
    };
    let (_, plain) = mlc(folder.path(), &["compile", "net.mlc", "--explain", "--target", "generic", "-o", "plain.tar"]);
    let (all, taken) = listed(&plain, "conv");
    let other = all.iter().find(|schedule| **schedule != taken).unwrap();
    let (status, forced) = compile(other, "forced.tar");
    assert_eq!((status, &listed(&forced, "conv").1), (0, other), "{forced}");
    assert!(forced.contains("the one that was asked for"), "{forced}");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_ne!(read("plain.tar"), read("forced.tar"));
    // The kind alone is its first schedule.
    assert_eq!(listed(&compile("tiles", "kind.tar").1, "conv").1, all[0]);
}

#[test]
fn schedules_that_there_are_not_are_refused_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let compile = |option: &str| mlc(folder.path(), &["compile", "net.mlc", "--schedule", option]);
    for (option, texts) in [
        ("conv=winograd", ["kernel \"conv\" has no schedule \"winograd\"", "there are tiles:vectors="]),
        ("conv=tiles:vectors=99", ["no schedule \"tiles:vectors=99\"", "there are tiles:vectors="]),
        ("conf=tiles", ["there is no kernel \"conf\" to choose a schedule for", "there are conv, y"]),
        ("conv", ["NODE=KIND", "--schedule"]),
    ] {
        let (status, said) = compile(option);
        assert_eq!(status, 2, "{said}");
        for text in texts {
            assert!(said.contains(text), "'{text}' isn't in: {said}");
        }
    }
}

/// A kernel in a loop in a loop.
const LOOPS: &str = r#"mlc 1
graph @g(%x: f32[64]) -> ("y": f32[64]) {
  %a = map %x {expression = exp(x0)}
  %l = loop %a {body = graph @outer(%turn: i64[], %h: f32[64]) -> ("h": f32[64]) {
    %s = sort %h {axis = 0, count = 64, descending = true}
    %i = loop %s {body = graph @inner(%turn: i64[], %h: f32[64]) -> ("h": f32[64]) {
      %m = map %h {expression = tanh(x0)}
      return %m
    }, trip_count = 5, carried = 1, scanned = [], stacked = [], conditional = false}
    return %i
  }, trip_count = 3, carried = 1, scanned = [], stacked = [], conditional = false}
  %y = softmax %l {axis = 0, logarithm = false}
  return %y
}
"#;

#[test]
fn kernels_inside_of_loops_are_measured_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("loops.mlc"), LOOPS).unwrap();
    let bench = ["bench", "loops.mlc", "--runs", "3", "--per-kernel", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    let output = command.args(bench).current_dir(folder.path()).output().unwrap();
    let times: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = times["kernels"].as_array().unwrap();
    let operators: Vec<&str> = kernels.iter().map(|kernel| kernel["operator"].as_str().unwrap()).collect();
    assert_eq!(operators, ["map", "loop", "sort", "loop", "map", "softmax"]);
    // 960 hyperbolic tangents aren't done in no time.
    assert!(kernels[4]["min_ns"].as_u64().unwrap() > 0, "{times}");
}

#[test]
fn measured_schedules_are_taken_and_what_no_kernel_has_is_left_aside() {
    let folder = tempfile::tempdir().unwrap();
    let tune = ["tune", "net.mlc", "--target", "generic", "--budget", "1s", "-o", "tuning.json"];
    let (status, text) = mlc(folder.path(), &tune);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("wrote tuning.json: other schedules for "), "{text}");
    let path = folder.path().join("tuning.json");
    let compile = ["compile", "net.mlc", "--tuning", "tuning.json", "--explain", "-o", "net.tar"];
    assert_eq!(mlc(folder.path(), &compile).0, 0);
    // A schedule that is never taken by itself, by the key of the kernel, which doesn't depend on names.
    let description = |tar: &str| {
        let folder = folder.path();
        let arguments = ["compile", "net.mlc", "--emit", "dir", "-o", tar, "--tuning", "tuning.json"];
        let (status, text) = mlc(folder, &arguments);
        assert_eq!(status, 0, "{text}");
        std::fs::read_to_string(folder.join(tar).join("codegen/host/src/default_lib1.c")).unwrap()
    };
    std::fs::write(&path, r#"{"tuning_version": 1, "target": "generic", "schedules": {"nothing": "tiles"}}"#).unwrap();
    let usual = description("usual");
    let (_, listing) = mlc(folder.path(), &["inspect", "net.mlc", "--schedules"]);
    let (all, taken) = listed(&listing, "conv");
    let other = all.iter().find(|name| **name != taken).unwrap();
    let key = key_of(&listing, "conv");
    let tuning = format!(r#"{{"tuning_version": 1, "target": "generic", "schedules": {{"{key}": "{other}"}}}}"#);
    std::fs::write(&path, tuning).unwrap();
    let (status, explained) = mlc(folder.path(), &compile);
    assert_eq!((status, &listed(&explained, "conv").1), (0, other), "{explained}");
    assert!(explained.contains("measured to be the fastest"), "{explained}");
    assert!(description("tuned") != usual && description("again") == description("tuned"));
    std::fs::write(&path, "{}").unwrap();
    let (status, text) = mlc(folder.path(), &compile);
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("MLC0004") && text.contains("no file of measured schedules"), "{text}");
}

/// The kind of a node's kernel in a listing.
fn key_of(listing: &str, node: &str) -> String {
    let line = listing.lines().find(|line| line.starts_with(&format!("{node} ("))).unwrap();
    line.split("kind '").nth(1).unwrap().split('\'').next().unwrap().to_owned()
}
