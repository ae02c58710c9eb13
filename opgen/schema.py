"""The schema grammar: ``name.overload(Tensor(a!) self, int[2] dim=0, *, Scalar alpha=1) -> (Tensor values, Tensor)``.

One extension over PyTorch's grammar: ``Scalar|Tensor other`` stands for two overloads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from opgen.errors import ParagraphError, Where

BASES = (
    "Tensor",
    "Scalar",
    "int",
    "float",
    "bool",
    "str",
    "ScalarType",
    "Layout",
    "Device",
    "MemoryFormat",
    "Generator",
)


@dataclass(frozen=True)
class Type:
    """A type of the grammar: ``Tensor(a!)?``, ``int[2]``."""

    base: str
    optional: bool = False
    is_list: bool = False
    list_size: int | None = None
    element_optional: bool = False
    alias: str | None = None
    written: bool = False

    def __str__(self) -> str:
        text = self.base
        if self.alias is not None:
            text += f"({self.alias}{'!' if self.written else ''})"
        if self.element_optional:
            text += "?"
        if self.is_list:
            text += f"[{self.list_size or ''}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor" and not self.is_list

    @property
    def is_tensor_list(self) -> bool:
        return self.base == "Tensor" and self.is_list


@dataclass(frozen=True)
class Param:
    """One parameter; `union` marks ``Scalar|Tensor`` before and after its expansion."""

    name: str
    type: Type
    default: str | None = None
    keyword_only: bool = False
    union: bool = False

    def __str__(self) -> str:
        text = f"{self.type} {self.name}"
        return text if self.default is None else f"{text}={self.default}"


@dataclass(frozen=True)
class Return:
    type: Type
    name: str | None = None

    def __str__(self) -> str:
        return str(self.type) + (f" {self.name}" if self.name else "")


@dataclass(frozen=True)
class Schema:
    """A parsed schema."""

    name: str
    overload: str
    params: tuple[Param, ...]
    returns: tuple[Return, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def __str__(self) -> str:
        parts, star = [], False
        for p in self.params:
            if p.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(str(p))
        rets = ", ".join(map(str, self.returns))
        if len(self.returns) != 1:
            rets = f"({rets})"
        return f"{self.full_name}({', '.join(parts)}) -> {rets}"

    def param(self, name: str) -> Param | None:
        return next((p for p in self.params if p.name == name), None)


_TYPE = re.compile(
    r"^(?P<base>[A-Za-z]+)(\((?P<alias>[a-z*]+)(?P<written>!)?\))?(?P<eopt>\?(?=\[))?"
    r"(?P<list>\[(?P<size>\d*)\])?(?P<opt>\?)?$"
)
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def parse_type(text: str, where: Where) -> Type:
    match = _TYPE.match(text)
    if not match:
        raise ParagraphError(where, f"malformed type {text!r}")
    base = match["base"]
    if base == "SymInt":
        base = "int"
    if base not in BASES:
        raise ParagraphError(where, f"unknown type {text!r}; known: {', '.join(BASES)}")
    if match["alias"] and base != "Tensor":
        raise ParagraphError(where, f"only tensors carry an alias set; got {text!r}")
    return Type(
        base,
        optional=bool(match["opt"]),
        is_list=bool(match["list"]),
        list_size=int(match["size"]) if match["size"] else None,
        element_optional=bool(match["eopt"]),
        alias=match["alias"],
        written=bool(match["written"]),
    )


def _split(text: str) -> list[str]:
    """Splits at commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    tail = text[start:].strip()
    return parts + [tail] if tail else parts


def _parse_param(text: str, keyword_only: bool, where: Where) -> Param:
    default = None
    if "=" in text:
        text, default = (s.strip() for s in text.split("=", 1))
    words = text.split()
    if len(words) != 2 or not _NAME.match(words[1]):
        raise ParagraphError(where, f"malformed parameter {text!r}; expected 'Type name'")
    written, name = words
    if written == "Scalar|Tensor":
        return Param(name, Type("Tensor"), default, keyword_only, union=True)
    return Param(name, parse_type(written, where), default, keyword_only)


def parse_schema(text: str, where: Where) -> Schema:
    """Parses one schema; raises ParagraphError with the reason."""
    match = re.match(
        r"^([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z0-9_]+))?\((.*)\)\s*->\s*(.+)$", text.strip()
    )
    if not match:
        raise ParagraphError(
            where, f"malformed schema {text!r}; expected name.overload(...) -> Type"
        )
    params: list[Param] = []
    keyword_only = False
    for piece in _split(match[3]):
        if piece == "*":
            if keyword_only:
                raise ParagraphError(where, "two '*' in one schema")
            keyword_only = True
            continue
        params.append(_parse_param(piece, keyword_only, where))
    names = [p.name for p in params]
    if len(set(names)) != len(names):
        raise ParagraphError(where, f"a parameter appears twice in {names}")
    seen_default = False
    for p in params:
        if p.keyword_only:
            continue
        if seen_default and p.default is None:
            raise ParagraphError(
                where, f"parameter {p.name!r} without default follows one with a default"
            )
        seen_default = seen_default or p.default is not None
    returned = match[4].strip()
    pieces = _split(returned[1:-1]) if returned.startswith("(") else [returned]
    returns = []
    for piece in pieces:
        words = piece.split()
        if len(words) not in (1, 2):
            raise ParagraphError(where, f"malformed return {piece!r}")
        returns.append(Return(parse_type(words[0], where), words[1] if len(words) == 2 else None))
    known = {p.type.alias for p in params if p.type.alias}
    for r in returns:
        if r.type.alias and r.type.alias not in known:
            raise ParagraphError(
                where, f"the result aliases set {r.type.alias!r}, which no parameter is in"
            )
    return Schema(match[1], match[2] or "", tuple(params), tuple(returns))


def expand_unions(schema: Schema, names: dict[str, str]) -> list[Schema]:
    """One schema for each choice of the ``Scalar|Tensor`` parameters, tensors first.

    Overloads are named by their choices (``Tensor``, ``Tensor_Scalar``) unless `names` renames them.
    """
    unions = [p.name for p in schema.params if p.union]
    if not unions:
        return [schema]
    out = []
    for bits in range(2 ** len(unions)):
        chosen = {
            n: "Scalar" if bits >> (len(unions) - 1 - i) & 1 else "Tensor"
            for i, n in enumerate(unions)
        }
        label = "_".join(chosen.values())
        if schema.overload:
            label = f"{schema.overload}_{label}"
        label = names.get(label, label)
        if label == "-":
            continue
        params = tuple(
            replace(p, type=Type(chosen[p.name])) if p.union else p for p in schema.params
        )
        out.append(replace(schema, overload="" if label == "none" else label, params=params))
    return out
