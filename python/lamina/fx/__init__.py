"""Programs as graphs: symbolic tracing, graphs that can be edited, modules generated from them.

`symbolic_trace` runs a module once with proxies instead of tensors and records what it does. The result is a GraphModule: its ``graph`` is
a list of nodes, its ``code`` the same as Python, and calling it runs that code.
"""

from lamina.fx import graph as graph
from lamina.fx import graph_module as graph_module
from lamina.fx import immutable_collections as immutable_collections
from lamina.fx import interpreter as interpreter
from lamina.fx import node as node
from lamina.fx import passes as passes
from lamina.fx import proxy as proxy
from lamina.fx import subgraph_rewriter as subgraph_rewriter
from lamina.fx._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from lamina.fx.graph import CodeGen, Graph
from lamina.fx.graph_module import GraphModule
from lamina.fx.interpreter import Interpreter, Transformer
from lamina.fx.node import Node, has_side_effect, map_arg
from lamina.fx.proxy import Proxy
from lamina.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
