"""Parameters with parts set to zero by a mask.

A pruned tensor `name` is computed before each call from the parameter `<name>_orig` and the buffer `<name>_mask`.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable

import lamina


class BasePruningMethod(ABC):
    """Base of the ways to prune: a subclass gives `PRUNING_TYPE` and `compute_mask`.

    `PRUNING_TYPE` is 'unstructured', 'structured' or 'global'.
    """

    _tensor_name: str

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask, of the shape of `t`, zero where something is cut, or was in `default_mask`."""

    def apply_mask(self, module):
        """The tensor times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune the tensor `name` of a module, on top of what was pruned before; returns the method."""

        def found():
            hooks = [
                (k, h)
                for k, h in module._forward_pre_hooks.items()
                if isinstance(h, BasePruningMethod) and h._tensor_name == name
            ]
            if len(hooks) > 1:
                raise AssertionError(
                    f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
                    "Use a PruningContainer."
                )
            return hooks[0] if hooks else (None, None)

        key, old = found()
        if old is not None:
            del module._forward_pre_hooks[key]
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old is not None:
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if not isinstance(old, BasePruningMethod):
            module.register_parameter(name + "_orig", module._parameters[name])
            del module._parameters[name]
            default = lamina.ones_like(importance_scores)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(importance_scores, default_mask=default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if old is None:
                original = module._parameters.pop(name + "_orig")
                module.register_parameter(name, original)
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """The pruned tensor, without a module."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        if default_mask is None:
            default_mask = lamina.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        """Make the pruned tensor the parameter; the hook stays for the caller to take away."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Methods that prune one tensor, one after the other."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if not isinstance(args, Iterable):
            self._tensor_name = args._tensor_name
            self.add_pruning_method(args)
        elif len(args) == 1:
            self._tensor_name = args[0]._tensor_name
            self.add_pruning_method(args[0])
        else:
            for method in args:
                self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add one. Raises TypeError for anything else, ValueError for a method of another tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method, on what the ones before have left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            where = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(
                    "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` "
                    "defined."
                )
            dims = t.dim()
            dim = method.dim + dims if method.dim < 0 else method.dim
            if dim >= dims:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {dims}")
            kept = mask.sum(dim=[d for d in range(dims) if d != dim]) != 0
            where = [slice(None)] * dims
            where[dim] = kept
            where = tuple(where)
        elif method.PRUNING_TYPE == "global":
            where = tuple([slice(None)] * t.dim())
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = mask.clone()
        mask[where] = method.compute_mask(t[where], default_mask=mask[where]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Cuts nothing; the tensor counts as pruned."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _ByAmount(BasePruningMethod):
    """`amount` is how many, an int, or which share, a float in [0, 1], to cut."""

    def __init__(self, amount):
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size):
        n = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(n, size)
        return n


class RandomUnstructured(_ByAmount):
    """Cuts random elements."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        size = t.nelement()
        n = self._count(size)
        mask = default_mask.clone()
        if n != 0:
            cut = lamina.topk(lamina.rand_like(t).view(-1), k=n).indices
            mask.view(-1)[cut] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_ByAmount):
    """Cuts the elements of smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        size = t.nelement()
        n = self._count(size)
        mask = default_mask.clone()
        if n != 0:
            cut = lamina.topk(lamina.abs(t).view(-1), k=n, largest=False).indices
            mask.view(-1)[cut] = 0
        return mask

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


def _mask_of_channels(t, dim, channels):
    mask = lamina.zeros_like(t)
    where = [slice(None)] * t.dim()
    where[dim] = channels
    mask[tuple(where)] = 1
    return mask


class RandomStructured(_ByAmount):
    """Cuts random channels along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        n = self._count(size)
        if n == 0:
            return default_mask
        scores = lamina.rand(size)
        threshold = lamina.topk(scores, k=n, largest=False).values.max()
        mask = _mask_of_channels(t, self.dim, scores > threshold)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_ByAmount):
    """Cuts the channels along `dim` of the smallest norm of order `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t, default_mask):
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        size = t.shape[self.dim]
        cut = self._count(size)
        if cut == 0:
            return default_mask
        kept = lamina.topk(_compute_norm(t, self.n, self.dim), k=size - cut, largest=True).indices
        mask = _mask_of_channels(t, self.dim, kept)
        return mask * default_mask.to(dtype=mask.dtype)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(
            module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
        )


class CustomFromMask(BasePruningMethod):
    """Cuts by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError("default_mask and self.mask must have the same shape")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Treat a tensor as pruned without cutting anything. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Cut random elements. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Cut the elements of smallest absolute value, or smallest score. Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Cut random channels along `dim`. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Cut the channels along `dim` of the smallest norm of order `n`. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several tensors together, as if they were one.

    `parameters` are pairs of module and name; `importance_scores` a dict from such pairs to scores. Raises TypeError for
    other arguments and methods that are not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    importance_scores = importance_scores if importance_scores is not None else {}
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    relevance = [
        importance_scores.get((module, name), getattr(module, name)) for module, name in parameters
    ]
    scores = lamina.cat([r.reshape(-1) for r in relevance])
    masks = [getattr(m, n + "_mask", lamina.ones_like(getattr(m, n))) for m, n in parameters]
    default = lamina.cat([m.reshape(-1) for m in masks])
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    container.add_pruning_method(method)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    final = container.compute_mask(scores, default)
    at = 0
    for module, name in parameters:
        tensor = getattr(module, name)
        size = tensor.numel()
        custom_from_mask(module, name, final[at : at + size].view_as(tensor))
        at += size


def custom_from_mask(module, name, mask):
    """Cut by a given mask. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Make the pruned tensor an ordinary parameter. Returns the module; ValueError where it is not pruned."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module):
    """Whether a tensor of the module, or of one below, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, below in module.named_modules()
        for hook in below._forward_pre_hooks.values()
    )


def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if (whole and amount < 0) or (not whole and not 0.0 <= float(amount) <= 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _validate_structured_pruning(t):
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )


def _compute_nparams_toprune(amount, tensor_size):
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t, dim):
    if dim >= t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t, n, dim):
    dims = list(range(t.dim()))
    del dims[dim]
    return lamina.norm(t, p=n, dim=dims)
