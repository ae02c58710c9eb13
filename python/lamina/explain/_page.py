"""An explanation as one HTML page without outside parts."""

from __future__ import annotations

from html import escape

from lamina.explain._events import Call, TensorNote, Value
from lamina.explain._text import bytes_text, loop_text, memory_text, signature_text, time_text

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --paper: #fbfbfd; --line: #d5d9e2; --soft: #eef0f5; --accent: #2f6fdb;
  --warm: #b4560c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e2e6ef; --paper: #14171e; --line: #343b4a; --soft: #1d222c;
  --accent: #79a8ff; --warm: #f0a35e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code, .mono { font-family: ui-monospace, monospace; font-size: 0.92em; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.4rem 0; background: var(--paper); }
details > summary { cursor: pointer; padding: 0.35rem 0.7rem; background: var(--soft); border-radius: 6px; }
details > div { padding: 0.4rem 0.9rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: 0.2rem 0.7rem 0.2rem 0; }
th { font-weight: 600; white-space: nowrap; width: 12rem; }
.time { float: right; color: var(--warm); } .dim { opacity: 0.7; }
.bar { display: flex; height: 1.4rem; border-radius: 4px; overflow: hidden; margin: 0.6rem 0; }
.bar span { color: #fff; font-size: 0.8rem; padding: 0 0.4rem; overflow: hidden; white-space: nowrap; }
svg { vertical-align: middle; margin-right: 0.8rem; } svg text { fill: var(--ink); font: 9px ui-monospace, monospace; }
"""
COLOURS = ("#6b7280", "#4c78a8", "#8456b8", "#b4560c", "#2f8f5b", "#a33b5a", "#54767b")


def document(title: str, body: str) -> str:
    """A whole page in the house's style."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def page(explanation) -> str:
    """The page of one explanation."""
    return document("What ran", f"<h1>What ran</h1>\n{body(explanation)}")


def body(explanation) -> str:
    """The part of a page that shows one explanation."""
    roots = explanation.roots
    out = [
        f"<p>{len(roots)} calls from Python, {len(explanation.calls)} in all. Open a call to see it fall through the "
        "floors; what it called lies inside of it.</p>",
        _floor_bar(explanation.floors()),
    ]
    last = None
    for call in roots:
        if call.line is not None and call.line != last:
            last = call.line
            out.append(f"<h2><code>{escape(last[0])}:{last[1]}</code> in {escape(last[2])}</h2>")
        out.append(_call(explanation, call))
    return "\n".join(out)


def _floor_bar(floors: dict[str, int]) -> str:
    total = sum(floors.values()) or 1
    parts = "".join(
        f'<span style="width:{100 * ns / total:.2f}%;background:{COLOURS[i % len(COLOURS)]}" '
        f'title="{escape(name)}: {time_text(ns)}">{escape(name)} {time_text(ns)}</span>'
        for i, (name, ns) in enumerate(floors.items())
    )
    return f'<div class="bar">{parts}</div>'


def _call(explanation, call: Call) -> str:
    given = ", ".join(
        f"{escape(a.name)}={escape(str(a))}" for a in call.arguments if a.kind != "None"
    )
    gives = ", ".join(escape(str(r)) for r in call.results)
    head = f"<code>{escape(call.name)}</code>"
    if call.kind == "call":
        head += f'<span class="mono dim">({given}) &rarr; {gives or ("raised" if call.failed else "nothing")}</span>'
    else:
        head = f"{escape(call.kind)} {head}"
    rows = "".join(
        f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in _floors(explanation, call)
    )
    inside = "".join(_call(explanation, c) for c in call.children)
    return (
        f'<details><summary><span class="time">{time_text(call.duration)}</span>{head}</summary>'
        f"<div><table>{rows}</table>{inside}</div></details>"
    )


def _floors(explanation, call: Call) -> list[tuple[str, str]]:
    """(floor, what happened there) from the caller's line down to the machine."""
    rows = []
    if call.parent is None and call.line:
        file, number, function = call.line
        rows.append(("1 program", f"<code>{escape(file)}:{number}</code> in {escape(function)}"))
    if call.kind == "call":
        rows.append(("2 Python", f"<code>{escape(call.schema)}</code>{_pictures(call)}"))
    if call.kind == "call" and call.outer and call.entrance is not None:
        way_in, way_back = call.border
        taken = signature_text(call) or "nothing had to be matched"
        text = (
            f"<code>{escape(taken)}</code><br>{time_text(way_in)} from the call to the dispatcher, "
            f"{time_text(way_back)} back"
        )
        for overload, reason in explanation.other_overloads(call):
            text += f"<br>not <code>{escape(overload)}</code>: {escape(reason)}"
        rows.append(("3 border", text))
    if call.keys:
        keys = ", ".join(f"<b>{k}</b>" if k == call.key else k for k in call.keys)
        text = f"keys {keys}: {escape(call.rule)} of <code>{escape(call.where)}</code>"
        if call.node:
            kept = "; ".join(
                f"<code>{escape(n)}</code> {escape(str(t))}, {bytes_text(t.nbytes)}"
                for n, t in call.saved
            )
            text += (
                f"<br>recorded <code>{escape(call.node)}</code>, which keeps {kept or 'nothing'}"
            )
        rows.append(("4 dispatch, autograd", text))
    if call.kernels or call.refusals:
        ran = [
            f"{escape(f)}: <b>{escape(n)}</b>{f', {e} elements' if e else ''}"
            for f, n, _, e in call.kernels
        ]
        refused = [f"{escape(k)} refused: {escape(r)}" for k, r in call.refusals]
        rows.append(("5 kernels", "<br>".join(ran + refused)))
    if call.allocated or call.freed:
        rows.append(("6 memory", f"{memory_text(call)}, {time_text(call.allocator)}"))
    if call.loops:
        loops = [f"{loop_text(n, t)}, {time_text(ns)}" for n, t, ns in call.loops]
        rows.append(("7 queue", "<br>".join(loops)))
    machines = sorted({isa for _, _, isa, _ in call.kernels if isa})
    if machines:
        rows.append(("8 machine", ", ".join(map(escape, machines))))
    return rows


def _pictures(call: Call) -> str:
    out = []
    for value in (*call.arguments, *call.results):
        for t in value.tensors[:4]:
            out.append(_picture(value, t))
    return f"<div>{''.join(out)}</div>" if out else ""


_SHOWN = 6  # rows and columns of a picture, at most


def _picture(value: Value, t: TensorNote) -> str:
    """The last two dimensions as a grid; each place says how many elements from the beginning it lies."""
    sizes = (1, 1, *t.sizes)[-2:]
    strides = (0, 0, *t.strides)[-2:]
    rows, cols = min(sizes[0], _SHOWN), min(sizes[1], _SHOWN)
    cell = 26
    places = [
        [t.offset + r * strides[0] + c * strides[1] for c in range(cols)] for r in range(rows)
    ]
    span = max((max(map(abs, row)) for row in places if row), default=0) or 1
    parts = []
    for r, row in enumerate(places):
        for c, place in enumerate(row):
            shade = 0.12 + 0.6 * abs(place) / span
            parts.append(
                f'<rect x="{c * cell}" y="{14 + r * cell}" width="{cell - 1}" height="{cell - 1}" '
                f'fill="var(--accent)" fill-opacity="{shade:.2f}"/>'
                f'<text x="{c * cell + 3}" y="{14 + r * cell + 16}">{place}</text>'
            )
    more = " ..." if sizes[0] > rows or sizes[1] > cols or len(t.sizes) > 2 else ""
    label = f"{value.name or 'result'} {t} strides {t.strides}{more}"
    width = max(cols * cell, 6 * len(label))
    return (
        f'<svg width="{width}" height="{14 + rows * cell}" role="img" aria-label="{escape(label)}">'
        f'<text x="0" y="9">{escape(label)}</text>{"".join(parts)}</svg>'
    )
