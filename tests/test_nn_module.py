"""nn.Module: parts, names, state, hooks, calls, copies."""

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lamina.nn.modules import module as module_file

import lamina
from lamina import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.register_buffer("scale", lamina.ones(2))
        self.register_buffer("cache", lamina.zeros(1), persistent=False)

    def forward(self, x):
        return self.rest(self.first(x)) * self.scale


NAMES = ["scale", "first.weight", "first.bias", "rest.1.weight"]


def test_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == NAMES[1:]
    assert [n for n, _ in net.named_parameters(prefix="a", recurse=False)] == []
    assert [n for n, _ in net.named_buffers(prefix="a")] == ["a.scale", "a.cache"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [n for n, _ in net.named_children()] == ["first", "rest"]
    assert list(net.state_dict()) == NAMES
    assert list(net.children()) == [net.first, net.rest]
    assert net.get_submodule("rest.1") is net.rest[1] and net.get_submodule("") is net
    assert net.get_parameter("first.bias") is net.first.bias
    assert net.get_buffer("scale") is net.scale
    for method, name in (
        ("get_submodule", "rest.7"),
        ("get_submodule", "scale"),
        ("get_parameter", "scale"),
        ("get_buffer", "first.bias"),
    ):
        with pytest.raises(AttributeError):
            getattr(net, method)(name)
    net.set_submodule("rest.0", nn.Tanh())
    assert isinstance(net.rest[0], nn.Tanh)
    with pytest.raises(ValueError):
        net.set_submodule("", nn.Tanh())


def test_shared_parts_come_once():
    net = nn.Module()
    net.a = net.b = nn.Linear(2, 2)
    net.w = net.a.weight
    assert [n for n, _ in net.named_parameters()] == ["w", "a.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 5
    assert [n for n, _ in net.named_modules()] == ["", "a"]
    assert [n for n, _ in net.named_modules(remove_duplicate=False)] == ["", "a", "b"]
    assert len(net.state_dict()) == 5


def test_attributes():
    m = nn.Module()
    m.w = nn.Parameter(lamina.ones(2))
    assert m._parameters == {"w": m.w} and "w" not in m.__dict__ and "w" in dir(m)
    m.w = None
    assert m._parameters == {"w": None} and m.w is None
    with pytest.raises(TypeError):
        m.w = lamina.ones(2)
    m.x = lamina.ones(1)  # a plain attribute
    m.x = nn.Parameter(lamina.ones(1))
    assert "x" in m._parameters and "x" not in m.__dict__
    m.child = nn.ReLU()
    with pytest.raises(TypeError):
        m.child = 3
    m.child = nn.Parameter(lamina.ones(1))
    assert "child" in m._parameters and "child" not in m._modules
    m.b = nn.Buffer(lamina.ones(1), persistent=False)
    assert "b" in m._buffers and m._non_persistent_buffers_set == {"b"}
    m.b = lamina.zeros(2)
    assert m._buffers["b"].shape == (2,)
    with pytest.raises(TypeError):
        m.b = 3
    del m.b, m.x, m.child, m.w
    assert not m._buffers and not m._parameters and not m._non_persistent_buffers_set
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'w'"):
        m.w  # noqa: B018
    object.__setattr__(m, "hidden", nn.ReLU())
    assert not m._modules and "hidden" in m.__dict__


def test_registration_checks():
    m = nn.Linear(1, 1)
    for call, error in (
        (lambda: m.register_parameter("a.b", None), KeyError),
        (lambda: m.register_parameter("", None), KeyError),
        (lambda: m.register_parameter(1, None), TypeError),
        (lambda: m.register_parameter("forward", None), KeyError),
        (lambda: m.register_parameter("p", lamina.ones(1)), TypeError),
        (lambda: m.register_buffer("weight", lamina.ones(1)), KeyError),
        (lambda: m.register_buffer("b", 1), TypeError),
        (lambda: m.add_module("weight", nn.ReLU()), KeyError),
        (lambda: m.add_module("x", 3), TypeError),
        (lambda: nn.Module(1), TypeError),
        (lambda: nn.Module(a=1), TypeError),
        (lambda: m.train("yes"), ValueError),
        (lambda: nn.Module()(1), NotImplementedError),
    ):
        with pytest.raises(error):
            call()

    class Early(nn.Module):
        def __init__(self, kind):
            if kind == "module":
                self.x = nn.ReLU()
            elif kind == "parameter":
                self.x = nn.Parameter()
            elif kind == "buffer":
                self.register_buffer("x", None)
            self.plain = 1

        def forward(self):
            return self.plain

    for kind in ("module", "parameter", "buffer"):
        with pytest.raises(AttributeError):
            Early(kind)
    with pytest.raises(AttributeError):
        Early(None)()


def test_calls_follow_what_is_defined():
    """The short way of calls gives way to whatever somebody defines."""

    class Named(nn.Module):
        def __getattr__(self, name):
            if name == "made":
                return 7
            return super().__getattr__(name)

    named = Named()
    named.part = nn.ReLU()
    assert named.made == 7 and isinstance(named.part, nn.ReLU)
    with pytest.raises(AttributeError):
        named.other  # noqa: B018

    class Called(nn.Linear):
        def __call__(self, x):
            return super().__call__(x) + 100

    x = lamina.zeros(1, 1)
    called = Called(1, 1, bias=False)
    assert called(x).item() == 100
    linear = nn.Linear(1, 1, bias=False)
    linear.forward = lambda x: x + 5
    assert linear(x).item() == 5
    del linear.forward
    assert linear(x).item() == 0
    before = nn.Module.__call__
    try:
        nn.Module.__call__ = lambda self, *args: "patched"
        assert linear(x) == "patched" and nn.ReLU()(x) == "patched"
    finally:
        nn.Module.__call__ = before
    assert linear(x).item() == 0
    assert linear(input=x).item() == 0

    class Wide(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    assert Wide()(*range(12), a=1) == (tuple(range(12)), {"a": 1})
    assert Wide()() == ((), {})
    linear.compile()
    assert linear(x).item() == 0


def test_dicts_of_other_classes():
    class Counting(dict):
        reads = 0

        def __getitem__(self, name):
            Counting.reads += 1
            return super().__getitem__(name)

    m = nn.Linear(2, 2)
    m._parameters = Counting(m._parameters)
    assert isinstance(m.weight, nn.Parameter) and Counting.reads == 1
    m._parameters = OrderedDict(m._parameters)
    assert isinstance(m.bias, nn.Parameter)
    with pytest.raises(AttributeError):
        m.absent  # noqa: B018


def test_property_of_a_module_may_fail():
    class Broken(nn.Module):
        @property
        def value(self):
            return self.absent

    with pytest.raises(AttributeError):
        Broken().value  # noqa: B018


def test_state_dict():
    net = Net()
    state = net.state_dict(prefix="p.")
    assert list(state) == ["p." + n for n in NAMES]
    assert state._metadata["p"] == {"version": 1}
    assert not state["p.first.weight"].requires_grad
    assert state["p.first.weight"].data_ptr() == net.first.weight.data_ptr()
    assert net.state_dict(keep_vars=True)["first.weight"] is net.first.weight
    other = Net()
    keys = other.load_state_dict(net.state_dict())
    assert repr(keys) == "<All keys matched successfully>" == str(keys)
    x = lamina.randn(2, 3)
    assert lamina.equal(net(x), other(x))
    short = net.state_dict()
    del short["scale"]
    short["more.w"] = lamina.ones(1)
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"scale\"") as error:
        net.load_state_dict(short)
    assert 'Unexpected key(s) in state_dict: "more.w"' in str(error.value)
    keys = net.load_state_dict(short, strict=False)
    assert keys.missing_keys == ["scale"] and keys.unexpected_keys == ["more.w"]
    with pytest.raises(RuntimeError, match="size mismatch for first.bias"):
        net.load_state_dict({**net.state_dict(), "first.bias": lamina.ones(9)})
    with pytest.raises(RuntimeError, match="Tensor-like"):
        net.load_state_dict({**net.state_dict(), "first.bias": 3})
    with pytest.raises(TypeError):
        net.load_state_dict([1])


def test_load_by_assignment():
    net = Net()
    net.first.weight.requires_grad_(False)
    state = OrderedDict((k, v.double()) for k, v in net.state_dict().items())
    net.load_state_dict(state, assign=True)
    assert net.first.weight.dtype == lamina.float64 and not net.first.weight.requires_grad
    assert net.first.bias.requires_grad and isinstance(net.first.bias, nn.Parameter)
    assert net.scale is state["scale"]
    again = net.state_dict()
    net.load_state_dict(again, assign=True)
    net.load_state_dict(again)
    assert net.scale is again["scale"] and "assign_to_params_buffers" not in again._metadata[""]
    empty = Net().to("meta")
    empty.load_state_dict(Net().state_dict(), assign=True)
    assert empty.first.weight.device.type == "cpu"


def test_state_hooks_and_extra_state():
    class Extra(nn.Module):
        def __init__(self):
            super().__init__()
            self.extra = 1

        def get_extra_state(self):
            return self.extra

        def set_extra_state(self, state):
            self.extra = state

    m = Extra()
    log = []
    m.register_state_dict_pre_hook(lambda mod, prefix, keep: log.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: log.append(("post", prefix)))
    m._register_state_dict_hook(lambda mod, state, prefix, meta: state.update(more=1))
    handle = m.register_load_state_dict_pre_hook(
        lambda mod, state, *rest: log.append(("load", mod is m, state.pop("more")))
    )
    m.register_load_state_dict_post_hook(lambda mod, keys: log.append(("loaded", keys)))
    m.extra = 5
    state = m.state_dict()
    assert state == {"_extra_state": 5, "more": 1}
    m.extra = 0
    m.load_state_dict(state)
    assert m.extra == 5 and log[:3] == [("pre", "", False), ("post", ""), ("load", True, 1)]
    handle.remove()
    with pytest.raises(RuntimeError):
        m.load_state_dict({"more": 1})
    again = copy.deepcopy(m)
    assert again.state_dict()["_extra_state"] == 5
    with pytest.raises(RuntimeError):
        nn.Module().get_extra_state()


def test_forward_hooks():
    m, log = nn.Linear(2, 2), []
    x = lamina.ones(1, 2)
    plain = m(x)
    handles = [
        m.register_forward_pre_hook(lambda mod, args: log.append("pre")),
        m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,), prepend=True),
        m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {**kwargs}), with_kwargs=True),
        m.register_forward_hook(lambda mod, args, out: out - mod.bias),
        m.register_forward_hook(lambda mod, args, kwargs, out: out * 3, with_kwargs=True),
        m.register_forward_hook(lambda mod, args, out: log.append(args[0][0, 0].item())),
    ]
    assert lamina.allclose(m(x), (plain - m.bias) * 2 * 3, atol=1e-6) and log == ["pre", 2.0]
    for handle in handles:
        handle.remove()
    assert lamina.equal(m(x), plain) and not m._forward_hooks_with_kwargs
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError):
        m(x)


