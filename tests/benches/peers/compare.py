"""Times networks as code of mlc and in the programs that people use instead, side by side.

    cargo build --release --bin mlc
    python -m pip install -r tests/benches/peers/requirements.txt
    python tests/benches/peers/compare.py [--bursts N] [--threads 1] [--peers onnxruntime,openvino] [NETWORK…]

Networks are made by `networks.py`. All programs run the same file on the same input, in bursts that take turns, so that what else the machine
does disturbs all alike; the least time of a run over all bursts counts. Peers that aren't installed, or that refuse a network, are named and left
out. Exits with 1 when a program's numbers are not mlc's.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from generated import aligned, build  # noqa: E402
from networks import NETWORKS, TIMED  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


class Mlc:
    """Code of mlc, compiled by the C compiler."""

    def __init__(self, mlc, model, x, y, folder):
        self.burst = build(mlc, model, folder)
        self.x, self.y = x, y
        self.inputs, self.outputs = (ctypes.c_void_p * 1)(x.ctypes.data), (ctypes.c_void_p * 1)(y.ctypes.data)

    def time(self, runs):
        return self.burst(self.inputs, self.outputs, runs) / runs

    def result(self):
        return self.y


class Peer:
    """A program that is called from Python: `run` computes once and returns the output."""

    def time(self, runs):
        start = time.perf_counter_ns()
        for _ in range(runs):
            self.run()
        return (time.perf_counter_ns() - start) / runs

    def result(self):
        return numpy.asarray(self.run())


class OnnxRuntime(Peer):
    def __init__(self, model, x, y, threads, folder):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        binding.bind_cpu_input(session.get_inputs()[0].name, x)
        self.y = aligned(numpy.zeros_like(y))
        output = session.get_outputs()[0].name
        binding.bind_output(output, "cpu", 0, self.y.dtype, self.y.shape, self.y.ctypes.data)
        self.session, self.binding = session, binding

    def run(self):
        self.session.run_with_iobinding(self.binding)
        return self.y


class OpenVino(Peer):
    def __init__(self, model, x, y, threads, folder):
        import openvino

        settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().compile_model(str(model), "CPU", settings)
        self.request = compiled.create_infer_request()
        self.request.set_input_tensor(openvino.Tensor(x, shared_memory=True))

    def run(self):
        self.request.infer()
        return self.request.get_output_tensor(0).data


class Ncnn(Peer):
    def __init__(self, model, x, y, threads, folder):
        import ncnn

        shape = ",".join(str(extent) for extent in x.shape)
        path = folder / "peer.onnx"
        path.write_bytes(model.read_bytes())
        subprocess.run(["pnnx", path, f"inputshape=[{shape}]", "fp16=0"], check=True, capture_output=True, cwd=folder)
        self.net = ncnn.Net()
        self.net.opt.num_threads = threads
        for option in ["use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"]:
            setattr(self.net.opt, option, False)
        if self.net.load_param(str(folder / "peer.ncnn.param")) or self.net.load_model(str(folder / "peer.ncnn.bin")):
            raise RuntimeError("ncnn reads no such network")
        self.x, self.shape = ncnn.Mat(x[0]), y.shape

    def run(self):
        extractor = self.net.create_extractor()
        extractor.input("in0", self.x)
        status, output = extractor.extract("out0")
        if status:
            raise RuntimeError("ncnn can't compute the network")
        return numpy.array(output).reshape(self.shape)


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn}


def prepare(name, arguments, model, x, y, folder):
    """A peer with a network; why it can't be, where that is so."""
    folder.mkdir()
    try:
        peer = PEERS[name](model, x, y, arguments.threads, folder)
        peer.run()
        return peer, None
    # Whatever a foreign program raises is told, and the others are still measured.
    except Exception as error:  # noqa: BLE001
        return None, f"{name}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"


def compare(arguments, name, folder):
    import onnx

    model = folder / f"{name}.onnx"
    onnx.save(NETWORKS[name](), model)
    description = onnx.load(model).graph
    extents = [[one.dim_value for one in port.type.tensor_type.shape.dim] for port in (description.input[0], description.output[0])]
    x = aligned(numpy.random.default_rng(1).standard_normal(extents[0]).astype(numpy.float32))
    y = aligned(numpy.zeros(extents[1], numpy.float32))
    programs = {"mlc": Mlc(arguments.mlc, model, x, y, folder / "mlc")}
    refused = []
    for peer in arguments.peers:
        program, why = prepare(peer, arguments, model, x, y, folder / peer)
        if program:
            programs[peer] = program
        else:
            refused.append(why)
    once = programs["mlc"].time(1)
    runs = max(1, min(50, int(2_000_000 / max(once, 1))))
    least = dict.fromkeys(programs, float("inf"))
    for _ in range(arguments.bursts):
        for own, program in programs.items():
            least[own] = min(least[own], program.time(runs))
    wrong = []
    for own, program in programs.items():
        result, bound = program.result(), 1e-3 * float(numpy.abs(y).max())
        if not numpy.allclose(result.reshape(y.shape), y, rtol=1e-3, atol=bound):
            wrong.append(own)
    others = {own: nanos for own, nanos in least.items() if own != "mlc"}
    best = min(others.values(), default=float("nan"))
    cells = [f"{least[own] / 1000:.1f}" if own in least else "–" for own in ["mlc", *arguments.peers]]
    print(f"| {name} | {' | '.join(cells)} | {least['mlc'] / best:.2f} |", flush=True)
    for why in refused:
        print(f"  {name}: {why}", file=sys.stderr)
    if wrong:
        print(f"  {name}: other numbers by {', '.join(wrong)}", file=sys.stderr)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bursts", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    parser.add_argument("--mlc", type=Path, default=target / "release/mlc")
    parser.add_argument("networks", nargs="*", default=TIMED)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity") and arguments.threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"| network | mlc, µs | {', µs | '.join(arguments.peers)}, µs | of the best |")
    print(f"|---|{'---:|' * (len(arguments.peers) + 2)}")
    agree = []
    for name in arguments.networks:
        with tempfile.TemporaryDirectory() as folder:
            agree.append(compare(arguments, name, Path(folder)))
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
