"""Programs that must fail: the exception's type is torch's, and its text names what is wrong."""

import pytest

import lamina
from tests.errors.programs import PROGRAMS


@pytest.mark.parametrize("program, kind, words", PROGRAMS, ids=[p[0] for p in PROGRAMS])
def test_program_fails(program, kind, words):
    names = {
        "t": lamina,
        "a": lamina.ones(2, 3),
        "b2": lamina.ones(2, 4),
        "a2": lamina.ones(2, 3, requires_grad=True),
    }
    try:
        eval(program, names)
    except Exception as error:
        raised = error
    else:
        pytest.fail("nothing was raised")
    assert type(raised).__name__ == kind, raised
    for word in words:
        assert word in str(raised)
    assert str(raised)


def test_there_are_many():
    assert len(PROGRAMS) >= 250


def test_signatures_are_listed_with_what_did_not_fit():
    with pytest.raises(TypeError) as caught:
        lamina.tensor([1.0]).to(1.5)
    text = str(caught.value)
    assert "got (float)" in text and text.count("didn't match because") == 3
    with pytest.raises(TypeError, match=r"argument 'other' \(position 2\) must be Tensor"):
        lamina.maximum(lamina.ones(2), "x")
