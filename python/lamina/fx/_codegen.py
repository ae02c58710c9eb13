"""Python source from the nodes of a graph."""

import enum
import math
import types
import typing
from dataclasses import dataclass, field

import lamina
from lamina import _C
from lamina.fx.node import (
    _BINARY,
    Node,
    _get_qualified_name,
    _resolve,
    _same,
    _type_repr,
    inplace_methods,
    map_arg,
)

# Names that the reprs of arguments use.
_custom_builtins = {
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "torch": lamina,
    "device": _C.device,
}
_IMPORTS = {
    "inf": "from math import inf",
    "nan": "from math import nan",
    "NoneType": "NoneType = type(None)",
    "torch": "import lamina as torch",
    "device": "from lamina import device",
}

_UNARY = {"pos": "+", "neg": "-", "invert": "~"}
magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in _BINARY.items()},
    **{name: f"{sign}{{}}" for name, sign in _UNARY.items()},
    "getitem": "{}[{}]",
}


@dataclass
class PythonCode:
    """Generated source and the globals that it names."""

    src: str
    globals: dict[str, typing.Any]
    _wraps: list = field(default_factory=list)


def _format_target(base, target):
    """An attribute's path as an expression; parts that are no identifiers are looked up by getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _import_of(name, value):
    """The line that makes a global again where the code is loaded."""
    if name in _IMPORTS:
        return _IMPORTS[name]
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}"
    module, qualified = (
        getattr(value, "__module__", None),
        getattr(value, "__qualname__", "<locals>"),
    )
    if module == "typing":
        return f"from typing import {value._name if hasattr(value, '_name') else value.__name__} as {name}"
    if not module or "<" in qualified or "." in qualified:
        raise RuntimeError(
            f"GraphModule: {value!r} is called in the graph and cannot be imported where the module is loaded; define it at the top of a module"
        )
    if module in ("torch", "lamina") or module.startswith(("torch.", "lamina.")):
        module = "lamina" + module[len(module.partition(".")[0]) :]
    return f"from {module} import {qualified} as {name}"


class CodeGen:
    """Writes the function that a graph stands for; derive from it to write another form."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args, *, descs=None):
        """The return statement, given the output's argument."""
        return f"return {output_args!r}"

    def process_inputs(self, *args):
        """Inputs as the graph takes them."""
        return args

    def process_outputs(self, outputs):
        """What the graph gave, as the function gives it."""
        return outputs

    def additional_globals(self):
        """Pairs of names and values that this form of code needs."""
        return []

    def _gen_python_code(self, nodes, root_module, namespace, *, verbose=False):
        return _Writer(self, nodes, root_module, namespace).write(verbose)


class _Raw(str):
    """Text that is shown without quotes."""

    def __repr__(self):
        return str(self)


