"""The recorded graph of a tensor as text, DOT, SVG and HTML."""

import html
from dataclasses import dataclass, field
from pathlib import Path

import lamina
from lamina.explain._text import bytes_text

__all__ = ["Graph", "graph"]


@dataclass
class _Saved:
    """A tensor that a node keeps for backward."""

    name: str
    text: str  # type and size
    nbytes: int
    shared: bool  # its bytes are counted elsewhere already


@dataclass
class _Box:
    """One node of the recorded graph."""

    number: int
    name: str
    result: str  # type and size of what the forward operator gave
    leaf: str = ""  # of AccumulateGrad: the leaf
    saved: list[_Saved] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)  # numbers of the nodes its gradients go to
    released: bool = False

    @property
    def nbytes(self) -> int:
        return sum(s.nbytes for s in self.saved if not s.shared)

    def lines(self) -> list[str]:
        """What a picture shows in the box."""
        lines = [self.leaf or self.result]
        for s in self.saved:
            note = "shared" if s.shared else bytes_text(s.nbytes)
            lines.append(f"keeps {s.name}: {s.text}, {note}")
        if self.released:
            lines.append("what it kept is freed")
        return [line for line in lines if line]


def _describe(shape, dtype) -> str:
    return f"{str(dtype).split('.')[-1]}[{', '.join(map(str, shape))}]"


