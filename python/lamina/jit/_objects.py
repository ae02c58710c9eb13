"""What the classes of a TorchScript archive are at run time, and how their attributes are reached."""

import enum
import types

import lamina
from lamina._missing import missing


class ScriptClass:
    """A class of an archive: its kind, what it declares, and its methods once they are compiled."""

    def __init__(self, name, kind, node, file):
        self.name, self.kind, self.node, self.file = name, kind, node, file
        self.short = name.rpartition(".")[2]
        self.parameters, self.buffers, self.attributes, self.constants = [], [], {}, {}
        self.nodes, self.methods, self.sources = {}, {}, {}
        self.made = None  # the class of Python for named tuples and enumerations

    def __deepcopy__(self, memo):
        return self


class ScriptObject:
    """An instance of a class (no module) of an archive."""

    def __init__(self, script_class):
        object.__setattr__(self, "_script_class", script_class)
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name):
        if name in ("_script_class", "_values") or name.startswith("__"):
            raise AttributeError(name)  # a copy asks before it has them
        return attribute(self, name)

    def __deepcopy__(self, memo):
        from copy import deepcopy

        made = memo[id(self)] = ScriptObject(self._script_class)
        made._values.update({name: deepcopy(v, memo) for name, v in self._values.items()})
        return made

    def __reduce_ex__(self, protocol):
        raise missing("pickling of objects of TorchScript classes")

    def __setattr__(self, name, value):
        set_attribute(self, name, value)

    def __enter__(self):
        return attribute(self, "__enter__")()

    def __exit__(self, kind, value, traceback):
        attribute(self, "__exit__")(None, None, None)

    def __len__(self):
        return attribute(self, "__len__")()

    def __bool__(self):
        return True

    def __repr__(self):
        return f"<{self._script_class.name} object>"


class Members:
    """Marks enumerations and named tuples that an archive defines."""


def attribute(obj, name):
    """An attribute or method that the archive declares for `obj`."""
    if isinstance(obj, ScriptObject):
        values = obj._values
        if name in values:
            return values[name]
        method = obj._script_class.methods.get(name)
        if method is not None:
            return types.MethodType(method, obj)
    elif isinstance(obj, lamina.nn.Module) and hasattr(type(obj), "_script_attribute"):
        return obj._script_attribute(name)
    elif isinstance(obj, Members) and (
        name in ("name", "value") if isinstance(obj, enum.Enum) else name in type(obj)._fields
    ):
        return getattr(obj, name)
    elif isinstance(obj, lamina.Tensor) and name == "tolist":
        return obj.tolist
    raise AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}'")


def set_attribute(obj, name, value):
    """Set an attribute that the archive declares."""
    if isinstance(obj, ScriptObject):
        if name not in obj._script_class.attributes:
            raise AttributeError(f"{obj._script_class.name} has no attribute '{name}'")
        obj._values[name] = value
    elif isinstance(obj, lamina.nn.Module) and hasattr(type(obj), "_set_script_attribute"):
        obj._set_script_attribute(name, value)
    else:
        raise AttributeError(f"'{type(obj).__name__}' object has no attribute '{name}'")
