"""Looking through the floors: recorded graphs and the memory they hold."""

from lamina.explain._graph import Graph, graph
from lamina.explain._memory import MemoryReport, memory

__all__ = ["Graph", "MemoryReport", "graph", "memory"]
