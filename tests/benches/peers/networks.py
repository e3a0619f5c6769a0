"""Makes the networks that mlc is measured with beside other programs, as ONNX files with seeded random weights.

    python tests/benches/peers/networks.py FOLDER [NAME…]

Their structure is that of the papers: ResNet-18 (arXiv 1512.03385), SqueezeNet 1.1 (1602.07360), MobileNetV1 0.25 at 96 x 96 (1704.04861),
MobileNetV2 (1801.04381), ResNet-8, DS-CNN and the autoencoder of MLPerf Tiny (2106.07597), encoders of a transformer (1706.03762) with 4 layers
of 128 features on 64 tokens, and an LSTM of 128 units on 50 steps. Two more are made where they are named, for what they need of memory:
MobileNetV2 0.35 at 144 x 144, and a small U-Net (1505.04597) at 96 x 96. Weights are scaled so that numbers neither vanish nor grow, and batch
normalisation is folded into them, as exporters do. Needs onnx and numpy.
"""

import argparse
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Network:
    """Builds an ONNX graph node by node; values are known by their names."""

    def __init__(self, name, shape):
        self.name, self.shape = name, shape
        self.random = numpy.random.default_rng(7)
        self.nodes, self.constants, self.count = [], [], 0

    def value(self):
        self.count += 1
        return f"v{self.count}"

    def constant(self, array, dtype=numpy.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(array, dtype), name))
        return name

    def weights(self, *shape, fan):
        return self.constant(self.random.standard_normal(shape) * numpy.sqrt(2.0 / fan))

    def node(self, operator, *operands, **attributes):
        result = self.value()
        self.nodes.append(helper.make_node(operator, operands, [result], **attributes))
        return result

    def convolution(self, x, inputs, outputs, window, stride=1, groups=1, pads=None, activation="Relu"):
        rows, columns = window if isinstance(window, tuple) else (window, window)
        fan = inputs // groups * rows * columns
        weights = self.weights(outputs, inputs // groups, rows, columns, fan=fan if activation else 2 * fan)
        bias = self.constant(self.random.standard_normal(outputs) * 0.1)
        pads = pads or [rows // 2, columns // 2, rows // 2, columns // 2]
        strides = list(stride) if isinstance(stride, tuple) else [stride, stride]
        y = self.node("Conv", x, weights, bias, kernel_shape=[rows, columns], strides=strides, pads=pads, group=groups)
        if activation == "Relu6":
            return self.node("Clip", y, self.constant(0.0), self.constant(6.0))
        return self.node(activation, y) if activation else y

    def dense(self, x, inputs, outputs):
        return self.node("Gemm", x, self.weights(inputs, outputs, fan=2 * inputs), self.constant(numpy.zeros(outputs)))

    def linear(self, x, inputs, outputs):
        y = self.node("MatMul", x, self.weights(inputs, outputs, fan=2 * inputs))
        return self.node("Add", y, self.constant(self.random.standard_normal(outputs) * 0.1))

    def classify(self, x, features, classes):
        x = self.node("Flatten", self.node("GlobalAveragePool", x))
        return self.dense(x, features, classes)

    def model(self, output):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        self.nodes[-1].output[0] = output = "y" if self.nodes[-1].output[0] == output else output
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, self.name, [x], [y], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        return model


def residual(net, x, inputs, outputs, stride):
    y = net.convolution(net.convolution(x, inputs, outputs, 3, stride), outputs, outputs, 3, activation=None)
    if stride != 1 or inputs != outputs:
        x = net.convolution(x, inputs, outputs, 1, stride, activation=None)
    return net.node("Relu", net.node("Add", y, x))


def resnet18():
    net = Network("resnet18", [1, 3, 224, 224])
    x = net.convolution("x", 3, 64, 7, 2)
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for inputs, outputs, stride in [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]:
        x = residual(net, residual(net, x, inputs, outputs, stride), outputs, outputs, 1)
    return net.model(net.classify(x, 512, 1000))


def resnet8():
    net = Network("resnet8", [1, 3, 32, 32])
    x = net.convolution("x", 3, 16, 3)
    for inputs, outputs, stride in [(16, 16, 1), (16, 32, 2), (32, 64, 2)]:
        x = residual(net, x, inputs, outputs, stride)
    return net.model(net.node("Softmax", net.classify(x, 64, 10)))


def squeezenet():
    net = Network("squeezenet", [1, 3, 224, 224])
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    x = net.node("MaxPool", net.convolution("x", 3, 64, 3, 2, pads=[0, 0, 0, 0]), **pool)
    fires = [(64, 16, 64), (128, 16, 64), None, (128, 32, 128), (256, 32, 128), None]
    fires += [(256, 48, 192), (384, 48, 192), (384, 64, 256), (512, 64, 256)]
    for fire in fires:
        if fire is None:
            x = net.node("MaxPool", x, **pool)
            continue
        inputs, squeezed, expanded = fire
        x = net.convolution(x, inputs, squeezed, 1)
        x = net.node("Concat", net.convolution(x, squeezed, expanded, 1), net.convolution(x, squeezed, expanded, 3), axis=1)
    x = net.node("GlobalAveragePool", net.convolution(x, 512, 1000, 1))
    return net.model(net.node("Flatten", x))


def mobilenet_v1():
    net = Network("mobilenet_v1", [1, 3, 96, 96])
    x, inputs = net.convolution("x", 3, 8, 3, 2, pads=[0, 0, 1, 1]), 8
    steps = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    for outputs, stride in steps:
        x = net.convolution(x, inputs, inputs, 3, stride, groups=inputs)
        x, inputs = net.convolution(x, inputs, outputs, 1), outputs
    return net.model(net.node("Softmax", net.classify(x, 256, 2)))


def mobilenet_v2(name="mobilenet_v2", size=224, width=1.0):
    net = Network(name, [1, 3, size, size])

    def channels(count):
        # To multiples of 8, as in the paper's code, and never below nine tenths.
        rounded = max(8, int(count * width + 4) // 8 * 8)
        return rounded + 8 if rounded < 0.9 * count * width else rounded

    inputs = channels(32)
    x = net.convolution("x", 3, inputs, 3, 2, activation="Relu6")
    steps = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    for expansion, outputs, count, first in steps:
        outputs = channels(outputs)
        for number in range(count):
            stride, hidden = first if number == 0 else 1, inputs * expansion
            y = net.convolution(x, inputs, hidden, 1, activation="Relu6") if expansion > 1 else x
            y = net.convolution(y, hidden, hidden, 3, stride, groups=hidden, activation="Relu6")
            y = net.convolution(y, hidden, outputs, 1, activation=None)
            x, inputs = net.node("Add", y, x) if stride == 1 and inputs == outputs else y, outputs
    return net.model(net.classify(net.convolution(x, inputs, 1280, 1, activation="Relu6"), 1280, 1000))


def mobilenet_v2_035_144():
    return mobilenet_v2("mobilenet_v2_035_144", 144, 0.35)


def unet():
    net = Network("unet", [1, 3, 96, 96])
    x, inputs, skipped = "x", 3, []
    for outputs in (8, 16, 32):
        x, inputs = net.convolution(net.convolution(x, inputs, outputs, 3), outputs, outputs, 3), outputs
        skipped.append(x)
        x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x, inputs = net.convolution(net.convolution(x, inputs, 64, 3), 64, 64, 3), 64
    scales = net.constant([1.0, 1.0, 2.0, 2.0])
    for outputs in (32, 16, 8):
        x = net.convolution(x, inputs, outputs, 1)
        x = net.node("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        x = net.node("Concat", x, skipped.pop(), axis=1)
        x, inputs = net.convolution(net.convolution(x, 2 * outputs, outputs, 3), outputs, outputs, 3), outputs
    return net.model(net.convolution(x, 8, 1, 1, activation=None))


def ds_cnn():
    net = Network("ds_cnn", [1, 1, 49, 10])
    x = net.convolution("x", 1, 64, (10, 4), 2, pads=[4, 1, 5, 2])
    for _ in range(4):
        x = net.convolution(net.convolution(x, 64, 64, 3, groups=64), 64, 64, 1)
    return net.model(net.node("Softmax", net.classify(x, 64, 12)))


def autoencoder():
    net = Network("autoencoder", [1, 640])
    x, inputs = "x", 640
    for outputs in [128, 128, 128, 128, 8, 128, 128, 128, 128]:
        x, inputs = net.node("Relu", net.dense(x, inputs, outputs)), outputs
    return net.model(net.dense(x, inputs, 640))


def normalized(net, x, features):
    mean = net.node("ReduceMean", x, axes=[-1])
    centred = net.node("Sub", x, mean)
    variance = net.node("ReduceMean", net.node("Mul", centred, centred), axes=[-1])
    scaled = net.node("Div", centred, net.node("Sqrt", net.node("Add", variance, net.constant(1e-5))))
    weights, bias = net.constant(numpy.ones(features)), net.constant(numpy.zeros(features))
    return net.node("Add", net.node("Mul", scaled, weights), bias)


def transformer():
    tokens, features, heads = 64, 128, 4
    net = Network("transformer", [1, tokens, features])
    split = net.constant([1, tokens, heads, features // heads], numpy.int64)
    whole = net.constant([1, tokens, features], numpy.int64)
    x = "x"
    for _ in range(4):
        own = [net.node("Reshape", net.linear(x, features, features), split) for _ in range(3)]
        query, value = [net.node("Transpose", part, perm=[0, 2, 1, 3]) for part in (own[0], own[2])]
        key = net.node("Transpose", own[1], perm=[0, 2, 3, 1])
        scores = net.node("Mul", net.node("MatMul", query, key), net.constant((features // heads) ** -0.5))
        mixed = net.node("MatMul", net.node("Softmax", scores, axis=-1), value)
        mixed = net.node("Reshape", net.node("Transpose", mixed, perm=[0, 2, 1, 3]), whole)
        x = normalized(net, net.node("Add", x, net.linear(mixed, features, features)), features)
        hidden = net.node("Relu", net.linear(x, features, 4 * features))
        x = normalized(net, net.node("Add", x, net.linear(hidden, 4 * features, features)), features)
    return net.model(x)


def lstm():
    steps, features, units = 50, 128, 128
    net = Network("lstm", [steps, 1, features])
    weights = net.weights(1, 4 * units, features, fan=4 * features)
    recurrent = net.weights(1, 4 * units, units, fan=4 * units)
    bias = net.constant(numpy.zeros((1, 8 * units)))
    return net.model(net.node("LSTM", "x", weights, recurrent, bias, hidden_size=units))


NETWORKS = {
    make.__name__: make
    for make in [
        resnet18, resnet8, squeezenet, mobilenet_v1, mobilenet_v2, ds_cnn, autoencoder, transformer, lstm,
        mobilenet_v2_035_144, unet
    ]
}

# Those that are timed.
TIMED = list(NETWORKS)[:9]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=TIMED, help=", ".join(NETWORKS))
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        onnx.save(NETWORKS[name](), arguments.folder / f"{name}.onnx")


if __name__ == "__main__":
    main()
