"""The one error of the generator: it knows where in ``ops/`` the fault is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Where:
    """A place in a file of the op list."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ParagraphError(Exception):
    """A paragraph that cannot be right, with the place and the reason."""

    def __init__(self, where: Where, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason
