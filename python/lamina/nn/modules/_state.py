"""The state of modules: what is in it, how it is saved and how it is loaded."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import lamina
from lamina.nn.parameter import Parameter, is_lazy
from lamina.utils.hooks import RemovableHandle

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that gets its module first; held weakly, and kept by pickles."""

    def __init__(self, hook, module=None):
        self.hook = hook
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)
        for name in ("__name__", "__qualname__", "__doc__"):
            if hasattr(hook, name):
                setattr(self, name, getattr(hook, name))

    def __call__(self, *args, **kwargs):
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("load_state_dict pre-hook: the module it belongs to is gone")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state):
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("load_state_dict pre-hook: the module it belongs to is gone")
            self.module = weakref.ref(state["module"])


def _kept(hooks, hook):
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _register_state_dict_hook(self, hook):
    """As `register_state_dict_post_hook`; what the hook returns replaces the state dict."""
    if getattr(hook, "_from_public_api", False):
        raise RuntimeError(
            "_register_state_dict_hook: this hook was registered by register_state_dict_post_hook "
            "before; a hook is of one kind"
        )
    return _kept(self._state_dict_hooks, hook)


def register_state_dict_post_hook(self, hook):
    """Call ``hook(module, state_dict, prefix, local_metadata)`` when `state_dict` is done; it may change the dict."""
    hook._from_public_api = True
    return _kept(self._state_dict_hooks, hook)


def register_state_dict_pre_hook(self, hook):
    """Call ``hook(module, prefix, keep_vars)`` before `state_dict` reads the module."""
    return _kept(self._state_dict_pre_hooks, hook)


def _register_load_state_dict_pre_hook(self, hook, with_module=False):
    """Call ``hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`` before the
    module's own entries are loaded; with `with_module` the module comes first.
    """
    return _kept(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))


def register_load_state_dict_pre_hook(self, hook):
    """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
    before the module's own entries are loaded.
    """
    return self._register_load_state_dict_pre_hook(hook, with_module=True)


def register_load_state_dict_post_hook(self, hook):
    """Call ``hook(module, incompatible_keys)`` when the module and its children are loaded; the lists may be changed."""
    return _kept(self._load_state_dict_post_hooks, hook)


def _save_to_state_dict(self, destination, prefix, keep_vars):
    """Put the module's own parameters, persistent buffers and extra state into `destination`."""
    for name, value in self._parameters.items():
        if value is not None:
            destination[prefix + name] = value if keep_vars else value.detach()
    for name, value in self._buffers.items():
        if value is not None and name not in self._non_persistent_buffers_set:
            destination[prefix + name] = value if keep_vars else value.detach()
    if type(self).get_extra_state is not _module_class().get_extra_state:
        destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()


def _module_class():
    from lamina.nn.modules.module import Module

    return Module


def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
    """Parameters and persistent buffers of the module and all below it, by dotted names.

    Parameters
    ----------
    destination : dict, optional
        The dict to fill; a new OrderedDict where it is not given.
    prefix : str
        Put before every name.
    keep_vars : bool
        The tensors themselves; otherwise detached ones that share their memory.

    Returns the dict. Its attribute `_metadata` has each module's version.
    """
    if args:
        warnings.warn(
            "state_dict: destination, prefix and keep_vars are given by name; positional arguments "
            "are deprecated",
            FutureWarning,
            stacklevel=2,
        )
        destination = args[0]
        prefix = args[1] if len(args) > 1 else prefix
        keep_vars = args[2] if len(args) > 2 else keep_vars
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    local_metadata = {"version": self._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = local_metadata
    for hook in self._state_dict_pre_hooks.values():
        hook(self, prefix, keep_vars)
    self._save_to_state_dict(destination, prefix, keep_vars)
    for name, module in self._modules.items():
        if module is not None:
            module.state_dict(
                destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
            )
    for hook in self._state_dict_hooks.values():
        given = hook(self, destination, prefix, local_metadata)
        if given is not None:
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict: a post-hook must return None")
            destination = given
    return destination


def _load_one(self, name, current, given, key, assign, error_msgs):
    """One entry of a state dict into one parameter or buffer."""
    from lamina.overrides import is_tensor_like

    if not is_tensor_like(given):
        error_msgs.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object '
            f"from checkpoint but received {type(given)}"
        )
        return
    waiting = is_lazy(current)
    if not waiting and current.dim() == 0 and given.dim() == 1 and len(given):
        given = given[0]  # states saved before there were tensors of no dimension
    if not waiting and given.shape != current.shape:
        error_msgs.append(
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {current.shape}."
        )
        return
    if current.is_meta and not given.is_meta and not assign:
        warnings.warn(
            f"load_state_dict: {key} is on the meta device, which has no memory to copy to, so "
            "nothing is copied; assign=True takes the given tensors instead",
            stacklevel=3,
        )
    try:
        with lamina.no_grad():
            if not assign:
                current.copy_(given)
                return
            if isinstance(current, Parameter):
                if isinstance(given, Parameter):
                    given.requires_grad_(current.requires_grad)
                else:
                    given = Parameter(given, requires_grad=current.requires_grad)
            setattr(self, name, given)
    except Exception as error:
        sizes = "" if waiting else f"whose dimensions in the model are {current.size()} and "
        error_msgs.append(
            f'While copying the parameter named "{key}", {sizes}'
            f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : "
            f"{error.args}."
        )


