"""The base of all optimizers: parameter groups, state, hooks, saving and loading."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import lamina
from lamina import _C, Tensor
from lamina.nn.parameter import Parameter as _Parameter
from lamina.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_pre_hook",
    "register_optimizer_step_post_hook",
]

T = TypeVar("T")
R = TypeVar("R")
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
params_t: TypeAlias = ParamsT
_params_t: TypeAlias = ParamsT
DeviceDict: TypeAlias = dict
DeviceDtypeDict: TypeAlias = dict
StateDict: TypeAlias = dict[str, Any]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
GlobalOptimizerPreHook: TypeAlias = Callable[
    ["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None
]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]

_global_optimizer_pre_hooks: dict[int, Callable] = OrderedDict()
_global_optimizer_post_hooks: dict[int, Callable] = OrderedDict()

_params_doc = (
    "params (iterable): parameters, pairs of names and parameters, or dicts that define groups"
)
_maximize_doc = "maximize (bool, optional): step towards larger values of the objective (False)"
_foreach_doc = "foreach (bool, optional): accepted; every step takes all parameters in one call"
_fused_doc = "fused (bool, optional): accepted; every step takes all parameters in one call"
_capturable_doc = "capturable (bool, optional): for steps recorded in a graph of a GPU (False)"
_differentiable_doc = "differentiable (bool, optional): let gradients flow through step() (False)"


class _RequiredParameter:
    """Stands in `defaults` for an option that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


# ---- what the steps of all optimizers share ------------------------------------------------------


def _use_grad_for_differentiable(func):
    """Let a step record gradients if its optimizer is differentiable, else not."""

    @functools.wraps(func)
    def step(self, *args, **kwargs):
        before = _C.is_grad_enabled()
        _C._set_grad_enabled(self.defaults["differentiable"])
        try:
            return func(self, *args, **kwargs)
        finally:
            _C._set_grad_enabled(before)

    return step


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """There is no compiler whose view of a step has to be limited: the function itself."""
    return lambda func: func


def _closure_loss(closure):
    """The loss that a step's closure computes, with gradients recorded; None without one."""
    if closure is None:
        return None
    before = _C.is_grad_enabled()
    _C._set_grad_enabled(True)
    try:
        return closure()
    finally:
        _C._set_grad_enabled(before)


_PLAIN = frozenset((Tensor, _Parameter))


def _are_plain(params, grads) -> bool:
    """Whether the native steps may be asked: no subclass takes part and nothing is recorded."""
    return (
        not _C.is_grad_enabled()
        and _PLAIN.issuperset(map(type, params))
        and _PLAIN.issuperset(map(type, grads))
    )


def _unscaled(grads, grad_scale, found_inf):
    """Gradients divided by the scale of a loss scaler; None where it found infinities."""
    if found_inf is not None and found_inf.item() != 0:
        return None
    return grads if grad_scale is None else [grad / grad_scale for grad in grads]


def _get_value(x):
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x):
    """A tensor of one element as one without dimensions; anything else as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() != 0 else x


def _stack_if_compiling(x):
    return x


def _dispatch_sqrt(x):
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _get_scalar_dtype(is_fused: bool | None = None) -> lamina.dtype:
    """The type of step counts."""
    if is_fused or lamina.get_default_dtype() != lamina.float64:
        return lamina.float32
    return lamina.float64


def _new_step(group=None, param=None) -> Tensor:
    return lamina.zeros((), dtype=_get_scalar_dtype(bool(group and group.get("fused"))))


def _zeros(p: Tensor) -> Tensor:
    """A state of zeros with the layout of the parameter."""
    return lamina.zeros_like(p, memory_format=lamina.preserve_format)


def _gather(name: str, states, group, new_state, params, grads, lists: dict[str, list]) -> bool:
    """Appends the parameters that have a gradient, their gradients and, by name, their states to lists.

    A parameter without state gets `new_state(p)`. Returns whether some parameter is complex. Raises RuntimeError for a
    sparse gradient.
    """
    has_complex = False
    for p in group["params"]:
        if p.grad is None:
            continue
        has_complex |= lamina.is_complex(p)
        if p.grad.is_sparse:
            raise RuntimeError(f"{name} does not support sparse gradients")
        state = states[p]
        if not state:
            state.update(new_state(p))
        params.append(p)
        grads.append(p.grad)
        for key, values in lists.items():
            values.append(state[key])
    return has_complex


def _steps_to_tensors(states, group, keys=("step",)) -> None:
    """Counts of old checkpoints are numbers."""
    for p in group["params"]:
        state = states.get(p, ())
        for key in keys:
            if key in state and not isinstance(state[key], Tensor):
                state[key] = lamina.tensor(
                    float(state[key]), dtype=_get_scalar_dtype(group.get("fused"))
                )


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    devices = ["cuda", "xpu", "hpu", "privateuseone"]
    return [*devices, "xla"] if supports_xla else devices


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach) where neither was asked for: on CPUs the plain implementation."""
    return False, False


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    if not lamina.is_floating_point(p) and not lamina.is_complex(p):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors; "
            f"got one of {p.dtype}"
        )


