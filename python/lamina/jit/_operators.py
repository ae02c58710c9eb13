"""What TorchScript programs may call, by name: operators on tensors, and the same names on numbers, lists and text.

The serialized form writes every operator as ``torch.name(...)`` and leaves it to the arguments whether an
overload for tensors, for numbers or for containers is meant. Types of elements and layouts are numbers in it.
"""

import math
import operator
import re
import warnings

import lamina
from lamina import _ops_namespace
from lamina._missing import missing, peer_names

from ._attention import native_multi_head_attention, transformer_encoder_layer_fwd

_DTYPES = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2",
    "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2", "float8_e4m3fn",
    "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
)  # fmt: skip
_LAYOUTS = (
    "strided",
    "sparse_coo",
    "sparse_csr",
    "_mkldnn",
    "sparse_csc",
    "sparse_bsr",
    "sparse_bsc",
)
_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")

# Operators that are no entries of the dispatcher's table here, but functions or methods over such entries.
_COMPOSED = frozenset(
    """
    absolute absolute_ aminmax arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan arctan2
    arctan2_ arctan_ arctanh arctanh_ atleast_2d atleast_3d bartlett_window bincount blackman_window block_diag
    broadcast_tensors bucketize cartesian_prod chain_matmul clip clip_ combinations concat concatenate corrcoef cov
    cpu cuda cumulative_trapezoid detach_ dim divide divide_ dsplit element_size erfinv erfinv_ fill_diagonal_ fix
    fix_ frobenius_norm ger gradient greater greater_ greater_equal greater_equal_ gru gru_cell hamming_window
    hann_window histc hsplit is_complex is_contiguous is_conj is_floating_point is_neg is_nonzero is_same_size
    is_signed isin item kaiser_window kthvalue less less_ less_equal less_equal_ lu median mode moveaxis msort
    multinomial multiply multiply_ nanmedian nanquantile ndimension negative negative_ nelement norm not_equal
    not_equal_ nuclear_norm numel quantile requires_grad_ resize_as_ rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    row_stack scalar_tensor searchsorted std_mean storage_offset stride subtract subtract_ swapaxes swapaxes_
    swapdims swapdims_ take_along_dim tensor_split to_dense trapezoid trapz tril_indices triu_indices true_divide
    true_divide_ type_as unique_consecutive var_mean vsplit coalesce is_coalesced values indices cdist
    einsum meshgrid istft unravel_index histogram pdist pca_lowrank svd_lowrank tensordot stft
    """.split()
)
_REFUSED = frozenset(("from_file", "set_", "set_data", "_local_scalar_dense"))
# Results that are lists there and tuples here.
_LISTS = frozenset(
    """
    split split_with_sizes chunk unbind unsafe_split unsafe_chunk unsafe_split_with_sizes tensor_split hsplit vsplit
    dsplit meshgrid broadcast_tensors gradient nonzero_numpy stride align_tensors
    """.split()
)
_POSITIONAL_DTYPE = {"softmax": 2, "log_softmax": 2, "softmin": 2, "view": 1}


def _named(table, number, what):
    if isinstance(number, bool) or not isinstance(number, int):
        return number
    found = getattr(lamina, table[number], None) if 0 <= number < len(table) else None
    if found is None:
        raise missing(f"torch.jit: {what} number {number}")
    return found


def dtype_of(code):
    """The type of elements behind a number; anything else comes back."""
    return _named(_DTYPES, code, "dtype")


_CODES = {}


def code_of(dtype):
    """The number of a type of elements."""
    if not _CODES:
        for code, name in enumerate(_DTYPES):
            if hasattr(lamina, name):
                _CODES[getattr(lamina, name)] = code
    return _CODES[dtype]


