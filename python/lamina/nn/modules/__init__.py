"""The modules, one file a subject."""

from importlib import import_module as _import_module

from lamina.nn.modules.linear_cross_entropy_options import (  # noqa: F401
    LinearCrossEntropyOptions,
)
from lamina.nn.modules.module import Module  # noqa: F401

__all__ = ["LinearCrossEntropyOptions", "Module"]
for _name in (
    "activation", "adaptive", "batchnorm", "channelshuffle", "container", "conv", "distance",
    "dropout", "flatten", "fold", "instancenorm", "linear", "loss", "normalization", "padding",
    "pixelshuffle", "pooling", "rnn", "sparse", "transformer", "upsampling",
):  # fmt: skip
    _file = _import_module("lamina.nn.modules." + _name)
    globals().update({_name: getattr(_file, _name) for _name in _file.__all__})
    __all__ += _file.__all__
del _file, _name
__all__.sort()
