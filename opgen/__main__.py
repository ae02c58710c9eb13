"""Command line of the generator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from opgen.errors import ParagraphError
from opgen.generate import outputs, read

ROOT = Path(__file__).parent.parent


def write_changed(path: Path, text: str) -> bool:
    """Writes only what differs, so that nothing is rebuilt without need."""
    if path.exists() and path.read_text() == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return True


def show(name: str, ops_folder: Path) -> str:
    """Everything that is generated for one operator."""
    ops = [
        op for op in read(ops_folder) if op.name.strip("_") == name.strip("_") or name in op.aliases
    ]
    if not ops:
        return ""
    text = "".join(f"# {op.where}: {op.schema}\n" for op in ops)
    for path, (_, content) in outputs(ops).items():
        if "_" in path and path.rsplit("_", 1)[-1][:1].isdigit() and not path.endswith("_0.cpp"):
            body = content.split("\n\n")
            if len(body) <= 3:
                continue
        text += f"\n==== {path} {'=' * max(4, 90 - len(path))}\n{content}"
    return text


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="opgen", description=__doc__)
    parser.add_argument("--ops", type=Path, default=ROOT / "ops", help="folder of the op list")
    parser.add_argument("--out", type=Path, help="write all outputs below this folder")
    parser.add_argument("--list-outputs", action="store_true", help="print 'group path' lines")
    parser.add_argument(
        "--show", metavar="NAME", help="print everything generated for one operator"
    )
    options = parser.parse_args(argv)
    try:
        if options.show:
            text = show(options.show, options.ops)
            if not text:
                print(
                    f"opgen: no operator named {options.show!r} in {options.ops}", file=sys.stderr
                )
                return 1
            print(text)
            return 0
        files = outputs(read(options.ops))
    except ParagraphError as e:
        print(f"opgen: error: {e}", file=sys.stderr)
        return 1
    if options.list_outputs:
        for path, (group, _) in files.items():
            print(group, path)
    if options.out:
        for path, (_, text) in files.items():
            write_changed(options.out / path, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
