"""lamina.ops: every operator by namespace, name and overload, as the dispatcher knows it."""

import sys

from lamina import _C

_Module = type(sys)


class OpOverload:
    """One operator; calling it goes straight to the dispatcher."""

    def __init__(self, full_name):
        self._full_name = full_name
        self._name = full_name
        self._schema_text = _C._dispatch_schema(full_name)  # raises where there is no such operator
        self.__name__ = (
            full_name.rpartition("::")[2]
            if "." in full_name
            else (full_name.rpartition("::")[2] + ".default")
        )
        self.__qualname__ = self.__name__
        self.__module__ = "torch._ops." + full_name.partition("::")[0]
        self._overloadname = full_name.partition(".")[2] or "default"
        self.namespace = full_name.partition("::")[0]
        self._defined_in_python = False

    def __call__(self, *args, **kwargs):
        return _C._call_operator(self._full_name, *args, **kwargs)

    def __getattr__(self, name):
        if name != "_schema":
            raise AttributeError(name)
        from lamina._ops_schema import Schema

        self._schema = Schema(self._schema_text)
        return self._schema

    @property
    def overloadpacket(self):
        """All overloads of the name."""
        space, _, rest = self._full_name.partition("::")
        return getattr(getattr(ops, space), rest.partition(".")[0])

    _overloadpacket = overloadpacket

    @property
    def op(self):
        """What is called."""
        return self

    _op = op

    @property
    def is_view(self):
        """Whether results share memory with arguments that are not written to."""
        return any(r.alias_info and not r.is_write for r in self._schema.returns)

    @property
    def tags(self):
        """Properties that tools ask for; none are kept."""
        return []

    def name(self):
        """The full name, ``aten::add.Tensor``."""
        return self._full_name

    def has_kernel_for_dispatch_key(self, key):
        """Whether a kernel is registered for exactly that key."""
        return _C._dispatch_has_kernel_for_dispatch_key(self._full_name, str(key))

    def __str__(self):
        space, _, rest = self._full_name.partition("::")
        return f"{space}.{rest.partition('.')[0]}.{self._overloadname}"

    def __repr__(self):
        space, _, rest = self._full_name.partition("::")
        return (
            f"<OpOverload(op='{space}.{rest.partition('.')[0]}', overload='{self._overloadname}')>"
        )

    def __hash__(self):
        return hash(self._full_name)

    def __eq__(self, other):
        return self is other

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return overload, (self._full_name,)


def _does_not_fit(text):
    """Whether an error says that arguments do not fit an overload's schema."""
    if text.startswith("Unknown keyword argument for operator"):
        return True
    if text.endswith("cannot be converted to Scalar"):
        return True
    ends = ("() Expected a value of type", "() is missing", "() takes fewer", "() got multiple")
    return any(end in text for end in ends)


class OpOverloadPacket:
    """All overloads of one name; a call tries them in order."""

    def __init__(self, namespace, name):
        self._qualified_op_name = f"{namespace}::{name}"
        self._qualified_name = self._qualified_op_name
        self.__name__ = name
        self.__module__ = "torch._ops." + namespace

    def overloads(self):
        """Names of the overloads."""
        names = _names().get(self._qualified_name, ())
        return [n or "default" for n in names]

    def __getattr__(self, overload_name):
        if overload_name.startswith("__"):
            raise AttributeError(overload_name)
        plain = "" if overload_name == "default" else overload_name
        if plain not in _names().get(self._qualified_name, ()):
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{overload_name}'"
            )
        found = overload(self._qualified_name + ("." + plain if plain else ""))
        setattr(self, overload_name, found)
        return found

    def __call__(self, *args, **kwargs):
        problem = None
        for name in self.overloads():
            try:
                return getattr(self, name)(*args, **kwargs)
            except (TypeError, RuntimeError) as error:
                if isinstance(error, RuntimeError) and not _does_not_fit(str(error)):
                    raise
                problem = error
        if problem is None:
            raise AttributeError(f"{self._qualified_name}: the operator is gone")
        raise problem

    def __iter__(self):
        return iter(self.overloads())

    def __dir__(self):
        return self.overloads()

    def __str__(self):
        return self._qualified_name.replace("::", ".")

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"


class _Namespace(_Module):
    """Operators of one namespace: ``lamina.ops.aten.add``."""

    def __getattr__(self, name):
        space = self.__name__.rpartition(".")[2]
        if name.startswith("__") or f"{space}::{name}" not in _names():
            raise AttributeError(f"'_OpNamespace' '{space}' object has no attribute '{name}'")
        packet = OpOverloadPacket(space, name)
        setattr(self, name, packet)
        return packet

    def __dir__(self):
        space = self.__name__.rpartition(".")[2] + "::"
        return sorted(n.removeprefix(space) for n in _names() if n.startswith(space))


class _Ops(_Module):
    """Operators by namespace, name and overload: ``lamina.ops.aten.add.Tensor``."""

    loaded_libraries = frozenset()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        namespace = _Namespace("lamina.ops." + name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path):
        """Raises OSError: libraries built for PyTorch cannot be loaded here."""
        raise OSError(f"ops.load_library: libraries built for PyTorch cannot be loaded; got {path}")


_overloads = {}


def overload(full_name):
    """The object for one full name; always the same."""
    if full_name not in _overloads:
        _overloads[full_name] = OpOverload(full_name)
    return _overloads[full_name]


def _names():
    """Overload names by qualified name."""
    generation = _C._dispatch_operator_generation()
    if generation != _indexed[0]:
        _indexed[:] = generation, _index(_C._dispatch_get_all_op_names())
    return _indexed[1]


_indexed = [0, {}]  # the generation of the last look, and its table


def _index(known):
    table = {}
    for full in known:
        base, _, overload_name = full.partition(".")
        table.setdefault(base, []).append(overload_name)
    for names in table.values():  # a tensor of one element would fit a number, too
        names.sort(key=lambda name: "Scalar" in name)
    return table


def forget(full_name):
    """After an operator made at run time is gone: its objects are made anew."""
    _overloads.pop(full_name, None)
    space, _, rest = full_name.partition("::")
    vars(getattr(ops, space)).pop(rest.partition(".")[0], None)


ops = _Ops("lamina.ops")
