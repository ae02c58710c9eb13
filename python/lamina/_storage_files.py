"""Storages inside of plain pickles: each is a stream in the format before the zip archive, which torch reads, too."""

import io
import pickle

from lamina import _weights_only_unpickler as _machine
from lamina.serialization import _legacy
from lamina.serialization._locations import default_restore_location


def bytes_of(storage):
    """A storage as a stream of pickles and bytes."""
    out = io.BytesIO()
    _legacy.save(storage, out, pickle, 2)
    return out.getvalue()


def _unpickle(data, persistent_load):
    machine = _machine.Unpickler(data)
    machine.persistent_load = persistent_load
    return machine.load(), machine.position


def load(data):
    """What such a stream holds; no code runs. Raises UnpicklingError where it is none."""
    try:
        return _legacy.load(data, default_restore_location, _unpickle)
    except (RuntimeError, EOFError) as error:
        raise pickle.UnpicklingError(f"storage: {error}") from None
