"""Writes the corpus: small files as PyTorch saves them, and expected.json with what is in them.

Run with a Python that has PyTorch 2.13: ``python make_files.py``.
"""

import json
from collections import Counter, OrderedDict
from pathlib import Path

import torch

HERE = Path(__file__).parent
expected = {}


def describe(value):
    """What a loaded object must be, as JSON."""
    if isinstance(value, torch.Tensor):
        data = value.detach()
        if data.is_meta:
            numbers = None
        else:
            data = data.resolve_conj()
            if data.is_complex():
                data = torch.view_as_real(data)
            numbers = [repr(x) for x in data.double().flatten().tolist()]
        return {
            "tensor": str(value.dtype),
            "sizes": list(value.shape),
            "strides": list(value.stride()),
            "offset": value.storage_offset(),
            "grad": value.requires_grad,
            "parameter": isinstance(value, torch.nn.Parameter),
            "values": numbers,
        }
    if isinstance(value, dict):
        pairs = [[describe(k), describe(v)] for k, v in value.items()]
        return {"dict": type(value).__name__, "items": pairs}
    if isinstance(value, (list, tuple, set, torch.Size)):
        items = sorted(value) if isinstance(value, set) else value
        return {"sequence": type(value).__name__, "items": [describe(v) for v in items]}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"named": str(value)}
    if isinstance(value, (torch.UntypedStorage, torch.storage.TypedStorage)):
        return {"storage": [repr(x) for x in value.tolist()]}
    return {"value": repr(value)}


def add(name, value, **options):
    torch.save(value, HERE / name, **options)
    expected[name] = describe(value)


def values(n, dtype):
    x = torch.arange(n) % 2 if dtype == torch.bool else torch.arange(n)
    if dtype.is_complex:
        return torch.complex(x.double(), -x.double()).to(dtype)
    return x.to(dtype) if dtype.is_floating_point is False else (x.double() * 0.5 - 1).to(dtype)


DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex128, torch.complex64,
    torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip

base = torch.arange(24.0).reshape(4, 6)
model = torch.nn.Sequential(
    torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2, dtype=torch.bfloat16)
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
for p in model.parameters():
    p.grad = torch.ones_like(p)
optimizer.step()
momentum = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1, momentum=0.9)
momentum.param_groups[0]["params"][0].grad = torch.ones(2)
momentum.step()
parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
tagged = torch.tensor([1.0, 2.0])
tagged.note = "attribute"
views = {
    "whole": base, "row": base[1], "column": base[:, 2], "transposed": base.t(),
    "steps": base[::2, ::3], "expanded": torch.ones(1, 3).expand(4, 3),
    "empty": torch.empty(0, 3), "scalar": torch.tensor(3.5), "part": base[2:, 3:],
}  # fmt: skip
nested = {
    "list": [1, 2.5, "text", None, True, b"bytes"], "tuple": (1, (2, (3,))), "set": {1, 2, 3},
    "ordered": OrderedDict(a=1, b=torch.ones(2)), "counter": Counter("abca"),
    "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cpu"),
    "complex": 1 + 2j, "big": 2**70, "negative": -5, 7: "number key", (1, 2): "tuple key",
    "deep": [[[[[torch.zeros(1)]]]]], "float": 1e300, "bytearray": bytearray(b"xyz"),
}  # fmt: skip

if __name__ == "__main__":
    for old in HERE.glob("*.pt"):
        old.unlink()
    add("dtypes.pt", {str(d): values(6, d) for d in DTYPES})
    add("views.pt", views)
    add("shared.pt", {"a": base[0], "b": base[1:3], "again": base[0], "list": [base, base]})
    add("nested.pt", nested)
    add("parameter.pt", {"p": parameter, "frozen": torch.nn.Parameter(torch.ones(2), False)})
    add("leaf.pt", [torch.ones(2, requires_grad=True), torch.zeros(1)])
    add("attributes.pt", tagged)
    add("module_state.pt", model.state_dict())
    add("adam_state.pt", optimizer.state_dict())
    add("sgd_state.pt", momentum.state_dict())
    add("storages.pt", [torch.arange(3.0).untyped_storage(), torch.arange(3.0).storage()])
    add("meta.pt", torch.ones(2, 3, device="meta"))
    add("conj.pt", torch.tensor([1 + 2j, 3 - 1j]).conj())
    add("scalar.pt", 5)
    add("protocol4.pt", nested, pickle_protocol=4)
    add("protocol5.pt", {"views": views, "state": model.state_dict()}, pickle_protocol=5)
    add("without_order.pt", base, _disable_byteorder_record=True)
    old = {"_use_new_zipfile_serialization": False}
    add("old_views.pt", views, **old)
    add("old_shared.pt", {"a": base[0], "b": base[1:3], "list": [base, base]}, **old)
    add("old_state.pt", model.state_dict(), **old)
    add("old_adam.pt", optimizer.state_dict(), **old)
    add("old_nested.pt", nested, **old)
    add("old_dtypes.pt", {str(d): values(6, d) for d in DTYPES[:12]}, **old)
    torch.save(model, HERE / "whole_module.pt")
    torch.serialization.set_crc32_options(False)
    add("without_crc.pt", base)
    (HERE / "expected.json").write_text(json.dumps(expected))