class _Writer:
    """One run of a CodeGen."""

    def __init__(self, codegen, nodes, root_module, namespace):
        self.codegen, self.nodes, self.root, self.namespace = codegen, nodes, root_module, namespace
        self.globals, self.wraps = {}, []
        self.free_vars, self.body, self.return_annotation = [], [], ""

    def add_global(self, hint, obj):
        """The name by which the code reaches an object."""
        module = getattr(obj, "__module__", None)
        is_own = isinstance(module, str) and module.partition(".")[0] in ("lamina", "torch")
        if is_own and obj is not _C.device and _same(_resolve(hint), obj):
            return hint
        if isinstance(
            obj, (types.MethodDescriptorType, types.WrapperDescriptorType)
        ) and hint.startswith("torch."):
            return hint
        hint = hint.replace(".", "_").replace("<", "_").replace(">", "_")
        if self.globals.get(hint, self) is obj:
            return hint
        name = self.namespace.create_name(hint, obj)
        self.globals[name] = obj
        return name

    def type_text(self, kind):
        """An annotation."""
        if kind in ((), None):
            return "()" if kind == () else "None"
        origin = getattr(kind, "__origin__", None)
        if isinstance(kind, type) and origin is None:
            return (
                kind.__qualname__
                if kind.__module__ == "builtins"
                else self.add_global(_type_repr(kind), kind)
            )
        if isinstance(kind, str):
            return repr(kind)
        if kind is ...:
            return "..."
        if isinstance(kind, list):
            return f"[{','.join(map(self.type_text, kind))}]"
        if isinstance(kind, types.UnionType):
            origin = typing.Union
        if origin is None:
            return self.add_global(str(kind), kind)
        inner = ",".join(self.type_text(k) for k in kind.__args__)
        if isinstance(kind, types.GenericAlias):
            return f"{self.type_text(origin)}[{inner}]"
        name = "Union" if origin is typing.Union else kind._name
        return f"{self.add_global(f'typing.{name}', getattr(typing, name))}[{inner}]"

    def show(self, arg):
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            name = self.add_global(f"{type(arg).__module__}.{type(arg).__name__}", type(arg))
            return f"{name}({', '.join(map(self.show, arg))})"
        if isinstance(arg, _C.Size):
            return f"torch.Size([{', '.join(map(self.show, arg))}])"
        if isinstance(arg, tuple):
            inner = ", ".join(map(self.show, arg))
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.show, arg))}]"
        if isinstance(arg, dict):
            return f"{{{', '.join(f'{k!r}: {self.show(v)}' for k, v in arg.items())}}}"
        if isinstance(arg, slice):
            return f"slice({self.show(arg.start)}, {self.show(arg.stop)}, {self.show(arg.step)})"
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(_type_repr(type(arg)), type(arg))}.{arg.name}"
        if isinstance(arg, type):
            return self.type_text(arg)
        if (
            callable(arg)
            and not isinstance(arg, (_C.dtype, _C.device))
            and hasattr(arg, "__name__")
        ):
            return self.add_global(_get_qualified_name(arg), arg)
        return repr(arg)

    def show_all(self, args, kwargs):
        return ", ".join(
            [*map(self.show, args), *(f"{k} = {self.show(v)}" for k, v in kwargs.items())]
        )

    def operand(self, arg):
        """An operand: what would bind otherwise beside an operator stands in parentheses."""
        text = self.show(arg)
        return (
            f"({text})" if isinstance(arg, (int, float, complex)) and text.startswith("-") else text
        )

    def last_uses(self):
        """For each node the values that nobody reads after it."""
        seen, dying = set(), {}
        for node in reversed(self.nodes):

            def note(arg, node=node):
                if arg not in seen:
                    seen.add(arg)
                    dying.setdefault(node, []).append(arg)
                return arg

            map_arg((node.args, node.kwargs), note)
        return dying

    def write(self, verbose=False):
        """The PythonCode of the graph."""
        for name, value in _custom_builtins.items():
            self.globals[name] = value
            self.namespace.create_name(name, value)
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        dying, shown = self.last_uses(), None
        for node in self.nodes:
            line = self.statement(node)
            if line is None:
                continue
            if verbose and node.op not in ("placeholder", "output"):
                trace = node.stack_trace or "No stacktrace found for following nodes"
                if trace != shown:
                    self.body.append(f"# {trace.strip().splitlines()[-1].strip()}\n")
                shown = trace
            unused = [] if node.op == "output" else list(dying.get(node, ()))
            if node.op not in ("output", "placeholder") and not node.users:
                unused.append(node)
            if node.op == "placeholder":
                unused = []
            tail = ";  " + " = ".join([*map(repr, unused), "None"]) if unused else ""
            self.body.append(f"{line}{tail}\n")
        code = "".join("    " + line for line in self.body or ["pass\n"]) + "    "
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wraps)
        head = self.codegen.gen_fn_def(self.free_vars, self.return_annotation)
        return PythonCode(f"\n{wraps}\n\n{head}\n{code}", self.globals, self.wraps)

    def statement(self, node):
        """The statement of a node, or None where it needs none."""
        kind = "" if node.type is None else f" : {self.type_text(node.type)}"
        if node.op == "placeholder":
            default = f" = {self.show(node.args[0])}" if node.args else ""
            self.free_vars.append(f"{node.target}{kind}{default}")
            raw = node.target.replace("*", "")
            return f"{node!r} = {raw}" if raw != repr(node) else None
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_text(node.type)}"
            value = node.args[0] if node.args else None
            return self.codegen.generate_output(_Raw(self.show(value)))
        left = f"{node!r}{kind} = "
        if node.op == "get_attr":
            return left + _format_target(self.root, node.target)
        if node.op == "call_module":
            return f"{left}{_format_target(self.root, node.target)}({self.show_all(node.args, node.kwargs)})"
        if node.op == "call_method":
            return f"{left}{self.operand(node.args[0])}.{node.target}({self.show_all(node.args[1:], node.kwargs)})"
        return self.call(node, left)

    def call(self, node, left):
        """The statement of a call_function node."""
        target, args = node.target, node.args
        name = getattr(target, "__name__", "function")
        is_operator = getattr(target, "__module__", None) == "_operator" and not node.kwargs
        if is_operator and name in magic_methods:
            # A sign in front binds weaker than the power.
            shown = [self.operand(a) if name == "pow" else self.show(a) for a in args]
            return left + magic_methods[name].format(*shown)
        if is_operator and name in inplace_methods:
            return f"{inplace_methods[name].format(*map(self.show, args))};  {left}{self.show(args[0])}"
        if (
            target is getattr
            and len(args) == 2
            and isinstance(args[1], str)
            and args[1].isidentifier()
        ):
            return f"{left}{self.operand(args[0])}.{args[1]}"
        qualified = _get_qualified_name(target) if hasattr(target, "__name__") else name
        written = self.add_global(qualified, target)
        if node.meta.get("is_wrapped") and written not in self.wraps:
            self.wraps.append(written)
        return f"{left}{written}({self.show_all(args, node.kwargs)})"
