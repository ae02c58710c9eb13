"""`save` and `load`: checkpoints in PyTorch's formats, written at once or not at all, read without running code."""

import contextlib
import io
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

import lamina
from lamina import _C
from lamina import _weights_only_unpickler as _machine
from lamina._missing import getattr_of as _getattr_of
from lamina.storage import TypedStorage, UntypedStorage

from . import _legacy, _pickling
from ._archive import ALIGNMENT, Reader, Writer
from ._legacy import MAGIC_NUMBER, PROTOCOL_VERSION, storage_type  # noqa: F401
from ._locations import (
    default_restore_location,
    location_tag,
    register_package,
    restorer,
    validate_cuda_device,
    validate_hpu_device,
)

__all__ = [
    "SourceChangeWarning",
    "mkdtemp",
    "register_package",
    "check_module_version_greater_or_equal",
    "validate_cuda_device",
    "validate_hpu_device",
    "location_tag",
    "default_restore_location",
    "normalize_storage_type",
    "storage_to_tensor_type",
    "save",
    "load",
    "StorageType",
    "LoadEndianness",
    "get_crc32_options",
    "set_crc32_options",
    "get_default_load_endianness",
    "set_default_load_endianness",
    "get_default_mmap_options",
    "set_default_mmap_options",
    "clear_safe_globals",
    "get_safe_globals",
    "add_safe_globals",
    "safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
STORAGE_KEY_SEPARATOR = ","
StorageType = TypedStorage | UntypedStorage
MAP_LOCATION: TypeAlias = (
    Callable[[StorageType, str], StorageType] | _C.device | str | dict[str, str] | None
)
MAP_SHARED, MAP_PRIVATE = 1, 2


class SourceChangeWarning(Warning):
    """The source of a class has changed since the object was saved; nothing warns of it any more."""


class LoadEndianness(Enum):
    """How files that do not say it have ordered the bytes of numbers."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options(threading.local):
    load_endianness = None
    crc32 = True
    mmap_flags = MAP_PRIVATE
    skip_data = False


_options = _Options()


def mkdtemp(*args, **kwargs):
    """tempfile.mkdtemp."""
    import tempfile

    return tempfile.mkdtemp(*args, **kwargs)


# ---- options --------------------------------------------------------------------------------------


def get_default_load_endianness():
    """How files without a record of their byte order are read; None: as this machine orders them."""
    return _options.load_endianness


def set_default_load_endianness(endianness):
    """Set what get_default_load_endianness gives. Raises TypeError for what is no LoadEndianness."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options.load_endianness = endianness


def get_crc32_options():
    """Whether `save` computes checksums of its records."""
    return _options.crc32


def set_crc32_options(compute_crc32):
    """Say whether `save` computes checksums; without them a damaged file is not noticed."""
    _options.crc32 = bool(compute_crc32)


def get_default_mmap_options():
    """How ``load(mmap=True)`` maps: mmap.MAP_PRIVATE or MAP_SHARED."""
    return _options.mmap_flags


class set_default_mmap_options:
    """Set how ``load(mmap=True)`` maps, from now on or for the time of a context.

    MAP_PRIVATE: what is written to tensors stays in memory. MAP_SHARED: it goes to the file.
    """

    def __init__(self, flags):
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = _options.mmap_flags
        _options.mmap_flags = flags

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        _options.mmap_flags = self.prev


class skip_data:
    """`save` leaves room for the bytes of storages, `load` leaves them as they come; names stay."""

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        self._before = _options.skip_data
        _options.skip_data = True

    def __exit__(self, *exc):
        _options.skip_data = self._before


def clear_safe_globals():
    """Allow nothing more than what is allowed by default."""
    _machine._clear_safe_globals()


def get_safe_globals():
    """What was allowed with add_safe_globals."""
    return _machine._get_safe_globals()


def add_safe_globals(safe_globals):
    """Let ``load(weights_only=True)`` build these classes and call these functions.

    Items are classes, functions, or pairs of one and the full name that files give it.
    """
    _machine._add_safe_globals(safe_globals)


class safe_globals(_machine._safe_globals):
    """add_safe_globals for the time of a context."""


def get_unsafe_globals_in_checkpoint(f):
    """Full names that a file (zip format) mentions and ``weights_only=True`` would refuse.

    Raises ValueError for other formats.
    """
    allowed = set(_machine._allowed()) | set(_machine._user_allowed())
    with _opened(f) as file:
        if not _is_zipfile(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = Reader(file)
        if _is_torchscript(reader):
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript "
                "checkpoint"
            )
        names = _machine.get_globals_in_pkl(reader.bytes_of("data.pkl"))
    return sorted(n for n in names if n not in allowed)


# ---- small things ---------------------------------------------------------------------------------


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Whether a module's ``__version__`` is at least that. Raises RuntimeError where it is odd."""
    try:
        version = tuple(
            kind(part)
            for kind, part in zip(map(type, req_version_tuple), module.__version__.split("."))
        )
        return version >= req_version_tuple
    except Exception as error:
        text = f"'{module.__name__}' module version string is malformed '{module.__version__}'"
        if error_if_malformed:
            raise RuntimeError(text) from error
        warnings.warn(text + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


def normalize_storage_type(storage_type):
    """The class itself."""
    return storage_type


def storage_to_tensor_type(storage):
    """FloatTensor for a FloatStorage, and so on."""
    return getattr(lamina, type(storage).__name__.replace("Storage", "Tensor"))


def _get_layout(name):
    """The layout of a name like "torch.strided"."""
    layout = getattr(lamina, name.removeprefix("torch."), None)
    if not isinstance(layout, _C.layout):
        raise pickle.UnpicklingError(f"unknown layout {name!r}")
    return layout


def _is_path(f):
    return isinstance(f, str | os.PathLike)


@contextlib.contextmanager
def _opened(f):
    if _is_path(f):
        with open(f, "rb") as file:
            yield file
        return
    for name in ("read", "seek", "tell"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, OSError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the "
            "data into a buffer like io.BytesIO and try to load from it instead."
        ) from None
    yield f


def _is_zipfile(f):
    start = f.tell()
    magic = f.read(4)
    f.seek(start)
    return bytes(magic) == b"PK\x03\x04"


def _is_torchscript(reader):
    return "constants.pkl" in reader


# ---- saving ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _replaced(path):
    """A new file that takes the place of `path` when all is written, and is gone otherwise."""
    path = os.path.realpath(os.fspath(path))
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    folder, base = os.path.split(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as file:  # a device, a pipe: there is nothing to keep
            yield file
        return
    name = os.path.join(folder, f".{base[:200]}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        mode = os.stat(path).st_mode & 0o7777
    except OSError:
        mode = None
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    except PermissionError:
        if mode is None:
            raise
        with open(path, "wb") as file:  # a file that may be written in a folder that may not
            yield file
        return
    except FileNotFoundError:
        raise RuntimeError(f"Parent directory {folder} does not exist.") from None
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
        if mode is not None:
            os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _check_save_protocol(pickle_module):
    if pickle_module is not pickle and getattr(pickle_module, "__name__", "") == "dill":
        if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
            raise ValueError(
                "'torch' supports dill >= 0.3.1, but you have dill "
                f"{pickle_module.__version__}. Please upgrade dill or switch to 'pickle'"
            )


def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol=DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    """Write an object to a file.

    Parameters
    ----------
    obj
        Anything that can be pickled. Tensors on one storage stay on one storage.
    f
        A path, or an object with ``write``. A path gets the whole file or stays as it was.
    pickle_module, pickle_protocol
        What makes the pickle.
    _use_new_zipfile_serialization
        False writes the format before the zip archive.

    Raises RuntimeError for tensors that see one storage as different types.
    """
    _check_save_protocol(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute; "
            f"got {type(f).__name__}"
        )
    if not _use_new_zipfile_serialization:
        with _replaced(f) if _is_path(f) else contextlib.nullcontext(f) as file:
            _legacy.save(obj, file, pickle_module, pickle_protocol)
        return
    name = "archive"
    if _is_path(f):
        base = os.path.basename(os.fspath(f))
        base = os.fsdecode(base) if isinstance(base, bytes) else base
        name = os.path.splitext(base)[0] or "archive"
        try:
            name.encode("ascii")
        except UnicodeEncodeError:
            name = "archive"
    with _replaced(f) if _is_path(f) else contextlib.nullcontext(f) as file:
        _save_archive(obj, file, name, pickle_module, pickle_protocol, _disable_byteorder_record)


def _save_archive(obj, file, name, pickle_module, protocol, without_byteorder):
    storages, keys, types = {}, {}, {}

    def persistent(value):
        if not isinstance(value, TypedStorage | UntypedStorage):
            return None
        untyped = getattr(value, "_untyped_storage", value)
        dtype = getattr(value, "dtype", _C.uint8)
        identity = untyped._cdata
        key = keys.get(identity)
        if key is None:
            key = keys[identity] = str(len(keys))
            storages[key] = untyped
        if untyped.nbytes() and types.setdefault(key, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        count = untyped.nbytes() // dtype.itemsize
        return "storage", storage_type(value), key, location_tag(value), count

    if pickle_module is pickle:
        data = _pickling.dumped(obj, protocol, persistent)
    else:
        data = _pickling.dumped_by(pickle_module, obj, protocol, persistent)
    writer = Writer(file, name, _options.crc32)
    writer.write_record("data.pkl", data)
    writer.write_record(".format_version", b"1")
    writer.write_record(".storage_alignment", str(ALIGNMENT).encode())
    if not without_byteorder:
        writer.write_record("byteorder", sys.byteorder.encode())
    for key, untyped in storages.items():
        size = untyped.nbytes()
        if _options.skip_data or untyped.device.type == "meta":
            writer.write_record(f"data/{key}", b"", size, skip=True)
        else:
            writer.write_record(f"data/{key}", untyped, size)
    writer.finish()
    if hasattr(file, "flush"):
        file.flush()


# ---- loading --------------------------------------------------------------------------------------

_REFUSED = (
    "Weights only load failed. {advice}\n\tWeightsUnpickler error: {error}\n\nSee the documentation "
    "of torch.load for the types that are accepted by default with weights_only."
)
_ADVICE = (
    "This file can still be loaded, to do so you have two options, do those steps only if you trust "
    "the source of the checkpoint.\n\t(1) Re-running `torch.load` with `weights_only` set to "
    "`False` will likely succeed, but it can result in arbitrary code execution. Do it only if you "
    "got the file from a trusted source.\n\t(2) Alternatively, to load with `weights_only=True` "
    "please check the recommended steps in the following error message."
)


def _refused(error):
    return pickle.UnpicklingError(_REFUSED.format(advice=_ADVICE, error=error))


def _forced(name):
    value = os.environ.get(name, "").lower()
    return value in ("1", "y", "yes", "true")


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only=None,
    mmap=None,
    **pickle_load_args,
):
    """Read an object that `save` (or PyTorch) wrote.

    Parameters
    ----------
    f
        A path or a file that can be read and sought.
    map_location
        Where storages go: a device or its name, a dict from tags to tags, or a function of a storage
        and its tag.
    weights_only
        Default True: a machine of our own builds tensors, containers and allowed classes, and refuses
        everything else by name. False: pickle, which runs what the file says.
    mmap
        Map the file (a path, zip format) instead of reading it.

    Raises UnpicklingError for what is not allowed or damaged, RuntimeError for broken archives.
    """
    if _forced("TORCH_FORCE_WEIGHTS_ONLY_LOAD") and _forced("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"):
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` "
            "should be set, but both were set."
        )
    if _forced("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
        weights_only = True
    elif weights_only is None:
        weights_only = pickle_module is None and not _forced("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    pickle_module = pickle_module or pickle
    if mmap is None:
        mmap = False
    if mmap and not _is_path(f):
        raise ValueError("f must be a file name or path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    restore = restorer(map_location)

    def unpickle(data, persistent_load):
        if not weights_only:
            return _pickling.loaded(data, pickle_module, persistent_load, pickle_load_args)
        machine = _machine.Unpickler(data, encoding=pickle_load_args["encoding"])
        machine.persistent_load = persistent_load
        try:
            return machine.load(), machine.position
        except pickle.UnpicklingError as error:
            raise _refused(error) from None

    with _opened(f) as file:
        if _is_zipfile(file):
            return _load_archive(f, file, restore, unpickle, mmap, weights_only, map_location)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save("
                "_use_new_zipfile_serialization=True)`, please torch.save your checkpoint with this "
                "option in order to use mmap."
            )
        start = file.tell()
        data = file.read()
        if not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"expected a file opened for bytes; read gave {type(data).__name__}")
        if _legacy.is_tar(data):
            if weights_only:
                raise _refused(
                    "Cannot use ``weights_only=True`` with files saved in the legacy .tar format."
                )
            return _legacy.load_tar(data, restore, pickle_module, pickle_load_args)
        if len(data) == 0:
            raise EOFError("Ran out of input")
        try:
            return _legacy.load(data, restore, unpickle)
        finally:
            if not _is_path(f):
                file.seek(start + len(data))


def _load_archive(f, file, restore, unpickle, mmap, weights_only, map_location):
    end = None
    if mmap:
        import mmap as mapping

        shared = _options.mmap_flags == MAP_SHARED
        if shared:
            with open(f, "r+b") as again:
                source = mapping.mmap(again.fileno(), 0, access=mapping.ACCESS_WRITE)
        else:
            source = mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY)
        reader = Reader(source)
    else:
        source = None
        reader = Reader(file)
        end = file.seek(0, os.SEEK_END)
    if _is_torchscript(reader):
        if not weights_only:
            warnings.warn(
                "'torch.load' received a zip file that looks like a TorchScript archive dispatching "
                "to 'torch.jit.load' (call 'torch.jit.load' directly to silence this warning)",
                UserWarning,
                stacklevel=3,
            )
            from lamina.jit._archive import loaded_from

            return loaded_from(reader, map_location, None)
        raise RuntimeError(
            "torch.load: this is a TorchScript archive; got code and constants, expected a "
            "checkpoint of torch.save. Cannot use ``weights_only=True`` with TorchScript archives "
            "passed to ``torch.load``; torch.jit.load reads them"
        )
    persistent_load = _storages(reader, restore, map_location, source)
    result, _ = unpickle(reader.bytes_of("data.pkl"), persistent_load)
    if end is not None and not _is_path(f):
        file.seek(end)
    return result


def _storages(reader, restore, map_location, source=None, folder="data"):
    """What makes storages of persistent ids: their bytes are records below `folder`; `source` is a mapped file."""
    swap = _is_swapped(reader)
    loaded = {}

    def read(key, size):
        record = reader.record(f"{folder}/{key}")
        if record.size < size:
            raise RuntimeError(
                f"record {folder}/{key} has {record.size} bytes; {size} are promised"
            )
        if _options.skip_data or map_location == "meta" or str(map_location) == "meta":
            return UntypedStorage(size, device="meta" if not _options.skip_data else "cpu")
        if source is not None and record.method == 0:
            start = reader.start_of(record)
            if size == 0:
                return UntypedStorage(0)
            return _C._storage_from_buffer(memoryview(source)[start : start + size])
        storage = UntypedStorage(record.size)
        reader.read_into(record, memoryview(storage))
        return storage if size == record.size else storage[:size]

    def persistent_load(pid):
        if not isinstance(pid, tuple) or len(pid) < 5:
            raise pickle.UnpicklingError(f"unknown persistent id {pid!r}")
        kind = pid[0].decode("ascii") if isinstance(pid[0], bytes) else pid[0]
        if kind != "storage":
            raise RuntimeError(
                f"Unknown typename for persistent_load, expected 'storage' but got '{kind}'"
            )
        cls, key, location, count = pid[1:5]
        if key in loaded:
            return loaded[key]
        location = location.decode("ascii") if isinstance(location, bytes) else location
        dtype = _legacy._dtype_of(cls)
        if not isinstance(count, int) or not 0 <= count < 2**48:
            raise pickle.UnpicklingError(f"storage: a wrong number of elements, {count!r}")
        untyped = read(key, count * dtype.itemsize)
        if swap and untyped.device.type == "cpu":
            untyped.byteswap(dtype)
        placed = restore(untyped, location)
        loaded[key] = TypedStorage(
            wrap_storage=getattr(placed, "_untyped_storage", placed), dtype=dtype
        )
        return loaded[key]

    return persistent_load


def _is_swapped(reader):
    """Whether numbers in the archive have their bytes the other way round."""
    if "byteorder" in reader:
        order = bytes(reader.bytes_of("byteorder")).decode("ascii", "replace")
        if order not in ("little", "big"):
            raise RuntimeError("Unknown endianness type: " + order)
        return order != sys.byteorder
    chosen = _options.load_endianness
    if chosen is LoadEndianness.LITTLE:
        return sys.byteorder != "little"
    if chosen is LoadEndianness.BIG:
        return sys.byteorder != "big"
    return False


__getattr__ = _getattr_of(__name__)
