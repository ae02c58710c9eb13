"""`load`: TorchScript archives. Records and storages are read as `lamina.load` reads them, the source by `_source`."""

import pickle
import types

from lamina import _weights_only_unpickler as _machine
from lamina import serialization
from lamina._missing import missing
from lamina.serialization._archive import Reader
from lamina.serialization._locations import restorer

from . import _objects, _source
from ._module import RecursiveScriptModule

_EXTRA = "extra/"


def _typed(value, tag):
    """Containers come with the name of their type, which Python does not need."""
    return value


def _list(items):
    if not isinstance(items, list):
        raise pickle.UnpicklingError("a list of numbers or tensors must be a list")
    return items


_FUNCTIONS = {
    "torch.jit._pickle.restore_type_tag": _typed,
    "torch.jit._pickle.build_intlist": _list,
    "torch.jit._pickle.build_tensorlist": _list,
    "torch.jit._pickle.build_doublelist": _list,
    "torch.jit._pickle.build_boollist": _list,
}


class _Unpickler(_machine.Unpickler):
    """The machine for checkpoints, which also knows classes that the archive itself defines."""

    def __init__(self, data, unit):
        super().__init__(data, encoding="utf-8")
        self.unit = unit

    def _global(self, module, name):
        full = f"{module}.{name}"
        if module == "__torch__" or module.startswith("__torch__."):
            return self.unit.class_of(full)
        if full in _FUNCTIONS:
            return _FUNCTIONS[full]
        if module == "torch.jit._pickle":
            raise missing(full)
        return super()._global(module, name)

    def _reduce(self, func, args):
        if isinstance(func, _objects.ScriptClass):
            if func.kind == "Enum":
                return func.made(args[0] if isinstance(args, tuple) and len(args) == 1 else args)
            if func.kind == "NamedTuple" and isinstance(args, tuple):
                return func.made(*args)
            raise pickle.UnpicklingError(f"{func.name} cannot be called")
        if isinstance(func, types.FunctionType) and func in _FUNCTIONS.values():
            return func(*args)
        return super()._reduce(func, args)

    def _new(self, cls, args, kwargs=None):
        if not isinstance(cls, _objects.ScriptClass):
            return super()._new(cls, args, kwargs)
        if kwargs or (args != () and cls.kind != "NamedTuple"):
            raise pickle.UnpicklingError(f"{cls.name} is made without arguments")
        if cls.kind == "Module":
            return RecursiveScriptModule._made(cls, self.unit)
        if cls.kind == "NamedTuple":
            return cls.made(*args)
        if cls.kind is None:
            return _objects.ScriptObject(cls)
        raise pickle.UnpicklingError(f"{cls.name} has no objects")

    def _build(self, inst, state):
        own = getattr(type(inst), "_is_script", False) or isinstance(inst, _objects.ScriptObject)
        if not own:
            return super()._build(inst, state)
        kind = inst._script_class
        if "__setstate__" in kind.nodes:
            self.unit.settle()
            kind.methods["__setstate__"](inst, state)
        elif not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
            raise pickle.UnpicklingError(f"the state of {kind.name} must be a dict of names")
        else:
            for name, value in state.items():
                if name in kind.attributes:
                    _objects.set_attribute(inst, name, value)


def _unpickled(reader, name, folder, unit, map_location):
    machine = _Unpickler(reader.bytes_of(name), unit)
    machine.persistent_load = serialization._storages(
        reader, restorer(map_location), map_location, folder=folder
    )
    try:
        return machine.load()
    except pickle.UnpicklingError as error:
        # What the machine met inside is told as it is: a missing name, broken source, an error of a program.
        inner = error.__cause__
        while inner is not None and not isinstance(
            inner, _source.SourceError | NotImplementedError
        ):
            inner = inner.__cause__
        if inner is not None:
            raise inner from None
        raise RuntimeError(f"torch.jit.load: {name}: {error}") from None
    except EOFError as error:
        raise RuntimeError(f"torch.jit.load: {name}: {error}") from None


def loaded_from(reader, map_location, extra_files):
    """The module in an archive that is open already."""
    if not serialization._is_torchscript(reader):
        raise RuntimeError(
            "PytorchStreamReader failed locating file constants.pkl: file not found. "
            "torch.jit.load: this is no TorchScript archive; checkpoints are read by torch.load"
        )

    def source_of(path):
        name = "code/" + path
        return reader.bytes_of(name) if name in reader else None

    unit = _source.Unit(source_of)
    constants = _unpickled(reader, "constants.pkl", "constants", unit, map_location)
    if not isinstance(constants, tuple | list):
        raise RuntimeError("torch.jit.load: constants.pkl holds no tuple")
    for i, value in enumerate(constants):
        unit.globals[f"CONSTANTS.c{i}"] = value
    module = _unpickled(reader, "data.pkl", "data", unit, map_location)
    if not isinstance(module, RecursiveScriptModule):
        raise RuntimeError("torch.jit.load: data.pkl holds no module")
    unit.settle()
    if extra_files is not None:
        for name in list(extra_files):
            if _EXTRA + name in reader:
                extra_files[name] = reader.bytes_of(_EXTRA + name)
    return module


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a module that ``torch.jit.save`` wrote.

    Parameters
    ----------
    f
        A path or a file that can be read and sought.
    map_location
        Where tensors go: a device or its name; see `lamina.load`.
    _extra_files
        A dict; its keys name files in the archive, whose bytes become its values.
    _restore_shapes
        Accepted; traced shapes are not kept here.

    The program in the archive can call tensor operators and its own functions, and nothing else; see
    docs/decisions/0013-torchscript-archives.md. Raises ValueError where there is no such file, RuntimeError for broken
    archives and programs that hold anything else, MissingError for operators that Lamina does not have.
    """
    if serialization._is_path(f):
        import os

        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    with serialization._opened(f) as file:
        return loaded_from(Reader(file), map_location, _extra_files)
