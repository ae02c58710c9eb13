"""Softmax over many classes, the rare ones in clusters."""

from __future__ import annotations

from collections import namedtuple

import lamina
from lamina import Tensor
from lamina.nn import functional as F
from lamina.nn.modules.container import ModuleList, Sequential
from lamina.nn.modules.linear import Linear
from lamina.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes that are sorted by how often they occur (Grave et al., 2016).

    Parameters
    ----------
    in_features, n_classes : int
    cutoffs : sequence of int
        Where clusters start, ascending, within 1 to n_classes - 1.
    div_value : float
        Each cluster's layer is that many times narrower than the one before.
    head_bias : bool
        Whether the first layer has a bias.

    Raises ValueError for other cutoffs.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs,
        div_value: float = 4.0,
        head_bias: bool = False,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                "order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            narrow = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, narrow, bias=False, **factory),
                    Linear(narrow, classes, bias=False, **factory),
                )
            )

    def reset_parameters(self) -> None:
        """Start again from random values."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor):
        """Log-probability of each target (n,), and their negative mean; input (n, in_features)."""
        single = target_.dim() == 0
        if target_.dim() == 1:
            if input_.shape[0] != target_.shape[0]:
                raise RuntimeError(
                    "Input and target should have the same size in the batch dimension."
                )
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found {input_.dim()}D"
                )
        elif single:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found {input_.dim()}D"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        if target.numel() and not (0 <= int(target.min()) and int(target.max()) < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        output = input.new_zeros(target.size(0))
        places = target.clone()
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            mask = (target >= bounds[i]) & (target < bounds[i + 1])
            rows = mask.nonzero().flatten()
            if i == 0 or rows.numel() == 0:
                continue
            cluster = self.tail[i - 1](input.index_select(0, rows))
            within = (target[rows] - bounds[i]).unsqueeze(1)
            places = places.index_fill(0, rows, self.cutoffs[0] + i - 1)
            log_probs = F.log_softmax(cluster, dim=1).gather(1, within).squeeze(1)
            output = output.index_add(0, rows, log_probs)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return lamina.cat(parts, dim=1)

    def log_prob(self, input):
        """Log-probabilities of all classes: (n, in_features) gives (n, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input):
        """The most likely class of each row, the same as ``log_prob(input).argmax(1)``."""
        return self.log_prob(input).argmax(dim=1)
