"""Names that torch has and Lamina lacks: they exist where a program names them, and raise where it uses them.

`hasattr` and `getattr` are told the truth (there is no such name); ``torch.name`` and ``from torch import name`` give a stand-in,
so that a module which mentions the name can be imported.
"""

import sys
from abc import ABCMeta
from functools import cache, lru_cache
from opcode import opmap
from pathlib import Path

# What asks for a name by writing it, rather than by a call of getattr or hasattr.
_WRITTEN = {opmap[n] for n in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM") if n in opmap}


class MissingError(NotImplementedError, AttributeError):
    """A name of torch that this release of Lamina does not have was used."""


def missing(name: str) -> MissingError:
    """The error for a full name such as ``torch.quantize_per_tensor``."""
    return MissingError(
        f"{name} is missing: PyTorch has it, this release of Lamina does not; "
        "`python -m lamina --missing FILE` lists all such names in a script"
    )


@lru_cache(maxsize=1)
def peer_names() -> dict[str, dict[str, str]]:
    """Names by module, each with its kind: c class, e exception, f function, v value."""
    table = {}
    for line in (Path(__file__).parent / "_peer_names.txt").read_text().splitlines():
        module, *groups = line.split(" ")
        names = table[module] = {}
        for group in groups:
            kind, _, listed = group.partition(":")
            names.update(dict.fromkeys(listed.split(","), kind))
    return table


def peer_name(name: str) -> str:
    """``lamina.nn`` under its name in torch."""
    return "torch" + name.removeprefix("lamina") if name.partition(".")[0] == "lamina" else name


def _is_written(depth: int) -> bool:
    frame = sys._getframe(depth + 1)
    while frame.f_back and frame.f_globals.get("__name__") == "lamina._lazy":
        frame = frame.f_back  # the first look into a module that waited
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] in _WRITTEN


class _MissingType(ABCMeta):
    """The type of a class that is missing: it can be named, annotated with and derived from."""

    def __call__(cls, *args, **kwargs):
        raise missing(cls._missing_name)

    def __getattr__(cls, name):
        if name.startswith("__") or name == "_missing_name" or not _is_written(1):
            raise AttributeError(name)
        return MissingName(f"{cls._missing_name}.{name}")

    def __getitem__(cls, _):
        return cls

    def __iter__(cls):
        raise missing(cls._missing_name)


class MissingName:
    """A function or a value that is missing."""

    def __init__(self, name):
        self._missing_name = name
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]
        self.__module__ = name.rpartition(".")[0]
        self.__doc__ = f"{name} is missing in this release of Lamina."

    def __getattr__(self, name):
        if name.startswith("__") or not _is_written(1):
            raise AttributeError(name)
        return MissingName(f"{self._missing_name}.{name}")

    def __call__(self, *args, **kwargs):
        raise missing(self._missing_name)

    def __mro_entries__(self, bases):
        return (stand_in(self._missing_name, "c"),)

    def __or__(self, other):
        return self

    __ror__ = __or__

    def __getitem__(self, _):
        return self

    def __bool__(self):
        raise missing(self._missing_name)

    __iter__ = __len__ = __enter__ = __exit__ = __int__ = __float__ = __index__ = __bool__
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __gt__ = __call__

    def __repr__(self):
        return f"<missing {self._missing_name}>"


@cache
def stand_in(name: str, kind: str):
    """What stands for a missing name."""
    if kind in "ce":
        module, _, short = name.rpartition(".")
        bases = (Exception,) if kind == "e" else ()
        content = {
            "__module__": module,
            "_missing_name": name,
            "__doc__": f"{name} is missing in this release of Lamina.",
        }
        return (type if kind == "e" else _MissingType)(short, bases, content)
    return MissingName(name)


def find(module: str, name: str, depth: int = 1):
    """What a module's ``__getattr__`` gives for a name it does not have; raises AttributeError.

    `module` is its name in torch. `depth` counts the calls between the asker and this one.
    """
    kind = peer_names().get(module, {}).get(name)
    if kind is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if not _is_written(depth):
        raise AttributeError(str(missing(f"{module}.{name}")))
    return stand_in(f"{module}.{name}", kind)


def getattr_of(module: str):
    """A ``__getattr__`` for a module of Lamina that stands for one of torch."""
    peer = peer_name(module)

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(f"module {peer!r} has no attribute {name!r}")
        return find(peer, name, 2)

    return __getattr__
