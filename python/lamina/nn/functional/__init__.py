"""Operators of neural networks: ``lamina.nn.functional``.

Thin signatures over the operators of the op list (``lamina._C``); what differs from the operator is only how options
are spelled (``inplace=``, ``reduction='mean'``). One file a subject; this one only gathers them.
"""

from importlib import import_module as _import_module

from lamina._C import _submodule_functions
from lamina.nn.functional._multi_head_attention import (  # noqa: F401
    _canonical_mask,
    _in_projection,
    _in_projection_packed,
    _mha_shape_check,
    _none_or_dtype,
)

__all__ = list(_submodule_functions["nn.functional"])  # linear, gelu, softplus
for _name in (
    "_activation", "_ctc", "_dropout", "_embedding", "_linear_cross_entropy", "_loss",
    "_multi_head_attention", "_normalization", "_padding", "_pdist", "_pooling", "_vision",
):  # fmt: skip
    _part = _import_module("lamina.nn.functional." + _name)
    globals().update({_name: getattr(_part, _name) for _name in _part.__all__})
    __all__ += _part.__all__
del _name, _part
globals().update(_submodule_functions["nn.functional"])
__all__ = sorted(set(__all__))
