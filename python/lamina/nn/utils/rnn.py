"""Sequences of different lengths in one tensor: padded, or packed without padding."""

from __future__ import annotations

from collections import namedtuple

import lamina
from lamina import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

PackedSequence_ = namedtuple(
    "PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)
PackedSequence_.__annotations__ = {
    "data": Tensor,
    "batch_sizes": Tensor,
    "sorted_indices": Tensor | None,
    "unsorted_indices": Tensor | None,
}


class PackedSequence(PackedSequence_):
    """Sequences, sorted by falling length, their elements in order of time.

    Parameters
    ----------
    data : Tensor
        (sum of lengths, ...).
    batch_sizes : Tensor
        int64, on the CPU: how many sequences have an element at each time.
    sorted_indices, unsorted_indices : Tensor, optional
        Which sequence is at each place, and the place of each sequence.

    Made by `pack_padded_sequence` and `pack_sequence`.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        return super().__new__(
            cls, *_packed_sequence_init_args(data, batch_sizes, sorted_indices, unsorted_indices)
        )

    def _mapped(self, fn):
        """All tensors through `fn`, except the batch sizes, which stay on the CPU."""
        data = fn(self.data)
        if data is self.data:
            return self
        move = (lambda t: t) if data.device == self.data.device else (lambda t: t.to(data.device))
        sorted_indices, unsorted_indices = (
            None if t is None else move(t) for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The same with `data` at another device or dtype."""
        return self._mapped(lambda t: t.to(*args, **kwargs))

    def cuda(self, *args, **kwargs):
        """The same on a GPU."""
        return self._mapped(lambda t: t.cuda(*args, **kwargs))

    def cpu(self, *args, **kwargs):
        """The same on the CPU."""
        return self._mapped(lambda t: t.cpu(*args, **kwargs))

    def double(self):
        """The same in float64."""
        return self.to(lamina.float64)

    def float(self):
        """The same in float32."""
        return self.to(lamina.float32)

    def half(self):
        """The same in float16."""
        return self.to(lamina.float16)

    def long(self):
        """The same in int64."""
        return self.to(lamina.int64)

    def int(self):
        """The same in int32."""
        return self.to(lamina.int32)

    def short(self):
        """The same in int16."""
        return self.to(lamina.int16)

    def char(self):
        """The same in int8."""
        return self.to(lamina.int8)

    def byte(self):
        """The same in uint8."""
        return self.to(lamina.uint8)

    def pin_memory(self):
        """The same in memory that accelerators read."""
        return self._mapped(lambda t: t.pin_memory())

    @property
    def is_cuda(self):
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data is in memory that accelerators read."""
        return self.data.is_pinned()


def _packed_sequence_init_args(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    if unsorted_indices is None:
        unsorted_indices = invert_permutation(sorted_indices)
    if batch_sizes is not None:
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence are made by "
                "pack_sequence and pack_padded_sequence"
            )
        return data, batch_sizes, sorted_indices, unsorted_indices
    if not (isinstance(data, (list, tuple)) and len(data) == 2):
        raise AssertionError("PackedSequence: expected data and batch_sizes")
    return data[0], data[1], sorted_indices, unsorted_indices


def _packed_sequence_init(data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
    return PackedSequence(data, batch_sizes, sorted_indices, unsorted_indices)


def bind(optional, fn):
    """``fn(optional)``, or None for None."""
    return None if optional is None else fn(optional)


def invert_permutation(permutation):
    """The permutation that undoes one: int64 (n,); None for None."""
    if permutation is None:
        return None
    result = lamina.empty_like(permutation)
    result.scatter_(
        0, permutation, lamina.arange(0, permutation.numel(), device=permutation.device)
    )
    return result


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack sequences that are padded to one length.

    Parameters
    ----------
    input : Tensor
        (time, n, ...), or (n, time, ...) with `batch_first`.
    lengths : Tensor or list of int
        (n,), on the CPU.
    enforce_sorted : bool
        The sequences are sorted by falling length already; otherwise they are sorted here.

    Raises
    ------
    RuntimeError
        A length is below 1, lengths are not sorted though they should be, or do not fit the input.
    """
    lengths = lamina.as_tensor(lengths, dtype=lamina.int64, device="cpu")
    if lengths.dim() != 1:
        raise RuntimeError(
            f"pack_padded_sequence: 'lengths' should be a 1D tensor; got {lengths.dim()}D"
        )
    if enforce_sorted:
        sorted_indices = None
    else:
        lengths, sorted_indices = lamina.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    sizes = lengths.tolist()
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if input.shape[1] != len(sizes):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} "
            f"(batch_size={input.shape[1]})"
        )
    if min(sizes) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in zip(sizes, sizes[1:])):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to sort them here"
        )
    if sizes[0] > input.shape[0]:
        raise RuntimeError(
            f"pack_padded_sequence: expected lengths of at most {input.shape[0]}; got {sizes[0]}"
        )
    counts, parts = [], []
    last, alive = 0, len(sizes)
    for length in sorted(set(sizes)):  # between two lengths the same sequences go on
        block = input[last:length, :alive]
        parts.append(block.reshape(-1, *input.shape[2:]))
        counts += [alive] * (length - last)
        last = length
        alive = sum(s > length for s in sizes)
    return PackedSequence(lamina.cat(parts), lamina.tensor(counts), sorted_indices, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Undo `pack_padded_sequence`.

    Returns the padded tensor (time, n, ...), or (n, time, ...), and the lengths (n,). Raises ValueError where `total_length`
    is below the longest sequence.
    """
    data, batch_sizes, sorted_indices, unsorted_indices = sequence
    counts = batch_sizes.tolist()
    longest = len(counts)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {longest}"
            )
    steps = []
    for step in data.split(counts):
        missing = counts[0] - step.shape[0]
        if missing:
            padding = step.new_full((missing, *step.shape[1:]), padding_value)
            step = lamina.cat([step, padding])
        steps.append(step)
    if total_length is not None and total_length > longest:
        steps += [data.new_full(steps[0].shape, padding_value)] * (total_length - longest)
    padded = lamina.stack(steps, 1 if batch_first else 0)
    lengths = lamina.tensor([sum(c > i for c in counts) for i in range(counts[0])])
    if unsorted_indices is not None:
        batch = 0 if batch_first else 1
        padded = padded.index_select(batch, unsorted_indices)
        lengths = lengths[unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors (length, ...) of different lengths in one, (time, n, ...) or (n, time, ...), filled up at a side.

    Raises RuntimeError where `sequences` are no tensors or of different other sizes, ValueError for another side.
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    else:
        try:
            sequences = list(sequences)
        except TypeError:
            raise RuntimeError(
                "pad_sequence: Expected iterable for input sequences, but got arg of type: "
                f"{type(sequences)}"
            ) from None
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"pad_sequence: Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if not sequences:
        raise RuntimeError("pad_sequence: received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    padded = []
    for s in sequences:
        if s.size(0) < longest:
            padding = s.new_full((longest - s.size(0), *s.shape[1:]), padding_value)
            s = lamina.cat([padding, s] if padding_side == "left" else [s, padding])
        padded.append(s)
    return lamina.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Undo `pad_sequence`: a list of tensors of the given lengths."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [s[: int(n)] for s, n in zip(padded_sequences.unbind(0), lengths)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of tensors (length, ...); see `pack_padded_sequence`."""
    lengths = lamina.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Undo `pack_sequence`: a list of tensors."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
