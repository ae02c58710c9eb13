"""Derivatives of functions as functions: grad, vjp, jvp, Jacobians and Hessians."""

import contextlib
import functools

from lamina import _C
from lamina.autograd.functional import found_gradients
from lamina.func._vmap import map_tensors, vmap
from lamina.utils._pytree import tree_flatten, tree_unflatten

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]


@contextlib.contextmanager
def _grad_level():
    """A level of reverse mode: (its number, whether the caller records)."""
    recorded = _C.is_grad_enabled()
    level = _C._grad_enter()
    try:
        with _C.enable_grad():
            yield level, recorded
    finally:
        _C._grad_leave(level)


def _outside(tree, level, recorded):
    """Results as the caller may see them: with a history only where it leads to something of the caller's."""
    return map_tensors(
        lambda t: t if recorded and _C._depends_outside(t, level) else _C._without_history(t), tree
    )


def _inputs(tree, level, recorded, what):
    """Leaves of `tree` as inputs of the level; raises where one is no tensor."""
    leaves, form = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, _C.Tensor):
            raise ValueError(
                f"{what}: Thing passed to transform API must be Tensor, got {type(leaf)}"
            )
    made = [_C._grad_input(leaf, level, recorded) for leaf in leaves]
    return made, form, tree_unflatten(made, form)


def _gradients(outputs, inputs, vectors, create_graph):
    """Products of `vectors` with the Jacobian; zeros where an input takes no part."""
    found = found_gradients(outputs, inputs, vectors, create_graph)
    return [
        _C._without_history(_C.zeros_like(x)) if g is None else g
        for g, x in zip(found, inputs, strict=True)
    ]


def _wrapped_argnums(argnums, count, what):
    def check(i):
        if not isinstance(i, int):
            raise RuntimeError(f"{what}: argnums must be int or Tuple[int, ...], got: {type(i)}")
        if not -count <= i < count:
            raise RuntimeError(f"{what}: Got argnum={i}, but only {count} positional inputs")
        return i % count

    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError(f"{what}: argnums must be non-empty")
        numbers = tuple(check(i) for i in argnums)
        if len(set(numbers)) != len(numbers):
            raise RuntimeError(f"{what}: argnums elements must be unique, got {argnums}")
        return numbers
    return check(argnums)


def _picked(args, argnums):
    return tuple(args[i] for i in argnums) if isinstance(argnums, tuple) else args[argnums]


def _replaced(args, argnums, values):
    args = list(args)
    if isinstance(argnums, tuple):
        for i, v in zip(argnums, values, strict=True):
            args[i] = v
    else:
        args[argnums] = values
    return tuple(args)


