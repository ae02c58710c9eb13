"""Modules against recorded calls (data/take_modules.py), their texts, shapes and errors."""

import gzip
import json
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

import lamina  # noqa: E402
from lamina import nn  # noqa: E402
from tests.test_conformance import array_of, decode, tensor_of  # noqa: E402

DATA = Path(__file__).parent / "data" / "modules.json.gz"


def load():
    cases = {}
    for case in json.loads(gzip.decompress(DATA.read_bytes()))["cases"]:
        cases.setdefault(case["new"][0], []).append(case)
    return cases


CASES = load()


def flat(result):
    if isinstance(result, lamina.Tensor):
        return [result]
    return [t for part in result or () for t in flat(part)]


def check(got, entry, where, zero_for_nan=False):
    assert list(got.shape) == entry[1], where
    assert str(got.dtype).rpartition(".")[2] == entry[0], where
    got, expected = got.detach().numpy(), array_of(entry)
    if zero_for_nan:  # docs/differences.md: a zero cotangent gives a zero gradient
        expected = np.where(np.isnan(expected) & (got == 0), 0, expected)
    np.testing.assert_allclose(got, expected, 2e-4, 2e-5, equal_nan=True, err_msg=where)


def run(case):
    where = json.dumps([case["new"], case["call"]])[:1500]
    inputs = [tensor_of(i) for i in case["inputs"]]
    grads = case.get("grads")
    for n in grads["inputs"] if grads else ():
        inputs[n].requires_grad_()
    name, args, kwargs = case["new"]
    module = getattr(nn, name)(
        *decode(args, inputs), **{k: decode(v, inputs) for k, v in kwargs.items()}
    )
    args, kwargs = case["call"]
    args, kwargs = decode(args, inputs), {k: decode(v, inputs) for k, v in kwargs.items()}
    if case["lazy"]:
        module(*args, **kwargs)
    assert list(module.state_dict()) == [k for k, _ in case["state"]], where
    module.load_state_dict({k: tensor_of(a) for k, a in case["state"]})
    module.train(case["train"])
    results = flat(module(*args, **kwargs))
    assert len(results) == len(case["results"]), where
    for got, entry in zip(results, case["results"]):
        check(got, entry, where)
    after = module.state_dict()
    for k, entry in case["after"]:
        check(after[k], entry, f"{k} afterwards, {where}")
    if not grads:
        return
    pairs = [(r, tensor_of(c)) for r, c in zip(results, grads["cotangents"]) if c is not None]
    parameters = dict(module.named_parameters())
    leaves = [inputs[n] for n in grads["inputs"]] + [parameters[k] for k, _ in grads["parameters"]]
    expected = grads["results"] + [g for _, g in grads["parameters"]]
    found = lamina.autograd.grad(
        [r for r, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True
    )
    for got, entry in zip(found, expected):
        if entry is None:
            assert got is None or not got.any(), where
        else:
            check(got, entry, "gradient, " + where, zero_for_nan=True)


@pytest.mark.parametrize("name", sorted(CASES))
def test_recorded(name):
    for case in CASES[name]:
        run(case)


TEXTS = {
    "Linear(2, 3, bias=False)": "Linear(in_features=2, out_features=3, bias=False)",
    "Bilinear(2, 3, 4)": "Bilinear(in1_features=2, in2_features=3, out_features=4, bias=True)",
    "Conv2d(2, 4, 3, padding=1, groups=2)": "Conv2d(2, 4, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), groups=2)",
    "Conv1d(2, 4, 3, padding='same', padding_mode='reflect')": "Conv1d(2, 4, kernel_size=(3,), stride=(1,), padding=same, padding_mode=reflect)",
    "ConvTranspose2d(2, 4, 3, output_padding=1, stride=2, bias=False)": "ConvTranspose2d(2, 4, kernel_size=(3, 3), stride=(2, 2), output_padding=(1, 1), bias=False)",
    "LazyConv2d(4, 3)": "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1))",
    "MaxPool2d(2)": "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)",
    "AvgPool1d(2)": "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))",
    "AdaptiveAvgPool2d((1, None))": "AdaptiveAvgPool2d(output_size=(1, None))",
    "LPPool2d(2, 3)": "LPPool2d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)",
    "BatchNorm2d(4)": "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
    "InstanceNorm1d(4)": "InstanceNorm1d(4, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)",
    "GroupNorm(2, 4)": "GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)",
    "LayerNorm((2, 3), bias=False)": "LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=False)",
    "RMSNorm(4)": "RMSNorm((4,), eps=None, elementwise_affine=True)",
    "Embedding(5, 3, padding_idx=-1, max_norm=1.0)": "Embedding(5, 3, padding_idx=4, max_norm=1.0)",
    "EmbeddingBag(5, 3)": "EmbeddingBag(5, 3, mode='mean')",
    "LSTM(2, 3, 2, proj_size=1, bidirectional=True)": "LSTM(2, 3, proj_size=1, num_layers=2, bidirectional=True)",
    "GRUCell(2, 3)": "GRUCell(2, 3)",
    "RNNCell(2, 3, nonlinearity='relu')": "RNNCell(2, 3, nonlinearity=relu)",
    "Dropout(0.25)": "Dropout(p=0.25, inplace=False)",
    "ReLU(True)": "ReLU(inplace=True)",
    "ReLU6()": "ReLU6()",
    "Hardtanh()": "Hardtanh(min_val=-1.0, max_val=1.0)",
    "GELU('tanh')": "GELU(approximate='tanh')",
    "Softmax(1)": "Softmax(dim=1)",
    "PReLU()": "PReLU(num_parameters=1)",
    "CrossEntropyLoss()": "CrossEntropyLoss()",
    "ZeroPad2d(1)": "ZeroPad2d((1, 1, 1, 1))",
    "ConstantPad1d(2, 3.5)": "ConstantPad1d(padding=(2, 2), value=3.5)",
    "Upsample(scale_factor=2)": "Upsample(scale_factor=2.0, mode='nearest')",
    "Fold((4, 4), 2)": "Fold(output_size=(4, 4), kernel_size=2, dilation=1, padding=0, stride=1)",
    "Flatten()": "Flatten(start_dim=1, end_dim=-1)",
    "Unflatten(1, (2, 3))": "Unflatten(dim=1, unflattened_size=(2, 3))",
    "PixelShuffle(2)": "PixelShuffle(upscale_factor=2)",
    "MultiheadAttention(4, 2)": "MultiheadAttention(\n  (out_proj): NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)\n)",
}  # fmt: skip


@pytest.mark.parametrize("call", sorted(TEXTS))
def test_text(call):
    assert repr(eval("nn." + call)) == TEXTS[call]


WRONG = [
    (ValueError, lambda: nn.Dropout(1.5)),
    (ValueError, lambda: nn.Conv2d(3, 4, 3, groups=2)),
    (ValueError, lambda: nn.Conv2d(4, 4, 3, padding="full")),
    (ValueError, lambda: nn.Conv2d(4, 4, 3, stride=2, padding="same")),
    (ValueError, lambda: nn.ConvTranspose1d(4, 4, 3, padding_mode="reflect")),
    (ValueError, lambda: nn.GroupNorm(3, 4)),
    (ValueError, lambda: nn.BatchNorm2d(2)(lamina.ones(2, 2))),
    (AssertionError, lambda: nn.Hardtanh(1.0, 1.0)),
    (AssertionError, lambda: nn.Embedding(3, 2, padding_idx=3)),
    (ValueError, lambda: nn.MultiheadAttention(0, 1)),
    (AssertionError, lambda: nn.MultiheadAttention(5, 2)),
    (ValueError, lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3])),
    (ValueError, lambda: nn.FractionalMaxPool2d(2)),
    (ValueError, lambda: nn.MultiMarginLoss(p=3)),
    (ValueError, lambda: nn.TripletMarginLoss(margin=0)),
    (TypeError, lambda: nn.Unflatten(1, 3)),
    (RuntimeError, lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh")),
    (ValueError, lambda: nn.Bilinear(0, 1, 1)),
    (ValueError, lambda: nn.DataParallel(nn.Linear(1, 1), device_ids=[0])),
    (ValueError, lambda: nn.LinearCrossEntropyOptions(acc_policy="best")),
]


