"""Commands of mlc within this process: options by name, models as paths or objects."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Tuple

from . import _mlc
from ._errors import Diagnostic, Error, diagnostics_of, warn


def run(command: str, model: str, options: Mapping[str, Any], *fixed: str, tolerated: Tuple[str, ...] = ()) -> bytes:
    """
    Runs a command on a model's file; gives what it prints.

    Errors with one of the codes ``tolerated`` are left to the caller, who sees them in the output.
    """
    # A name that begins with '-' is no option.
    path = os.path.join(".", model) if model.startswith("-") else model
    status, output, told, remarks = _mlc.answer([command, path, *fixed, *arguments(options)])
    diagnostics: List[Diagnostic] = diagnostics_of(told)
    serious = [found for found in diagnostics if found.severity == "error" and found.code not in tolerated]
    if serious or (status != 0 and not output):
        raise Error(diagnostics, remarks)
    warn(diagnostics)
    return bytes(output)


def arguments(options: Mapping[str, Any]) -> List[str]:
    """
    Options as the command line has them.

    ``input_shape={"x": (1, 3)}`` is ``--input-shape x=1,3``; ``True`` is an option without a value; ``None`` and ``False`` are none;
    a list repeats the option.
    """
    words: List[str] = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={_text(item)}" for key, item in value.items()]
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={_text(item)}" for item in value]
        else:
            words.append(f"{option}={_text(value)}")
    return words


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


@contextmanager
def model_file(model: Any) -> Iterator[str]:
    """The path of a model: as it is given, or of a temporary file that holds an ONNX model or an archive."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        yield str(_write(model, Path(folder)))


def _write(model: Any, folder: Path) -> Path:
    if hasattr(model, "SerializeToString"):
        path = folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
    elif isinstance(getattr(model, "data", None), bytes):
        path = folder / "model.tar"
        path.write_bytes(model.data)
    elif isinstance(model, (bytes, bytearray, memoryview)):
        path = folder / "model"
        path.write_bytes(model)
    else:
        raise TypeError(f"a path, an ONNX model, bytes or an archive is expected, not {type(model).__name__}")
    return path
