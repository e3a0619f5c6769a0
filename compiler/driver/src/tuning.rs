//! Files of measured schedules, which `mlc tune` writes and `mlc compile --tuning` reads.

use crate::files;
use mlc_ir::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Schedules that were measured on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// The target that they were measured for.
    pub target: String,
    /// The schedule of each kind of kernels, by [`Choice::key`](mlc_codegen::Choice).
    pub schedules: BTreeMap<String, String>,
}

/// The version of the files.
const VERSION: u64 = 1;

/// What is in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    tuning_version: u64,
    target: String,
    schedules: BTreeMap<String, String>,
}

impl Tuning {
    /// The text of a file.
    pub fn to_json(&self) -> String {
        let Tuning { target, schedules } = self.clone();
        let contents = Contents { tuning_version: VERSION, target, schedules };
        serde_json::to_string_pretty(&contents).unwrap_or_default() + "\n"
    }

    /// Reads a file.
    ///
    /// # Errors
    /// `MLC0004` when it isn't such a file, is of another version, or is for another target than this one; and those of the file system.
    pub fn read(path: &Path, target: &str) -> Result<Tuning, Diagnostic> {
        let bytes = files::read(path)?;
        Tuning::parse(&bytes, target).map_err(|error| error.in_file(&path.display().to_string()))
    }

    fn parse(bytes: &[u8], wanted: &str) -> Result<Tuning, Diagnostic> {
        let refused = |message: String| Diagnostic::option_mismatch(message);
        let contents: Contents = serde_json::from_slice(bytes).map_err(|error| {
            refused(format!("this is no file of measured schedules: {error}")).with_help("'mlc tune' writes such files")
        })?;
        let Contents { tuning_version, target, schedules } = contents;
        if tuning_version != VERSION {
            let message = format!("the measured schedules are of version {tuning_version}, this mlc reads {VERSION}");
            return Err(refused(message).with_help("write the file anew with 'mlc tune'"));
        }
        if target != wanted {
            let message = format!("the schedules were measured for '{target}', and the code is for '{wanted}'");
            return Err(refused(message).with_help(format!("give '--target {target}', or leave '--tuning' out")));
        }
        Ok(Tuning { target, schedules })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_back() {
        let schedules = BTreeMap::from([("matmul 1".to_owned(), "tiles:vectors=2".to_owned())]);
        let tuning = Tuning { target: "host".into(), schedules };
        assert_eq!(Tuning::parse(tuning.to_json().as_bytes(), "host").unwrap(), tuning);
    }

    #[test]
    fn damaged_files_and_those_for_other_machines_are_refused() {
        for (text, message) in [
            ("", "no file of measured schedules"),
            ("[]", "no file of measured schedules"),
            (r#"{"tuning_version": 1, "target": "host"}"#, "missing field `schedules`"),
            (r#"{"tuning_version": 1, "target": "host", "schedules": {"a": 1}}"#, "expected a string"),
            (r#"{"tuning_version": 1, "target": "host", "schedules": {}, "x": 1}"#, "unknown field `x`"),
            (r#"{"tuning_version": 9, "target": "host", "schedules": {}}"#, "version 9"),
            (r#"{"tuning_version": 1, "target": "generic", "schedules": {}}"#, "measured for 'generic'"),
        ] {
            let error = Tuning::parse(text.as_bytes(), "host").unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }
}
