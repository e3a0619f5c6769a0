//! What TensorFlow Lite Micro takes for the int8 networks of MLPerf Tiny, and what ours take beside it.
//!
//! It is of August 2026, in its own release build, with the kernels of CMSIS-NN unless said else.

use crate::case::Case;
use crate::compile::load;
use crate::firmware::target;
use crate::paths;
use mlc::pipeline::{self, CompileOptions};
use mlc_ir::Diagnostic;
use std::fmt::Write as _;

/// TensorFlow Lite Micro on a network.
#[derive(Debug, Clone, Copy)]
pub struct Micro {
    /// Name of the case.
    pub case: &'static str,
    /// Thousands of executed instructions on a Cortex-M4.
    pub m4_instructions: u64,
    /// The same with the reference kernels.
    pub reference_instructions: u64,
    /// Thousands of executed instructions on a Cortex-M55.
    pub m55_instructions: u64,
    /// Bytes of code on a Cortex-M4, with int8 kernels picked by hand.
    pub code_bytes: u64,
    /// Bytes of static memory on a Cortex-M4.
    pub ram_bytes: u64,
    /// Bytes of the arena on a Cortex-M4 and on a Cortex-M55; inputs and outputs are in it.
    pub arena_bytes: [u64; 2],
}

impl Micro {
    const fn new(
        case: &'static str,
        instructions: [u64; 3],
        code_bytes: u64,
        ram_bytes: u64,
        arena: [u64; 2],
    ) -> Micro {
        let [m4_instructions, reference_instructions, m55_instructions] = instructions;
        let arena_bytes = arena;
        Micro { case, m4_instructions, reference_instructions, m55_instructions, code_bytes, ram_bytes, arena_bytes }
    }

    /// The network's name.
    pub fn name(&self) -> &'static str {
        self.case.trim_end_matches("_int8")
    }
}

/// The networks.
pub const NETWORKS: [Micro; 5] = [
    Micro::new("kws01_int8", [7_664, 43_030, 1_814], 51_216, 23_344, [22_832, 27_360]),
    Micro::new("ic01_int8", [31_200, 107_300, 4_915], 48_936, 55_520, [55_008, 55_040]),
    Micro::new("vww01_int8", [24_080, 100_150, 6_561], 51_216, 101_232, [100_720, 100_784]),
    Micro::new("ad01_int8", [583, 1_952, 150], 26_440, 3_352, [3_024, 9_712]),
    Micro::new("sww01_int8", [2_228, 8_285, 409], 48_664, 17_088, [16_608, 19_968]),
];

/// The machines of [`Micro::arena_bytes`].
const MACHINES: [&str; 2] = ["cortex-m4", "cortex-m55"];

/// The arena of a network on a machine.
#[derive(Debug, Clone)]
pub struct Arena {
    /// The network and the machine.
    pub what: String,
    /// Bytes of the arena.
    pub arena_bytes: usize,
    /// Bytes of inputs and outputs.
    pub io_bytes: usize,
    /// Bytes of TensorFlow Lite Micro's arena, which has inputs and outputs in it.
    pub micro_bytes: u64,
}

/// The case of a network; `None` where the collection isn't beside the repository.
pub fn find(network: &Micro) -> Option<Case> {
    let folder = paths::conformance()?.join("tflite").join(network.case);
    folder.is_dir().then(|| Case::read(&folder).ok()).flatten()
}

/// The arenas of a network on all machines.
///
/// # Errors
/// What compiling it found.
pub fn arenas(network: &Micro, case: &Case) -> Result<Vec<Arena>, String> {
    let fault = |findings: Vec<Diagnostic>| format!("{}: {findings:?}", case.name);
    let loaded = load(case).map_err(fault)?;
    let one = |(machine, micro_bytes): (&&str, u64)| {
        let target = target(machine).ok_or_else(|| format!("no such target: {machine}"))?;
        let options = CompileOptions { target, ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).map_err(fault)?;
        let (arena_bytes, io_bytes) = (compiled.module.workspace_bytes(), compiled.module.io_bytes());
        Ok(Arena { what: format!("{}, {machine}", network.name()), arena_bytes, io_bytes, micro_bytes })
    };
    MACHINES.iter().zip(network.arena_bytes).map(one).collect()
}

/// The section of `docs/footprint.md` on arenas.
pub fn section(arenas: &[Arena]) -> String {
    let mut text = "\n## Arenas beside TensorFlow Lite Micro\n\n\
        The int8 networks of MLPerf Tiny. TensorFlow Lite Micro, of August 2026 and with the kernels of CMSIS-NN, has inputs and outputs in its\n\
        arena, so ours is to be taken with them. [integers.md](integers.md) has instructions, code and static memory of the same networks.\n\n\
        | network | arena | inputs and outputs | together | TensorFlow Lite Micro |\n|---|---:|---:|---:|---:|\n"
        .to_owned();
    for Arena { what, arena_bytes, io_bytes, micro_bytes } in arenas {
        // No formatting of a String fails.
        let _ = writeln!(text, "| {what} | {arena_bytes} | {io_bytes} | {} | {micro_bytes} |", arena_bytes + io_bytes);
    }
    text
}
