"""Schedules of learning rates against stored ones of PyTorch, their state, warnings and errors; averages of weights."""

import importlib.util
import json
import pickle
import warnings
from pathlib import Path

import pytest
from lamina.optim import lr_scheduler as lrs

import lamina
from lamina import optim

DATA = Path(__file__).parent / "data" / "optim"
STORED = json.loads((DATA / "schedules.json").read_text())
spec = importlib.util.spec_from_file_location("make_schedules", DATA / "make_schedules.py")
maker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(maker)


def make(lr=0.1, **options):
    return optim.SGD([lamina.ones(1, requires_grad=True)], lr=lr, momentum=0.9, **options)


def names(case):
    return case[0] if isinstance(case[0], str) else None


@pytest.mark.parametrize("case, expected", STORED["schedules"], ids=lambda c: names(c))
def test_rates_are_those_of_the_peer(case, expected):
    found = maker.run(lamina, case)
    for epoch, (got, wanted) in enumerate(zip(found, expected)):
        for (lr, momentum), (lr_wanted, momentum_wanted) in zip(got, wanted):
            assert lr == pytest.approx(lr_wanted, rel=1e-10, abs=1e-15), epoch
            assert momentum == pytest.approx(momentum_wanted, rel=1e-10), epoch


@pytest.mark.parametrize("options, metrics, expected", STORED["plateaus"])
def test_plateaus(options, metrics, expected):
    assert maker.plateau(lamina, options, metrics) == pytest.approx(expected)


@pytest.mark.parametrize("case, expected", STORED["schedules"], ids=lambda c: names(c))
def test_goes_on_from_a_saved_state(case, expected):
    def start():
        params = [lamina.ones(1, requires_grad=True) for _ in range(2)]
        optimizer = optim.SGD(
            [{"params": params[0]}, {"params": params[1], "lr": 0.3}], lr=0.1, momentum=0.9
        )
        return optimizer, maker.build(optim, optimizer, case)

    optimizer, scheduler = start()
    for _ in range(8):
        optimizer.step()
        scheduler.step()
    saved = pickle.loads(pickle.dumps((optimizer.state_dict(), scheduler.state_dict())))
    optimizer, scheduler = start()
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
    assert scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
    for epoch in range(8, 20):
        for group, (lr, _) in zip(optimizer.param_groups, expected[epoch]):
            assert group["lr"] == pytest.approx(lr, rel=1e-10, abs=1e-15)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize(
    "cls, options",
    [
        (lrs.StepLR, {"step_size": 3}),
        (lrs.MultiStepLR, {"milestones": [2, 4]}),
        (lrs.ConstantLR, {}),
        (lrs.LinearLR, {}),
        (lrs.ExponentialLR, {"gamma": 0.9}),
        (lrs.PolynomialLR, {"power": 2}),
        (lrs.CosineAnnealingLR, {"T_max": 4}),
    ],
)
def test_closed_form_agrees(cls, options):
    chained, closed = make(), make()
    a, b = cls(chained, **options), cls(closed, **options)
    for epoch in range(1, 5):
        chained.step(), closed.step()
        a.step()
        with pytest.warns(UserWarning, match="epoch parameter"):
            b.step(epoch)
        assert chained.param_groups[0]["lr"] == pytest.approx(closed.param_groups[0]["lr"])


def test_lambdas():
    optimizer = make()
    scheduler = lrs.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    multiplied = make()
    other = lrs.MultiplicativeLR(multiplied, lambda epoch: 0.5)
    for _ in range(3):
        optimizer.step(), multiplied.step()
        scheduler.step(), other.step()
    assert scheduler.get_last_lr() == other.get_last_lr() == [0.0125]
    assert scheduler.state_dict()["lr_lambdas"] == [None]

    class Rule:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, epoch):
            return self.factor**epoch

    first = lrs.LambdaLR(make(), Rule(0.25))
    second = lrs.LambdaLR(make(), Rule(0.5))
    second.load_state_dict(first.state_dict())
    assert second.lr_lambdas[0].factor == 0.25


