"""Jacobians, Hessians and their products with vectors, of functions of tensors.

Every function takes `func`, a callable that gives a tensor or a tuple of them, and `inputs`, a tensor or a tuple of
them, and gives results in the same form: bare where a bare tensor was given, nested in tuples where tuples were.
`create_graph` makes the results differentiable. `strict` raises RuntimeError where a result does not depend on an
input in a differentiable manner; otherwise such derivatives are zero.
"""

import itertools

from lamina import _C
from lamina.autograd import forward_ad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple_of(x, what, function):
    """(was it a tuple, the tensors as a tuple)."""
    was_tuple = isinstance(x, tuple)
    items = x if was_tuple else (x,)
    for i, t in enumerate(items):
        if not isinstance(t, _C.Tensor):
            if was_tuple:
                raise TypeError(
                    f"{function}: The {what} given to {function} must be either a Tensor or a tuple of Tensors but "
                    f"the value at index {i} of the given {what} has type {type(t)}."
                )
            raise TypeError(
                f"{function}: The {what} given to {function} must be either a Tensor or a tuple of Tensors but the "
                f"given {what} has type {type(t)}."
            )
    return was_tuple, tuple(items)


def _like(was_tuple, items):
    return tuple(items) if was_tuple else items[0]


def _fresh(inputs, create_graph, need_graph=True):
    """Inputs that gradients can be asked for: with their history, or leaves of their own."""
    if create_graph:
        return tuple(
            t.view_as(t) if t.requires_grad else t.detach().requires_grad_(need_graph)
            for t in inputs
        )
    return tuple(t.detach().requires_grad_(need_graph) for t in inputs)


def _call(func, inputs, function):
    return _tuple_of(func(*inputs), "outputs of the user-provided function", function)


def _check_vector(v, of, function):
    if len(v) != len(of):
        raise RuntimeError(
            f"{function}: v is a tuple of invalid length: should be {len(of)} but got {len(v)}."
        )
    for i, (a, b) in enumerate(zip(v, of, strict=True)):
        if a.shape != b.shape:
            where = f"Entry {i} in v" if len(of) > 1 else "v"
            raise RuntimeError(
                f"{function}: {where} has invalid size: should be {b.shape} but got {a.shape}."
            )


def _vector(v, of, of_what, function):
    """The given vector; where there is none, one, for a single tensor of one element."""
    if v is not None:
        _, v = _tuple_of(v, "v", function)
        v = tuple(t.detach() if not t.requires_grad else t for t in v)
        _check_vector(v, of, function)
        return v
    if len(of) != 1 or of[0].numel() != 1:
        raise RuntimeError(
            f"{function}: The vector v can only be None if {of_what} a single Tensor with a single element."
        )
    return (_C.ones_like(of[0].detach()),)


def _check_strict(outputs, inputs, what, function):
    """Raises unless every output can be differentiated."""
    for i, o in enumerate(outputs):
        if o is None:
            raise RuntimeError(
                f"{function}: The {what} of the user-provided function is independent of input {i}. This is not "
                "allowed in strict mode."
            )
        if o.requires_grad:
            continue
        if what == "outputs":
            raise RuntimeError(
                f"{function}: Output {i} of the user-provided function does not require gradients. The outputs must "
                "be computed in a differentiable manner from the input when running in strict mode."
            )
        if what == "jacobian-of-hessian":
            raise RuntimeError(
                f"{function}: While computing the hessian, found that the jacobian of the user-provided function "
                f"with respect to input {i} is independent of the input. This is not allowed in strict mode. You "
                "should ensure that your function is twice differentiable and that the jacobian depends on the "
                "inputs (this would be violated by a linear function for example)."
            )
        raise RuntimeError(
            f"{function}: The {what} of the user-provided function is independent of input {i}. This is not allowed "
            "in strict mode when create_graph=True."
        )


def found_gradients(outputs, inputs, vectors, create_graph):
    """Products of `vectors` with the Jacobian of the outputs that have one; None where an input takes no part."""
    kept = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not kept:
        return (None,) * len(inputs)
    return _C._autograd_grad(
        [o for o, _ in kept],
        inputs,
        [v for _, v in kept],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )


def _grad(outputs, inputs, vectors, create_graph, *, strict=False, what="jacobian", function=""):
    """Gradients of the outputs that have any, with zeros where there are none."""
    found = found_gradients(outputs, inputs, vectors, create_graph)
    if strict:
        for i, g in enumerate(found):
            if g is None:
                raise RuntimeError(
                    f"{function}: The output of the user-provided function is independent of input {i}. This is not "
                    "allowed in strict mode."
                )
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True))


