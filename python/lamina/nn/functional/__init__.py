"""Operators of neural networks: ``lamina.nn.functional``.

Thin signatures over the operators of the op list (``lamina._C``); what differs from the operator is only how options
are spelled (``inplace=``, ``reduction='mean'``). One file a subject; this one only gathers them.
"""

from lamina._C import _submodule_functions
from lamina.nn.functional import _activation, _loss, _multi_head_attention, _normalization
from lamina.nn.functional._activation import *  # noqa: F403
from lamina.nn.functional._loss import *  # noqa: F403
from lamina.nn.functional._multi_head_attention import *  # noqa: F403
from lamina.nn.functional._multi_head_attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)
from lamina.nn.functional._normalization import *  # noqa: F403

globals().update(_submodule_functions["nn.functional"])  # linear, gelu, softplus

__all__ = sorted(
    {
        *_submodule_functions["nn.functional"],
        *_activation.__all__,
        *_loss.__all__,
        *_multi_head_attention.__all__,
        *_normalization.__all__,
    }
)
