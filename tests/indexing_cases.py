"""Random indexing expressions, the same for every library: what is made from a seed, and what a library says to it.

    PEER-PYTHON tests/indexing_cases.py 20000 tests/data/indexing.crc

records the answers of torch, 32 bits each; with one number more it prints the answer to that case.
"""

import json
import random
import sys
import zlib
from array import array


def make_case(seed):
    """(shape, index as source text, what is done: get, set, grad, put)."""
    rng = random.Random(seed)
    shape = [rng.choice((0, 1, 2, 3, 3, 4)) for _ in range(rng.randint(0, 4))]
    items, left = [], list(shape)
    shared = [rng.choice((1, 2, 3)) for _ in range(rng.randint(1, 2))]  # shape of index tensors

    def number(n):
        if rng.random() < 0.04:
            return rng.choice((n, -n - 1, n + 5))
        return rng.randint(-n, n - 1) if n else 0

    def numbers(n):
        dims = [d if rng.random() < 0.8 else 1 for d in shared[rng.randint(0, 1) :] or shared]
        if rng.random() < 0.03:
            dims = [0]

        def nest(ds):
            return number(n) if not ds else [nest(ds[1:]) for _ in range(ds[0])]

        return nest(dims)

    def mask(sizes):
        def nest(ds):
            return rng.random() < 0.5 if not ds else [nest(ds[1:]) for _ in range(ds[0])]

        return nest(sizes)

    def size_of(ds):
        return str(tuple(ds))

    while (left and rng.random() < 0.85) or (not items):
        kind = rng.choice(
            ("int", "int", "slice", "slice", "slice", "none", "dots", "bool", "mask", "tensor",
             "tensor", "list", "range", "array", "zero", "npint", "npmask", "byte")
        )  # fmt: skip
        if kind == "none":
            items.append("None")
        elif kind == "dots":
            if "..." in items:  # torch takes a second one for a full slice
                continue
            items.append("...")
            left = left[rng.randint(0, len(left)) :]
        elif kind == "bool":
            items.append(rng.choice(("True", "False", "T(True)", "T(False)")))
        elif not left:
            if rng.random() < 0.05:
                items.append("0")
            break
        elif kind == "int":
            items.append(str(number(left.pop(0))))
        elif kind == "npint":
            items.append(f"np.int64({number(left.pop(0))})")
        elif kind == "zero":
            items.append(f"T({number(left.pop(0))})")
        elif kind == "slice":
            n = left.pop(0)
            bounds = [rng.choice(("", str(rng.randint(-n - 1, n + 1)))) for _ in range(2)]
            step = rng.choice(("", "", ":1", ":2", ":3"))
            items.append(f"{bounds[0]}:{bounds[1]}{step}")
        elif kind in ("mask", "npmask", "byte"):
            # Beside an ellipsis torch takes every array for one dimension.
            k = 1 if kind == "npmask" else rng.randint(1, len(left))
            sizes, left = left[:k], left[k:]
            if rng.random() < 0.04:
                sizes = [*sizes[:-1], sizes[-1] + 1]
            text = f"{mask(sizes)}"
            if kind == "byte":
                items.append(f"B({text}, {size_of(sizes)})")
            else:
                items.append(f"{'M' if kind == 'mask' else 'A'}({text}, {size_of(sizes)})")
        elif kind == "tensor":
            items.append(f"T({numbers(left.pop(0))})")
        elif kind == "list":
            # As NumPy did once, torch takes a list of lists for a tuple where it is the only index.
            items.append(f"{numbers(left.pop(0))}")
        elif kind == "range":
            n = left.pop(0)
            items.append(f"range({rng.randint(0, n)})")
        elif kind == "array":
            items.append(f"np.array({numbers(left.pop(0))}, dtype=np.int64)")
    items = items or ["..."]
    if len(items) == 1 and items[0].startswith("[["):
        items.append("...")
    what = rng.choices(("get", "set", "number", "grad", "put"), (5, 2, 1, 2, 1))[0]
    if any(i.startswith("B(") for i in items):
        what = "get"  # torch cannot write through bytes
    return shape, ", ".join(items) + ("," if len(items) == 1 and rng.random() < 0.3 else ""), what


def answer(lib, np, seed):
    """What a library does with a case: shape, values, whether it is a view; or the kind of its error."""
    shape, index, what = make_case(seed)
    count = 1
    for n in shape:
        count *= n
    x = lib.arange(count, dtype=lib.float64).reshape(shape)
    names = {
        "T": lambda v: lib.tensor(v, dtype=lib.bool if isinstance(v, bool) else lib.int64),
        "M": lambda v, s: lib.tensor(v, dtype=lib.bool).reshape(s),
        "B": lambda v, s: lib.tensor(v, dtype=lib.bool).reshape(s).to(lib.uint8),
        "A": lambda v, s: np.array(v, dtype=bool).reshape(s),
        "np": np,
        "x": x,
    }
    try:
        if what in ("get", "put"):
            y = eval(f"x[{index}]", names)
            if what == "put":  # twice the same places: the sum
                x.index_put_(
                    (lib.tensor([0, 0, -1]),), lib.tensor(2.0, dtype=lib.float64), accumulate=True
                )
                return ["put", list(y.shape), x.reshape(-1).tolist()]
            view = y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
            view = view and y.numel() > 0
            stride = list(y.stride()) if view else None
            return [list(y.shape), y.reshape(-1).tolist(), view, stride]
        if what == "grad":
            x.requires_grad_()
            y = eval(f"x[{index}]", names)
            weight = lib.arange(1, y.numel() + 1, dtype=lib.float64).reshape(y.shape)
            (y * weight).sum().backward()
            return [list(y.shape), x.grad.reshape(-1).tolist()]
        target = eval(f"x[{index}]", names)
        value = -lib.arange(1, target.numel() + 1, dtype=lib.float64).reshape(target.shape)
        rng = random.Random(seed)
        if what == "number" or rng.random() < 0.3:
            value = 7.5
        elif target.dim() and rng.random() < 0.3:
            value = value[:1] if target.shape[0] == 1 else value[-1:]
        names["v"] = value
        exec(f"x[{index}] = v", names)
        return [list(target.shape), x.reshape(-1).tolist()]
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__


def digest(answer):
    """32 bits that stand for an answer."""
    return zlib.crc32(json.dumps(answer).encode())


if __name__ == "__main__":
    import warnings

    import numpy
    import torch

    warnings.simplefilter("ignore")
    if len(sys.argv) == 4:
        print(make_case(int(sys.argv[3])), answer(torch, numpy, int(sys.argv[3])))
    else:
        answers = array("I", [digest(answer(torch, numpy, s)) for s in range(int(sys.argv[1]))])
        with open(sys.argv[2], "wb") as file:
            answers.tofile(file)
