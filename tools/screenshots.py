"""Pictures of the pages that Lamina writes, for the docs: docs/pictures/*.png, each light and dark.

    .venv/bin/python -m tools.screenshots

Needs Chromium (apt-get install chromium) and an installed Lamina.
"""

import tempfile
from pathlib import Path

from tools import browser

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
# Page: the window that its picture shows.
WINDOWS = {"explain": (900, 760), "graph": (900, 620), "memory": (900, 600), "report": (900, 760)}


def write_pages(folder: Path) -> dict[str, Path]:
    """One page of every kind, of a small network's training; {name: path}."""
    from lamina.demo.report import report
    from lamina.demo.training import Curve

    import lamina
    from lamina import nn

    lamina.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = lamina.randn(128, 64), lamina.randint(0, 10, (128,))
    losses = []

    def loss():
        return nn.functional.cross_entropy(model(x), y)

    def step():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        losses.append(value.item())

    pages = {name: folder / f"{name}.html" for name in WINDOWS}
    step()  # loads what loads at first use
    with lamina.memory.timeline(pages["memory"]) as memory:
        for _ in range(3):
            step()
    for _ in range(40):
        step()
    explained = lamina.explain(step)
    explained.to_html(pages["explain"])
    lamina.explain.graph(loss()).save(pages["graph"])
    facts = [("network", "64, 256, 10"), ("training", f"{len(losses)} steps")]
    page = report([Curve("training loss", losses)], facts, explained, memory, "In the beginning")
    pages["report"].write_text(page, encoding="utf-8")
    return pages


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, page in write_pages(Path(folder)).items():
            if name == "explain":
                # The first product of the forward pass, unfolded.
                text = page.read_text(encoding="utf-8")
                at = text.index("<code>aten::linear")
                at = text.rindex("<details>", 0, at)
                page.write_text(text[:at] + "<details open>" + text[at + len("<details>") :])
            for dark in (False, True):
                picture = PICTURES / f"{name}-{'dark' if dark else 'light'}.png"
                browser.shoot(page, picture, dark, WINDOWS[name])
                print(f"{picture}: {picture.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
