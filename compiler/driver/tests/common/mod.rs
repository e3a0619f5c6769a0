//! The command, as tests run it.

use std::path::Path;
use std::process::{Command, Output};

/// The command in a folder, on its own of what variables could tell it.
pub fn output(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.args(arguments).current_dir(folder);
    for variable in ["SOURCE_DATE_EPOCH", "CC", "RUST_BACKTRACE"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

/// Its status, and what it says.
pub fn said(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = output(folder, arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// What the command says, when it ends with this status.
pub fn mlc(folder: &Path, status: i32, arguments: &[&str]) -> String {
    let (found, said) = said(folder, arguments);
    assert_eq!(found, status, "{arguments:?}: {said}");
    said
}