def test_always_called_hooks():
    class Failing(nn.Module):
        def forward(self, x):
            raise KeyError("here")

    m, log = Failing(), []
    m.register_forward_hook(lambda mod, args, out: log.append("never"))
    m.register_forward_hook(lambda mod, args, out: log.append(out), always_call=True)
    with pytest.raises(KeyError, match="here"):
        m(1)
    assert log == [None]
    m.register_forward_hook(lambda mod, args, out: 1 / 0, always_call=True, prepend=True)
    with pytest.warns(UserWarning, match="silenced"), pytest.raises(KeyError):
        m(1)


def test_backward_hooks():
    m, log = nn.Linear(2, 3, bias=False), []
    x = lamina.randn(4, 2, requires_grad=True)
    m.register_full_backward_pre_hook(lambda mod, grads: (grads[0] * 2,))
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    m(x).sum().backward()
    assert lamina.equal(log[0][1][0], lamina.full((4, 3), 2.0))
    assert lamina.allclose(x.grad, 2 * m.weight.sum(0).expand(4, 2))
    assert lamina.allclose(m.weight.grad, 2 * x.detach().sum(0).expand(3, 2))
    log.clear()
    m(x.detach()).sum().backward()  # no input needs a gradient
    assert log[0][0] == (None,) and log[0][1][0].shape == (4, 3)
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 0,) if gi[0] is not None else None)
    y = x.detach().requires_grad_()
    m(y).sum().backward()
    assert not y.grad.any()
    with lamina.no_grad():
        m(x)
    with pytest.raises(RuntimeError):
        m.register_backward_hook(lambda *a: None)
    wrong = nn.Linear(2, 3)
    wrong.register_full_backward_hook(lambda mod, gi, go: (1, 2, 3))
    with pytest.raises(RuntimeError):
        wrong(y).sum().backward()


