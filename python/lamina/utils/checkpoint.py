"""Checkpointing: memory for time. What backward needs is computed again instead of kept."""

import contextlib
import functools
import itertools
import warnings
import weakref
from collections.abc import Callable

import lamina
from lamina import _C
from lamina.autograd.function import Function
from lamina.autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "DefaultDeviceType",
    "checkpoint",
    "checkpoint_sequential",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_DETERMINISM_CHECKS = ("default", "none")
_early_stop = True


class CheckpointError(RuntimeError):
    """Raised where the second run of a checkpointed function differs from the first."""


class DefaultDeviceType:
    """The device whose random state is kept beside the CPU's."""

    _default = "cpu"

    @staticmethod
    def set_device_type(device: str = "cpu") -> None:
        """Name the device."""
        DefaultDeviceType._default = device

    @staticmethod
    def get_device_type() -> str:
        """The name of the device."""
        return DefaultDeviceType._default


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """In the block: whether a second run stops as soon as everything needed is there."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Accepted: what debugging would note, the operators that save, is always noted."""
    yield


def noop_context_fn():
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs: tuple) -> tuple:
    """The arguments with every tensor cut from its history; requires_grad is kept."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            + type(inputs).__name__
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, lamina.Tensor) else x
        for x in inputs
    )


def check_backward_validity(inputs) -> None:
    """Warn where no input requires grad, so that nothing will get a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, lamina.Tensor)):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


def get_device_states(*args) -> tuple[list, list]:
    """Devices of the arguments beside the CPU, and their random states: none here."""
    return [], []


def set_device_states(devices, states, *, device_type=None) -> None:
    """Put random states of devices back."""


class _RandomState:
    """The state of the generator, to run something again with the same random numbers."""

    def __init__(self, keep: bool) -> None:
        self.state = lamina.get_rng_state() if keep else None

    @contextlib.contextmanager
    def restored(self):
        if self.state is None:
            yield
            return
        now = lamina.get_rng_state()
        lamina.set_rng_state(self.state)
        try:
            yield
        finally:
            lamina.set_rng_state(now)


# ---- reentrant: a function that runs backward inside its own backward ----------------------------


