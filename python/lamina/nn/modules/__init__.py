"""The modules, one file a subject."""

from lamina.nn.modules import activation, container, distance, dropout, flatten, linear, loss
from lamina.nn.modules.module import Module

__all__ = ["Module"]
for _file in (activation, container, distance, dropout, flatten, linear, loss):
    for _name in _file.__all__:
        globals()[_name] = getattr(_file, _name)
    __all__ += _file.__all__
del _file, _name
__all__.sort()
