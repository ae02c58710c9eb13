"""Live bytes over time, by what they are: `timeline`."""

from __future__ import annotations

import bisect
import gc
import json
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

import lamina
from lamina import _C

__all__ = ["KINDS", "Timeline", "timeline"]

KINDS = ("parameters", "gradients", "optimizer", "saved", "temporary")
_COLOURS = ("#4c78a8", "#2f8f5b", "#8456b8", "#b4560c", "#8a93a6")


@dataclass(frozen=True)
class _Life:
    """One block of the CPU allocator from when it was taken until it was given back."""

    begin: int
    end: int
    block: int
    nbytes: int
    kind: str


class Timeline:
    """A block whose memory is watched; at its end the picture is written.

    `peak` is the largest number of live bytes, `peak_by_kind` what they were; `samples` holds (microseconds, bytes of
    each of `KINDS`). What a network's parameters, their gradients and an optimizer's state are is asked of the modules and
    optimizers that live at the end; "saved" is what recorded nodes kept for backward; all else is temporary.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else None
        self.samples: list[tuple[float, dict[str, int]]] = []
        self.peak = 0
        self.peak_by_kind: dict[str, int] = dict.fromkeys(KINDS, 0)

    def __enter__(self) -> Timeline:
        self._before = _known()
        _C._trace_start(True, False, True, "")
        return self

    def __exit__(self, *exception: object) -> None:
        trace = _C._trace_read(_C._trace_stop())
        self._build(trace)
        if self.path is not None:
            self.write(self.path)

    def _build(self, trace: dict) -> None:
        start, stop = trace["started"], trace["stopped"]
        lives = _lives(trace, stop)
        changes: dict[int, dict[str, int]] = {}

        def change(time: int, kind: str, nbytes: int) -> None:
            at = changes.setdefault(time, dict.fromkeys(KINDS, 0))
            at[kind] += nbytes

        # What was there before.
        freed: dict[int, int] = {}  # block: when it was first given back
        for time, block, nbytes, _ in trace["memory"]:
            if nbytes < 0:
                freed.setdefault(block, time)
        for address, (nbytes, kind) in self._before.items():
            change(start, kind, nbytes)
            if address in freed:
                change(freed[address], kind, -nbytes)
        for life in lives:
            change(life.begin, life.kind, life.nbytes)
            if life.end < stop:
                change(life.end, life.kind, -life.nbytes)
        now = dict.fromkeys(KINDS, 0)
        for time in sorted(changes):
            for kind, nbytes in changes[time].items():
                now[kind] += nbytes
            total = sum(now.values())
            self.samples.append(((time - start) / 1e3, dict(now)))
            if total > self.peak:
                self.peak, self.peak_by_kind = total, dict(now)

    def write(self, path: str | Path) -> None:
        """Writes the picture: .svg, .json, or a page for every other name."""
        path = Path(path)
        if path.suffix == ".json":
            data = {"kinds": KINDS, "peak": self.peak, "samples": self.samples}
            path.write_text(json.dumps(data), encoding="utf-8")
        elif path.suffix == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        else:
            from lamina.explain._page import document

            path.write_text(
                document("Memory over time", f"<h1>Memory over time</h1>\n{self.body()}"),
                encoding="utf-8",
            )

    def body(self) -> str:
        """The part of a page that shows the timeline."""
        from lamina.explain._text import bytes_text

        rows = "".join(
            f'<tr><th><span style="color:{colour}">&#9632;</span> {kind}</th>'
            f"<td>{bytes_text(self.peak_by_kind[kind])}</td></tr>"
            for kind, colour in zip(KINDS, _COLOURS, strict=True)
        )
        return f"<p>At most {bytes_text(self.peak)} were live:</p><table>{rows}</table>{self.svg()}"

    def svg(self, width: int = 1000, height: int = 320) -> str:
        """Stacked areas, one for each kind."""
        samples = _thinned(self.samples, width)
        if not samples:
            return (
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"></svg>'
            )
        from lamina.explain._text import bytes_text

        last = samples[-1][0] or 1
        top = max(self.peak, 1)
        parts = []
        below = [0] * len(samples)
        for kind, colour in zip(KINDS, _COLOURS, strict=True):
            above = [b + s[1][kind] for b, s in zip(below, samples, strict=True)]
            xs = [width * s[0] / last for s in samples]
            upper = _steps(xs, [height - 20 - (height - 40) * v / top for v in above])
            lower = _steps(xs, [height - 20 - (height - 40) * v / top for v in below])
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
            parts.append(
                f'<polygon points="{points}" fill="{colour}"><title>{escape(kind)}</title></polygon>'
            )
            below = above
        label = f"peak {bytes_text(self.peak)}, {last / 1e3:.3g} ms"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="100%" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(label)}">{"".join(parts)}<text x="4" y="14">{escape(label)}</text></svg>'
        )


def timeline(path: str | Path | None = None) -> Timeline:
    """A block whose live bytes are drawn over time into `path` (.html, .svg or .json) at its end."""
    return Timeline(path)


def _steps(xs: list[float], ys: list[float]) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for x, y in zip(xs, ys, strict=True):
        if out:
            out.append((x, out[-1][1]))
        out.append((x, y))
    return out


def _thinned(samples: list, limit: int) -> list:
    """At most about `limit` samples, the largest of each stretch."""
    if len(samples) <= limit:
        return samples
    step = -(-len(samples) // limit)
    return [
        max(samples[i : i + step], key=lambda s: sum(s[1].values()))
        for i in range(0, len(samples), step)
    ]


def _tensors(things: Iterable) -> Iterable:
    for thing in things:
        if isinstance(thing, lamina.Tensor):
            yield thing
        elif isinstance(thing, dict):
            yield from _tensors(thing.values())
        elif isinstance(thing, list | tuple):
            yield from _tensors(thing)


def _known() -> dict[int, tuple[int, str]]:
    """{first byte of a storage: (bytes, kind)} of parameters, gradients and optimizer states that live now."""
    from lamina.nn import Module
    from lamina.optim import Optimizer

    found: dict[int, tuple[int, str]] = {}

    def add(tensor, kind: str) -> None:
        if tensor is None or tensor.is_meta or tensor.numel() == 0:
            return
        storage = tensor.untyped_storage()
        found.setdefault(storage.data_ptr(), (storage.nbytes(), kind))

    for thing in gc.get_objects():
        if isinstance(thing, Module):
            for parameter in thing.__dict__.get("_parameters", {}).values():
                add(parameter, "parameters")
                if parameter is not None:
                    add(parameter.grad, "gradients")
            for buffer in thing.__dict__.get("_buffers", {}).values():
                add(buffer, "parameters")
        elif isinstance(thing, Optimizer):
            for group in thing.param_groups:
                for parameter in group["params"]:
                    add(parameter, "parameters")
                    add(parameter.grad, "gradients")
            for tensor in _tensors(list(thing.state.values())):
                add(tensor, "optimizer")
    return found


def _lives(trace: dict, stop: int) -> list[_Life]:
    """Blocks that were taken while the events were read, each with its kind."""
    open_blocks: dict[int, tuple[int, int]] = {}
    spans: list[tuple[int, int, int, int]] = []  # begin, end, block, bytes
    for time, block, nbytes, _ in trace["memory"]:
        if nbytes > 0:
            open_blocks[block] = (time, nbytes)
        elif block in open_blocks:
            begin, size = open_blocks.pop(block)
            spans.append((begin, time, block, size))
    spans += [(begin, stop, block, size) for block, (begin, size) in open_blocks.items()]
    spans.sort(key=lambda s: s[2])
    starts = [s[2] for s in spans]

    kinds: dict[int, str] = {}

    def mark(address: int, time: int, kind: str) -> None:
        """The block around `address` that lived at `time`."""
        i = bisect.bisect_right(starts, address) - 1
        while i >= 0 and address < spans[i][2] + max(spans[i][3], 1):
            begin, end, _, _ = spans[i]
            if begin <= time <= end:
                kinds.setdefault(i, kind)
                return
            i -= 1

    for address, (_, kind) in _known().items():
        mark(address, stop, kind)
    for record in trace["records"]:
        for _, tensor in record["saved"]:
            mark(tensor[4], record["end"] or stop, "saved")
    return [
        _Life(begin, end, block, size, kinds.get(i, "temporary"))
        for i, (begin, end, block, size) in enumerate(spans)
    ]
