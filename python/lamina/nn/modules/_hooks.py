"""Hooks around calls of modules: those of all modules, and the call where there are any."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict

from lamina import Tensor
from lamina.utils.hooks import BackwardHook, RemovableHandle

# Hooks of all modules. They run before a module's own.
_global_backward_pre_hooks: dict = OrderedDict()
_global_backward_hooks: dict = OrderedDict()
_global_forward_pre_hooks: dict = OrderedDict()
_global_forward_hooks: dict = OrderedDict()
_global_forward_hooks_always_called: dict = OrderedDict()
_global_forward_hooks_with_kwargs: dict = OrderedDict()
_global_buffer_registration_hooks: dict = OrderedDict()
_global_module_registration_hooks: dict = OrderedDict()
_global_parameter_registration_hooks: dict = OrderedDict()
_global_is_full_backward_hook = None


def _added(hooks, hook, extra=()):
    handle = RemovableHandle(hooks, extra_dict=list(extra))
    hooks[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` whenever a module gets a buffer; what it returns replaces the buffer."""
    return _added(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` whenever a module gets a submodule."""
    return _added(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, parameter)`` whenever a module gets a parameter."""
    return _added(_global_parameter_registration_hooks, hook)


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, args)`` before the forward of every module."""
    return _added(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after the forward of every module.

    With `with_kwargs` the keyword arguments come before the output; with `always_call` also where forward raised.
    """
    handle = _added(
        _global_forward_hooks,
        hook,
        (_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called),
    )
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def _say_kind(full):
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "register_module_backward_hook: the hooks of all modules are either of the old or of the "
            "full kind; remove those of the other kind first"
        )
    _global_is_full_backward_hook = full


def register_module_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` in backward of every module, the old way; see the full kind."""
    _say_kind(False)
    return _added(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before the gradients of every module's inputs are computed."""
    return _added(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` when the gradients of every module's inputs are there."""
    _say_kind(True)
    return _added(_global_backward_hooks, hook)


def _has_any_global_hook():
    return bool(
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


def _get_backward_hooks(self):
    full, old = [], []
    if _global_is_full_backward_hook is True:
        full += _global_backward_hooks.values()
    elif _global_is_full_backward_hook is False:
        old += _global_backward_hooks.values()
    if self._is_full_backward_hook is True:
        full += self._backward_hooks.values()
    elif self._is_full_backward_hook is False:
        old += self._backward_hooks.values()
    return full, old


def _get_backward_pre_hooks(self):
    return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]


def _before(self, args, kwargs):
    """Run the hooks before forward; the arguments as they leave them."""
    for number, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
        if number in self._forward_pre_hooks_with_kwargs:
            given = hook(self, args, kwargs)
            if given is not None:
                if not (isinstance(given, tuple) and len(given) == 2):
                    raise RuntimeError(
                        "forward pre-hook: with_kwargs hooks return None or a tuple of (args, kwargs); "
                        f"got {given}."
                    )
                args, kwargs = given
        else:
            given = hook(self, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
    return args, kwargs


def _after(self, number, hook, args, kwargs, result):
    if number in self._forward_hooks_with_kwargs or number in _global_forward_hooks_with_kwargs:
        given = hook(self, args, kwargs, result)
    else:
        given = hook(self, args, result)
    return result if given is None else given


def _first_tensor(result):
    while not isinstance(result, Tensor):
        if isinstance(result, dict):
            result = next(v for v in result.values() if isinstance(v, Tensor))
        else:
            result = result[0]
    return result


def call_with_hooks(self, args, kwargs):
    """Forward of a module with everything that was registered around it."""
    full, old = _get_backward_hooks(self)
    before_backward = _get_backward_pre_hooks(self)
    called = set()
    backward = result = None
    try:
        args, kwargs = _before(self, args, kwargs)
        if full or before_backward:
            backward = BackwardHook(self, full, before_backward)
            args = backward.setup_input_hook(args)
        result = self._slow_forward(*args, **kwargs)
        for number, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            called.add(number)
            result = _after(self, number, hook, args, kwargs, result)
        if backward is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "full backward hook: the output should be a Tensor or a tuple of Tensors; "
                    f"got {type(result)}; the hook of {type(self).__name__} sees no gradient through it",
                    stacklevel=4,
                )
            result = backward.setup_output_hook(result)
        if old:
            node = _first_tensor(result).grad_fn
            if node is not None:
                for hook in old:
                    node.register_hook(functools.wraps(hook)(functools.partial(hook, self)))
                self._maybe_warn_non_full_backward_hook(args, result, node)
        return result
    except Exception:
        _call_always(self, called, args, kwargs, result)
        raise


def _call_always(self, called, args, kwargs, result):
    """After an error: the hooks that run in any case and have not; their own errors become warnings."""
    always = [
        (n, h) for n, h in _global_forward_hooks.items() if n in _global_forward_hooks_always_called
    ] + [(n, h) for n, h in self._forward_hooks.items() if n in self._forward_hooks_always_called]
    for number, hook in always:
        if number in called:
            continue
        try:
            result = _after(self, number, hook, args, kwargs, result)
        except Exception as error:
            warnings.warn(
                f"forward hook with always_call=True raised an exception that was silenced because "
                f"another was under way: {error}",
                stacklevel=4,
            )


def _maybe_warn_non_full_backward_hook(self, inputs, result, grad_fn):
    """Warn where an old backward hook does not see what its writer expects."""
    results = (result,) if isinstance(result, Tensor) else result
    if not (isinstance(results, tuple) and all(isinstance(r, Tensor) for r in results)):
        what = "a module that gives anything but tensors"
    elif not all(isinstance(i, Tensor) for i in inputs):
        what = "a module that takes anything but tensors"
    elif len(results) > 1:
        what = "a module with several outputs"
    elif {n for n, _ in grad_fn.next_functions} - {i.grad_fn for i in inputs} - {None}:
        what = "a module of several operators"
    else:
        return
    warnings.warn(
        f"register_backward_hook: with {what}, grad_input lacks some gradients; "
        "use register_full_backward_hook",
        FutureWarning,
        stacklevel=5,
    )


def _register(self, hooks, hook, extra=(), prepend=False, flags=()):
    handle = RemovableHandle(hooks, extra_dict=list(extra))
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
    """Call ``hook(module, args)`` before forward; what it returns replaces the positional arguments.

    With `with_kwargs` it is ``hook(module, args, kwargs)`` and gives both or None. `prepend` puts it before the others.
    """
    flags = (self._forward_pre_hooks_with_kwargs,)
    return _register(
        self, self._forward_pre_hooks, hook, flags, prepend, flags if with_kwargs else ()
    )


def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
    """Call ``hook(module, args, output)`` after forward; what it returns replaces the output.

    With `with_kwargs` it is ``hook(module, args, kwargs, output)``; with `always_call` it also runs, with output None,
    where forward raised.
    """
    kwargs_flag, always_flag = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
    flags = [kwargs_flag] * with_kwargs + [always_flag] * always_call
    return _register(self, self._forward_hooks, hook, (kwargs_flag, always_flag), prepend, flags)


def register_full_backward_pre_hook(self, hook, prepend=False):
    """Call ``hook(module, grad_output)`` before backward of the module; what it returns replaces `grad_output`."""
    return _register(self, self._backward_pre_hooks, hook, prepend=prepend)


def _say_own_kind(self, full):
    if self._is_full_backward_hook is (not full):
        raise RuntimeError(
            "register_backward_hook: a module's backward hooks are either of the old or of the full "
            "kind; remove those of the other kind first"
        )
    self._is_full_backward_hook = full


def register_full_backward_hook(self, hook, prepend=False):
    """Call ``hook(module, grad_input, grad_output)`` in backward; what it returns replaces `grad_input`.

    Raises RuntimeError where the module has backward hooks of the old kind.
    """
    _say_own_kind(self, True)
    return _register(self, self._backward_hooks, hook, prepend=prepend)


def register_backward_hook(self, hook):
    """The old kind: the hook sees the gradients of the last operator only. See `register_full_backward_hook`."""
    _say_own_kind(self, False)
    return _register(self, self._backward_hooks, hook)
