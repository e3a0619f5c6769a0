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
    /// How long each takes.
    Times,
    /// When each function of the kernels' file begins and ends.
    Calls,
    /// What each has computed.
    Results,
}

impl Watch {
    /// Options of the C compiler for a model's kernels.
    pub(super) fn flags(self, model: &str) -> Vec<String> {
        match self {
            Watch::Nothing => Vec::new(),
            // The small functions inside the kernels would cost more to watch than they take.
            Watch::Calls => {
                ["-finstrument-functions", "-finstrument-functions-exclude-function-list=mlc_"].map(String::from).into()
            }
            Watch::Times | Watch::Results => vec![format!("-D{}={HOOK}", profile_macro(model))],
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

/// The shortest time of each kernel: what has passed since the one before has ended, and what shows a kernel's further results. A loop's and a
/// stripe's is that of what they do behind their last kernel.
const TIME: &str = "
static uint64_t shortest[KERNELS + 1];
static uint64_t took[KERNELS + 1];
static uint64_t ended;
static unsigned long told;

void mlc_watch(int32_t kernel, int32_t result, const void* address);

void mlc_watch(int32_t kernel, int32_t result, const void* address) {
  const uint64_t time = now();
  (void)result;
  (void)address;
  if (kernel >= 0 && kernel < KERNELS) {
    took[kernel] += time - ended;
    ++told;
  }
  ended = now();
}

static void begin_kernels(void) {
  memset(took, 0, sizeof took);
  ended = now();
}

static void end_kernels(unsigned long run) {
  size_t k;
  for (k = 0; k < KERNELS; ++k) {
    if (run == 0 || took[k] < shortest[k]) {
      shortest[k] = took[k];
    }
  }
}

#define begin_watch() ((void)0)
";

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

/// The part of `main.c` that does it; it defines `begin_watch`, which is called before the run that counts, and `begin_kernels` and
/// `end_kernels`, which are called around each run that is timed.
pub(super) fn text(watch: Watch, bundle: &Bundle) -> String {
    const UNTIMED: &str = "\n#define begin_kernels() ((void)0)\n#define end_kernels(run) ((void)(run))\n";
    match watch {
        Watch::Nothing | Watch::Calls => format!("{UNTIMED}#define begin_watch() ((void)0)\n"),
        Watch::Times => format!("\n#define KERNELS {}\n{TIME}", kernels(bundle)),
        Watch::Results => format!("{UNTIMED}{}{WRITE}", result_table(&watched_results(bundle))),
    }
}

/// How many kernels, loops and stripes an archive describes.
fn kernels(bundle: &Bundle) -> usize {
    bundle.origin.as_ref().map_or(0, |origin| origin.kernels.len())
}

fn result_table(results: &[WatchedResult]) -> String {
    let mut text = format!(
        "\n#define RESULTS {}\nstatic const struct {{\n  int32_t kernel;\n  int32_t result;\n  size_t bytes;\n}} results[] = {{\n",
        results.len(),
    );
    for WatchedResult { kernel, number, result } in results {
        // No formatting of a String fails.
        let _ = writeln!(text, "  {{ {kernel}, {number}, {} }},", result.span);
    }
    text + "  { -1, 0, 0 },\n};\n"
}