class CheckpointFunction(Function):
    """Runs without recording; its backward runs again, recorded, and backward through that."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random_state = _RandomState(preserve_rng_state)
        ctx.inputs = list(args)
        ctx.tensor_places = [i for i, a in enumerate(args) if isinstance(a, lamina.Tensor)]
        for i in ctx.tensor_places:
            ctx.inputs[i] = None
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_places))
        with lamina.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.random_state.restored(), lamina.enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, lamina.Tensor):
            outputs = (outputs,)
        wanted = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=True)
            if isinstance(out, lamina.Tensor) and out.requires_grad
        ]
        if not wanted:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        lamina.autograd.backward([out for out, _ in wanted], [grad for _, grad in wanted])
        return (
            None,
            None,
            *(x.grad if isinstance(x, lamina.Tensor) else None for x in detached),
        )


# ---- not reentrant: saved tensors that are computed again when they are asked for ----------------


class _Place:
    """Stands in the graph for a tensor that is not kept."""

    __slots__ = ("__weakref__", "found")

    def __init__(self) -> None:
        self.found: dict = {}  # pass -> the tensor computed again


class _Inputs(Function):
    """Keeps the arguments of a checkpoint in the graph, where an outer checkpoint sees them."""

    @staticmethod
    def forward(*tensors):
        return lamina.empty(0)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, *grads):
        raise AssertionError("checkpoint: nothing is computed from the kept arguments")


class _Stop(Exception):
    """Everything that backward needs has been computed."""


def _describe(tensor) -> tuple:
    return tuple(tensor.shape), tensor.dtype, tensor.device


class _Frame:
    """One checkpointed call: how to run it again, and what it would have kept."""

    def __init__(self, run, preserve_rng_state: bool, check: str) -> None:
        self.run = run
        self.random_state = _RandomState(preserve_rng_state)
        self.check = check == "default"
        self.early_stop = _early_stop
        self.places: list = []  # weak references, in order of saving
        self.described: list = []  # (size, type, device) and operator of each
        self.done: set = set()  # passes that have run it again

    def pack(self, tensor):
        place = _Place()
        self.places.append(weakref.ref(place))
        self.described.append((_describe(tensor), _C._saving_node_name()))
        return place

    def unpack(self, place):
        number = _C._current_graph_task_id()
        key = number if number != -1 else object()
        if key not in place.found:
            if key in self.done:
                raise CheckpointError(
                    "torch.utils.checkpoint: A tensor that was saved during the original forward "
                    "is unpacked twice in one pass, or was not computed again."
                )
            self.run_again(key)
        if key not in place.found:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation; this one was not computed again."
            )
        return place.found.pop(key)

    def run_again(self, key) -> None:
        self.done.add(key)
        again: list = []  # descriptions, in order of saving

        def pack(tensor):
            i = len(again)
            again.append((_describe(tensor), _C._saving_node_name()))
            if i < len(self.places):
                place = self.places[i]()
                if place is not None:
                    place.found[key] = tensor.detach()
            if self.early_stop and len(again) == len(self.places):
                raise _Stop
            return tensor.detach()

        try:
            with saved_tensors_hooks(pack, lambda t: t), lamina.enable_grad():
                self.run()
        except _Stop:
            pass
        self.compare(again)

    def compare(self, again: list) -> None:
        """Raise CheckpointError where the two runs saved different tensors."""
        if not self.check:
            return
        for i, (first, second) in enumerate(
            itertools.zip_longest(self.described, again, fillvalue=None)
        ):
            if first is None or second is None:
                extra = first or second
                where = "forward" if second is None else "recomputation"
                raise CheckpointError(
                    "torch.utils.checkpoint: A different number of tensors was saved during the "
                    f"original forward and recomputation.\nNumber of tensors saved during forward: "
                    f"{len(self.described)}\nNumber of tensors saved during recomputation: "
                    f"{len(again)}.\nThe first without a counterpart: number {i}, saved by "
                    f"{extra[1]} in the {where}."
                )
            if first != second:
                names = ("shape", "dtype", "device")
                parts = "".join(
                    f"\n  saved {n}: {a}, recomputed {n}: {b}"
                    for n, a, b in zip(names, first[0], second[0], strict=True)
                    if a != b
                )
                by = (
                    f"saved by {first[1]}"
                    if first[1] == second[1]
                    else f"saved by {first[1]} in the forward, by {second[1]} in the recomputation"
                )
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have "
                    "different metadata than during the forward pass.\n"
                    f"tensor at position {i}, {by}:{parts}"
                )


def _values_and_levels(tensor):
    """(the tensor under all levels of vmap, the (dimension, level) of each from the outside in)."""
    levels = []
    while (batch := _C._batch_of(tensor)) is not None:
        tensor = batch[0]
        levels.append(batch[1:])
    return tensor, levels


def _checkpoint_without_reentrant(
    function, preserve_rng_state, context_fn, determinism_check, args, kwargs
):
    if determinism_check not in _DETERMINISM_CHECKS:
        raise ValueError(
            f"determinism_check should be one of {list(_DETERMINISM_CHECKS)}, but got "
            f"{determinism_check}"
        )
    if not lamina.is_grad_enabled():
        return function(*args, **kwargs)
    forward_context, again_context = context_fn()
    tensor_places = [i for i, a in enumerate(args) if isinstance(a, lamina.Tensor)]
    others = [None if isinstance(a, lamina.Tensor) else a for a in args]
    names = [k for k, v in kwargs.items() if isinstance(v, lamina.Tensor)]
    other_kwargs = {k: v for k, v in kwargs.items() if k not in names}
    tensors = [args[i] for i in tensor_places] + [kwargs[k] for k in names]
    token = lamina.empty(0, requires_grad=True)
    # Inside vmap the values under the samples are kept.
    unwrapped = [_values_and_levels(t) for t in tensors]
    kept = _Inputs.apply(token, *(value for value, _ in unwrapped))

    def run():
        again = list(others)
        found = [
            functools.reduce(lambda t, place: _C._add_batch_dim(t, *place), reversed(levels), value)
            for value, (_, levels) in zip(kept.grad_fn.saved_tensors[1:], unwrapped, strict=True)
        ]
        for i, t in zip(tensor_places, found[: len(tensor_places)], strict=True):
            again[i] = t
        named = dict(zip(names, found[len(tensor_places) :], strict=True))
        with frame.random_state.restored(), again_context:
            function(*again, **other_kwargs, **named)

    frame = _Frame(run, preserve_rng_state, determinism_check)
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        return function(*args, **kwargs)


def checkpoint(
    function: Callable,
    *args,
    use_reentrant: bool | None = None,
    context_fn: Callable = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs,
):
    """``function(*args, **kwargs)``, keeping its arguments only; backward runs it again.

    Parameters
    ----------
    function : callable
        Must compute the same when it is called again.
    use_reentrant : bool
        True: backward inside of backward, the older way, which needs an argument that requires
        grad and does not work with ``autograd.grad``. False is advised, and what None means.
    preserve_rng_state : bool
        Whether the second run sees the random numbers of the first (True).
    context_fn : callable
        Gives two contexts: around the first run and around the second.
    determinism_check : str
        "default": sizes, types and devices of what is saved, and the operators that save it, must
        be the same in both runs; "none": not looked at.
    early_stop : bool
        Whether the second run stops as soon as everything needed is there.

    Raises
    ------
    CheckpointError
        In backward, where the two runs differ; names the operator.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended, and taken here.",
            stacklevel=2,
        )
        use_reentrant = False
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    with set_checkpoint_early_stop(early_stop and _early_stop):
        return _checkpoint_without_reentrant(
            function, preserve, context_fn, determinism_check, args, kwargs
        )


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):  # noqa: A002
    """Run modules in a row, in `segments` parts, each part but the last under checkpoint().

    Parameters
    ----------
    functions : Sequential or list of callables
    segments : int
    input : Tensor
        Of the first module.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def run(start, end):
        def forward(x):
            for part in parts[start : end + 1]:
                x = part(x)
            return x

        return forward

    size = len(parts) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(  # noqa: A001
            run(start, end), input, use_reentrant=bool(use_reentrant), preserve_rng_state=preserve
        )
    return run(end + 1, len(parts) - 1)(input)
