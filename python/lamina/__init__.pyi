"""Lamina: tensors and gradients with PyTorch's API (types of the names of the package)."""

import builtins
from collections.abc import Callable, Iterable, Sequence
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from types import ModuleType
from typing import Any, TypeVar, overload

from lamina import accelerator as accelerator
from lamina import amp as amp
from lamina import autograd as autograd
from lamina import backends as backends
from lamina import compiler as compiler
from lamina import cpu as cpu
from lamina import cuda as cuda
from lamina import demo as demo
from lamina import distributed as distributed
from lamina import distributions as distributions
from lamina import explain as explain
from lamina import fft as fft
from lamina import func as func
from lamina import functional as functional
from lamina import fx as fx
from lamina import hub as hub
from lamina import jit as jit
from lamina import library as library
from lamina import linalg as linalg
from lamina import masked as masked
from lamina import memory as memory
from lamina import mps as mps
from lamina import multiprocessing as multiprocessing
from lamina import nn as nn
from lamina import onnx as onnx
from lamina import optim as optim
from lamina import overrides as overrides
from lamina import profiler as profiler
from lamina import random as random
from lamina import serialization as serialization
from lamina import signal as signal
from lamina import special as special
from lamina import storage as storage
from lamina import testing as testing
from lamina import torch_version as torch_version
from lamina import types as types
from lamina import utils as utils
from lamina import version as version
from lamina import xpu as xpu
from lamina._border import UntypedStorage as UntypedStorage
from lamina._border import _Device, _MinMax, _Number, _ValuesIndices
from lamina._C import *
from lamina._ops import Tensor as Tensor
from lamina._type_info import finfo as finfo
from lamina._type_info import iinfo as iinfo
from lamina.accelerator import Event as Event
from lamina.accelerator import Stream as Stream
from lamina.amp.autocast_mode import autocast as autocast
from lamina.amp.grad_scaler import GradScaler as GradScaler
from lamina.func import vmap as vmap
from lamina.nn.functional import pdist as pdist
from lamina.storage import TypedStorage as TypedStorage

_M = TypeVar("_M", bound=Callable[..., Any])

__version__: str
newaxis: None
torch: ModuleType
ops: Any

class BFloat16Storage(TypedStorage): ...
class BoolStorage(TypedStorage): ...
class ByteStorage(TypedStorage): ...
class CharStorage(TypedStorage): ...
class ComplexDoubleStorage(TypedStorage): ...
class ComplexFloatStorage(TypedStorage): ...
class DoubleStorage(TypedStorage): ...
class FloatStorage(TypedStorage): ...
class HalfStorage(TypedStorage): ...
class IntStorage(TypedStorage): ...
class LongStorage(TypedStorage): ...
class ShortStorage(TypedStorage): ...
class BFloat16Tensor(Tensor): ...
class BoolTensor(Tensor): ...
class ByteTensor(Tensor): ...
class CharTensor(Tensor): ...
class DoubleTensor(Tensor): ...
class FloatTensor(Tensor): ...
class HalfTensor(Tensor): ...
class IntTensor(Tensor): ...
class LongTensor(Tensor): ...
class ShortTensor(Tensor): ...