def _options(given):
    """Keyword arguments with numbers replaced; what is None takes its default."""
    options = {}
    for name, value in given.items():
        if name == "dtype":
            value = dtype_of(value)
        elif name == "layout":
            value = _named(_LAYOUTS, value, "layout")
        elif name == "memory_format":
            value = _named(_FORMATS, value, "memory_format")
        elif name not in ("device", "pin_memory", "generator"):
            options[name] = value
            continue
        if value is not None:
            options[name] = value
    return options


# ---- tensors --------------------------------------------------------------------------------------


def _to(x, *rest, dtype=None, device=None, layout=None, memory_format=None, **flags):
    values, positional = [], []
    for value in rest:
        if isinstance(value, lamina.Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, bool):
            positional.append(value)
        elif isinstance(value, int) and not positional:
            dtype = value
        elif isinstance(value, int):
            memory_format = value
        elif value is not None:
            device = value
        values.append(value)
    flags.pop("pin_memory", None)
    flags.update(zip(("non_blocking", "copy"), positional))
    options = _options({"dtype": dtype, "device": device, "memory_format": memory_format})
    flags = {name: value for name, value in flags.items() if value}
    return x.to(**options, **flags) if options or flags else x


def _upsample(name):
    mode = re.fullmatch(r"_?upsample_(\w+?)(_exact)?[123]d(_aa)?", name)
    kind = mode[1] + ("-exact" if mode[2] else "")
    aligned = kind in ("linear", "bilinear", "bicubic", "trilinear")

    def upsample(x, size, *rest):
        align = rest[0] if aligned else None
        scales = rest[1:] if aligned else rest
        if size is not None and any(s is not None for s in scales):
            return getattr(_ops_namespace.ops.aten, name)(x, size, *rest)
        factors = scales[0] if scales and size is None else None
        return lamina.nn.functional.interpolate(
            x,
            size=size,
            scale_factor=factors,
            mode=kind,
            align_corners=align,
            antialias=bool(mode[3]),
        )

    return upsample


def _stft(x, n_fft, hop=None, win=None, window=None, *rest, **more):
    # Two overloads: with and without ``center, pad_mode`` before ``normalized, onesided, return_complex``.
    if len(rest) > 1 and isinstance(rest[1], str):
        return lamina.stft(x, n_fft, hop, win, window, *rest, **more)
    more.update(zip(("normalized", "onesided", "return_complex"), rest))
    more.setdefault("center", False)
    return lamina.stft(x, n_fft, hop, win, window, **more)


def _tensordot(a, b, dims_a, dims_b):
    return lamina.tensordot(a, b, dims=(dims_a, dims_b))


def _cdist(a, b, p=2.0, mode=None):
    modes = (
        "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    )  # fmt: skip
    return lamina.cdist(a, b, p, compute_mode=modes[mode or 0])


def _states(function):
    """Hidden states are lists there and tuples here."""

    def call(*args, **kwargs):
        return function(*(tuple(a) if i in (1, 2) and isinstance(a, list) else a
                          for i, a in enumerate(args)), **kwargs)  # fmt: skip

    return call


def _lstm(data, second, third, *rest):
    if isinstance(second, list):
        return lamina.lstm(data, tuple(second), third, *rest)
    return lamina.lstm(data, second, tuple(third), *rest)


def _einsum(equation, operands, path=None):
    return lamina.einsum(equation, operands)


def _meshgrid(tensors, indexing="ij"):
    return list(lamina.meshgrid(*tensors, indexing=indexing))


def _embedding_bag(
    weight,
    indices,
    offsets=None,
    scale=False,
    mode=0,
    sparse=False,
    per_sample=None,
    last=False,
    padding=None,
):
    modes = ("sum", "mean", "max")
    found = lamina.nn.functional.embedding_bag(
        indices, weight, offsets, None, 2.0, scale, modes[mode], sparse, per_sample, last,
        None if padding in (None, -1) else padding,
    )  # fmt: skip
    return found, None, None, None


def _norm(x, p=2, dim=None, keepdim=False, dtype=None):
    return lamina.norm(x, p, dim, keepdim, dtype=dtype_of(dtype))


def _unique(x, sorted=True, return_inverse=False, return_counts=False):
    return lamina.unique(x, sorted, True, True)


def _unique_dim(x, dim, sorted=True, return_inverse=False, return_counts=False):
    return lamina.unique(x, sorted, True, True, dim)


def _unique_consecutive(x, return_inverse=False, return_counts=False, dim=None):
    return lamina.unique_consecutive(x, True, True, dim)


_REDUCTIONS = ("none", "mean", "sum")


def _nll_loss(x, target, weight=None, reduction=1, ignore_index=-100):
    return lamina.nn.functional.nll_loss(
        x, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction]
    )


