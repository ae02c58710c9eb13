"""explain.graph and explain.memory: the recorded graph and the lines that hold memory."""

import xml.etree.ElementTree as ElementTree

import pytest

import lamina
from lamina import explain


def loss_of(x, w):
    hidden = (x @ w).tanh()
    return (hidden * hidden).sum()


def test_the_graph_shows_operators_sizes_and_what_is_kept():
    x = lamina.ones(2, 3)
    w = lamina.ones(3, 4, requires_grad=True)
    g = explain.graph(loss_of(x, w))
    names = [b.name for b in g.nodes]
    assert names == [
        "SumBackward0",
        "MulBackward0",
        "TanhBackward0",
        "MmBackward0",
        "AccumulateGrad",
    ]
    # mm keeps x (24 bytes); tanh its result (32), which the product shares.
    assert g.nbytes == 24 + 32
    text = str(g)
    assert "leaf float32[3, 4]" in text and "56 B kept for backward" in text
    assert "keeps self: float32[2, 3], 24 B" in text and "shared" in text


def test_pictures(tmp_path):
    w = lamina.ones(3, 4, requires_grad=True)
    g = explain.graph(loss_of(lamina.ones(2, 3), w))
    for ending in ("dot", "svg", "html"):
        g.save(tmp_path / f"graph.{ending}")
    dot = (tmp_path / "graph.dot").read_text()
    assert dot.startswith("digraph") and "n0 -> n1;" in dot and "MmBackward0" in dot
    svg = ElementTree.parse(tmp_path / "graph.svg").getroot()
    boxes = [e for e in svg.iter() if e.tag.endswith("rect")]
    assert len(boxes) == 5
    # No two boxes overlap.
    places = [[float(e.get(k)) for k in ("x", "y", "width", "height")] for e in boxes]
    for i, (x, y, width, height) in enumerate(places):
        for x2, y2, width2, height2 in places[i + 1 :]:
            assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y
    page = (tmp_path / "graph.html").read_text()
    assert page.startswith("<!doctype html>") and "<svg" in page and "src=" not in page
    with pytest.raises(ValueError, match="unknown ending"):
        g.save(tmp_path / "graph.png")
    with pytest.raises(ValueError, match="nothing was recorded"):
        explain.graph(lamina.ones(2))


def test_a_graph_that_has_run_keeps_nothing():
    w = lamina.ones(3, 4, requires_grad=True)
    loss = loss_of(lamina.ones(2, 3), w)
    loss.backward()
    g = explain.graph(loss)
    assert g.nbytes == 0 and any(b.released for b in g.nodes)


def test_memory_by_line():
    x = lamina.ones(2, 3)
    w = lamina.ones(3, 4, requires_grad=True)
    with explain.memory() as held:
        loss = loss_of(x, w)
    assert held.nbytes == 24 + 32
    lines = held.by_line()
    assert {function for _, _, function in lines} == {"loss_of"}
    assert sum(len(operators) for operators in lines.values()) == 2
    assert "in loss_of: MmBackward0 24" in str(held)
    loss.backward()
    assert held.nbytes == 0
    assert w.grad is not None


def test_memory_still_refuses_written_tensors():
    w = lamina.ones(2, requires_grad=True)
    with explain.memory():
        y = w * 1
        z = y.sin()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()
