"""A headless Chromium, for the pages that Lamina writes: what is on them, what goes wrong, how they look."""

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Put at a page's end before it is opened: opens what is folded, and tells what only a browser knows.
PROBE = """<script>
for (const d of document.querySelectorAll("details")) d.open = true;
addEventListener("load", () => {
  const style = getComputedStyle(document.body);
  const root = document.documentElement.dataset;
  root.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.ink = style.color;
  root.paper = style.backgroundColor;
  root.details = document.querySelectorAll("details").length;
  root.shown = [...document.querySelectorAll("details > div")].filter(d => d.offsetHeight > 0).length;
  root.pictures = [...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().height > 0).length;
  root.width = document.documentElement.scrollWidth <= innerWidth;
});
</script>"""


@dataclass(frozen=True)
class Seen:
    """A page as the browser has it."""

    text: str  # all elements, as HTML
    facts: dict[str, str]  # what PROBE found
    complaints: list[str]  # lines of the console


def find() -> str | None:
    """The browser of this machine, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def run(arguments: list[str], dark: bool) -> subprocess.CompletedProcess:
    """One start of the browser, with a profile of its own. Raises CalledProcessError."""
    browser = find()
    if browser is None:
        raise FileNotFoundError(f"none of {', '.join(NAMES)} is installed")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--disable-dev-shm-usage", "--no-first-run", f"--user-data-dir={profile}"]
        command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
        command += ["--enable-logging=stderr", *arguments]
        # What is loaded into this process for its tests has no business in the browser.
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            check=True,
            timeout=120,
            env=env,
        )


def look(page: Path, dark: bool) -> Seen:
    """Open a copy of a page with everything unfolded."""
    source = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        opened = Path(folder, "page.html")
        probed = source.replace("</body>", PROBE + "</body>")
        opened.write_text(probed if "</body>" in source else source + PROBE, encoding="utf-8")
        ran = run(["--dump-dom", opened.as_uri()], dark)
    root = re.search(r"<html[^>]*>", ran.stdout)
    facts = dict(re.findall(r'data-(\w+)="([^"]*)"', root[0])) if root else {}
    return Seen(ran.stdout, facts, re.findall(r"CONSOLE.*", ran.stderr))


def shoot(page: Path, picture: Path, dark: bool, size: tuple[int, int]) -> None:
    """Write a picture of a page (.png)."""
    place = f"--screenshot={picture.resolve()}"
    run([place, f"--window-size={size[0]},{size[1]}", page.resolve().as_uri()], dark)
