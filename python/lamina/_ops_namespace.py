"""lamina.ops: every operator by namespace, name and overload, as the dispatcher knows it."""

import sys

from lamina import _C

_Module = type(sys)


class OpOverload:
    """One operator; calling it goes straight to the dispatcher."""

    def __init__(self, full_name):
        self._full_name = full_name
        self._schema = _C._dispatch_schema(full_name)
        self.__name__ = full_name.replace("::", ".")

    def __call__(self, *args, **kwargs):
        return _C._call_operator(self._full_name, *args, **kwargs)

    def name(self):
        """The full name, ``aten::add.Tensor``."""
        return self._full_name

    def __repr__(self):
        return f"<OpOverload(op='{self.__name__}')>"


class OpOverloadPacket:
    """All overloads of one name; a call tries them in order."""

    def __init__(self, namespace, name):
        self._qualified_name = f"{namespace}::{name}"
        self.__name__ = name

    def overloads(self):
        """Names of the overloads."""
        names = _names().get(self._qualified_name, ())
        return [n or "default" for n in names]

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(overload)
        plain = "" if overload == "default" else overload
        if plain not in _names().get(self._qualified_name, ()):
            raise AttributeError(f"{self._qualified_name} has no overload {overload!r}")
        result = OpOverload(self._qualified_name + ("." + plain if plain else ""))
        setattr(self, overload, result)
        return result

    def __call__(self, *args, **kwargs):
        problem = None
        for overload in self.overloads():
            try:
                return getattr(self, overload)(*args, **kwargs)
            except TypeError as error:
                problem = error
        raise problem

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._qualified_name.replace('::', '.')}')>"


class _Namespace(_Module):
    def __getattr__(self, name):
        if name.startswith("__") or f"{self.__name__.rpartition('.')[2]}::{name}" not in _names():
            raise AttributeError(f"no operator {name!r} in {self.__name__}")
        packet = OpOverloadPacket(self.__name__.rpartition(".")[2], name)
        setattr(self, name, packet)
        return packet


class _Ops(_Module):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _Namespace("lamina.ops." + name)
        setattr(self, name, namespace)
        return namespace


def _names():
    """Overload names by qualified name."""
    known = tuple(_C._dispatch_get_all_op_names())
    if known != _indexed[0]:
        _indexed[:] = known, _index(known)
    return _indexed[1]


_indexed = [None, {}]  # the names of the last look, and their table


def _index(known):
    table = {}
    for full in known:
        base, _, overload = full.partition(".")
        table.setdefault(base, []).append(overload)
    return table


ops = _Ops("lamina.ops")