def _split_aux(result, what):
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def grad_and_value(func, argnums=0, has_aux=False):
    """A function that gives (gradient, value) of `func`, or with `has_aux` (gradient, (value, aux)).

    See `grad`.
    """

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        numbers = _wrapped_argnums(argnums, len(args), "grad_and_value(f, argnums, ...)(*args)")
        with _grad_level() as (level, recorded):
            inputs, form, given = _inputs(_picked(args, numbers), level, recorded, "grad")
            output = func(*_replaced(args, numbers, given), **kwargs)
            aux = None
            if has_aux:
                output, aux = _split_aux(output, "grad_and_value(f)(*args)")
            if not isinstance(output, _C.Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a single tensor, got "
                    f"{type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            create = recorded and _C._depends_outside(output, level)
            found = _gradients([output], inputs, [None], create)
            result = _outside(tree_unflatten(found, form), level, recorded)
            output = _outside(output, level, recorded)
            if has_aux:
                output = (output, _outside(aux, level, recorded))
        return result, output

    return wrapped


def grad(func, argnums=0, has_aux=False):
    """A function that gives the gradient of `func`, a function with one number as its result.

    Parameters
    ----------
    func : callable
        Gives a tensor without dimensions, or with `has_aux` a tuple (that, anything).
    argnums : int or tuple of int
        Which positional arguments to differentiate with respect to; they are tensors or nested structures of them.
    has_aux : bool
        The result is then (gradient, anything).

    The gradient has the form of the argument, or is a tuple where `argnums` is one. It is itself differentiable, and
    inside `vmap` one gradient for each sample. Raises RuntimeError for results with dimensions and for `argnums` that do
    not exist.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapped


def _vjp(func, primals, has_aux, what):
    """(output, its vjp, aux); the level stays open while `func` runs only."""
    with _grad_level() as (level, recorded):
        inputs, form, given = _inputs(primals, level, recorded, what)
        output = func(*given)
        aux = None
        if has_aux:
            output, aux = _split_aux(output, f"{what}(f, *primals)")
        results, out_form = tree_flatten(output)
        if not results:
            raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output")
        for r in results:
            if not isinstance(r, _C.Tensor):
                raise RuntimeError(
                    f"{what}(f, *primals): expected f(*primals) to return only tensors, got unsupported type "
                    f"{type(r)}"
                )
        outside = [recorded and _C._depends_outside(r, level) for r in results]
        primal_out = _outside(output, level, recorded)
        aux = _outside(aux, level, recorded)
    single_input = len(primals) == 1

    def pull_back(*cotangents, retain_graph=True, create_graph=None):
        """The cotangents' product with the Jacobian, in the form of the primals."""
        vectors, form_given = tree_flatten(
            cotangents[0] if len(cotangents) == 1 else tuple(cotangents)
        )
        if form_given != out_form:
            if not (len(results) == 1 and len(vectors) == 1):
                raise RuntimeError(
                    f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                    f"function. cotangents: {form_given}, primal output: {out_form}"
                )
        for v, r in zip(vectors, results, strict=True):
            if not isinstance(v, _C.Tensor):
                raise RuntimeError(f"vjp: expected cotangents to be Tensors; got {type(v)}")
            if v.shape != r.shape:
                raise RuntimeError(
                    f"vjp: Mismatch in shape: a cotangent has a shape of {tuple(v.shape)} and its output has a shape "
                    f"of {tuple(r.shape)}."
                )
        records = _C.is_grad_enabled()
        create = records and (any(outside) or any(v.requires_grad for v in vectors))
        if create_graph is not None:
            create = create_graph
        with _C.enable_grad():
            found = _gradients(results, inputs, vectors, create)
            found = _outside(tree_unflatten(found, form), level, records)
        return found[0] if single_input else found

    return primal_out, pull_back, aux


def vjp(func, *primals, has_aux=False):
    """(``func(*primals)``, a function that gives products of vectors with its Jacobian).

    The function takes cotangents in the form of the output and gives a tuple in the form of the primals, or one thing
    where there is one primal. With `has_aux`, `func` gives (output, aux), and the result is (output, function, aux).
    Raises RuntimeError where the primals or outputs are no tensors, and where cotangents do not fit the outputs.
    """
    output, pull_back, aux = _vjp(func, primals, has_aux, "vjp")

    def wrapped(*cotangents, retain_graph=True, create_graph=None):
        found = pull_back(*cotangents, retain_graph=retain_graph, create_graph=create_graph)
        return (found,) if len(primals) == 1 else found

    return (output, wrapped, aux) if has_aux else (output, wrapped)


def _jvp(func, primals, tangents, has_aux, what, strict=False):
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, form = tree_flatten(primals)
    vectors, form_given = tree_flatten(tangents)
    if form != form_given:
        raise RuntimeError(
            f"{what}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {form} and tangents with "
            f"structure {form_given}"
        )
    if not flat:
        raise RuntimeError(f"{what}: Expected primals to contain at least one Tensor")
    for t in (*flat, *vectors):
        if not isinstance(t, _C.Tensor):
            raise RuntimeError(
                f"{what}: Expected primals and tangents to be Tensors; got {type(t)}"
            )
    enabled = _C._is_fwd_grad_enabled()
    _C._set_fwd_grad_enabled(True)
    level = _C._enter_dual_level()
    try:
        duals = [_C._make_dual(x, v, level) for x, v in zip(flat, vectors, strict=True)]
        output = func(*tree_unflatten(duals, form))
        aux = None
        if has_aux:
            output, aux = _split_aux(output, f"{what}(f, primals, tangents)")
        results, out_form = tree_flatten(output)
        parts = []
        for r in results:
            if not isinstance(r, _C.Tensor):
                raise RuntimeError(
                    f"{what}(f, primals, tangents): expected f(*primals) to return only tensors, got unsupported type "
                    f"{type(r)}"
                )
            primal, tangent = _C._unpack_dual(r, level)
            if strict and tangent is None:
                raise RuntimeError(
                    f"{what}(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                    "not allowed with strict=True."
                )
            parts.append((primal, _C.zeros_like(primal) if tangent is None else tangent))
        if has_aux:
            aux = map_tensors(lambda t: _C._unpack_dual(t, level)[0], aux)
    finally:
        _C._exit_dual_level(level)
        _C._set_fwd_grad_enabled(enabled)
    return (
        tree_unflatten([p for p, _ in parts], out_form),
        tree_unflatten([t for _, t in parts], out_form),
        aux,
    )


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """(``func(*primals)``, the product of its Jacobian with `tangents`), by forward mode.

    `primals` is a tuple, `tangents` has its form. With `has_aux`, `func` gives (output, aux), and the result is (output,
    tangent, aux). Raises RuntimeError where forms or sizes do not fit, and with `strict` where the output does not depend on
    the primals.
    """
    output, tangent, aux = _jvp(func, primals, tangents, has_aux, "jvp", strict)
    return (output, tangent, aux) if has_aux else (output, tangent)


def _units(leaves):
    """For leaves with n elements in all: for each a tensor (n, *sizes) that holds the unit vectors."""
    total = sum(t.numel() for t in leaves)
    made, start = [], 0
    for t in leaves:
        n = t.numel()
        unit = _C.zeros(total, n, dtype=t.dtype, device=t.device)
        unit[start : start + n].diagonal().fill_(1)
        made.append(unit.reshape((total, *t.shape)))
        start += n
    return made


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """A function that gives the Jacobian of `func`, by reverse mode: one row for each element of the output.

    The result has the form of the output, each leaf replaced by the form of the argument, each leaf of that a tensor
    (sizes of the output, sizes of the argument). `chunk_size`: rows at a time. See `grad` for `argnums` and `has_aux`.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        numbers = _wrapped_argnums(argnums, len(args), "jacrev")
        picked = _picked(args, numbers)

        def partial(chosen):
            return func(*_replaced(args, numbers, chosen), **kwargs)

        output, pull_back, aux = _vjp(partial, (picked,), has_aux, "jacrev")
        results, out_form = tree_flatten(output)
        units = tuple(_units(results))

        def row(*vectors):
            return pull_back(tree_unflatten(list(vectors), out_form))

        if units[0].shape[0] == 0:
            rows = map_tensors(lambda t: t.new_zeros((0, *t.shape)), picked)
        else:
            rows = vmap(row, chunk_size=chunk_size)(*units)
        row_leaves, in_form = tree_flatten(rows)
        blocks, start = [], 0
        for r in results:
            n = r.numel()
            parts = [
                leaf.narrow(0, start, n).reshape((*r.shape, *leaf.shape[1:])) for leaf in row_leaves
            ]
            blocks.append(tree_unflatten(parts, in_form))
            start += n
        jacobian = tree_unflatten(blocks, out_form)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """A function that gives the Jacobian of `func`, by forward mode: one column for each element of the argument.

    The same as `jacrev`, faster where the argument has fewer elements than the output.
    """

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        numbers = _wrapped_argnums(argnums, len(args), "jacfwd")
        picked = _picked(args, numbers)
        leaves, in_form = tree_flatten(picked)
        for leaf in leaves:
            if not isinstance(leaf, _C.Tensor):
                raise RuntimeError(f"jacfwd: Expected all inputs to be Tensors; got {type(leaf)}")
        units = tuple(_units(leaves))

        def partial(chosen):
            return func(*_replaced(args, numbers, chosen), **kwargs)

        def column(*vectors):
            tangents = (tree_unflatten(list(vectors), in_form),)
            _, tangent, aux = _jvp(partial, (picked,), tangents, has_aux, "jacfwd")
            return (tangent, aux) if has_aux else tangent

        if units[0].shape[0] == 0:
            output = partial(picked)
            aux = None
            if has_aux:
                output, aux = _split_aux(output, "jacfwd")
            columns = map_tensors(lambda t: t.new_zeros((*t.shape, 0)), output)
        else:
            columns = vmap(column, out_dims=(-1, 0) if has_aux else -1, randomness=randomness)(
                *units
            )
            aux = None
            if has_aux:
                # The same for each column.
                columns, aux = columns
                aux = map_tensors(lambda t: t[0], aux)
        column_leaves, out_form = tree_flatten(columns)
        blocks = []
        for leaf in column_leaves:
            parts, start = [], 0
            for x in leaves:
                n = x.numel()
                parts.append(leaf.narrow(-1, start, n).reshape((*leaf.shape[:-1], *x.shape)))
                start += n
            blocks.append(tree_unflatten(parts, in_form))
        jacobian = tree_unflatten(blocks, out_form)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def hessian(func, argnums=0):
    """A function that gives the second derivatives of `func`: forward mode over reverse mode."""
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """(``func(*primals)``, a function that gives products of its Jacobian with tangents).

    `func` runs once. The products are gradients of the (linear) backward pass with respect to its vector.
    """
    output, pull_back, _ = _vjp(func, primals, False, "linearize")
    results, out_form = tree_flatten(output)
    with _grad_level() as (level, _):
        vectors = [
            _C._grad_input(_C._without_history(_C.zeros_like(r)), level, False) for r in results
        ]
        pulled = pull_back(tree_unflatten(vectors, out_form), create_graph=True)
    leaves, form = tree_flatten(pulled if len(primals) > 1 else (pulled,))

    def push_forward(*tangents):
        """The product of the Jacobian with tangents in the form of the primals."""
        given, given_form = tree_flatten(tangents)
        if given_form != form:
            raise RuntimeError(
                f"linearize: Expected tangents in the form of the primals, {form}; got {given_form}"
            )
        for v, x in zip(given, leaves, strict=True):
            if not isinstance(v, _C.Tensor) or v.shape != x.shape or v.dtype != x.dtype:
                raise RuntimeError(
                    "linearize: Expected each tangent to have the size and type of its primal, "
                    f"{tuple(x.shape)} and {x.dtype}; got {getattr(v, 'shape', type(v))}"
                )
        records = _C.is_grad_enabled()
        create = records and (
            any(_C._depends_outside(t, level) for t in leaves)
            or any(v.requires_grad for v in given)
        )
        with _C.enable_grad():
            found = _gradients(leaves, vectors, given, create)
            return _outside(tree_unflatten(found, out_form), level, records)

    return output, push_forward
