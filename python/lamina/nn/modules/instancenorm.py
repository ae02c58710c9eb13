"""Instance normalization."""

from __future__ import annotations

import warnings

from lamina import Tensor
from lamina.nn import functional as F
from lamina.nn.modules.batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
    "LazyInstanceNorm2d", "LazyInstanceNorm3d",
]  # fmt: skip


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device=None,
        dtype=None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _get_no_batch_dim(self):
        raise NotImplementedError

    def _check_input_dim(self, input):
        d = self._get_no_batch_dim()
        if input.dim() not in (d, d + 1):
            raise ValueError(f"expected {d}D or {d + 1}D input (got {input.dim()}D input)")

    def _handle_no_batch_input(self, input):
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # States of version 1 had running statistics whether they were wanted or not.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            old = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if old:
                names = " and ".join(f'"{k}"' for k in old)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {self.__class__.__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    "delete them from it, or make the module with track_running_stats=True."
                )
                for key in old:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.dim() - self._get_no_batch_dim()
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features "
                    f"({self.num_features}), but got: {input.size(channels)}."
                )
            warnings.warn(
                f"input's size at dim={channels} does not match num_features. "
                "You can silence this warning by not passing in num_features, which is not used "
                "because affine=False",
                stacklevel=2,
            )
        if channels == 0:
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Mean 0 and variance 1 of each channel of each sample, (n, c, l) or (c, l)."""

    def _get_no_batch_dim(self):
        return 2


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm1d whose number of channels comes from the first input."""

    cls_to_become = InstanceNorm1d

    def _get_no_batch_dim(self):
        return 2


class InstanceNorm2d(_InstanceNorm):
    """InstanceNorm1d of images (n, c, h, w) or (c, h, w)."""

    def _get_no_batch_dim(self):
        return 3


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm2d whose number of channels comes from the first input."""

    cls_to_become = InstanceNorm2d

    def _get_no_batch_dim(self):
        return 3


class InstanceNorm3d(_InstanceNorm):
    """InstanceNorm1d of volumes (n, c, d, h, w) or (c, d, h, w)."""

    def _get_no_batch_dim(self):
        return 4


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """InstanceNorm3d whose number of channels comes from the first input."""

    cls_to_become = InstanceNorm3d

    def _get_no_batch_dim(self):
        return 4
