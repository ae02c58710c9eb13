"""Tensors as text, equal to the peer's for common tensors."""

from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, isinf, isnan

from lamina import _C


@dataclass(frozen=True)
class _Options:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": _Options(),
    "short": _Options(precision=2, edgeitems=2),
    "full": _Options(threshold=inf),
}
_options = _Options()
_GAP = object()


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    """How tensors are printed.

    Parameters
    ----------
    precision : int
        Digits behind the point.
    threshold : int
        Elements from which on only the edges are shown.
    edgeitems : int
        How many elements an edge has.
    linewidth : int
        Characters in a line.
    profile : str
        ``"default"``, ``"short"`` or ``"full"``.
    sci_mode : bool
        Whether to use exponents; None leaves it to the values.
    """
    global _options
    chosen = _options
    if profile is not None:
        chosen = replace(_PROFILES.get(profile, chosen), sci_mode=chosen.sci_mode)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    chosen = replace(chosen, **{k: v for k, v in given.items() if v is not None})
    _options = replace(chosen, sci_mode=sci_mode)


def get_printoptions():
    """The options as a dict."""
    return dict(vars(_options))


class _Integers:
    """Numbers without a point, and truth values."""

    def __init__(self, values):
        self.width = max((len(str(v)) for v in values), default=1)

    def __call__(self, value):
        return str(value).rjust(self.width)


class _Floats:
    """One format for all floats of a tensor: whole numbers, fixed point or exponents."""

    def __init__(self, values):
        shown = [v for v in values if isfinite(v) and v != 0]
        self.whole = all(v == ceil(v) for v in shown)
        self.scientific = False
        self.width = 1
        if shown:
            sizes = [abs(v) for v in shown]
            low, high = min(sizes), max(sizes)
            self.scientific = high / low > 1000 or high > 1e8 or (not self.whole and low < 1e-4)
            if _options.sci_mode is not None:
                self.scientific = _options.sci_mode
            self.width = max(len(self._text(v)) for v in shown)

    def _text(self, value):
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("" if isinf(value) or isnan(value) else ".")
        return f"{value:.{_options.precision}f}"

    def __call__(self, value):
        return self._text(value).rjust(self.width)


class _Complexes:
    """A format for real parts and one for imaginary parts."""

    def __init__(self, values):
        self.real = _Floats([v.real for v in values])
        self.imag = _Floats([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value):
        imag = self.imag(value.imag).lstrip() + "j"
        sign = "" if imag[0] in "+-" else "+"
        return self.real(value.real) + sign + imag


def _visible(tensor, summarize):
    """Nested lists of what is shown, with a mark where something is left out."""
    if tensor.dim() == 0:
        return tensor.item()
    n, edge = tensor.shape[0], _options.edgeitems
    if summarize and n > 2 * edge:
        first = [_visible(tensor[i], summarize) for i in range(edge)]
        last = [_visible(tensor[i], summarize) for i in range(n - edge, n)]
        return [*first, _GAP, *last]
    if not summarize:
        return tensor.tolist()
    return [_visible(tensor[i], summarize) for i in range(n)]


def _flatten(item, into):
    if isinstance(item, list):
        for part in item:
            _flatten(part, into)
    elif item is not _GAP:
        into.append(item)
    return into


def _row(items, indent, form, width):
    """A vector, broken into lines that fit."""
    texts = [" ..." if item is _GAP else form(item) for item in items]
    per_line = max(1, (_options.linewidth - indent) // (width + 2))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)] or [""]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(items, dims, indent, form, width):
    if dims == 0:
        return form(items)
    if dims == 1:
        return _row(items, indent, form, width)
    parts = ["..." if i is _GAP else _nested(i, dims - 1, indent + 1, form, width) for i in items]
    return "[" + ("," + "\n" * (dims - 1) + " " * (indent + 1)).join(parts) + "]"


def _values(tensor, indent):
    """The elements as text."""
    summarize = tensor.numel() > _options.threshold
    items = _visible(tensor, summarize)
    flat = _flatten(items, [])
    if tensor.is_complex():
        form = _Complexes(flat)
    elif tensor.is_floating_point():
        form = _Floats(flat)
    else:
        form = _Integers(flat)
    return _nested(items, tensor.dim(), indent, form, form.width)


def _with_suffixes(text, suffixes, indent):
    last = len(text) - text.rfind("\n") + 1
    parts = [text]
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last = indent + len(suffix)
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join(parts) + ")"


def tensor_repr(tensor):
    """What repr(tensor) gives."""
    if (batch := _C._batch_of(tensor)) is not None:
        value, dim, level = batch
        text = tensor_repr(value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={level}, bdim={dim}, value=\n    {text}\n)"
    kind = type(tensor)
    plain = kind is _C.Tensor or kind.__name__ == "Parameter"
    prefix = "tensor(" if plain else kind.__name__ + "("
    indent = len(prefix)
    dtype, default = tensor.dtype, _C.get_default_dtype()
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    if tensor.is_meta:
        suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype != default:
            suffixes.append(f"dtype={dtype}")
        text = "..."
    elif tensor.numel() == 0:
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
        if dtype != default:
            suffixes.append(f"dtype={dtype}")
        text = "[]"
    else:
        usual = (default, _C.int64, _C.bool)
        if dtype not in usual and not (dtype.is_complex and dtype == default.to_complex()):
            suffixes.append(f"dtype={dtype}")
        text = _values(tensor.detach(), indent)
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    level = _C._current_dual_level()
    tangent = _C._unpack_dual(tensor, level)[1] if level >= 0 else None
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    return _with_suffixes(prefix + text, suffixes, indent)
