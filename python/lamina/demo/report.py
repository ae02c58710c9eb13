"""The demo's report: curves, memory over time, and one training step seen through every floor."""

from __future__ import annotations

from html import escape

from lamina.demo.training import Curve
from lamina.explain import Explanation
from lamina.explain._page import COLOURS, body, document
from lamina.memory import Timeline


def report(
    curves: list[Curve],
    facts: list[tuple[str, str]],
    step: Explanation,
    memory: Timeline,
    sample: str,
) -> str:
    """The page."""
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts)
    parts = [
        "<h1>What Lamina's demo did</h1>",
        f"<table>{rows}</table>",
        "<h2>Loss</h2>",
        *(_curve(curve, COLOURS[i % len(COLOURS)]) for i, curve in enumerate(curves)),
        f"<h2>What the character model writes</h2><pre>{escape(sample)}</pre>",
        "<h2>Memory during three training steps</h2>",
        memory.body(),
        "<h2>One training step, floor by floor</h2>",
        body(step),
    ]
    return document("What Lamina's demo did", "\n".join(parts))


def _curve(curve: Curve, colour: str, width: int = 900, height: int = 160) -> str:
    if not curve.losses:
        return f"<p>{escape(curve.name)}: no step was taken</p>"
    count = max(1, len(curve.losses) // 300)
    means = [
        sum(piece) / len(piece)
        for piece in (curve.losses[i : i + count] for i in range(0, len(curve.losses), count))
    ]
    top = max(means) or 1
    points = " ".join(
        f"{width * i / max(len(means) - 1, 1):.1f},{height - (height - 20) * m / top:.1f}"
        for i, m in enumerate(means)
    )
    label = f"{curve.name}: {curve.losses[0]:.3f} to {means[-1]:.3f} in {len(curve.losses)} steps"
    return (
        f'<p>{escape(label)}</p><svg viewBox="0 0 {width} {height}" width="100%" role="img" '
        f'aria-label="{escape(label)}"><polyline points="{points}" fill="none" stroke="{colour}" '
        'stroke-width="2"/></svg>'
    )
