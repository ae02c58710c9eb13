"""Functions of Python inside vmap, where what they do depends on values: one call for each sample."""

from lamina import _C

__all__ = ["per_sample"]


def per_sample(function=None, *, random=False):
    """Lets a function that reads values run inside vmap: sample by sample, results stacked.

    `random`: it draws numbers; what vmap says of randomness holds for it. Results of samples must agree in size.
    """
    if function is None:
        return lambda f: per_sample(f, random=random)

    def wrapper(*args, **kwargs):
        if not _C._vmap_levels():
            return function(*args, **kwargs)
        return _inside_vmap(wrapper, function, random, args, kwargs)

    # functools is not loaded for it: importing the package loads little.
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(wrapper, name, getattr(function, name))
    wrapper.__wrapped__ = function
    return wrapper


def _inside_vmap(wrapper, function, random, args, kwargs):
    from lamina.func import _vmap

    levels = _C._vmap_levels()
    level = _vmap.top_level((args, kwargs))
    if random and (level is None or level < levels[-1][0]):
        level = levels[-1][0]
    if level is None:
        return function(*args, **kwargs)
    from lamina.utils._pytree import tree_flatten, tree_unflatten

    leaves, form = tree_flatten((args, kwargs))
    values, dims, samples = _vmap.unwrap_at(leaves, level)
    here = next((row for row in levels if row[0] == level), (level, samples, "error"))
    samples = here[1] if samples is None else samples
    if random and here[2] == "error":
        raise RuntimeError(
            f"vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            f"'different' randomness flags on vmap or perform the randomness operation out of vmap; got "
            f"{function.__name__}"
        )

    def run():
        import lamina

        state = lamina.random.get_rng_state() if random and here[2] == "same" else None
        results = []
        for i in range(samples):
            if state is not None:
                lamina.random.set_rng_state(state)
            items = [v if d is None else v.select(d, i) for v, d in zip(values, dims, strict=True)]
            given, names = tree_unflatten(items, form)
            results.append(wrapper(*given, **names))  # levels outside come next
        return results

    results = _C._vmap_call_outside(level, run, (), {})
    if not results:
        raise RuntimeError(f"vmap: {function.__name__} for no sample at all")
    flat = [tree_flatten(r) for r in results]
    joined = []
    for items in zip(*(items for items, _ in flat), strict=True):
        first = items[0]
        if not isinstance(first, _C.Tensor):
            joined.append(first)
            continue
        if any(t.shape != first.shape for t in items):
            raise RuntimeError(
                f"vmap: {function.__name__} gives results of different sizes for different samples; got "
                f"{sorted({tuple(t.shape) for t in items})}; expected one size"
            )
        joined.append(_C._add_batch_dim(_C.stack(items), 0, level))
    return tree_unflatten(joined, flat[0][1])