def _view_as_real(params, *state_and_grads) -> None:
    """Turn the complex tensors of parallel lists into real ones of one more dimension, in place."""
    for i, p in enumerate(params):
        if lamina.is_complex(p):
            params[i] = lamina.view_as_real(p)
            for items in state_and_grads:
                if len(items) > i and items[i] is not None:
                    items[i] = lamina.view_as_real(items[i])


def _check_capturable(capturable: bool, params: list[Tensor]) -> None:
    if capturable and params:
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices: "
            f"{_get_capturable_supported_devices()}."
        )


def _check_foreach(foreach: bool | None, differentiable: bool, params: list[Tensor]) -> None:
    if foreach and differentiable and params:
        raise AssertionError("_foreach ops don't support autograd")


def _check_steps(state_steps: list) -> None:
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError(
            "API has changed, `state_steps` argument must contain a list of singleton tensors"
        )


def _check_lr(lr) -> None:
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def _check_not_negative(**values) -> None:
    """Raise ValueError for a negative option; the name says which, spelled as in the message."""
    for name, value in values.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name.replace('__', ' ')}: {value}")


def _check_betas(betas) -> None:
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False):
    """Split parallel lists of tensors into those of one device and type each.

    Returns a dict from (device, dtype) of the first list's tensors to (lists, indices); items of
    the other lists go with the first's.
    """
    groups: dict = {}
    for i, first in enumerate(tensorlistlist[0]):
        lists, indices = groups.setdefault(
            (first.device, first.dtype), ([[] for _ in tensorlistlist], [])
        )
        for to, items in zip(lists, tensorlistlist):
            if items:
                to.append(items[i])
        indices.append(i)
    return groups


def _traced(name):
    """A block that a profile shows under a name."""
    from lamina.autograd.profiler import record_function

    return record_function(name)


