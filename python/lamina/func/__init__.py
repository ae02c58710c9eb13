"""Functions of functions and of modules."""

from __future__ import annotations

import lamina
from lamina.nn.utils import stateless as _stateless

__all__ = ["functional_call", "stack_module_state"]


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call a module with other parameters and buffers in place of its own.

    Parameters
    ----------
    module : Module
    parameter_and_buffer_dicts : dict of str to Tensor, or sequence of such dicts
        By dotted names; the dicts of a sequence may not name the same tensor twice.
    args : tuple or any
        The call's arguments; what is no tuple is the only one.
    kwargs : dict, optional
    tie_weights : bool
        A value given for one name of a shared tensor stands for all of its names.
    strict : bool
        Every name must be there and be the module's; otherwise RuntimeError.

    Raises ValueError for a name that is there twice, and for tied names with different values.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, (list, tuple)):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("functional_call: expected all elements of the sequence to be dicts")
        names = [name for d in given for name in d]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: tensor for d in given for name, tensor in d.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            "functional_call: expected parameter_and_buffer_dicts to be a dict, or a list or tuple of "
            f"dicts; got {type(given)}"
        )
    return _stateless._functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def stack_module_state(models):
    """Parameters and buffers of several modules of one class, stacked: two dicts of tensors (n, ...).

    Raises RuntimeError where there is no module, classes differ or some are in training and some not.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(members):
        result = {}
        for name in members[0]:
            parts = [m[name] for m in members]
            grows = [p.requires_grad for p in parts]
            if any(grows) != all(grows):
                raise RuntimeError(
                    f"stack_module_state: Expected all {name!r} to have the same requires_grad"
                )
            with lamina.no_grad():
                whole = lamina.stack(parts).detach()
            result[name] = whole.requires_grad_(grows[0])
        return result

    parameters = stacked([dict(m.named_parameters()) for m in models])
    return parameters, stacked([dict(m.named_buffers()) for m in models])
