//! [`Watch`]: what a program tells of its kernels beside the outputs.

use crate::bundle::Bundle;
use crate::kernel::KernelResult;
use mlc_codegen::names::profile_macro;
use std::fmt::Write;

/// What a program tells of its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing.
    Nothing,
    /// When each begins and ends.
    Times,
    /// What each has computed.
    Results,
}

impl Watch {
    /// Options of the C compiler for a model's kernels.
    pub(super) fn flags(self, model: &str) -> Vec<String> {
        match self {
            Watch::Nothing => Vec::new(),
            // The small functions inside the kernels would cost more to watch than they take.
            Watch::Times => {
                ["-finstrument-functions", "-finstrument-functions-exclude-function-list=mlc_"].map(String::from).into()
            }
            Watch::Results => vec![format!("-D{}={HOOK}", profile_macro(model))],
        }
    }
}

/// A result that a program tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedResult {
    /// Number of its kernel.
    pub kernel: usize,
    /// Which of the kernel's results it is.
    pub number: usize,
    /// What it is.
    pub result: KernelResult,
}

/// The results that the hooks of an archive's code show.
pub(super) fn watched_results(bundle: &Bundle) -> Vec<WatchedResult> {
    let kernels = bundle.origin.iter().flat_map(|origin| &origin.kernels).enumerate();
    let results = kernels.flat_map(|(kernel, description)| {
        let results = description.results.iter().cloned().enumerate();
        results.map(move |(number, result)| WatchedResult { kernel, number, result })
    });
    results.collect()
}

/// The file that a program writes a result to, by its number among those that are watched.
pub(super) fn file_name(number: usize) -> String {
    format!("result{number}")
}

/// The function that the hook calls.
const HOOK: &str = "mlc_watch";

/// Writes results of the run that counts to files as soon as they are there: later kernels may use their memory for others.
const WRITE: &str = "
static int watching;

#define begin_watch() ((void)(watching = 1))

void mlc_watch(int32_t kernel, int32_t result, const void* address);

void mlc_watch(int32_t kernel, int32_t result, const void* address) {
  size_t k;
  for (k = 0; watching && k < RESULTS; ++k) {
    if (results[k].kernel == kernel && results[k].result == result) {
      char name[40];
      FILE* file;
      (void)snprintf(name, sizeof name, \"result%lu\", (unsigned long)k);
      file = fopen(name, \"wb\");
      if (file == NULL || fwrite(address, 1, results[k].bytes, file) != results[k].bytes || fclose(file) != 0) {
        fprintf(stderr, \"can't write the result of a kernel\\n\");
        exit(2);
      }
    }
  }
}
";

/// The part of `main.c` that does it; it defines `begin_watch`, which is called before the run that counts.
pub(super) fn text(watch: Watch, results: &[WatchedResult]) -> String {
    if watch != Watch::Results {
        return "\n#define begin_watch() ((void)0)\n".to_owned();
    }
    let mut text = format!(
        "\n#define RESULTS {}\nstatic const struct {{\n  int32_t kernel;\n  int32_t result;\n  size_t bytes;\n}} results[] = {{\n",
        results.len(),
    );
    for WatchedResult { kernel, number, result } in results {
        // No formatting of a String fails.
        let _ = writeln!(text, "  {{ {kernel}, {number}, {} }},", result.span);
    }
    text + "  { -1, 0, 0 },\n};\n" + WRITE
}
