"""vmap: a function of one sample, run for all samples at once."""

import functools

from lamina import _C
from lamina._dims import wrap_dim
from lamina.utils._pytree import (
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_map_only,
    tree_unflatten,
)

__all__ = ["vmap"]


def _name_of(func):
    if isinstance(func, functools.partial):
        return f"functools.partial({_name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


class _Level:
    """What is done inside belongs to one call of vmap."""

    def __init__(self, samples, randomness):
        self.samples, self.randomness = samples, randomness

    def __enter__(self):
        return _C._vmap_enter(self.samples, self.randomness)

    def __exit__(self, *_):
        _C._vmap_leave()


def _flat_inputs(func, in_dims, args):
    """(samples, dimension of them in each leaf or None, leaves, form of the arguments)."""
    name = _name_of(func)
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, list, tuple)):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    leaves, form = tree_flatten(args)
    if isinstance(in_dims, list):
        in_dims = tuple(in_dims)
    dims = _broadcast_to_and_flatten(in_dims, form)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of inputs. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {form}."
        )
    places, samples = [], None
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            places.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(leaf, _C.Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} "
                f"so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        dim %= leaf.dim()
        places.append(dim)
        if samples is None:
            samples = leaf.shape[dim]
        elif samples != leaf.shape[dim]:
            sizes = [
                x.shape[d % x.dim()] for x, d in zip(leaves, dims, strict=True) if d is not None
            ]
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
                "mapped dimension"
            )
    if samples is None:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    return samples, places, leaves, form


def _result(leaf, dim, level, samples, name):
    if not isinstance(leaf, _C.Tensor):
        if dim is None:
            return leaf
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    if dim is None:
        batch = _C._batch_of(leaf)
        if batch is not None and batch[2] >= level:
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return leaf
    dim = wrap_dim(dim, leaf.dim() + 1, f"vmap({name}, ...): ")
    return _C._remove_batch_dim(leaf, level, samples, dim)


def _flat_outputs(outputs, out_dims, name):
    """(leaves, dimension for each, form)."""
    leaves, form = tree_flatten(outputs)

    def refuse():
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"outputs. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {form}."
        )

    if isinstance(outputs, _C.Tensor):
        # One tensor: an int, or a tuple of one.
        if isinstance(out_dims, int) or out_dims is None:
            dims = [out_dims]
        elif isinstance(out_dims, tuple) and len(out_dims) == 1:
            dims = [out_dims[0]]
        else:
            refuse()
    else:
        dims = _broadcast_to_and_flatten(out_dims, form)
        if dims is None:
            refuse()
    return leaves, dims, form


def _run(func, samples, places, leaves, form, out_dims, randomness, kwargs):
    with _Level(samples, randomness) as level:
        given = [
            leaf if dim is None else _C._add_batch_dim(leaf, dim, level)
            for leaf, dim in zip(leaves, places, strict=True)
        ]
        outputs = func(*tree_unflatten(given, form), **kwargs)
        name = _name_of(func)
        found, dims, out_form = _flat_outputs(outputs, out_dims, name)
    for dim in dims:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                f"ints representing where in the outputs the vmapped dimension should appear; got {type(dim)}."
            )
    results = [
        _result(leaf, dim, level, samples, name) for leaf, dim in zip(found, dims, strict=True)
    ]
    return tree_unflatten(results, out_form)


def _in_chunks(func, samples, places, leaves, form, out_dims, randomness, kwargs, size):
    """Some samples at a time; results are joined along the dimension of the samples."""
    parts = []
    dims = out_form = None
    for start in range(0, samples, size):
        length = min(size, samples - start)
        piece = [
            leaf if dim is None else leaf.narrow(dim, start, length)
            for leaf, dim in zip(leaves, places, strict=True)
        ]
        outputs = _run(func, length, places, piece, form, out_dims, randomness, kwargs)
        found, dims, out_form = _flat_outputs(outputs, out_dims, _name_of(func))
        parts.append(found)
    joined = [
        items[0] if dim is None else _C.cat(items, dim)
        for items, dim in zip(zip(*parts, strict=True), dims, strict=True)
    ]
    return tree_unflatten(joined, out_form)


