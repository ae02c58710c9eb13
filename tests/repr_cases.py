"""Expressions whose texts are compared: `PEER-PYTHON tests/repr_cases.py > tests/expected/repr_corpus.json` records torch's.

`t` is the library; a case is (options of set_printoptions, expression).
"""

import json
import random

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


def _number(rng, kind):
    if kind == "int":
        return rng.choice((0, 1, -1, 5, 123, -4567, 10**9, -(10**12)))
    if kind == "small int":
        return rng.randint(0, 100)
    value = rng.choice(
        (0.0, -0.0, 1.0, -2.5, 1 / 3, 1e-3, 1234.5678, 99999.0, 1e-7, 1e9, -1e20, 100.0)
    )
    return value


def cases():
    """All of them, in a fixed order."""
    rng = random.Random(7)
    found = []
    for dtype in DTYPES:
        for shape in ("()", "(0,)", "(3,)", "(2, 3)", "(2, 0)", "(2, 1, 2)", "(1, 1, 1, 1)"):
            found.append(({}, f"t.zeros({shape}, dtype=t.{dtype})"))
            found.append(({}, f"(t.arange(12) % 7).to(t.{dtype})[:4]"))
        found.append(({}, f"t.arange(2000).to(t.float32).to(t.{dtype})"))
        found.append(({}, f"t.empty(2, 3, dtype=t.{dtype}, device='meta')"))
    for _ in range(150):
        kind = rng.choice(("int", "float", "float", "float", "whole"))
        count = rng.choice((1, 2, 3, 5, 9, 20))
        if kind == "whole":
            values = [float(rng.randint(-1000, 1000)) for _ in range(count)]
        else:
            values = [_number(rng, kind) for _ in range(count)]
        dtype = "" if kind == "int" else rng.choice(("", ", dtype=t.float64", ", dtype=t.float16"))
        found.append(({}, f"t.tensor({values}{dtype})"))
    for special in ("inf", "-inf", "nan"):
        for other in ("1.0", "0.5", "1e10", "1e-10", "nan"):
            found.append(({}, f"t.tensor([float('{special}'), float('{other}')])"))
            found.append(({}, f"t.tensor([float('{special}'), float('{other}')], dtype=t.float64)"))
        found.append(({}, f"t.tensor(float('{special}'))"))
    for values in (
        "[1+2j, -3.5j]", "[0j]", "[complex('inf'), 1e10j]", "[1e-5+1j, 2]", "[complex('nan')]",
        "[1.0+0j, 1000.5-2j]", "[123456+1j]",
    ):  # fmt: skip
        found.append(({}, f"t.tensor({values})"))
        found.append(({}, f"t.tensor({values}, dtype=t.complex128)"))
        found.append(({}, f"t.tensor({values}).conj()"))
    for expression in (
        "t.arange(1001.)", "t.arange(1000.)", "t.arange(10000.).reshape(100, 100)",
        "t.arange(4000.).reshape(2, 20, 100)", "t.ones(7, 200)", "t.ones(200, 7)", "t.zeros(1001, 1)",
        "t.arange(40) * 1000", "t.arange(30.) / 7", "t.ones(3, 40)", "t.ones(2, 2, 2, 2, 2)",
        "t.arange(3000).reshape(3, 1000) * 100000", "t.full((1100,), 1e-5)", "t.eye(5) * 1e5",
        "t.ones(2, requires_grad=True)", "t.ones(2, requires_grad=True) * 2",
        "(t.ones(2, requires_grad=True) * 2).sum()", "t.ones(2, 3, requires_grad=True).t()",
        "t.ones(2, 3, requires_grad=True, dtype=t.float64).exp()", "t.ones(30, requires_grad=True) / 3",
        "t.ones(0, 3, requires_grad=True)", "t.ones(2, 3).transpose(0, 1)", "t.ones(3).expand(2, 3)",
        "t.empty(0)", "t.empty(0, dtype=t.int32)", "t.empty(0, 4, dtype=t.bool)", "t.tensor([])",
        "t.ones(2, device='meta')", "t.ones(2, device='meta', requires_grad=True)", "t.ones(2).shape",
        "t.float32", "t.complex64", "t.device('cpu')", "t.device('cuda', 1)", "t.device('meta')",
        "t.strided", "t.channels_last", "t.preserve_format", "t.Size([])", "t.Size([1, 2])",
        "t.finfo(t.float32)", "t.finfo(t.float16)", "t.finfo(t.bfloat16)", "t.finfo(t.float64)",
        "t.iinfo(t.int64)", "t.iinfo(t.uint8)", "t.iinfo(t.int8)", "t.max(t.arange(3.), 0)",
        "t.sort(t.tensor([2, 1]))", "t.topk(t.arange(4.), 2)", "str(t.int64)", "str(t.tensor(1))",
        "'%s' % t.tensor([1.5])", "f'{t.tensor(1.25):.1f}'", "f'{t.tensor(3)}'", "str(t.device('cpu'))",
        "t.tensor([True, False])", "t.tensor(True)", "t.ones(1, 1, 1)", "t.arange(6).reshape(3, 2) - 3",
        "t.tensor([1e38, 1e-38])", "t.tensor([1e300, 1.], dtype=t.float64)", "t.tensor([-0.0])",
        "t.tensor([0.1, 0.2, 0.3])", "t.tensor([1., 2.]) / 3", "t.tensor([999.9999, 1000.0001])",
        "t.tensor([1.0001, 1.00001])", "t.tensor([9999.5, 0.0001])", "t.tensor([1e5])", "t.tensor(1e5)",
        "t.tensor(12345678.)", "t.tensor(123456789.)", "t.tensor([1e8, 1.5])", "t.tensor([99999999., 1.])",
        "t.tensor([[1.5, 2], [3, float('nan')]])", "t.ones(2, requires_grad=True).grad_fn",
    ):  # fmt: skip
        found.append(({}, expression))
    for options in (
        {"precision": 2}, {"precision": 8}, {"precision": 0}, {"sci_mode": True}, {"sci_mode": False},
        {"linewidth": 40}, {"linewidth": 200}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1},
        {"edgeitems": 5, "threshold": 20}, {"profile": "short"}, {"profile": "full"}, {"threshold": 0},
        {"precision": 6, "linewidth": 50},
    ):  # fmt: skip
        for expression in (
            "t.arange(30.) / 7", "t.arange(30).reshape(5, 6)", "t.arange(30.).reshape(2, 3, 5) * 1e5",
            "t.tensor([1e-8, 1.])", "t.tensor([1+2.5j, 3])", "t.ones(4, 4, requires_grad=True) * 2",
            "t.zeros(1200)", "t.tensor(2.5)", "t.arange(8) > 3",
        ):  # fmt: skip
            found.append((options, expression))
    return found


def text_of(lib, options, expression):
    """The text that a library gives, with these options."""
    lib.set_printoptions(profile="default")
    try:
        lib.set_printoptions(**options)
        value = eval(
            expression, {"t": lib, "float": float, "str": str, "complex": complex, "type": type}
        )
        return value if isinstance(value, str) else repr(value)
    finally:
        lib.set_printoptions(profile="default")


if __name__ == "__main__":
    import warnings

    import torch

    warnings.simplefilter("ignore")
    answers = []
    for options, expression in cases():
        try:
            answers.append(text_of(torch, options, expression))
        except Exception:
            answers.append(None)  # torch cannot
    print(json.dumps(answers, indent=0))
