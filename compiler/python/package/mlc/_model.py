"""A compiled model in this process."""

import os
import tempfile
from typing import Any, Optional, Sequence

from . import _mlc
from ._errors import Error, diagnostics_of
from ._library import Library


class Model(Library):
    __doc__ = Library.__doc__

    def __init__(
        self, archive: bytes, name: str, inputs: Sequence[Any], outputs: Sequence[Any], compiler: Optional[str]
    ) -> None:
        """Builds the model of this name in an archive; `Archive.load` does."""
        with tempfile.TemporaryDirectory(prefix="mlc-") as folder:
            path, told = _mlc.build_library(archive, name, folder, compiler or os.environ.get("CC"))
            if path is None:
                raise Error(diagnostics_of(told))
            super().__init__(path, inputs, outputs)
