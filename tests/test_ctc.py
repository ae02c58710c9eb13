"""ctc_loss against the sum over all alignments."""

import itertools
import math

import pytest

np = pytest.importorskip("numpy")

from lamina.nn import functional as F  # noqa: E402

import lamina  # noqa: E402


def collapsed(path):
    return [k for k, _ in itertools.groupby(path) if k != 0]


def brute(log_probs, target):
    steps, classes = log_probs.shape
    total = sum(
        math.exp(sum(log_probs[t, k] for t, k in enumerate(path)))
        for path in itertools.product(range(classes), repeat=steps)
        if collapsed(path) == list(target)
    )
    return -math.log(total) if total else math.inf


@pytest.mark.parametrize("seed", range(4))
def test_all_alignments(seed):
    lamina.manual_seed(seed)
    lp = lamina.randn(4, 3, 3, dtype=lamina.float64).log_softmax(2)
    targets = lamina.randint(1, 3, (3, 3))
    steps, sizes = lamina.randint(1, 5, (3,)), lamina.randint(0, 4, (3,))
    got = F.ctc_loss(lp, targets, steps, sizes, reduction="none")
    expected = [
        brute(lp[: int(steps[i]), i].numpy(), targets[i, : int(sizes[i])].tolist())
        for i in range(3)
    ]
    np.testing.assert_allclose(got.numpy(), expected, 1e-9)
    flat = lamina.cat([targets[i, : int(sizes[i])] for i in range(3)])
    again = F.ctc_loss(lp, flat, tuple(steps.tolist()), tuple(sizes.tolist()), reduction="none")
    assert lamina.equal(again, got)
    zeroed = F.ctc_loss(lp, targets, steps, sizes, reduction="sum", zero_infinity=True)
    assert math.isclose(zeroed.item(), sum(e for e in expected if e < math.inf))


def test_gradient_through_log_softmax():
    lamina.manual_seed(0)
    x = lamina.randn(5, 2, 3, dtype=lamina.float64, requires_grad=True)
    targets, steps, sizes = lamina.tensor([[1, 1], [2, 1]]), (5, 4), (2, 1)
    assert lamina.autograd.gradcheck(
        lambda x: F.ctc_loss(x.log_softmax(2), targets, steps, sizes, reduction="sum"), (x,)
    )
    short = F.ctc_loss(x.log_softmax(2), targets, (1, 1), (2, 2), zero_infinity=True)
    short.backward()
    assert short.item() == 0 and not x.grad.any()


def test_errors():
    lp, t = lamina.zeros(4, 1, 3), lamina.tensor([[1, 2]])
    for wrong in (
        lambda: F.ctc_loss(lp, t, (5,), (2,)),
        lambda: F.ctc_loss(lp, t, (4, 4), (2,)),
        lambda: F.ctc_loss(lp, t, (4,), (3,)),
        lambda: F.ctc_loss(lp, t, (4,), (2,), blank=3),
        lambda: F.ctc_loss(lp, t + 5, (4,), (2,)),
        lambda: F.ctc_loss(lp[0, 0], t, (4,), (2,)),
    ):
        with pytest.raises(RuntimeError):
            wrong()