def _check_randomness(randomness):
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that runs `func` for every sample along a dimension of its arguments, all at once.

    ``vmap(func)(x)`` gives what ``stack([func(sample) for sample in x])`` gives, errors included, but every operator
    inside runs once, on all samples. Calls nest, in each other and with `grad`, `vjp`, `jvp` and what is built on them.

    Parameters
    ----------
    func : callable
        Takes tensors, or nested lists, tuples and dicts of them, and gives such.
    in_dims : int or nested structure of int and None
        Where the samples lie in each argument; None for what all samples share. Of the form of the arguments, or of
        less of it.
    out_dims : int or nested structure of int and None
        Where they lie in the results; None only for what does not depend on the samples.
    randomness : str
        What random operators do inside: "error", "different" numbers for each sample, or the "same" for all.
    chunk_size : int, optional
        Samples at a time; None: all.

    Raises ValueError where dimensions do not fit the arguments or results; RuntimeError where `func` asks for the value
    of a tensor (``if x > 0``, ``x.item()``), writes samples in place into a tensor that they share, or makes results
    whose size depends on values.
    """
    _check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        samples, places, leaves, form = _flat_inputs(func, in_dims, args)
        if chunk_size is not None and chunk_size < samples:
            return _in_chunks(
                func, samples, places, leaves, form, out_dims, randomness, kwargs, chunk_size
            )
        return _run(func, samples, places, leaves, form, out_dims, randomness, kwargs)

    return wrapped


class VmapInfo:
    """What a batching rule of a program is told: the number of samples and the mode of randomness."""

    __slots__ = ("batch_size", "randomness")

    def __init__(self, batch_size, randomness):
        self.batch_size, self.randomness = batch_size, randomness

    def __repr__(self):
        return f"VmapInfo(batch_size={self.batch_size}, randomness={self.randomness!r})"


def top_level(tree):
    """The innermost level at which a tensor of the tree is batched; None where none is."""
    levels = [
        batch[2]
        for leaf in tree_flatten(tree)[0]
        if isinstance(leaf, _C.Tensor) and (batch := _C._batch_of(leaf)) is not None
    ]
    return max(levels, default=None)


def unwrap_at(tree, level):
    """(the tree with values in place of tensors batched at `level`, the dimensions of their samples, how many)."""
    leaves, form = tree_flatten(tree)
    values, dims, samples = [], [], None
    for leaf in leaves:
        batch = _C._batch_of(leaf) if isinstance(leaf, _C.Tensor) else None
        if batch is None or batch[2] != level:
            values.append(leaf)
            dims.append(None)
        else:
            values.append(batch[0])
            dims.append(batch[1])
            samples = batch[0].shape[batch[1]]
    return tree_unflatten(values, form), tree_unflatten(dims, form), samples


def info_of(level, samples):
    for number, _, randomness in _C._vmap_levels():
        if number == level:
            return VmapInfo(samples, randomness)
    return VmapInfo(samples, "error")


def wrap_outputs(outputs, out_dims, level, what):
    """Results of a batching rule as batched tensors."""
    leaves, form = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, form)
    if dims is None and isinstance(out_dims, list):
        dims = _broadcast_to_and_flatten(tuple(out_dims), form)
    if dims is None:
        raise RuntimeError(
            f"{what}: expected the out_dims of the vmap rule to be compatible with the structure of its outputs; got "
            f"{out_dims}"
        )
    wrapped = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if isinstance(leaf, _C.Tensor) and dim is not None:
            leaf = _C._add_batch_dim(leaf, dim % leaf.dim(), level)
        wrapped.append(leaf)
    return tree_unflatten(wrapped, form)


def call_rule(rule, what, args, kwargs=None):
    """Calls ``rule(info, in_dims, *args)`` with the values of the innermost level and wraps what it gives."""
    level = top_level((args, kwargs or {}))
    (args, kwargs), (in_dims, _), samples = unwrap_at((tuple(args), kwargs or {}), level)
    info = info_of(level, samples)
    result = _C._vmap_call_outside(level, rule, (info, in_dims, *args), kwargs)
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{what}: expected the vmap rule to have two returns, (output, out_dims); got {type(result)}"
        )
    return wrap_outputs(*result, level, what)


def map_tensors(function, tree):
    """The tree with `function` of every tensor."""
    return tree_map_only(_C.Tensor, function, tree)
