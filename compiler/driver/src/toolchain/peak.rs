//! What this machine computes at most: the yardstick for the times of kernels.

use super::compiler::Toolchain;
use super::faults::temporary;
use crate::targets;
use mlc_codegen::{Target, VectorSpelling};
use mlc_ir::{Code, Diagnostic, Location};
use std::process::Command;

/// Multiply-adds on as many vectors as it takes to keep the units busy; prints nanoseconds of a million turns.
const CHAINS: &str = r#"#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <time.h>

typedef float vector __attribute__((vector_size(BYTES)));

static uint64_t now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static vector __attribute__((noinline)) chains(vector x, long turns) {
  /* They differ: a compiler makes one of equal ones. */
  vector a = x, b = a + x, c = b + x, d = c + x, e = d + x, f = e + x;
  vector g = f + x, h = g + x, i = h + x, j = i + x, k = j + x, l = k + x;
  for (; turns > 0; --turns) {
    a = a * x + x; b = b * x + x; c = c * x + x; d = d * x + x; e = e * x + x; f = f * x + x;
    g = g * x + x; h = h * x + x; i = i * x + x; j = j * x + x; k = k * x + x; l = l * x + x;
  }
  return a + b + c + d + e + f + g + h + i + j + k + l;
}

int main(void) {
  volatile float half = 0.5F;
  const vector x = (vector){0} + half;
  volatile float result;
  uint64_t best = UINT64_MAX;
  for (int round = 0; round < 20; ++round) {
    const uint64_t before = now();
    const vector sums = chains(x, 1000000);
    const uint64_t took = now() - before;
    result = sums[0];
    best = took < best ? took : best;
  }
  (void)result;
  printf("%llu\n", (unsigned long long)best);
  return 0;
}
"#;

/// Vectors of [`CHAINS`].
const VECTORS: usize = 12;

impl Toolchain {
    /// Single-precision operations in a nanosecond that one core of this machine reaches in code for a target, multiply-adds counted as two;
    /// for plain C in code for this machine.
    ///
    /// # Errors
    /// `MLC0005` when the C compiler refuses the program, or it fails.
    pub fn peak_gflops(&self, target: &Target) -> Result<f64, Diagnostic> {
        let has_vectors = !matches!(target.vectors, VectorSpelling::None | VectorSpelling::Either);
        let own = targets::find("host").filter(|_| !has_vectors);
        let target = own.as_ref().unwrap_or(target);
        let folder = tempfile::Builder::new().prefix("mlc-").tempdir().map_err(|error| temporary(&error))?;
        std::fs::write(folder.path().join("peak.c"), CHAINS).map_err(|error| temporary(&error))?;
        let program = folder.path().join("peak");
        let lanes = target.lanes(size_of::<f32>()).max(1);
        let mut command = self.command();
        command.args(self.flags(target)?).arg(format!("-DBYTES={}", lanes * size_of::<f32>()));
        command.args(["peak.c", "-o"]).arg(&program);
        self.expect_success(self.start(command, folder.path())?.wait_with_output())?;
        let output = Command::new(&program).output().map_err(|error| temporary(&error))?;
        let nanos = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>().ok().filter(|&nanos| nanos > 0.0);
        let nanos = nanos.filter(|_| output.status.success()).ok_or_else(|| {
            let message = "the program that measures the machine's peak failed";
            Diagnostic::error(Code::ToolFailed, Location::default(), message)
        })?;
        Ok(2e6 * (VECTORS * lanes) as f64 / nanos)
    }
}
