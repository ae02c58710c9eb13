"""Handles that remove hooks again."""

import itertools
import weakref
from typing import Any

__all__ = ["RemovableHandle", "add_hook", "unserializable_hook", "warn_if_has_hooks"]


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
