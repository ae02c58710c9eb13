"""Lamina: tensors and gradients with PyTorch's API, on a runtime you can see through.

What can wait is loaded when it is first asked for: submodules, printing.
"""

import sys as _sys
from math import e, inf, nan, pi

from lamina import _C, _lazy
from lamina._C import *  # noqa: F403
from lamina._legacy import *  # noqa: F403
from lamina._ops_namespace import ops
from lamina._type_info import finfo, iinfo, is_storage, typename
from lamina._version import __version__
from lamina.accelerator import Event, Stream
from lamina.functional import (
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    meshgrid,
    nonzero,
)
from lamina.random import (
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from lamina.storage import *  # noqa: F403

newaxis = None
for _name in (
    "_chunk_cat", "_native_batch_norm_legit", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate",
):  # fmt: skip
    globals()[_name] = getattr(_C, _name)

# Names of modules that few programs need; they are imported at the first call.
for _module, _name in (
    ("_tensor_str", "set_printoptions"),
    ("_tensor_str", "get_printoptions"),
    ("_fork_rng", "fork_rng"),
    ("_alias", "install_as_torch"),
    ("compiler", "compile"),
    ("accelerator", "get_device_module"),
    *(
        ("_checks", "_check" + end)
        for end in ("", "_index", "_is_size", "_not_implemented", "_tensor_all", "_tensor_all_with",
                    "_type", "_value", "_with")
    ),
    *(
        ("_settings", name)
        for name in (
            "get_num_interop_threads", "set_num_interop_threads", "use_deterministic_algorithms",
            "are_deterministic_algorithms_enabled", "is_deterministic_algorithms_warn_only_enabled",
            "set_deterministic_debug_mode", "get_deterministic_debug_mode",
            "get_float32_matmul_precision", "set_float32_matmul_precision", "set_warn_always",
            "is_warn_always_enabled", "set_flush_denormal", "set_default_tensor_type", "_assert",
        )
    ),
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina." + _module, _name)
# Operators of a few lines of Python.
for _name in (
    "atleast_2d", "atleast_3d", "aminmax", "cdist", "detach_", "dsplit", "get_device",
    "hsplit", "is_inference", "is_same_size", "is_signed", "isin", "multinomial", "range", "resize_as_",
    "split_copy", "split_with_sizes_copy", "std_mean", "take_along_dim", "tensor_split", "trapezoid", "trapz",
    "tril_indices", "triu_indices", "unbind_copy", "unique", "unique_consecutive", "var_mean", "vsplit",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina._composites", _name)
for _name in ("einsum", "tensordot"):
    globals()[_name] = _lazy.later("lamina._contraction", _name)
for _name in (
    "chain_matmul", "frobenius_norm", "lobpcg", "lu", "norm", "nuclear_norm", "pca_lowrank", "svd_lowrank",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina._linalg", _name)
for _name in (
    "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh",
    "rnn_tanh_cell",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina._recurrent", _name)
# One operator over lists of tensors; see lamina._foreach.
for _name in (
    *(
        name + end
        for name in (
            "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max",
            "clamp_min", "cos", "cosh", "div", "erf", "erfc", "exp", "expm1", "floor", "frac",
            "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg",
            "pow", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub",
            "tan", "tanh", "trunc",
        )
        for end in ("", "_")
    ),
    "clone", "copy_", "max", "mm", "norm", "powsum", "zero_",
):  # fmt: skip
    globals()["_foreach_" + _name] = _lazy.later("lamina._foreach", "_foreach_" + _name)
for _name in ("_fused_adagrad_", "_fused_adam_", "_fused_adamw_", "_fused_sgd_"):
    globals()[_name] = _lazy.later("lamina.optim._fused", _name)
for _name in (
    "is_autocast_enabled", "set_autocast_enabled", "get_autocast_dtype", "set_autocast_dtype",
    "is_autocast_cache_enabled", "set_autocast_cache_enabled", "autocast_increment_nesting",
    "autocast_decrement_nesting", "clear_autocast_cache", "autocast", "is_autocast_cpu_enabled",
    "get_autocast_cpu_dtype", "get_autocast_gpu_dtype",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina.amp.autocast_mode", _name)
_ORDER = ("median", "nanmedian", "kthvalue", "msort", "bincount", "histc")
for _name in (*_ORDER, "searchsorted", "bucketize"):
    globals()[_name] = _lazy.later("lamina._order", _name)
_STATISTICS = ("corrcoef", "cov", "histogram", "mode", "nanquantile", "quantile")
for _name in (
    *_STATISTICS, "combinations", "cumulative_trapezoid", "gradient", "histogramdd", "unravel_index",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina._statistics", _name)
for _name in ("segment_reduce", "_segment_reduce", "hash_tensor"):
    globals()[_name] = _lazy.later("lamina._segments", _name)
for _name in (
    "stft", "istft", "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
):  # fmt: skip
    globals()[_name] = _lazy.later("lamina._spectra", _name)
_scaled_mm = _lazy.later("lamina._composites", "_scaled_mm")
erfinv = _lazy.later("lamina._erfinv", "erfinv")
vmap = _lazy.later("lamina.func", "vmap")
pdist = _lazy.later("lamina.nn.functional", "pdist")
GradScaler = _lazy.later("lamina.amp.grad_scaler", "GradScaler")
for _name in ("from_dlpack", "to_dlpack"):
    globals()[_name] = _lazy.later("lamina.utils.dlpack", _name)
# No __getattr__ here: see lamina._lazy.
_SUBMODULES = (
    "amp",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "explain",
    "fft",
    "func",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "memory",
    "mps",
    "multiprocessing",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "serialization",
    "signal",
    "special",
    "testing",
    "torch_version",
    "types",
    "utils",
    "version",
    "xpu",
    "_dynamo",
    "_tensor_str",
    "_utils",
    "_weights_only_unpickler",
)
torch = _sys.modules[__name__]  # programs find torch.torch, too
for _name in _SUBMODULES:
    _lazy.add_submodule(_sys.modules[__name__], _name)
del _module, _name


# With their own arguments, because programs look at these functions' signatures.
def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol=2,
    _use_new_zipfile_serialization=True,
    _disable_byteorder_record=False,
):
    from lamina import serialization

    serialization.save(
        obj, f, pickle_module or serialization.pickle, pickle_protocol,
        _use_new_zipfile_serialization, _disable_byteorder_record,
    )  # fmt: skip


def load(
    f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args
):
    from lamina import serialization

    return serialization.load(
        f, map_location, pickle_module, weights_only=weights_only, mmap=mmap, **pickle_load_args
    )


_lazy.describe(save, "lamina.serialization", "save", signature=False)
_lazy.describe(load, "lamina.serialization", "load", signature=False)


def _attach():
    """Methods of Tensor that are written in Python; each loads its module at the first call."""

    def forward(name, place):
        def method(self, *args, **kwargs):
            if type(self) is not Tensor and _C._has_torch_function_unary(self):  # noqa: F405
                return _C._handle_torch_function(method, (self,), (self, *args), kwargs)
            from importlib import import_module

            return getattr(import_module("lamina." + place), name)(self, *args, **kwargs)

        method.__name__ = name
        method.__qualname__ = "Tensor." + name
        method.__module__ = "lamina._tensor"
        return _lazy.describe(method, "lamina." + place, name)

    for name in (
        "__deepcopy__",
        "__reduce_ex__",
        "__dir__",
        "__rdivmod__",
        "__divmod__",
        "nonzero",
        "new_tensor",
        "type",
        "storage_type",
        "storage",
        "_typed_storage",
        "set_",
        "is_shared",
        "new",
        "apply_",
        "map_",
        "map2_",
        "is_nonzero",
        "pin_memory",
        "share_memory_",
        "module_load",
        "dim_order",
        "resize",
        "resize_as",
        "record_stream",
        "is_distributed",
        "is_coalesced",
        "coalesce",
        "indices",
        "values",
        "_indices",
        "_values",
        "dequantize",
        "to_dense",
        "__dlpack__",
        "__dlpack_device__",
        "__array_wrap__",
        "__reversed__",
        "__setstate__",
    ):
        setattr(Tensor, name, forward(name, "_tensor"))  # noqa: F405
    for name in (
        "aminmax", "hsplit", "vsplit", "dsplit", "multinomial", "resize_as_", "take_along_dim",
        "tensor_split", "unique", "unique_consecutive", "fill_diagonal_",
    ):  # fmt: skip
        setattr(Tensor, name, forward(name, "_composites"))  # noqa: F405
    for name in ("lu", "norm"):
        setattr(Tensor, name, forward(name, "_linalg"))  # noqa: F405
    for name in ("erfinv", "erfinv_"):
        setattr(Tensor, name, forward(name, "_erfinv"))  # noqa: F405
    for name in _STATISTICS:
        setattr(Tensor, name, forward(name, "_statistics"))  # noqa: F405
    for name in ("stft", "istft"):
        setattr(Tensor, name, forward(name, "_spectra"))  # noqa: F405
    Tensor.hash_tensor = forward("hash_tensor", "_segments")  # noqa: F405
    for name in _ORDER:
        setattr(Tensor, name, forward(name, "_order"))  # noqa: F405
    Tensor.__div__ = Tensor.__truediv__  # noqa: F405
    Tensor.__rdiv__ = Tensor.__rtruediv__  # noqa: F405
    Tensor.__idiv__ = Tensor.__itruediv__  # noqa: F405
    Tensor.__array_priority__ = 1000  # noqa: F405
    Tensor.__module__ = "lamina"  # noqa: F405
    _C._TensorMeta = type(Tensor)  # noqa: F405


_attach()
del _attach
