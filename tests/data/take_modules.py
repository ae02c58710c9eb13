"""Writes modules.json.gz: recorded calls of modules, their results and gradients.

    python tests/data/take_modules.py FOLDER

FOLDER holds the recorded calls (`nn.MODULE.tc` files of the conformance data set, recorded with PyTorch 2.13). From each
module the smallest float32 samples are taken, at most PER_MODULE.

Format: {"cases": [case...]}, in a case
    new        [name below `nn`, args, kwargs]
    state      [[name, array]...] what load_state_dict gets
    call       [args, kwargs]
    inputs     [[dtype, sizes, values]...]
    train, lazy
    results    arrays, those of nested tuples one after the other
    after      [[name, array]...] buffers after the call
    grads      {"inputs": [n...], "cotangents": [array or null...], "results": [array or null...],
               "parameters": [[name, array or null]...]}
Values are written as in conformance.json.gz.
"""

import gzip
import json
import sys
from pathlib import Path

from take_conformance import File, Unfit, decode

PER_MODULE = 3
MAX_ELEMENTS = 400


def arguments(x):
    if isinstance(x, dict) and "d" in x:
        raise Unfit
    return decode(x)


def flat(entry):
    if isinstance(entry, dict) and "T" in entry:
        if entry.get("c") not in (None, "x"):
            raise Unfit
        return [entry["T"]]
    if isinstance(entry, dict) and ("l" in entry or "t" in entry):
        return [n for part in entry.get("l", entry.get("t")) for n in flat(part)]
    if entry is None or entry == {"v": None}:
        return []
    raise Unfit


def take(file, sample):
    cases = {case["k"]: case for case in sample["cases"]}
    forward, grad = cases["forward"], cases.get("grad")
    if "exp" not in forward or any(a[1] is not None or a[2] for a in sample["in"]):
        raise Unfit
    array = file.array
    name, args, kwargs = sample["ctor"]
    case = {
        "new": [
            name.removeprefix("nn."),
            arguments(args),
            {k: arguments(v) for k, v in kwargs.items()},
        ],
        "state": [[k, array(n)] for k, n in sample["state"]],
        "call": [
            arguments(sample["fwd"][0]),
            {k: arguments(v) for k, v in sample["fwd"][1].items()},
        ],
        "inputs": [array(a[0]) for a in sample["in"]],
        "train": sample["train"],
        "lazy": bool(sample.get("lazy")),
        "results": [array(n) for n in flat(forward["exp"])],
        "after": [[k, array(n)] for k, n in forward.get("post", ())],
    }
    if grad:
        case["grads"] = {
            "inputs": sample["rg"],
            "cotangents": [None if n is None else array(n) for n in grad["cot"]],
            "results": [None if n is None else array(n) for n in grad["g"]],
            "parameters": [[k, None if n is None else array(n)] for k, n in grad["gp"]],
        }
    return case


def main(folder):
    import take_conformance

    take_conformance.MAX_ELEMENTS = MAX_ELEMENTS
    cases = []
    for path in sorted(Path(folder).glob("nn.[A-Z]*.tc")):
        file, taken = File(path), []
        for sample in file.header["samples"]:
            if sample["dt"] == "float32":
                try:
                    taken.append(take(file, sample))
                except Unfit:
                    pass
        taken.sort(key=lambda c: len(json.dumps(c)))
        cases += taken[:PER_MODULE]
    data = json.dumps({"cases": cases}, separators=(",", ":")).encode()
    (Path(__file__).parent / "modules.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
    print(len(cases), "cases of", len({c["new"][0] for c in cases}), "modules")


if __name__ == "__main__":
    main(sys.argv[1])
