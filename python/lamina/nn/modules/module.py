"""Module: what networks are made of."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

import lamina
from lamina import _C, Tensor
from lamina.nn.modules import _hooks
from lamina.nn.modules._hooks import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from lamina.nn.modules._state import (  # noqa: F401
    _EXTRA_STATE_KEY_SUFFIX,
    _IncompatibleKeys,
    _WrappedHook,
)
from lamina.nn.parameter import Buffer, Parameter
from lamina.utils.hooks import RemovableHandle  # noqa: F401

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

T = TypeVar("T", bound="Module")

# Dicts that every module has from the start, beside its parameters, buffers and modules.
_HOOK_DICTS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)  # fmt: skip


def __getattr__(name):
    # Which kind the backward hooks of all modules have changes; the other globals are dicts.
    if name.startswith("_global_") or name == "_has_any_global_hook":
        return getattr(_hooks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _forward_unimplemented(self, *input):
    """What a call computes; every subclass defines it."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


def _registered(hooks, module, name, value):
    """What the global hooks make of a value that is about to be registered."""
    for hook in hooks.values():
        given = hook(module, name, value)
        if given is not None:
            value = given
    return value


class Module:
    """Base of all networks and their parts.

    Parameters, buffers and modules that are assigned to attributes are registered under the attribute's name, so that
    `parameters`, `state_dict`, `to` and the like reach them. A subclass calls ``super().__init__()`` first and defines
    `forward`.

    Examples
    --------
    >>> import lamina
    >>> from lamina import nn
    >>> class Twice(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(lamina.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Twice()(lamina.ones(2))
    tensor([2., 2.], grad_fn=<MulBackward0>)
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} "
                "were given"
            )
        d = self.__dict__
        d["training"] = True
        d["_parameters"] = {}
        d["_buffers"] = {}
        d["_non_persistent_buffers_set"] = set()
        d["_is_full_backward_hook"] = None
        for name in _HOOK_DICTS:
            d[name] = OrderedDict()
        d["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _C._give_module_slots(cls)

    # Calls

    def _call_impl(self, *args, **kwargs):
        d = self.__dict__
        try:
            if not (
                d["_forward_hooks"]
                or d["_forward_pre_hooks"]
                or d["_backward_hooks"]
                or d["_backward_pre_hooks"]
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            ):
                return self.forward(*args, **kwargs)
        except KeyError as error:
            if not str(error).startswith("'_"):
                raise
            _check_initialized(self)
            raise
        return _hooks.call_with_hooks(self, args, kwargs)

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    __call__ = _wrapped_call_impl

    def _slow_forward(self, *input, **kwargs):
        return self.forward(*input, **kwargs)

    def compile(self, *args, **kwargs):
        """Compile the call with `lamina.compile`, which gets the arguments."""
        self._compiled_call_impl = lamina.compile(self._call_impl, *args, **kwargs)

    # Parts

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that belongs to the module and is no parameter.

        Parameters
        ----------
        name : str
            The attribute's name.
        tensor : Tensor or None
        persistent : bool
            Whether `state_dict` has it.

        Raises
        ------
        TypeError
            `name` is no str or `tensor` no Tensor.
        KeyError
            The name is empty, has a dot or is taken.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("register_buffer", "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{lamina.typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        tensor = _registered(_global_buffer_registration_hooks, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name, param):
        """Add a parameter, or None in the place of one.

        Raises TypeError where `param` is no Parameter, KeyError where the name is empty, has a dot or is taken, ValueError
        where the parameter was computed from others.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("register_parameter", "parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{lamina.typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"register_parameter: cannot assign a tensor that was computed to parameter '{name}'; "
                "parameters are leaves; compute it in forward"
            )
        param = _registered(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Add a module, or None, under a name. Raises TypeError and KeyError as `register_parameter`."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{lamina.typename(module)} is not a Module subclass")
        self._check_name("add_module", "module", name, self._modules)
        module = _registered(_global_module_registration_hooks, self, name, module)
        self._modules[name] = module

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    def _check_name(self, op, kind, name, present):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {lamina.typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."; got {name!r}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in present:
            raise KeyError(f"attribute '{name}' already exists")

    # Attributes

    def __getattr__(self, name):
        d = self.__dict__
        for kind in ("_parameters", "_buffers", "_modules"):
            members = d.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        d = self.__dict__
        parameters = d.get("_parameters")
        tensor = isinstance(value, Tensor)
        if tensor and isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _forget(name, d, d["_buffers"], d["_modules"], d["_non_persistent_buffers_set"])
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{lamina.typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = d.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _forget(name, d, parameters, d["_buffers"], d["_non_persistent_buffers_set"])
        elif modules is None or name not in modules:
            buffers = d.get("_buffers")
            if tensor and isinstance(value, Buffer):
                if buffers is None:
                    raise AttributeError("cannot assign buffer before Module.__init__() call")
                _forget(name, d, parameters, modules, d["_non_persistent_buffers_set"])
                self.register_buffer(name, value, getattr(value, "persistent", True))
            elif buffers is not None and name in buffers:
                self._set_buffer(name, value, buffers)
            else:
                object.__setattr__(self, name, value)
            return
        elif value is not None:
            raise TypeError(
                f"cannot assign '{lamina.typename(value)}' as child module '{name}' "
                "(torch.nn.Module or None expected)"
            )
        value = _registered(_global_module_registration_hooks, self, name, value)
        modules[name] = value

    def _set_buffer(self, name, value, buffers):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{lamina.typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        value = _registered(_global_buffer_registration_hooks, self, name, value)
        buffers[name] = value

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = {
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._buffers,
            *self._modules,
        }
        return sorted(name for name in names if not name[:1].isdigit())

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        d = self.__dict__
        for name in _HOOK_DICTS:
            d.setdefault(name, OrderedDict())
        d.setdefault("_non_persistent_buffers_set", set())
        d.setdefault("_is_full_backward_hook", None)

    # Modes

    def train(self, mode=True):
        """Switch this module and all below it to training; `mode` False to evaluation. Returns the module."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: training mode is expected to be boolean; got {mode!r}")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Switch this module and all below it to evaluation. Returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set `requires_grad` of all parameters. Returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters; with `set_to_none` False fill them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    if parameter.grad.grad_fn is not None:
                        parameter.grad.detach_()
                    else:
                        parameter.grad.requires_grad_(False)
                    parameter.grad.zero_()

    def apply(self, fn):
        """Call ``fn(module)`` for all modules below, then this one. Returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Texts

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the brackets of the module's text."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        below = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        if len(lines) == 1 and not below:
            return f"{self._get_name()}({lines[0]})"
        if lines or below:
            return f"{self._get_name()}(\n  " + "\n  ".join(lines + below) + "\n)"
        return f"{self._get_name()}()"

    # State beside parameters and buffers

    def get_extra_state(self):
        """What `state_dict` has of this module beside tensors; a subclass defines it together with `set_extra_state`."""
        raise RuntimeError(
            "get_extra_state: reached a function that a subclass should define; "
            f"{type(self).__name__} does not"
        )

    def set_extra_state(self, state):
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            "set_extra_state: reached a function that a subclass should define; "
            f"{type(self).__name__} does not"
        )

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    from lamina.nn.modules._convert import (
        _apply,
        bfloat16,
        cpu,
        cuda,
        double,
        float,
        half,
        ipu,
        mtia,
        share_memory,
        to,
        to_empty,
        type,
        xpu,
    )
    from lamina.nn.modules._hooks import (
        _get_backward_hooks,
        _get_backward_pre_hooks,
        _maybe_warn_non_full_backward_hook,
        register_backward_hook,
        register_forward_hook,
        register_forward_pre_hook,
        register_full_backward_hook,
        register_full_backward_pre_hook,
    )
    from lamina.nn.modules._state import (
        _load_from_state_dict,
        _register_load_state_dict_pre_hook,
        _register_state_dict_hook,
        _save_to_state_dict,
        load_state_dict,
        register_load_state_dict_post_hook,
        register_load_state_dict_pre_hook,
        register_state_dict_post_hook,
        register_state_dict_pre_hook,
        state_dict,
    )
    from lamina.nn.modules._walk import (
        _named_members,
        buffers,
        children,
        get_buffer,
        get_parameter,
        get_submodule,
        modules,
        named_buffers,
        named_children,
        named_modules,
        named_parameters,
        parameters,
        set_submodule,
    )


def _forget(name, *places):
    for place in places:
        if place is not None and name in place:
            if isinstance(place, dict):
                del place[name]
            else:
                place.discard(name)


def _check_initialized(module):
    if "_forward_hooks" not in module.__dict__:
        raise AttributeError(
            f"'{type(module).__name__}' object has no attribute '_forward_hooks'; "
            "call super().__init__() first"
        )


# From here on calls and attributes of modules go the short way where nothing hinders them.
_C._set_module_type(
    Module,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    _global_backward_hooks,
    _global_backward_pre_hooks,
)
