"""Dimensions by name: rearrange(tensor, "b (h w) -> b h w", w=4)."""

import re

__all__ = ["rearrange"]

_TOKEN = re.compile(r"\s*(\(|\)|\.\.\.|[A-Za-z_][A-Za-z_0-9]*|1(?![0-9]))")


def _parse(side, pattern):
    """A list of names, and of tuples of names where they are in parentheses."""
    items, group, at = [], None, 0
    side = side.strip()
    while at < len(side):
        match = _TOKEN.match(side, at)
        if not match:
            raise ValueError(f"rearrange: cannot read {side[at:]!r} in the pattern {pattern!r}")
        at = match.end()
        token = match[1]
        if token == "(":
            if group is not None:
                raise ValueError(f"rearrange: brackets inside brackets in {pattern!r}")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"rearrange: brackets are not balanced in {pattern!r}")
            items.append(tuple(group))
            group = None
        elif group is not None:
            group.append(token)
        else:
            items.append(token)
    if group is not None:
        raise ValueError(f"rearrange: brackets are not balanced in {pattern!r}")
    return items


def _names(items):
    flat = []
    for item in items:
        flat.extend(item if isinstance(item, tuple) else (item,))
    return [n for n in flat if n != "1"]


def _spelled_out(items, extra):
    """The ellipsis as names of its own."""
    result = []
    for item in items:
        if item == "...":
            result.extend(extra)
        elif isinstance(item, tuple):
            result.append(tuple(m for n in item for m in (extra if n == "..." else (n,))))
        else:
            result.append(item)
    return result


def rearrange(tensor, pattern, **axes_lengths):
    """A tensor with its dimensions in another order, split and joined, as a pattern of names says.

    ``rearrange(x, "b c h w -> b (h w) c")``. Names in parentheses are one dimension; ``...`` stands for any number of
    dimensions, ``1`` for one of size one. Sizes of parts of a dimension that is split are given by name; one of them may
    be left out. A list of tensors is stacked first. Raises ValueError where the pattern is wrong or does not fit.
    """
    if not hasattr(tensor, "reshape"):
        import lamina

        tensor = lamina.stack(list(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: a pattern has one '->'; got {pattern!r}")
    left, right = (_parse(side, pattern) for side in sides)
    for side in (left, right):
        names = _names(side)
        if len(set(names)) != len(names):
            raise ValueError(f"rearrange: a name appears twice on one side of {pattern!r}")
    if set(_names(left)) != set(_names(right)):
        raise ValueError(f"rearrange: both sides of {pattern!r} must have the same names")
    if any(isinstance(item, tuple) and "..." in item for item in left):
        raise ValueError("rearrange: an ellipsis inside parentheses is for the right side only")
    unknown = set(axes_lengths) - set(_names(left))
    if unknown:
        raise ValueError(
            f"rearrange: sizes are given for {sorted(unknown)}, which {pattern!r} does not name"
        )
    open_ended = "..." in left
    plain = len(left) - open_ended
    if tensor.dim() < plain or (tensor.dim() > plain and not open_ended):
        raise ValueError(
            f"rearrange: the left side of {pattern!r} has {plain} dimensions; got a tensor with {tensor.dim()}"
        )
    extra = [f"...{i}" for i in range(tensor.dim() - plain)]
    left, right = _spelled_out(left, extra), _spelled_out(right, extra)
    sizes, full = dict(axes_lengths), []
    for item, n in zip(left, tensor.shape, strict=True):
        parts = item if isinstance(item, tuple) else (item,)
        known, free = 1, None
        for name in parts:
            if name == "1":
                continue
            if name in sizes:
                known *= sizes[name]
            elif free is None:
                free = name
            else:
                raise ValueError(f"rearrange: the sizes of {free!r} and {name!r} are both unknown")
        if free is not None:
            if known == 0 or n % known:
                raise ValueError(
                    f"rearrange: a dimension of size {n} cannot be split into parts of {known}"
                )
            sizes[free] = n // known
        elif known != n:
            raise ValueError(
                f"rearrange: {item!r} has size {known} by what is given; the tensor has {n}"
            )
        full.extend(name for name in parts if name != "1")
    split = tensor.reshape([sizes[name] for name in full])
    order = [
        n for item in right for n in (item if isinstance(item, tuple) else (item,)) if n != "1"
    ]
    moved = split.permute([full.index(name) for name in order])
    shape = []
    for item in right:
        n = 1
        for name in item if isinstance(item, tuple) else (item,):
            n *= 1 if name == "1" else sizes[name]
        shape.append(n)
    return moved.reshape(shape)
