"""Which lines of a program hold which bytes for backward."""

import sys
import weakref
from collections import defaultdict
from pathlib import Path

import lamina
from lamina import _C
from lamina.autograd.graph import saved_tensors_hooks

__all__ = ["MemoryReport", "memory"]

_OWN = str(Path(lamina.__file__).resolve().parent)


class _Held:
    """A tensor kept for backward, with the line that made it be kept."""

    __slots__ = ("__weakref__", "line", "operator", "tensor", "version")

    def __init__(self, tensor, operator, line) -> None:
        self.tensor, self.operator, self.line = tensor, operator, line
        self.version = tensor._version


def _running_line() -> tuple[str, int, str]:
    """File, number and function of the innermost line outside the library."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name


class MemoryReport(saved_tensors_hooks):
    """A block whose recorded calls are watched: what they keep for backward, by line.

    After the block, and while the graph lives, ``by_line()`` tells what is held now; what backward
    has used is not counted any more.
    """

    def __init__(self) -> None:
        self._held: weakref.WeakSet = weakref.WeakSet()

        def pack(tensor):
            held = _Held(tensor.detach(), _C._saving_node_name(), _running_line())
            self._held.add(held)
            return held

        def unpack(held):
            if held.tensor._version != held.version:
                raise RuntimeError(
                    "one of the variables needed for gradient computation has been modified by an "
                    f"inplace operation: it was saved by {held.operator} at {held.line[0]}:"
                    f"{held.line[1]}, is at version {held.tensor._version}; expected version "
                    f"{held.version} instead."
                )
            return held.tensor

        super().__init__(pack, unpack)

    def __enter__(self) -> "MemoryReport":
        super().__enter__()
        return self

    def by_line(self) -> dict:
        """{(file, line, function): {operator: bytes}}; bytes kept several times count once."""
        lines: dict = defaultdict(lambda: defaultdict(int))
        seen = set()
        for held in sorted(self._held, key=lambda h: (h.line, h.operator)):
            storage = held.tensor.untyped_storage()
            if held.tensor.numel() == 0 or storage.data_ptr() in seen:
                continue
            seen.add(storage.data_ptr())
            lines[held.line][held.operator] += storage.nbytes()
        return {line: dict(operators) for line, operators in lines.items()}

    @property
    def nbytes(self) -> int:
        """All bytes held now."""
        return sum(n for operators in self.by_line().values() for n in operators.values())

    def __str__(self) -> str:
        by_line = self.by_line()
        total = sum(n for operators in by_line.values() for n in operators.values())
        out = [f"{total} bytes held for backward"]
        for line, operators in sorted(by_line.items(), key=lambda kv: -sum(kv[1].values())):
            file, number, function = line
            names = ", ".join(f"{op} {n}" for op, n in sorted(operators.items()))
            out.append(f"{sum(operators.values()):>12} {file}:{number} in {function}: {names}")
        return "\n".join(out)


def memory() -> MemoryReport:
    """A block that tells afterwards which forward line holds which bytes for backward."""
    return MemoryReport()
