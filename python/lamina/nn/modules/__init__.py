"""The modules, one file a subject."""

from lamina.nn.modules import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from lamina.nn.modules.linear_cross_entropy_options import (  # noqa: F401
    LinearCrossEntropyOptions,
)
from lamina.nn.modules.module import Module  # noqa: F401

__all__ = ["LinearCrossEntropyOptions", "Module"]
for _file in (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
):
    for _name in _file.__all__:
        globals()[_name] = getattr(_file, _name)
    __all__ += _file.__all__
del _file, _name
__all__.sort()
