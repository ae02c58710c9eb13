"""Storages: the bytes behind tensors, with and without an element type, and how pickles hold them."""

from lamina import _C
from lamina._C import UntypedStorage

_NAMES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
_BY_DTYPE = {dtype: name for name, dtype in _NAMES.items()}


class TypedStorage:
    """Bytes seen as elements of one type."""

    is_sparse = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = dtype if dtype is not None else _C.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        elif len(args) == 1 and not isinstance(args[0], int):
            self._untyped_storage = _C.tensor(args[0], dtype=self.dtype).untyped_storage()
        else:
            size = args[0] if args else 0
            self._untyped_storage = UntypedStorage(size * self.dtype.itemsize)

    def _tensor(self):
        return _C._from_storage(self._untyped_storage, self.dtype)

    def untyped(self):
        """The bytes."""
        return self._untyped_storage

    @property
    def device(self):
        """Where the bytes are."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """False."""
        return False

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def size(self):
        """Number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def nbytes(self):
        """Number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """Address of the first byte."""
        return self._untyped_storage.data_ptr()

    def type(self, dtype=None):  # noqa: A003
        """The class's name."""
        return "torch." + _BY_DTYPE.get(_short(self.dtype), "TypedStorage")

    pickle_storage_type = type

    def __getitem__(self, index):
        got = self._tensor()[index]
        if isinstance(index, slice):
            start = got.storage_offset() * self.dtype.itemsize
            part = self._untyped_storage[start : start + got.numel() * self.dtype.itemsize]
            return TypedStorage(wrap_storage=part, dtype=self.dtype)
        return got.item()

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self):
        """The elements."""
        return self._tensor().tolist()

    def fill_(self, value):
        """Set all elements."""
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Copy the elements of another storage."""
        self._tensor().copy_(source._tensor())
        return self

    def clone(self):
        """A storage with copies of the bytes."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self):
        """The storage itself."""
        return self

    def resize_(self, size):
        """Another number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def is_shared(self):
        """Whether other processes see the bytes."""
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        """Move the bytes to memory that other processes can see."""
        self._untyped_storage.share_memory_()
        return self

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        return TypedStorage(wrap_storage=deep_copied(self._untyped_storage, memo), dtype=self.dtype)

    _deepcopy = __deepcopy__

    def __reduce__(self):
        from lamina._storage_files import bytes_of

        return _load_from_bytes, (bytes_of(self),)

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self):
        return hash(self._untyped_storage)

    def __repr__(self):
        values = "".join(f" {v}\n" for v in self.tolist())
        return f"{values}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _short(dtype):
    return str(dtype).removeprefix("torch.")


class _LegacyType(type):
    """The type of FloatStorage and its kin; their instances are TypedStorages."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, TypedStorage) and obj.dtype == cls.dtype

    def __call__(cls, *args, wrap_storage=None, **_):
        if wrap_storage is not None and isinstance(wrap_storage, TypedStorage):
            wrap_storage = wrap_storage.untyped()
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)


def _class(name):
    content = {
        "dtype": getattr(_C, _NAMES[name]),
        "__module__": __name__.partition(".")[0],
        "__doc__": f"Storages of {_NAMES[name]}.",
    }
    return _LegacyType(name, (), content)


globals().update({name: _class(name) for name in _NAMES})


def deep_copied(storage, memo):
    """A copy of the bytes; the same one for each tensor on them that one deepcopy meets."""
    copies = memo.setdefault("torch", {})
    if storage._cdata not in copies:
        copies[storage._cdata] = (storage.clone(), storage)  # the old one stays, and its address
    return copies[storage._cdata][0]


def _load_from_bytes(data):
    """A storage from the bytes that a pickle holds. Raises UnpicklingError where they are none."""
    from lamina._storage_files import load

    return load(data)


# ---- methods of UntypedStorage --------------------------------------------------------------------


def _bytes_tensor(storage):
    return _C._from_storage(storage, _C.uint8)


def _fill(storage, value):
    _bytes_tensor(storage).fill_(value)
    return storage


def _copy(storage, source, non_blocking=None):
    _bytes_tensor(storage).copy_(_bytes_tensor(source))
    return storage


def _resize(storage, size):
    if not storage.resizable():
        raise RuntimeError("resize_: trying to resize storage that is not resizable")
    old = min(size, storage.nbytes())
    fresh = bytearray(size)
    fresh[:old] = bytes(storage)[:old]
    _C._storage_replace(storage, fresh)
    return storage


def _is_shared(storage):
    from lamina.multiprocessing import _sharing

    return _sharing.handle_of(storage) is not None


def _share(storage):
    from lamina.multiprocessing import _sharing

    _sharing.share(storage)
    return storage


def _deepcopy(storage, memo):
    return deep_copied(storage, memo)


def _to(storage, device=None, non_blocking=False):
    if device is not None and _C.device(device).type != storage.device.type:
        return UntypedStorage(storage.nbytes(), device=device)
    return storage


def _is_pinned(storage, device="cuda"):
    return False


def _type(storage, dtype=None):
    return "torch.storage.UntypedStorage"


def _new(storage):
    return UntypedStorage(0, device=storage.device)


def _byteswap(storage, dtype):
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if width > 1:
        data = _bytes_tensor(storage)
        data = data[: data.numel() // width * width].view(-1, width)
        data.copy_(data.flip(1))


def _from_file(filename, shared=False, nbytes=0, size=0):
    """The bytes of a file, mapped.

    Shared: what is written goes to the file, which is made as large as needed. Otherwise it must
    have that many bytes, and writes stay private.
    """
    import mmap
    import os

    count = nbytes or size
    if count < 0:
        raise RuntimeError(f"from_file: the size must not be negative; got {count}")
    descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o666)
    try:
        there = os.fstat(descriptor).st_size
        if shared and there < count:
            os.ftruncate(descriptor, count)
        elif there < count:
            raise RuntimeError(
                f"from_file: the file is too short; got {there} bytes in {filename!r}; "
                f"expected {count}"
            )
        if count == 0:
            return UntypedStorage(0)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        mapped = mmap.mmap(descriptor, count, access=access)
    finally:
        os.close(descriptor)
    return _C._storage_from_buffer(mapped)


def _rebuild_untyped(data):
    return _C._storage_from_buffer(bytearray(data)).clone()


def _reduce(storage):
    return _rebuild_untyped, (bytes(storage),)


__all__ = ["TypedStorage", "UntypedStorage", *_NAMES]
