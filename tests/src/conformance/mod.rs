//! The conformance runner: every case of a folder goes from the file to an archive, through the C compiler, to numbers.
//!
//! A case *passes*, is *refused* (the compiler says that it can't, with a location), or is *wrong*: a crash, code that
//! doesn't compile, a wrong number, an accepted file that should have been refused. Wrong is always a failure. The few cases
//! whose file and golden outputs contradict each other are *excused*, by name.

mod blame;
mod judge;
mod ranks;
mod table;
mod tiers;

use judge::judge_together;
pub use judge::{Status, judge};
pub use table::{failures, head, section, summary, table, timings};
pub use tiers::demands;

use crate::case::Case;
use crate::mode::Mode;
use crate::paths;
use mlc_ir::parallel;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folders of the conformance collection that the compiler is judged by, and [`NETWORKS_AS_ONNX`].
pub const FORMATS: [&str; 14] = [
    "pnnx",
    "pnnx-malformed",
    "onnx",
    "onnx-malformed",
    NETWORKS_AS_ONNX,
    "ark",
    ARK_RANKS,
    "ark-malformed",
    "lightnet",
    "tennis",
    "tennis-malformed",
    "tflite",
    "tflite-malformed",
    "tflite-ops",
];

/// The cases of the folder `pnnx` that also hold an ONNX file of the same network, which is judged by the same numbers.
pub const NETWORKS_AS_ONNX: &str = "pnnx-nets-as-onnx";

/// The cases of the folder `ark` that are models of several ranks.
pub const ARK_RANKS: &str = "ark-ranks";

/// A case and what became of it.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Name of the case.
    pub case: String,
    /// Format of the model.
    pub format: String,
    /// Operators in the model.
    pub operators: Vec<String>,
    /// Result.
    pub status: Status,
    /// How long it took.
    pub time: Duration,
}

/// The folder of a collection that holds a format's cases.
pub fn cases_folder(collection: &Path, format: &str) -> PathBuf {
    collection.join(match format {
        NETWORKS_AS_ONNX => "pnnx",
        ARK_RANKS => "ark",
        _ => format,
    })
}

/// The cases of a format whose names contain `filter`.
fn cases(collection: &Path, format: &str, filter: &str) -> Result<Vec<Case>, String> {
    let folder = cases_folder(collection, format);
    let folders = paths::subfolders(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut cases: Vec<Case> = Case::listed(&folder)?;
    cases.retain(|case| case.model.to_string_lossy().contains(filter));
    // A model of several ranks is a folder for each.
    let folders = folders.iter().filter(|folder| !folder.join("rank0").is_dir());
    for folder in folders.filter(|folder| folder.to_string_lossy().contains(filter)) {
        let case = Case::read(folder)?;
        if format == NETWORKS_AS_ONNX {
            cases.extend(case.as_onnx());
        } else {
            cases.extend(case.as_text());
            cases.push(case);
        }
    }
    Ok(cases)
}

/// Cases whose code becomes one program at most, where it isn't the archives that are looked at but the code.
const TOGETHER: usize = 48;

/// Runs every case of a format whose name contains `filter`, on `threads` threads; sorted by name. `together`, many of them become one
/// program.
///
/// # Errors
/// When the format's folder in the collection, or a case in it, can't be read.
pub fn run(
    collection: &Path,
    format: &str,
    mode: &Mode,
    filter: &str,
    threads: usize,
    together: bool,
) -> Result<Vec<Outcome>, String> {
    if format == ARK_RANKS {
        return run_ranks(&cases_folder(collection, format), mode, filter, threads);
    }
    let cases = cases(collection, format, filter)?;
    // All threads have several batches, so that they end at about the same time.
    let together = (cases.len() / (6 * threads.max(1))).clamp(1, if together { TOGETHER } else { 1 });
    let batches: Vec<&[Case]> = cases.chunks(together).collect();
    let judged = parallel::map(&batches, threads, |batch| {
        let start = Instant::now();
        let statuses = match batch {
            [case] => vec![judge(case, mode)],
            several => judge_together(several, mode),
        };
        (statuses, start.elapsed() / batch.len() as u32)
    });
    let outcome = |case: &Case, (status, time)| Outcome {
        case: case.name.clone(),
        format: case.format.clone(),
        operators: case.operators.clone(),
        status,
        time,
    };
    let statuses =
        judged.into_iter().flat_map(|(statuses, time)| statuses.into_iter().map(move |status| (status, time)));
    let mut outcomes: Vec<Outcome> = cases.iter().zip(statuses).map(|(case, judged)| outcome(case, judged)).collect();
    outcomes.sort_by(|a, b| a.case.cmp(&b.case));
    Ok(outcomes)
}

/// As [`run`], for models of several ranks.
fn run_ranks(folder: &Path, mode: &Mode, filter: &str, threads: usize) -> Result<Vec<Outcome>, String> {
    let (cases, transports) = (ranks::cases(folder, filter)?, ranks::transports(mode));
    let mut outcomes = parallel::map(&cases, threads, |case| {
        let start = Instant::now();
        let status = ranks::judge(case, mode, &transports);
        let operators: BTreeSet<&String> = case.ranks.iter().flat_map(|rank| &rank.operators).collect();
        Outcome {
            case: case.name.clone(),
            format: ARK_RANKS.to_owned(),
            operators: operators.into_iter().cloned().collect(),
            status,
            time: start.elapsed(),
        }
    });
    outcomes.sort_by(|a, b| a.case.cmp(&b.case));
    Ok(outcomes)
}
