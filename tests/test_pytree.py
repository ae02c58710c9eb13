"""Trees of containers, apart and together."""

from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lamina.utils import _pytree as pytree
from lamina.utils._pytree import tree_flatten, tree_map, tree_unflatten

Point = namedtuple("Point", "x y")
leaves = st.one_of(st.integers(), st.none(), st.text(max_size=2))
trees = st.recursive(
    leaves,
    lambda t: st.one_of(
        st.lists(t, max_size=3),
        st.tuples(t, t),
        st.dictionaries(st.text(max_size=2), t, max_size=3),
        st.builds(Point, t, t),
        st.builds(lambda v: deque(v, maxlen=5), st.lists(t, max_size=2)),
        st.builds(lambda d: defaultdict(list, d), st.dictionaries(st.integers(), t, max_size=2)),
        st.builds(OrderedDict, st.dictionaries(st.integers(), t, max_size=2)),
    ),
    max_leaves=10,
)


@given(trees)
def test_apart_and_together(tree):
    flat, spec = tree_flatten(tree)
    assert tree_unflatten(flat, spec) == tree
    assert type(tree_unflatten(flat, spec)) is type(tree)
    assert spec.num_leaves == len(flat) == len(pytree.tree_leaves(tree))
    assert spec == pytree.tree_structure(tree)
    assert hash(spec) == hash(pytree.tree_structure(tree))
    paths, _ = pytree.tree_flatten_with_path(tree)
    for path, leaf in paths:
        assert pytree.key_get(tree, path) == leaf
    assert tree_map(lambda x: x, tree) == tree
    assert tree_map(lambda x, y: (x, y), tree, tree) == tree_map(lambda x: (x, x), tree)


def test_texts_and_paths():
    _, spec = tree_flatten({"a": [1, (2,)], "b": 3})
    assert (
        repr(spec)
        == "TreeSpec(dict, ['a', 'b'], [TreeSpec(list, None, [*, TreeSpec(tuple, None, [*])]), *])"
    )
    (path, leaf), *_ = pytree.tree_flatten_with_path({"a": [5]})[0]
    assert (pytree.keystr(path), leaf) == ("['a'][0]", 5)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_registered_types_and_refusals():
    class Box:
        def __init__(self, value):
            self.value = value

    pytree.register_pytree_node(Box, lambda b: ([b.value], "kept"), lambda v, c: Box(v[0]))
    assert tree_map(lambda x: x + 1, Box(1)).value == 2
    assert Box in pytree.SUPPORTED_NODES
    with pytest.raises(ValueError):
        pytree.register_pytree_node(Box, None, None)
    with pytest.raises(ValueError):
        tree_map(lambda x, y: x, [1, 2], [1])
    with pytest.raises(ValueError):
        tree_map(lambda x, y: x, [1, 2], (1, 2))
    with pytest.raises(ValueError):
        tree_unflatten([1], tree_flatten([1, 2])[1])
    with pytest.raises(TypeError):
        tree_unflatten([1], 5)
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a"]) == [-1, "a"]
    assert pytree.tree_all(bool, [1, [2]]) and pytree.tree_any(lambda x: x == 2, [1, [2]])
    assert tree_flatten([1, [2]], is_leaf=lambda x: x == [2])[0] == [1, [2]]
    assert pytree._broadcast_to_and_flatten(0, tree_flatten([1, [2, 3]])[1]) == [0, 0, 0]