def _ctc_loss(x, targets, lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    return lamina.nn.functional.ctc_loss(
        x, targets, lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity
    )


def _pack(x, lengths, batch_first):
    packed = lamina.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed(data, batch_sizes, batch_first, padding=0.0, total=-1):
    rnn = lamina.nn.utils.rnn
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding, total if total > 0 else None)


def _tensor(value, **options):
    return lamina.tensor(value, **_options(options))


_ON_TENSORS = {
    "to": _to,
    "stft": _stft,
    "tensordot": _tensordot,
    "cdist": _cdist,
    "lstm": _lstm,
    "lstm_cell": lambda x, hx, *rest: lamina.lstm_cell(x, tuple(hx), *rest),
    "norm": _norm,
    "meshgrid": _meshgrid,
    "embedding_bag": _embedding_bag,
    # There are no nested tensors: sequences stay padded.
    "_nested_tensor_from_mask_left_aligned": lambda x, mask: False,
    "_unique2": _unique,
    "unique_dim": _unique_dim,
    "unique_consecutive": _unique_consecutive,
    "nll_loss_nd": _nll_loss,
    "nll_loss": _nll_loss,
    "ctc_loss": _ctc_loss,
    "_pack_padded_sequence": _pack,
    "_pad_packed_sequence": _pad_packed,
    "size": lambda x, dim=None: list(x.size()) if dim is None else x.size(dim),
    "sym_size": lambda x, dim: x.size(dim),
    "stride": lambda x, dim=None: list(x.stride()) if dim is None else x.stride(dim),
    "len": len,
    "pad": lambda x, pad, mode="constant", value=None: lamina.nn.functional.pad(
        x, pad, mode, value
    ),
    "tolist": lambda x: x.tolist(),
    "is_grad_enabled": lambda: lamina.is_grad_enabled(),
    "requires_grad": lambda x: x.requires_grad,
    "IntImplicit": lambda x: int(x.item()),
    "FloatImplicit": lambda x: float(x.item()),
    "ScalarImplicit": lambda x: x.item(),
    "Int": lambda x: int(x),
    "Float": lambda x: float(x),
    "Bool": lambda x: bool(x),
    "type_as": lambda x, other: x.to(other.dtype),
    "detach_": lambda x: x.detach_(),
    "data": lambda x: x.data,
    "_native_multi_head_attention": native_multi_head_attention,
    "_transformer_encoder_layer_fwd": transformer_encoder_layer_fwd,
}


def _is_operator(name):
    if name in _REFUSED or name.startswith("__"):
        return False
    return name in _COMPOSED or f"aten::{name}" in _ops_namespace._names()


def _in_family(name):
    """``fft_rfft`` is ``lamina.fft.rfft``; None for other names."""
    family, _, rest = name.partition("_")
    if family not in ("fft", "linalg", "special") or not rest or rest.startswith("_"):
        return None
    if peer_names().get("torch." + family, {}).get(rest) != "f":
        return None
    return getattr(getattr(lamina, family), rest, None)


