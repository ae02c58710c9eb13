"""From a list of samples to one batch: numbers and arrays become tensors, containers stay containers."""

import collections.abc
import copy
import re
import sys

import lamina

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data):
    """NumPy arrays as tensors, inside of dicts, lists and tuples too; everything else as it is."""
    kind = type(data)
    if isinstance(data, lamina.Tensor):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_", "bytes_"):
        if kind.__name__ == "ndarray" and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return lamina.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        converted = {key: default_convert(value) for key, value in data.items()}
        return _like_mapping(data, converted)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def _like_mapping(elem, content):
    """A mapping of the kind of `elem` with that content, if its class lets one be made."""
    try:
        if isinstance(elem, collections.abc.MutableMapping):
            clone = copy.copy(elem)
            clone.update(content)
            return clone
        return type(elem)(content)
    except TypeError:
        return content


def _like_sequence(elem, content):
    try:
        if isinstance(elem, collections.abc.MutableSequence):
            clone = copy.copy(elem)
            for i, item in enumerate(content):
                clone[i] = item
            return clone
        return type(elem)(content)
    except TypeError:
        return content


def collate(batch, *, collate_fn_map=None):
    """One batch from a list of samples.

    `collate_fn_map` has functions by type, or by tuple of types; an exact match counts first, then
    the first type of which the samples are instances. Mappings, tuples and sequences are taken
    apart. Raises TypeError for other samples, RuntimeError for sequences of different lengths.
    """
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(elem, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, collections.abc.Mapping):
        content = {
            key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in elem
        }
        return _like_mapping(elem, content)
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)))
    if isinstance(elem, collections.abc.Sequence):
        length = len(elem)
        if not all(len(sample) == length for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch)]
        return columns if isinstance(elem, tuple) else _like_sequence(elem, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors, stacked; in a worker process in shared memory, so that sending them copies nothing."""
    elem = batch[0]
    from .worker import get_worker_info

    if get_worker_info() is not None and elem.numel() and type(elem) is lamina.Tensor:
        same = all(t.shape == elem.shape and t.dtype == elem.dtype for t in batch)
        if same and not elem.requires_grad:
            from lamina.multiprocessing import _sharing

            size = (len(batch), *elem.shape)
            storage = _sharing.new_shared(len(batch) * elem.numel() * elem.element_size())
            out = lamina._C._from_storage(storage, elem.dtype, 0, size)
            return lamina.stack(list(batch), 0, out=out)
    return lamina.stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """NumPy arrays, as tensors."""
    elem = batch[0]
    if np_str_obj_array_pattern.search(elem.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(elem.dtype))
    return collate([lamina.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """NumPy scalars, as one tensor."""
    return lamina.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    """Floats, as one float64 tensor."""
    return lamina.tensor(batch, dtype=lamina.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Integers, as one tensor."""
    return lamina.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Texts, as they are."""
    return batch


default_collate_fn_map = {lamina.Tensor: collate_tensor_fn}


def _add_numpy():
    """NumPy's types, once it has been imported by somebody."""
    np = sys.modules.get("numpy")
    if np is not None and getattr(np, "ndarray", None) not in (None, *default_collate_fn_map):
        plain = {k: v for k, v in default_collate_fn_map.items() if k in (float, int, str, bytes)}
        for key in plain:
            del default_collate_fn_map[key]
        default_collate_fn_map[np.ndarray] = collate_numpy_array_fn
        default_collate_fn_map[(np.bool_, np.number, np.object_)] = collate_numpy_scalar_fn
        default_collate_fn_map.update(plain)


default_collate_fn_map[float] = collate_float_fn
default_collate_fn_map[int] = collate_int_fn
default_collate_fn_map[str] = collate_str_fn
default_collate_fn_map[bytes] = collate_str_fn
_add_numpy()


def default_collate(batch):
    """Samples collated as `collate` does with `default_collate_fn_map`."""
    _add_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)