def _load_from_state_dict(
    self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
):
    """Load the module's own entries, not its children's; subclasses change this to read older states.

    Names that are absent or too many go to `missing_keys` and `unexpected_keys` where `strict`; what cannot be copied
    is told in `error_msgs`.
    """
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    own = {
        name: value
        for name, value in (
            *self._parameters.items(),
            *(
                (k, v)
                for k, v in self._buffers.items()
                if k not in self._non_persistent_buffers_set
            ),
        )
        if value is not None
    }
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, value in own.items():
        key = prefix + name
        if key in state_dict:
            _load_one(self, name, value, state_dict[key], key, assign, error_msgs)
        elif strict:
            missing_keys.append(key)
    extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
    if type(self).set_extra_state is not _module_class().set_extra_state:
        if extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)
    if strict:
        for key in state_dict:
            if key.startswith(prefix) and key != extra_key:
                first, dot, _ = key[len(prefix) :].partition(".")
                if first not in (self._modules if dot else own):
                    unexpected_keys.append(key)


def _listed(keys):
    return ", ".join(f'"{k}"' for k in keys)


def load_state_dict(self, state_dict, strict=True, assign=False):
    """Copy values of a state dict into the parameters and buffers of the module and all below it.

    Parameters
    ----------
    state_dict : mapping
        As `state_dict` gives it.
    strict : bool
        Names must match exactly; otherwise those that are on both sides are loaded.
    assign : bool
        Take the given tensors themselves, with their dtype and device, instead of copying their values.

    Returns
    -------
    named tuple
        `missing_keys` and `unexpected_keys`.

    Raises
    ------
    TypeError
        `state_dict` is no mapping.
    RuntimeError
        Sizes differ, or names do and `strict` is True; the text lists all.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing, unexpected, errors = [], [], []
    metadata = getattr(state_dict, "_metadata", None)
    state_dict = OrderedDict(state_dict)
    if metadata is not None:
        state_dict._metadata = metadata

    def load(module, entries, prefix):
        # A copy: what is noted here must not stay in the caller's state dict.
        local_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        module._load_from_state_dict(
            entries, prefix, local_metadata, True, missing, unexpected, errors
        )
        for name, child in module._modules.items():
            if child is not None:
                start = prefix + name + "."
                load(child, {k: v for k, v in entries.items() if k.startswith(start)}, start)
        keys = _IncompatibleKeys(missing, unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, keys) is not None:
                raise AssertionError(
                    "load_state_dict: a post-hook returns None; the key lists are changed in place"
                )

    load(self, state_dict, "")
    if strict:
        if unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_listed(unexpected)}. ")
        if missing:
            errors.insert(0, f"Missing key(s) in state_dict: {_listed(missing)}. ")
    if errors:
        text = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{text}")
    return _IncompatibleKeys(missing, unexpected)