@pytest.mark.parametrize("n", range(len(WRONG)))
def test_wrong(n):
    error, call = WRONG[n]
    with pytest.raises(error):
        call()


def test_batch_norm_counts_and_averages():
    norm = nn.BatchNorm1d(2, momentum=None)
    x, y = lamina.randn(4, 2), lamina.randn(4, 2)
    norm(x), norm(y)
    assert int(norm.num_batches_tracked) == 2
    expected = (x.mean(0) + y.mean(0)) / 2
    assert lamina.allclose(norm.running_mean, expected, atol=1e-6)
    norm.reset_running_stats()
    assert int(norm.num_batches_tracked) == 0 and not norm.running_mean.any()
    # States of version 1 have no count.
    state = norm.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    assert not norm.load_state_dict(state).missing_keys


def test_lazy_modules_become_others():
    for lazy, shape, kind, features in (
        (nn.LazyLinear(3), (2, 4), nn.Linear, "in_features"),
        (nn.LazyBatchNorm1d(), (2, 4), nn.BatchNorm1d, "num_features"),
    ):
        assert lazy.has_uninitialized_params()
        with pytest.raises((ValueError, RuntimeError)):
            list(lazy.parameters())[0].sum()
        lazy(lamina.ones(shape))
        assert type(lazy) is kind and getattr(lazy, features) == 4
        assert not lazy._forward_pre_hooks and not lazy._load_state_dict_pre_hooks
    source, target = nn.Linear(4, 3), nn.LazyLinear(3)
    target.load_state_dict(source.state_dict())
    x = lamina.randn(2, 4)
    assert lamina.equal(target(x), source(x)) and type(target) is nn.Linear


