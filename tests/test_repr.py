"""Texts of tensors and of the small types, equal to those that PyTorch 2.13 gives."""

import json
from pathlib import Path

import pytest

import lamina
from tests import repr_cases

CASES = json.loads((Path(__file__).parent / "expected" / "reprs.json").read_text())


@pytest.mark.parametrize("expression, expected", CASES, ids=[c[0] for c in CASES])
def test_text(expression, expected):
    value = eval(expression, {"t": lamina, "float": float, "str": str})
    assert (value if isinstance(value, str) else repr(value)) == expected


def test_options():
    x = lamina.arange(20.0) / 3
    try:
        lamina.set_printoptions(precision=2, threshold=10, edgeitems=1, linewidth=40)
        assert repr(x) == "tensor([0.00,  ..., 6.33])"
        lamina.set_printoptions(profile="default", sci_mode=True)
        assert repr(lamina.tensor([1.5])) == "tensor([1.5000e+00])"
    finally:
        lamina.set_printoptions(profile="default")
    assert lamina.get_printoptions()["precision"] == 4


def test_subclass_says_its_name():
    class Mine(lamina.Tensor):
        pass

    assert repr(Mine([1.0])) == "Mine([1.])"


def test_corpus_of_texts_that_torch_gave():
    recorded = json.loads((Path(__file__).parent / "expected" / "repr_corpus.json").read_text())
    cases = repr_cases.cases()
    assert len(cases) == len(recorded) > 600
    different = [
        (options, expression, want, got)
        for (options, expression), want in zip(cases, recorded)
        if want is not None and (got := repr_cases.text_of(lamina, options, expression)) != want
    ]
    assert different == []
