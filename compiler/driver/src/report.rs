//! Reports of compiled models and of archives, and the measurements in them.

mod archive;

pub use archive::report_archive;

use crate::bundle::Bundle;
use crate::inputs;
use crate::pipeline::{Compiled, Loaded};
use crate::toolchain::Toolchain;
use mlc_ir::{Diagnostic, Tensor};
use mlc_report::{Measured, Report, Subject};

/// Gathers what is known of a model that was compiled with [`explain`](crate::pipeline::CompileOptions::explain).
pub fn report(name: &str, loaded: &Loaded, compiled: &Compiled, measured: Option<&Measured>) -> Report {
    Report::new(&Subject {
        name,
        format: &loaded.format.to_string(),
        imported: &loaded.graph,
        optimized: &compiled.graph,
        module: &compiled.module,
        rules: &compiled.report,
        target: compiled.target(),
        measured,
    })
}

/// Builds an archive of mlc and measures each of its kernels on random inputs: the least time of several runs in nanoseconds, or executed
/// instructions on an emulated board.
///
/// # Errors
/// When the code has no hooks, can't be built, or doesn't run.
pub fn measure(bundle: &Bundle, toolchain: &Toolchain, seed: u64) -> Result<Measured, Diagnostic> {
    let program = toolchain.build_to_profile(bundle)?;
    let ports: Vec<inputs::InputPort<'_>> = program.inputs.iter().map(|port| (port.name.as_str(), &port.ty)).collect();
    let tensors: Vec<Tensor> = inputs::random(seed, &ports);
    let kernels = program.bench_kernels(&tensors, 0)?;
    let (unit, machine) = match toolchain.board {
        Some(board) => ("instructions", board.target.to_owned()),
        None => ("ns", "this machine".to_owned()),
    };
    Ok(Measured { unit, machine, kernels })
}
