"""Recurrent networks as functions: lstm, gru, rnn_tanh, rnn_relu and one step of each.

The input's part of the gates is one matrix product over all time steps; the hidden state's is one a step.
"""

from __future__ import annotations

from lamina import _C
from lamina._C import Tensor

__all__ = [
    "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
    "rnn_tanh_cell",
]  # fmt: skip


def _linear(x, w, b):
    return _C._submodule_functions["nn.functional"]["linear"](x, w, b)


def _gates(x, w_ih, b_ih, b_hh):
    return _linear(x, w_ih, b_ih if b_hh is None or b_ih is None else b_ih + b_hh)


def _lstm_step(gates, state, w_hh, _, w_hr):
    """One step of the whole layer: gates (n, 4 * h), h (n, h or the projection's size), c (n, h)."""
    h, c = state
    size = c.shape[1]
    both, g, o = _C.addmm(gates, h, w_hh.t()).split((2 * size, size, size), 1)
    i, f = both.sigmoid().chunk(2, 1)
    c = _C.addcmul(f * c, i, g.tanh())
    h = o.sigmoid() * c.tanh()
    if w_hr is not None:
        h = _linear(h, w_hr, None)
    return h, c


def _gru_step(gates, state, w_hh, b_hh, _):
    (h,) = state
    size = h.shape[1]
    hidden, h_n = _linear(h, w_hh, b_hh).split((2 * size, size), 1)
    both, i_n = gates.split((2 * size, size), 1)
    r, z = (both + hidden).sigmoid().chunk(2, 1)
    n = _C.addcmul(i_n, r, h_n).tanh()
    return (_C.addcmul(n, z, h - n),)


def _tanh_step(gates, state, w_hh, *_):
    return (_C.addmm(gates, state[0], w_hh.t()).tanh(),)


def _relu_step(gates, state, w_hh, *_):
    return (_C.addmm(gates, state[0], w_hh.t()).relu(),)


def _over_time(step, steps, state, weights, reverse):
    """Run through a sequence that is as long for all: outputs by time, and the last state."""
    outputs = [None] * len(steps)
    places = range(len(steps) - 1, -1, -1) if reverse else range(len(steps))
    for t in places:
        state = step(steps[t], state, *weights)
        outputs[t] = state[0]
    return outputs, state


def _over_packed(step, steps, state, weights, reverse):
    """The same where the batch shrinks with time: sequences are sorted, the longest first."""
    outputs = [None] * len(steps)
    if not reverse:
        ended = []  # states of sequences that are over, the shortest first
        for t, gates in enumerate(steps):
            n = gates.shape[0]
            if n < state[0].shape[0]:
                ended.append(tuple(s[n:] for s in state))
                state = tuple(s[:n] for s in state)
            state = step(gates, state, *weights)
            outputs[t] = state[0]
        ended.append(state)
        return outputs, tuple(_C.cat(list(parts)) for parts in zip(*reversed(ended)))
    first = state
    state = tuple(s[: steps[-1].shape[0]] for s in first)
    for t in range(len(steps) - 1, -1, -1):
        n, present = steps[t].shape[0], state[0].shape[0]
        if n > present:  # sequences that end here start
            state = tuple(_C.cat([s, f[present:n]]) for s, f in zip(state, first))
        state = step(steps[t], state, *weights)
        outputs[t] = state[0]
    return outputs, state


def _layers(
    step, x, sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional, projected
):
    """All layers and directions. `x` is (time, n, size), or packed (all rows, size) with `sizes` of the batch by time."""
    per = 2 + 2 * has_biases + projected
    directions = 1 + bidirectional
    if len(params) != per * directions * num_layers:
        raise RuntimeError(
            f"recurrent network: got {len(params)} parameters; expected "
            f"{per * directions * num_layers}"
        )
    finals = []
    for layer in range(num_layers):
        sides = []
        for direction in range(directions):
            at = layer * directions + direction
            w_ih, w_hh, *rest = params[at * per : (at + 1) * per]
            b_ih, b_hh = rest[:2] if has_biases else (None, None)
            if has_biases and step is not _gru_step:  # one bias does
                b_ih = b_ih + b_hh
            weights = (w_hh, b_hh, rest[-1] if projected else None)
            gates = _linear(x, w_ih, b_ih)
            steps = gates.unbind(0) if sizes is None else gates.split(sizes)
            state = tuple(h[at] for h in hx)
            run = _over_time if sizes is None else _over_packed
            outputs, state = run(step, steps, state, weights, direction == 1)
            sides.append(_C.stack(outputs) if sizes is None else _C.cat(list(outputs)))
            finals.append(state)
        x = sides[0] if directions == 1 else _C.cat(sides, -1)
        if dropout and train and layer < num_layers - 1:
            from lamina.nn import functional

            x = functional.dropout(x, dropout, True)
    return x, tuple(_C.stack(list(parts)) for parts in zip(*finals))


