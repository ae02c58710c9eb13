"""Expressions compiled to programs of the tile machine."""

import pytest

from opgen.errors import ParagraphError, Where
from opgen.formula import translate
from opgen.tile_program import compile_tile

HERE = Where("ops/test.yaml", 1)


def ops(program):
    return [i.op for i in program.code]


def test_registers_are_numbered_inputs_scalars_constants_temporaries():
    p = compile_tile("self + alpha * other * 2", ["self", "other"], ["alpha"], HERE)
    assert p.constants == ("int64_t{2}",)
    assert [(i.op, i.dst, i.sources) for i in p.code] == [
        ("mul", 4, (2, 1)),
        ("mul", 5, (4, 3)),
        ("add", 6, (0, 5)),
    ]
    assert p.output == 6


def test_unit_scalar_folds_away():
    p = compile_tile("self + alpha * other", ["self", "other"], ["alpha"], HERE, {"alpha": "1"})
    assert ops(p) == ["add"]


def test_condition_is_a_bool_input():
    p = compile_tile("self if condition else other", ["condition", "self", "other"], [], HERE)
    assert p.classes == "BCCC"
    assert p.output_class == "C"


def test_a_number_used_as_condition_is_converted():
    p = compile_tile("self if self else other", ["self", "other"], [], HERE)
    assert ops(p) == ["to_bool", "where"]


def test_comparison_gives_bool():
    assert compile_tile("self < other", ["self", "other"], [], HERE).output_class == "B"


def test_common_subexpressions_run_once():
    assert ops(compile_tile("exp(self) * exp(self)", ["self"], [], HERE)) == ["exp", "mul"]


def test_statement_is_refused():
    with pytest.raises(ParagraphError, match="not an expression"):
        compile_tile("x = 1", ["x"], [], HERE)


def test_formula_masks_zero_cotangents():
    assert translate("grad * other", HERE, masked=True).cpp == "mul_zero(grad, other)"
    assert translate("-(grad / other)", HERE, masked=True).cpp == "(-div_zero(grad, other))"
    assert translate("grad * other", HERE).cpp == "(grad * other)"


def test_formula_asks_metadata_without_keeping_values():
    f = translate("sum_to_size(grad, self.sizes())", HERE, lambda n: n.replace(".", "_"))
    assert f.metadata == {("self", "sizes")}
    assert "self" not in f.names
