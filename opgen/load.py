"""Reads ``ops/*.yaml`` into plain dictionaries that know the line of each paragraph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from opgen.errors import ParagraphError, Where


@dataclass(frozen=True)
class RawParagraph:
    where: Where
    fields: dict[str, Any]


def _construct(node: yaml.Node, loader: yaml.SafeLoader, where: Where) -> Any:
    if isinstance(node, yaml.MappingNode):
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            if key in out:
                raise ParagraphError(
                    Where(where.file, key_node.start_mark.line + 1), f"field {key!r} appears twice"
                )
            out[key] = _construct(value_node, loader, where)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_construct(n, loader, where) for n in node.value]
    return loader.construct_object(node)


def load_file(path: Path, root: Path) -> list[RawParagraph]:
    name = str(path.relative_to(root))
    loader = yaml.SafeLoader(path.read_text())
    try:
        node = loader.get_single_node()
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise ParagraphError(Where(name, 1), "expected a list of paragraphs")
        out = []
        for item in node.value:
            where = Where(name, item.start_mark.line + 1)
            if not isinstance(item, yaml.MappingNode):
                raise ParagraphError(
                    where, "expected a paragraph: a mapping that starts with 'op:'"
                )
            out.append(RawParagraph(where, _construct(item, loader, where)))
        return out
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        raise ParagraphError(Where(name, mark.line + 1 if mark else 1), f"not YAML: {e}") from e
    finally:
        loader.dispose()


def load_folder(folder: Path) -> list[RawParagraph]:
    """All paragraphs of all files, in order of file name and line."""
    out: list[RawParagraph] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.name != "reasons.yaml":
            out.extend(load_file(path, folder.parent))
    return out
