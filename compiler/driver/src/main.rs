//! The command `mlc`.

use std::process::ExitCode;

fn main() -> ExitCode {
    mlc::cli::main(mlc_commit::commit!())
}