def register_optimizer_step_pre_hook(hook: GlobalOptimizerPreHook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before every step of every optimizer."""
    handle = RemovableHandle(_global_optimizer_pre_hooks)
    _global_optimizer_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: GlobalOptimizerPostHook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after every step of every optimizer."""
    handle = RemovableHandle(_global_optimizer_post_hooks)
    _global_optimizer_post_hooks[handle.id] = hook
    return handle


# ---- the base class ------------------------------------------------------------------------------

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
_NAMES_MIXED = "all optimizer params should be with/without names. Some param names are missing"
_UNORDERED = (
    "optimizer parameters need to be organized in ordered collections, but the ordering of tensors "
    "in sets will change between runs. Please use a list instead."
)


class Optimizer:
    """Base class of optimizers.

    Parameters
    ----------
    params
        Tensors, pairs of a name and a tensor, or dicts with a key "params" and options of that
        group. The order must not change from run to run: sets raise TypeError.
    defaults
        Options of groups that do not give their own.
    """

    OptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
    OptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {lamina.typename(params)}"
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        # A step that runs outside of a recorded graph of a GPU would be told once.
        self._warned_capturable_if_run_uncaptured = True

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # ---- steps ----

    def _patch_step_function(self) -> None:
        """Wrap the class's step, once, so that hooks run around it."""
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        step = cls.step
        if not getattr(step, "hooked", None):
            cls.step = self.profile_hook_step(step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Callable[..., R]) -> Callable[..., R]:
        """`func`, a method step(), with the hooks before and after it."""

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            if not (
                _C._trace_running()
                or _global_optimizer_pre_hooks
                or _global_optimizer_post_hooks
                or self._optimizer_step_pre_hooks
                or self._optimizer_step_post_hooks
            ):
                return func(*args, **kwargs)
            with _traced(f"Optimizer.step#{type(self).__name__}.step"):
                return run(self, args, kwargs)

        def run(self, args, kwargs):
            before = chain(
                _global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()
            )
            for hook in tuple(before):
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{func} must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {result}."
                    )
                args, kwargs = result
            out = func(*args, **kwargs)
            self._optimizer_step_code()
            after = chain(
                self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()
            )
            for hook in tuple(after):
                hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self) -> None:
        """Called after each step that has hooks; a place for tools to hold on to."""

    def _cuda_graph_capture_health_check(self) -> None:
        """Nothing to check: steps are not recorded in graphs of GPUs."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False):
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Change the parameters once; `closure` computes the loss again, with its gradients."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or with ``set_to_none=False`` fill them with zeros."""
        if _C._trace_running():
            with _traced(self._zero_grad_profile_name):
                return self._forget_gradients(set_to_none)
        self._forget_gradients(set_to_none)

    def _forget_gradients(self, set_to_none: bool) -> None:
        if set_to_none:
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad = None
            return
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ---- groups ----

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and options that differ from the defaults.

        Raises TypeError for what is no dict, sets and items that are no tensors; ValueError for
        tensors that are results of operators, missing required options, mixtures of parameters
        with and without names, and parameters that are in another group.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(_UNORDERED)
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        if any(named):
            if not all(named):
                raise ValueError(_NAMES_MIXED)
            param_group["params"] = [p for _, p in params]
            param_group["param_names"] = [name for name, _ in params]
        else:
            param_group["params"] = params
        params = param_group["params"]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    + lamina.typename(p)
                )
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    + name
                )
            param_group.setdefault(name, default)
        own = {id(p) for p in params}
        if len(own) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                how = "with" if "param_names" in param_group else "without"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {how} names to the optimizer"
                )
            if not own.isdisjoint(id(p) for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    # ---- saving and loading ----

    def state_dict(self) -> StateDict:
        """State and options; parameters are numbered in the order of the groups."""
        for hook in tuple(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        result: StateDict = {"state": state, "param_groups": groups}
        for hook in tuple(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Tensor,
        value: Tensor,
        param_id: int,
        param_groups: list[dict[Any, Any]],
        key: Hashable = None,
    ) -> Tensor:
        """A loaded state tensor in the type and on the device of its parameter; counts stay."""
        fused = capturable = False
        for group in param_groups:
            if param_id in group["params"]:
                fused = group.get("fused", False)
                capturable = group.get("capturable", False)
                break
        if key == "step":
            if capturable or fused:
                return value.to(dtype=lamina.float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    @_C.no_grad()
    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over state and options of another optimizer of the same groups.

        State tensors get the type and the device of their parameters. Raises ValueError where the
        numbers of groups or of parameters in a group differ.
        """
        state_dict = state_dict.copy()
        for hook in tuple(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        params = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved),
                chain.from_iterable(g["params"] for g in groups),
            )
        )

        def cast(param, value, number, key=None):
            if isinstance(value, Tensor):
                return Optimizer._process_value_according_to_param_policy(
                    param, value, number, state_dict["param_groups"], key
                )
            if isinstance(value, dict):
                return {k: cast(param, v, number, k) for k, v in value.items()}
            if isinstance(value, Iterable) and not isinstance(value, str | bytes):
                return type(value)(cast(param, v, number) for v in value)
            return value

        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = cast(params[key], value, key)
            else:
                state[key] = value

        def updated(group, new):
            new["params"] = group["params"]
            if "param_names" in group and "param_names" not in new:
                new["param_names"] = group["param_names"]
            return new

        self.__setstate__(
            {"state": state, "param_groups": [updated(g, n) for g, n in zip(groups, saved)]}
        )
        for hook in tuple(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    # ---- hooks ----

    def _register(self, hooks: OrderedDict, hook: Callable, prepend: bool) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: OptimizerPreHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before steps; it may return new (args, kwargs)."""
        return self._register(self._optimizer_step_pre_hooks, hook, False)

    def register_step_post_hook(self, hook: OptimizerPostHook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after steps."""
        return self._register(self._optimizer_step_post_hooks, hook, False)

    def register_state_dict_pre_hook(
        self, hook: Callable[["Optimizer"], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` before state_dict()."""
        return self._register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[["Optimizer", StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after state_dict(); it may return another dict."""
        return self._register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[["Optimizer", StateDict], StateDict | None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another dict."""
        return self._register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[["Optimizer"], None], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return self._register(self._optimizer_load_state_dict_post_hooks, hook, prepend)
