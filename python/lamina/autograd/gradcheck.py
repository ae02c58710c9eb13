"""Checks of derivatives against finite differences.

Everything is compared in real coordinates: a complex number counts as two real ones. A Jacobian has a row for each
coordinate of the input and a column for each coordinate of the output. So functions of complex numbers need no case
of their own, and functions that are not holomorphic are checked as strictly as those that are.
"""

import itertools
import warnings

from lamina import _C
from lamina.autograd import forward_ad

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]


class GradcheckError(RuntimeError):
    """A derivative that is computed differs from the one that is measured."""


def _as_tuple(x):
    if isinstance(x, _C.Tensor):
        return (x,)
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _is_differentiable(x):
    return isinstance(x, _C.Tensor) and (x.is_floating_point() or x.is_complex())


def _outputs(result):
    """The results that gradients flow from."""
    return [o for o in _as_tuple(result) if _is_differentiable(o) and o.requires_grad]


def _coordinates(t):
    """The real coordinates of a tensor as a vector without history."""
    t = t.detach().resolve_conj().resolve_neg()
    return (_C.view_as_real(t) if t.is_complex() else t).reshape(-1)


def _double(t):
    """In the widest type of its kind: for sums and comparisons."""
    return t.to(_C.complex128 if t.is_complex() else _C.float64)


def _directions(t):
    """For each real coordinate of `t` the unit tensor that points along it."""
    for index in itertools.product(*(range(n) for n in t.shape)):
        for step in (1.0, 1j) if t.is_complex() else (1.0,):
            unit = _C.zeros_like(t.detach())
            unit[index] = step
            yield unit


def _values(fn, inputs, indices):
    """Coordinates of the chosen results, for a difference."""
    results = [r for r in _as_tuple(fn(*inputs)) if _is_differentiable(r)]
    return [_double(_coordinates(results[i])).clone() for i in indices]


def _difference_along(fn, inputs, indices, moves, eps):
    """Central differences of the chosen results; `moves` are (input, direction) pairs."""
    # .data counts no versions: what was saved for backward gets its old values back.
    before = [(x.data, x.detach().clone(), u) for x, u in moves]
    try:
        for x, old, u in before:
            x.copy_(old + eps * u)
        plus = _values(fn, inputs, indices)
        for x, old, u in before:
            x.copy_(old - eps * u)
        minus = _values(fn, inputs, indices)
    finally:
        for x, old, _ in before:
            x.copy_(old)
    return [(a - b) / (2 * eps) for a, b in zip(plus, minus, strict=True)]


def _check_strides(inputs):
    for i, x in enumerate(inputs):
        if _is_differentiable(x) and x.requires_grad:
            if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True)):
                raise RuntimeError(
                    f"gradcheck: The {i}th input has a dimension with stride 0. gradcheck only supports inputs that "
                    "are non-overlapping to be able to compute the numerical gradients correctly; got strides "
                    f"{x.stride()}. You should call .contiguous on the input before passing it to gradcheck."
                )


def _numerical(fn, inputs, x, indices, eps):
    """Measured Jacobians of the chosen results with respect to one input."""
    columns = [
        _difference_along(fn, inputs, indices, [(x, u)], eps) for u in _directions(x)
    ]  # [coordinate][result]
    results = [r for r in _as_tuple(fn(*inputs)) if _is_differentiable(r)]
    return [
        _C.stack([c[k] for c in columns])
        if columns
        else _C.zeros(0, _coordinates(results[i]).numel(), dtype=_C.float64)
        for k, i in enumerate(indices)
    ]


def _vjp(outputs, index, inputs, cotangent, create_graph=False):
    return _C._autograd_grad(
        outputs[index],
        inputs,
        cotangent,
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )


