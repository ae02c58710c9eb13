"""Recurrent networks."""

from __future__ import annotations

import math
import numbers
import warnings

import lamina
from lamina import Tensor, _recurrent
from lamina.nn import init
from lamina.nn.modules.module import Module
from lamina.nn.parameter import Parameter
from lamina.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_FUNCTIONS = {
    "RNN_TANH": _recurrent.rnn_tanh,
    "RNN_RELU": _recurrent.rnn_relu,
    "LSTM": _recurrent.lstm,
    "GRU": _recurrent.gru,
}
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _apply_permutation(tensor, permutation, dim=1):
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor, permutation, dim=1):
    """Old; use ``tensor.index_select(dim, permutation)``."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


class RNNBase(Module):
    """What recurrent networks share.

    Parameters
    ----------
    mode : str
        'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU'.
    input_size, hidden_size : int
    num_layers : int
        Each layer's input is the output of the one below.
    bias : bool
    batch_first : bool
        Sequences are (n, time, size), not (time, n, size).
    dropout : float
        Probability of a zero between layers, in training.
    bidirectional : bool
        A second network runs backwards; outputs are next to each other.
    proj_size : int
        LSTM: h is projected to this size; 0 for none.

    The parameters of layer k are `weight_ih_l{k}` (gates * hidden_size, input size), `weight_hh_l{k}`, `bias_ih_l{k}`,
    `bias_hh_l{k}` and `weight_hr_l{k}`; those that run backwards have `_reverse` at the end. They start evenly spread
    over [-r, r), r = 1 / sqrt(hidden_size).
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    ]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        directions = 2 if bidirectional else 1
        factory = {"device": device, "dtype": dtype}
        gates = _GATES[mode] * hidden_size
        out = proj_size or hidden_size
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(num_layers):
            for direction in range(directions):
                end = f"_l{layer}" + "_reverse" * direction
                size = input_size if layer == 0 else out * directions
                shapes = {"weight_ih": (gates, size), "weight_hh": (gates, out)}
                if bias:
                    shapes.update(bias_ih=(gates,), bias_hh=(gates,))
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    setattr(self, name + end, Parameter(lamina.empty(shape, **factory)))
                names = [name + end for name in shapes]
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_options(self, dropout):
        if (
            not isinstance(dropout, numbers.Number)
            or not 0 <= dropout <= 1
            or isinstance(dropout, bool)
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
                f"expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name in ("input_size", "hidden_size"):
            if not isinstance(getattr(self, name), int):
                raise TypeError(
                    f"{name} should be of type int, got: {type(getattr(self, name)).__name__}"
                )
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _FUNCTIONS:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self):
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self):
        """Nothing to do: parameters need not lie next to each other."""

    def reset_parameters(self) -> None:
        """Start again from random values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input, batch_sizes):
        """Raises where the input does not fit."""
        weight = self._flat_weights[0]
        if weight is not None and input.dtype != weight.dtype and not _autocasts(input):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected_size(self, input, batch_sizes, size):
        if batch_sizes is not None:
            n = int(batch_sizes[0])
        else:
            n = input.size(0) if self.batch_first else input.size(1)
        directions = 2 if self.bidirectional else 1
        return self.num_layers * directions, n, size

    def get_expected_hidden_size(self, input, batch_sizes):
        """The shape of h."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        """Raises RuntimeError where a state has another shape."""
        if tuple(hx.size()) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises where input or state do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        """The state in another order of the batch."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def _check_states(self, hx, batched, dims):
        """Raises RuntimeError where states have no batch though the input has one, or the other way round."""
        if batched:
            if hx.dim() != 3:
                raise RuntimeError(
                    f"For batched 3-D input, hx should also be 3-D but got {hx.dim()}-D tensor"
                )
        elif hx.dim() != 2:
            raise RuntimeError(
                f"For unbatched 2-D input, hx should also be 2-D but got {hx.dim()}-D tensor"
            )

    # States as tuples, whose only difference between the kinds is how many there are.

    def _split(self, hx):
        return (hx,)

    def _joined(self, states):
        return states[0]

    def _zeros(self, input, batch_sizes):
        sizes = self.get_expected_hidden_size(input, batch_sizes)
        return (lamina.zeros(sizes, dtype=input.dtype, device=input.device),)

    def forward(self, input: Tensor, hx=None):
        """Run over a sequence.

        Parameters
        ----------
        input : Tensor or PackedSequence
            (time, n, input_size), (n, time, input_size) with batch_first, or (time, input_size).
        hx : Tensor or pair of Tensors, optional
            The state to start from (layers * directions, n, size), zeros where it is not given; LSTM has a pair.

        Returns
        -------
        (Tensor or PackedSequence, state)
            All outputs of the last layer, and the last state.
        """
        sorted_indices = unsorted_indices = batch_sizes = None
        packed = isinstance(input, PackedSequence)
        batched = True
        sequence = input
        if packed:
            input, batch_sizes, sorted_indices, unsorted_indices = input
        else:
            if input.dim() not in (2, 3):
                raise ValueError(
                    f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead"
                )
            batched = input.dim() == 3
            if hx is not None:
                self._check_states(hx, batched, input.dim())
            if not batched:
                lone = 0 if self.batch_first else 1
                input = input.unsqueeze(lone)
                if hx is not None:
                    hx = self._joined([h.unsqueeze(1) for h in self._split(hx)])
        if hx is None:
            hx = self._joined(self._zeros(input, batch_sizes))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        self.check_forward_args(input, hx, batch_sizes)
        common = (
            self._flat_weights, self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        function = _FUNCTIONS[self.mode]
        if packed:
            output, *states = function(input, batch_sizes, hx, *common)
            output = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
            del sequence
        else:
            output, *states = function(input, hx, *common, self.batch_first)
            if not batched:
                output = output.squeeze(lone)
                states = [s.squeeze(1) for s in states]
        return output, self.permute_hidden(self._joined(states), unsorted_indices)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    def __setstate__(self, d):
        super().__setstate__(d)
        self.__dict__.setdefault("proj_size", 0)
        for name in ("_flat_weights", "_flat_weight_refs"):  # of pickles of torch
            self.__dict__.pop(name, None)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        if self._all_weights and not isinstance(self._all_weights[0][0], str):
            return
        self._flat_weights_names = [name for names in self._all_weights for name in names]


def _autocasts(input):
    enabled = getattr(lamina, "is_autocast_enabled", None)
    return enabled is not None and enabled()


class RNN(RNNBase):
    """``h = tanh(x @ W_ih.T + b_ih + h @ W_hh.T + b_hh)``, or relu; see RNNBase.

    ``RNN(input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None)``
    """

    def __init__(self, *args, **kwargs) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); see RNNBase. Its state is a pair (h, c).

    ``LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0, device=None, dtype=None)``
    """

    def __init__(self, *args, **kwargs) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """The shape of c."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        """Raises where input or states do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx, permutation):
        """Both states in another order of the batch."""
        if permutation is None:
            return hx
        return tuple(_apply_permutation(h, permutation) for h in hx)

    def _check_states(self, hx, batched, dims):
        kind, size = ("batched", 3) if batched else ("unbatched", 2)
        if hx[0].dim() != size or hx[1].dim() != size:
            raise RuntimeError(
                f"For {kind} {size}-D input, hx and cx should also be {size}-D but got "
                f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _split(self, hx):
        return hx

    def _joined(self, states):
        return tuple(states)

    def _zeros(self, input, batch_sizes):
        sizes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        return tuple(lamina.zeros(s, dtype=input.dtype, device=input.device) for s in sizes)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014); see RNNBase.

    ``GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    device=None, dtype=None)``
    """

    def __init__(self, *args, **kwargs) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What one step of a recurrent network has: weights of `num_chunks` gates."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self, input_size: int, hidden_size: int, bias, num_chunks, device=None, dtype=None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        factory = {"device": device, "dtype": dtype}
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(lamina.empty((gates, input_size), **factory))
        self.weight_hh = Parameter(lamina.empty((gates, hidden_size), **factory))
        if bias:
            self.bias_ih = Parameter(lamina.empty(gates, **factory))
            self.bias_hh = Parameter(lamina.empty(gates, **factory))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again from random values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _prepared(self, input, hx, states):
        """Input and states with a batch; raises where they do not fit."""
        name = self._get_name()
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if hx is None:
            zeros = input.new_zeros((*input.shape[:-1], self.hidden_size))
            hx = (zeros,) * states
        elif states == 1:
            hx = (hx,)
        elif not isinstance(hx, (tuple, list)):
            raise TypeError(f"{name}: hx must be a pair of Tensors; got {type(hx).__name__}")
        for i, h in enumerate(hx):
            if h.dim() not in (1, 2):
                raise ValueError(
                    f"{name}: Expected hx[{i}] to be 1D or 2D, got {h.dim()}D instead"
                    if states > 1
                    else f"{name}: Expected hidden to be 1D or 2D, got {h.dim()}D instead"
                )
        if input.dim() == 1:
            input = input.unsqueeze(0)
            hx = tuple(h.unsqueeze(0) if h.dim() == 1 else h for h in hx)
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        for i, h in enumerate(hx):
            if h.dim() == 1:
                raise RuntimeError(f"{name}: batched input needs a batched hidden{i}")
            if h.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {h.size(0)}"
                )
            if h.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {h.size(1)}, expected {self.hidden_size}"
                )
        return input, tuple(hx)

    @property
    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh


class RNNCell(RNNCellBase):
    """One step of RNN: input (n, input_size), state (n, hidden_size), or both without n."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx=None) -> Tensor:
        alone = input.dim() == 1
        input, (h,) = self._prepared(input, hx, 1)
        if self.nonlinearity == "tanh":
            result = _recurrent.rnn_tanh_cell(input, h, *self._weights)
        elif self.nonlinearity == "relu":
            result = _recurrent.rnn_relu_cell(input, h, *self._weights)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return result.squeeze(0) if alone else result


class LSTMCell(RNNCellBase):
    """One step of LSTM: input (n, input_size), a pair of states (n, hidden_size), or all without n."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx=None):
        alone = input.dim() == 1
        input, states = self._prepared(input, hx, 2)
        result = _recurrent.lstm_cell(input, states, *self._weights)
        return tuple(r.squeeze(0) for r in result) if alone else result


class GRUCell(RNNCellBase):
    """One step of GRU: input (n, input_size), state (n, hidden_size), or both without n."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx=None) -> Tensor:
        alone = input.dim() == 1
        input, (h,) = self._prepared(input, hx, 1)
        result = _recurrent.gru_cell(input, h, *self._weights)
        return result.squeeze(0) if alone else result
