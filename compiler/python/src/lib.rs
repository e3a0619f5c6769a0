//! mlc within a Python process: what the package `mlc` calls.
//!
//! The package's functions are commands of [`mlc::cli`], whose options they take by name; only what no command does is a function
//! of its own here. The global interpreter lock is free while mlc works.

#[pyo3::pymodule]
mod _mlc {
    use bytes::Bytes;
    use mlc::bundle::Bundle;
    use mlc::cli::{self, Answer, Finding};
    use mlc::render::{self, Sources};
    use mlc::toolchain::Toolchain;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;
    use std::ffi::OsString;
    use std::path::PathBuf;

    /// An error or a warning as JSON, and as text for people.
    type Told = (String, String);

    fn told(finding: &Finding) -> Told {
        (render::json(&finding.diagnostic), finding.text.clone())
    }

    /// Runs a command within this process: gives exit status, output, findings and remarks.
    #[pyfunction]
    fn answer(py: Python<'_>, arguments: Vec<OsString>) -> (i32, Bound<'_, PyBytes>, Vec<Told>, String) {
        let Answer { status, output, findings, remarks } = py.detach(|| cli::answer(arguments));
        (status, PyBytes::new(py, &output), findings.iter().map(told).collect(), remarks)
    }

    /// Runs the command line, the program's name first, and prints; gives the exit status.
    #[pyfunction]
    fn run_process(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
        py.detach(|| cli::run_process(arguments, mlc_commit::commit!()))
    }

    /// Builds a model of an archive as a shared library in a folder, by the compiler that `CC` names or the system's; gives its path,
    /// or what stands in the way.
    #[pyfunction]
    fn build_library(
        py: Python<'_>,
        archive: &[u8],
        model_name: &str,
        folder: PathBuf,
        compiler: Option<&str>,
    ) -> (Option<PathBuf>, Vec<Told>) {
        let archive = Bytes::copy_from_slice(archive);
        let built = py.detach(|| {
            let bundle = Bundle::parse_model(&archive, model_name)?;
            Toolchain::from_variable(compiler).build_library(&bundle, &folder)
        });
        match built {
            Ok(path) => (Some(path), Vec::new()),
            Err(diagnostic) => {
                let text = render::human(&diagnostic, &Sources::new(), false);
                (None, vec![(render::json(&diagnostic), text)])
            }
        }
    }
}