def _check_gradient(gradient, x, i, check_dtypes):
    if gradient is None:
        return
    if gradient.shape != x.shape:
        raise GradcheckError(
            f"gradcheck: Analytical gradient has incorrect size; got {tuple(gradient.shape)}; expected "
            f"{tuple(x.shape)} for input {i}"
        )
    if check_dtypes and gradient.dtype != x.dtype:
        raise GradcheckError(
            f"gradcheck: Gradient has dtype mismatch; got {gradient.dtype}; expected {x.dtype} for input {i}"
        )


def _analytical_backward(outputs, inputs, index, check_dtypes=False):
    """Jacobians of one result with respect to all inputs, by reverse mode."""
    rows = []
    for cotangent in _directions(outputs[index]):
        gradients = _vjp(outputs, index, inputs, cotangent)
        for i, (g, x) in enumerate(zip(gradients, inputs, strict=True)):
            _check_gradient(g, x, i, check_dtypes)
        rows.append(
            [
                _double(_coordinates(_C.zeros_like(x.detach()) if g is None else g))
                for g, x in zip(gradients, inputs, strict=True)
            ]
        )
    if not rows:
        return [_C.zeros(_coordinates(x).numel(), 0, dtype=_C.float64) for x in inputs]
    return [_C.stack([r[i] for r in rows]).t() for i in range(len(inputs))]


def _tangents(fn, inputs, moves):
    """Tangents of all differentiable results; `moves` maps the place of an input to its tangent."""
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(x, moves[k]) if k in moves else x for k, x in enumerate(inputs)
        ]
        found = []
        for r in _as_tuple(fn(*duals)):
            if not _is_differentiable(r):
                continue
            primal, tangent = forward_ad.unpack_dual(r)
            if tangent is None:
                found.append(_C.zeros_like(primal.detach()))
                continue
            if tangent.shape != primal.shape:
                raise GradcheckError(
                    f"gradcheck: Forward AD tangent has incorrect size; got {tuple(tangent.shape)}; expected "
                    f"{tuple(primal.shape)}"
                )
            if tangent.dtype != primal.dtype:
                raise GradcheckError(
                    f"gradcheck: Forward AD tangent has dtype mismatch; got {tangent.dtype}; expected {primal.dtype}"
                )
            found.append(tangent.detach().clone())
        return found


def _analytical_forward(fn, inputs, place, indices):
    """Jacobians of the chosen results with respect to one input, by forward mode."""
    rows = []
    for u in _directions(inputs[place]):
        found = _tangents(fn, inputs, {place: u})
        rows.append([_double(_coordinates(found[i])) for i in indices])
    if not rows:
        results = [r for r in _as_tuple(fn(*inputs)) if _is_differentiable(r)]
        return [_C.zeros(0, _coordinates(results[i]).numel(), dtype=_C.float64) for i in indices]
    return [_C.stack([r[k] for r in rows]) for k in range(len(indices))]


def _mismatch(measured, computed, j, i, forward):
    how = " computed with forward mode" if forward else ""
    return (
        f"Jacobian{how} mismatch for output {j} with respect to input {i},\n"
        f"numerical:{measured}\nanalytical:{computed}\n"
    )