def _finish(items, create_graph):
    """Without create_graph results leave the graph."""
    return tuple(items) if create_graph else tuple(t.detach() for t in items)


def _single(outputs, function):
    if len(outputs) != 1 or outputs[0].numel() != 1:
        raise RuntimeError(
            f"{function}: The Tensor returned by the function given to {function} should contain a single element"
        )


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, the product of the vector `v` with the Jacobian of `func`).

    `v` has the sizes of the outputs; it may be None where the output is a single element.
    """
    with _C.enable_grad():
        was_tuple, inputs = _tuple_of(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph)
        out_tuple, outputs = _call(func, inputs, "vjp")
        if strict:
            _check_strict(outputs, inputs, "outputs", "vjp")
        vector = _vector(v, outputs, "the user-provided function returns", "vjp")
        found = _grad(outputs, inputs, vector, create_graph, strict=strict, function="vjp")
        if strict and create_graph:
            _check_strict(found, inputs, "vjp", "vjp")
    return (
        _like(out_tuple, _finish(outputs, create_graph)),
        _like(was_tuple, _finish(found, create_graph)),
    )


def _duals(inputs, vectors):
    return tuple(forward_ad.make_dual(x, v) for x, v in zip(inputs, vectors, strict=True))


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(outputs, the product of the Jacobian of `func` with the vector `v`), by forward mode.

    `v` has the sizes of the inputs; it may be None where the input is a single element.
    """
    with _C.enable_grad():
        _, inputs = _tuple_of(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph, need_graph=create_graph or strict)
        vector = _vector(v, inputs, "the input to the user-provided function is", "jvp")
        with forward_ad.dual_level():
            out_tuple, duals = _call(func, _duals(inputs, vector), "jvp")
            parts = [forward_ad.unpack_dual(o) for o in duals]
            outputs = [p.primal for p in parts]
            if strict:
                _check_strict(outputs, inputs, "outputs", "jvp")
            found = [_C.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts]
            outputs, found = _finish(outputs, create_graph), _finish(found, create_graph)
        if strict and create_graph:
            _check_strict(found, inputs, "jvp", "jvp")
    return _like(out_tuple, outputs), _like(out_tuple, found)


def _units(t):
    """One unit tensor for each element, in row-major order."""
    for index in itertools.product(*(range(n) for n in t.shape)):
        unit = _C.zeros_like(t.detach())
        unit[index] = 1
        yield unit


def _unit_batches(tensors):
    """For tensors of n elements in all: for each a tensor (n, *sizes) with the unit vectors."""
    from lamina.func._grad import _units

    return _units([t.detach() for t in tensors])


def _jacobian_forward(func, inputs):
    """All columns at once: the derivatives of all outputs in the direction of each element of the inputs."""
    from lamina.func import vmap

    form = []

    def column(*directions):
        with forward_ad.dual_level():
            out_tuple, duals = _call(func, _duals(inputs, directions), "jacobian")
            parts = [forward_ad.unpack_dual(o) for o in duals]
            form[:] = [out_tuple]
            return tuple(
                (_C.zeros_like(p.primal) if p.tangent is None else p.tangent).detach()
                for p in parts
            )

    if sum(x.numel() for x in inputs) == 0:
        out_tuple, outputs = _call(func, inputs, "jacobian")
        return out_tuple, [
            tuple(_C.zeros(o.shape + x.shape, dtype=o.dtype) for x in inputs) for o in outputs
        ]
    columns = vmap(column, out_dims=-1)(*_unit_batches(inputs))
    counts = [x.numel() for x in inputs]
    rows = []
    for c in columns:
        pieces = c.split(counts, -1)
        rows.append(
            tuple(p.reshape(c.shape[:-1] + x.shape) for p, x in zip(pieces, inputs, strict=True))
        )
    return form[0], rows


