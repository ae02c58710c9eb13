"""Nodes of the recorded graph, and hooks on what it keeps."""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import lamina
from lamina import _C
from lamina.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


class _NodeMeta(type):
    """Nodes of operators and contexts of custom functions are nodes alike."""

    def __subclasscheck__(cls, other):
        return issubclass(other, (_C._Node, _C._FunctionBase))

    def __instancecheck__(cls, instance):
        return isinstance(instance, (_C._Node, _C._FunctionBase))


class Node(metaclass=_NodeMeta):
    """A recorded operator: what ``tensor.grad_fn`` gives.

    ``name()``, ``next_functions``, ``metadata``, ``register_hook(f)``, ``register_prehook(f)``, and
    what it keeps for backward as ``_saved_NAME``.
    """


class GradientEdge(NamedTuple):
    """Where the gradient of one tensor arrives: result number `output_nr` of `node`."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge of a tensor that requires grad; engine calls take it in the tensor's place."""
    return GradientEdge(*_C._gradient_edge(tensor))


def increment_version(tensor) -> None:
    """Tell autograd that a tensor (or each of several) was written behind its back."""
    for t in (tensor,) if isinstance(tensor, lamina.Tensor) else tensor:
        t._bump_version()


class saved_tensors_hooks:  # noqa: N801
    """In the block, ``pack(tensor)`` decides what is kept for backward; ``unpack`` gives it back."""

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exception) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):  # noqa: N801
    """In the block, what is kept for backward lies on the CPU, and comes back when it is used."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor):
            if tensor.device.type == "cpu":
                return (tensor.device, tensor.clone())
            return (tensor.device, tensor.to("cpu"))

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str):
    """In the block, entering saved_tensors_hooks raises RuntimeError(error_message)."""
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


class _MultiHandle(RemovableHandle):
    def __init__(self, handles) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self):
        return self.handles

    def __setstate__(self, state) -> None:
        self.handles = state


def _edge_node(tensor_or_edge):
    if isinstance(tensor_or_edge, GradientEdge):
        return tensor_or_edge.node
    return _C._gradient_edge(tensor_or_edge)[0]


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable, *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` when the gradients of several tensors are known.

    Parameters
    ----------
    tensors : sequence of Tensor
        All require grad.
    fn : callable
        mode "all": fn(list of gradients, None for those that do not arrive) once all that will
        arrive in a pass have arrived. mode "any": fn(gradient) at the first.
    mode : str
        "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    nodes = [_edge_node(t) for t in tensors]

    if mode == "any":
        ran: dict[int, bool] = defaultdict(bool)

        def first(grad):
            number = _C._current_graph_task_id()
            with lock:
                seen, ran[number] = ran[number], True
            if not seen:
                fn(grad)

        return _MultiHandle([t.register_hook(first) for t in tensors])

    arrived: dict[int, int] = {}
    expected: dict[int, int] = {}
    buffers: dict[int, list] = {}

    def hook_for(i):
        def hook(grad):
            number = _C._current_graph_task_id()
            with lock:
                if number not in buffers:
                    buffers[number] = [None] * len(tensors)
                    arrived[number] = 0
                    expected[number] = sum(_C._will_engine_execute_node(n) for n in nodes)
                buffers[number][i] = grad
                arrived[number] += 1
                complete = arrived[number] == expected[number]
            if complete:
                grads = buffers.pop(number)
                del arrived[number], expected[number]
                fn(grads)

        return hook

    return _MultiHandle([t.register_hook(hook_for(i)) for i, t in enumerate(tensors)])


class _CopiesBeforeWrites:
    """What allow_mutation_on_saved_tensors keeps: saved tensors by their bytes."""

    def __init__(self) -> None:
        self.copies: dict = {}

    def clear(self) -> None:
        """Forget all copies."""
        self.copies.clear()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """In the block, tensors kept for backward may be written in place: copies are kept.

    Backward has to run inside the block.
    """
    context = _CopiesBeforeWrites()

    def pack(tensor):
        handle = object()
        context.copies[handle] = tensor.clone()
        return handle

    def unpack(handle):
        if handle not in context.copies:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return context.copies[handle]

    with saved_tensors_hooks(pack, unpack):
        try:
            yield context
        finally:
            context.clear()
