"""The package's functions: commands of mlc."""

import html
import json
import os
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy

from ._archive import Archive
from ._command import model_file, run

Arrays = Union[Mapping[str, Any], Sequence[Any]]

_OUTPUT_MISMATCH = "MLC0007"


def compile(model: Any, *, target: str = "host", **options: Any) -> Archive:
    """
    Compiles a model to C; for this machine unless ``target`` says another.

    ``options`` are those of ``mlc compile``: ``optimize="size"``, ``input_shape={"x": (1, 3)}``, ``stateful=True``, and so on.
    """
    with model_file(model) as path:
        return Archive(run("compile", path, options, "--emit=tar", "--output=-", f"--target={target}"))


def inspect(model: Any, **options: Any) -> Dict[str, Any]:
    """What is in a model or an archive: what ``mlc inspect --json`` prints."""
    with model_file(model) as path:
        contents: Dict[str, Any] = json.loads(run("inspect", path, options, "--json"))
        return contents


@dataclass(frozen=True)
class Comparison:
    """How far an output is from what is expected."""

    name: str
    passed: bool
    against: str
    """``evaluator``, or the array that it was compared with."""
    elements: int
    mismatches: int
    """Elements outside the tolerance."""
    max_absolute: float
    max_ulps: int


@dataclass(frozen=True)
class Verification:
    """What the generated code computes, beside what is right."""

    outputs: Tuple[Comparison, ...]
    kernels: Tuple[Dict[str, Any], ...] = ()
    """With ``per_layer=True`` what each kernel computes, as ``mlc verify --per-layer --json`` prints it, the worst first."""

    @property
    def passed(self) -> bool:
        """Whether all outputs are as they should be."""
        return all(output.passed for output in self.outputs)

    def __bool__(self) -> bool:
        return self.passed


def verify(
    model: Any, inputs: Optional[Arrays] = None, expected: Optional[Mapping[str, Any]] = None, **options: Any
) -> Verification:
    """
    Checks the generated code against the reference evaluator, or against the arrays ``expected``, by the outputs' names.

    Without ``inputs``, in order or by name, they are random. ``options`` are those of ``mlc verify``.
    """
    with model_file(model) as path, tempfile.TemporaryDirectory(prefix="mlc-") as folder:
        given = _written(inputs or [], Path(folder), "input") + _written(expected or {}, Path(folder), "expect")
        printed = run("verify", path, options, "--json", *given, tolerated=(_OUTPUT_MISMATCH,))
    fields = Comparison.__dataclass_fields__
    found: Any = json.loads(printed)
    results, kernels = (found["outputs"], found["kernels"]) if isinstance(found, dict) else (found, [])
    outputs = (Comparison(**{name: result[name] for name in fields}) for result in results)
    return Verification(tuple(outputs), tuple(kernels))


def _written(arrays: Arrays, folder: Path, option: str) -> List[str]:
    """Writes arrays to files, and gives the options that name them."""
    named = isinstance(arrays, Mapping)
    pairs = list(arrays.items()) if isinstance(arrays, Mapping) else [("", array) for array in arrays]
    words = []
    for number, (name, array) in enumerate(pairs):
        path = folder / f"{option}{number}.npy"
        numpy.save(path, numpy.asarray(array))
        words.append(f"--{option}={name}={path}" if named else f"--{option}={path}")
    return words


class Report:
    """A page on what a model becomes; a notebook shows it where it is the value of a cell."""

    def __init__(self, page: str) -> None:
        self.html = page
        """The page: one file, which needs no network."""

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # A frame of its own keeps the page's style and keys away from the notebook's.
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 45em; border: 0"></iframe>'


def report(model: Any, other: Any = None, *, target: str = "host", **options: Any) -> Report:
    """
    A page on what a model becomes: its graphs, memory plan and kernels; with ``other``, two models beside each other.

    ``options`` are those of ``mlc report``, such as ``measure=True``.
    """
    with model_file(model) as path, model_file(other) if other is not None else nullcontext() as second:
        models = [] if second is None else [second]
        printed = run("report", path, options, *models, "--output=-", f"--target={target}")
        return Report(printed.decode())
