"""From the source in a TorchScript archive to functions: parsed, checked node by node, written anew, compiled.

Nothing of the source is compiled as it stands. Every node that may occur has a rule below which makes a new node;
what has no rule is an error, so the functions that come out can reach exactly what the rules give them: their own
variables, constants, other definitions of the archive and the operators of `_operators`. Globals get names that are
no identifiers ("torch.add"), hence no variable can stand for one. Attributes are read and set through functions which
know only what the archive declares, never through Python's.
"""

import ast
import builtins
import collections
import enum
import math
import re
import textwrap
import types
import warnings

import lamina
from lamina._missing import missing

from ._objects import Members, ScriptClass, ScriptObject, attribute, set_attribute
from ._operators import called_in, operator_called

_DEPTH = 200  # of expressions and blocks in each other
_MOST_SOURCE = 8 << 20
_CASTS = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "complex": complex,
    "print": print,
    "sorted": sorted,
    "len": len,
    "abs": abs,
    "min": min,
    "max": max,
    "divmod": divmod,
    "ord": ord,
    "chr": chr,
    "hex": hex,
    "oct": oct,
    "bin": bin,
    "round": round,
    "sum": sum,
    "any": any,
    "all": all,
}
_REALS = {
    "inf": math.inf,
    "nan": math.nan,
    "infj": complex(0, math.inf),
    "nanj": complex(0, math.nan),
}
_CASTS["range"] = range
_IDENTIFIER = re.compile(r"(?!__)[^\W\d]\w*\Z")
_METHODS = frozenset(
    "__init__ __len__ __contains__ __getitem__ __setitem__ __delitem__ __enter__ __exit__ __getstate__ __setstate__ "
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __add__ __sub__ __mul__ __truediv__ __floordiv__ __mod__ __neg__ "
    "__pow__ __matmul__ __and__ __or__ __xor__ __bool__ __str__ __hash__ __int__ __float__ __abs__ __call__ "
    "__iter__ __next__ __reversed__ __copy__ __deepcopy__ __dir__ __annotations__".split()
)  # fmt: skip


class SourceError(RuntimeError):
    """The source of an archive holds what a TorchScript program cannot hold, or is broken."""


