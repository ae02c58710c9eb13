"""Optimizers: steps as stored from PyTorch, the native steps against plain operators, groups, hooks, state."""

import copy
import json
import math
import pickle
import warnings
from pathlib import Path

import pytest
from lamina.optim import optimizer as base

import lamina
from lamina import optim

STEPS = json.loads((Path(__file__).parent / "data" / "optim" / "steps.json").read_text())


def values(shape, salt, dtype=lamina.float64):
    i = lamina.arange(math.prod(shape), dtype=lamina.float64) + 17.0 * salt
    return lamina.sin(i * i * 0.37 + 1.0).reshape(shape).to(dtype)


def make(name, options, dtype=lamina.float64, shapes=((3, 4), (5,))):
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    params = [values(s, i, dtype).requires_grad_() for i, s in enumerate(shapes)]
    return params, getattr(optim, name)(params, **options)


def step(params, optimizer, number):
    if isinstance(optimizer, optim.LBFGS):

        def closure():
            optimizer.zero_grad()
            loss = sum(((p - 0.5) ** 2).sum() + (p**4).sum() * 0.1 for p in params)
            loss.backward()
            return loss

        return optimizer.step(closure)
    for i, p in enumerate(params):
        p.grad = values(p.shape, 10 * number + i + 3, p.dtype)
    return optimizer.step()


