"""Functions of functions and of modules."""

from __future__ import annotations

import functools

import lamina
from lamina.func._grad import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from lamina.func._rearrange import rearrange
from lamina.func._vmap import vmap
from lamina.nn.utils import stateless as _stateless

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functionalize(func, *, remove="mutations"):
    """A function that gives what `func` gives, and writes to its arguments where `func` does.

    Writes in place and views need no rewriting here: every transform takes them as they are. `remove` is
    "mutations" or "mutations_and_views"; anything else raises RuntimeError.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced "
            "with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be "
            "replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor, *, recurse=True):
    """The value under a batched tensor, for looking at it; with `recurse` the one under all of its levels.

    Other tensors come back as they are.
    """
    batch = lamina._C._batch_of(tensor)
    while batch is not None:
        tensor = batch[0]
        batch = lamina._C._batch_of(tensor) if recurse else None
    return tensor


def replace_all_batch_norm_modules_(root):
    """Let batch normalizations in a module use the statistics of their batch only; changes and gives the module.

    Running statistics are written in place, which samples inside `vmap` cannot do to buffers that they share.
    """
    for module in root.modules():
        if isinstance(module, lamina.nn.modules.batchnorm._BatchNorm):
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


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
