"""nn.utils: clipping, vectors, parametrizations, normalized weights, pruning, fusion, calls with other parameters."""

import copy
import pickle

import pytest

np = pytest.importorskip("numpy")

from lamina.nn import utils  # noqa: E402
from lamina.nn.utils import parametrizations, parametrize, prune  # noqa: E402

import lamina  # noqa: E402
from lamina import func, nn  # noqa: E402


def with_gradients(*gradients):
    parameters = [nn.Parameter(lamina.zeros(len(g))) for g in gradients]
    for p, g in zip(parameters, gradients):
        p.grad = lamina.tensor(g)
    return parameters


def test_clip_norm():
    p = with_gradients([3.0, 0.0], [4.0])
    assert utils.clip_grad_norm_(iter(p), 10).item() == 5 and p[0].grad.tolist() == [3, 0]
    assert utils.clip_grad_norm_(p, 1).item() == 5
    np.testing.assert_allclose([*p[0].grad.tolist(), *p[1].grad.tolist()], [0.6, 0, 0.8], 1e-5)
    p = with_gradients([3.0, -5.0], [4.0])
    assert utils.clip_grad_norm_(p, 2.5, norm_type=float("inf")).item() == 5
    np.testing.assert_allclose(p[0].grad.numpy(), [1.5, -2.5], 1e-5)
    assert utils.clip_grad_norm_([nn.Parameter(lamina.ones(1))], 1).item() == 0
    p = with_gradients([float("nan")])
    with pytest.raises(RuntimeError):
        utils.clip_grad_norm_(p, 1, error_if_nonfinite=True)
    assert utils.clip_grad_norm_(p[0], 1).isnan()
    with pytest.warns(UserWarning):
        utils.clip_grad_norm_((x for x in ()), 1)
    with pytest.warns(FutureWarning):
        utils.clip_grad_norm(p, 1)


def test_clip_norm_of_narrow_gradients():
    p = nn.Parameter(lamina.zeros(4, dtype=lamina.float16))
    p.grad = lamina.full((4,), 6e4, dtype=lamina.float16)  # the norm is beyond float16
    assert utils.clip_grad_norm_([p], 2.0).dtype == lamina.float16
    np.testing.assert_allclose(p.grad.float().numpy(), 1.0, 1e-3)


def test_clip_value_and_total_norm():
    p = with_gradients([3.0, -0.5], [-4.0])
    assert utils.get_total_norm([q.grad for q in p], 1).item() == 7.5
    utils.clip_grad_value_(p, 1)
    assert p[0].grad.tolist() == [1, -0.5] and p[1].grad.tolist() == [-1]
    utils.clip_grads_with_norm_(p, 0.5, lamina.tensor(2.0))
    np.testing.assert_allclose(p[0].grad.numpy(), [0.25, -0.125], 1e-5)
    assert utils.get_total_norm([]).item() == 0


def test_vectors():
    net = nn.Linear(2, 3)
    vector = utils.parameters_to_vector(net.parameters())
    assert vector.shape == (9,)
    weight = net.weight
    utils.vector_to_parameters(lamina.arange(9.0), net.parameters())
    assert net.weight is weight and weight.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert net.bias.tolist() == [6, 7, 8]
    with pytest.raises(TypeError):
        utils.vector_to_parameters([1.0], net.parameters())


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()


class Exp(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, y):
        return y.log()


