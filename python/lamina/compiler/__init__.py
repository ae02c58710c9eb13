"""The compiler's entrance. Functions are not compiled in this release: they run as they are."""

from lamina import _missing


def compile(  # noqa: A001
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend="inductor",
    mode=None,
    options=None,
    disable=False,
    **_,
):
    """Gives the function or module back: it runs as it is, operator by operator."""
    if model is None:
        return lambda given: given
    if not callable(model):
        raise AssertionError(
            f"compile: A callable function is expected, but {type(model)} is provided."
        )
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """A decorator without effect."""
    return (lambda given: given) if fn is None else fn


def allow_in_graph(fn):
    """A decorator without effect."""
    return fn


def assume_constant_result(fn):
    """A decorator without effect."""
    return fn


def substitute_in_graph(
    original_fn, *, can_constant_fold_through=False, skip_signature_check=False
):
    """A decorator without effect."""
    return lambda given: given


def is_compiling():
    """False."""
    return False


def is_dynamo_compiling():
    """False."""
    return False


def is_exporting():
    """False."""
    return False


def reset():
    """Forgets compiled code; there is none."""


def cudagraph_mark_step_begin():
    """Does nothing without a GPU."""


def set_stance(stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
    """Accepted; everything runs as it is. Works as a block and as a decorator."""
    return _Stance()


class _Stance:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __call__(self, fn):
        return fn


def list_backends(exclude_tags=("debug", "experimental")):
    """Names of compilers: none."""
    return []


__getattr__ = _missing.getattr_of(__name__)
