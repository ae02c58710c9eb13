"""The scripts of docs/proofs: written for PyTorch, run by ``python -m lamina``, printing what is stored beside them.

`python tests/test_proofs.py --write` stores the present output of every script whose output does not fit.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROOFS = ROOT / "docs" / "proofs"
SCRIPTS = sorted(PROOFS.glob("*.py"))
MEASURED = {"compiled_part", "cost_of_add"}


def printed_by(script):
    """What a script prints; it has to end well."""
    command = [sys.executable, "-m", "lamina", str(script.relative_to(ROOT))]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def shape_of(text):
    """What is compared of figures: that they are there."""
    text = re.sub(r"_C\.[\w.-]+\.so", "_C.so", text)
    text = re.sub(r"\d+\.\d+", "#", text)
    return re.sub(r"\|\*+", "|*", re.sub(r" +", " ", text))


def fits(script, expected, printed):
    """Equal; where the script measures, equal but for the figures."""
    if script.stem in MEASURED:
        return shape_of(expected) == shape_of(printed)
    return expected == printed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_proof_prints_what_is_stored(script):
    printed = printed_by(script)
    expected = script.with_suffix(".txt").read_text()
    assert fits(script, expected, printed), f"printed\n{printed}\nstored\n{expected}"


def test_proofs_are_written_for_pytorch():
    for script in SCRIPTS:
        text = script.read_text()
        assert "import torch\n" in text and "lamina" not in text, script.name


def test_every_proof_is_listed():
    listed = set(re.findall(r"\]\((\w+\.py)\)", (PROOFS / "README.md").read_text()))
    assert listed == {script.name for script in SCRIPTS}


def test_every_floor_has_its_proof():
    floors = ["python", "border", "dispatch", "autograd", "shape", "tile", "cpu", "memory"]
    for name in [*floors, "queue", "core", "explain", "nn", "optim", "serialize"]:
        page = (ROOT / "docs" / f"{name}.md").read_text().split("\n## ")[0]
        targets = re.findall(r"\]\((proofs/\w+\.py)\)", page)
        assert targets, f"{name}.md names no proof"
        assert all((ROOT / "docs" / target).exists() for target in targets)


if __name__ == "__main__" and "--write" in sys.argv:
    for path in SCRIPTS:
        stored, output = path.with_suffix(".txt"), printed_by(path)
        if not stored.exists() or not fits(path, stored.read_text(), output):
            stored.write_text(output)
            print("stored", stored.relative_to(ROOT))