def test_backward_hooks_with_several_tensors():
    class Two(nn.Module):
        def forward(self, a, flag, b):
            return a * 2, "text", b * 3

    m, log = Two(), []
    m.register_full_backward_hook(lambda mod, gi, go: log.append((gi, go)))
    a, b = lamina.ones(2, requires_grad=True), lamina.ones(2)
    p, text, q = m(a, True, b)
    assert text == "text"
    (p.sum() + q.sum()).backward()
    ((gi, go),) = log
    assert gi[0].tolist() == [2.0, 2.0] and gi[1] is None and go[1] is None


def test_old_backward_hook():
    m, log = nn.Linear(2, 2, bias=False), []
    m.register_backward_hook(lambda mod, gi, go: log.append(go[0].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m(lamina.ones(1, 2, requires_grad=True)).sum().backward()
    assert log == [[[1.0, 1.0]]]
    with pytest.raises(RuntimeError):
        m.register_full_backward_hook(lambda *a: None)


def test_hooks_of_all_modules():
    log = []
    x = lamina.ones(1, 2, requires_grad=True)
    handles = [
        module_file.register_module_forward_pre_hook(lambda m, a: log.append("before")),
        module_file.register_module_forward_hook(lambda m, a, o: log.append("after")),
        module_file.register_module_full_backward_hook(lambda m, gi, go: log.append("backward")),
        module_file.register_module_parameter_registration_hook(
            lambda m, name, p: log.append("p:" + name)
        ),
        module_file.register_module_buffer_registration_hook(
            lambda m, name, b: log.append("b:" + name)
        ),
        module_file.register_module_module_registration_hook(
            lambda m, name, s: log.append("m:" + name)
        ),
    ]
    try:
        m = nn.Linear(2, 1)
        m.buffer = nn.Buffer(lamina.ones(1))
        m.part = nn.ReLU()
        m(x).sum().backward()
        with pytest.raises(RuntimeError):
            module_file.register_module_backward_hook(lambda *a: None)
    finally:
        for handle in handles:
            handle.remove()
        module_file._hooks._global_is_full_backward_hook = None
    assert log == ["p:weight", "p:bias", "b:buffer", "m:part", "before", "after", "backward"]
    log.clear()
    m(x)
    assert not log


def test_conversions():
    net = Net()
    net.register_buffer("count", lamina.zeros(1, dtype=lamina.int64))
    weight = net.first.weight
    net(lamina.ones(1, 3)).sum().backward()
    assert net.double() is net
    assert net.first.weight is weight and weight.dtype == lamina.float64
    assert weight.grad.dtype == lamina.float64 and net.count.dtype == lamina.int64
    for call, dtype in (
        (lambda: net.half(), lamina.float16),
        (lambda: net.bfloat16(), lamina.bfloat16),
        (lambda: net.float(), lamina.float32),
        (lambda: net.to(lamina.float64), lamina.float64),
        (lambda: net.to(lamina.ones(1)), lamina.float32),
        (lambda: net.to("cpu", lamina.float64, non_blocking=True), lamina.float64),
        (lambda: net.to(dtype=lamina.float32), lamina.float32),
        (lambda: net.to(device="cpu"), lamina.float32),
    ):
        call()
        assert net.first.weight.dtype == net.scale.dtype == dtype
        assert net.count.dtype == lamina.int64
    net.type(lamina.float64)
    assert net.count.dtype == lamina.float64
    for wrong in (lambda: net.to(lamina.int32), lambda: net.to(3.5), lambda: net.to("cpu", 1)):
        with pytest.raises(TypeError):
            wrong()
    meta = Net().to("meta")
    assert meta.first.weight.is_meta and isinstance(meta.first.weight, nn.Parameter)
    assert meta.to_empty(device="cpu").first.weight.shape == (4, 3)
    assert Net().cpu().share_memory().first.weight.is_shared()


def test_names_below_C():
    parse = lamina._C._nn._parse_to
    assert parse("cpu", lamina.float64) == (lamina.device("cpu"), lamina.float64, False, None)
    assert parse(lamina.ones(1), non_blocking=True)[1:3] == (lamina.float32, True)
    assert isinstance(lamina.Tensor, lamina._C._TensorMeta) and callable(lamina._C._nn.gelu)


def test_modes_and_gradients():
    net = Net()
    assert net.training and net.eval() is net and not net.rest[1].training
    assert net.train().rest[0].training
    assert net.requires_grad_(False) is net
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(lamina.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert not net.first.weight.grad.any()
    net.zero_grad()
    assert net.first.weight.grad is None
    seen = []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]


def test_copies():
    net = Net()
    net.first.register_forward_hook(_double)
    x = lamina.randn(2, 3)
    expected = net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert lamina.equal(other(x), expected)
        assert other.first.weight is not net.first.weight
        assert isinstance(other.first.weight, nn.Parameter)
        assert other._non_persistent_buffers_set == {"cache"}
    shallow = copy.copy(net)
    assert shallow.first is net.first
    parameter = nn.Parameter(lamina.ones(2), requires_grad=False)
    parameter.note = "here"
    again = pickle.loads(pickle.dumps(parameter))
    assert type(again) is nn.Parameter and again.note == "here" and not again.requires_grad
    reference = weakref.ref(net)
    del net, shallow
    gc.collect()
    assert reference() is None


def _double(module, args, output):
    return output * 2


def test_parameter():
    data = lamina.ones(2)
    p = nn.Parameter(data)
    assert p.data_ptr() == data.data_ptr() and p.requires_grad and p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p + 1) is lamina.Tensor and type(p.detach()) is lamina.Tensor
    assert nn.Parameter is lamina.nn.parameter.Parameter and nn.Parameter().shape == (0,)
    with lamina.no_grad():
        assert nn.Parameter(data).requires_grad
    assert not isinstance(data, nn.Parameter)
    with pytest.raises(TypeError):
        nn.Parameter([1.0])

    class Special(lamina.Tensor):
        pass

    special = nn.Parameter(data.as_subclass(Special))
    assert type(special) is Special and isinstance(special, nn.Parameter)
    m = nn.Module()
    m.special = special
    assert m._parameters["special"] is special
    waiting = nn.UninitializedParameter(dtype=lamina.float64)
    assert repr(waiting) == "<UninitializedParameter>" and waiting.dtype == lamina.float64
    for wrong in (lambda: waiting + 1, lambda: waiting.numel()):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(RuntimeError):
        waiting.shape  # noqa: B018
    waiting.materialize((2, 3))
    assert type(waiting) is nn.Parameter and waiting.shape == (2, 3)


def test_copies_keep_shared_memory():
    base = lamina.arange(6.0)
    net = nn.Module()
    net.a, net.b, net.c = nn.Parameter(base), nn.Parameter(base[2:4]), nn.Parameter(base)
    net.d = net.a
    other = copy.deepcopy(net)
    with lamina.no_grad():
        other.a.add_(1)
    assert other.b.tolist() == [3, 4] and other.c.tolist() == other.a.tolist()
    assert other.d is other.a and net.a.tolist() == list(range(6))


def test_sequential():
    a, b, c = nn.Linear(1, 2), nn.ReLU(), nn.Tanh()
    s = nn.Sequential(a, b)
    assert len(s) == 2 and s[0] is a and s[-1] is b and list(s) == [a, b]
    assert isinstance(s[:1], nn.Sequential) and list(s[:1]) == [a]
    s.append(c).insert(1, c)
    assert list(s) == [a, c, b, c]
    del s[1]
    assert list(s) == [a, b, c] and list(s._modules) == ["0", "1", "2"]
    s[1] = c
    assert s[1] is c and s.pop(2) is c and len(s) == 2
    assert list(s + nn.Sequential(b)) == [a, c, b] and len(nn.Sequential(b) * 3) == 3
    s += nn.Sequential(b)
    s.extend([c])
    assert list(s) == [a, c, b, c]
    for index in (9, -9):
        with pytest.raises(IndexError):
            s[index]
    for wrong, error in (
        (lambda: s + [b], ValueError),
        (lambda: s * 0, ValueError),
        (lambda: s * 1.5, TypeError),
        (lambda: s.insert(0, 1), AssertionError),
        (lambda: s.append(1), TypeError),
    ):
        with pytest.raises(error):
            wrong()
    named = nn.Sequential(OrderedDict(x=a, y=b))
    assert named.x is a and list(named.state_dict()) == ["x.weight", "x.bias"]


def test_lists_and_dicts_of_modules():
    a, b = nn.Linear(1, 1), nn.ReLU()
    modules = nn.ModuleList([a, a, b])
    assert repr(modules) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=1, bias=True)\n  (2): ReLU()\n)"
    )
    modules.insert(0, b)
    modules += [a]
    assert list(modules) == [b, a, a, b, a] and list(modules[1:3]) == [a, a]
    del modules[0]
    assert modules.pop(-1) is a and len(modules + [b]) == 4
    with pytest.raises(NotImplementedError):
        modules(1)
    with pytest.raises(TypeError):
        modules.extend(3)
    d = nn.ModuleDict({"x": a})
    d.update([("y", b)])
    d["z"] = b
    assert list(d) == ["x", "y", "z"] and d.pop("z") is b and "x" in d and len(d) == 2
    assert list(d.items()) == [("x", a), ("y", b)] and list(d.values()) == [a, b]
    d.clear()
    assert not len(d)
    for wrong in (lambda: d.update(3), lambda: d.update([3])):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError):
        d.update([("a", b, 1)])


