//! ARK models by the command: what is said of a file, and other forms of it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::process::Command;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/ark");

/// Whether the command succeeds, and what it says and prints.
fn mlc(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_mlc")).args(arguments).current_dir(folder).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

#[test]
fn models_are_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    for case in ["math_exp", "seed_matmul_nt", "v2024a_softmax_composite__compressed"] {
        let model = format!("{DATA}/{case}/model.json");
        for (arguments, end) in [(&["a.json"][..], "}\n"), (&["--compact", "b.json"], "]}")] {
            let (success, said) = mlc(folder, &[&["convert", &model], arguments].concat());
            assert!(success && said.contains("wrote"), "{said}");
            assert!(read(arguments.last().unwrap()).ends_with(end), "{case}");
        }
        assert!(mlc(folder, &["convert", "b.json", "c.json"]).0);
        assert_eq!(read("a.json"), read("c.json"), "{case}");
        assert!(!read("b.json").contains([' ', '\n']), "{case}");
    }
    assert_eq!(std::fs::read_to_string(format!("{DATA}/math_exp/model.json")).unwrap(), {
        assert!(mlc(folder, &["convert", &format!("{DATA}/math_exp/model.json"), "d.json"]).0);
        read("d.json")
    });
    std::fs::write(folder.join("x.mlc"), "mlc 1\n").unwrap();
    let (success, said) = mlc(folder, &["convert", "x.mlc", "y.json"]);
    assert!(!success && said.contains("can't be written as ARK"), "{said}");
}

#[test]
fn files_are_inspected() {
    let (success, said) = mlc(Path::new(DATA), &["inspect", "seed_matmul_nt/model.json"]);
    assert!(success, "{said}");
    for line in ["format:  ARK", "dialect: seed", "rank:    0 of 1", "buffers: 3 (284 bytes here)", "      1  Matmul"] {
        assert!(said.lines().any(|found| found == line), "{line}: {said}");
    }
    let (_, said) = mlc(Path::new(DATA), &["inspect", "--json", "seed_matmul_nt/model.json"]);
    assert!(said.contains("\"dialect\": \"seed\""), "{said}");
}
