//! The functions on whole tensors that descriptions may call: as C, under sanitizers.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use mlc_descriptions::Library;
use std::path::Path;
use std::process::Command;

/// A description whose operator calls some of them.
const DESCRIPTION: &str = r#"{"optype": "top_cpu", "author": "a", "arch": "cpu",
    "tensors_in": [{"arg_name": "src", "mtype": "LN_MEM_CPU", "ndim": 2}],
    "tensors_out": [
        {"arg_name": "dst", "mtype": "LN_MEM_CPU", "ndim": 2, "dims": ["src->dims[0]", 1], "dtype": "src->dtype"},
        {"arg_name": "arg", "mtype": "LN_MEM_CPU", "ndim": 2, "dims": ["src->dims[0]", 1], "dtype": "TL_INT32"}],
    "params": [], "run": "tl_tensor_maxreduce(src, dst, arg, 1);"}"#;

fn is_there(command: &str) -> bool {
    Command::new(command).arg("--version").output().is_ok()
}

#[test]
fn c_compiler_runs_functions_on_whole_tensors() {
    let library = Library::read(&[("top", DESCRIPTION.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let description = library.get("top_cpu").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Vec::new();
    for file in description.definition().unwrap().into_iter().chain(description.support()) {
        std::fs::write(folder.path().join(&*file.name), file.text.as_bytes()).unwrap();
        sources.extend(file.name.ends_with(".c").then(|| file.name.to_string()));
    }
    assert_eq!(sources, ["top_cpu.c", "mlc_operator.c", "mlc_tensors.c"]);
    let main = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tensors.c");
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command.args([
        "-std=c99",
        "-pedantic",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Werror",
        "-fsanitize=address,undefined",
    ]);
    command.arg("-I.").args(&sources).arg(main).args(["-o", "program", "-lm"]).current_dir(folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(folder.path().join("program")).output().unwrap();
    assert!(output.status.success(), "line {:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stderr));
    if is_there("arm-none-eabi-gcc") {
        let mut command = Command::new("arm-none-eabi-gcc");
        command.args([
            "--specs=picolibc.specs",
            "-mcpu=cortex-m4",
            "-mthumb",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-c",
        ]);
        let output = command.args(&sources).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn operators_that_call_none_of_them_do_without() {
    let text = DESCRIPTION.replace("tl_tensor_maxreduce(src, dst, arg, 1);", "(void)0;");
    let library = Library::read(&[("top", text.as_bytes())]).unwrap_or_else(|errors| panic!("{errors:?}"));
    let names: Vec<String> = library.get("top_cpu").unwrap().support().map(|file| file.name.to_string()).collect();
    assert_eq!(names, ["mlc_operator.h", "mlc_operator.c"]);
}
