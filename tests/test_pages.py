"""Every page that the library writes, opened in a headless Chromium: light and dark, all parts unfolded."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools import browser, screenshots  # noqa: E402

pytestmark = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium on this machine (apt-get install chromium)"
)

EXPECTED = {
    "explain": ("What ran", "3 border", "aten::addmm", "AddmmBackward0", "strides"),
    "graph": ("Recorded graph", "AddmmBackward0", "AccumulateGrad", "Kept for backward"),
    "memory": ("Memory over time", "parameters", "optimizer", "peak"),
    "report": ("What Lamina's demo did", "training loss", "Memory during", "floor by floor"),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return screenshots.write_pages(tmp_path_factory.mktemp("pages"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", EXPECTED)
def test_page_opens(pages, name, dark):
    seen = browser.look(pages[name], dark)
    assert seen.complaints == []
    for text in EXPECTED[name]:
        assert text in seen.text
    facts = seen.facts
    assert facts["dark"] == str(dark).lower()
    assert int(facts["pictures"]) >= 1
    # Unfolded, every part has a height.
    assert facts["details"] == facts["shown"]
    assert (int(facts["details"]) > 10) == (name in ("explain", "report"))
    ink, paper = (brightness(facts[which]) for which in ("ink", "paper"))
    assert ink > paper + 0.5 if dark else paper > ink + 0.5


def brightness(colour):
    """From 0 to 1, of "rgb(1, 2, 3)"."""
    return sum(float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 765


def test_a_graph_alone_is_a_picture(tmp_path):
    import lamina

    path = tmp_path / "graph.svg"
    w = lamina.ones(3, requires_grad=True)
    lamina.explain.graph((w * w).sum()).save(path)
    picture = tmp_path / "graph.png"
    browser.shoot(path, picture, False, (400, 300))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_broken_page_is_noticed(tmp_path):
    page = tmp_path / "broken.html"
    page.write_text("<!doctype html><html><body><script>nothing.here</script></body></html>")
    assert browser.look(page, False).complaints
