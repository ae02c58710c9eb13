"""Files of the safetensors format, read and written here: a JSON header, then the bytes of all tensors.

``save_file`` replaces a file at once; ``load_file`` maps it into memory, so that a tensor's bytes are read when they
are first used. Every number of the header is checked against the file.
"""

import json
import mmap
import os
import struct

import lamina
from lamina import _C
from lamina.serialization import _replaced

_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "C64": "complex64", "C128": "complex128",
}  # fmt: skip
_MAX_HEADER = 100_000_000


class SafetensorError(Exception):
    """A file that is not what the format asks for."""


def _codes():
    return {getattr(_C, name): code for code, name in _NAMES.items() if hasattr(_C, name)}


def _header(tensors, metadata):
    codes = _codes()
    header = {}
    if metadata is not None:
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in metadata.items()):
            raise TypeError("save: metadata must be a dict of texts")
        header["__metadata__"] = dict(metadata)
    at, ordered = 0, []
    # Wide types first, so that every tensor is aligned to its own width.
    for name in sorted(tensors, key=lambda n: (-tensors[n].element_size(), n)):
        t = tensors[name]
        if t.dtype not in codes:
            raise SafetensorError(
                f"save: {name!r} has type {t.dtype}, which the format does not know"
            )
        size = t.numel() * t.element_size()
        header[name] = {
            "dtype": codes[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]
        }  # fmt: skip
        at += size
        ordered.append(t)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, ordered


def _checked(tensors):
    """The tensors as they will be written. Raises where two share their bytes or one has none."""
    if not isinstance(tensors, dict):
        raise ValueError(
            f"save: expected a dict of names and tensors; got {type(tensors).__name__}"
        )
    seen, out = {}, {}
    for name, t in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"save: {name!r} is no name for a tensor")
        if not isinstance(t, lamina.Tensor):
            raise ValueError(f"save: key {name!r} is invalid, expected a Tensor but got {type(t)}")
        if t.is_meta:
            raise ValueError(f"save: {name!r} is on the meta device and has no data")
        t = t.detach()
        where = t.untyped_storage()._cdata
        if t.numel() and where in seen:
            raise RuntimeError(
                f"save: {seen[where]!r} and {name!r} share memory, which the format cannot say; "
                "save one of them, or a copy"
            )
        seen[where] = name
        if not t.is_contiguous() or t.is_conj() or t.is_neg():
            t = t.resolve_conj().resolve_neg().contiguous()
        out[name] = t
    return out


def _bytes(t):
    size = t.numel() * t.element_size()
    if not size:
        return b""
    start = t.storage_offset() * t.element_size()
    return memoryview(t.untyped_storage())[start : start + size]


def save(tensors, metadata=None):
    """A dict of tensors as bytes. Raises RuntimeError for tensors that share memory."""
    head, ordered = _header(_checked(tensors), metadata)
    return b"".join([head, *map(_bytes, ordered)])


def save_file(tensors, filename, metadata=None):
    """A dict of tensors as a file; the file gets all of it or stays as it was."""
    head, ordered = _header(_checked(tensors), metadata)
    with _replaced(filename) as file:
        file.write(head)
        for t in ordered:
            file.write(_bytes(t))


class _File:
    """The header of a file, checked, and tensors on its bytes."""

    def __init__(self, data):
        view = memoryview(data)
        if len(view) < 8:
            raise SafetensorError("the file is too short for a header")
        (n,) = struct.unpack_from("<Q", view)
        if n > min(_MAX_HEADER, len(view) - 8):
            raise SafetensorError(f"the header is said to have {n} bytes; the file has {len(view)}")
        try:
            header = json.loads(bytes(view[8 : 8 + n]).decode("utf-8"), object_pairs_hook=_unique)
        except (ValueError, RecursionError) as error:
            raise SafetensorError(f"the header is no JSON: {error}") from None
        if not isinstance(header, dict):
            raise SafetensorError("the header is no JSON object")
        self.start, self.data, self.view = 8 + n, data, view
        self.metadata = header.pop("__metadata__", None)
        room = len(view) - self.start
        self.entries = {}
        for name, entry in header.items():
            self.entries[name] = self._entry(name, entry, room)
        at = 0
        for name, (_, _, begin, end) in sorted(self.entries.items(), key=lambda e: e[1][2:]):
            if begin != at:
                raise SafetensorError(
                    f"{name!r} begins at {begin}; expected {at}: a hole or an overlap"
                )
            at = end
        if at != room:
            raise SafetensorError(f"the tensors take {at} bytes; the file has {room} for them")

    @staticmethod
    def _entry(name, entry, room):
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise SafetensorError(f"{name!r} is not described by dtype, shape and data_offsets")
        code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
        dtype = getattr(_C, _NAMES.get(code, ""), None) if isinstance(code, str) else None
        if dtype is None:
            raise SafetensorError(f"{name!r} has an unknown type, {code!r}")
        if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
            raise SafetensorError(
                f"{name!r}: shape and data_offsets must be lists of natural numbers"
            )
        size = dtype.itemsize
        for n in shape:
            size *= n
            if size > room and 0 not in shape:
                break
        begin, end = offsets
        if 0 in shape:
            size = 0
        if not begin <= end <= room or end - begin != size:
            raise SafetensorError(
                f"{name!r} has {size} bytes by type and shape; data_offsets are {offsets}, "
                f"the file has {room}"
            )
        return dtype, shape, begin, end

    def tensor(self, name, writable):
        dtype, shape, begin, end = self.entries[name]
        if begin == end:
            return _C.empty(shape, dtype=dtype)
        part = self.view[self.start + begin : self.start + end]
        aligned = writable and (self.start + begin) % dtype.itemsize == 0
        if aligned:
            storage = _C._storage_from_buffer(part)
        else:
            storage = _C.UntypedStorage(end - begin)
            memoryview(storage)[:] = part
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= max(n, 1)
        return _C._from_storage(storage, dtype, 0, shape, strides)


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _are_counts(values):
    return isinstance(values, list) and all(
        isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**62 for v in values
    )


def load(data):
    """The tensors of bytes. Raises SafetensorError for what is not of the format."""
    file = _File(data)
    return {name: file.tensor(name, writable=False) for name in file.entries}


def load_file(filename, device="cpu"):
    """The tensors of a file, mapped; what is written to them stays in memory."""
    file = _mapped(filename)
    tensors = {name: file.tensor(name, writable=True) for name in file.entries}
    device = lamina.device(device)
    return tensors if device.type == "cpu" else {n: t.to(device) for n, t in tensors.items()}


def _mapped(filename):
    with open(filename, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise SafetensorError("the file is too short for a header")
        return _File(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))


class safe_open:
    """The names of a file, and its tensors one by one.

    >>> with safe_open(path) as file:
    ...     weight = file.get_tensor("weight")
    """

    def __init__(self, filename, framework="pt", device="cpu"):
        self._file = _mapped(filename)
        self._device = lamina.device(device)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None

    def keys(self):
        """All names, in order."""
        return sorted(self._file.entries)

    offset_keys = keys

    def metadata(self):
        """The file's own texts, or None."""
        return self._file.metadata

    def get_tensor(self, name):
        """One tensor. Raises SafetensorError where there is none of that name."""
        if name not in self._file.entries:
            raise SafetensorError(f"File does not contain tensor {name}")
        return self._file.tensor(name, writable=True).to(self._device)
