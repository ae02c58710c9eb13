"""Recorded calls of the first operators: results, types, gradients and kinds of errors (see data/take_conformance.py)."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

import lamina  # noqa: E402

DATA = Path(__file__).parent / "data" / "conformance.json.gz"


def load():
    operators = defaultdict(list)
    for case in json.loads(gzip.decompress(DATA.read_bytes()))["cases"]:
        operators[case["op"]].append(case)
    return operators


CASES = load()


def dtype_of(name):
    return getattr(lamina, name)


def array_of(entry):
    dtype, sizes, values = entry
    if dtype.startswith("complex"):
        values = [complex(*v) for v in values]
    return np.array(values, dtype="float32" if dtype == "bfloat16" else dtype).reshape(sizes)


def tensor_of(entry):
    return lamina.tensor(array_of(entry)).to(dtype_of(entry[0]))


def decode(v, inputs):
    if isinstance(v, list):
        return [decode(x, inputs) for x in v]
    if not isinstance(v, dict):
        return v
    ((kind, x),) = v.items()
    if kind == "input":
        return inputs[x]
    if kind == "dtype":
        return dtype_of(x)
    if kind == "ellipsis":
        return ...
    if kind == "complex":
        return complex(*decode(x, inputs))
    return {"tuple": tuple, "slice": lambda s: slice(*s), "size": lamina.Size}[kind](
        decode(x, inputs)
    )


def function_of(name):
    f = lamina
    for part in name.split("."):
        f = getattr(f, part)
    return f


def check(tensor, entry, tolerance, where):
    dtype, sizes, _ = entry
    assert isinstance(tensor, lamina.Tensor), where
    assert list(tensor.shape) == sizes, where
    assert tensor.dtype == dtype_of(dtype), where
    tensor = tensor.detach().resolve_conj().resolve_neg()
    got = (tensor.float() if dtype == "bfloat16" else tensor).numpy()
    np.testing.assert_allclose(got, array_of(entry), *tolerance, equal_nan=True, err_msg=where)


def run(case):
    where = json.dumps({k: case[k] for k in ("call", "inputs", "args", "kwargs")})[:2000]
    inputs = [tensor_of(i) for i in case["inputs"]]
    grads = case.get("grads")
    for n in grads["of"] if grads else ():
        inputs[n].requires_grad_()
    args = decode(case["args"], inputs)
    kwargs = {k: decode(v, inputs) for k, v in case["kwargs"].items()}
    if "error" in case:
        with pytest.raises(Exception) as caught:
            function_of(case["call"])(*args, **kwargs)
        names = {c.__name__ for c in type(caught.value).__mro__}
        assert names & set(case["error"]), f"{where}: {caught.value!r}"
        return
    result = function_of(case["call"])(*args, **kwargs)
    results = list(result) if "results" in case else [result]
    expected = case.get("results") or [case["result"]]
    assert len(results) == len(expected), where
    for got, entry in zip(results, expected):
        check(got, entry, case["tolerance"], where)
    if grads:
        differentiable = [t for t in results if t.is_floating_point() or t.is_complex()]
        roots = [t for t in differentiable if t.requires_grad]
        cotangents = [tensor_of(c) for c in grads["cotangents"]]
        pairs = [(t, c) for t, c in zip(differentiable, cotangents) if t.requires_grad]
        assert roots, where
        lamina.autograd.backward([t for t, _ in pairs], [c for _, c in pairs])
        for n, entry in zip(grads["of"], grads["results"]):
            got = inputs[n].grad
            if entry is None or got is None:
                assert got is None or not got.any(), where
                assert entry is None or not array_of(entry).any(), where
            else:
                check(
                    got,
                    entry,
                    TOLERANCE.get(entry[0], case["tolerance"]),
                    f"gradient {n} of {where}",
                )


# Gradients are sums of products; they round more often than results do.
TOLERANCE = {
    "float32": [1e-4, 1e-5],
    "complex64": [1e-4, 1e-4],
    "float16": [4e-3, 2e-3],
    "bfloat16": [4e-2, 2e-2],
}


@pytest.mark.parametrize("op", CASES)
def test_recorded_calls(op):
    for case in CASES[op]:
        run(case)


def test_the_sample_is_whole():
    assert sum(map(len, CASES.values())) > 1000
    assert len(CASES) > 150
