"""Batch normalization."""

from __future__ import annotations

import lamina
from lamina import Tensor
from lamina.nn import functional as F
from lamina.nn import init
from lamina.nn.modules.lazy import LazyModuleMixin
from lamina.nn.modules.module import Module
from lamina.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "SyncBatchNorm",
]  # fmt: skip


class _NormBase(Module):
    """Parameters and running statistics of batch and instance normalization."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory = {"device": device, "dtype": dtype}
        if affine:
            self.weight = Parameter(lamina.empty(num_features, **factory))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(lamina.empty(num_features, **factory))
        else:
            self.register_parameter("bias", None)
        if track_running_stats:
            self.register_buffer("running_mean", lamina.zeros(num_features, **factory))
            self.register_buffer("running_var", lamina.ones(num_features, **factory))
            count = lamina.tensor(0, dtype=lamina.long, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forget the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Start again from weight 1, bias 0 and no statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # States of version 1 did not count batches.
            present = self.num_batches_tracked
            keeps = present is not None and present.device.type != "meta"
            state_dict[key] = present if keeps else lamina.tensor(0, dtype=lamina.long)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if running else None,
            self.running_var if running else None,
            self.weight,
            self.bias,
            self.training or (self.running_mean is None and self.running_var is None),
            momentum,
            self.eps,
        )


class _LazyNormBase(LazyModuleMixin, _NormBase):
    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        # Made without parameters and statistics; those that wait take their place.
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
            if bias:
                self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = lamina.tensor(0, dtype=lamina.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            waiting = [self.weight, self.bias] if self.affine else []
            if self.track_running_stats:
                waiting += [self.running_mean, self.running_var]
            for tensor in waiting:
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()


def _needs_dims(module, input, *allowed):
    if input.dim() not in allowed:
        expected = " or ".join(f"{d}D" for d in allowed)
        raise ValueError(f"expected {expected} input (got {input.dim()}D input)")


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel over a batch (n, c) or (n, c, l), then times `weight` plus `bias`.

    In evaluation, with `track_running_stats`, running means are used; `momentum` is the share of a new batch in them,
    None the mean of all.
    """

    def _check_input_dim(self, input):
        _needs_dims(self, input, 2, 3)


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """BatchNorm1d whose number of channels comes from the first input."""

    cls_to_become = BatchNorm1d

    def _check_input_dim(self, input):
        _needs_dims(self, input, 2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d of images (n, c, h, w)."""

    def _check_input_dim(self, input):
        _needs_dims(self, input, 4)


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """BatchNorm2d whose number of channels comes from the first input."""

    cls_to_become = BatchNorm2d

    def _check_input_dim(self, input):
        _needs_dims(self, input, 4)


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d of volumes (n, c, d, h, w)."""

    def _check_input_dim(self, input):
        _needs_dims(self, input, 5)


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """BatchNorm3d whose number of channels comes from the first input."""

    cls_to_become = BatchNorm3d

    def _check_input_dim(self, input):
        _needs_dims(self, input, 5)


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of several processes; in one process that of its own batch."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input):
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with every batch normalization in it replaced by a SyncBatchNorm of the same state."""
        result = module
        if isinstance(module, _BatchNorm):
            result = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                with lamina.no_grad():
                    result.weight = module.weight
                    result.bias = module.bias
            result.running_mean = module.running_mean
            result.running_var = module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.training = module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
