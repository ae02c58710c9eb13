"""Lists and dictionaries that nodes keep their arguments in: they cannot be changed in place."""

from lamina.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    """Raises TypeError: nothing is changed in place."""
    kind = type(self).__name__
    raise TypeError(
        f"{kind}: a node's arguments cannot be changed in place; make a changed copy, "
        "for instance with list(...) or dict(...), and assign it to node.args or node.kwargs"
    )


class immutable_list(list):
    """A list that refuses every change; the graph relies on its nodes' arguments to stay what they are."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dictionary that refuses every change."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __setitem__ = __ior__ = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return immutable_dict, (tuple(self.items()),)


_pytree.register_pytree_node(
    immutable_list, lambda x: (list(x), len(x)), lambda x, _: immutable_list(x)
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    lambda x, keys: immutable_dict(zip(keys, x, strict=True)),
)
