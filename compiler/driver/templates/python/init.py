"""
The neural network @MODEL@: ``run(...)`` takes the inputs in order or by name, and gives the output, or a tuple of several.

States are kept from one call to the next; ``run.reset()`` begins a new stream.
"""

from pathlib import Path
from typing import NamedTuple, Tuple

from ._library import Library


class Port(NamedTuple):
    """An input or an output."""

    name: str
    dtype: str
    shape: Tuple[int, ...]


run = Library(
    next(path for path in Path(__file__).parent.glob("_code*") if path.suffix in (".so", ".pyd", ".dylib")),
    inputs=[@PYTHON_INPUTS@],
    outputs=[@PYTHON_OUTPUTS@],
)

__all__ = ["run"]