def test_lists_and_dicts_of_parameters():
    p = nn.ParameterList([lamina.ones(2), "text"])
    p.append(lamina.zeros(1))
    p += [nn.Parameter(lamina.ones(3))]
    assert isinstance(p[0], nn.Parameter) and p[1] == "text" and len(p) == 4
    assert len(list(p.parameters())) == 3 and [type(x) for x in p[1:3]] == [str, nn.Parameter]
    p[1] = lamina.ones(1)
    assert list(p.state_dict()) == ["0", "2", "3", "1"]
    with pytest.raises(IndexError):
        p[4]
    with pytest.raises(RuntimeError):
        p()
    assert "Parameter containing: [" in repr(p)
    d = nn.ParameterDict({"b": lamina.ones(1), "a": 3})
    assert list(d) == ["a", "b"] and isinstance(d["b"], nn.Parameter)
    d["c"] = lamina.ones(2)
    assert list(reversed(d)) == ["c", "b", "a"] and d.get("zz", 1) == 1 and d.setdefault("a") == 3
    assert list((d | nn.ParameterDict({"q": 1})).keys()) == ["a", "b", "c", "q"]
    assert d.popitem()[0] == "c" and d.pop("a") == 3 and len(d.copy()) == 1
    with pytest.raises(TypeError):
        d[1] = 2


actions = st.lists(
    st.tuples(
        st.sampled_from(["parameter", "buffer", "module", "none", "number", "tensor", "delete"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(actions)
def test_one_place_for_each_name(steps):
    """Whatever is assigned and deleted, a name is in one place, and reads as what was last accepted."""
    m = nn.Module()
    values = {
        "parameter": nn.Parameter(lamina.ones(1)),
        "buffer": nn.Buffer(lamina.ones(1)),
        "module": nn.ReLU(),
        "none": None,
        "number": 3,
        "tensor": lamina.zeros(1),
    }
    expected = {}
    for kind, name in steps:
        try:
            if kind == "delete":
                delattr(m, name)
                expected.pop(name)
            else:
                setattr(m, name, values[kind])
                expected[name] = values[kind]
        except (TypeError, AttributeError):
            pass
        places = (m.__dict__, m._parameters, m._buffers, m._modules)
        for key in "abc":
            assert sum(key in place for place in places) == (key in expected)
            assert getattr(m, key, "absent") is expected.get(key, "absent")
