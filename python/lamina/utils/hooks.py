"""Handles that remove hooks again."""

import itertools
import weakref
from typing import Any

__all__ = [
    "BackwardHook",
    "RemovableHandle",
    "add_hook",
    "unserializable_hook",
    "warn_if_has_hooks",
]


class RemovableHandle:
    """Takes one hook out of its dict, and out of others that keep something by the same number.

    Parameters
    ----------
    hooks_dict : dict
        Where the hook is kept, by `handle.id`. Held weakly.
    extra_dict : dict or list of dicts
        Dicts that keep more about the hook.
    """

    _numbers = itertools.count()
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = next(RemovableHandle._numbers)
        RemovableHandle.next_id = self.id + 1
        if extra_dict is None:
            extra_dict = []
        elif isinstance(extra_dict, dict):
            extra_dict = [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self) -> None:
        """The hook is not called any more; a second time does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        if self.extra_dict_ref:
            return (self.hooks_dict_ref(), self.id, tuple(r() for r in self.extra_dict_ref))
        return (self.hooks_dict_ref(), self.id)

    def __setstate__(self, state) -> None:
        from collections import OrderedDict

        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        while RemovableHandle.next_id <= self.id:
            RemovableHandle.next_id = next(RemovableHandle._numbers) + 1

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exception) -> None:
        self.remove()


def add_hook(hooks, function) -> RemovableHandle:
    """Put `function` at the end of a dict of hooks."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = function
    return handle


def unserializable_hook(function):
    """Mark a hook that is left out, with a warning, when its tensor is pickled."""
    function.__torch_unserializable__ = True
    return function


def warn_if_has_hooks(tensor) -> None:
    """Warn of hooks that pickling `tensor` would lose."""
    import warnings

    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized. If this is expected, "
                "decorate the function with @torch.utils.hooks.unserializable_hook",
                stacklevel=2,
            )


class BackwardHook:
    """Full backward hooks around one call of a module.

    The inputs and the outputs pass through an identity each; the hook at the outputs' notes their gradients and runs
    `user_pre_hooks`, the one at the inputs' runs `user_hooks` with both.
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.input_places = self.output_places = None

    def setup_input_hook(self, args):
        """The arguments, those that are tensors passed through the identity."""
        result, self.input_places = self._through_identity(self._hook_inputs, args)
        self.n_inputs = len(args)
        return result

    def setup_output_hook(self, args):
        """The module's result, its tensors passed through the identity."""
        alone = not isinstance(args, tuple)
        values = (args,) if alone else args
        self.n_outputs = len(values)
        result, self.output_places = self._through_identity(self._hook_outputs, values)
        return result[0] if alone else result

    def _through_identity(self, hook_node, args):
        from lamina import Tensor, is_grad_enabled
        from lamina.nn.modules._functions import BackwardHookFunction

        places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not is_grad_enabled() or not any(args[i].requires_grad for i in places):
            return args, None
        passed = BackwardHookFunction.apply(*(args[i] for i in places))
        if not passed:
            raise RuntimeError("BackwardHook: a module with backward hooks needs a tensor")
        node = next(t.grad_fn for t in passed if t.grad_fn is not None)
        hook_node(node)
        result = list(args)
        for i, tensor in zip(places, passed):
            result[i] = tensor
        return tuple(result), places

    @staticmethod
    def _spread(places, values, size):
        result = [None] * size
        for i, value in zip(places, values):
            result[i] = value
        return tuple(result)

    def _replaced(self, hook, given, expected, what):
        given = given if isinstance(given, tuple) else (given,)
        if len(given) != expected:
            raise RuntimeError(
                f"backward hook: {hook!r} returned a wrong number of {what}; got {len(given)}; "
                f"expected {expected}"
            )
        return given

    def _hook_inputs(self, node):
        def hook(grad_input, _):
            if self.grad_outputs is None:  # backward did not come through the outputs
                return None
            grads = self._spread(self.input_places, grad_input, self.n_inputs)
            for user in self.user_hooks:
                given = user(self.module, grads, self.grad_outputs)
                if given is not None:
                    grads = self._replaced(user, given, len(grads), "grad_input")
            self.grad_outputs = None
            return tuple(grads[i] for i in self.input_places)

        node.register_hook(hook)

    def _hook_outputs(self, node):
        def hook(_, grad_output):
            grads = self._spread(self.output_places, grad_output, self.n_outputs)
            for user in self.user_pre_hooks:
                given = user(self.module, grads)
                if given is not None:
                    grads = self._replaced(user, given, len(grads), "grad_output")
            self.grad_outputs = grads
            if (
                self.input_places is None
            ):  # no input needs a gradient: nothing later would run the hooks
                for user in self.user_hooks:
                    given = user(self.module, (None,) * self.n_inputs, grads)
                    if given is not None and not (
                        isinstance(given, tuple) and all(g is None for g in given)
                    ):
                        raise RuntimeError(
                            "backward hook: no input of the module needs a gradient; the hook must "
                            "return None, or None for each input"
                        )
                self.grad_outputs = None
            return tuple(grads[i] for i in self.output_places)

        node.register_hook(hook)
