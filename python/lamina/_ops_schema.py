"""Schemas of operators as objects: arguments, results, and what they alias."""

from dataclasses import dataclass, field

from lamina import _C


@dataclass(frozen=True)
class AliasInfo:
    """What an argument or a result shares memory with, and whether it is written to."""

    before_set: frozenset
    is_write: bool

    @property
    def after_set(self):
        """The same names."""
        return self.before_set


@dataclass(frozen=True)
class Argument:
    """One argument, or one result, of a schema."""

    name: str
    type: str
    alias_info: AliasInfo | None = None
    kwarg_only: bool = False
    has_default: bool = False
    default: str = field(default="", repr=False)

    @property
    def default_value(self):
        """The default as a value of Python; None where there is none."""
        return _C._schema_preset(self.type, self.default) if self.has_default else None

    @property
    def real_type(self):
        """The type again."""
        return self.type

    @property
    def is_write(self):
        """Whether it is written to."""
        return self.alias_info is not None and self.alias_info.is_write


def _argument(row):
    name, kind, alias, has_default, keyword_only, default = row
    info = None
    if alias:
        names = alias.replace("!", "").split("->")[0].strip()
        info = AliasInfo(frozenset(names.split("|")), "!" in alias)
    return Argument(name, kind, info, keyword_only, has_default, default)


class Schema:
    """Name, arguments and results of an operator, and what they alias."""

    def __init__(self, text):
        self._text = text
        head = text.partition("(")[0]
        self.name, _, self.overload_name = head.partition(".")
        arguments, returns = _C._schema_parts(text)
        self.arguments = [_argument(a) for a in arguments]
        self.returns = [_argument(r) for r in returns]

    @property
    def is_mutable(self):
        """Whether any argument is written to."""
        return any(a.is_write for a in self.arguments)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Schema) and self._text == other._text

    def __hash__(self):
        return hash(self._text)