class Unit:
    """All definitions of an archive. `source_of(path)` gives text of a file below ``code/``, None where there is none."""

    def __init__(self, source_of):
        self._source_of = source_of
        self._files, self._classes, self._waiting, self._size = {}, {}, [], 0
        self._settling = False
        self.globals = {
            "__builtins__": {},
            "__name__": "torchscript",
            "attribute:": attribute,
            "set:": set_attribute,
            "call:": self._callable,
            "isinstance:": _is_a,
        }
        for name, value in {**_CASTS, **_REALS}.items():
            self.globals[name + ":"] = value

    def __deepcopy__(self, memo):
        return self

    def _callable(self, value):
        """A variable may be called where it holds a function of the archive."""
        if isinstance(value, types.FunctionType) and value.__globals__ is self.globals:
            return value
        raise TypeError(f"a TorchScript program calls {type(value).__name__}, which is no function")

    # ---- files and definitions ----

    def _definitions(self, module):
        """Definitions by name in the file of a qualified module name; None where there is no such file."""
        if module in self._files:
            return self._files[module]
        path = module.replace(".", "/") + ".py"
        source = self._source_of(path)
        if source is None:
            self._files[module] = None
            return None
        self._size += len(source)
        if self._size > _MOST_SOURCE:
            raise SourceError(
                f"torch.jit.load: the archive has more than {_MOST_SOURCE} bytes of source"
            )
        found = {}
        for node in _parsed(source, path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                found[node.name] = (node, source, path)
            elif not (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == "op_version_set"
            ):
                raise _refused(path, node, type(node).__name__)
        self._files[module] = found
        return found

    def find(self, name):
        """(node, source, path) of a definition, by its qualified name; None where there is none."""
        module, _, short = name.rpartition(".")
        return (self._definitions(module) or {}).get(short) if module else None

    def class_of(self, name):
        """The class of a qualified name. Raises SourceError where the archive has none."""
        if name in self._classes:
            return self._classes[name]
        found = self.find(name)
        if found is None or not isinstance(found[0], ast.ClassDef):
            raise SourceError(
                f"torch.jit.load: Unknown type name '{name}': the archive has no such class"
            )
        node, source, path = found
        made = self._classes[name] = _class_from(name, node, source, path)
        for method in made.nodes:
            self._waiting.append((made, method, path, source))
        return made

    def reference(self, name):
        """The name of the global for a qualified name ``__torch__.…``; what it means is made when it is asked for first."""
        if name in self.globals:
            return name
        found = self.find(name)
        if found is None:
            owner, _, member = name.rpartition(".")
            if self.find(owner) is not None:
                kind = self.class_of(owner)
                if kind.kind == "Enum" and member in kind.made.__members__:
                    self.globals[name] = kind.made[member]
                    return name
            raise SourceError(f"torch.jit.load: the archive does not define '{name}'")
        node, source, path = found
        if isinstance(node, ast.ClassDef):
            kind = self.class_of(name)
            self.globals[name] = kind.made or kind
        else:
            self.globals[name] = None  # made by settle
            self._waiting.append((None, node, path, source, name))
        return name

    def settle(self):
        """Compile everything that was asked for, and what that asks for."""
        if self._settling:
            return
        self._settling = True
        try:
            while self._waiting:
                self._compile(*self._waiting.pop())
        except RecursionError:
            raise SourceError("torch.jit.load: the source is nested too deeply") from None
        finally:
            self._settling = False

    def _compile(self, owner, node, path, source, name=None):
        if owner is not None:
            method = node
            node, name = owner.nodes[method], f"{owner.name}.{method}"
            owner.sources[method] = (source, node)
        function = _Function(self, path).written(node, "def:" + name, owner is not None)
        module = ast.Module([function], [])
        ast.fix_missing_locations(module)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = builtins.compile(module, "code/" + path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise SourceError(f"torch.jit.load: code/{path}: {error}") from None
        waiting = {}
        exec(code, self.globals, waiting)
        made = waiting["def:" + name]
        made.__name__ = made.__qualname__ = name.rpartition(".")[2]
        if owner is not None:
            owner.methods[method] = made
        else:
            self.globals[name] = made


def _refused(path, node, what):
    line = getattr(node, "lineno", 0)
    return SourceError(
        f"torch.jit.load: code/{path}, line {line}: {what} is nothing that a TorchScript program can hold"
    )


def _parsed(source, path):
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        # Chains without brackets would go through the parser's own stack.
        if re.search(r"(?:[-+~]\s*){100}|(?:\.\s*\w+\s*){300}|(?:\bnot\s+){100}", text):
            raise SourceError(f"torch.jit.load: code/{path} is nested too deeply")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"torch.jit.load: code/{path}: {type(error).__name__}: {error}") from None


def _class_from(name, node, source, path):
    if node.decorator_list or node.keywords or len(node.bases) > 1:
        raise _refused(path, node, "such a class")
    base = node.bases[0].id if node.bases and isinstance(node.bases[0], ast.Name) else None
    if (base is None and node.bases) or base not in (
        None,
        "Module",
        "NamedTuple",
        "Enum",
        "Interface",
    ):
        raise _refused(path, node, f"a class derived from {base}")
    made = ScriptClass(name, base, node, path)
    members = []
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            if base in (None, "Module"):
                if item.name.startswith("__") and item.name not in _METHODS:
                    raise _refused(path, item, f"a method {item.name}")
                made.nodes[item.name] = item
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            made.attributes[item.target.id] = item.annotation
            if item.value is not None:
                made.constants[item.target.id] = _literal(item.value, path)
        elif isinstance(item, ast.Assign) and len(item.targets) == 1:
            target = item.targets[0]
            if isinstance(target, ast.Name) and target.id in ("__parameters__", "__buffers__"):
                names = _literal(item.value, path)
                if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
                    raise _refused(path, item, f"such a {target.id}")
                (made.parameters if target.id == "__parameters__" else made.buffers)[:] = names
            elif isinstance(target, ast.Name) and base == "Enum":
                members.append((target.id, _literal(item.value, path)))
            elif (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Name)
                and target.value.id == "__annotations__"
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                made.attributes[target.slice.value] = item.value
            elif not (isinstance(target, ast.Name) and target.id.startswith("__")):
                raise _refused(path, item, "such an assignment")
        elif not isinstance(item, ast.Pass):
            raise _refused(path, item, type(item).__name__ + " in a class")
    try:
        if base == "Enum":
            if not all(_IDENTIFIER.match(n) for n, _ in members):
                raise ValueError("a member's name")
            made.made = _Enumeration(made.short, members)
        elif base == "NamedTuple":
            fields = collections.namedtuple(made.short, list(made.attributes))
            made.made = type(made.short, (Members, fields), {"__slots__": ()})
    except (ValueError, TypeError) as error:
        raise _refused(path, node, f"this {base} ({error})") from None
    return made


class _Enumeration(Members, enum.Enum):
    """The base of enumerations that archives define."""

    def __str__(self):
        return f"{type(self).__name__}.{self.name}"


def _literal(node, path, depth=0):
    """The value of a constant expression in the head of a class."""
    if depth > 50:
        raise _refused(path, node, "so deep a constant")
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        items = [_literal(item, path, depth + 1) for item in node.elts]
        return items if isinstance(node, ast.List) else tuple(items)
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_literal(key, path, depth + 1) for key in node.keys]
        return dict(zip(keys, (_literal(value, path, depth + 1) for value in node.values)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _literal(node.operand, path, depth + 1)
        if isinstance(value, int | float | complex):
            return -value
    if isinstance(node, ast.Name) and node.id in _REALS:
        return _REALS[node.id]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "annotate"
    ):
        return _literal(node.args[-1], path, depth + 1) if node.args else None
    if isinstance(node, ast.Call | ast.Attribute):
        return None  # devices and members of enumerations: known where they are used
    raise _refused(path, node, type(node).__name__)


# ---- types ----------------------------------------------------------------------------------------


def _type_from(node, path, depth=0):
    """A description of a type: a name, and the descriptions of what it is made of."""
    if depth > 50:
        raise _refused(path, node, "so deep a type")
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Constant) and node.value is None:
        return ("NoneType",)
    if isinstance(node, ast.Attribute):
        return (ast.unparse(node),)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return (node.value.id, *(_type_from(item, path, depth + 1) for item in inner))
    if isinstance(node, ast.List | ast.Tuple):
        return ("Union", *(_type_from(item, path, depth + 1) for item in node.elts))
    raise _refused(path, node, "such a type")


