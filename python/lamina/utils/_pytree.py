"""Trees of Python containers: taking them apart into leaves and putting them together again.

A node is a container of a registered type: list, tuple, namedtuple, dict, OrderedDict, defaultdict, deque, and what
`register_pytree_node` adds. None is a leaf.
"""

import functools
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Context = Any
PyTree = Any


# ---- where a leaf is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class SequenceKey:
    """Item `idx` of a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        """The item."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """The value under `key` of a mapping."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        """The value."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """The attribute `name` of an object."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        """The attribute."""
        return getattr(obj, self.name)


def keystr(kp):
    """A path as text: ``["a"][0]``."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What lies at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ---- registered types ---------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """How containers of one type are taken apart and put together."""

    type: Any
    flatten_fn: Any
    unflatten_fn: Any
    flatten_with_keys_fn: Any = None


class _SerializeNodeDef(NamedTuple):
    typ: Any
    serialized_type_name: Any
    to_dumpable_context: Any = None
    from_dumpable_context: Any = None


SUPPORTED_NODES = {}
SUPPORTED_SERIALIZED_TYPES = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}
CONSTANT_NODES = set()
BUILTIN_TYPES = {tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque}


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make a type a container.

    Parameters
    ----------
    cls : type
    flatten_fn : callable
        ``flatten_fn(node) -> (children, context)``.
    unflatten_fn : callable
        ``unflatten_fn(children, context) -> node``.
    flatten_with_keys_fn : callable
        ``flatten_with_keys_fn(node) -> ([(key, child), ...], context)``, for paths.

    Raises ValueError where the type is registered already.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            "register_pytree_node: to_dumpable_context and from_dumpable_context go together"
        )
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _private_register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    name = serialized_type_name or f"{cls.__module__}.{cls.__qualname__}"
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, name, to_dumpable_context, from_dumpable_context
    )
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    SUPPORTED_NODES.pop(cls)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Make a dataclass a container of its fields."""
    import dataclasses

    names = field_names
    if names is None:
        names = [f.name for f in dataclasses.fields(cls) if f.init]
    names = [n for n in names if n not in (drop_field_names or ())]

    def flatten(obj):
        present = [n for n in names if getattr(obj, n) is not None]
        absent = [n for n in names if getattr(obj, n) is None]
        return [getattr(obj, n) for n in present], [present, absent]

    def flatten_with_keys(obj):
        values, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def register_constant(cls):
    """Make a type a container without children: its values are part of the structure."""

    def flatten(x):
        return [], x

    _private_register_pytree_node(
        cls, flatten, lambda _, context: context, flatten_with_keys_fn=flatten
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    """Whether register_constant was told of the type."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _sequence_flatten(d):
    return list(d), None


def _sequence_flatten_with_keys(d):
    return [(SequenceKey(i), v) for i, v in enumerate(d)], None


def _dict_flatten(d):
    return list(d.values()), list(d.keys())


def _dict_flatten_with_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()], list(d.keys())


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=False))


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d):
    return [(GetAttrKey(n), v) for n, v in zip(d._fields, d, strict=True)], type(d)


def _defaultdict_flatten(d):
    values, keys = _dict_flatten(d)
    return values, [d.default_factory, keys]


def _defaultdict_flatten_with_keys(d):
    values, keys = _dict_flatten_with_keys(d)
    return values, [d.default_factory, keys]


def _list_unflatten(values, context):
    return list(values)


def _tuple_unflatten(values, context):
    return tuple(values)


_list_flatten = _tuple_flatten = _sequence_flatten
_list_flatten_with_keys = _tuple_flatten_with_keys = _sequence_flatten_with_keys

_private_register_pytree_node(
    tuple,
    _tuple_flatten,
    _tuple_unflatten,
    serialized_type_name="builtins.tuple",
    flatten_with_keys_fn=_tuple_flatten_with_keys,
)
_private_register_pytree_node(
    list,
    _list_flatten,
    _list_unflatten,
    serialized_type_name="builtins.list",
    flatten_with_keys_fn=_list_flatten_with_keys,
)
_private_register_pytree_node(
    dict,
    _dict_flatten,
    _dict_unflatten,
    serialized_type_name="builtins.dict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
_private_register_pytree_node(
    namedtuple,
    _namedtuple_flatten,
    lambda values, context: context(*values),
    serialized_type_name="collections.namedtuple",
    flatten_with_keys_fn=_namedtuple_flatten_with_keys,
)
_private_register_pytree_node(
    OrderedDict,
    _dict_flatten,
    lambda values, context: OrderedDict(zip(context, values, strict=False)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
_private_register_pytree_node(
    defaultdict,
    _defaultdict_flatten,
    lambda values, context: defaultdict(context[0], zip(context[1], values, strict=False)),
    serialized_type_name="collections.defaultdict",
    flatten_with_keys_fn=_defaultdict_flatten_with_keys,
)
_private_register_pytree_node(
    deque,
    lambda d: (list(d), d.maxlen),
    lambda values, context: deque(values, maxlen=context),
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=lambda d: ([(SequenceKey(i), v) for i, v in enumerate(d)], d.maxlen),
)


def is_namedtuple(obj):
    """Whether an object, or a type, is a namedtuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls):
    """Whether a type was made by namedtuple."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
    )


is_namedtuple_instance = is_namedtuple


def is_structseq(obj):
    """Whether an object, or a type, is one of C's named tuples; those are leaves, but for results of operators."""
    cls = obj if isinstance(obj, type) else type(obj)
    return is_structseq_class(cls)