class Wrong(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(x)


def test_parametrize():
    m = nn.Linear(3, 3)
    kind = type(m)
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    assert lamina.equal(m.weight, m.weight.t())
    assert parametrize.is_parametrized(m, "weight") and not parametrize.is_parametrized(m, "bias")
    assert parametrize.type_before_parametrizations(m) is kind and isinstance(m, kind)
    assert type(m).__name__ == "ParametrizedLinear"
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    m(lamina.ones(1, 3)).sum().backward()
    assert m.parametrizations.weight.original.grad is not None
    with pytest.raises(RuntimeError):
        m.weight = lamina.ones(3, 3)
    with pytest.raises(RuntimeError):
        pickle.dumps(m)
    with parametrize.cached():
        assert m.weight is m.weight
    assert m.weight is not m.weight
    other = copy.deepcopy(m)
    other.parametrizations.weight.original.data.zero_()
    assert not other.weight.any() and m.weight.any()
    value = m.weight.detach()
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is kind and lamina.equal(m.weight, value) and "weight" in m._parameters
    with pytest.raises(ValueError):
        parametrize.remove_parametrizations(m, "weight")


def test_parametrize_with_inverse():
    m = nn.Linear(2, 2)
    with lamina.no_grad():
        m.weight.abs_()
    before = m.weight.detach().clone()
    parametrize.register_parametrization(m, "weight", Exp())
    assert lamina.allclose(m.weight, before)
    m.weight = lamina.full((2, 2), 3.0)
    assert lamina.allclose(m.weight, lamina.full((2, 2), 3.0))
    parametrize.register_parametrization(m, "weight", Symmetric(), unsafe=True)
    assert len(m.parametrizations.weight) == 2 and lamina.equal(m.weight, m.weight.t())
    parametrize.remove_parametrizations(m, "weight", leave_parametrized=False)
    assert lamina.allclose(m.weight, lamina.full((2, 2), 3.0).log())
    target = nn.Linear(2, 2)
    parametrize.register_parametrization(m, "weight", Exp())
    parametrize.transfer_parametrizations_and_params(m, target)
    assert lamina.allclose(target.weight, m.weight)


def test_parametrizations_that_do_not_fit():
    for change in (lambda x: x[:1], lambda x: x.double(), lambda x: 3):
        m = nn.Linear(2, 2)
        with pytest.raises(ValueError):
            parametrize.register_parametrization(m, "weight", Wrong(change))
        assert type(m) is nn.Linear and "weight" in m._parameters
    with pytest.raises(ValueError):
        parametrize.register_parametrization(nn.Linear(2, 2), "absent", Symmetric())
    buffered = nn.BatchNorm1d(2)
    parametrize.register_parametrization(buffered, "running_mean", Exp(), unsafe=True)
    assert "original" in buffered.parametrizations.running_mean._buffers


@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(dim):
    plain = nn.Linear(3, 4)
    x = lamina.randn(2, 3)
    expected = plain(x)
    new = parametrizations.weight_norm(copy.deepcopy(plain), dim=dim)
    with pytest.warns(FutureWarning):
        old = utils.weight_norm(copy.deepcopy(plain), dim=dim)
    assert lamina.allclose(new(x), expected, atol=1e-6)
    assert lamina.allclose(old(x), expected, atol=1e-6)
    assert list(old.state_dict()) == ["bias", "weight_g", "weight_v"]
    new.load_state_dict(old.state_dict())  # states of the old kind are read
    with lamina.no_grad():
        old.weight_g.mul_(2)
    new.parametrizations.weight.original0.data.mul_(2)
    assert lamina.allclose(old(x), new(x), atol=1e-5)
    assert lamina.allclose(old(x) - plain.bias, (expected - plain.bias) * 2, atol=1e-5)
    utils.remove_weight_norm(old)
    assert list(old.state_dict()) == ["bias", "weight"] and not old._forward_pre_hooks
    with pytest.raises(ValueError):
        utils.remove_weight_norm(old)


def test_spectral_norm():
    for make, states in (
        (parametrizations.spectral_norm, 4),
        (utils.spectral_norm, 4),
    ):
        lamina.manual_seed(0)
        m = make(nn.Linear(6, 4), n_power_iterations=5)
        assert len(m.state_dict()) == states
        for _ in range(20):
            m(lamina.ones(1, 6))
        largest = np.linalg.svd(m.weight.detach().numpy(), compute_uv=False)[0]
        assert abs(largest - 1) < 1e-3
        m(lamina.ones(1, 6)).sum().backward()
        state = m.state_dict()
        m.eval()
        before = m(lamina.ones(1, 6))
        m.load_state_dict(state)
        assert lamina.equal(m(lamina.ones(1, 6)), before)
    value = m.weight.detach().clone()
    utils.remove_spectral_norm(m)
    assert lamina.allclose(m.weight, value, atol=1e-6) and not m._forward_pre_hooks
    assert not m._load_state_dict_pre_hooks and not m._state_dict_hooks
    for wrong, error in (
        (lambda: utils.remove_spectral_norm(m), ValueError),
        (lambda: utils.spectral_norm(nn.Linear(1, 1), n_power_iterations=0), ValueError),
        (lambda: parametrizations.spectral_norm(nn.Linear(1, 1), "absent"), ValueError),
        (lambda: parametrizations.orthogonal(nn.Linear(1, 1), "bias"), ValueError),
        (lambda: parametrizations.orthogonal(nn.Linear(1, 1), orthogonal_map="x"), ValueError),
    ):
        with pytest.raises(error):
            wrong()


def test_prune():
    m = nn.Linear(2, 3)
    m.weight.data = lamina.tensor([[1.0, -5.0], [0.5, 2.0], [-3.0, 4.0]])
    assert prune.l1_unstructured(m, "weight", 2) is m
    assert m.weight.tolist() == [[0, -5], [0, 2], [-3, 4]] and prune.is_pruned(m)
    assert list(m.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    prune.ln_structured(m, "weight", 1, n=2, dim=0)
    assert m.weight.tolist() == [[0, -5], [0, 0], [-3, 4]]
    m(lamina.ones(1, 2)).sum().backward()
    assert m.weight_orig.grad.tolist() == [[0, 1], [0, 0], [1, 1]]
    hook = next(iter(m._forward_pre_hooks.values()))
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    prune.remove(m, "weight")
    assert m.weight.tolist() == [[0, -5], [0, 0], [-3, 4]] and not prune.is_pruned(m)
    assert list(m.state_dict()) == ["bias", "weight"]
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[0].weight.data.fill_(1)
    net[1].weight.data.fill_(2)
    prune.global_unstructured(
        [(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=0.5
    )
    assert not net[0].weight.any() and net[1].weight.all()
    prune.random_unstructured(m, "bias", 0.34)
    assert (m.bias_mask == 0).sum() == 1
    prune.custom_from_mask(m, "weight", lamina.tensor([[1, 0], [1, 0], [1, 0]]))
    assert not m.weight[:, 1].any()
    for wrong, error in (
        (lambda: prune.l1_unstructured(nn.Linear(1, 1), "weight", -1), ValueError),
        (lambda: prune.l1_unstructured(nn.Linear(1, 1), "weight", 2), ValueError),
        (lambda: prune.l1_unstructured(nn.Linear(1, 1), "weight", "all"), TypeError),
        (lambda: prune.random_structured(nn.Linear(1, 1), "bias", 1, 0), ValueError),
        (lambda: prune.remove(nn.Linear(1, 1), "weight"), ValueError),
    ):
        with pytest.raises(error):
            wrong()


def test_functional_call():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    weight = net[0].weight
    new = lamina.ones(2, 2, requires_grad=True)
    x = lamina.randn(3, 2)
    out = func.functional_call(net, {"0.weight": new}, x)
    (out * lamina.randn(3, 2)).sum().backward()
    assert new.grad is not None and weight.grad is None and net[0].weight is weight
    running = lamina.zeros(2)
    func.functional_call(net, {"1.running_mean": running}, (x,))
    assert running.any() and net[1].running_mean is not running
    assert func.functional_call(net, ({"0.weight": new}, {"0.bias": lamina.ones(2)}), x).shape == (
        3,
        2,
    )
    for wrong, error in (
        (lambda: func.functional_call(net, {"0.weight": new}, x, strict=True), RuntimeError),
        (lambda: func.functional_call(net, {"absent": new}, x, strict=True), RuntimeError),
        (lambda: func.functional_call(net, {"0.weight": 3}, x), TypeError),
        (lambda: func.functional_call(net, [{"a": new}, {"a": new}], x), ValueError),
        (lambda: func.functional_call(net, 3, x), ValueError),
    ):
        with pytest.raises(error):
            wrong()
        assert net[0].weight is weight
    tied = nn.Module()
    tied.a = nn.Linear(2, 2)
    tied.b = tied.a
    tied.forward = lambda x: tied.b(tied.a(x))
    doubled = func.functional_call(tied, {"a.weight": lamina.eye(2), "a.bias": lamina.zeros(2)}, x)
    assert lamina.equal(doubled, x)
    with pytest.raises(ValueError):
        func.functional_call(tied, {"a.weight": lamina.eye(2), "b.weight": lamina.ones(2, 2)}, x)
    parameters, buffers = func.stack_module_state([nn.BatchNorm1d(2), nn.BatchNorm1d(2)])
    assert parameters["weight"].shape == (2, 2) and buffers["running_var"].shape == (2, 2)


def test_fusion_and_skipped_values():
    linear, norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
    for _ in range(3):
        norm(linear(lamina.randn(5, 3)))
    linear.eval(), norm.eval()
    x = lamina.randn(4, 3)
    fused = utils.fuse_linear_bn_eval(linear, norm)
    assert lamina.allclose(fused(x), norm(linear(x)), atol=1e-5)
    with pytest.raises(AssertionError):
        utils.fuse_linear_bn_eval(linear, nn.BatchNorm1d(2))
    conv, norm = nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)
    weight, bias = utils.fuse_conv_bn_weights(
        conv.weight, None, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
    )
    assert weight.shape == conv.weight.shape and bias.shape == (3,)
    assert utils.skip_init(nn.Linear, 2, 3).weight.shape == (3, 2)
    with pytest.raises(RuntimeError):
        utils.skip_init(nn.ReLU)
    state = {"module.a": 1, "b": 2}
    lamina.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert state == {"a": 1, "b": 2}
