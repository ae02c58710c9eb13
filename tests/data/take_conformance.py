"""Writes conformance.json.gz: a small sample of recorded operator calls and their results.

    python tests/data/take_conformance.py FOLDER

FOLDER holds the recorded calls (`OPERATOR.tc` files of the conformance data set, results recorded with PyTorch 2.13).
From each operator of NAMES at most PER_OPERATOR samples are taken, of as many element types as there are: single calls
on small dense inputs with one or several tensors as result, their gradients, and wrong calls with the kind of error.

Format: {"cases": [case...]}, in a case
    call       name below the package ("add", "nn.functional.relu", "Tensor.t")
    inputs     [[dtype, sizes, values]...], values flat in row-major order; complex ones as pairs
    args, kwargs   plain JSON, or {"input": n}, {"tuple": []}, {"dtype": name}, {"slice": []}, {"ellipsis": 1},
               {"complex": [re, im]}, {"size": []}
    result     [dtype, sizes, values], or a list of those under "results"; or
    error      names of the exception's classes, the most special first
    tolerance  [relative, absolute]
    grads      {"of": numbers of inputs, "cotangents": [...], "results": [array or null...]}
"""

import gzip
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

PER_OPERATOR = 9
MAX_ELEMENTS = 64
TOLERANCE = {
    "float16": [2e-3, 1e-3],
    "bfloat16": [2e-2, 1e-2],
    "float32": [2e-5, 1e-5],
    "float64": [1e-9, 1e-10],
    "complex64": [2e-5, 2e-5],
    "complex128": [1e-9, 1e-10],
}


class Unfit(Exception):
    """A sample that this format does not hold."""


class File:
    def __init__(self, path):
        data = path.read_bytes()
        packed_header, _, packed_body, _ = struct.unpack("<4I", data[8:24])
        self.header = json.loads(zlib.decompress(data[24 : 24 + packed_header]))
        self.body = zlib.decompress(data[24 + packed_header : 24 + packed_header + packed_body])

    def array(self, n):
        entry = self.header["arrays"][n]
        if len(entry) > 3 or entry[0].startswith("float8") or entry[0] == "complex32":
            raise Unfit
        dtype, sizes, at = entry
        count = int(np.prod(sizes))
        if count > MAX_ELEMENTS:
            raise Unfit
        if dtype == "bfloat16":
            words = np.frombuffer(self.body, "<u2", count, at).astype("<u4") << 16
            values = words.view("<f4")
        else:
            values = np.frombuffer(self.body, np.dtype(dtype).newbyteorder("<"), count, at)
        if values.dtype.kind == "c":
            values = [[float(v.real), float(v.imag)] for v in values]
        elif values.dtype.itemsize == 4 and values.dtype.kind == "f":
            values = [
                float(repr(v).split("(")[-1].rstrip(")")) if np.isfinite(v) else float(v)
                for v in values
            ]
        else:
            values = values.tolist()
        return [dtype, sizes, values]


def decode(v):
    if isinstance(v, list):
        return [decode(x) for x in v]
    if not isinstance(v, dict):
        return v
    ((kind, x),) = v.items()
    simple = {"i": "input", "D": "dtype", "e": "ellipsis"}
    nested = {"t": "tuple", "s": "slice", "S": "size"}
    if kind in simple:
        return {simple[kind]: x}
    if kind in nested:
        return {nested[kind]: decode(x)}
    if kind == "f":
        return float(x)
    if kind == "c":
        return {"complex": decode(x)}
    raise Unfit


def result(file, expected):
    if "T" in expected:
        if expected.get("c") not in (None, "x"):
            raise Unfit
        return {"result": file.array(expected["T"])}
    items = (
        expected.get("l") or expected.get("t") or (expected["n"][1] if "n" in expected else None)
    )
    if not items or any(set(i) != {"T"} for i in items):
        raise Unfit
    return {"results": [file.array(i["T"]) for i in items]}


def take(file, sample):
    """The cases of one sample."""
    if len(sample["prog"]) != 1 or any(i[1] is not None or i[2] for i in sample["in"]):
        raise Unfit
    function, args, kwargs = sample["prog"][0]
    if function.startswith("operator.") or "out" in kwargs:
        raise Unfit
    base = {
        "call": function,
        "inputs": [file.array(i[0]) for i in sample["in"]],
        "args": decode(args),
        "kwargs": {k: decode(v) for k, v in kwargs.items()},
    }
    forward = grad = None
    for case in sample["cases"]:
        if case["k"] == "error" and "prog" not in case and "outs" not in case:
            return [{**base, "error": case["err"]}]
        if (
            case["k"] == "forward"
            and forward is None
            and not {"random", "inv", "after", "prog"} & set(case)
        ):
            forward = {**base, **result(file, case["exp"])}
            dtype = (forward.get("result") or forward["results"][0])[0]
            forward["tolerance"] = case.get("tol") or TOLERANCE.get(dtype, [0, 0])
        if case["k"] == "grad" and grad is None and "prog" not in case:
            grad = {
                "of": sample["rg"],
                "cotangents": [None if c is None else file.array(c) for c in case["cot"]],
                "results": [None if g is None else file.array(g) for g in case["g"]],
            }
    if forward is None:
        raise Unfit
    if grad and all(c is not None for c in grad["cotangents"]):
        forward["grads"] = grad
    return [forward]


def main(folder):
    names = (Path(__file__).parent / "conformance_names.txt").read_text().split()
    cases = []
    for name in names:
        path = folder / f"{name}.tc"
        if not path.exists():
            continue
        file, kept, seen = File(path), [], {}
        for sample in file.header["samples"]:
            try:
                new = take(file, sample)
            except Unfit:
                continue
            for case in new:
                kind = sample["dt"] if "result" in case or "results" in case else "error"
                seen[kind] = seen.get(kind, 0) + 1
                kept.append((seen[kind], len(kept), {"op": name, **case}))
        # The first of every type, then the second, ...
        kept.sort(key=lambda k: k[:2])
        cases += [c for _, _, c in kept[:PER_OPERATOR]]
    text = '{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n"
    with (
        open(Path(__file__).parent / "conformance.json.gz", "wb") as raw,
        gzip.GzipFile("", "wb", 9, raw, 0) as out,
    ):
        out.write(text.encode())
    print(len(cases), "cases of", len({c["op"] for c in cases}), "operators")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
