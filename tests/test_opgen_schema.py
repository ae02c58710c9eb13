"""The schema grammar and the checks that a wrong paragraph fails."""

import textwrap

import pytest

from opgen.errors import ParagraphError, Where
from opgen.load import load_file
from opgen.model import build
from opgen.schema import expand_unions, parse_schema

HERE = Where("ops/test.yaml", 3)


def test_grammar_round_trip():
    for text in (
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]",
    ):
        assert str(parse_schema(text, HERE)) == text.replace("Tensor(a)[]", "Tensor(a)[]")


def test_union_gives_one_overload_a_choice():
    schema = parse_schema("pow(Scalar|Tensor self, Scalar|Tensor exponent) -> Tensor", HERE)
    names = [
        s.overload for s in expand_unions(schema, {"Scalar_Scalar": "-", "Scalar_Tensor": "Scalar"})
    ]
    assert names == ["Tensor_Tensor", "Tensor_Scalar", "Scalar"]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("add Tensor self -> Tensor", "malformed schema"),
        ("add(Tensr self) -> Tensor", "unknown type"),
        ("add(Tensor self, Tensor self) -> Tensor", "appears twice"),
        ("add(Tensor self=None, Tensor other) -> Tensor", "without default"),
        ("add(Tensor self, *, int a, *, int b) -> Tensor", "two '*'"),
        ("add(int(a!) self) -> Tensor", "only tensors"),
        ("add(Tensor self) -> Tensor(b)", "which no parameter is in"),
    ],
)
def test_wrong_schema_says_where_and_why(schema, reason):
    with pytest.raises(ParagraphError) as e:
        parse_schema(schema, HERE)
    assert str(e.value).startswith("ops/test.yaml:3: ")
    assert reason in str(e.value)


GOOD = {
    "op": "zap(Tensor self) -> Tensor",
    "kind": "pointwise",
    "tile": "exp(self)",
    "grad": "{self: grad * conj(result)}",
    "doc": "Zap.",
}


def write(tmp_path, **changes):
    fields = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
    first, *rest = (f"{k}: {v}" for k, v in fields.items())
    ops = tmp_path / "ops"
    ops.mkdir(exist_ok=True)
    path = ops / "zap.yaml"
    path.write_text(
        "# A comment.\n" + textwrap.dedent(f"- {first}\n") + "".join(f"  {r}\n" for r in rest)
    )
    return load_file(path, tmp_path)


def test_good_paragraph(tmp_path):
    (op,) = build(write(tmp_path))
    assert op.gradients.node == "ZapBackward0"
    assert op.program.single_op == "exp"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"grad": None}, "neither given ('grad') nor said to be absent"),
        ({"no_grad": "flat"}, "both 'grad' and 'no_grad'"),
        ({"grad": None, "no_grad": "'x'"}, "must say why"),
        ({"kind": "pointy"}, "kind is 'pointy'"),
        ({"tile": "expp(self)"}, "unknown operation 'expp'"),
        ({"tile": "exp(other)"}, "unknown name 'other'"),
        ({"tile": "add(self)"}, "add takes 2 operands; got 1"),
        ({"tile": None}, "needs the field 'tile'"),
        ({"grad": "{other: grad}"}, "which is no parameter"),
        ({"doc": None}, "has no 'doc'"),
        ({"variants": "[functional]"}, "unknown variant"),
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"promote": "up"}, "promote is 'up'"),
        ({"vmap": "bmm"}, "vmap is 'bmm'"),
        ({"jvp": "{other: other_t}"}, "'jvp' names 'other', which is no parameter"),
        ({"jvp": "{self: [self_t, self_t]}"}, "more formulas than there are results"),
        ({"no_jvp": "'x'"}, "'no_jvp' must say why"),
    ],
)
def test_wrong_paragraph_says_where_and_why(tmp_path, changes, reason):
    with pytest.raises(ParagraphError) as e:
        build(write(tmp_path, **changes))
    assert str(e.value).startswith("ops/zap.yaml:2: ")
    assert reason in str(e.value)


def test_defined_twice(tmp_path):
    with pytest.raises(ParagraphError, match=r"zap is defined already at ops/zap.yaml:2"):
        build(write(tmp_path) * 2)


def test_field_twice_is_refused(tmp_path):
    path = tmp_path / "ops"
    path.mkdir()
    (path / "a.yaml").write_text("- op: f(Tensor self) -> Tensor\n  kind: view\n  kind: view\n")
    with pytest.raises(ParagraphError, match=r"ops/a.yaml:3: field 'kind' appears twice"):
        load_file(path / "a.yaml", tmp_path)


def test_list_formula_with_unknown_name_is_refused(tmp_path):
    from opgen.emit.autograd import emit

    (op,) = build(write(tmp_path, grad="{self: grad * wrong}"))
    with pytest.raises(ParagraphError, match="unknown name 'wrong'"):
        emit([op])


CUSTOM = {
    "kind": "custom",
    "tile": None,
    "shape": "dynamic",
    "kernels": "{All: zap}",
}


def test_differentiable_without_forward_rule_is_refused(tmp_path):
    from opgen.emit.autograd import emit

    (op,) = build(write(tmp_path, **CUSTOM))
    with pytest.raises(
        ParagraphError, match="ops/zap.yaml:2: zap: no forward-mode rule for 'self'"
    ):
        emit([op])
    (op,) = build(write(tmp_path, **CUSTOM, jvp="{self: self_t * wrong}"))
    with pytest.raises(ParagraphError, match="unknown name 'wrong'"):
        emit([op])
    for rule, code in (
        ({"jvp": "{self: self_t * 2}"}, "sum0.add("),
        ({"linear": "self"}, "sum0.add(ops::zap(self_t));"),
        ({"no_jvp": "nobody knows"}, 'raise_missing("zap", "nobody knows")'),
        ({"linear": "[self]"}, "ops::zap(self_t)"),
    ):
        (op,) = build(write(tmp_path, **CUSTOM, **rule))
        assert code in emit([op]), rule


def test_pointwise_rule_comes_from_the_gradient(tmp_path):
    from opgen.emit.autograd import emit

    (op,) = build(write(tmp_path))
    text = emit([op])
    assert "zap_forward(int level, KeySet keys, const Tensor& self)" in text
    assert "sum0.add_conj(mul_zero(grad, conj_of(result)));" in text