def test_order_of_steps_is_watched():
    scheduler = lrs.StepLR(make(), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        scheduler.step()
    optimizer = make()
    scheduler = lrs.StepLR(optimizer, 1)
    optimizer.step = lambda: None
    with pytest.warns(UserWarning, match="overridden"):
        scheduler.step()
    optimizer = make()
    scheduler = lrs.StepLR(optimizer, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimizer.step()
        scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_initial_lr_rules():
    optimizer = make()
    with pytest.raises(KeyError, match="initial_lr"):
        lrs.StepLR(optimizer, 1, last_epoch=3)
    optimizer.param_groups[0]["initial_lr"] = 0.8
    assert lrs.ExponentialLR(optimizer, 0.5, last_epoch=3).base_lrs == [0.8]
    fresh = make()
    lrs.LinearLR(fresh)
    assert fresh.param_groups[0]["initial_lr"] == 0.1


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda o: lrs.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda o: lrs.LambdaLR(o, [1, 2]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (lambda o: lrs.ConstantLR(o, factor=2), ValueError, "between 0 and 1"),
        (lambda o: lrs.LinearLR(o, start_factor=0), ValueError, "greater than 0"),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 0), ValueError, "integer T_0"),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 3).step(-1), ValueError, "non-negative"),
        (lambda o: lrs.ReduceLROnPlateau(o, factor=1), ValueError, "Factor should be"),
        (lambda o: lrs.ReduceLROnPlateau(o, mode="x"), ValueError, "mode x is unknown"),
        (lambda o: lrs.ReduceLROnPlateau(o, min_lr=[1, 2]), ValueError, "expected 1 min_lrs"),
        (lambda o: lrs.CyclicLR(o, 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
        (lambda o: lrs.CyclicLR(o, [0.1, 1], 0.2), ValueError, "base_lr has 2 values"),
        (lambda o: lrs.OneCycleLR(o, 0.1), ValueError, "total_steps OR"),
        (lambda o: lrs.OneCycleLR(o, 0.1, 10, pct_start=2), ValueError, "pct_start"),
        (lambda o: lrs.SequentialLR(o, [], []), ValueError, "at least one scheduler"),
        (lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1)], [1]), ValueError, "one more than"),
        (lambda o: lrs.ChainedScheduler([]), ValueError, "at least one scheduler"),
        (
            lambda o: lrs.ChainedScheduler([lrs.StepLR(o, 1), lrs.StepLR(make(), 1)]),
            ValueError,
            "same optimizer",
        ),
        (
            lambda o: lrs.SequentialLR(o, [lrs.StepLR(o, 1), lrs.ReduceLROnPlateau(o)], [1]),
            ValueError,
            "does not support `ReduceLROnPlateau`",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(make())


def test_one_cycle_ends():
    optimizer = make()
    scheduler = lrs.OneCycleLR(optimizer, 0.1, 3)
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        for _ in range(5):
            optimizer.step()
            scheduler.step()


def test_momentum_of_betas():
    optimizer = optim.Adam([lamina.ones(1, requires_grad=True)])
    scheduler = lrs.CyclicLR(optimizer, 0.01, 0.1, step_size_up=2)
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.999)
    optimizer.step(), scheduler.step(), optimizer.step(), scheduler.step()
    assert optimizer.param_groups[0]["betas"][0] == pytest.approx(0.8)
    with pytest.raises(ValueError, match="momentum or beta1"):
        lrs.OneCycleLR(optim.Adagrad([lamina.ones(1, requires_grad=True)]), 0.1, 10)


def test_averaged_models():
    nn = pytest.importorskip("lamina.nn")
    swa = optim.swa_utils
    model = nn.Linear(2, 1)
    plain, running = swa.AveragedModel(model), swa.AveragedModel(
        model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5)
    )  # fmt: skip
    one_by_one = swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.5))
    seen = []
    for i in range(4):
        with lamina.no_grad():
            model.weight.fill_(float(i))
        seen.append(float(i))
        for averaged in (plain, running, one_by_one):
            averaged.update_parameters(model)
    assert plain.module.weight[0, 0].item() == pytest.approx(sum(seen) / 4)
    assert running.module.weight[0, 0].item() == pytest.approx(2.125)
    assert one_by_one.module.weight[0, 0].item() == pytest.approx(2.125)
    assert plain.n_averaged.item() == 4
    assert list(plain.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    with pytest.raises(AssertionError, match="Only one of"):
        swa.AveragedModel(model, avg_fn=1, multi_avg_fn=1)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa.get_ema_avg_fn(2)
