"""Models that the tests make."""

import numpy
from onnx import TensorProto, checker, helper, numpy_helper


def model(nodes, inputs, outputs, constants=()):
    """An ONNX model of one graph; `inputs` and `outputs` are names with data types and shapes."""

    def values(ports):
        return [helper.make_tensor_value_info(name, dtype, shape) for name, dtype, shape in ports]

    initializers = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(made)
    return made


def convolutions():
    """Two convolutions, a pool and a matrix product: one input `image`, one output `scores`."""
    numbers = numpy.random.default_rng(1)

    def weights(*shape):
        return (numbers.standard_normal(shape) / 4).astype(numpy.float32)

    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["c2"], "conv2"),
        helper.make_node("Flatten", ["c2"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["g"], "gemm"),
        helper.make_node("Softmax", ["g"], ["scores"], "softmax"),
    ]
    constants = [("w1", weights(4, 3, 3, 3)), ("b1", weights(4)), ("w2", weights(8, 4, 3, 3)), ("b2", weights(8))]
    constants += [("w3", weights(8 * 36, 10)), ("b3", weights(10))]
    image, scores = ("image", TensorProto.FLOAT, [1, 3, 16, 16]), ("scores", TensorProto.FLOAT, [1, 10])
    return model(nodes, [image], [scores], constants)


def sums():
    """Two inputs, `x` and `count`, and two outputs: the sum and the product with it."""
    nodes = [
        helper.make_node("Cast", ["count"], ["number"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "number"], ["sum"], "add"),
        helper.make_node("Mul", ["x", "number"], ["product"], "multiply"),
    ]
    ports = [("x", TensorProto.FLOAT, [2, 3]), ("count", TensorProto.INT32, [])]
    return model(nodes, ports, [("sum", TensorProto.FLOAT, [2, 3]), ("product", TensorProto.FLOAT, [2, 3])])


def counter():
    """A state: `total` is what it was, `before`, and `x`."""
    nodes = [helper.make_node("Add", ["before", "x"], ["total"], "add")]
    ports = [("before", TensorProto.FLOAT, [3]), ("x", TensorProto.FLOAT, [3])]
    return model(nodes + [helper.make_node("Neg", ["total"], ["y"], "negate")], ports,
                 [("total", TensorProto.FLOAT, [3]), ("y", TensorProto.FLOAT, [3])])


def unsupported():
    """Two operators that don't exist."""
    nodes = [
        helper.make_node("Nonsense", ["x"], ["h"], "first", domain="nowhere"),
        helper.make_node("Gibberish", ["h"], ["y"], "second", domain="nowhere"),
    ]
    ports = [("x", TensorProto.FLOAT, [3])], [("y", TensorProto.FLOAT, [3])]
    graph = helper.make_graph(nodes, "g", *[[helper.make_tensor_value_info(*port) for port in list_] for list_ in ports])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("nowhere", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)
