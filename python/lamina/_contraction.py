"""Sums of products over dimensions that are named: einsum and tensordot."""

import math

from lamina import _C
from lamina._dims import wrap_dims
from lamina._out import given
from lamina.functional import overridable


def _letters(text):
    """Labels of one operand: letters, and ... as one item."""
    text = text.replace(" ", "")
    if text.count("...") > 1:
        raise RuntimeError("einsum: found more than one ellipsis in an operand's labels")
    before, dots, after = text.partition("...")
    for c in before + after:
        if not (c.isascii() and c.isalpha()):
            raise RuntimeError(f"einsum: invalid subscript {c!r}; expected letters of [a-zA-Z]")
    return list(before) + (["..."] if dots else []) + list(after)


def _from_sublists(args):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as equation and operands."""
    names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

    def text(labels):
        return "".join("..." if n is Ellipsis else names[n] for n in labels)

    operands, inputs = list(args[::2]), [text(a) for a in args[1::2]]
    output = ""
    if len(args) % 2:
        output = "->" + text(operands.pop())
    return ",".join(inputs) + output, operands


@overridable
def einsum(*args):
    """Sums of products, by Einstein's convention.

    Parameters
    ----------
    equation : str
        Labels of the operands' dimensions and of the result's: ``"ij,jk->ik"``. Without an arrow the result has the labels
        that appear once, in alphabetical order; ``...`` stands for dimensions that broadcast.
    operands : Tensors
        Or the form ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Operands are taken from left to right, two at a time. Raises RuntimeError where labels and sizes do not fit.
    """
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand")
    if isinstance(args[0], str):
        equation, operands = args[0], args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = operands[0]
    else:
        equation, operands = _from_sublists(args)
    operands = list(operands)
    left, arrow, right = equation.partition("->")
    inputs = [_letters(part) for part in left.split(",")]
    if not operands:
        raise ValueError("einsum(): must provide at least one operand")
    if len(inputs) != len(operands):
        raise RuntimeError(
            f"einsum: the equation has {len(inputs)} operands, but {len(operands)} were given"
        )
    dots = 0  # dimensions that ... stands for
    for labels, t in zip(inputs, operands):
        named = len([x for x in labels if x != "..."])
        extra = t.dim() - named
        if extra < 0 or (extra and "..." not in labels):
            raise RuntimeError(
                f"einsum: the number of subscripts ({named}) does not fit an operand of {t.dim()} "
                "dimensions"
            )
        dots = max(dots, extra)
    dot_names = [f".{i}" for i in range(dots)]
    expanded = []
    for labels, t in zip(inputs, operands):
        extra = t.dim() - len([x for x in labels if x != "..."])
        row = []
        for x in labels:
            row += dot_names[dots - extra :] if x == "..." else [x]
        expanded.append(row)
    counts = {}
    for row in inputs:
        for x in row:
            if x != "...":
                counts[x] = counts.get(x, 0) + 1
    if arrow:
        output = []
        for x in _letters(right):
            output += dot_names if x == "..." else [x]
        for x in output:
            if output.count(x) > 1:
                raise RuntimeError(f"einsum: output subscript {x!r} appears more than once")
            if x not in counts and x not in dot_names:
                raise RuntimeError(f"einsum: output subscript {x!r} is in no operand")
    else:
        output = dot_names + sorted(x for x, n in counts.items() if n == 1)
    sizes = {}
    terms = []
    for row, t in zip(expanded, operands):
        # A label twice in one operand: its diagonal.
        row = list(row)
        i = 0
        while i < len(row):
            j = row.index(row[i], i + 1) if row[i] in row[i + 1 :] else None
            if j is None:
                i += 1
                continue
            if t.shape[i] != t.shape[j]:
                raise RuntimeError(f"einsum: subscript {row[i]!r} is repeated with other sizes")
            t = t.diagonal(0, i, j).movedim(-1, i)
            del row[j]
        for x, n in zip(row, t.shape):
            if sizes.setdefault(x, n) == 1:
                sizes[x] = n
            elif n not in (1, sizes[x]):
                raise RuntimeError(
                    f"einsum: operands do not broadcast: subscript {x!r} has sizes {sizes[x]} and {n}"
                )
        terms.append((row, t))
    row, t = terms[0]
    for k, (other_row, other) in enumerate(terms[1:], 1):
        later = {x for r, _ in terms[k + 1 :] for x in r} | set(output)
        row, t = _contract(row, t, other_row, other, later)
    gone = [i for i, x in enumerate(row) if x not in output]
    if gone:
        t = t.sum(gone)
        row = [x for x in row if x in output]
    absent = [x for x in output if x not in row]
    for x in absent:
        t = t.unsqueeze(-1)
        row = [*row, x]
    return t.permute([row.index(x) for x in output]) if row else t


def _contract(row_a, a, row_b, b, keep):
    """The product of two terms, summed over labels that nothing else needs: one batched matrix product."""
    for row, name in ((row_a, "a"), (row_b, "b")):  # sum what only one of them has
        t = a if name == "a" else b
        other = row_b if name == "a" else row_a
        alone = [i for i, x in enumerate(row) if x not in other and x not in keep]
        if alone:
            t = t.sum(alone)
            row = [x for i, x in enumerate(row) if i not in alone]
        if name == "a":
            row_a, a = row, t
        else:
            row_b, b = row, t
    shared = [x for x in row_a if x in row_b]
    batch = [x for x in shared if x in keep]
    summed = [x for x in shared if x not in keep]
    for x in summed[:]:  # sizes 1 and n: the sum of products is a product with a sum
        i, j = row_a.index(x), row_b.index(x)
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                a, b = a.squeeze(i), b.sum(j)
            else:
                a, b = a.sum(i), b.squeeze(j)
            row_a = [y for y in row_a if y != x]
            row_b = [y for y in row_b if y != x]
            summed.remove(x)
    only_a = [x for x in row_a if x not in row_b]
    only_b = [x for x in row_b if x not in row_a]
    a = a.permute([row_a.index(x) for x in batch + only_a + summed])
    b = b.permute([row_b.index(x) for x in batch + summed + only_b])
    n = len(batch)
    common = [max(p, q) if 0 not in (p, q) else 0 for p, q in zip(a.shape[:n], b.shape[:n])]
    left = list(a.shape[n : n + len(only_a)])
    right = list(b.shape[n + len(summed) :])
    k = math.prod(a.shape[n + len(only_a) :])
    if summed:
        a = a.expand([*common, *a.shape[n:]]).reshape([*common, math.prod(left), k])
        b = b.expand([*common, *b.shape[n:]]).reshape([*common, k, math.prod(right)])
        result = _C.matmul(a, b).reshape([*common, *left, *right])
    else:
        a = a.reshape([*a.shape, *[1] * len(only_b)])
        b = b.reshape([*b.shape[:n], *[1] * len(only_a), *b.shape[n:]])
        result = a * b
    return batch + only_a + only_b, result


@overridable
def tensordot(a, b, dims=2, out=None):
    """Sums of products over `dims` last dimensions of `a` and first of `b`, or over two lists of dimensions."""
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist() if dims.dim() else dims.item()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: expects dims >= 0 and at most the dimensions; got {dims}"
            )
        dims_a, dims_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    dims_a, dims_b = wrap_dims(dims_a, a), wrap_dims(dims_b, b)
    if len(dims_a) != len(dims_b):
        raise RuntimeError("tensordot: both dimension lists should have same length")
    keep_a = [d for d in range(a.dim()) if d not in dims_a]
    keep_b = [d for d in range(b.dim()) if d not in dims_b]
    for i, j in zip(dims_a, dims_b):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[i]} "
                f"in dim {i} and second has size {b.shape[j]} in dim {j}"
            )
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                b = b.sum(j, keepdim=True, dtype=b.dtype)
            else:
                a = a.sum(i, keepdim=True, dtype=a.dtype)
    k = math.prod(a.shape[d] for d in dims_a)
    shape = [a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b]
    left = a.permute(keep_a + dims_a).reshape(math.prod(a.shape[d] for d in keep_a), k)
    right = b.permute(dims_b + keep_b).reshape(k, math.prod(b.shape[d] for d in keep_b))
    result = _C.mm(left, right).reshape(shape)
    return given("tensordot", result, out, same_type=True)