_KINDS = {
    "int": int, "float": float, "bool": bool, "str": str, "complex": complex, "List": list, "list": list,
    "Dict": dict, "dict": dict, "Tuple": tuple, "tuple": tuple, "NoneType": type(None),
}  # fmt: skip


def _is_a(value, kind):
    name, *inner = kind
    if name in ("Union", "Optional"):
        return (name == "Optional" and value is None) or any(_is_a(value, part) for part in inner)
    if name == "Any":
        return True
    if name == "Tensor":
        return isinstance(value, lamina.Tensor)
    if name == "Device":
        return isinstance(value, lamina.device)
    if name == "number":
        return isinstance(value, int | float | complex) and not isinstance(value, bool)
    if name in ("List", "list") and isinstance(value, list):
        return not inner or all(_is_a(item, inner[0]) for item in value)
    if name in ("Dict", "dict") and isinstance(value, dict):
        return not inner or all(_is_a(k, inner[0]) and _is_a(v, inner[1]) for k, v in value.items())
    if name in ("Tuple", "tuple") and isinstance(value, tuple) and inner:
        return len(value) == len(inner) and all(map(_is_a, value, inner))
    if name in _KINDS:
        return isinstance(value, _KINDS[name]) and not (name == "int" and isinstance(value, bool))
    own = getattr(value, "_script_class", None)
    return own is not None and own.name == name or type(value).__name__ == name.rpartition(".")[2]


