"""Where storages are put: the tags that files give them, and what brings a storage back to its place."""

import lamina
from lamina import storage as _storage

_registry: list = []


def register_package(priority, tagger, deserializer):
    """Add a kind of device: what tags its storages, and what puts a storage there again.

    Functions of a smaller `priority` are asked first; each may answer None.
    """
    _registry.append((priority, tagger, deserializer))
    _registry.sort(key=lambda entry: entry[0])


def _device_of(storage):
    return getattr(storage, "_untyped_storage", storage).device.type


def _cpu_tag(storage):
    return "cpu" if _device_of(storage) == "cpu" else None


def _cpu_restore(storage, location):
    return storage if location == "cpu" else None


def _meta_tag(storage):
    return "meta" if _device_of(storage) == "meta" else None


def _meta_restore(storage, location):
    if location != "meta":
        return None
    return _storage.UntypedStorage(storage.nbytes(), device="meta")


def _absent(name):
    """A kind of device that is not here: to ask for it is an error."""

    def restore(storage, location):
        if not location.startswith(name):
            return None
        what = "CUDA" if name == "cuda" else name.upper()
        raise RuntimeError(
            f"Attempting to deserialize object on a {what} device but "
            f"torch.{name}.is_available() is False. If you are running on a CPU-only machine, "
            "please use torch.load with map_location=torch.device('cpu') to map your storages to "
            "the CPU."
        )

    return restore


register_package(10, _cpu_tag, _cpu_restore)
for _priority, _name in ((20, "cuda"), (21, "mps"), (23, "hpu"), (24, "xpu")):
    register_package(_priority, lambda storage: None, _absent(_name))
register_package(22, _meta_tag, _meta_restore)


def location_tag(storage):
    """The tag under which a storage is saved. Raises RuntimeError for an unknown kind."""
    for _, tagger, _ in _registry:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {lamina.typename(storage)}")


def default_restore_location(storage, location):
    """A storage at the place that its tag names. Raises RuntimeError where that is not here."""
    for _, _, restore in _registry:
        result = restore(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        f"don't know how to restore data location of {lamina.typename(storage)} "
        f"(tagged with {location})"
    )


def validate_cuda_device(location):
    """The index of a CUDA device. Raises RuntimeError: there is none."""
    _absent("cuda")(None, "cuda")


def validate_hpu_device(location):
    """The index of an HPU. Raises RuntimeError: there is none."""
    _absent("hpu")(None, "hpu")


def restorer(map_location):
    """What `load` calls for each storage, from its argument."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):

        def restore(storage, location):
            return default_restore_location(storage, map_location.get(location, location))

    elif isinstance(map_location, str | bytes):
        target = map_location.decode() if isinstance(map_location, bytes) else map_location

        def restore(storage, location):
            return default_restore_location(storage, target)

    elif isinstance(map_location, lamina.device):

        def restore(storage, location):
            return default_restore_location(storage, str(map_location))

    else:

        def restore(storage, location):
            result = map_location(storage, location)
            return default_restore_location(storage, location) if result is None else result

    return restore
