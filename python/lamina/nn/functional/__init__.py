"""Operators of neural networks: ``lamina.nn.functional``.

Thin signatures over the operators of the op list (``lamina._C``); what differs from the operator is only how options
are spelled (``inplace=``, ``reduction='mean'``). One file a subject; this one only gathers them.
"""

from lamina._C import _submodule_functions
from lamina.nn.functional import (
    _activation,
    _ctc,
    _dropout,
    _embedding,
    _linear_cross_entropy,
    _loss,
    _multi_head_attention,
    _normalization,
    _padding,
    _pdist,
    _pooling,
    _vision,
)
from lamina.nn.functional._multi_head_attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)

_PARTS = (
    _activation,
    _ctc,
    _dropout,
    _embedding,
    _linear_cross_entropy,
    _loss,
    _multi_head_attention,
    _normalization,
    _padding,
    _pdist,
    _pooling,
    _vision,
)
for _part in _PARTS:
    globals().update({name: getattr(_part, name) for name in _part.__all__})
globals().update(_submodule_functions["nn.functional"])  # linear, gelu, softplus

__all__ = sorted({*_submodule_functions["nn.functional"], *(n for p in _PARTS for n in p.__all__)})
