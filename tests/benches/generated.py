"""Compiles models with mlc and a C compiler, for scripts that time them beside other programs."""

import ctypes
import os
import re
import subprocess
import sys
import tarfile

import numpy

# A burst runs inside C, so that no interpreter is in the measured time.
BURST = """
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <time.h>
#include "tvmgen_%(name)s.h"
uint64_t burst(void **in, void **out, int runs);
uint64_t burst(void **in, void **out, int runs) {
  struct tvmgen_%(name)s_inputs inputs = {in[0]};
  struct tvmgen_%(name)s_outputs outputs = {out[0]};
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int run = 0; run < runs; ++run) {
    if (tvmgen_%(name)s_run(&inputs, &outputs) != 0) return 0;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (uint64_t)(end.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)start.tv_nsec;
}
"""


def aligned(array):
    """A copy of the array that starts at a multiple of 64 bytes."""
    memory = numpy.zeros(array.nbytes + 64, numpy.uint8)
    start = -memory.ctypes.data % 64
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def build(mlc, model, folder):
    """Compiles a model with mlc and a C compiler; the result is a function that runs a burst."""
    folder.mkdir(exist_ok=True)
    archive = folder / "model.tar"
    subprocess.run([mlc, "compile", model, "--target", "host", "-o", archive], check=True, stdout=sys.stderr)
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "model", filter="data")
    host = folder / "model/codegen/host"
    name = re.fullmatch(r"tvmgen_(\w+)\.h", next((host / "include").glob("tvmgen_*.h")).name).group(1)
    source = folder / "burst.c"
    source.write_text(BURST % {"name": name})
    flags = ["-std=gnu99", "-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC"]
    library = folder / "model.so"
    includes = ["-I", host / "include", "-I", folder / "model/runtime/include"]
    sources = sorted((host / "src").glob("*.c"))
    subprocess.run([os.environ.get("CC", "cc"), *flags, *includes, source, *sources, "-o", library, "-lm"], check=True)
    burst = ctypes.CDLL(str(library)).burst
    burst.restype = ctypes.c_uint64
    return burst
