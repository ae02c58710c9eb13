"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

import lamina
from lamina._per_sample import per_sample
from lamina.functional import overridable
from lamina.nn.functional._reduction import reduction_code


def _lengths(lengths, n, most, what):
    if not isinstance(lengths, lamina.Tensor):
        lengths = lamina.tensor(lengths, dtype=lamina.int64)
    if lengths.is_floating_point():
        raise RuntimeError(f"ctc_loss: {what} must be integral; got {lengths.dtype}")
    lengths = lengths.reshape(-1).to(lamina.int64)
    if lengths.numel() != n:
        raise RuntimeError(
            f"ctc_loss: {what} must be of size batch_size; got {lengths.numel()}; expected {n}"
        )
    if most is not None and n and int(lengths.max()) > most:
        raise RuntimeError(f"ctc_loss: expected {what} of at most {most}; got {int(lengths.max())}")
    if n and int(lengths.min()) < 0:
        raise RuntimeError(f"ctc_loss: {what} must not be negative; got {int(lengths.min())}")
    return lengths


def _padded(targets, lengths, n):
    """Targets (n, longest), also where they came one after the other."""
    if (
        targets.dim() == 1
        and n != 1
        or targets.dim() == 1
        and targets.numel() == int(lengths.sum())
    ):
        longest = max(int(lengths.max()), 1) if n else 1
        starts = lengths.cumsum(0) - lengths
        places = starts[:, None] + lamina.arange(longest)
        if int(lengths.sum()) > targets.numel():
            raise RuntimeError(
                f"ctc_loss: the target lengths are {int(lengths.sum())} in all; got {targets.numel()} targets"
            )
        if targets.numel() == 0:
            return targets.new_zeros((n, longest))
        return targets[places.clamp(max=targets.numel() - 1)]
    if targets.dim() == 1:
        targets = targets[None]
    if targets.shape[0] != n or targets.shape[1] < (int(lengths.max()) if n else 0):
        raise RuntimeError(
            f"ctc_loss: targets {list(targets.shape)} do not hold {n} sequences of the given lengths"
        )
    return targets if targets.shape[1] else targets.new_zeros((n, 1))


@overridable
@per_sample
def ctc_loss(
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
):
    """The negative logarithm of the probability that a target comes out of a sequence of distributions.

    Parameters
    ----------
    log_probs : Tensor
        (t, n, c) or (t, c): logarithms of probabilities, as log_softmax gives them. Gradients assume that.
    targets : Tensor
        (n, s), or all one after the other; without `blank`.
    input_lengths, target_lengths : Tensor or tuple of int
        (n,).
    blank : int
        The class of no label.
    reduction : str
        'mean' is over the losses divided by the target lengths.
    zero_infinity : bool
        Losses that are infinite, as those of inputs too short for their target, count as zero.

    Raises RuntimeError where sizes or lengths do not fit.
    """
    code = reduction_code("ctc_loss", reduction, None, None)
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(
            f"ctc_loss: log_probs must have 2 or 3 dimensions; got {log_probs.dim()}"
        )
    if not log_probs.is_floating_point() or targets.is_floating_point():
        raise RuntimeError("ctc_loss: log_probs must be floating, targets integral")
    alone = log_probs.dim() == 2
    if alone:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1)
    steps, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(
            f"ctc_loss: blank must be in label range; got {blank}; {classes} classes"
        )
    lengths = _lengths(input_lengths, n, steps, "input_lengths")
    sizes = _lengths(target_lengths, n, None, "target_lengths")
    labels = _padded(targets.to(lamina.int64), sizes, n)
    longest = labels.shape[1]
    inside = lamina.arange(longest) < sizes[:, None]
    labels = lamina.where(inside, labels, blank)
    if labels.numel() and not (0 <= int(labels.min()) and int(labels.max()) < classes):
        raise RuntimeError(f"ctc_loss: targets must be in [0, {classes})")
    # States: a blank before, between and after the labels.
    states = lamina.full((n, 2 * longest + 1), blank, dtype=lamina.int64)
    states[:, 1::2] = labels
    skips = lamina.zeros(states.shape, dtype=lamina.bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    emitted = log_probs.gather(2, states.expand(steps, -1, -1))
    never = emitted.new_full((n, 2), float("-inf"))
    start = lamina.zeros(states.shape, dtype=lamina.bool)
    start[:, 0] = True
    start[:, 1] = sizes > 0
    low = emitted.new_full((), float("-inf"))
    alpha = lamina.where(start, emitted[0], low) if steps else never
    for t in range(1, steps):
        moved = lamina.cat([never, alpha], 1)
        ways = lamina.stack([alpha, moved[:, 1:-1], lamina.where(skips, moved[:, :-2], low)])
        alpha = lamina.where((t < lengths)[:, None], lamina.logsumexp(ways, 0) + emitted[t], alpha)
    last = alpha.gather(1, (2 * sizes)[:, None])
    before = alpha.gather(1, (2 * sizes - 1).clamp(min=0)[:, None])
    before = lamina.where((sizes > 0)[:, None], before, low)
    loss = -lamina.logsumexp(lamina.cat([last, before], 1), 1)
    loss = lamina.where(
        lengths == 0, lamina.where(sizes == 0, 0.0, float("inf")).to(loss.dtype), loss
    )
    # A normalized input: the probabilities of a step sum to 1. The sum's gradient belongs to the loss.
    valid = (lamina.arange(steps)[:, None] < lengths).unsqueeze(2)
    total = lamina.where(valid, log_probs.exp(), 0.0).sum((0, 2))
    loss = loss + (total - total.detach())
    if zero_infinity:
        loss = lamina.where(loss == float("inf"), 0.0, loss)
    if code == 1:
        return (loss / sizes.clamp(min=1).to(loss.dtype)).mean()
    if code == 2:
        return loss.sum()
    return loss[0] if alone else loss


__all__ = ["ctc_loss"]
