"""The older file format of storages, which plain pickles of tensors hold inside; torch reads and writes it, too."""

import io
import pickle
import struct

from lamina import _C
from lamina import storage as storage_module

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001


def bytes_of(storage):
    """A storage as a stream of pickles and bytes, readable by torch."""
    out = io.BytesIO()
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {"protocol_version": _PROTOCOL, "little_endian": True, "type_sizes": sizes}
    for value in (_MAGIC, _PROTOCOL, info):
        pickle.dump(value, out, protocol=2)
    # The object is a persistent id, whose class must be named torch.FloatStorage.
    name = storage_module._BY_DTYPE.get(storage_module._short(storage.dtype))
    if name is None:
        raise TypeError(f"pickle: storages of {storage.dtype} have no name in this format")
    out.write(_persistent(name, "0", len(storage)))
    pickle.dump(["0"], out, protocol=2)
    out.write(struct.pack("<q", len(storage)))
    out.write(bytes(storage.untyped()))
    return out.getvalue()


def _persistent(name, key, count):
    def text(s):
        return b"X" + struct.pack("<I", len(s)) + s.encode()

    number = pickle.dumps(count, protocol=2)[2:-1]
    return b"".join(
        (b"\x80\x02(", text("storage"), f"ctorch\n{name}\n".encode(), text(key), text("cpu"),
         number, b"NtQ.")
    )  # fmt: skip


class _Reader(pickle.Unpickler):
    """Reads the structure of the older format; the only classes are those of storages."""

    def __init__(self, file, storages):
        super().__init__(file)
        self.storages = storages

    def find_class(self, module, name):
        if (
            module in ("torch", "torch.storage", "lamina", "lamina.storage")
            and name in storage_module._NAMES
        ):
            return getattr(storage_module, name)
        raise pickle.UnpicklingError(f"storage: the class {module}.{name} is not allowed here")

    def persistent_load(self, ident):
        kind, storage_type, key, _, count = ident[:5]
        if kind != "storage" or not 0 <= count < 2**48:
            raise pickle.UnpicklingError(f"storage: unknown entry {kind!r}")
        self.storages[key] = (storage_type.dtype, count)
        return key


def load(data):
    """A storage from such a stream. Raises UnpicklingError where it is none."""
    file = io.BytesIO(data)
    storages = {}
    if _Reader(file, storages).load() != _MAGIC:
        raise pickle.UnpicklingError("storage: no magic number")
    _Reader(file, storages).load()
    _Reader(file, storages).load()
    wanted = _Reader(file, storages).load()
    keys = _Reader(file, storages).load()
    found = {}
    for key in keys:
        dtype, _ = storages[key]
        (count,) = struct.unpack("<q", file.read(8))
        content = file.read(count * dtype.itemsize)
        if count < 0 or len(content) != count * dtype.itemsize:
            raise pickle.UnpicklingError("storage: the stream ends too early")
        bytes_ = _C._storage_from_buffer(bytearray(content))
        found[key] = storage_module.TypedStorage(wrap_storage=bytes_.clone(), dtype=dtype)
    return found[wanted]