def einsum(equation: str, *operands: Tensor | Sequence[Tensor]) -> Tensor: ...
def tensordot(
    a: Tensor,
    b: Tensor,
    dims: builtins.int | Sequence[builtins.int] | Sequence[Sequence[builtins.int]] | Tensor = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def aminmax(
    input: Tensor,
    *,
    dim: builtins.int | None = ...,
    keepdim: builtins.bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> _MinMax: ...
@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...  # type: ignore[overload-overlap]
@overload
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...  # type: ignore[overload-overlap]
@overload
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def block_diag(*tensors: Tensor) -> Tensor: ...
def broadcast_shapes(*shapes: builtins.int | Sequence[builtins.int]) -> Size: ...
def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def cartesian_prod(*tensors: Tensor) -> Tensor: ...
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str = ...) -> tuple[Tensor, ...]: ...
@overload
def nonzero(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: builtins.bool) -> Any: ...
def bincount(
    input: Tensor, weights: Tensor | None = ..., minlength: builtins.int = ...
) -> Tensor: ...
def bucketize(
    input: Tensor | _Number,
    boundaries: Tensor,
    *,
    out_int32: builtins.bool = ...,
    right: builtins.bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | _Number,
    *,
    out_int32: builtins.bool = ...,
    right: builtins.bool = ...,
    side: str | None = ...,
    sorter: Tensor | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def histc(
    input: Tensor,
    bins: builtins.int = ...,
    min: _Number = ...,
    max: _Number = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def kthvalue(
    input: Tensor,
    k: builtins.int,
    dim: builtins.int = ...,
    keepdim: builtins.bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
def combinations(
    input: Tensor, r: builtins.int = ..., with_replacement: builtins.bool = ...
) -> Tensor: ...
def split_copy(  # type: ignore[no-redef]
    input: Tensor,
    split_size: builtins.int,
    dim: builtins.int = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> tuple[Tensor, ...]: ...
def split_with_sizes_copy(  # type: ignore[no-redef]
    input: Tensor,
    split_sizes: Sequence[builtins.int],
    dim: builtins.int = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> tuple[Tensor, ...]: ...
def unbind_copy(  # type: ignore[no-redef]
    input: Tensor, dim: builtins.int = ..., *, out: Sequence[Tensor] | None = ...
) -> tuple[Tensor, ...]: ...
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = ...,
    indices: Tensor | None = ...,
    offsets: Tensor | None = ...,
    axis: builtins.int = ...,
    unsafe: builtins.bool = ...,
    initial: _Number | None = ...,
) -> Tensor: ...
def hash_tensor(
    input: Tensor,
    dim: builtins.int | Sequence[builtins.int] = ...,
    *,
    keepdim: builtins.bool = ...,
    mode: builtins.int = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def stft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = ...,
    win_length: builtins.int | None = ...,
    window: Tensor | None = ...,
    center: builtins.bool = ...,
    pad_mode: str = ...,
    normalized: builtins.bool = ...,
    onesided: builtins.bool | None = ...,
    return_complex: builtins.bool | None = ...,
    align_to_window: builtins.bool | None = ...,
) -> Tensor: ...
def istft(
    input: Tensor,
    n_fft: builtins.int,
    hop_length: builtins.int | None = ...,
    win_length: builtins.int | None = ...,
    window: Tensor | None = ...,
    center: builtins.bool = ...,
    normalized: builtins.bool = ...,
    onesided: builtins.bool | None = ...,
    length: builtins.int | None = ...,
    return_complex: builtins.bool = ...,
) -> Tensor: ...
def bartlett_window(
    window_length: builtins.int, periodic: builtins.bool = ..., **options: Any
) -> Tensor: ...
def blackman_window(
    window_length: builtins.int, periodic: builtins.bool = ..., **options: Any
) -> Tensor: ...
def hamming_window(
    window_length: builtins.int,
    periodic: builtins.bool = ...,
    alpha: builtins.float = ...,
    beta: builtins.float = ...,
    **options: Any,
) -> Tensor: ...
def hann_window(
    window_length: builtins.int, periodic: builtins.bool = ..., **options: Any
) -> Tensor: ...
def kaiser_window(
    window_length: builtins.int,
    periodic: builtins.bool = ...,
    beta: builtins.float = ...,
    **options: Any,
) -> Tensor: ...
def unravel_index(
    indices: Tensor, shape: builtins.int | Sequence[builtins.int]
) -> tuple[Tensor, ...]: ...
def mode(
    input: Tensor,
    dim: builtins.int = ...,
    keepdim: builtins.bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
def quantile(
    input: Tensor,
    q: builtins.float | Tensor,
    dim: builtins.int | None = ...,
    keepdim: builtins.bool = ...,
    *,
    interpolation: str = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def nanquantile(
    input: Tensor,
    q: builtins.float | Tensor,
    dim: builtins.int | None = ...,
    keepdim: builtins.bool = ...,
    *,
    interpolation: str = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def cov(
    input: Tensor,
    *,
    correction: builtins.int = ...,
    fweights: Tensor | None = ...,
    aweights: Tensor | None = ...,
) -> Tensor: ...
def corrcoef(input: Tensor) -> Tensor: ...
def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = ..., *, dx: _Number = ..., dim: builtins.int = ...
) -> Tensor: ...
def histogram(
    input: Tensor,
    bins: builtins.int | Tensor = ...,
    *,
    range: Sequence[builtins.float] | None = ...,
    weight: Tensor | None = ...,
    density: builtins.bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> tuple[Tensor, Tensor]: ...
def histogramdd(
    input: Tensor,
    bins: builtins.int | Sequence[builtins.int] | Sequence[Tensor],
    range: Sequence[builtins.float] | None = ...,
    weight: Tensor | None = ...,
    density: builtins.bool = ...,
) -> tuple[Tensor, tuple[Tensor, ...]]: ...
def gradient(
    input: Tensor,
    *,
    spacing: _Number | Sequence[_Number] | Sequence[Tensor] | None = ...,
    dim: builtins.int | Sequence[builtins.int] | None = ...,
    edge_order: builtins.int = ...,
) -> list[Tensor]: ...
@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(
    input: Tensor,
    dim: builtins.int,
    keepdim: builtins.bool = ...,
    *,
    out: Sequence[Tensor] | None = ...,
) -> _ValuesIndices: ...
def msort(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def cdist(
    x1: Tensor, x2: Tensor, p: builtins.float = ..., compute_mode: str | None = ...
) -> Tensor: ...
def detach_(input: Tensor) -> Tensor: ...
def dsplit(
    input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]
) -> tuple[Tensor, ...]: ...
def hsplit(
    input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]
) -> tuple[Tensor, ...]: ...
def vsplit(
    input: Tensor, indices_or_sections: builtins.int | Sequence[builtins.int]
) -> tuple[Tensor, ...]: ...
def tensor_split(
    input: Tensor,
    indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor,
    dim: builtins.int = ...,
) -> tuple[Tensor, ...]: ...
def erfinv(input: Tensor, *, out: Tensor | None = ...) -> Tensor: ...
def get_device(input: Tensor) -> builtins.int: ...
def is_inference(input: Tensor) -> builtins.bool: ...
def is_same_size(input: Tensor, other: Tensor) -> builtins.bool: ...
def is_signed(input: Tensor) -> builtins.bool: ...
def is_storage(obj: object) -> builtins.bool: ...
def isin(
    elements: Tensor | _Number,
    test_elements: Tensor | _Number,
    *,
    assume_unique: builtins.bool = ...,
    invert: builtins.bool = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def multinomial(
    input: Tensor,
    num_samples: builtins.int,
    replacement: builtins.bool = ...,
    *,
    generator: Generator | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def norm(
    input: Tensor,
    p: builtins.float | str | None = ...,
    dim: builtins.int | Sequence[builtins.int] | None = ...,
    keepdim: builtins.bool = ...,
    out: Tensor | None = ...,
    dtype: dtype | None = ...,
) -> Tensor: ...
def nuclear_norm(
    input: Tensor,
    dim: builtins.int | Sequence[builtins.int] | builtins.bool | None = ...,
    keepdim: builtins.bool = ...,
    *,
    dtype: dtype | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
def frobenius_norm(
    input: Tensor,
    dim: builtins.int | Sequence[builtins.int] = ...,
    keepdim: builtins.bool = ...,
    *,
    out: Tensor | None = ...,
) -> Tensor: ...
def chain_matmul(*matrices: Tensor, out: Tensor | None = ...) -> Tensor: ...
def lu(
    A: Tensor,
    pivot: builtins.bool = ...,
    get_infos: builtins.bool = ...,
    out: Sequence[Tensor] | None = ...,
) -> tuple[Tensor, ...]: ...
def svd_lowrank(
    A: Tensor,
    q: builtins.int | None = ...,
    niter: builtins.int = ...,
    M: Tensor | None = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...
def pca_lowrank(
    A: Tensor,
    q: builtins.int | None = ...,
    center: builtins.bool = ...,
    niter: builtins.int = ...,
) -> tuple[Tensor, Tensor, Tensor]: ...
def lobpcg(
    A: Tensor,
    k: builtins.int | None = ...,
    B: Tensor | None = ...,
    X: Tensor | None = ...,
    n: builtins.int | None = ...,
    iK: Tensor | None = ...,
    niter: builtins.int | None = ...,
    tol: builtins.float | None = ...,
    largest: builtins.bool | None = ...,
    method: str | None = ...,
    tracker: Any = ...,
    ortho_iparams: Any = ...,
    ortho_fparams: Any = ...,
    ortho_bparams: Any = ...,
) -> tuple[Tensor, Tensor]: ...
def range(
    start: _Number = ..., end: _Number | None = ..., step: _Number = ..., **options: Any
) -> Tensor: ...
def resize_as_(
    input: Tensor, the_template: Tensor, *, memory_format: memory_format | None = ...
) -> Tensor: ...
def std_mean(
    input: Tensor,
    dim: builtins.int | Sequence[builtins.int] | builtins.bool | None = ...,
    *,
    correction: builtins.float = ...,
    keepdim: builtins.bool = ...,
    unbiased: builtins.bool | None = ...,
) -> tuple[Tensor, Tensor]: ...
def var_mean(
    input: Tensor,
    dim: builtins.int | Sequence[builtins.int] | builtins.bool | None = ...,
    *,
    correction: builtins.float = ...,
    keepdim: builtins.bool = ...,
    unbiased: builtins.bool | None = ...,
) -> tuple[Tensor, Tensor]: ...
def take_along_dim(
    input: Tensor, indices: Tensor, dim: builtins.int | None = ..., *, out: Tensor | None = ...
) -> Tensor: ...
def trapezoid(
    y: Tensor, x: Tensor | None = ..., *, dx: _Number | None = ..., dim: builtins.int = ...
) -> Tensor: ...
def trapz(
    y: Tensor, x: Tensor | None = ..., *, dx: _Number | None = ..., dim: builtins.int = ...
) -> Tensor: ...
def tril_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = ...,
    *,
    dtype: dtype = ...,
    device: _Device = ...,
    layout: layout = ...,
) -> Tensor: ...
def triu_indices(
    row: builtins.int,
    col: builtins.int,
    offset: builtins.int = ...,
    *,
    dtype: dtype = ...,
    device: _Device = ...,
    layout: layout = ...,
) -> Tensor: ...
def unique(
    input: Tensor,
    sorted: builtins.bool = ...,
    return_inverse: builtins.bool = ...,
    return_counts: builtins.bool = ...,
    dim: builtins.int | None = ...,
) -> Any: ...
def unique_consecutive(
    input: Tensor,
    return_inverse: builtins.bool = ...,
    return_counts: builtins.bool = ...,
    dim: builtins.int | None = ...,
) -> Any: ...
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]: ...
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]: ...
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]: ...
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]: ...
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Tensor: ...
def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Tensor: ...
def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> Tensor: ...
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = ...,
    b_hh: Tensor | None = ...,
) -> tuple[Tensor, Tensor]: ...
def manual_seed(seed: builtins.int) -> Generator: ...
def seed() -> builtins.int: ...
def initial_seed() -> builtins.int: ...
def get_rng_state() -> Tensor: ...
def set_rng_state(new_state: Tensor) -> None: ...
def fork_rng(
    devices: Iterable[Any] | None = ..., enabled: builtins.bool = ..., **kwargs: Any
) -> Any: ...
def from_dlpack(ext_tensor: Any, **kwargs: Any) -> Tensor: ...
def to_dlpack(tensor: Tensor) -> Any: ...
def typename(obj: object, /) -> str: ...
def install_as_torch() -> None: ...
def save(
    obj: object,
    f: Any,
    pickle_module: Any = ...,
    pickle_protocol: builtins.int = ...,
    _use_new_zipfile_serialization: builtins.bool = ...,
    _disable_byteorder_record: builtins.bool = ...,
) -> None: ...
def load(
    f: Any,
    map_location: Any = ...,
    pickle_module: Any = ...,
    *,
    weights_only: builtins.bool | None = ...,
    mmap: builtins.bool | None = ...,
    **pickle_load_args: Any,
) -> Any: ...
@overload
def compile(
    model: _M,
    *,
    fullgraph: builtins.bool = ...,
    dynamic: builtins.bool | None = ...,
    backend: str | Callable[..., Any] = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: builtins.bool = ...,
) -> _M: ...
@overload
def compile(
    model: None = ...,
    *,
    fullgraph: builtins.bool = ...,
    dynamic: builtins.bool | None = ...,
    backend: str | Callable[..., Any] = ...,
    mode: str | None = ...,
    options: dict[str, Any] | None = ...,
    disable: builtins.bool = ...,
) -> Callable[[_M], _M]: ...
def set_printoptions(
    precision: builtins.int | None = ...,
    threshold: builtins.float | None = ...,
    edgeitems: builtins.int | None = ...,
    linewidth: builtins.int | None = ...,
    profile: str | None = ...,
    sci_mode: builtins.bool | None = ...,
) -> None: ...
def get_printoptions() -> dict[str, Any]: ...
def get_device_module(device: _Device | None = ...) -> Any: ...
def get_num_interop_threads() -> builtins.int: ...
def set_num_interop_threads(n: builtins.int) -> None: ...
def use_deterministic_algorithms(
    mode: builtins.bool, *, warn_only: builtins.bool = ...
) -> None: ...
def are_deterministic_algorithms_enabled() -> builtins.bool: ...
def is_deterministic_algorithms_warn_only_enabled() -> builtins.bool: ...
def set_deterministic_debug_mode(debug_mode: builtins.int | str) -> None: ...
def get_deterministic_debug_mode() -> builtins.int: ...
def get_float32_matmul_precision() -> str: ...
def set_float32_matmul_precision(precision: str) -> None: ...
def set_warn_always(b: builtins.bool, /) -> None: ...
def is_warn_always_enabled() -> builtins.bool: ...
def set_flush_denormal(mode: builtins.bool) -> builtins.bool: ...
def set_default_tensor_type(t: str | type, /) -> None: ...
def is_autocast_enabled(device_type: str = ...) -> builtins.bool: ...
def set_autocast_enabled(*args: Any) -> None: ...
def get_autocast_dtype(device_type: str) -> dtype: ...
def set_autocast_dtype(device_type: str, dtype: dtype) -> None: ...
def is_autocast_cache_enabled() -> builtins.bool: ...
def set_autocast_cache_enabled(enabled: builtins.bool) -> None: ...
def autocast_increment_nesting() -> builtins.int: ...
def autocast_decrement_nesting() -> builtins.int: ...
def clear_autocast_cache() -> None: ...
def is_autocast_cpu_enabled() -> builtins.bool: ...
def get_autocast_cpu_dtype() -> dtype: ...
def get_autocast_gpu_dtype() -> dtype: ...