class Graph:
    """The recorded graph of one or more tensors.

    ``nodes`` in order from the roots down; ``nbytes``: all bytes that it holds for backward.
    ``to_dot()``, ``to_svg()``, ``to_html()`` give text; ``save(path)`` writes one of them, by the
    ending of the path. Printing shows the nodes as lines.
    """

    def __init__(self, roots) -> None:
        self.nodes: list[_Box] = []
        self._walk([r for r in roots if r.requires_grad])

    def _walk(self, roots) -> None:
        numbers: dict = {}
        order: list = []

        def number_of(node) -> int:
            if node not in numbers:
                numbers[node] = len(order)
                order.append(node)
            return numbers[node]

        self.roots = []
        for root in roots:
            node, _ = lamina.autograd.graph.get_gradient_edge(root)
            self.roots.append(number_of(node))
        storages: set = set()
        at = 0
        while at < len(order):
            self.nodes.append(self._box(at, order[at], storages))
            for next_node, _ in order[at].next_functions:
                if next_node is not None:
                    self.nodes[at].uses.append(number_of(next_node))
            at += 1

    @staticmethod
    def _box(number, node, storages) -> _Box:
        box = _Box(number, node.name(), "")
        if node.name() == "AccumulateGrad":
            leaf = node.variable
            box.leaf = f"leaf {_describe(leaf.shape, leaf.dtype)}"
            return box
        metadata = node._input_metadata
        box.result = ", ".join(_describe(m[0], m[1]) for m in metadata)
        try:
            kept = _kept_tensors(node)
        except RuntimeError:
            box.released = True
            return box
        for name, tensor in kept:
            key = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
            shared = key in storages
            storages.add(key)
            size = tensor.numel() * tensor.element_size()
            box.saved.append(_Saved(name, _describe(tensor.shape, tensor.dtype), size, shared))
        return box

    @property
    def nbytes(self) -> int:
        """Bytes kept for backward; bytes that several nodes share count once."""
        return sum(b.nbytes for b in self.nodes)

    def __str__(self) -> str:
        lines = [f"{len(self.nodes)} nodes, {bytes_text(self.nbytes)} kept for backward"]
        for b in self.nodes:
            uses = ", ".join(str(u) for u in b.uses)
            lines.append(
                f"{b.number:4d} {b.name}: {'; '.join(b.lines())}" + (f" -> {uses}" if uses else "")
            )
        return "\n".join(lines)

    __repr__ = __str__

    # ---- pictures ----

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""
        lines = ["digraph recorded {", "  rankdir=TB;", "  node [shape=box, fontname=monospace];"]
        for b in self.nodes:
            label = "\\n".join(_dot(t) for t in (b.name, *b.lines()))
            shape = ", style=rounded" if b.leaf else ""
            lines.append(f'  n{b.number} [label="{label}"{shape}];')
            lines.extend(f"  n{b.number} -> n{u};" for u in b.uses)
        return "\n".join([*lines, "}"]) + "\n"

    def _layers(self) -> list[list[int]]:
        """Nodes by their longest distance from a root, each layer ordered to cross few lines."""
        waits = [0] * len(self.nodes)
        for b in self.nodes:
            for u in b.uses:
                waits[u] += 1
        depth = [0] * len(self.nodes)
        ready = [i for i, n in enumerate(waits) if n == 0]
        for i in ready:
            for u in self.nodes[i].uses:
                depth[u] = max(depth[u], depth[i] + 1)
                waits[u] -= 1
                if waits[u] == 0:
                    ready.append(u)
        layers: list[list[int]] = [[] for _ in range(max(depth, default=0) + 1)]
        for i in ready:
            layers[depth[i]].append(i)
        users: list[list[int]] = [[] for _ in self.nodes]
        for b in self.nodes:
            for u in b.uses:
                users[u].append(b.number)
        place = {i: float(k) for layer in layers for k, i in enumerate(layer)}
        for layer in layers[1:]:
            middle = {
                i: sum(place[u] for u in users[i]) / len(users[i]) if users[i] else place[i]
                for i in layer
            }
            layer.sort(key=lambda i: middle[i])
            place.update({i: float(k) for k, i in enumerate(layer)})
        return layers

    def to_svg(self) -> str:
        """A picture: roots above, leaves below, what each node keeps in its box."""
        char, line, pad, gap_x, gap_y = 7.4, 15.0, 8.0, 24.0, 42.0
        texts = [[b.name, *b.lines()] for b in self.nodes]
        widths = [max(map(len, t)) * char + 2 * pad for t in texts]
        heights = [len(t) * line + 2 * pad for t in texts]
        layers = self._layers()
        total = max(
            (sum(widths[i] for i in layer) + gap_x * (len(layer) - 1) for layer in layers),
            default=0.0,
        )
        corner: dict[int, tuple[float, float]] = {}
        y = gap_y / 2
        for layer in layers:
            x = gap_x + (total - sum(widths[i] for i in layer) - gap_x * (len(layer) - 1)) / 2
            for i in layer:
                corner[i] = (x, y)
                x += widths[i] + gap_x
            y += max(heights[i] for i in layer) + gap_y
        parts = [
            f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" width="{total + 2 * gap_x:.0f}" '
            f'height="{y:.0f}" font-family="monospace" font-size="12">',
            "<style>rect{fill:#fff;stroke:#444}.leaf{fill:#e8f3e8}.keeps{fill:#fdf3dc}"
            ".graph text{fill:#111;font:12px monospace}path{stroke:#888;fill:none}"
            "@media(prefers-color-scheme:dark){rect{fill:#222;stroke:#aaa}.leaf{fill:#1f3a1f}"
            ".keeps{fill:#3d3210}.graph text{fill:#eee}}</style>",
        ]
        for b in self.nodes:
            x1, y1 = corner[b.number]
            for u in b.uses:
                x2, y2 = corner[u]
                start = (x1 + widths[b.number] / 2, y1 + heights[b.number])
                end = (x2 + widths[u] / 2, y2)
                bend = (start[1] + end[1]) / 2
                parts.append(
                    f'<path d="M{start[0]:.1f} {start[1]:.1f} C{start[0]:.1f} {bend:.1f} '
                    f'{end[0]:.1f} {bend:.1f} {end[0]:.1f} {end[1]:.1f}"/>'
                )
        for b, lines in zip(self.nodes, texts, strict=True):
            x, y0 = corner[b.number]
            kind = "leaf" if b.leaf else "keeps" if b.saved else ""
            parts.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y0:.1f}" rx="4" '
                f'width="{widths[b.number]:.1f}" height="{heights[b.number]:.1f}"/>'
            )
            for k, text in enumerate(lines):
                weight = ' style="font-weight:bold"' if k == 0 else ""
                parts.append(
                    f'<text x="{x + pad:.1f}" y="{y0 + pad + (k + 0.8) * line:.1f}"{weight}>'
                    f"{html.escape(text)}</text>"
                )
        return "\n".join([*parts, "</svg>"]) + "\n"

    def to_html(self) -> str:
        """One page without outside parts: the picture, and a table of what is kept."""
        rows = "".join(
            f"<tr><td>{b.number}</td><td>{html.escape(b.name)}</td><td>{html.escape(s.name)}</td>"
            f"<td>{html.escape(s.text)}</td><td>{'shared' if s.shared else bytes_text(s.nbytes)}</td></tr>"
            for b in self.nodes
            for s in b.saved
        )
        from lamina.explain._page import document

        return document(
            "Recorded graph",
            f"<h1>Recorded graph</h1><p>{len(self.nodes)} nodes, {bytes_text(self.nbytes)} kept for "
            f'backward.</p><div style="overflow:auto">{self.to_svg()}</div>'
            "<h2>Kept for backward</h2><table><tr><th>node</th><th>operator</th><th>what</th>"
            f"<th>tensor</th><th>bytes</th></tr>{rows}</table>",
        )

    def save(self, path) -> None:
        """Write the graph; the ending .dot, .svg or .html says how.

        Raises ValueError for another ending.
        """
        writers = {".dot": self.to_dot, ".svg": self.to_svg, ".html": self.to_html}
        path = Path(path)
        if path.suffix not in writers:
            raise ValueError(
                f"explain.graph: unknown ending; got {path.name!r}; expected .dot, .svg or .html"
            )
        path.write_text(writers[path.suffix](), encoding="utf-8")


def _dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _kept_tensors(node) -> list:
    """(name, tensor) of everything a node keeps. Raises RuntimeError where it is freed."""
    if hasattr(node, "saved_tensors"):
        return [(f"tensor {i}", t) for i, t in enumerate(node.saved_tensors) if t is not None]
    out = []
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        value = getattr(node, name)
        items = value if isinstance(value, tuple) else (value,)
        out.extend((name[7:], t) for t in items if isinstance(t, lamina.Tensor))
    return out


def graph(*tensors) -> Graph:
    """The recorded graph of tensors: operators, sizes, and what each keeps for backward.

    Raises ValueError where none of them requires grad.
    """
    roots = [t for t in tensors if t.requires_grad]
    if not roots:
        raise ValueError("explain.graph: none of the tensors requires grad; nothing was recorded")
    return Graph(roots)
