"""Losses multiplied by a factor, so that small gradients do not vanish in float16."""

from __future__ import annotations

from enum import Enum

import lamina
from lamina import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """How far an optimizer's step has come."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Scales losses, takes the factor out of gradients, and leaves steps out whose gradients overflowed.

    Parameters
    ----------
    device : str
    init_scale : float
        The factor at the start.
    growth_factor, backoff_factor : float
        What it is multiplied by after `growth_interval` good steps, and after a bad one.
    growth_interval : int
    enabled : bool
        False makes everything pass through.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        if isinstance(device, float):  # old calls start with the scale
            device, init_scale = "cuda", device
        self._device = device
        if device == "cuda" and not lamina.cuda.is_available():
            enabled = False
        self._enabled = enabled
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._good_steps = 0
        self._optimizers = {}  # by id: state, whether something was infinite

    def scale(self, outputs):
        """A tensor, or a container of tensors, times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer):
        """Take the factor out of the gradients of an optimizer's parameters. RuntimeError where that was done."""
        if not self._enabled:
            return
        state, _ = self._optimizers.get(id(optimizer), (OptState.READY, False))
        if state is not OptState.READY:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        self._unscale(optimizer)

    def _unscale(self, optimizer):
        infinite = False
        with lamina.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.mul_(1.0 / self._scale)
                        infinite |= not bool(lamina.isfinite(parameter.grad).all())
        self._optimizers[id(optimizer)] = (OptState.UNSCALED, infinite)

    def step(self, optimizer, *args, **kwargs):
        """The optimizer's step, unless a gradient is infinite or NaN. Returns what the step does, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state, _ = self._optimizers.get(id(optimizer), (OptState.READY, False))
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self._unscale(optimizer)
        _, infinite = self._optimizers[id(optimizer)]
        result = None if infinite else optimizer.step(*args, **kwargs)
        self._optimizers[id(optimizer)] = (OptState.STEPPED, infinite)
        return result

    def update(self, new_scale=None):
        """Change the factor by how the steps went, or to `new_scale`."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._optimizers:
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(infinite for _, infinite in self._optimizers.values()):
                self._scale *= self._backoff_factor
                self._good_steps = 0
            else:
                self._good_steps += 1
                if self._good_steps >= self._growth_interval:
                    self._scale *= self._growth_factor
                    self._good_steps = 0
        self._optimizers = {}

    def get_scale(self):
        """The factor; 1 where the scaler is off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self):
        """What the factor is multiplied by after good steps."""
        return self._growth_factor

    def get_backoff_factor(self):
        """What the factor is multiplied by after a bad step."""
        return self._backoff_factor

    def get_growth_interval(self):
        """How many good steps it takes to grow."""
        return self._growth_interval

    def is_enabled(self):
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self):
        """The factor and how it changes, as plain numbers; empty where the scaler is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state_dict):
        """Take a state back. Raises RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._good_steps = state_dict["_growth_tracker"]