def _called(name, args, kwargs, packed):
    """Arguments by the order of one of the two signatures."""
    first = ("data", "batch_sizes") if packed else ("input",)
    last = () if packed else ("batch_first",)
    names = (
        *first, "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional",
        *last,
    )  # fmt: skip
    given = dict(zip(names, args))
    given.update(kwargs)
    if len(args) > len(names) or given.keys() != set(names):
        raise TypeError(
            f"{name}() received an invalid combination of arguments; expected ({', '.join(names)})"
        )
    return given


def _run(name, step, args, kwargs, pair):
    if pair:
        packed = "data" in kwargs or (len(args) > 1 and isinstance(args[1], Tensor))
    else:
        packed = "data" in kwargs or (len(args) > 2 and isinstance(args[2], Tensor))
    a = _called(name, args, kwargs, packed)
    hx = tuple(a["hx"]) if pair else (a["hx"],)
    if pair and len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")
    x = a["data"] if packed else a["input"]
    if not packed and a["batch_first"]:
        x = x.transpose(0, 1)
    sizes = a["batch_sizes"].tolist() if packed else None
    if sizes is None and x.shape[0] == 0 or sizes == []:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    projected = pair and hx[0].shape[-1] != hx[1].shape[-1]
    output, final = _layers(
        step, x, sizes, hx, list(a["params"]), bool(a["has_biases"]), a["num_layers"],
        a["dropout"], a["train"], bool(a["bidirectional"]), projected,
    )  # fmt: skip
    if not packed and a["batch_first"]:
        output = output.transpose(0, 1)
    return (output, *final)


def lstm(*args, **kwargs):
    """Long short-term memory over a sequence.

    ``lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`` or, of packed
    sequences, ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``.

    Returns the outputs (time, n, directions * size), the last h and the last c (layers * directions, n, size).
    """
    return _run("lstm", _lstm_step, args, kwargs, True)


def gru(*args, **kwargs):
    """Gated recurrent units over a sequence; see `lstm`. Returns the outputs and the last h."""
    return _run("gru", _gru_step, args, kwargs, False)


def rnn_tanh(*args, **kwargs):
    """The plain recurrent network with tanh over a sequence; see `lstm`. Returns the outputs and the last h."""
    return _run("rnn_tanh", _tanh_step, args, kwargs, False)


def rnn_relu(*args, **kwargs):
    """The plain recurrent network with relu over a sequence; see `lstm`. Returns the outputs and the last h."""
    return _run("rnn_relu", _relu_step, args, kwargs, False)


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step: input (n, size), hx a pair of (n, h). Returns the next pair."""
    if not isinstance(hx, (tuple, list)):
        raise TypeError(
            f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type(hx).__name__}"
        )
    return _lstm_step(_gates(input, w_ih, b_ih, b_hh), tuple(hx), w_hh, None, None)


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step: input (n, size), hx (n, h). Returns the next h."""
    return _gru_step(_linear(input, w_ih, b_ih), (hx,), w_hh, b_hh, None)[0]


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step: input (n, size), hx (n, h). Returns the next h."""
    return _tanh_step(_gates(input, w_ih, b_ih, b_hh), (hx,), w_hh)[0]


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    """One step: input (n, size), hx (n, h). Returns the next h."""
    return _relu_step(_gates(input, w_ih, b_ih, b_hh), (hx,), w_hh)[0]