def _rows_at_once(output, inputs, create_graph):
    """The Jacobian of one output as a batch of vectors' products with it."""
    if output.numel() == 0 or not output.requires_grad:
        return tuple(_C.zeros(output.shape + x.shape, dtype=x.dtype) for x in inputs)
    found = _C._autograd_grad(
        [output],
        inputs,
        _unit_batches([output]),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return tuple(
        _C.zeros(output.shape + x.shape, dtype=x.dtype)
        if g is None
        else g.reshape(output.shape + x.shape)
        for g, x in zip(found, inputs, strict=True)
    )


def jacobian(
    func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"
):
    """The Jacobian of `func`: for each output and input a tensor of sizes (output sizes, input sizes).

    `strategy` is 'reverse-mode' (one backward for each element of the outputs) or 'forward-mode' (one direction for each
    element of the inputs; needs ``vectorize=True``, as the peer does). With `vectorize` all of them run at once, by vmap.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'jacobian: Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has '
            'more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            '"reverse-mode".'
        )
    if strict and vectorize:
        raise RuntimeError(
            "jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set "
            "`strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                'jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). '
                'Please either set `create_graph=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "jacobian: Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented "
                "for `vectorize=True`."
            )
        was_tuple, inputs = _tuple_of(inputs, "inputs", "jacobian")
        out_tuple, rows = _jacobian_forward(func, inputs)
        return _like(out_tuple, [_like(was_tuple, r) for r in rows])

    with _C.enable_grad():
        was_tuple, inputs = _tuple_of(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph)
        out_tuple, outputs = _call(func, inputs, "jacobian")
        if strict:
            _check_strict(outputs, inputs, "outputs", "jacobian")
        result = []
        for o in outputs:
            if vectorize:
                blocks = _rows_at_once(o, inputs, create_graph)
                result.append(_like(was_tuple, _finish(blocks, create_graph)))
                continue
            rows = [
                _grad([o], inputs, [u], create_graph, strict=strict, function="jacobian")
                for u in _units(o)
            ]
            blocks = tuple(
                _C.stack([r[i] for r in rows]).reshape(o.shape + x.shape)
                if rows
                else _C.zeros(o.shape + x.shape, dtype=x.dtype)
                for i, x in enumerate(inputs)
            )
            if strict and create_graph:
                _check_strict(blocks, inputs, "jacobian", "jacobian")
            result.append(_like(was_tuple, _finish(blocks, create_graph)))
    return _like(out_tuple, result)


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """Second derivatives of a function with one element: (sizes of input i, sizes of input j) for each pair."""
    was_tuple, inputs = _tuple_of(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'hessian: Expected strategy to be either "forward-mode" or "reverse-mode".'
        )

    def scalar(*args):
        found = func(*args)
        out_tuple, outputs = _tuple_of(found, "outputs of the user-provided function", "hessian")
        if out_tuple or outputs[0].numel() != 1:
            raise RuntimeError(
                "hessian: The Tensor returned by the function given to hessian should contain a single element"
            )
        return outputs[0].reshape(())

    def gradient(*args):
        if outer_jacobian_strategy == "forward-mode":
            args = tuple(t if t.requires_grad else t.requires_grad_() for t in args)
        found = jacobian(scalar, args, create_graph=True)
        if strict:
            _check_strict(found, args, "jacobian-of-hessian", "hessian")
        return found

    if outer_jacobian_strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "hessian: Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    if outer_jacobian_strategy == "forward-mode":
        leaves = tuple(t.detach().requires_grad_() for t in inputs)
        found = jacobian(gradient, leaves, vectorize=True, strategy="forward-mode")
    else:
        found = jacobian(
            gradient, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize
        )
    return _like(was_tuple, [_like(was_tuple, row) for row in found])


def _gradient_of(func, inputs, function, strict):
    out_tuple, outputs = _call(func, inputs, function)
    if strict:
        _check_strict(outputs, inputs, "outputs", function)
    if out_tuple:
        raise RuntimeError(
            f"{function}: The function given to {function} should return a single Tensor"
        )
    _single(outputs, function)
    first = _grad(
        outputs, inputs, [_C.ones_like(outputs[0].detach())], True, strict=strict, function=function
    )
    if strict:
        _check_strict(first, inputs, "jacobian-of-hessian", function)
    return outputs[0], first


def _second_order(func, inputs, v, create_graph, strict, function):
    with _C.enable_grad():
        was_tuple, inputs = _tuple_of(inputs, "inputs", function)
        inputs = _fresh(inputs, create_graph)
        vector = _vector(v, inputs, "the input to the user-provided function is", function)
        output, first = _gradient_of(func, inputs, function, strict)
        # The matrix is symmetric: from the left and from the right it gives the same.
        found = _grad(first, inputs, vector, create_graph, strict=strict, function=function)
        if strict and create_graph:
            _check_strict(found, inputs, function, function)
    (output,) = _finish([output], create_graph)
    return output, _like(was_tuple, _finish(found, create_graph))


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, the product of the vector `v` with the Hessian of `func`); `func` gives one element."""
    return _second_order(func, inputs, v, create_graph, strict, "vhp")


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(output, the product of the Hessian of `func` with the vector `v`); `func` gives one element."""
    return _second_order(func, inputs, v, create_graph, strict, "hvp")
