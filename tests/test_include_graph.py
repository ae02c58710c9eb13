"""Which room may include which: a room knows only the rooms below it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ROOT / "lamina"

# From the top of the house to the bottom; rooms of one row may know each other.
ORDER = [
    ["border"],
    ["autograd", "composite", "kernels", "shape", "transforms"],
    ["dispatch"],
    ["tile", "cpu"],
    ["event"],
    ["memory"],
    ["queue"],
    ["core"],
]
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}
# The event stream is read and written on every floor; it includes nothing of them.
EVERYWHERE = {"event", "core"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


def files():
    return [p for p in sorted(LIBRARY.rglob("*")) if p.suffix in (".h", ".cpp")]


def includes(path):
    return INCLUDE.findall(path.read_text())


def test_every_folder_is_a_known_room():
    rooms = {p.relative_to(LIBRARY).parts[0] for p in files() if p.parent != LIBRARY}
    assert rooms <= set(LEVEL), f"rooms without a place in the order: {rooms - set(LEVEL)}"


def test_rooms_include_only_rooms_below():
    wrong = []
    for path in files():
        if path.parent == LIBRARY:
            continue
        room = path.relative_to(LIBRARY).parts[0]
        for name in includes(path):
            parts = name.split("/")
            if parts[0] != "lamina" or len(parts) < 3 or parts[1] not in LEVEL:
                continue
            if parts[1] not in EVERYWHERE and LEVEL[parts[1]] < LEVEL[room]:
                wrong.append(f"{path.relative_to(ROOT)} includes {name}")
    assert not wrong, "\n".join(wrong)


def test_only_the_border_knows_python():
    wrong = [
        str(path.relative_to(ROOT))
        for path in files()
        if path.relative_to(LIBRARY).parts[0] != "border"
        and any(n in ("Python.h", "structmember.h") for n in includes(path))
    ]
    assert not wrong, f"Python.h outside border/: {wrong}"


def test_headers_are_guarded_and_included_from_the_root():
    wrong = []
    for path in files():
        text = path.read_text()
        if path.suffix == ".h" and "#pragma once" not in text:
            wrong.append(f"{path.relative_to(ROOT)}: no #pragma once")
        for name in re.findall(r'#include "([^"]+)"', text):
            if not name.startswith("lamina/"):
                wrong.append(f'{path.relative_to(ROOT)}: #include "{name}"')
    assert not wrong, "\n".join(wrong)
