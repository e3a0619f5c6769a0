"""Times generated code and LiteRT side by side on one core.

    python tests/benches/litert_comparison.py --models FOLDER [--bursts N] [--mlc PROGRAM] [NAME…]

Each NAME is a network of which the folder has NAME_int8.tflite and NAME_fp32.tflite. LiteRT runs the first one with XNNPACK and
one thread, generated code both, in interleaved bursts on random inputs; the minimum over all bursts counts. Needs numpy,
ai-edge-litert, a C compiler, and mlc itself (cargo build --release --bin mlc). Exits with 1 when results of the quantised network
differ by more than --most steps of the output's scale: XNNPACK rounds some averages otherwise.
"""

import argparse
import ctypes
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy
from ai_edge_litert.interpreter import Interpreter

from generated import aligned, build

ROOT = Path(__file__).resolve().parents[2]
NETWORKS = ["kws01", "ic01", "vww01", "ad01"]
RUNS = 20


def timed(burst, x, y):
    """Nanoseconds of one of a burst's runs."""
    return burst((ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data), RUNS) / RUNS


def compare(arguments, name):
    """Prints a line of the table; returns whether both agree."""
    quantised, floating = (arguments.models / f"{name}_{kind}.tflite" for kind in ("int8", "fp32"))
    theirs = Interpreter(str(quantised), num_threads=1)
    theirs.allocate_tensors()
    source, result = theirs.get_input_details()[0], theirs.get_output_details()[0]
    x = aligned(numpy.random.default_rng(3).integers(-128, 127, source["shape"], dtype=numpy.int8))
    y = aligned(numpy.zeros(result["shape"], numpy.int8))
    real_x, real_y = aligned(x.astype(numpy.float32)), aligned(y.astype(numpy.float32))
    theirs.set_tensor(source["index"], x)
    times = [[], [], []]
    with tempfile.TemporaryDirectory() as folder:
        bursts = [build(arguments.mlc, model, Path(folder) / model.stem) for model in (quantised, floating)]
        for _ in range(arguments.bursts):
            times[0].append(timed(bursts[0], x, y))
            times[1].append(timed(bursts[1], real_x, real_y))
            start = time.perf_counter_ns()
            for _ in range(RUNS):
                theirs.invoke()
            times[2].append((time.perf_counter_ns() - start) / RUNS)
    own, real, other = (min(list_) / 1000 for list_ in times)
    apart = int(abs(y.astype(int) - theirs.get_tensor(result["index"]).astype(int)).max())
    print(f"| {name} | {own:.1f} | {other:.1f} | {own / other:.2f} | {real:.1f} | {own / real:.2f} | {apart} |", flush=True)
    return apart <= arguments.most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--bursts", type=int, default=200)
    parser.add_argument("--most", type=int, default=8)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--mlc", type=Path, default=target / "release/mlc")
    parser.add_argument("names", nargs="*", default=NETWORKS)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"| network | mlc, µs | LiteRT {version('ai-edge-litert')}, µs | ratio | float, µs | ratio | steps apart |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    agree = [compare(arguments, name) for name in arguments.names]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
