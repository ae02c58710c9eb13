"""GraphModule: a module whose forward is generated from a graph."""

import copy
import itertools
import linecache
import os
import sys
import traceback
from pathlib import Path

import lamina
from lamina.fx._codegen import _format_target, _import_of
from lamina.fx.graph import Graph
from lamina.nn import Module

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = itertools.count()


def _run_source(src, names, co_fields=None):
    """Run generated source; tracebacks show its lines."""
    key = f"<eval_with_key>.{next(_numbers)}"
    if co_fields:
        key += f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
    exec(compile(src, key, "exec"), names)
    linecache.cache[key] = (len(src), None, src.splitlines(keepends=True), key)


def _forward_from_src(src, names, co_fields=None):
    names = dict(names)
    _run_source(src, names, co_fields)
    return names["forward"]


def _format_import_block(names):
    return "\n".join(sorted(_import_of(name, value) for name, value in names.items()))


def _parent(module, path):
    """The module that holds the last part of a dotted path, and that part."""
    *parts, last = path.split(".")
    for part in parts:
        module = getattr(module, part)
    return module, last


def _copy_attr(from_module, to_module, target):
    """Share the attribute at a dotted path; empty modules are made on the way."""
    *prefix, field = target.split(".")
    for part in prefix:
        source, place = getattr(from_module, part), getattr(to_module, part, None)
        if place is source:
            return
        if place is None:
            place = Module()
            setattr(to_module, part, place)
        from_module, to_module = source, place
    _put(to_module, field, getattr(from_module, field))


def _assign_attr(value, to_module, target):
    """Put a value at a dotted path."""
    *prefix, field = target.split(".")
    for part in prefix:
        if not hasattr(to_module, part):
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    _put(to_module, field, value)


def _put(module, field, value):
    if isinstance(value, lamina.Tensor) and not isinstance(value, lamina.nn.Parameter):
        if field in module._buffers or not hasattr(module, field):
            module.register_buffer(field, value)
            return
    setattr(module, field, value)


class _CodeOnlyModule(Module):
    """A module with the state of another, to be traced again."""

    def __init__(self, body):
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body, import_block):
    """The GraphModule of a pickle: its code is loaded and traced again."""
    body = dict(body)
    forward = _forward_from_src(import_block + body["_code"], {})
    return _retraced(forward, body)


def _retraced(forward, body):
    name = body.get("_graphmodule_cls_name", "GraphModule")
    shell = type(name, (_CodeOnlyModule,), {"forward": forward})(body)
    tracer_cls = body.get("_tracer_cls")
    if tracer_cls is None:
        from lamina.fx._symbolic_trace import Tracer as tracer_cls

    class KeepModules(tracer_cls):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    graph = KeepModules().trace(shell, **(body.get("_tracer_extras") or {}))
    graph._tracer_cls = tracer_cls
    made = GraphModule(shell, graph, class_name=name)
    for key, value in body.items():
        if not hasattr(made, key):
            setattr(made, key, value)
    return made


