"""Memory that other processes see: an anonymous file, mapped, whose descriptor is passed on."""

import mmap
import os
import weakref
from multiprocessing import reduction

from lamina import _C


class _Memory(mmap.mmap):
    """A mapped file that remembers its descriptor."""

    def __new__(cls, descriptor, size):
        self = super().__new__(cls, descriptor, size)
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        return self


# Mapped memory by its address: whoever looks at it keeps it.
_known = weakref.WeakValueDictionary()


def _storage_of(memory):
    storage = _C._storage_from_buffer(memory)
    _known[storage.data_ptr()] = memory
    return storage


def handle_of(storage):
    """The memory of a shared storage; None of others."""
    return _known.get(storage.data_ptr()) if storage.nbytes() else None


def new_shared(size):
    """A storage of `size` zero bytes that other processes can see."""
    descriptor = os.memfd_create("lamina")
    os.ftruncate(descriptor, size)
    return _storage_of(_Memory(descriptor, size))


def share(storage):
    """Move a storage's bytes to memory that other processes can see, unless they are there."""
    memory = handle_of(storage)
    if memory is not None or storage.nbytes() == 0:
        return memory
    descriptor = os.memfd_create("lamina")
    os.ftruncate(descriptor, storage.nbytes())
    memory = _Memory(descriptor, storage.nbytes())
    memory[:] = bytes(storage)
    _C._storage_replace(storage, memory)
    _known[storage.data_ptr()] = memory
    return memory


def _rebuild_storage(handle, size):
    if handle is None:
        return _C.UntypedStorage()
    return _storage_of(_Memory(handle.detach(), size))


def _reduce_storage(storage):
    memory = share(storage)
    if memory is None:
        return _rebuild_storage, (None, 0)
    return _rebuild_storage, (reduction.DupFd(memory.descriptor), storage.nbytes())


def _rebuild_tensor(kind, storage, dtype, offset, size, stride, requires_grad, state):
    tensor = _C._from_storage(storage, dtype, offset, size, stride)
    if kind is not _C.Tensor:
        tensor = tensor.as_subclass(kind)
    if requires_grad:
        tensor.requires_grad_()
    tensor.__dict__.update(state)
    return tensor


def _reduce_tensor(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does "
            "not support crossing process boundaries. If you just want to transfer the data, call "
            "detach() on the tensor before serializing."
        )
    if tensor.is_meta or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(2)
    return _rebuild_tensor, (
        type(tensor), tensor.untyped_storage(), tensor.dtype, tensor.storage_offset(),
        tuple(tensor.size()), tensor.stride(), tensor.requires_grad, dict(tensor.__dict__),
    )  # fmt: skip


def register():
    """Tell multiprocessing's pickler; called by the import of lamina.multiprocessing."""
    reduction.ForkingPickler.register(_C.Tensor, _reduce_tensor)
    reduction.ForkingPickler.register(_C.UntypedStorage, _reduce_storage)
