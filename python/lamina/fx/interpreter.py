"""Running a graph node by node, and building another while doing so."""

from lamina.fx._symbolic_trace import Tracer
from lamina.fx.graph import Graph
from lamina.fx.graph_module import GraphModule
from lamina.fx.node import map_aggregate, map_arg
from lamina.fx.proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule node by node; derive from it to look at or change what a kind of node does.

    Parameters
    ----------
    module : Module
    garbage_collect_values : bool
        Whether a value is dropped when its last reader has run.
    graph : Graph, optional
        The graph to run; that of the module otherwise.
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph = module.graph if graph is None else graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = {}
        if garbage_collect_values:
            seen = set()
            for node in reversed(self.graph.nodes):
                for read in node.all_input_nodes:
                    if read not in seen:
                        seen.add(read)
                        self.user_to_last_uses.setdefault(node, []).append(read)

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """Run the graph with arguments.

        Parameters
        ----------
        *args
            Values of the inputs, in order.
        initial_env : dict, optional
            Values of nodes that need not run.
        enable_io_processing : bool
            Whether inputs and outputs take the form that the graph's CodeGen gives them.

        Returns what the graph gives. An error says in its text which node was running.
        """
        self.env = dict(initial_env or {})
        codegen = self.graph._codegen
        if enable_io_processing:
            args = codegen.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback and e.args and isinstance(e.args[0], str):
                    note = f"While executing {node.format_node()}"
                    if note not in e.args[0]:
                        e.args = (f"{e.args[0]}\n\n{note}", *e.args[1:])
                raise
            if self.garbage_collect_values:
                for read in self.user_to_last_uses.get(node, ()):
                    self.env.pop(read, None)
            if node.op == "output":
                value = self.env[node]
                return codegen.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list):
        """Run with arguments in a list, which is emptied so that they can be freed early."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n):
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """The next input: all that are left for one with a star. Raises RuntimeError where there is none and no default."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Interpreter: expected a positional argument for the parameter {target}; got none"
            ) from None

    def get_attr(self, target, args, kwargs):
        """The attribute at a dotted path."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """What the function gives."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """What the method of the first argument gives."""
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """What the submodule gives."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target):
        """An attribute of the module by its dotted path. Raises RuntimeError that says how far it leads."""
        value = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n):
        """A node's arguments with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Nested arguments with values in place of nodes."""

        def load(read):
            if read not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {read}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[read]

        return map_arg(args, load)


class TransformerTracer(Tracer):
    """The tracer of a Transformer: every module is one node."""

    def __init__(self, graph):
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, _, __):
        """Always true."""
        return True


class Transformer(Interpreter):
    """An Interpreter that runs with proxies and so makes a new GraphModule; derive from it to change the kinds of nodes.

    Parameters
    ----------
    module : GraphModule
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module
        self.tracer.root_is_module = True

    def placeholder(self, target, args, kwargs):
        """A proxy of an input."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target, args, kwargs):
        """A proxy of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        """A proxy of a call of a module."""
        return self.tracer.call_module(
            self.fetch_attr(target), self.submodules[target].forward, args, kwargs
        )

    def call_function(self, target, args, kwargs):
        """A proxy of a call of a function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        """A proxy of a call of a method."""
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self):
        """The new GraphModule."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            strip = lambda a: a.node if isinstance(a, Proxy) else a  # noqa: E731
            made = self.new_graph.output(map_aggregate(result, strip))
            old = self.graph.output_node()
            made.type, made.meta = old.type, dict(old.meta)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)
