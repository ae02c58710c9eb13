"""Looking through the floors: what calls did, recorded graphs, and the memory they hold.

``lamina.explain(fn, *args)`` and ``with lamina.explain() as e:`` show calls floor by floor; `graph` the recorded program
behind a tensor; `memory` which forward line holds which bytes for backward.
"""

import sys
import types

from lamina.explain._explanation import Difference, Explanation
from lamina.explain._graph import Graph, graph
from lamina.explain._memory import MemoryReport, memory

__all__ = ["Difference", "Explanation", "Graph", "MemoryReport", "graph", "memory"]


class _CallableModule(types.ModuleType):
    def __call__(self, fn=None, /, *args, **kwargs) -> Explanation:
        """Watches ``fn(*args, **kwargs)``, or, without a function, is the block to be watched."""
        explanation = Explanation()
        if fn is not None:
            with explanation:
                explanation.result = fn(*args, **kwargs)
        return explanation


sys.modules[__name__].__class__ = _CallableModule