class GraphModule(Module):
    """A module made of a graph: ``graph`` to read and edit, ``code`` what it does as Python, and a forward that runs that code.

    Parameters
    ----------
    root : Module or dict
        Where the attributes that the graph names come from; a dictionary has them by dotted path.
    graph : Graph
    class_name : str
        The name of its type.

    After changes of the graph, `recompile` brings ``code`` and forward up to date; assigning ``graph`` does too.
    Raises RuntimeError where a dictionary lacks a name, and ValueError for another kind of root.
    """

    def __new__(cls, *args, **kwargs):
        # Each has a type of its own, since forward is an attribute of the type.
        base = next(c for c in cls.__mro__ if "_is_instance_type" not in vars(c))
        made = type(
            base.__name__,
            (base,),
            {"_is_instance_type": True, "__module__": base.__module__, "__doc__": base.__doc__},
        )
        return super().__new__(made)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        named = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in named:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in named:
                if target not in root:
                    raise RuntimeError(
                        f"GraphModule: the graph names {target!r}, which the given dictionary does not have"
                    )
            for target in sorted(set(named), key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise ValueError(
                f"GraphModule: expected a Module or a dict as the root; got {type(root).__name__}"
            )
        self.graph = graph
        self._tracer_cls = None
        tracer_cls = self.graph._tracer_cls
        if tracer_cls and "<locals>" not in tracer_cls.__qualname__:
            self._tracer_cls = tracer_cls
        self._tracer_extras = self.graph._tracer_extras or {}
        self.meta = {}
        self._replace_hooks, self._create_node_hooks, self._erase_node_hooks = [], [], []
        if _USER_PRESERVED_ATTRIBUTES_KEY in getattr(root, "meta", {}):
            self.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = root.meta[_USER_PRESERVED_ATTRIBUTES_KEY]

    @property
    def graph(self):
        """The graph; assigning another takes that over (a copy where a module owns it already) and recompiles."""
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"GraphModule.graph: expected a Graph; got {type(graph).__name__}")
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        """The source of forward."""
        if not hasattr(self, "_code"):
            raise RuntimeError("GraphModule.code: nothing has been generated yet; call recompile")
        return self._code

    def recompile(self):
        """Write and load the code of the graph as it is now; returns the PythonCode."""
        made = self._graph.python_code("self")
        self._code = made.src
        # `wrap` in the source is for loading it elsewhere: here the functions are at hand.
        names = {**made.globals, "torch": lamina}
        src = "\n".join(
            line
            for line in made.src.splitlines()
            if not line.startswith("torch.fx._symbolic_trace.wrap(")
        )
        cls = type(self)
        cls.forward = _forward_from_src(src + "\n", names, getattr(self._graph, "_co_fields", None))
        return made

    def __call__(self, *args, **kwargs):
        try:
            return Module.__call__(self, *args, **kwargs)
        except Exception as e:
            self._show_where(e)
            raise

    @staticmethod
    def _show_where(error):
        """Print the generated code around the line that failed, once."""
        frames = traceback.extract_tb(error.__traceback__)
        last = frames[-1] if frames else None
        if last is None or not last.filename.startswith("<eval_with_key>"):
            return
        lines = linecache.getlines(last.filename)
        here = lines[max(0, last.lineno - 4) : last.lineno]
        print(
            f"Call of {type(error).__name__} in generated code, line {last.lineno}:\n"
            + "".join(here)
            + "    ~~~ <--- HERE",
            file=sys.stderr,
        )

    def add_submodule(self, target, m):
        """Put a module at a dotted path, empty modules before it where needed; returns whether that was possible."""
        *prefix, field = target.split(".")
        place = self
        for part in prefix:
            inner = getattr(place, part, None)
            if inner is None:
                inner = Module()
                setattr(place, part, inner)
            if not isinstance(inner, Module):
                return False
            place = inner
        place.add_module(field, m)
        return True

    def delete_submodule(self, target):
        """Take out the module at a dotted path; returns whether it was there."""
        try:
            place, field = _parent(self, target)
        except AttributeError:
            return False
        if not isinstance(getattr(place, field, None), Module):
            return False
        delattr(place, field)
        return True

    def delete_all_unused_submodules(self):
        """Take out the modules that no node of the graph calls or reads."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    try:
                        used.update(f"{node.target}.{n}" for n, _ in self.get_submodule(node.target).named_modules())  # fmt: skip
                    except AttributeError:
                        pass
        for name in [n for n, _ in self.named_modules()]:
            if name and name not in used:
                self.delete_submodule(name)

    def to_folder(self, folder, module_name="FxModule"):
        """Write the module as a package: its code, with a class that loads its state from files beside it."""
        folder = Path(folder)
        os.makedirs(folder, exist_ok=True)
        lamina.save(self.state_dict(), folder / "state_dict.pt")
        made = self._graph.python_code("self")
        lines = [
            _format_import_block(made.globals),
            "from pathlib import Path",
            "",
            f"class {module_name}(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        for name, child in self.named_children():
            lamina.save(child, folder / f"{name}.pt")
            lines.append(
                f"        self.add_module({name!r}, torch.load(Path(__file__).parent / '{name}.pt', weights_only=False))"
            )
        for kind, table in (("Parameter", self._parameters), ("Buffer", self._buffers)):
            for name, value in table.items():
                if value is not None:
                    empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                    put = (
                        f"self.{name} = torch.nn.Parameter({empty})"
                        if kind == "Parameter"
                        else f"self.register_buffer({name!r}, {empty})"
                    )
                    lines.append(f"        {put}")
        lines.append(
            "        self.load_state_dict(torch.load(Path(__file__).parent / 'state_dict.pt'))"
        )
        lines += ["    " + line for line in made.src.splitlines()]
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *\n")

    def print_readable(
        self, print_output=True, include_stride=False, include_device=False, colored=False, **_
    ):
        """The code as that of a class, with the GraphModules inside after it; prints and returns it."""
        text = self._readable(self._get_name())
        if print_output:
            print(text)
        return text

    def _readable(self, name):
        body = self._graph.python_code("self", verbose=True).src.strip("\n").rstrip()
        lines = [f"class {name}(torch.nn.Module):", *("    " + line for line in body.splitlines())]
        text = "\n".join(lines) + "\n"
        for inner, child in self.named_children():
            if isinstance(child, GraphModule):
                text += (
                    "\n"
                    + "\n".join("    " + line for line in child._readable(inner).splitlines())
                    + "\n"
                )
        return text

    def _deepcopy_init(self):
        return GraphModule.__init__

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        shell = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, shell, shell.__dict__["_graph"])
        type(made).__name__ = type(self).__name__
        for key, value in shell.__dict__.items():
            if "hooks" in key and key in self.__dict__:
                made.__dict__[key] = value
        made.meta = shell.__dict__.get("meta", {})
        for key, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, key, value)
        return made

    def __copy__(self):
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = self.meta
        return made

    def __reduce__(self):
        body = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("_graph", "_create_node_hooks", "_erase_node_hooks", "_replace_hooks")
        }
        body["_graphmodule_cls_name"] = type(self).__name__
        made = self._graph.python_code("self")
        body["_code"] = made.src
        return reduce_graph_module, (body, _format_import_block(made.globals) + "\n")

    def __reduce_ex__(self, protocol):
        return self.__reduce__()

    def _get_name(self):
        return type(self).__name__

    def __str__(self):
        return f"{super().__str__()}\n{self._code}\n# To see more debug info, please use `graph_module.print_readable()`"


# Named here in PyTorch; subclasses of tracers and modules look for them.
_format_target = _format_target
