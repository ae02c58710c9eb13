"""Recurrent networks against step by step NumPy, packed sequences, errors."""

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from lamina.nn.utils import rnn  # noqa: E402

import lamina  # noqa: E402
from lamina import nn  # noqa: E402


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(mode, x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr):
    gi, gh = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if mode == "RNN_TANH":
        return np.tanh(gi + gh), c
    if mode == "RNN_RELU":
        return np.maximum(gi + gh, 0), c
    if mode == "GRU":
        (ir, iz, i_n), (hr, hz, hn) = np.split(gi, 3, -1), np.split(gh, 3, -1)
        r, z = sigmoid(ir + hr), sigmoid(iz + hz)
        n = np.tanh(i_n + r * hn)
        return (1 - z) * n + z * h, c
    i, f, g, o = np.split(gi + gh, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h if w_hr is None else h @ w_hr.T), c


def reference(module, sequence):
    """One sequence (time, size), by the definition: outputs, last h and c of each layer and direction."""
    weights = {k: v.detach().numpy() for k, v in module.named_parameters()}
    x, last_h, last_c = sequence, [], []
    for layer in range(module.num_layers):
        sides = []
        for end in ["", "_reverse"][: 1 + module.bidirectional]:
            names = [
                f"{n}_l{layer}{end}"
                for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
            ]
            w = [weights.get(n) for n in names]
            w[2], w[3] = (0 if b is None else b for b in w[2:4])
            h = np.zeros(module.proj_size or module.hidden_size)
            c = np.zeros(module.hidden_size)
            outputs = []
            for row in x[::-1] if end else x:
                h, c = step(module.mode, row, h, c, *w)
                outputs.append(h)
            sides.append(np.array(outputs[::-1] if end else outputs))
            last_h.append(h)
            last_c.append(c)
        x = np.concatenate(sides, -1)
    return x, np.array(last_h), np.array(last_c)


@st.composite
def networks(draw):
    kind = draw(st.sampled_from(["RNN", "LSTM", "GRU"]))
    options = {
        "num_layers": draw(st.integers(1, 2)),
        "bias": draw(st.booleans()),
        "bidirectional": draw(st.booleans()),
        "batch_first": draw(st.booleans()),
        "dtype": lamina.float64,
    }
    if kind == "LSTM" and draw(st.booleans()):
        options["proj_size"] = 2
    if kind == "RNN":
        options["nonlinearity"] = draw(st.sampled_from(["tanh", "relu"]))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return getattr(nn, kind)(3, 4, **options), lengths


@settings(max_examples=40)
@given(networks())
def test_against_numpy(drawn):
    module, lengths = drawn
    sequences = [lamina.randn(n, 3, dtype=lamina.float64) for n in lengths]
    expected = [reference(module, s.numpy()) for s in sequences]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    output, state = module(packed)
    h, c = state if module.mode == "LSTM" else (state, None)
    for i, part in enumerate(rnn.unpack_sequence(output)):
        np.testing.assert_allclose(part.detach().numpy(), expected[i][0], 1e-9, 1e-10)
        np.testing.assert_allclose(h[:, i].detach().numpy(), expected[i][1], 1e-9, 1e-10)
        if c is not None:
            np.testing.assert_allclose(c[:, i].detach().numpy(), expected[i][2], 1e-9, 1e-10)
    output, state = module(sequences[0])
    np.testing.assert_allclose(output.detach().numpy(), expected[0][0], 1e-9, 1e-10)
    batch = lamina.stack([sequences[0]] * 2, 0 if module.batch_first else 1)
    output, _ = module(batch)
    both = output if module.batch_first else output.transpose(0, 1)
    for one in both:
        np.testing.assert_allclose(one.detach().numpy(), expected[0][0], 1e-9, 1e-10)


def test_gradients():
    from lamina.autograd import gradcheck

    lamina.manual_seed(0)
    for module in (
        nn.LSTM(2, 3, proj_size=2, bidirectional=True),
        nn.GRU(2, 3, num_layers=2),
        nn.RNN(2, 3),
    ):
        module.double()
        x = lamina.randn(3, 2, 2, dtype=lamina.float64, requires_grad=True)
        assert gradcheck(lambda x, m=module: m(x)[0], (x,))
        module(x)[0].sum().backward()
        assert all(p.grad is not None for p in module.parameters())


def test_cells_are_steps():
    x = lamina.randn(2, 3)
    for cell, layer in (("RNNCell", "RNN"), ("LSTMCell", "LSTM"), ("GRUCell", "GRU")):
        one, many = getattr(nn, cell)(3, 4), getattr(nn, layer)(3, 4)
        many.load_state_dict({k + "_l0": v for k, v in one.state_dict().items()})
        got = one(x)
        h = got[0] if isinstance(got, tuple) else got
        assert lamina.allclose(h, many(x[None])[0][0], atol=1e-6)
        alone = one(x[0])
        alone = alone[0] if isinstance(alone, tuple) else alone
        assert alone.shape == (4,) and lamina.allclose(alone, h[0], atol=1e-6)


