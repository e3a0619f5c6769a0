//! What a firmware project relies on in an archive beyond the numbers: that it is reproducible, and that its own Makefile
//! builds it with strict warnings.

use mlc_codegen::Target;
use mlc_tests::case::Case;
use mlc_tests::compile::{Compiled, compile};
use mlc_tests::paths;
use mlc_tests::program::{STRICT, Unpacked};
use std::process::Command;

fn compiled(name: &str) -> Compiled {
    let case = Case::read(&paths::data().join("pnnx").join(name)).unwrap();
    compile(&case, &Target::generic()).unwrap_or_else(|findings| panic!("{findings:?}"))
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    for name in ["net_lenet_relu_maxpool", "net_gru_classifier", "dyn_attention_seq"] {
        assert!(compiled(name).archive == compiled(name).archive, "{name}");
    }
}

#[test]
fn its_own_makefile_builds_it_without_a_warning() {
    let unpacked = Unpacked::new(&compiled("net_lenet_relu_maxpool").archive).unwrap();
    let make = Command::new("make")
        .arg("example")
        .arg(format!("CFLAGS=-O1 {}", STRICT.join(" ")))
        .current_dir(unpacked.path())
        .output()
        .unwrap();
    assert!(make.status.success(), "{}", String::from_utf8_lossy(&make.stderr));
    let run = Command::new(unpacked.path().join("build/example")).output().unwrap();
    assert!(run.status.success());
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(text.starts_with("body.10: 0."), "the probabilities of ten digits: {text}");
}
