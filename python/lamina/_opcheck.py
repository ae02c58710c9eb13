"""Whether an operator does what its schema, its fake kernel and its gradient say."""

from dataclasses import dataclass

from lamina import _C


class OpCheckError(Exception):
    """An operator does not do what its schema or its fake kernel says."""


@dataclass
class _Seen:
    name: str
    tensor: object
    before: object
    may_write: bool
    aliases: frozenset


_UTILS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


def opcheck(
    op, args, kwargs=None, *, test_utils=_UTILS, raise_exception=True, atol=None, rtol=None
):
    """Test an operator on sample arguments.

    test_schema runs it and looks whether it writes to or returns what its schema does not say; test_faketensor compares the fake
    kernel's results with the real ones; test_autograd_registration asks for a gradient. Returns {test: "SUCCESS" or the error}; raises
    OpCheckError where `raise_exception`.
    """
    from lamina.library import CustomOpDef

    if isinstance(op, CustomOpDef):
        op = op._opoverload
    elif not hasattr(op, "_full_name"):
        op = getattr(op, op.overloads()[0])
    tests = [test_utils] if isinstance(test_utils, str) else test_utils
    results = {}
    for test in tests:
        if test not in _UTILS:
            raise ValueError(f"opcheck: unknown test {test!r}; expected some of {_UTILS}")
        try:
            _CHECKS[test](op, _copied(args), _copied(kwargs or {}))
            results[test] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck: {test} failed for {op}: {error}") from error
            results[test] = error
    return results


def _copied(tree):
    from lamina.utils._pytree import tree_map

    def copied(x):
        return x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, _C.Tensor) else x

    return tree_map(copied, tree)


def _tensors(value):
    if isinstance(value, _C.Tensor):
        return [value]
    return (
        [v for v in value if isinstance(v, _C.Tensor)] if isinstance(value, (list, tuple)) else []
    )


def _same(a, b):
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _check_schema(op, args, kwargs):
    from lamina.library import _with_defaults

    positional, named = _with_defaults(op._schema, args, kwargs)
    seen = []
    values = {**dict(zip([a.name for a in op._schema.arguments], positional)), **named}
    for a in op._schema.arguments:
        for t in _tensors(values.get(a.name)):
            names = a.alias_info.before_set if a.alias_info else frozenset()
            seen.append(_Seen(a.name, t, t.detach().clone(), a.is_write, names))
    with _C.no_grad():
        result = op(*args, **kwargs)
    for s in seen:
        if not s.may_write and not _same(s.tensor.detach(), s.before):
            raise OpCheckError(
                f"Argument {s.name} is not defined as mutable but was mutated; the schema is {op._schema}"
            )
    results = result if isinstance(result, (tuple, list)) else (result,)
    returns = op._schema.returns
    for i, r in enumerate(results):
        declared = returns[min(i, len(returns) - 1)] if returns else None
        names = declared.alias_info.before_set if declared and declared.alias_info else frozenset()
        for t in _tensors(r):
            for s in seen:
                shared = (
                    t.numel()
                    and s.tensor.numel()
                    and (t.untyped_storage().data_ptr() == s.tensor.untyped_storage().data_ptr())
                )
                if shared and not (names & s.aliases):
                    raise OpCheckError(
                        f"Argument {s.name} is not defined to alias output but was aliasing; the schema "
                        f"is {op._schema}"
                    )


def _check_fake(op, args, kwargs):
    from lamina.utils._pytree import tree_map

    if not _C._dispatch_has_kernel_for_dispatch_key(op._full_name, "Meta"):
        if op._full_name.startswith("aten::"):
            return
        raise OpCheckError("no fake kernel was registered; use register_fake")
    with _C.no_grad():
        real = op(*_copied(args), **_copied(kwargs))
        meta = op(
            *tree_map(lambda x: x.to("meta") if isinstance(x, _C.Tensor) else x, args),
            **tree_map(lambda x: x.to("meta") if isinstance(x, _C.Tensor) else x, kwargs),
        )
    for r, m in zip(_tensors(real), _tensors(meta)):
        if r.shape != m.shape or r.dtype != m.dtype:
            raise OpCheckError(
                f"the fake kernel gives {tuple(m.shape)}, {m.dtype}; the real one {tuple(r.shape)}, {r.dtype}"
            )
    if len(_tensors(real)) != len(_tensors(meta)):
        raise OpCheckError("the fake kernel gives another number of results")


def _check_autograd(op, args, kwargs):
    wanted = [t for a in (*args, *kwargs.values()) for t in _tensors(a) if t.requires_grad]
    if not wanted:
        return
    results = [t for t in _tensors(op(*args, **kwargs)) if t.is_floating_point() or t.is_complex()]
    if results and not any(t.requires_grad for t in results):
        raise OpCheckError("results of arguments that require gradients do not require them")


_CHECKS = {
    "test_schema": _check_schema,
    "test_faketensor": _check_fake,
    "test_autograd_registration": _check_autograd,
    "test_aot_dispatch_dynamic": lambda op, args, kwargs: None,
}
