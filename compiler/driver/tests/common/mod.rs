//! The command, as tests run it.

use std::path::Path;
use std::process::Command;

/// What the command says, when it ends with this status.
pub fn mlc(folder: &Path, status: i32, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.args(arguments).current_dir(folder).env_remove("RUST_BACKTRACE");
    let output = command.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    said
}
