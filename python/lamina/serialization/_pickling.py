"""Pickles that name things as PyTorch does, whatever the package is called."""

import functools
import io
import pickle
import types
from collections import OrderedDict

import lamina
from lamina import _C, _utils
from lamina import storage as _storage

# Names whose place differs from where they are defined here.
_PLACES = {
    ("torch", "UntypedStorage"): "torch.storage",
    ("torch", "TypedStorage"): "torch.storage",
    ("torch.storage", "_load_from_bytes"): "torch.storage",
}
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType)


def public_name(obj):
    """(module, name) under which PyTorch's files know a class or function of ours."""
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", None)
    if not isinstance(module, str):
        return None
    if module == "lamina" or module.startswith("lamina."):
        renamed = "torch" + module[6:]
    elif module == "torch" or module.startswith("torch."):
        renamed = module
    else:
        return None
    return module, name, _PLACES.get((renamed, name), renamed)


def _reduce_plain_tensor(t):
    """How a tensor without attributes is written."""
    if t.is_meta:
        arguments = (t.dtype, tuple(t.size()), t.stride(), t.requires_grad)
        return _utils._rebuild_meta_tensor_no_storage, arguments
    plain = t.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    untyped = plain.untyped_storage()
    place = (plain.storage_offset(), tuple(plain.size()), plain.stride(), t.requires_grad)
    if _storage._short(t.dtype) not in _storage._BY_DTYPE:
        arguments = (untyped, *place, OrderedDict(), t.dtype)
        return _utils._rebuild_tensor_v3, arguments
    typed = _storage.TypedStorage(wrap_storage=untyped, dtype=t.dtype)
    return _utils._rebuild_tensor_v2, (typed, *place, OrderedDict())


def _is_own_tensor(obj):
    """A tensor whose class does not say how it is pickled."""
    return isinstance(obj, lamina.Tensor) and type(obj).__reduce_ex__ is lamina.Tensor.__reduce_ex__


class _Names:
    """What both picklers below share: tensors, and a note of every name that is written."""

    def reducer_override(self, obj):
        kind = type(obj)
        if kind is lamina.Tensor or _is_own_tensor(obj):
            return self._reduced_tensor(obj)
        if isinstance(obj, _C.dtype | _C.layout | _C.memory_format):
            name = str(obj).removeprefix("torch.")
            self.note(kind.__module__, name, "torch")
            return NotImplemented
        if isinstance(obj, _NAMED):
            found = public_name(obj)
            if found is not None:
                self.note(*found)
        return NotImplemented

    def _reduced_tensor(self, t):
        state = _utils._get_obj_state(t)
        with _C.DisableTorchFunctionSubclass():
            function, arguments = _reduce_plain_tensor(t)
        if type(t) is lamina.Tensor and not state:
            return function, arguments
        from lamina._tensor import _rebuild_from_type_v2

        return _rebuild_from_type_v2, (function, type(t), arguments, state)


class _Quick(_Names, pickle.Pickler):
    """The interpreter's pickler. It writes names as they are; `dumped` replaces them."""

    def __init__(self, file, protocol, persistent):
        super().__init__(file, protocol)
        self.persistent_id = persistent
        self.names = {}

    def note(self, module, name, public):
        if module != public:
            self.names[module, name] = public


class _Exact(_Names, pickle._Pickler):
    """The pickler in Python, which lets every name be written as it should be."""

    def __init__(self, file, protocol, persistent):
        super().__init__(file, protocol)
        self.persistent_id = persistent
        self.public = None

    def note(self, module, name, public):
        self.public = (public, name)

    def save_global(self, obj, name=None):
        found, self.public = self.public, None
        if found is None:
            known = public_name(obj)
            found = known and (known[2], name or known[1])
        if found is None:
            return super().save_global(obj, name)
        module, name = found
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)


def dumped(obj, protocol, persistent):
    """`obj` as a pickle. `persistent(obj)` gives the persistent id of storages, None for others.

    Globals are written once each, as lines of their own after an opcode; where such a line occurs exactly
    once it is the one to replace. Otherwise (text that looks like it, newer protocols) the slow
    pickler writes everything again.
    """
    out = io.BytesIO()
    if protocol == 2:
        pickler = _Quick(out, protocol, persistent)
        pickler.dump(obj)
        data = out.getvalue()
        lines = {
            f"c{module}\n{name}\n".encode(): f"c{public}\n{name}\n".encode()
            for (module, name), public in pickler.names.items()
        }
        if all(data.count(line) == 1 for line in lines):
            for line, wanted in lines.items():
                data = data.replace(line, wanted)
            return data
        out = io.BytesIO()
    _Exact(out, protocol, persistent).dump(obj)
    return out.getvalue()


def dumped_by(pickle_module, obj, protocol, persistent):
    """The same through another module that pickles (dill, cloudpickle)."""

    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj):
            return persistent(obj)

    out = io.BytesIO()
    Pickler(out, protocol=protocol).dump(obj)
    data = out.getvalue()
    return _renamed(data) if protocol < 4 and b"lamina" in data else data


def _renamed(data):
    """A pickle of protocol 3 or less with our names replaced."""
    import pickletools

    pieces, at = [], 0
    for opcode, arg, position in pickletools.genops(data):
        if opcode.name != "GLOBAL":
            continue
        module, _, name = arg.partition(" ")
        if module == "lamina" or module.startswith("lamina."):
            renamed = "torch" + module[6:]
            renamed = _PLACES.get((renamed, name), renamed)
            pieces.append(data[at:position] + f"c{renamed}\n{name}\n".encode())
            at = position + len(f"c{module}\n{name}\n".encode())
    return b"".join([*pieces, data[at:]])


# ---- reading with code allowed --------------------------------------------------------------------


@functools.lru_cache(maxsize=4)
def _unpickler_class(pickle_module):
    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            if module == "torch" or module.startswith("torch."):
                found = _ours(module, name)
                if found is not None:
                    return found
                from lamina._missing import missing

                raise missing(f"{module}.{name}")
            return super().find_class(module, name)

    return Unpickler


def _ours(module, name):
    """What a name of PyTorch is here; None where there is none."""
    from importlib import import_module

    if module.startswith("torch.cuda") and name in _storage._NAMES:
        return getattr(_storage, name)
    try:
        place = import_module("lamina" + module[5:])
        found = place
        for part in name.split("."):
            found = getattr(found, part)
        return found
    except (ImportError, AttributeError):
        return None


def loaded(data, pickle_module, persistent_load, arguments):
    """An object from a pickle that may call whatever it names; (object, how many bytes it took)."""
    file = io.BytesIO(data)
    unpickler = _unpickler_class(pickle_module)(file, **arguments)
    if persistent_load is not None:
        unpickler.persistent_load = persistent_load
    return unpickler.load(), file.tell()