def test_functions():
    m = nn.LSTM(3, 4)
    x, h = lamina.randn(5, 2, 3), lamina.zeros(1, 2, 4)
    out, hn, cn = lamina.lstm(x, (h, h), m._flat_weights, True, 1, 0.0, False, False, False)
    assert lamina.equal(out, m(x)[0]) and hn.shape == cn.shape == (1, 2, 4)
    out, hn = lamina.gru(
        input=x, hx=h, params=nn.GRU(3, 4)._flat_weights, has_biases=True, num_layers=1, dropout=0.0,
        train=False, bidirectional=False, batch_first=False,
    )  # fmt: skip
    assert out.shape == (5, 2, 4)
    with pytest.raises(TypeError):
        lamina.gru(x, h)
    with pytest.raises(RuntimeError):
        lamina.gru(x, h, [], True, 1, 0.0, False, False, False)


def test_dropout_between_layers():
    lamina.manual_seed(0)
    m = nn.GRU(3, 4, num_layers=2, dropout=0.5)
    x = lamina.randn(4, 2, 3)
    assert not lamina.equal(m(x)[0], m(x)[0])
    m.eval()
    assert lamina.equal(m(x)[0], m(x)[0])
    with pytest.warns(UserWarning):
        nn.GRU(3, 4, dropout=0.5)


@settings(max_examples=60)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([0.0, -1.5]),
    st.integers(0, 2),
)
def test_pack_and_pad(lengths, batch_first, value, more):
    sequences = [lamina.arange(n * 2.0).reshape(n, 2) + 10 * i for i, n in enumerate(lengths)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 2)
    assert packed.batch_sizes.tolist() == [sum(n > t for n in lengths) for t in range(max(lengths))]
    for got, expected in zip(rnn.unpack_sequence(packed), sequences):
        assert lamina.equal(got, expected)
    padded, sizes = rnn.pad_packed_sequence(
        packed, batch_first=batch_first, padding_value=value, total_length=max(lengths) + more
    )
    assert sizes.tolist() == lengths
    padded = padded if batch_first else padded.transpose(0, 1)
    assert padded.shape == (len(lengths), max(lengths) + more, 2)
    for row, expected in zip(padded, sequences):
        n = len(expected)
        assert lamina.equal(row[:n], expected) and (row[n:] == value).all()
    for side in ("left", "right"):
        p = rnn.pad_sequence(sequences, True, value, side)
        for row, expected in zip(p, sequences):
            n = len(expected)
            assert lamina.equal(row[-n:] if side == "left" else row[:n], expected)
    again = rnn.pack_padded_sequence(p, lengths, batch_first=True, enforce_sorted=False)
    assert lamina.equal(again.data, packed.data)
    assert packed.to(lamina.float64).data.dtype == lamina.float64 and packed.cpu() is packed


def test_errors():
    m = nn.LSTM(3, 4)
    z = lamina.zeros
    for wrong, error in (
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError),
        (lambda: nn.GRU(3, 0), ValueError),
        (lambda: nn.GRU(3, 4, 0), ValueError),
        (lambda: nn.GRU("3", 4), TypeError),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError),
        (lambda: nn.LSTM(3, 4, dropout=2), ValueError),
        (lambda: m(z(3)), ValueError),
        (lambda: m(z(2, 2, 5)), RuntimeError),
        (lambda: m(z(2, 2, 3).double()), ValueError),
        (lambda: m(z(2, 2, 3), (z(1, 3, 4), z(1, 2, 4))), RuntimeError),
        (lambda: m(z(2, 3), (z(1, 2, 4), z(1, 2, 4))), RuntimeError),
        (lambda: m(z(0, 2, 3)), RuntimeError),
        (lambda: nn.LSTMCell(3, 4)(z(2, 2, 3)), ValueError),
        (lambda: nn.LSTMCell(3, 4)(z(2, 3), z(2, 4)), TypeError),
        (lambda: nn.GRUCell(3, 4)(z(2, 5)), RuntimeError),
        (lambda: nn.GRUCell(3, 4)(z(2, 3), z(3, 4)), RuntimeError),
        (lambda: rnn.pack_padded_sequence(z(3, 2), [1, 2]), RuntimeError),
        (lambda: rnn.pack_padded_sequence(z(3, 2), [2, 0]), RuntimeError),
        (lambda: rnn.pack_padded_sequence(z(3, 2), [4, 1]), RuntimeError),
        (lambda: rnn.pack_padded_sequence(z(3, 2), [2]), RuntimeError),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([z(3)]), total_length=2), ValueError),
        (lambda: rnn.pad_sequence(3), RuntimeError),
        (lambda: rnn.pad_sequence([z(2)], padding_side="top"), RuntimeError),
    ):
        with pytest.raises(error):
            wrong()
