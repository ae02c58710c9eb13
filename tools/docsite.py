"""The site of ./run docs: the pages of docs/, a page for every group of operators, and a reference from docstrings.

Sources are gathered under build/docs/pages, mkdocs builds build/docs/site from them. Links are checked: one that leads
nowhere fails the build.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

from tools import environment
from tools.common import BUILD, ROOT, say, tool_environment

OUT = ROOT / "build" / "docs"

# What the reference has pages on. A package shows what its __init__ exports; ".*" adds the files below it.
REFERENCE = {
    "nn": ("lamina.nn.modules", "lamina.nn.parameter", "lamina.nn.init", "lamina.nn.utils.*"),
    "nn.functional": ("lamina.nn.functional.*",),
    "optim": ("lamina.optim", "lamina.optim.lr_scheduler", "lamina.optim.swa_utils"),
    "utils.data": ("lamina.utils.data",),
    "serialization": ("lamina.serialization", "lamina.utils.safetensors"),
    "autograd": ("lamina.autograd.*", "lamina.utils.checkpoint"),
    "explain": ("lamina.explain", "lamina.profiler", "lamina.memory"),
    "amp": ("lamina.amp",),
    "library": ("lamina.library", "lamina.overrides"),
    "testing": ("lamina.testing",),
    "func": ("lamina.func",),
    "distributions": ("lamina.distributions.*",),
    "namespaces": (
        "lamina.functional",
        "lamina.fft",
        "lamina.linalg",
        "lamina.masked",
        "lamina.signal",
        "lamina.signal.windows",
        "lamina.special",
    ),
    "parallel": (
        "lamina.nn.parallel.*",
        "lamina.nn.attention",
        "lamina.distributed",
        "lamina.multiprocessing.*",
    ),
    "devices": (
        "lamina.accelerator",
        "lamina.cpu",
        "lamina.cuda",
        "lamina.mps",
        "lamina.xpu",
        "lamina.backends.*",
        "lamina.random",
    ),
    "fx": (
        "lamina.fx",
        "lamina.fx.graph",
        "lamina.fx.graph_module",
        "lamina.fx.node",
        "lamina.fx.proxy",
        "lamina.fx.interpreter",
        "lamina.fx.subgraph_rewriter",
        "lamina.fx.immutable_collections",
        "lamina.fx.passes.*",
    ),
    "compiler": ("lamina.compiler", "lamina.jit", "lamina.onnx.*"),
    "utils": (
        "lamina.utils.dlpack",
        "lamina.utils.hooks",
        "lamina.hub",
        "lamina.storage",
        "lamina.types",
        "lamina.version",
        "lamina.torch_version",
    ),
}

FLOORS = [
    "python", "border", "dispatch", "autograd", "transforms", "shape", "tile", "cpu", "memory", "queue",
]  # fmt: skip
GUIDES = ["coming-from-pytorch", "nn", "optim", "data", "serialize", "explain", "cpp"]
MORE = ["differences", "ops", "adding-an-operator", "dependencies"]


def build(python: str) -> int:
    """Write the site; the status of mkdocs."""
    environment.ensure_packages(python, "docs")
    pages = OUT / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for page in pages.rglob("*.md"):
        page.write_text(for_mkdocs(page.read_text()))
    shutil.copytree(BUILD / "gen" / "docs" / "operators", pages / "operators")
    for page in (pages / "operators").glob("*.md"):
        # x[i][j] in a sentence is no link.
        page.write_text(page.read_text().replace("][", "]\\["))
    write_reference(pages / "reference")
    config = OUT / "mkdocs.yml"
    config.write_text(json.dumps(configuration(pages), indent=1))
    # Not --quiet: mkdocs counts only the warnings that it shows.
    command = [python, "-m", "mkdocs", "build", "--strict", "--config-file", str(config)]
    environ = {**tool_environment(), "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    if ran.returncode == 0:
        say(f"The site is in {OUT / 'site'}: open index.html there")
    else:
        say("\n".join(line for line in ran.stderr.split("\n") if not line.startswith("INFO")))
    return ran.returncode


def for_mkdocs(text: str) -> str:
    """Lists get the empty line before them that Python-Markdown wants."""
    out: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
        starts = re.match(r"(- |\d+\. )", line) and not fenced
        if starts and out and out[-1].strip() and not re.match(r"(- |\d+\. |  )", out[-1]):
            out.append("")
        out.append(line)
    return "\n".join(out)


def modules_of(entry: str) -> list[str]:
    """The module of an entry of REFERENCE, or with ".*" the package and the modules below it."""
    name = entry.removesuffix(".*")
    if name == entry:
        return [name]
    place = ROOT / "python" / Path(*name.split("."))
    files = sorted(f for f in place.rglob("*.py") if f.name != "__init__.py")
    return [name, *(".".join((name, *f.relative_to(place).with_suffix("").parts)) for f in files)]


def write_reference(folder: Path) -> None:
    """One page a subject, with a line for mkdocstrings for every module."""
    folder.mkdir()
    for subject, entries in REFERENCE.items():
        lines = [f"# lamina.{subject}", "", "From the docstrings.", ""]
        for entry in entries:
            for name in modules_of(entry):
                lines += [f"::: {name}", ""]
        (folder / f"{subject}.md").write_text("\n".join(lines))


def configuration(pages: Path) -> dict:
    """What mkdocs is told."""
    operators = sorted(p.name for p in (pages / "operators").glob("*.md"))
    decisions = sorted(p.name for p in (pages / "decisions").glob("*.md"))
    handler = {
        "paths": [str(ROOT / "python")],
        "options": {
            "show_source": False,
            "show_root_heading": True,
            "show_root_full_path": True,
            "show_if_no_docstring": False,
            "heading_level": 2,
            "members_order": "source",
            "separate_signature": True,
            "docstring_options": {"warnings": False},
        },
    }
    return {
        "site_name": "Lamina",
        "docs_dir": str(pages),
        "site_dir": str(OUT / "site"),
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.indexes", "navigation.top", "content.code.copy"],
            "palette": [
                {"media": "(prefers-color-scheme: light)", "scheme": "default"},
                {"media": "(prefers-color-scheme: dark)", "scheme": "slate"},
            ],
        },
        "plugins": ["search", {"mkdocstrings": {"handlers": {"python": handler}}}],
        "markdown_extensions": ["tables", "pymdownx.superfences", "pymdownx.highlight"],
        "validation": {"links": {"not_found": "warn", "anchors": "warn"}},
        "nav": [
            {"Home": "README.md"},
            {"Guides": [f"{name}.md" for name in GUIDES]},
            {"Floors": [f"{name}.md" for name in [*FLOORS, "core"]]},
            {"Proofs": "proofs/README.md"},
            {"More": [f"{name}.md" for name in MORE]},
            {"Decisions": [f"decisions/{name}" for name in decisions]},
            {"Operators": [f"operators/{name}" for name in operators]},
            {"Reference": [f"reference/{name}.md" for name in REFERENCE]},
        ],
    }
