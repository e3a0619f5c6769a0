"""What mlc has to say of a model: errors as exceptions, warnings as warnings."""

import json
import warnings
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning."""

    code: str
    """Such as ``MLC0202``; ``mlc explain`` has a page on it."""
    severity: str
    """``error``, ``warning`` or ``note``."""
    message: str
    """One sentence: what is, and what was expected."""
    place: Dict[str, Any] = field(default_factory=dict)
    """Where it is, as far as that is known: ``file``, ``line``, ``column``, ``byte_offset``, ``json_path``, ``operator``, ``node``."""
    notes: List[str] = field(default_factory=list)
    """Facts that help to understand it."""
    help: Optional[str] = None
    """What to do."""
    text: str = ""
    """All of this as the command line prints it."""

    def __str__(self) -> str:
        return self.text.rstrip()


class Error(Exception):
    """mlc can't do what was asked; ``diagnostics`` has all the reasons, warnings among them."""

    def __init__(self, diagnostics: Sequence[Diagnostic], remarks: str = "") -> None:
        self.diagnostics = list(diagnostics)
        lines = [str(diagnostic) for diagnostic in self.diagnostics] or [remarks.rstrip()]
        super().__init__("\n".join(lines))

    @property
    def first(self) -> Optional[Diagnostic]:
        """The first error."""
        return next((found for found in self.diagnostics if found.severity == "error"), None)

    @property
    def code(self) -> Optional[str]:
        """The code of the first error."""
        return self.first.code if self.first else None

    @property
    def place(self) -> Dict[str, Any]:
        """The place of the first error."""
        return self.first.place if self.first else {}

    @property
    def help(self) -> Optional[str]:
        """What to do about the first error."""
        return self.first.help if self.first else None


class ModelWarning(UserWarning):
    """Something in a model is suspicious; ``diagnostic`` says what."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic
        super().__init__(str(diagnostic))


def diagnostics_of(told: Sequence[Tuple[str, str]]) -> List[Diagnostic]:
    """Reads what the compiler has found."""
    return [_diagnostic(json.loads(finding), text) for finding, text in told]


def _diagnostic(finding: Dict[str, Any], text: str) -> Diagnostic:
    place = finding.get("location", {})
    known = {key: finding[key] for key in ("code", "severity", "message", "notes", "help") if key in finding}
    return Diagnostic(place=place, text=text, **known)


def warn(diagnostics: Sequence[Diagnostic]) -> None:
    """Issues warnings in the name of whoever called the package."""
    for diagnostic in diagnostics:
        if diagnostic.severity == "warning":
            warnings.warn(ModelWarning(diagnostic), stacklevel=4)
