"""Parameters and buffers that are computed by modules from others."""

from __future__ import annotations

import collections
import copyreg
from contextlib import contextmanager
from copy import deepcopy

import lamina
from lamina import Tensor
from lamina.nn.modules.container import ModuleDict, ModuleList
from lamina.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict = {}


@contextmanager
def cached():
    """Within the block each computed tensor is computed once, and is the same object at every access."""
    global _cache, _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register_parameter_or_buffer(module, name, X):
    if isinstance(X, Parameter):
        module.register_parameter(name, X)
    else:
        module.register_buffer(name, X)


def _maybe_set(dest, src):
    """Give `dest` the values of `src`, as its data where the dtype allows."""
    if dest.dtype == src.dtype and dest.device == src.device:
        dest.data = src.detach() if isinstance(dest, Parameter) else src
    else:
        dest.copy_(src)


class ParametrizationList(ModuleList):
    """The modules through which one tensor is computed, and what it is computed from.

    `original` is the tensor that is trained; `original0`, `original1`, ... where the first module's `right_inverse`
    gives several.

    Parameters
    ----------
    modules : sequence of Module
    original : Tensor
        The tensor as it was.
    unsafe : bool
        Whether dtype and shape may change.

    Raises ValueError where dtype, shape or object do not fit, TypeError where something else than tensors comes out.
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with lamina.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, Tensor) and not isinstance(new, collections.abc.Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            if original.device != new.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\n"
                    f"right_inverse(original).device: {new.device}"
                )
            with lamina.no_grad():
                _maybe_set(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors "
                        f"(list, tuple...). Got element {i} of the sequence with type "
                        f"{type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", part)
        if self.unsafe:
            return
        Z = self()
        if not isinstance(Z, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(Z).__name__}.")
        if Z.dtype != dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized dtype: {dtype}\n"
                f"parametrized dtype: {Z.dtype}"
            )
        if Z.shape != shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless "
                f"`unsafe` flag is enabled.\nunparametrized shape: {shape}\n"
                f"parametrized shape: {Z.shape}"
            )

    def right_inverse(self, value):
        """Set what the tensor is computed from so that `value` comes out.

        Goes through the modules' `right_inverse` from the last to the first. Raises RuntimeError where one has none,
        ValueError where dtype, shape or number do not fit.
        """
        with lamina.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                        f"while `original` has dtype {self.original.dtype}"
                    )
                _maybe_set(self.original, value)
                return
            if not isinstance(value, collections.abc.Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, tensor in enumerate(value):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {i} of type "
                        f"{type(tensor).__name__}"
                    )
                original = getattr(self, f"original{i}")
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {tensor.dtype} "
                        f"while `original{i}` has dtype {original.dtype}"
                    )
                _maybe_set(original, tensor)

    def forward(self):
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        # By number: the module may be shared, and its list is short.
        for i in range(1, len(self)):
            x = self[i](x)
        return x


def _inject_new_class(module):
    """A class of the module's own, to which properties can be added. Deep copies get one too."""
    cls = type(module)

    def default_deepcopy(self, memo):
        found = memo.get(id(self))
        if found is not None:
            return found
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(self.__dict__, memo)
        for name in copyreg._slotnames(type(self)):
            if hasattr(self, name):
                setattr(replica, name, deepcopy(getattr(self, name), memo))
        return replica

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). "
            "A module whose parametrizations are removed can be pickled again."
        )

    members = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, tensor_name):
    """Access to the tensor computes it; setting it goes through right_inverse."""
    if hasattr(type(module), tensor_name):
        raise AssertionError(f"{type(module).__name__} already has an attribute {tensor_name}")

    def get_parametrized(self):
        parametrization = self.parametrizations[tensor_name]
        if not _cache_enabled:
            return parametrization()
        key = (id(self), tensor_name)
        tensor = _cache.get(key)
        if tensor is None:
            tensor = _cache[key] = parametrization()
        return tensor

    def set_original(self, value):
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get_parametrized, set_original))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute a parameter or buffer of a module by another module from now on.

    Parameters
    ----------
    module : Module
    tensor_name : str
    parametrization : Module
        Its forward gives the tensor; its `right_inverse`, where there is one, what to compute it from.
    unsafe : bool
        Whether dtype and shape may change.

    Returns `module`, whose class is a new one. What is trained is
    ``module.parametrizations.<tensor_name>.original``. Raises ValueError where there is no such tensor or the
    parametrization does not fit.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            Y = getattr(module, tensor_name)
            X = parametrization(Y)
            if not isinstance(X, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(X).__name__}.")
            if X.dtype != Y.dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless "
                    f"the `unsafe` flag is enabled.\nmodule.{tensor_name}.dtype: {Y.dtype}\n"
                    f"parametrization(module.{tensor_name}).dtype: {X.dtype}"
                )
            if X.shape != Y.shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless "
                    f"the `unsafe` flag is enabled.\nmodule.{tensor_name}.shape: {Y.shape}\n"
                    f"parametrization(module.{tensor_name}).shape: {X.shape}"
                )
            if hasattr(parametrization, "right_inverse"):
                try:
                    Z = parametrization.right_inverse(X)
                except NotImplementedError:
                    pass
                else:
                    if not isinstance(Z, Tensor):
                        raise ValueError(
                            f"parametrization.right_inverse must return a tensor. Got: {type(Z).__name__}"
                        )
                    if Z.dtype != Y.dtype or Z.shape != Y.shape:
                        raise ValueError(
                            "The tensor returned by parametrization.right_inverse must have the dtype "
                            f"and shape of module.{tensor_name}; got {Z.dtype}, {Z.shape}; expected "
                            f"{Y.dtype}, {Y.shape}"
                        )
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # Made first, so that nothing has changed where this raises.
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with "
            f"name '{tensor_name}'"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a module has computed tensors, or this one is computed."""
    parametrizations = getattr(module, "parametrizations", None)
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    if tensor_name is None:
        return len(parametrizations) > 0
    return tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a computed tensor an ordinary one again.

    Its value is the computed one, or with `leave_parametrized` False what it was computed from. Returns `module`. Raises
    ValueError where the tensor is not computed, or from several and its value should be what it was computed from.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with lamina.no_grad():
                t = getattr(module, tensor_name)
            with lamina.no_grad():
                _maybe_set(original, t)
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class of a module without what parametrizations have made of it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give a module the parametrizations of another, and the tensors they compute from. Returns `to_module`."""
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, ModuleDict):
        raise AssertionError("parametrizations must be a ModuleDict")
    names = from_module.parametrizations if tensor_name is None else [tensor_name]
    for name in list(names):
        if not hasattr(to_module, name):
            _register_parameter_or_buffer(
                to_module, name, Parameter(getattr(from_module, name).detach().clone())
            )
        for module in from_module.parametrizations[name]:
            register_parametrization(to_module, name, module)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        if target.is_tensor:
            target.original = source.original
        else:
            for i in range(target.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