@pytest.mark.parametrize("name, options, expected", STEPS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_steps_are_those_of_the_peer(name, options, expected, dtype):
    params, optimizer = make(name, options, getattr(lamina, dtype))
    exact = dtype == "float64"
    for number, wanted in enumerate(expected):
        step(params, optimizer, number)
        for p, w in zip(params, wanted):
            lamina.testing.assert_close(
                p.detach().double().flatten(),
                lamina.tensor(w, dtype=lamina.float64),
                rtol=1e-9 if exact else 1e-4,
                atol=1e-11 if exact else 1e-5,
            )


NATIVE = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    ("Adam", {"weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"betas": (0.3, 0.5), "maximize": True}),
    ("AdamW", {}),
    ("RMSprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"maximize": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
]


@pytest.mark.parametrize("name, options", NATIVE)
@pytest.mark.parametrize("dtype", [lamina.float32, lamina.float64])
def test_native_step_has_the_bits_of_plain_operators(name, options, dtype, monkeypatch):
    shapes = ((70, 300), (3,), (), (2, 0), (5, 6))
    native = make(name, options, dtype, shapes)
    plain = make(name, options, dtype, shapes)
    for _, optimizer in (native, plain):
        optimizer.add_param_group({"params": [values((4, 6), 9, dtype).t().requires_grad_()]})
    for number in range(3):
        step(native[0], native[1], number)
        with monkeypatch.context() as patch:
            patch.setattr(base, "_PLAIN", frozenset())
            step(plain[0], plain[1], number)
        for p, q in zip(native[0], plain[0]):
            assert lamina.equal(p, q)


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_bits_do_not_depend_on_threads(name, threads):
    before = lamina.get_num_threads()
    results = []
    for n in (1, threads):
        lamina.set_num_threads(n)
        params, optimizer = make(name, {"lr": 0.1}, lamina.float32, ((300, 301), (7,)))
        step(params, optimizer, 0)
        step(params, optimizer, 1)
        results.append(params)
    lamina.set_num_threads(before)
    assert all(lamina.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
@pytest.mark.parametrize("dtype", [lamina.bfloat16, lamina.float16])
def test_reduced_types_step_like_float(name, dtype):
    options = {"lr": 0.1}
    low, optimizer = make(name, options, dtype)
    high, reference = make(name, options, lamina.float32)
    for number in range(3):
        step(low, optimizer, number)
        step(high, reference, number)
    for p, q in zip(low, high):
        assert p.dtype == dtype
        lamina.testing.assert_close(p.detach().float(), q.detach(), rtol=0.03, atol=0.03)


def test_strided_parameters_and_gradients():
    data = values((6, 4), 1)
    p = data.t().detach().requires_grad_()
    q = data.t().contiguous().detach().clone().requires_grad_()
    a, b = optim.Adam([p], lr=0.1), optim.Adam([q], lr=0.1)
    for i in range(3):
        grad = values((8, 6), i + 2)[::2]
        p.grad, q.grad = grad, grad.clone()
        a.step(), b.step()
    assert lamina.equal(p, q)
    every_second = lamina.zeros(10)[::2].requires_grad_()
    c = optim.SGD([every_second], lr=1.0)
    every_second.grad = lamina.ones(5)
    c.step()
    assert every_second.tolist() == [-1.0] * 5


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "NAdam"])
def test_complex_parameters_are_pairs_of_reals(name):
    z = lamina.view_as_complex(values((3, 2), 1)).requires_grad_()
    x = values((3, 2), 1).requires_grad_()
    a, b = getattr(optim, name)([z], lr=0.1), getattr(optim, name)([x], lr=0.1)
    for i in range(3):
        grad = values((3, 2), i + 5)
        z.grad, x.grad = lamina.view_as_complex(grad), grad
        a.step(), b.step()
    lamina.testing.assert_close(lamina.view_as_real(z.detach()), x.detach())


def test_version_counts_every_step():
    p = lamina.ones(2, requires_grad=True)
    optimizer = optim.Adam([p])
    p.grad = lamina.ones(2)
    before = p._version
    optimizer.step()
    assert p._version > before
    y = (p * p).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_native_step_refuses_to_be_recorded():
    p = lamina.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError):
        lamina._C._sgd_step_([p], [lamina.ones(2)], [], 0.1)
    with pytest.raises(RuntimeError, match="_sgd_step_"):
        with lamina.no_grad():
            lamina._C._sgd_step_([p], [], [], 0.1)
    with lamina.no_grad():
        assert not lamina._C._sgd_step_([p], [lamina.ones(3)], [], 0.1)
        assert not lamina._C._sgd_step_([p], [lamina.ones(2, dtype=lamina.complex64)], [], 0.1)
        assert p.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad", "Adamax", "RMSprop", "NAdam", "RAdam"])
def test_differentiable_steps(name):
    """The gradient through two steps agrees with differences."""

    def after(start, grad):
        p = start.clone()
        optimizer = getattr(optim, name)([p], lr=0.1, differentiable=True)
        p.grad = grad
        optimizer.step()
        optimizer.step()
        return (p**2).sum()

    p = values((3,), 1).requires_grad_()
    g = values((3,), 2).requires_grad_()
    assert lamina.autograd.gradcheck(after, (p, g), eps=1e-6, atol=1e-5)


def test_tensor_learning_rate():
    p, q = values((3,), 1).requires_grad_(), values((3,), 1).requires_grad_()
    lr = lamina.tensor(0.1, dtype=lamina.float64)
    a, b = optim.SGD([p], lr=lr), optim.SGD([q], lr=0.1)
    p.grad = q.grad = values((3,), 2)
    a.step(), b.step()
    assert lamina.equal(p, q)
    scheduler = optim.lr_scheduler.StepLR(a, 1)
    a.step()
    scheduler.step()
    assert a.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(0.01)


def leaf(*shape):
    return lamina.ones(*shape or (2,)).requires_grad_()


@pytest.mark.parametrize(
    "make_it, error, text",
    [
        (lambda p: optim.SGD([], lr=1), ValueError, "empty parameter list"),
        (lambda p: optim.SGD(p, lr=1), TypeError, "iterable of Tensors or dicts"),
        (lambda p: optim.SGD([1], lr=1), TypeError, "can only optimize Tensors"),
        (lambda p: optim.SGD([p * 2], lr=1), ValueError, "non-leaf"),
        (lambda p: optim.SGD([{"params": {p}}], lr=1), TypeError, "ordered collections"),
        (lambda p: optim.SGD([{"params": p}, {"params": p}], lr=1), ValueError, "more than one"),
        (lambda p: optim.SGD([{"params": p}, p], lr=1), TypeError, "must be a dict"),
        (lambda p: optim.SGD([p, ("x", leaf())], lr=1), ValueError, "with/without names"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov"),
        (lambda p: optim.SGD([p], lr=lamina.ones(2)), ValueError, "1-element"),
        (lambda p: optim.SGD([p], fused=True, foreach=True), RuntimeError, "cannot be `True`"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "index 0: 1.0"),
        (lambda p: optim.Adam([p], lr=lamina.tensor(0.1), foreach=True), ValueError, "foreach"),
        (lambda p: optim.Rprop([p], etas=(2, 3)), ValueError, "Invalid eta values: 2, 3"),
        (lambda p: optim.Adafactor([p], d=0.5), ValueError, "Clipping threshold"),
        (lambda p: optim.Muon([p]), ValueError, "Muon only supports 2D"),
        (lambda p: optim.LBFGS([{"params": p}, {"params": leaf()}]), ValueError, "per-parameter"),
        (
            lambda p: base.Optimizer([p], {"lr": base.required}),
            ValueError,
            "didn't specify a value",
        ),
    ],
)
def test_errors(make_it, error, text):
    with pytest.raises(error, match=text):
        make_it(leaf())


def test_capturable_needs_another_device():
    p = leaf()
    p.grad = lamina.ones(2)
    with pytest.raises(AssertionError, match="capturable=True"):
        optim.Adam([p], capturable=True).step()


def test_groups_names_and_repr():
    a, b, c = leaf(), leaf(), leaf()
    optimizer = optim.SGD([{"params": [a], "lr": 0.5}, {"params": b}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1]
    optimizer.add_param_group({"params": [c], "lr": 0.2})
    assert repr(optimizer).startswith("SGD (\nParameter Group 0\n    dampening: 0\n    differen")
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([{"params": [a, a]}])
    named = optim.SGD([("a", a), ("b", b)])
    assert named.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="without names"):
        named.add_param_group({"params": [c]})
    plain = optim.SGD([leaf(), leaf()])
    named.load_state_dict(plain.state_dict())
    assert named.param_groups[0]["param_names"] == ["a", "b"]


def test_state_goes_on_after_loading():
    params, optimizer = make("Adam", {"amsgrad": True})
    step(params, optimizer, 0)
    state = copy.deepcopy(optimizer.state_dict())
    assert sorted(state["state"][0]) == ["exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"]
    others = [p.detach().clone().requires_grad_() for p in params]
    other = optim.Adam(others, lr=1.0)
    other.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert other.param_groups[0]["lr"] == 1e-3 and other.param_groups[0]["amsgrad"]
    step(params, optimizer, 1)
    step(others, other, 1)
    assert all(lamina.equal(p, q) for p, q in zip(params, others))


def test_loaded_state_takes_the_parameters_type():
    params, optimizer = make("Adam", {})
    step(params, optimizer, 0)
    low = [p.detach().bfloat16().requires_grad_() for p in params]
    other = optim.Adam(low)
    other.load_state_dict(optimizer.state_dict())
    state = other.state[low[0]]
    assert state["exp_avg"].dtype == lamina.bfloat16 and state["step"].dtype == lamina.float32
    with pytest.raises(ValueError, match="different number of parameter groups"):
        other.load_state_dict(optim.Adam([{"params": leaf()}, {"params": leaf()}]).state_dict())
    with pytest.raises(ValueError, match="doesn't match the size"):
        other.load_state_dict(optim.Adam([leaf()]).state_dict())


def test_hooks_of_every_kind():
    optimizer = optim.SGD([leaf()])
    seen = []

    def note(name, result=None):
        return lambda *args: seen.append(name) or result

    handles = [
        base.register_optimizer_step_pre_hook(note("all before")),
        base.register_optimizer_step_post_hook(note("all after")),
        optimizer.register_step_pre_hook(note("before")),
        optimizer.register_step_post_hook(note("after")),
        optimizer.register_state_dict_pre_hook(note("save")),
        optimizer.register_state_dict_post_hook(note("second")),
        optimizer.register_state_dict_post_hook(note("first"), prepend=True),
        optimizer.register_load_state_dict_pre_hook(note("load")),
        optimizer.register_load_state_dict_post_hook(note("loaded")),
    ]
    optimizer.step()
    assert seen == ["all before", "before", "after", "all after"]
    seen.clear()
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == ["save", "first", "second", "load", "loaded"]
    seen.clear()
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert not seen
    optimizer.register_step_pre_hook(note("x", 5))
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_profiles_name_steps():
    from lamina.profiler import profile
    from lamina.utils.data import DataLoader

    optimizer = optim.SGD([leaf()])
    with profile() as p:
        for _ in DataLoader([1]):
            optimizer.zero_grad()
            optimizer.step()
    names = {event.name for event in p.events()}
    assert {"Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"} <= names
    assert "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" in names


def test_zero_grad():
    p = leaf()
    optimizer = optim.SGD([p])
    (p * 2).sum().backward()
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad and grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_and_missing_gradients():
    p, q = leaf(), leaf()
    optimizer = optim.SGD([p, q], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    assert p.tolist() == [0.0, 0.0] and q.tolist() == [1.0, 1.0]
    assert lamina.is_grad_enabled()


def test_pickles_and_copies():
    params, optimizer = make("Adam", {})
    step(params, optimizer, 0)
    for other in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        twins = other.param_groups[0]["params"]
        assert all(lamina.equal(p, q) and p is not q for p, q in zip(params, twins))
        assert other.state[twins[0]]["step"].item() == 1
        other.step()
    assert set(optimizer.__getstate__()) == {"defaults", "state", "param_groups"}


def test_own_optimizers():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        @lamina.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])

    p = leaf()
    p.grad = lamina.tensor([3.0, -2.0])
    optimizer = Sign([p], 0.25)
    seen = []
    optimizer.register_step_post_hook(lambda *a: seen.append(1))
    optimizer.step()
    assert p.tolist() == [0.75, 1.25] and seen == [1]
    assert Sign.step.hooked


def test_functional_forms():
    from lamina.optim._functional import adam, sgd

    p = lamina.ones(2)
    with lamina.no_grad():
        sgd(
            [p], [lamina.ones(2)], [None], weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip
    assert p.tolist() == [0.5, 0.5]
    steps = [lamina.tensor(0.0)]
    adam(
        [p], [lamina.ones(2)], [lamina.zeros(2)], [lamina.zeros(2)], [], steps, amsgrad=False,
        beta1=0.9, beta2=0.999, lr=0.5, weight_decay=0.0, eps=1e-8, maximize=False,
    )  # fmt: skip
    assert steps[0].item() == 1 and p[0].item() == pytest.approx(0.0, abs=1e-6)


def test_grouping_by_type():
    lists = [[lamina.ones(1), lamina.ones(1, dtype=lamina.float64), lamina.zeros(1)], [1, 2, 3]]
    groups = optim.Optimizer._group_tensors_by_device_and_dtype(lists, with_indices=True)
    (both, indices) = groups[(lamina.device("cpu"), lamina.float32)]
    assert indices == [0, 2] and both[1] == [1, 3]


def test_swapped_parameters_and_state():
    params, optimizer = make("Adam", {})
    step(params, optimizer, 0)
    before = [p.detach().clone() for p in params]
    twins = {str(i): p.detach().clone().requires_grad_() for i, p in enumerate(params)}
    state = copy.deepcopy(optimizer.state_dict())
    with optim.swap_in_optimizer_params_and_state(optimizer, twins, state):
        for p in twins.values():
            p.grad = lamina.ones_like(p)
        optimizer.step()
    assert all(lamina.equal(p, q) for p, q in zip(params, before))
    assert state["state"][0]["step"].item() == 2
    assert optimizer.state[params[0]]["step"].item() == 1


def test_import_paths():
    from lamina.optim.adam import Adam, adam  # noqa: F401
    from lamina.optim.lr_scheduler import LRScheduler, _LRScheduler
    from lamina.optim.optimizer import (  # noqa: F401
        Optimizer,
        ParamsT,
        _default_to_fused_or_foreach,
        _get_capturable_supported_devices,
        _get_value,
        _use_grad_for_differentiable,
        _view_as_real,
        required,
    )
    from lamina.optim.sgd import SGD, sgd  # noqa: F401

    assert issubclass(_LRScheduler, LRScheduler) and Optimizer is optim.Optimizer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optim.SGD([leaf()])