def is_structseq_class(cls):
    """Whether a type is one of C's named tuples."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and isinstance(getattr(cls, "n_fields", None), int)
    )


is_structseq_instance = is_structseq


def _get_node_type(tree):
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if kind.__module__.endswith(".return_types") and is_structseq_class(kind):
        # What operators with several results give.
        _private_register_pytree_node(
            kind,
            lambda d: (list(d), None),
            lambda values, context: kind(values),
            serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
            flatten_with_keys_fn=lambda d: ([(SequenceKey(i), v) for i, v in enumerate(d)], None),
        )
        return kind
    return namedtuple if is_namedtuple_class(kind) else kind


def tree_is_leaf(tree, is_leaf=None):
    """Whether something is a leaf: of no registered type, or one that `is_leaf` says yes to."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


# ---- structures ---------------------------------------------------------------------------------


@dataclass(init=False, frozen=True, eq=True, repr=False)
class TreeSpec:
    """The structure of a tree: what is left when the leaves are taken away."""

    type: Any
    _context: Context
    _children: list = field(default_factory=list)
    num_nodes: int = field(init=False, compare=False)
    num_leaves: int = field(init=False, compare=False)
    num_children: int = field(init=False, compare=False)

    def __init__(self, type, context, children_specs=()):  # noqa: A002
        put = functools.partial(object.__setattr__, self)
        put("type", type)
        put("_context", context)
        put("_children", list(children_specs))
        self._count()

    def _count(self):
        put = functools.partial(object.__setattr__, self)
        leaf = self.type is None
        put("num_nodes", 1 + sum(c.num_nodes for c in self._children))
        put("num_leaves", 1 if leaf else sum(c.num_leaves for c in self._children))
        put("num_children", len(self._children))

    context = property(lambda self: self._context)
    children_specs = property(lambda self: self._children)

    def __hash__(self):
        kind, context = self.type, self._context
        if kind is dict:
            context = frozenset(context)
        elif kind is defaultdict:
            context = (context[0], frozenset(context[1]))
        elif isinstance(context, list):
            context = tuple(map(repr, context))
        return hash((kind, context, tuple(self._children)))

    def __repr__(self, indent=0):
        children = [c.__repr__() for c in self._children]
        return f"TreeSpec({self._name()}, {self._context}, [{', '.join(children)}])"

    def _name(self):
        return getattr(self.type, "__name__", self.type)

    def is_leaf(self):
        """Whether this is the structure of a leaf."""
        return self.type is None

    def children(self):
        """Structures of the children."""
        return list(self._children)

    def child(self, index):
        """The structure of one child."""
        return self._children[index]

    def flatten_up_to(self, tree):
        """The parts of a tree that lie where this structure has its leaves. Raises ValueError where it has another structure."""
        found = []
        self._flatten_up_to(tree, found)
        return found

    def _flatten_up_to(self, tree, found):
        if self.type is None:
            found.append(tree)
            return
        kind = _get_node_type(tree)
        if kind is not self.type and not {kind, self.type} <= {dict, OrderedDict, defaultdict}:
            raise ValueError(
                f"Type mismatch;\nexpected {self.type!r}, but got {kind!r} in the other tree"
            )
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != len(self._children):
            raise ValueError(
                f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}."
            )
        if kind in (dict, OrderedDict, defaultdict):
            keys = self._context[1] if self.type is defaultdict else self._context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)}, got {list(tree)}.")
            children = [tree[k] for k in keys]
        elif context != self._context:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}; got {context!r}; "
                f"expected {self._context!r}"
            )
        for spec, child in zip(self._children, children, strict=True):
            spec._flatten_up_to(child, found)

    def unflatten(self, leaves):
        """A tree of this structure. Raises ValueError where the number of leaves is another."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers "
                f"to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves):
        if self.type is None:
            return next(leaves)
        children = [c._unflatten(leaves) for c in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self):
        super().__init__(None, None, ())

    def __repr__(self, indent=0):
        return "*"


_LEAF = LeafSpec()


def treespec_leaf():
    """The structure of a leaf."""
    return _LEAF


def treespec_tuple(iterable=(), /):
    """The structure of a tuple of structures."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    """The structure of a dict of structures."""
    items = dict(mapping, **kwargs)
    return TreeSpec(dict, list(items), list(items.values()))


def _flatten(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _get_node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves, a list, and the structure."""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """A tree of leaves and a structure."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but "
            f"got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves, a list."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


# ---- maps ---------------------------------------------------------------------------------------


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree with `func` of each leaf, and of what lies there in the other trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten([func(*items) for items in zip(leaves, *others, strict=True)])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls `func` on each leaf; returns the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    for items in zip(leaves, *others, strict=True):
        func(*items)
    return tree


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is called on things of that type, others stay as they are."""
    test = type_or_types_or_pred
    if not callable(test) or isinstance(test, type):
        types = test

        def test(x):
            return isinstance(x, types)

    def wrap(func):
        @functools.wraps(func)
        def wrapped(x):
            return func(x) if test(x) else x

        return wrapped

    return wrap


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """The tree with `func` of those leaves that are of a type, or that a predicate says yes to."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """Calls `func` on those leaves; returns the tree itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether a predicate holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether a predicate holds for any leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether a predicate holds for all leaves of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether a predicate holds for any leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    if treespec.is_leaf():
        return [tree]
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        result += part
    return result


