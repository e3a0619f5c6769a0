//! Cases of models of several ranks: all of them compile, fit each other, and compute the golden outputs together.

use super::judge::Status;
use crate::case::Case;
use crate::compare::compare;
use crate::compile::{compile_graph, load};
use crate::mode::Mode;
use crate::program::SANITIZERS;
use crate::{paths, ranks};
use bytes::Bytes;
use mlc::bundle::Bundle;
use mlc::toolchain::{RanksRun, Toolchain, Transport};
use mlc_ir::ranks::schedule;
use mlc_ir::{Diagnostic, Graph, Tensor};
use std::path::Path;
use std::time::Duration;

/// How long a rank waits for another one; sanitized code on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A case: its name and its ranks.
pub(super) struct RanksCase {
    pub name: String,
    pub ranks: Vec<Case>,
}

/// The cases of several ranks in a folder whose name contains `filter`.
///
/// # Errors
/// When the folder, or a case in it, can't be read.
pub(super) fn cases(folder: &Path, filter: &str) -> Result<Vec<RanksCase>, String> {
    let folders = paths::subfolders(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let folders = folders.iter().filter(|folder| folder.join("rank0").is_dir());
    folders.filter(|folder| folder.to_string_lossy().contains(filter)).map(|folder| read(folder)).collect()
}

/// How ranks run: as threads, and as processes where an MPI is installed.
pub(super) fn transports(mode: &Mode) -> Vec<Transport> {
    // What is built for MPI is linked by `mpicc`, whose compiler may not know the sanitizers' libraries.
    let sanitized = mode.build.is_sanitized();
    if !sanitized && ranks::has_mpi() { vec![Transport::Threads, Transport::Mpi] } else { vec![Transport::Threads] }
}

fn read(folder: &Path) -> Result<RanksCase, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folders = (0..).map(|rank| folder.join(format!("rank{rank}"))).take_while(|folder| folder.is_dir());
    let ranks = folders.map(|rank| Case::read_described(&rank, &folder.join("case.json")));
    Ok(RanksCase { name, ranks: ranks.collect::<Result<_, String>>()? })
}

/// Takes a case the whole way and says what became of it.
pub(super) fn judge(case: &RanksCase, mode: &Mode, transports: &[Transport]) -> Status {
    let mut graphs = Vec::new();
    for rank in &case.ranks {
        match load(rank) {
            Ok(loaded) => graphs.push(loaded.graph),
            Err(findings) => return Status::Refused(list(&findings)),
        }
    }
    if let Err(misfits) = schedule(&graphs.iter().collect::<Vec<_>>()) {
        return Status::Wrong(list(&misfits.into_iter().map(|misfit| misfit.fault).collect::<Vec<_>>()));
    }
    match execute(case, &graphs, mode, transports) {
        Ok(()) => Status::Passed,
        Err(message) => Status::Wrong(message),
    }
}

fn execute(case: &RanksCase, graphs: &[Graph], mode: &Mode, transports: &[Transport]) -> Result<(), String> {
    let mut bundles = Vec::new();
    for (rank, graph) in graphs.iter().enumerate() {
        let compiled = compile_graph(graph, &format!("m_rank{rank}"), &mode.target).map_err(|faults| list(&faults))?;
        bundles.push(Bundle::parse(&Bytes::from(compiled.archive)).map_err(|fault| fault.to_string())?);
    }
    let inputs = case.ranks.iter().map(|rank| rank.inputs.iter().map(|input| input.value.clone()).collect());
    let inputs: Vec<Vec<Tensor>> = inputs.collect();
    let sanitizers: &[&str] = if mode.build.is_sanitized() { &SANITIZERS } else { &[] };
    let compiler =
        [mode.build.compiler.as_str()].into_iter().chain(sanitizers.iter().copied()).map(String::from).collect();
    let toolchain = Toolchain { compiler, ..Toolchain::default() };
    for &transport in transports {
        let by = |fault: Diagnostic| format!("{transport:?}: {fault}");
        let program = toolchain.build_ranks(&bundles, transport, false).map_err(by)?;
        let (outputs, _) = program.run(&inputs, RanksRun { runs: 2, patience: PATIENCE }).map_err(by)?;
        for (number, (rank, outputs)) in case.ranks.iter().zip(outputs).enumerate() {
            if outputs.len() != rank.outputs.len() {
                return Err(format!("rank {number}: {} outputs instead of {}", outputs.len(), rank.outputs.len()));
            }
            for (output, golden) in outputs.iter().zip(&rank.outputs) {
                compare(output, &golden.value, rank.tolerance)
                    .map_err(|error| format!("{transport:?}, rank {number}, output {}: {error}", golden.name))?;
            }
        }
    }
    Ok(())
}

fn list(findings: &[Diagnostic]) -> String {
    let errors: Vec<String> = findings.iter().filter(|finding| finding.is_error()).map(ToString::to_string).collect();
    errors.join("; ")
}
