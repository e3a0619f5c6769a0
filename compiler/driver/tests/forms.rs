//! The forms of an archive that `mlc compile` can write: `mlc run` gets the same numbers from all of them.

use crate::common;
use std::path::Path;
use std::process::Command;

const CASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/pnnx/net_lenet_relu_maxpool");

fn succeed(folder: &Path, arguments: &[&str]) {
    let output = common::output(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn compile(folder: &Path, options: &[&str]) -> Vec<u8> {
    let model = format!("{CASE}/model.pnnx.param");
    let arguments: Vec<&str> = ["compile", &model, "-o", "model.tar"].iter().chain(options).copied().collect();
    succeed(folder, &arguments);
    std::fs::read(folder.join("model.tar")).unwrap()
}

#[test]
fn c_compiler_gets_the_same_numbers_from_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let input = format!("{CASE}/input_0.npy");
    let mut expected = None;
    for options in [
        &[][..],
        &["--mlf-version", "5"],
        &["--mlf-version", "6", "--executor", "aot,graph"],
        &["--executor", "graph"],
        &["--executor", "graph", "--mlf-version", "5"],
        &["--interface-api", "packed"],
        &["--interface-api", "packed", "--unpacked-api"],
        &["--workspace-pools", "external"],
        &["--weights-as", "incbin"],
        &["--weights-as", "binary", "--workspace-pools", "external"],
        &["--emit-lib"],
    ] {
        let archive = compile(folder, options);
        assert!(archive == compile(folder, options), "{options:?} isn't reproducible");
        succeed(folder, &["run", "model.tar", "--input", &input, "--output-dir", "out"]);
        let output = std::fs::read(folder.join("out/body.10.npy")).unwrap();
        assert!(*expected.get_or_insert(output.clone()) == output, "{options:?}");
    }
}

#[test]
fn c_compiler_links_object_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let input = format!("{CASE}/input_0.npy");
    let mut expected = None;
    for options in [
        &["--target", "host"][..],
        &["--target", "host", "--weights-as", "object"],
        &["--target", "host", "--emit-lib", "--weights-as", "object"],
    ] {
        compile(folder, options);
        succeed(folder, &["run", "model.tar", "--input", &input, "--output-dir", "out"]);
        let output = std::fs::read(folder.join("out/body.10.npy")).unwrap();
        assert!(*expected.get_or_insert(output.clone()) == output, "{options:?}");
    }
}

#[test]
fn c_compiler_runs_each_of_several_models() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (lenet, input) = (format!("{CASE}/model.pnnx.param"), format!("{CASE}/input_0.npy"));
    std::fs::write(
        folder.join("twice.mlc"),
        "mlc 1\ngraph @twice(%x: f32[2]) -> (\"y\": f32[2]) {\n  %y = binary %x, %x {function = add}\n  return %y\n}\n",
    )
    .unwrap();
    succeed(
        folder,
        &["compile", "twice.mlc", &lenet, "--model-name", "twice", "--model-name", "lenet", "-o", "both.tar"],
    );
    succeed(folder, &["run", "both.tar", "--model-name", "lenet", "--input", &input, "--output-dir", "out"]);
    assert!(folder.join("out/body.10.npy").is_file());
    succeed(folder, &["run", "both.tar", "--model-name", "twice", "--output-dir", "out"]);
    assert!(folder.join("out/y.npy").is_file());
    let refused = common::output(folder, &["run", "both.tar", "--model-name", "third"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("twice"), "{refused:?}");
}

#[test]
fn options_that_contradict_each_other_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let model = format!("{CASE}/model.pnnx.param");
    for (options, message) in [
        (&["--executor", "graph", "--workspace-pools", "external"][..], "only the C interface takes memory"),
        (&["--executor", "graph", "--weights-as", "incbin"], "parameters file"),
        (&["--interface-api", "packed", "--weights-as", "binary"], "only the C interface takes memory"),
        (&["--unpacked-api", "false"], "by plain pointers"),
        (&["--weights-as", "object"], "no object files for the target 'generic'"),
        (&["--model-name", "a", "--model-name", "b"], "2 names are given for 1 models"),
        (&[model.as_str(), "--mlf-version", "6", "--model-name", "a", "--model-name", "b"], "a place for one only"),
    ] {
        let arguments: Vec<&str> = ["compile", &model, "-o", "x.tar"].iter().chain(options).copied().collect();
        let output = common::output(folder.path(), &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(message), "{options:?}: {said}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{options:?}: {:?}", output.status);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{options:?}");
    }
}

/// Programs that are only run get their weights as an object file where mlc knows the machine's: as text, hundreds of megabytes
/// would go through the C compiler for a large network.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn c_compiler_reads_no_weights_of_programs_that_are_run() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let compiler = folder.path().join("compiler");
    let script = "#!/bin/sh\n[ -z \"$(find . -name '*.c' -size +300k)\" ] || { echo 'long source' >&2; exit 1; }\nexec cc \"$@\"\n";
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
        command.args(arguments).args(["--input", &format!("{CASE}/input_0.npy")]).current_dir(folder.path());
        let output = command.env("CC", &compiler).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let model = format!("{CASE}/model.pnnx.param");
    for arguments in [&["run", &model, "--output-dir", "out"][..], &["verify", &model]] {
        let (success, said) = run(arguments);
        assert!(success, "{arguments:?}: {said}");
    }
    // The same network as text, which shows that the script tells them apart.
    compile(folder.path(), &["--target", "host"]);
    let (success, said) = run(&["run", "model.tar"]);
    assert!(!success && said.contains("long source"), "{said}");
}