# ---- paths --------------------------------------------------------------------------------------


def _walk_with_path(path, tree, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    handler = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if handler is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in handler(tree)[0]:
        yield from _walk_with_path((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """A list of (path, leaf), and the structure."""
    return list(_walk_with_path((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """A list of (path, leaf)."""
    return list(_walk_with_path((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """The tree with ``func(path, leaf, ...)`` of each leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(
        [func(path, leaf, *more) for (path, leaf), *more in zip(found, *others, strict=True)]
    )


# ---- structures as text -------------------------------------------------------------------------


def treespec_dumps(treespec, protocol=None):
    """A structure as JSON."""

    def dumped(spec):
        if spec.is_leaf():
            return {"type": None, "context": None, "children_spec": []}
        entry = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
        if entry is None:
            raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
        context = spec.context
        if entry.to_dumpable_context is not None:
            context = entry.to_dumpable_context(context)
        elif spec.type is namedtuple:
            context = f"{context.__module__}.{context.__qualname__}"
        elif spec.type is defaultdict:
            factory = context[0]
            name = None if factory is None else [factory.__module__, factory.__qualname__]
            context = {"default_factory": name, "keys": context[1]}
        return {
            "type": entry.serialized_type_name,
            "context": json.dumps(context),
            "children_spec": [dumped(c) for c in spec.children_specs],
        }

    return json.dumps([protocol or 1, dumped(treespec)])


def treespec_loads(serialized):
    """A structure from JSON."""

    def loaded(item):
        if item["type"] is None:
            return _LEAF
        kind = SERIALIZED_TYPE_TO_PYTHON_TYPE.get(item["type"])
        if kind is None:
            raise NotImplementedError(f"Deserializing {item['type']} in pytree is not registered.")
        entry = SUPPORTED_SERIALIZED_TYPES[kind]
        context = json.loads(item["context"])
        if entry.from_dumpable_context is not None:
            context = entry.from_dumpable_context(context)
        elif kind is defaultdict:
            import importlib

            name = context["default_factory"]
            factory = name and getattr(importlib.import_module(name[0]), name[1])
            context = [factory, context["keys"]]
        elif kind is namedtuple:
            raise NotImplementedError("treespec_loads: namedtuples are not found by their names")
        return TreeSpec(kind, context, [loaded(c) for c in item["children_spec"]])

    protocol, item = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return loaded(item)


def treespec_pprint(treespec):
    """A structure as text, with * for leaves."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


class _Star:
    def __repr__(self):
        return "*"


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return [leaf for a in (*args, *kwargs.values()) for leaf in tree_iter(a)]


def pytree_to_str(treespec):
    """The same as treespec_dumps."""
    return treespec_dumps(treespec)
