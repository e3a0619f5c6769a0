"""Archives: what the compiler makes of a model."""

import io
import json
import os
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from . import _command
from ._model import Model


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    dtype: str
    """mlc's name of the data type, such as ``f32`` or ``i8``."""
    shape: Tuple[int, ...]
    scale: Optional[float] = None
    """What an integer is multiplied with after ``zero_point`` was taken away, if it stands for a real number."""
    zero_point: Optional[int] = None


@dataclass(frozen=True)
class Sizes:
    """Bytes that a model needs."""

    constants: int
    """Weights and what else lies in flash besides the code."""
    workspace: int
    """Intermediate results and states."""
    inputs_and_outputs: int
    """What the caller provides."""

    @property
    def ram(self) -> int:
        """Working memory, inputs and outputs together."""
        return self.workspace + self.inputs_and_outputs


@dataclass(frozen=True)
class Buffer:
    """A place in the model's working memory."""

    values: Tuple[str, ...]
    """What lies there."""
    offset: int
    bytes: int
    first: int
    """Number of the kernel that writes it."""
    last: int
    """Number of the last kernel that reads it."""


@dataclass(frozen=True)
class Plan:
    """Where intermediate results lie, and when."""

    arena_bytes: int
    liveness_bound_bytes: int
    """What any plan for this order of kernels needs."""
    buffers: Tuple[Buffer, ...]


@dataclass(frozen=True)
class Kernel:
    """A C function of the model."""

    function: str
    node: str
    """The node that it computes."""
    operator: str
    origins: Tuple[str, ...]
    """The operators of the model that it stands for."""
    macs: int
    """Multiply-accumulate operations."""


class Archive:
    """
    A compiled model: a Model Library Format archive in memory.

    ``mlc.compile`` makes one, ``Archive.open`` reads a file. Of an archive with several models, ``model_name`` chooses one.
    """

    def __init__(self, data: bytes, model_name: Optional[str] = None) -> None:
        self.data = bytes(data)
        """The tar file."""
        self._inspected = json.loads(self._run("inspect", {}, "--json"))
        models = {model["model_name"]: model for model in self._inspected["models"]}
        self.model_names = tuple(models)
        """The models that are in it."""
        if model_name is None and len(models) > 1:
            raise ValueError(f"model_name chooses one of {', '.join(models)}")
        if model_name is not None and model_name not in models:
            raise ValueError(f"the archive has no model '{model_name}', but {', '.join(models)}")
        self.model_name: str = model_name or self.model_names[0]
        self._model = models[self.model_name]

    @classmethod
    def open(cls, path: Union[str, "os.PathLike[str]"], model_name: Optional[str] = None) -> "Archive":
        """Reads an archive, of mlc or of another compiler."""
        return cls(Path(path).read_bytes(), model_name)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the tar file."""
        Path(path).write_bytes(self.data)

    @cached_property
    def files(self) -> Dict[str, bytes]:
        """Contents by path."""
        with tarfile.open(fileobj=io.BytesIO(self.data)) as tar:
            members = [member for member in tar.getmembers() if member.isfile()]
            return {os.path.normpath(member.name): tar.extractfile(member).read() for member in members}  # type: ignore[union-attr]

    @cached_property
    def sources(self) -> Dict[str, str]:
        """The generated C by file name, headers among it."""
        folders = ("codegen/host/src/", "codegen/host/include/")
        return {
            path.rsplit("/", 1)[1]: contents.decode()
            for path, contents in self.files.items()
            if path.startswith(folders) and path.endswith((".c", ".h"))
        }

    @property
    def metadata(self) -> Dict[str, Any]:
        """``metadata.json``."""
        contents: Dict[str, Any] = json.loads(self.files["metadata.json"])
        return contents

    @property
    def inputs(self) -> List[Port]:
        """The model's inputs in order."""
        return self._ports("inputs")

    @property
    def outputs(self) -> List[Port]:
        """The model's outputs in order."""
        return self._ports("outputs")

    @property
    def sizes(self) -> Sizes:
        """The memory that the model needs."""
        memory = self._model["memory"]
        total = {
            key: sum(part.get(key) or 0 for part in memory)
            for key in ("constants_size_bytes", "workspace_size_bytes", "io_size_bytes")
        }
        return Sizes(total["constants_size_bytes"], total["workspace_size_bytes"], total["io_size_bytes"])

    @property
    def target(self) -> Optional[str]:
        """The machine that mlc compiled it for."""
        return self._description.get("target")

    @property
    def kernels(self) -> List[Kernel]:
        """The model's C functions in the order in which they run; none in archives of other compilers."""
        described = self._description.get("kernels", [])
        return [
            Kernel(kernel["function"], kernel["node"], kernel["operator"], tuple(kernel["origins"]), kernel["macs"])
            for kernel in described
        ]

    @property
    def plan(self) -> Optional[Plan]:
        """The memory plan; none in archives of other compilers."""
        plan = self._description.get("plan")
        if plan is None:
            return None
        buffers = tuple(
            Buffer(tuple(item["values"]), item["offset"], item["bytes"], item["first"], item["last"])
            for item in plan["buffers"]
        )
        return Plan(plan["arena_bytes"], plan["liveness_bound_bytes"], buffers)

    def load(self, compiler: Optional[str] = None) -> Model:
        """
        Builds the C with the system's compiler, that of ``CC``, or the given one, and loads it into this process.

        Each model so made has states of its own.
        """
        return Model(self.data, self.model_name, self.inputs, self.outputs, compiler)

    def project(self, folder: Union[str, "os.PathLike[str]"], template: str = "cmake") -> None:
        """Makes a project for a build system around the archive; see ``mlc project --help`` for the templates."""
        self._run("project", {"template": template, "output": folder, "model_name": self.model_name})

    def __repr__(self) -> str:
        sizes = self.sizes
        target = f" for {self.target}" if self.target else ""
        return f"<mlc.Archive '{self.model_name}'{target}: {sizes.constants} bytes of constants, {sizes.ram} of RAM>"

    def _run(self, command: str, options: Mapping[str, Any], *fixed: str) -> bytes:
        with _command.model_file(self) as path:
            return _command.run(command, path, options, *fixed)

    @cached_property
    def _description(self) -> Dict[str, Any]:
        contents = self.files.get(f"src/{self.model_name}.json")
        description: Dict[str, Any] = json.loads(contents) if contents else {}
        return description

    def _ports(self, which: str) -> List[Port]:
        described = self._description.get(which) or self._model[which]
        return [_port(item) for item in described]


def _port(item: Mapping[str, Any]) -> Port:
    quantization = item.get("quantization") or {}
    shape = tuple(item.get("shape") or ())
    return Port(item["name"], item["dtype"], shape, quantization.get("scale"), quantization.get("zero_point"))