def numpy_attention(module, x, heads, mask=None):
    n, length, e = x.shape
    w, b = (t.detach().numpy() for t in (module.in_proj_weight, module.in_proj_bias))
    q, k, v = np.split(x @ w.T + b, 3, -1)

    def split(t):
        return t.reshape(n, length, heads, e // heads).transpose(0, 2, 1, 3)

    scores = split(q) @ split(k).transpose(0, 1, 3, 2) / np.sqrt(e // heads)
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ split(v)).transpose(0, 2, 1, 3).reshape(n, length, e)
    wo, bo = (t.detach().numpy() for t in (module.out_proj.weight, module.out_proj.bias))
    return out @ wo.T + bo, weights


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [None, "attention", "padding"])
def test_attention(batch_first, masked):
    module = nn.MultiheadAttention(8, 2, batch_first=batch_first)
    nn.init.normal_(module.in_proj_bias)
    x = lamina.randn(3, 5, 8)
    given, options, mask = x if batch_first else x.transpose(0, 1), {}, None
    if masked == "attention":
        options["attn_mask"] = lamina.ones(5, 5, dtype=lamina.bool).triu(1)
        mask = options["attn_mask"].numpy()
    elif masked == "padding":
        padding = lamina.zeros(3, 5, dtype=lamina.bool)
        padding[1, 3:] = True
        options["key_padding_mask"] = padding
        mask = padding.numpy()[:, None, None, :]
    expected, weights = numpy_attention(module, x.numpy(), 2, mask)
    for need in (True, False):
        got, seen = module(given, given, given, need_weights=need, **options)
        got = got if batch_first else got.transpose(0, 1)
        np.testing.assert_allclose(got.detach().numpy(), expected, 1e-4, 1e-5)
        assert (seen is None) == (not need)
        if need:
            np.testing.assert_allclose(seen.detach().numpy(), weights.mean(1), 1e-4, 1e-6)
    module.eval()
    again, _ = module(given, given, given, need_weights=False, **options)
    again = again if batch_first else again.transpose(0, 1)
    np.testing.assert_allclose(again.detach().numpy(), expected, 1e-4, 1e-5)


def test_attention_options():
    module = nn.MultiheadAttention(8, 2, kdim=4, vdim=6, add_bias_kv=True, add_zero_attn=True)
    q, k, v = lamina.randn(5, 3, 8), lamina.randn(7, 3, 4), lamina.randn(7, 3, 6)
    out, weights = module(q, k, v, average_attn_weights=False)
    assert out.shape == (5, 3, 8) and weights.shape == (3, 2, 5, 9)
    assert lamina.allclose(weights.sum(-1), lamina.ones(3, 2, 5))
    plain, _ = nn.MultiheadAttention(8, 2)(q[:, 0], q[:, 0], q[:, 0])
    assert plain.shape == (5, 8)
    with pytest.raises(AssertionError):
        module(q, k[:, 0], v)
    with pytest.raises(RuntimeError):
        nn.MultiheadAttention(8, 2)(q, q, q, attn_mask=lamina.zeros(2, 2))
    with pytest.raises(RuntimeError):
        nn.MultiheadAttention(8, 2)(q, q, q, is_causal=True)


def test_transformer_encoder_causal_mask():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = lamina.randn(2, 5, 8)
    y = x.clone()
    y[:, 3:] = 0
    before, after = encoder(x, mask=mask), encoder(y, mask=mask)
    assert lamina.allclose(before[:, :3], after[:, :3], atol=1e-5)
    assert not lamina.allclose(before[:, 3:], after[:, 3:], atol=1e-3)
    told = encoder(x, mask=mask, is_causal=True)
    assert lamina.allclose(before, told, atol=1e-5)


def test_adaptive_log_softmax():
    module = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 8], div_value=2.0)
    x, target = lamina.randn(6, 8), lamina.tensor([0, 3, 5, 9, 11, 4])
    output, loss = module(x, target)
    full = module.log_prob(x)
    assert lamina.allclose(full.exp().sum(1), lamina.ones(6), atol=1e-5)
    assert lamina.allclose(output, full.gather(1, target[:, None])[:, 0], atol=1e-5)
    assert lamina.allclose(loss, -output.mean())
    assert lamina.equal(module.predict(x), full.argmax(1))
    with pytest.raises(RuntimeError):
        module(x, target + 4)


def test_parameters_that_constructors_draw():
    lamina.manual_seed(0)
    linear = nn.Linear(4, 8)
    expected = [-0.0037434101, 0.2682217956, -0.4115225673, -0.3679695129]
    np.testing.assert_allclose(linear.weight.detach().numpy()[0], expected, 1e-5)