class _Check:
    """One function at one point."""

    def __init__(self, fn, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes):
        self.fn, self.inputs = fn, inputs
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.nondet_tol, self.check_dtypes = nondet_tol, check_grad_dtypes
        self.places = [k for k, x in enumerate(inputs) if _is_differentiable(x) and x.requires_grad]
        self.leaves = [inputs[k] for k in self.places]
        results = [r for r in _as_tuple(fn(*inputs)) if _is_differentiable(r)]
        self.results = results
        self.indices = [i for i, r in enumerate(results) if r.requires_grad]
        self.outputs = [results[i] for i in self.indices]

    def same(self, a, b):
        return _C.allclose(a, b, rtol=self.rtol, atol=self.atol)

    def expect_zero(self):
        """No result requires grad: then nothing may change with the inputs."""
        everything = list(range(len(self.results)))
        for x in self.leaves:
            for jacobian in _numerical(self.fn, self.inputs, x, everything, self.eps):
                if jacobian.numel() and not self.same(jacobian, _C.zeros_like(jacobian)):
                    raise GradcheckError(
                        "gradcheck: Numerical gradient for function expected to be zero"
                    )

    def whole(self, *, forward):
        """All Jacobians, coordinate by coordinate."""
        measured = [
            _numerical(self.fn, self.inputs, x, self.indices, self.eps) for x in self.leaves
        ]
        if forward:
            by_input = [
                _analytical_forward(self.fn, self.inputs, k, self.indices) for k in self.places
            ]
        else:
            by_output = [
                _analytical_backward(self.outputs, self.leaves, j, self.check_dtypes)
                for j in range(len(self.outputs))
            ]
            by_input = [
                [by_output[j][i] for j in range(len(self.outputs))] for i in range(len(self.leaves))
            ]
        for i, place in enumerate(self.places):
            for j, index in enumerate(self.indices):
                if not self.same(by_input[i][j], measured[i][j]):
                    raise GradcheckError(
                        _mismatch(measured[i][j], by_input[i][j], index, place, forward)
                    )
        if not forward:
            self.repeat(by_output)

    def repeat(self, first):
        for j, jacobians in enumerate(first):
            again = _analytical_backward(self.outputs, self.leaves, j)
            for a, b in zip(jacobians, again, strict=True):
                if a.numel() and (a - b).abs().max().item() > self.nondet_tol:
                    raise GradcheckError(
                        "gradcheck: Backward is not reentrant, i.e., running backward with same input and "
                        "grad_output multiple times gives different values, although analytical gradient matches "
                        f"numerical gradient. The tolerance for nondeterminism was {self.nondet_tol}."
                    )

    def projected(self, *, forward):
        """Each Jacobian between one random direction of its input and one of its output."""
        generator = _C.Generator()
        generator.manual_seed(7)

        def random_like(t):
            u = _C.rand(t.shape, generator=generator, dtype=_C.float64)
            if t.is_complex():
                u = _C.complex(u, _C.rand(t.shape, generator=generator, dtype=_C.float64))
            norm = _C.view_as_real(u).square().sum() if t.is_complex() else u.square().sum()
            return (u / norm.sqrt().clamp(min=1e-30)).to(t.dtype)

        cotangents = [random_like(o.detach()) for o in self.outputs]
        directions = [random_like(x.detach()) for x in self.leaves]
        for i, place in enumerate(self.places):
            moved = _difference_along(
                self.fn, self.inputs, self.indices, [(self.leaves[i], directions[i])], self.eps
            )
            if forward:
                tangents = _tangents(self.fn, self.inputs, {place: directions[i]})
            for j, index in enumerate(self.indices):
                v = _double(_coordinates(cotangents[j]))
                measured = (moved[j] * v).sum()
                if forward:
                    computed = (_double(_coordinates(tangents[index])) * v).sum()
                else:
                    (g,) = _vjp(self.outputs, j, [self.leaves[i]], cotangents[j])
                    _check_gradient(g, self.leaves[i], place, self.check_dtypes)
                    u = _double(_coordinates(directions[i]))
                    computed = (
                        _C.zeros((), dtype=_C.float64)
                        if g is None
                        else (_double(_coordinates(g)) * u).sum()
                    )
                # The projection sums over all coordinates: its tolerance grows with what it sums.
                slack = self.atol * max(1.0, v.abs().sum().item())
                if not _C.allclose(computed, measured, rtol=self.rtol, atol=slack):
                    text = _mismatch(measured.item(), computed.item(), index, place, forward)
                    text += (
                        "\nThe above quantities relating the numerical and analytical jacobians are computed in "
                        "fast mode: between one random direction of the input and one of the output."
                    )
                    try:
                        self.whole(forward=forward)
                    except GradcheckError as slow:
                        text += f"\nIn slow mode:\n{slow}"
                    raise GradcheckError(text)

    def zero_cotangent(self):
        """A cotangent of zero gives gradients of zero."""
        for j in range(len(self.outputs)):
            zero = _C.zeros_like(self.outputs[j].detach())
            for g, x in zip(_vjp(self.outputs, j, self.leaves, zero), self.leaves, strict=True):
                if g is None:
                    continue
                if g.numel() and not bool((g.detach() == 0).all()):
                    raise GradcheckError("gradcheck: backward not multiplied by grad_output")
                if g.device != x.device or g.layout != x.layout:
                    raise GradcheckError(
                        "gradcheck: grad is incorrect layout or device; got "
                        f"{g.layout}, {g.device}; expected {x.layout}, {x.device}"
                    )

    def undefined_tangents(self):
        """An input without tangent counts as one with a tangent of zero."""
        if len(self.leaves) < 2:
            return
        for place in self.places:
            some = {place: _C.ones_like(self.inputs[place].detach())}
            padded = {k: some.get(k, _C.zeros_like(self.inputs[k].detach())) for k in self.places}
            for a, b in zip(
                _tangents(self.fn, self.inputs, some),
                _tangents(self.fn, self.inputs, padded),
                strict=True,
            ):
                if not _C.allclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True):
                    raise GradcheckError(
                        "gradcheck: forward mode gives another result for an input without tangent than for one "
                        f"with a tangent of zero; only input {place} had a tangent"
                    )


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compare the gradients of `func` at `inputs` with central differences.

    Parameters
    ----------
    func : callable
        Gives a tensor or a tuple of them. It must not keep its inputs.
    inputs : Tensor or tuple
        Arguments of `func`; the floating and complex tensors that require grad are varied, in place. They should be
        float64 or complex128.
    eps, atol, rtol : float
        Step of the difference; tolerances of the comparison.
    raise_exception : bool
        False: a failed check gives False.
    nondet_tol : float
        How far two runs of backward may differ.
    check_undefined_grad, check_grad_dtypes : bool
        Check inputs without tangent; check the types of gradients.
    check_batched_grad, check_batched_forward_grad, masked
        Accepted; there are no batched gradients and no sparse tensors.
    check_forward_ad, check_backward_ad : bool
        Which modes are checked.
    fast_mode : bool
        Compare one number for each input and output, from random directions, in place of whole Jacobians.

    Returns
    -------
    bool
        True; False for a failed check with ``raise_exception=False``.

    Raises
    ------
    GradcheckError
        With both Jacobians, where they differ.
    ValueError
        Where no input requires grad.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "gradcheck: Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    del check_batched_grad, check_batched_forward_grad, masked
    inputs = _as_tuple(inputs)
    varied = [x for x in inputs if _is_differentiable(x) and x.requires_grad]
    if not varied:
        raise ValueError(
            "gradcheck: gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        )
    for i, x in enumerate(inputs):
        if any(x is v for v in varied):
            if x.dtype not in (_C.float64, _C.complex128):
                warnings.warn(
                    f"gradcheck: Input #{i} requires gradient and is not a double precision floating point or complex. "
                    "This check will likely fail if all the inputs are not of double precision.",
                    stacklevel=2,
                )
    _check_strides(inputs)
    try:
        check = _Check(func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if not check.outputs:
            check.expect_zero()
            return True
        run = check.projected if fast_mode else check.whole
        if check_backward_ad:
            run(forward=False)
            check.zero_cotangent()
        if check_forward_ad:
            run(forward=True)
            if check_undefined_grad:
                check.undefined_tangents()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_cotangent(t, non_contiguous):
    g = _C.randn(t.shape, dtype=t.dtype)
    if non_contiguous and g.dim():
        g = _C.stack([g, g], -1)[..., 0]
    return g.detach().requires_grad_()


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """Compare the gradients of the gradients of `func` with central differences.

    As `gradcheck`, for the function that maps `inputs` and `grad_outputs` (random where None) to the gradients of
    `inputs`. `check_fwd_over_rev` differentiates that function by forward mode, `check_rev_over_rev` by reverse mode.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "gradgradcheck: Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        cotangents = tuple(
            _random_cotangent(o, gen_non_contig_grad_outputs) for o in _outputs(func(*inputs))
        )
    else:
        cotangents = _as_tuple(grad_outputs)
    count = len(cotangents)

    def gradients(*args):
        args, given = args[: len(args) - count], args[len(args) - count :]
        outputs = _outputs(func(*args))
        varied = [x for x in args if _is_differentiable(x) and x.requires_grad]
        found = _C._autograd_grad(
            outputs, varied, list(given), create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients,
        inputs + cotangents,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


def _gradient_form(jacobian, x, output):
    """A Jacobian in real coordinates as gradients of a cotangent of one: rows of x, columns of output."""
    rows, columns = x.numel(), output.numel()
    if output.is_complex():
        jacobian = jacobian.reshape(jacobian.shape[0], columns, 2)
        jacobian = jacobian[..., 0]  # the cotangent 1 stands for the real part
    if x.is_complex():
        jacobian = jacobian.reshape(rows, 2, columns)
        return _C.complex(jacobian[:, 0].contiguous(), jacobian[:, 1].contiguous())
    return jacobian


def get_numerical_jacobian_wrt_specific_input(
    fn, input_idx, inputs, outputs, eps, input=None, is_forward_ad=False
):
    """Measured Jacobians of each result with respect to one input, (input elements, result elements)."""
    x = inputs[input_idx] if input is None else input
    every = [i for i, o in enumerate(o for o in _as_tuple(outputs) if _is_differentiable(o))]
    found = _numerical(fn, _as_tuple(inputs), x, every, eps)
    results = [o for o in _as_tuple(outputs) if _is_differentiable(o)]
    return tuple(_gradient_form(j, x, o).to(x.dtype) for j, o in zip(found, results, strict=True))


def get_numerical_jacobian(fn, inputs, target=None, eps=1e-3, grad_out=1.0):
    """Measured Jacobians of the first result, one for each input that requires grad.

    Each is (input elements, result elements); complex ones hold the gradient of the result's real part.
    `fn` takes the tuple of inputs. Raises ValueError for a `grad_out` other than 1.
    """
    if grad_out != 1.0:
        raise ValueError(
            "get_numerical_jacobian: Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values "
            "of grad_out != 1.0."
        )
    inputs = _as_tuple(inputs)

    def spread(*args):
        return fn(args)

    outputs = [o for o in _as_tuple(spread(*inputs)) if _is_differentiable(o)]
    targets = inputs if target is None else _as_tuple(target)
    return [
        get_numerical_jacobian_wrt_specific_input(spread, 0, inputs, outputs, eps, input=x)[0]
        for x in targets
        if _is_differentiable(x) and x.requires_grad
    ]


def get_analytical_jacobian(inputs, output, nondet_tol=0.0, grad_out=1.0):
    """Jacobians by reverse mode: (Jacobians, reentrant, sizes right, types right)."""
    if grad_out != 1.0:
        raise ValueError(
            "get_analytical_jacobian: Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values "
            "of grad_out != 1.0."
        )
    leaves = [x for x in _as_tuple(inputs) if _is_differentiable(x) and x.requires_grad]
    found = _analytical_backward([output], leaves, 0)
    again = _analytical_backward([output], leaves, 0)
    reentrant = all(
        not a.numel() or (a - b).abs().max().item() <= nondet_tol
        for a, b in zip(found, again, strict=True)
    )
    sizes, types = True, True
    for g, x in zip(_vjp([output], 0, leaves, _C.ones_like(output.detach())), leaves, strict=True):
        sizes = sizes and (g is None or g.shape == x.shape)
        types = types and (g is None or g.dtype == x.dtype)
    jacobians = tuple(
        _gradient_form(j, x, output).to(x.dtype) for j, x in zip(found, leaves, strict=True)
    )
    return jacobians, reentrant, sizes, types
