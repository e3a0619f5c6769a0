//! Schedules as users see them: listed, explained, and asked for.
#![allow(clippy::unwrap_used, missing_docs)]

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
    let output = Command::new(env!("CARGO_BIN_EXE_mlc")).args(arguments).current_dir(folder).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
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
    assert!(all.iter().all(|schedule| schedule.starts_with("tiles:vectors=")), "{inspected}");
    for fact in [": time ", " of code", " of constants"] {
        assert!(inspected.contains(fact), "{inspected}");
    }
    let (status, explained) = mlc(folder.path(), &["compile", "net.mlc", "--explain", "--target", "cortex-m4"]);
    assert_eq!(status, 0, "{explained}");
    assert_eq!(listed(&explained, "conv"), (all, taken));
    assert!(!listed(&explained, "y").0.is_empty(), "{explained}");
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
