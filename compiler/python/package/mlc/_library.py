"""A model's code as a shared library in this process. Needs numpy, and nothing else of this package."""

import ctypes
import os
import threading
import weakref
from typing import Any, List, Sequence, Tuple, Union

import numpy

ALIGNMENT = 16
"""What the generated code asks of its callers' memory, in bytes."""

_DTYPES = {"bool": "bool", "bf16": "uint16", "f16": "float16", "f32": "float32", "f64": "float64"}


def dtype_of(name: str) -> "numpy.dtype[Any]":
    """The data type of arrays for one of mlc's; bf16 is passed as its bits."""
    if name not in _DTYPES:
        name = name.replace("i", "int").replace("u", "uint")
    return numpy.dtype(_DTYPES.get(name, name))


class Library:
    """
    A model that runs in this process.

    Called with the inputs in order or by name, it gives the output, or a tuple of several. Models with states keep them
    from one call to the next. Any thread may call it; one call at a time is computed.

    ``inputs`` and ``outputs`` have a ``name``, a ``dtype`` as mlc spells it, and a ``shape``.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs = list(inputs)
        self.outputs = list(outputs)
        self._lock = threading.Lock()
        library = ctypes.CDLL(os.fspath(path))
        weakref.finalize(self, _unload, library._handle)
        if library.mlc_prepare() != 0:
            raise RuntimeError("the model can't be prepared")
        self._run = library.mlc_run
        self._run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._reset = library.mlc_reset
        self._in = (ctypes.c_void_p * max(len(self.inputs), 1))()
        self._out = (ctypes.c_void_p * max(len(self.outputs), 1))()
        self._input_types = [(port, dtype_of(port.dtype)) for port in self.inputs]
        self._output_types = [(port, dtype_of(port.dtype)) for port in self.outputs]

    def __call__(self, *inputs: Any, **named: Any) -> Union["numpy.ndarray[Any, Any]", Tuple["numpy.ndarray[Any, Any]", ...]]:
        """
        Runs the model once.

        An array is read where it is if it has the input's data type, the order of C, and an address that is a multiple of 16, as
        those that numpy allocates have; any other is copied. A shape that isn't the input's is a `ValueError`, and a data type whose
        conversion would lose more than precision a `TypeError`.
        """
        arrays = self._arrays(inputs, named)
        outputs = [_allocate(port.shape, dtype) for port, dtype in self._output_types]
        with self._lock:
            for number, array in enumerate(arrays):
                self._in[number] = array.ctypes.data
            for number, array in enumerate(outputs):
                self._out[number] = array.ctypes.data
            status = self._run(self._in, self._out)
        if status != 0:
            raise RuntimeError(f"the model failed with status {status}")
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def reset(self) -> None:
        """Makes the states what they were before the first call: a new stream begins."""
        with self._lock:
            if self._reset() != 0:
                raise RuntimeError("the model's states can't be reset")

    def _arrays(self, inputs: Sequence[Any], named: Any) -> List["numpy.ndarray[Any, Any]"]:
        given = list(inputs)
        for port in self.inputs[len(given) :]:
            if port.name not in named:
                raise TypeError(f"the input '{port.name}' is missing")
            given.append(named.pop(port.name))
        if named or len(given) > len(self.inputs):
            names = ", ".join(port.name for port in self.inputs)
            surplus = ", ".join(f"'{name}'" for name in named) or f"{len(given)} arrays"
            raise TypeError(f"{surplus}: the model's inputs are {names or 'none'}")
        return [_ready(value, port, dtype) for value, (port, dtype) in zip(given, self._input_types)]


def _ready(value: Any, port: Any, dtype: "numpy.dtype[Any]") -> "numpy.ndarray[Any, Any]":
    """The array itself if the code can read it as it is, or a copy that it can read."""
    array = numpy.asarray(value)
    if array.shape != port.shape:
        raise ValueError(f"the input '{port.name}' has the shape {port.shape}, not {array.shape}")
    if array.dtype == dtype and array.flags.c_contiguous and array.ctypes.data % ALIGNMENT == 0:
        return array
    if not numpy.can_cast(array.dtype, dtype, casting="same_kind"):
        raise TypeError(f"the input '{port.name}' is {dtype}, which {array.dtype} isn't converted to")
    copy = _allocate(port.shape, dtype)
    numpy.copyto(copy, array, casting="same_kind")
    return copy


def _allocate(shape: Tuple[int, ...], dtype: "numpy.dtype[Any]") -> "numpy.ndarray[Any, Any]":
    array = numpy.empty(shape, dtype)
    if array.ctypes.data % ALIGNMENT == 0:
        return array
    room = numpy.empty(array.nbytes + ALIGNMENT, numpy.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + array.nbytes].view(dtype).reshape(shape)


def _unload(handle: int) -> None:
    if os.name == "posix":
        import _ctypes

        _ctypes.dlclose(handle)
