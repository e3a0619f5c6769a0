"""Makes a small network as float ONNX, quantises it with onnxruntime's static quantiser as QDQ (u8 activations, i8 weights per channel), and
writes the model, seeded inputs and onnxruntime's outputs. The tolerance of the case is a step of the output.

Run by: python quantized_network_static.py FOLDER"""

import os
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

random = np.random.default_rng(14)
weights = []


def constant(name, array):
    weights.append(numpy_helper.from_array(array.astype(np.float32), name))
    return name


def filters(name, outputs, inputs, extent):
    return constant(name, random.normal(0, (inputs * extent * extent) ** -0.5, (outputs, inputs, extent, extent)))


def bias(name, outputs):
    return constant(name, random.normal(0, 0.1, outputs))


def model():
    nodes = [
        helper.make_node("Conv", ["x", filters("w1", 8, 3, 3), bias("b1", 8)], ["c1"], "c1", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c1"], ["r1"], "r1"),
        helper.make_node("Conv", ["r1", filters("w2", 8, 1, 3), bias("b2", 8)], ["c2"], "c2", pads=[1, 1, 1, 1], group=8),
        helper.make_node("Clip", ["c2", constant("zero", np.array(0)), constant("six", np.array(6))], ["r2"], "r2"),
        helper.make_node("Conv", ["r2", filters("w3", 8, 8, 1), bias("b3", 8)], ["c3"], "c3"),
        helper.make_node("Add", ["r1", "c3"], ["a"], "a"),
        helper.make_node("MaxPool", ["a"], ["p"], "p", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["p", filters("w4", 8, 6, 2)], ["t"], "t", strides=[2, 2]),
        helper.make_node("Sigmoid", ["t"], ["s"], "s"),
        helper.make_node("Mul", ["t", "s"], ["m"], "m"),
        helper.make_node("AveragePool", ["m"], ["v"], "v", kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["v"], ["f"], "f"),
        helper.make_node("Gemm", ["f", constant("w5", random.normal(0, 0.2, (24, 10))), bias("b5", 10)], ["y"], "y"),
    ]
    graph = helper.make_graph(
        nodes,
        "quantized_network_static",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


class Images(CalibrationDataReader):
    def __init__(self):
        self.images = iter([{"x": random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32)} for _ in range(16)])

    def get_next(self):
        return next(self.images, None)


folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
path = os.path.join(folder, "model.onnx")
onnx.save(model(), path + ".float")
quantize_static(
    path + ".float",
    path,
    Images(),
    quant_format=QuantFormat.QDQ,
    activation_type=QuantType.QUInt8,
    weight_type=QuantType.QInt8,
    per_channel=True,
)
os.remove(path + ".float")
x = random.normal(0, 1, (1, 3, 16, 16)).astype(np.float32)
[y] = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
np.save(os.path.join(folder, "input_0.npy"), x)
np.save(os.path.join(folder, "output_0.npy"), y)
print(y, [node.op_type for node in onnx.load(path).graph.node])
