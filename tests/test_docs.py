"""The examples in README.md and docs/ run, and print what the pages say.

The ```python blocks of a page run in order and share their names. A ```text block right after one
is its output; an exception ends a block and prints as `Type: message`. Lines of the page may hold
`...` for what differs from run to run. `python tests/test_docs.py --write` puts the present output in
every such block that does not fit.
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(\n?```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run(code, names):
    """What a block prints, its exception included."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(code, "<example>", "exec"), names)
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
    return out.getvalue()


def fits(expected, printed):
    """Equal up to blanks at line ends, with ... for anything."""
    parts = ["\n".join(map(str.rstrip, text.strip().split("\n"))) for text in (expected, printed)]
    pattern = ".*?".join(map(re.escape, parts[0].split("...")))
    return re.fullmatch(pattern, parts[1], re.DOTALL) is not None


def examples(page):
    return list(BLOCK.finditer(page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_print_what_the_page_says(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {"__name__": "example"}
    for match in examples(page):
        printed = run(match[1], names)
        expected = match[3] or ""
        assert fits(expected, printed), f"{match[1]}\nprinted\n{printed}\nthe page says\n{expected}"


def test_every_floor_opens_with_an_example():
    floors = ["python", "border", "dispatch", "autograd", "shape", "tile", "cpu"]
    floors += ["memory", "queue", "core"]
    for name in floors:
        page = ROOT / "docs" / f"{name}.md"
        assert page.exists(), f"no page for {name}"
        opening = page.read_text().split("\n## ")[0]
        assert "```python" in opening, f"{name}.md does not open with an example"


def test_links_lead_somewhere():
    wrong = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)", text):
            if target.startswith(("http:", "https:")):
                continue
            place = (page.parent / target).resolve()
            # The site has the pages of docs/ and nothing beside them.
            leaves = (ROOT / "docs") in page.parents and (ROOT / "docs") not in place.parents
            if leaves or not place.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {target}")
    assert not wrong, "\n".join(wrong)


def test_every_page_is_listed_and_has_a_place_on_the_site():
    from tools import docsite

    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([^)#]+\.md)\)", (docs / "README.md").read_text())
    pages = {str(p.relative_to(docs)) for p in docs.rglob("*.md")} - {"README.md"}
    assert pages == set(listed)
    named = {f"{n}.md" for n in [*docsite.FLOORS, "core", *docsite.GUIDES, *docsite.MORE]}
    assert {p for p in pages if "/" not in p} == named
    for entries in docsite.REFERENCE.values():
        for entry in entries:
            for name in docsite.modules_of(entry):
                place = ROOT / "python" / Path(*name.split("."))
                assert place.is_dir() or place.with_suffix(".py").exists(), name


def test_every_public_module_has_a_place_in_the_reference():
    from tools import docsite

    shown = {
        name
        for entries in docsite.REFERENCE.values()
        for entry in entries
        for name in docsite.modules_of(entry)
    }
    package = ROOT / "python" / "lamina"
    public = set()
    for file in package.rglob("*.py"):
        parts = file.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if "._" not in name:
            public.add(name)
    # The page of a package shows what it exports.
    packages = {"lamina", "lamina.nn", "lamina.nn.common_types", "lamina.utils"}
    missing = {
        name
        for name in public - shown - packages
        if not name.startswith("lamina.demo") and not any(name.startswith(f"{s}.") for s in shown)
    }
    assert not missing


def test_every_public_operator_has_a_page():
    pages = ROOT / "build" / "release" / "gen" / "docs" / "operators"
    if not pages.exists():
        pytest.skip("the operators' pages are made by the build in build/release")
    written = "".join(page.read_text() for page in pages.glob("*.md"))
    for paragraphs in (ROOT / "ops").glob("*.yaml"):
        for name in re.findall(r"^- op: ([a-z]\w*)", paragraphs.read_text(), flags=re.MULTILINE):
            assert re.search(rf"^{name}(\.\w+)?\(", written, flags=re.MULTILINE), name


def write(page):
    """Replace outputs that do not fit."""
    names = {"__name__": "example"}

    def fill(match):
        printed = run(match[1], names)
        if fits(match[3] or "", printed):
            return match[0]
        if not printed.strip():
            return f"```python\n{match[1]}```\n"
        body = "\n".join(map(str.rstrip, printed.strip().split("\n")))
        return f"```python\n{match[1]}```\n```text\n{body}\n```" + ("" if match[2] else "\n")

    text = page.read_text()
    new = BLOCK.sub(fill, text)
    if new != text:
        page.write_text(new)
        print("changed", page.relative_to(ROOT))


if __name__ == "__main__" and "--write" in sys.argv:
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for path in PAGES:
        write(path)