def _on_tensors(name):
    """The function of an operator for tensors; None where there is none."""
    if name in _ON_TENSORS:
        return _ON_TENSORS[name]
    if name.startswith(("upsample_", "_upsample_")) and re.fullmatch(
        r"_?upsample_\w+[123]d(_aa)?", name
    ):
        return _upsample(name)
    family = _in_family(name)
    if family is None and not _is_operator(name):
        return None
    places = (family, *(getattr(owner, name, None) for owner in (lamina, lamina.Tensor)))
    place = next((p for p in places if callable(p) and not isinstance(p, type)), None)
    if place is None:
        place = getattr(_ops_namespace.ops.aten, name)
    at, listed = _POSITIONAL_DTYPE.get(name), name in _LISTS

    def call(*args, **kwargs):
        if at is not None and len(args) > at:
            args = (*args[:at], dtype_of(args[at]), *args[at + 1 :])
        result = place(*args, **(_options(kwargs) if kwargs else kwargs))
        return list(result) if listed and isinstance(result, tuple) else result

    return call


# ---- numbers, text and containers -----------------------------------------------------------------


def _wrapped(value):
    """Integers have 64 bits."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        return (value + 2**63) % 2**64 - 2**63
    return value


def _integer(function):
    return lambda a, b: _wrapped(function(a, b))


def _real(function):
    return lambda x: function(float(x))


def _power(a, b):
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _quotient(a, b, rounding_mode=None):
    if rounding_mode == "floor":
        return a // b
    return float(math.trunc(a / b)) if rounding_mode == "trunc" else a / b


def _format(text, *values):
    """Braces are filled in order; there is no way to say more in them."""
    parts = text.split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError("format: too few arguments for the format string")
    out = [parts[0]]
    for value, part in zip(values, parts[1:]):
        out += (str(value), part)
    return "".join(out)


def _percent(text, *values):
    if re.search(r"%[^%a-zA-Z]*(\d{4}|\*|\()", text):
        raise RuntimeError("percentFormat: a width that is not allowed")
    return text % (values[0] if len(values) == 1 and isinstance(values[0], tuple) else values)


def _slice(value, *bounds):
    bounds = [*bounds, None, None, None][:3]
    return value[bounds[0] : bounds[1] : bounds[2]]


def _set_item(target, key, value):
    target[key] = value
    return target


def _extend(target, values):
    if isinstance(target, list):
        target.extend(values)
        return target
    return _wrapped(target + values)


def _pop(target, *rest):
    return target.pop(*rest)


def _delete(target, key):
    del target[key]


def _range_length(low, high, step):
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(low, high, step))


def _sort(target, reverse=False):
    target.sort(reverse=reverse)


def _method(kind, name):
    function = getattr(kind, name)
    return lambda *args: function(*args)


def _least(pick):
    def call(*args):
        return pick(*args)

    return call


def _split(text, separator=None, most=-1):
    return text.split(separator, most)


def _plain_dict(pairs=()):
    return dict(pairs)


def _warn(message, stacklevel=2):
    warnings.warn(str(message), UserWarning, stacklevel=2)


_PLAIN = {
    "add": _integer(operator.add), "sub": _integer(operator.sub), "mul": _integer(operator.mul),
    "add_": _extend, "sub_": _integer(operator.sub), "mul_": operator.imul, "div": _quotient,
    "floordiv": _integer(operator.floordiv), "remainder": operator.mod, "fmod": math.fmod,
    "pow": _power, "neg": lambda x: _wrapped(-x), "abs": abs, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "floor": math.floor, "ceil": math.ceil, "round": lambda x, digits=None: float(round(x, digits or 0)),
    "sqrt": _real(math.sqrt), "exp": _real(math.exp), "sin": _real(math.sin), "cos": _real(math.cos),
    "tan": _real(math.tan), "asin": _real(math.asin), "acos": _real(math.acos),
    "atan": _real(math.atan), "sinh": _real(math.sinh), "cosh": _real(math.cosh),
    "tanh": _real(math.tanh), "asinh": _real(math.asinh), "acosh": _real(math.acosh),
    "atanh": _real(math.atanh), "log10": _real(math.log10), "log1p": _real(math.log1p),
    "expm1": _real(math.expm1), "erf": _real(math.erf), "erfc": _real(math.erfc),
    "gamma": _real(math.gamma), "lgamma": _real(math.lgamma), "degrees": _real(math.degrees),
    "radians": _real(math.radians), "fabs": _real(math.fabs), "isnan": math.isnan,
    "isinf": math.isinf, "isfinite": math.isfinite, "log": lambda x, base=math.e: math.log(x) if base is math.e else math.log(x, base),
    "log2": _real(math.log2), "atan2": lambda a, b: math.atan2(a, b), "hypot": lambda a, b: math.hypot(a, b),
    "copysign": lambda a, b: math.copysign(a, b), "gcd": math.gcd,
    "__not__": operator.not_, "__is__": operator.is_, "__isnot__": operator.is_not,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor,
    "__lshift__": lambda a, b: _wrapped(a << min(b, 64)), "__rshift__": operator.rshift, "bitwise_not": operator.invert,
    "__contains__": operator.contains, "__getitem__": operator.getitem,
    "__range_length": _range_length, "__derive_index": lambda i, low, step: low + i * step,
    "len": len, "append": lambda x, v: (x.append(v), x)[1], "extend": _extend, "insert": _method(list, "insert"),
    "pop": _pop, "popitem": _method(dict, "popitem"), "remove": _method(list, "remove"),
    "reverse": _method(list, "reverse"), "sort": _sort, "sorted": lambda x: sorted(x), "clear": lambda x: x.clear(),
    "copy": lambda x: x.copy(), "list": lambda x: list(x), "index": lambda x, v, *rest: x.index(v, *rest),
    "count": lambda x, *v: x.count(*v), "_set_item": _set_item, "Delete": _delete,
    "keys": lambda x: list(x), "values": lambda x: list(x.values()), "items": lambda x: list(x.items()),
    "get": lambda x, key, default=None: x.get(key, default), "setdefault": lambda x, k, v: x.setdefault(k, v),
    "update": lambda x, other: x.update(other), "dict": _plain_dict, "sum": sum, "all": all, "any": any,
    "max": _least(max), "min": _least(min), "slice": _slice, "select": operator.getitem,
    "broadcast_shapes": lambda *x: list(lamina.broadcast_shapes(*x)),
    "infer_size": lambda *x: list(lamina.broadcast_shapes(*x)), "einsum": _einsum, "block_diag": lambda x: lamina.block_diag(*x),
    "cartesian_prod": lambda x: lamina.cartesian_prod(*x),
    "broadcast_tensors": lambda x: list(lamina.broadcast_tensors(*x)), "chain_matmul": lambda x: lamina.chain_matmul(*x),
    "meshgrid": _meshgrid, "format": _format, "percentFormat": _percent, "split": _split,
    "str": str, "ord": ord, "chr": chr, "hex": hex, "oct": oct, "bin": bin, "warn": _warn,
    "device": lambda *args: lamina.device(*args), "tensor": _tensor, "as_tensor": _tensor,
    "is_grad_enabled": lambda: lamina.is_grad_enabled(),
    "set_grad_enabled": lambda on: lamina.set_grad_enabled(bool(on)) and None,
    "is_autocast_enabled": lambda *kind: False, "is_autocast_cpu_enabled": lambda: False, "is_scripting": lambda: True, "is_tracing": lambda: False, "Int": int, "Float": float, "Bool": bool,
    "replace": lambda text, *rest: text.replace(*rest), "divmod": divmod, "manual_seed": lambda n: lamina.manual_seed(n) and None,
    "complex": complex, "Complex": complex, "real": lambda x: complex(x).real, "imag": lambda x: complex(x).imag,
}  # fmt: skip
for _name in (
    "join", "upper", "lower", "strip", "lstrip", "rstrip", "startswith", "endswith", "find", "rfind",
    "rindex", "isdigit", "isalpha", "isalnum", "isspace", "isupper", "islower", "istitle",
    "isidentifier", "isdecimal", "isnumeric", "isprintable", "capitalize", "title", "swapcase",
    "casefold", "splitlines", "partition", "rpartition", "rsplit", "zfill", "center", "ljust", "rjust",
    "expandtabs",
):  # fmt: skip
    _PLAIN[_name] = _method(str, _name)


def operator_called(name):
    """What ``torch.name`` does. Raises PermissionError for a name that is no operator."""
    plain, tensor = _PLAIN.get(name), _on_tensors(name)
    if plain is None and tensor is None:
        known = hasattr(lamina, name) or hasattr(lamina.Tensor, name)
        if known or name.startswith("__") or name in _REFUSED:
            raise PermissionError(
                f"torch.{name} is no operator that a TorchScript program may call"
            )

        def absent(*args, **kwargs):
            raise missing(f"torch.{name}")

        return absent
    if plain is None or tensor is None:
        return plain or tensor

    def call(*args, **kwargs):
        first = args[0] if args else None
        if isinstance(first, int | float | complex):  # a number to the power of a tensor
            first = next((a for a in args if isinstance(a, lamina.Tensor)), first)
        if isinstance(first, lamina.Tensor):
            return tensor(*args, **kwargs)
        return plain(*args, **kwargs)

    if name in ("__is__", "__isnot__"):
        return plain
    return call


# ---- ops.prim -------------------------------------------------------------------------------------


def _raise_exception(message, kind="builtins.RuntimeError"):
    from lamina import jit

    raise jit.Error(
        f"The following operation failed in the TorchScript interpreter.\n{kind}: {message}"
    )


def _number_to_tensor(value):
    return lamina.tensor(value, dtype=lamina.float64 if isinstance(value, float) else None)


def _attribute_of_tensor(name):
    def read(x):
        if not isinstance(x, lamina.Tensor):
            raise TypeError(f"ops.prim.{name}: expected a Tensor; got {type(x).__name__}")
        return getattr(x, name)

    return read


def _device(x):
    if not isinstance(x, lamina.device):
        raise TypeError(f"ops.prim: expected a device; got {type(x).__name__}")
    return x


_PRIM = {
    "NumToTensor": _number_to_tensor,
    "RaiseException": _raise_exception,
    "dtype": lambda x: code_of(x.dtype),
    "layout": lambda x: _LAYOUTS.index(str(x.layout).removeprefix("torch.")),
    "shape": lambda x: list(x.shape),
    "min": _least(min), "max": _least(max), "abs": abs,
    "type": lambda x: _device(x).type, "index": lambda x: _device(x).index,
    "unchecked_unwrap_optional": lambda x: x, "unchecked_cast": lambda x: x,
    "Print": lambda *values: print(*values), "rangelist": lambda n: list(range(n)),
    "AutogradZero": lambda: None, "tolist": lambda x: x.tolist(),
}  # fmt: skip
for _name in (
    "device", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn",
    "is_mps", "is_xla", "is_xpu", "requires_grad", "grad", "data", "itemsize", "nbytes", "name",
    "is_nested", "mT", "mH", "H", "T",
):  # fmt: skip
    _PRIM[_name] = _attribute_of_tensor(_name)


def called_in(namespace, name):
    """What ``ops.namespace.name`` does. Raises PermissionError for a name that is none."""
    if namespace == "prim":
        found = _PRIM.get(name)
        if found is None:
            raise PermissionError(
                f"ops.prim.{name} is no operator that a TorchScript program may call"
            )
        return found
    if namespace == "aten":
        return operator_called(name)

    def call(*args, **kwargs):
        if f"{namespace}::{name}" not in _ops_namespace._names():
            raise missing(f"torch.ops.{namespace}.{name}")
        return getattr(getattr(_ops_namespace.ops, namespace), name)(*args, **kwargs)

    return call