# ---- functions ------------------------------------------------------------------------------------


def _global(name, at):
    return ast.copy_location(ast.Name(name, ast.Load()), at)


class _Function:
    """Writes one function anew; a method for each kind of node that may occur."""

    def __init__(self, unit, path):
        self.unit, self.path, self.depth, self.known = unit, path, 0, set()

    def refuse(self, node, what=None):
        return _refused(self.path, node, what or type(node).__name__)

    def named(self, name, node):
        if not _IDENTIFIER.match(name):
            raise self.refuse(node, f"the name {name!r}")
        return name

    def written(self, node, name, is_method):
        a = node.args
        if node.decorator_list or a.vararg or a.kwarg or a.posonlyargs or a.kwonlyargs:
            raise self.refuse(node, "such a function")
        if is_method and not a.args:
            raise self.refuse(node, "a method without self")
        names = [self.named(arg.arg, node) for arg in a.args]
        if len(set(names)) != len(names):
            raise self.refuse(node, "two arguments of one name")
        defaults = [self.default(value) for value in a.defaults]
        # A name is a variable when it is an argument or assigned anywhere in the function.
        self.known = set(names)
        waiting = list(node.body)
        while waiting:
            part = waiting.pop()
            for child in ast.iter_child_nodes(part):
                waiting.append(child)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self.known.add(self.named(part.id, part))
        arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, defaults)
        made = ast.FunctionDef(name, arguments, self.block(node.body), [], None)
        made.type_params = []
        return ast.copy_location(made, node)

    def default(self, node):
        made = self.value(node)
        for part in ast.walk(made):
            if isinstance(part, ast.Call):
                raise self.refuse(node, "a default that calls something")
        return made

    # ---- statements ----

    def block(self, body):
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.refuse(body[0], "so deep a block")
        made = [self.statement(node) for node in body]
        self.depth -= 1
        return made or [ast.Pass()]

    def statement(self, node):
        rule = getattr(self, "on_" + type(node).__name__, None)
        if rule is None:
            raise self.refuse(node)
        return ast.copy_location(rule(node), node)

    def on_Pass(self, node):
        return ast.Pass()

    def on_Expr(self, node):
        return ast.Expr(self.value(node.value))

    def on_Return(self, node):
        return ast.Return(self.value(node.value) if node.value is not None else None)

    def on_Assign(self, node):
        if len(node.targets) != 1:
            raise self.refuse(node, "a chain of assignments")
        return self.assigned(node.targets[0], self.value(node.value), node)

    def on_AnnAssign(self, node):
        if node.value is None:
            return ast.Pass()
        return self.assigned(node.target, self.value(node.value), node)

    def assigned(self, target, value, node):
        if isinstance(target, ast.Attribute):
            owner, name = self.value(target.value), self.named(target.attr, target)
            call = ast.Call(_global("set:", node), [owner, ast.Constant(name), value], [])
            return ast.Expr(ast.copy_location(call, node))
        return ast.Assign([self.target(target)], value)

    def target(self, node, depth=0):
        if isinstance(node, ast.Name):
            return ast.copy_location(ast.Name(self.named(node.id, node), ast.Store()), node)
        if isinstance(node, ast.Tuple | ast.List) and depth < 20:
            items = [self.target(item, depth + 1) for item in node.elts]
            return ast.copy_location(ast.Tuple(items, ast.Store()), node)
        raise self.refuse(node, "such a target")

    def on_If(self, node):
        orelse = self.block(node.orelse) if node.orelse else []
        return ast.If(self.value(node.test), self.block(node.body), orelse)

    def on_While(self, node):
        if node.orelse:
            raise self.refuse(node, "while with else")
        return ast.While(self.value(node.test), self.block(node.body), [])

    def on_For(self, node):
        i = node.iter
        if node.orelse or not (
            isinstance(i, ast.Call) and isinstance(i.func, ast.Name) and i.func.id == "range"
        ):
            raise self.refuse(node, "a loop over anything but a range")
        return ast.For(self.target(node.target), self.value(i), self.block(node.body), [])

    def on_With(self, node):
        items = []
        for item in node.items:
            if not isinstance(item.context_expr, ast.Name):
                raise self.refuse(node, "with of anything but a variable")
            bound = self.target(item.optional_vars) if item.optional_vars is not None else None
            items.append(ast.withitem(self.value(item.context_expr), bound))
        return ast.With(items, self.block(node.body))

    # ---- expressions ----

    def value(self, node):
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.refuse(node, "so deep an expression")
        rule = getattr(self, "of_" + type(node).__name__, None)
        if rule is None:
            raise self.refuse(node)
        made = ast.copy_location(rule(node), node)
        self.depth -= 1
        return made

    def of_Constant(self, node):
        value = node.value
        if isinstance(value, bool | str | float | complex | None):
            return ast.Constant(value)
        if isinstance(value, int) and value < 2**64:
            return ast.Constant(value)
        raise self.refuse(node, "such a constant")

    def of_Name(self, node):
        if node.id in self.known:
            return ast.Name(self.named(node.id, node), ast.Load())
        if node.id in _REALS:
            return _global(node.id + ":", node)
        raise self.refuse(node, f"the name {node.id!r}")

    def of_UnaryOp(self, node):
        if not isinstance(node.op, ast.USub | ast.Not):
            raise self.refuse(node)
        return ast.UnaryOp(node.op, self.value(node.operand))

    def of_IfExp(self, node):
        return ast.IfExp(*map(self.value, (node.test, node.body, node.orelse)))

    def of_Tuple(self, node):
        return ast.Tuple([self.value(item) for item in node.elts], ast.Load())

    def of_List(self, node):
        return ast.List([self.value(item) for item in node.elts], ast.Load())

    def of_Dict(self, node):
        if None in node.keys:
            raise self.refuse(node)
        return ast.Dict(list(map(self.value, node.keys)), list(map(self.value, node.values)))

    def of_Subscript(self, node):
        return ast.Subscript(self.value(node.value), self.value(node.slice), ast.Load())

    def chain(self, node):
        """The parts of ``a.b.c`` where `a` is no variable; None for anything else."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.known:
            return None
        return [node.id, *reversed(parts)]

    def of_Attribute(self, node):
        parts = self.chain(node)
        if parts is None:
            return self.read(node.value, node.attr, node)
        if parts[0] == "__torch__":
            return _global(self.unit.reference(".".join(parts)), node)
        if parts[0] == "CONSTANTS" and len(parts) == 2:
            name = "CONSTANTS." + parts[1]
            if name not in self.unit.globals:
                raise self.refuse(node, f"the constant {parts[1]!r}")
            return _global(name, node)
        raise self.refuse(node, f"the name {'.'.join(parts)!r}")

    def read(self, owner, name, node):
        # Names of children may be anything ("0"); they are looked up only among what is declared.
        if name.startswith("__") and name not in _METHODS:
            raise self.refuse(node, f"the attribute {name!r}")
        call = ast.Call(_global("attribute:", node), [self.value(owner), ast.Constant(name)], [])
        return ast.copy_location(call, node)

    def of_Call(self, node):
        function = node.func
        if isinstance(function, ast.Name) and function.id not in self.known:
            return self.builtin(function.id, node)
        if isinstance(function, ast.Name):
            variable = ast.Name(self.named(function.id, node), ast.Load())
            checked = ast.Call(_global("call:", node), [variable], [])
            return self.call(ast.copy_location(checked, node), node)
        if not isinstance(function, ast.Attribute):
            raise self.refuse(node, "such a call")
        parts = self.chain(function)
        if parts is None:
            return self.call(self.read(function.value, function.attr, function), node)
        name = ".".join(parts)
        try:
            if parts[0] == "torch" and len(parts) == 2:
                found = operator_called(parts[1])
            elif parts[0] == "ops" and len(parts) == 3 and not parts[2].startswith("__"):
                found = called_in(parts[1], parts[2])
            elif parts[0] == "__torch__":
                return self.own(parts, node)
            else:
                raise self.refuse(node, f"the call of {name!r}")
        except PermissionError as error:
            raise SourceError(
                f"torch.jit.load: code/{self.path}, line {node.lineno}: {error}"
            ) from None
        self.unit.globals[name] = found
        return self.call(_global(name, node), node)

    def own(self, parts, node):
        """A call of something that the archive defines."""
        if parts[-1] == "__new__":
            kind = self.unit.class_of(".".join(parts[:-1]))
            if kind.kind is not None:
                raise self.refuse(node, f"an instance of {kind.name}")
            name = kind.name + "()"
            self.unit.globals[name] = lambda: ScriptObject(kind)
            return ast.Call(_global(name, node), [], [])
        name = self.unit.reference(".".join(parts))
        found = self.unit.find(name)
        if found is not None and isinstance(found[0], ast.ClassDef):
            kind = self.unit.class_of(name)
            if kind.kind != "NamedTuple":
                raise self.refuse(node, f"a call of {name}")
        elif found is None:
            raise self.refuse(node, f"a call of {name}")
        return self.call(_global(name, node), node)

    def call(self, function, node):
        arguments = [self.value(arg) for arg in node.args]
        keywords = []
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.refuse(node, "a call with **")
            keywords.append(ast.keyword(self.named(keyword.arg, node), self.value(keyword.value)))
        return ast.Call(function, arguments, keywords)

    def builtin(self, name, node):
        given = node.args
        if node.keywords:
            raise self.refuse(node, f"keywords in {name}")
        if name in ("annotate", "unchecked_cast") and len(given) == 2:
            return self.value(given[1])
        if name == "uninitialized" and len(given) == 1:
            return ast.Constant(None)
        if name == "isinstance" and len(given) == 2:
            kind = _type_from(given[1], self.path)
            label = "type:" + ast.unparse(given[1])
            self.unit.globals[label] = kind
            return ast.Call(
                _global("isinstance:", node), [self.value(given[0]), _global(label, node)], []
            )
        if name == "getattr" and len(given) == 2 and isinstance(given[1], ast.Constant):
            if not isinstance(given[1].value, str):
                raise self.refuse(node, "such a getattr")
            return self.read(given[0], given[1].value, node)
        if name in _CASTS:
            return self.call(_global(name + ":", node), node)
        if name in ("fork", "wait", "awaitable"):
            raise missing(f"torch.jit.{name} in a TorchScript archive")
        raise self.refuse(node, f"the call of {name!r}")


def text_of(source, node):
    """The source of a method as it stands in the archive, without its class and the type of self."""
    text = source.decode("utf-8") if isinstance(source, bytes) else source
    lines = text.splitlines()
    begin, body = node.lineno - 1, node.body[0].lineno - 1
    head = "\n".join([lines[begin].lstrip(), *lines[begin + 1 : body]])
    head = re.sub(r"\A(def \w+\(self): [\w.]+", r"\1", head)
    rest = textwrap.dedent("\n".join(lines[body : node.end_lineno]))
    return f"{head}\n{textwrap.indent(rest, '  ')}\n"
