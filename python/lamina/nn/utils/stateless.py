"""Calls of modules with other parameters than their own."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

from lamina import Tensor
from lamina.nn.utils._named_member_accessor import NamedMemberAccessor

__all__ = ["functional_call"]


def _untie_named_tensors_map(module, parameters_and_buffers):
    """The dict with an entry for each name of a tensor that has several.

    Raises ValueError where names of one tensor have different values.
    """
    everything = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    names_of = {}
    for name, tensor in everything.items():
        names_of.setdefault(tensor, set()).add(name)
    tied = {name: names for names in names_of.values() if len(names) > 1 for name in names}
    result = dict(parameters_and_buffers)
    for name in parameters_and_buffers:
        for other in tied.get(name, ()):
            given = parameters_and_buffers.get(other, parameters_and_buffers[name])
            if given is not parameters_and_buffers[name]:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted([name, other])}, which "
                    "are tied. Consider using tie_weights=False"
                )
            result[other] = parameters_and_buffers[name]
    return result


@contextmanager
def _reparametrize_module(
    module, parameters_and_buffers, tie_weights=False, strict=False, stack_weights=False
):
    """Within the block the module has other parameters and buffers."""
    if tie_weights:
        parameters_and_buffers = _untie_named_tensors_map(module, parameters_and_buffers)
    accessor = NamedMemberAccessor(module)
    if strict:
        missing, unexpected = accessor.check_keys(parameters_and_buffers)
        messages = []
        if unexpected:
            messages.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            messages.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        if messages:
            raise RuntimeError(
                f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(messages)
            )
    before = {}
    try:
        before, _ = accessor.swap_tensors_dict(parameters_and_buffers, allow_missing=True)
        yield
    finally:
        names = before.keys()
        if stack_weights:
            names = reversed(list(names))
        for name in names:
            accessor.swap_tensor(name, before[name], allow_missing=True)


def functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """The old place of `lamina.func.functional_call`."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0. Please use torch.func.functional_call instead",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call a module with some of its parameters and buffers replaced.

    Parameters
    ----------
    module : Module
    parameters_and_buffers : dict of str to Tensor
        By dotted names.
    args : tuple or any
        The call's arguments; what is no tuple is the only one.
    kwargs : dict, optional
    tie_weights : bool
        A value given for one name of a shared tensor stands for all of its names.
    strict : bool
        Every name must be there and be the module's; otherwise RuntimeError.
    """
    for name, tensor in parameters_and_buffers.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"functional_call: {name} must be a Tensor; got {type(tensor).__name__}"
            )
    if kwargs is None:
        kwargs = {}
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(
        module, parameters_and_buffers, tie_weights=tie_weights, strict=strict
    ):
        return module(*args, **kwargs)
