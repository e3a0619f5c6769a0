"""Times generated code and onnxruntime side by side on one core.

    python tests/benches/onnxruntime_comparison.py [--bursts N] [--mlc PROGRAM] [CASE…]

Each case of tests/data/pnnx has the same network as model.pnnx.param and model.onnx. Both run with one thread on one core,
in interleaved bursts, on the case's input; the minimum over all bursts counts. Needs numpy, onnxruntime, a C compiler, and
mlc itself (cargo build --release --bin mlc). Exits with 1 when the two disagree about the numbers.
"""

import argparse
import ctypes
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy
import onnxruntime

from generated import aligned, build

ROOT = Path(__file__).resolve().parents[2]
CASES = ["net_mlperftiny_resnet8", "net_mlperftiny_dscnn_kws"]


def compare(mlc, case, bursts):
    """Prints a line of the table; returns whether both agree."""
    description = json.loads((case / "case.json").read_text())
    x = aligned(numpy.load(case / description["inputs"][0]["file"]))
    golden = numpy.load(case / description["outputs"][0]["file"])
    y = aligned(numpy.zeros_like(golden))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(case / "model.onnx", options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input(session.get_inputs()[0].name, x)
    theirs = aligned(numpy.zeros_like(golden))
    binding.bind_output(session.get_outputs()[0].name, "cpu", 0, theirs.dtype, theirs.shape, theirs.ctypes.data)
    with tempfile.TemporaryDirectory() as folder:
        burst = build(mlc, case / "model.pnnx.param", Path(folder))
        inputs, outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)
        runs, own, other = 20, float("inf"), float("inf")
        for _ in range(bursts):
            own = min(own, burst(inputs, outputs, runs) / runs)
            start = time.perf_counter_ns()
            for _ in range(runs):
                session.run_with_iobinding(binding)
            other = min(other, (time.perf_counter_ns() - start) / runs)
    tolerance = {"rtol": description["rtol"], "atol": description["atol"]}
    agree = numpy.allclose(y, golden, **tolerance) and numpy.allclose(theirs, golden, **tolerance)
    print(f"| {case.name} | {own / 1000:.1f} | {other / 1000:.1f} | {other / own:.2f} |" + ("" if agree else " wrong numbers"))
    return agree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bursts", type=int, default=200)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--mlc", type=Path, default=target / "release/mlc")
    parser.add_argument("cases", nargs="*", default=CASES)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"| network | mlc, µs | onnxruntime {onnxruntime.__version__}, µs | ratio |\n|---|---:|---:|---:|")
    agree = [compare(arguments.mlc, ROOT / "tests/data/pnnx" / case, arguments.bursts) for case in arguments.cases]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
