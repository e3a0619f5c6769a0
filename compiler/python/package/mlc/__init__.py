"""
Compiles trained neural networks to plain C, and runs them in the process.

    archive = mlc.compile("kws.onnx")
    model = archive.load()
    scores = model(audio)

Functions take the options of the command ``mlc`` of their name as keyword arguments: ``--input-shape x=1,3`` is
``input_shape={"x": (1, 3)}``, ``--stateful`` is ``stateful=True``. A model is a path, an ``onnx.ModelProto``, an ONNX model's bytes, or an
`Archive`. What mlc can't do is an `Error`, with code, place and help; what it warns of is a `ModelWarning`.
"""

from ._archive import Archive, Buffer, Kernel, Plan, Port, Sizes
from ._errors import Diagnostic, Error, ModelWarning
from ._functions import Comparison, Report, Verification, compile, inspect, report, verify
from ._model import Model

__all__ = [
    "Archive",
    "Buffer",
    "Comparison",
    "Diagnostic",
    "Error",
    "Kernel",
    "Model",
    "ModelWarning",
    "Plan",
    "Port",
    "Report",
    "Sizes",
    "Verification",
    "compile",
    "inspect",
    "report",
    "verify",
]
