"""The formats before the zip archive: a stream of pickles and bytes, and a tar of three files."""

import io
import pickle
import struct
import sys

from lamina import _C
from lamina import storage as _storage

from . import _pickling
from ._locations import location_tag

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_MAX_COUNT = 2**48


def save(obj, file, pickle_module, pickle_protocol):
    """Write the stream of pickles and bytes."""
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    found = {}
    keys = {}

    def persistent(value):
        if not isinstance(value, _storage.TypedStorage | _C.UntypedStorage):
            return None
        untyped = getattr(value, "_untyped_storage", value)
        dtype = getattr(value, "dtype", _C.uint8)
        key = keys.setdefault(untyped._cdata, str(len(keys)))
        count = untyped.nbytes() // dtype.itemsize
        if key in found and found[key][1] != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        found[key] = (untyped, dtype)
        return "storage", storage_type(value), key, location_tag(value), count, None

    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, info):
        file.write(pickle.dumps(value, pickle_protocol))
    if pickle_module is pickle:
        file.write(_pickling.dumped(obj, pickle_protocol, persistent))
    else:
        file.write(_pickling.dumped_by(pickle_module, obj, pickle_protocol, persistent))
    names = sorted(found)
    file.write(pickle.dumps(names, pickle_protocol))
    if hasattr(file, "flush"):
        file.flush()
    for key in names:
        untyped, dtype = found[key]
        file.write(struct.pack("<q", untyped.nbytes() // dtype.itemsize))
        file.write(memoryview(untyped))


def storage_type(storage):
    """The class that a persistent id names: FloatStorage and so on, or UntypedStorage."""
    if isinstance(storage, _C.UntypedStorage):
        return _C.UntypedStorage
    name = _storage._BY_DTYPE.get(_storage._short(storage.dtype))
    return getattr(_storage, name) if name else _C.UntypedStorage


def load(data, restore, unpickle):
    """An object from a stream in `data`, a bytes-like object.

    `unpickle(data, persistent_load)` gives an object and how many bytes it took.
    """
    view = memoryview(data)
    at = 0
    storages, views = {}, {}

    def persistent(pid):
        if not isinstance(pid, tuple) or not pid:
            raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")
        kind = pid[0].decode("ascii") if isinstance(pid[0], bytes) else pid[0]
        if kind == "module":
            return pid[1]  # a class with its source: the class alone
        if kind != "storage" or len(pid) < 6:
            raise pickle.UnpicklingError(f"unknown persistent id {kind!r}")
        cls, key, location, count, window = pid[1:6]
        location = location.decode("ascii") if isinstance(location, bytes) else location
        dtype = _dtype_of(cls)
        if not isinstance(count, int) or not 0 <= count < _MAX_COUNT:
            raise pickle.UnpicklingError(f"storage: a wrong number of elements, {count!r}")
        if key not in storages:
            if count * dtype.itemsize > len(view):
                raise pickle.UnpicklingError(
                    f"storage: {count * dtype.itemsize} bytes are promised, the file has {len(view)}"
                )
            storage = restore(_C.UntypedStorage(count * dtype.itemsize), location)
            storages[key] = _storage.TypedStorage(
                wrap_storage=getattr(storage, "_untyped_storage", storage), dtype=dtype
            )
        whole = storages[key]
        if window is None:
            return whole
        name, offset, size = window
        if name not in views:
            width = dtype.itemsize
            part = whole._untyped_storage[offset * width : (offset + size) * width]
            views[name] = _storage.TypedStorage(wrap_storage=part, dtype=dtype)
        return views[name]

    def take():
        nonlocal at
        value, used = unpickle(view[at:], persistent)
        at += used
        return value

    magic = take()
    if magic != MAGIC_NUMBER:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = take()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    info = take()
    result = take()
    keys = take()
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise RuntimeError("the list of storages is no list of texts; corrupt file?")
    for key in keys:
        if key not in storages:
            raise RuntimeError(f"storage {key!r} has bytes, but nothing refers to it")
        storage = storages[key]
        if at + 8 > len(view):
            raise EOFError("Ran out of input")
        (count,) = struct.unpack_from("<q", view, at)
        size = count * storage.dtype.itemsize
        if count < 0 or size > storage._untyped_storage.nbytes() or at + 8 + size > len(view):
            raise RuntimeError(
                f"storage has wrong byte size: expected {storage._untyped_storage.nbytes()} got {size}"
            )
        if storage.device.type == "cpu" and size:
            target = memoryview(storage._untyped_storage)
            target[:size] = view[at + 8 : at + 8 + size]
            if isinstance(info, dict) and not info.get("little_endian", True):
                storage._untyped_storage.byteswap(storage.dtype)
        at += 8 + size
    return result


def _dtype_of(cls):
    if cls is _C.UntypedStorage:
        return _C.uint8
    dtype = getattr(cls, "dtype", None)
    if not isinstance(dtype, _C.dtype):
        raise pickle.UnpicklingError(f"storage: {cls!r} is no class of storages")
    return dtype


# ---- tar ------------------------------------------------------------------------------------------


def is_tar(data):
    """Whether this looks like a tar archive."""
    return len(data) > 262 and bytes(data[257:262]) == b"ustar"


def load_tar(data, restore, pickle_module, arguments):
    """An object from the oldest format: a tar of `storages`, `tensors` and `pickle`."""
    import tarfile

    objects = {}

    with tarfile.open(fileobj=io.BytesIO(bytes(data)), mode="r:") as tar:

        def member(name):
            for prefix in ("", "./"):
                try:
                    file = tar.extractfile(prefix + name)
                except KeyError:
                    continue
                if file is not None:
                    return file
            raise RuntimeError(f"tar archive without a file {name!r}")

        def several(text):
            value, used = _pickling.loaded(text, pickle_module, None, arguments)
            return value, text[used:]

        count, rest = several(member("storages").read())
        for _ in range(count):
            (key, location, cls), rest = several(rest)
            dtype = _dtype_of(cls)
            (n,) = struct.unpack_from("<q", rest)
            size = n * dtype.itemsize
            if n < 0 or 8 + size > len(rest):
                raise RuntimeError("tar archive: a storage ends too early")
            untyped = _C.UntypedStorage(size)
            memoryview(untyped)[:] = rest[8 : 8 + size]
            rest = rest[8 + size :]
            objects[key] = _storage.TypedStorage(
                wrap_storage=restore(untyped, location), dtype=dtype
            )
        views, rest = several(rest)
        for target, root, offset, size in views:
            whole = objects[root]
            width = whole.dtype.itemsize
            part = whole._untyped_storage[offset * width : (offset + size) * width]
            objects[target] = _storage.TypedStorage(wrap_storage=part, dtype=whole.dtype)
        count, rest = several(member("tensors").read())
        for _ in range(count):
            (key, storage_id, _cls), rest = several(rest)
            storage = objects[storage_id]
            (ndim,) = struct.unpack_from("<i", rest)
            sizes = struct.unpack_from(f"<{ndim}q", rest, 8)
            strides = struct.unpack_from(f"<{ndim}q", rest, 8 + 8 * ndim)
            (offset,) = struct.unpack_from("<q", rest, 8 + 16 * ndim)
            rest = rest[16 + 16 * ndim :]
            objects[key] = _C._from_storage(
                storage._untyped_storage, storage.dtype, offset, sizes, strides
            )

        def persistent(pid):
            if isinstance(pid, tuple):
                return pid[0]
            return objects[int(pid)]

        value, _ = _pickling.loaded(member("pickle").read(), pickle_module, persistent, arguments)
        return value
