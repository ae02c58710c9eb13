"""save and load: files of PyTorch, round trips, what is refused, damaged and hostile files, atomic writes."""

import collections
import copy
import io
import json
import os
import pickle
import random
import resource
import signal
import struct
import subprocess
import sys
import textwrap
import time
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import pytest
from lamina.serialization import _archive

import lamina
from lamina import serialization

FILES = Path(__file__).parent / "data" / "serialize"
EXPECTED = json.loads((FILES / "expected.json").read_text())
NIGHTLY = os.environ.get("LAMINA_NIGHTLY") == "1"


def describe(value):
    """The form of expected.json; see data/serialize/make_files.py."""
    if isinstance(value, lamina.Tensor):
        data = value.detach()
        numbers = None
        if not data.is_meta:
            data = data.resolve_conj()
            data = lamina.view_as_real(data) if data.is_complex() else data
            numbers = [repr(x) for x in data.double().flatten().tolist()]
        return {
            "tensor": str(value.dtype),
            "sizes": list(value.shape),
            "strides": list(value.stride()),
            "offset": value.storage_offset(),
            "grad": value.requires_grad,
            "parameter": isinstance(value, lamina.nn.Parameter),
            "values": numbers,
        }
    if isinstance(value, dict):
        pairs = [[describe(k), describe(v)] for k, v in value.items()]
        return {"dict": type(value).__name__, "items": pairs}
    if isinstance(value, (list, tuple, set, lamina.Size)):
        items = sorted(value) if isinstance(value, set) else value
        return {"sequence": type(value).__name__, "items": [describe(v) for v in items]}
    if isinstance(value, (lamina.dtype, lamina.device)):
        return {"named": str(value)}
    if isinstance(value, (lamina.UntypedStorage, lamina.storage.TypedStorage)):
        return {"storage": [repr(x) for x in value.tolist()]}
    return {"value": repr(value)}


def saved(value, **options):
    file = io.BytesIO()
    lamina.save(value, file, **options)
    return file.getvalue()


def round_trip(value, load_options=None, **options):
    return lamina.load(io.BytesIO(saved(value, **options)), **(load_options or {}))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_files_of_pytorch(name):
    for source in (FILES / name, str(FILES / name), io.BytesIO((FILES / name).read_bytes())):
        assert describe(lamina.load(source)) == EXPECTED[name]
    assert describe(lamina.load(FILES / name, weights_only=False)) == EXPECTED[name]
    if not name.startswith("old"):
        assert describe(lamina.load(FILES / name, mmap=True)) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_round_trips(name):
    value = lamina.load(FILES / name)
    assert describe(round_trip(value)) == EXPECTED[name]
    if name not in ("dtypes.pt", "meta.pt"):
        assert describe(round_trip(value, _use_new_zipfile_serialization=False)) == EXPECTED[name]
    assert describe(round_trip(value, pickle_protocol=4)) == EXPECTED[name]


def test_names_in_files_are_those_of_pytorch():
    data = saved(
        {"t": lamina.ones(2), "p": lamina.nn.Parameter(lamina.ones(1)), "d": lamina.float16,
         "s": lamina.Size([1]), "f": lamina.zeros(2, dtype=lamina.float8_e5m2)}
    )  # fmt: skip
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("archive/data.pkl")
        assert archive.testzip() is None
        assert archive.read("archive/version") == b"3\n"
        assert archive.read("archive/.format_version") == b"1"
        assert archive.read("archive/byteorder") == sys.byteorder.encode()
        for info in archive.infolist():
            start = info.header_offset + 30
            n, extra = struct.unpack("<2H", data[info.header_offset + 26 : start])
            assert (start + n + extra) % 64 == 0
    assert b"lamina" not in text
    for name in (b"ctorch._utils\n_rebuild_tensor_v2\n", b"ctorch\nFloatStorage\n",
                 b"ctorch._utils\n_rebuild_parameter\n", b"ctorch\nfloat16\n", b"ctorch\nSize\n",
                 b"ctorch._utils\n_rebuild_tensor_v3\n", b"ctorch.storage\nUntypedStorage\n"):  # fmt: skip
        assert text.count(name) == 1


def test_text_that_looks_like_a_name_is_kept():
    nasty = "clamina._utils\n_rebuild_tensor_v2\n"
    value = {nasty: lamina.ones(2), "again": [nasty]}
    for protocol in (2, 3, 4, 5):
        loaded = round_trip(value, pickle_protocol=protocol)
        assert list(loaded) == [nasty, "again"] and loaded["again"] == [nasty]


def test_shared_bytes_stay_shared():
    base = lamina.arange(6.0)
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        a, b, c = round_trip([base, base[2:4], base], **options)
        assert a is c and b.storage_offset() == 2
        a[2] = 50
        assert b[0].item() == 50
    with pytest.raises(RuntimeError, match="different types"):
        saved([base, base.view(lamina.int32)])


def test_classes_and_states():
    class Own(lamina.Tensor):
        pass

    loaded = round_trip(lamina.ones(2).as_subclass(lamina.Tensor))
    assert type(loaded) is lamina.Tensor
    tagged = lamina.ones(2)
    tagged.note = [1, 2]
    assert round_trip(tagged).note == [1, 2]
    parameter = lamina.nn.Parameter(lamina.ones(2))
    parameter.tag = "x"
    got = round_trip(parameter)
    assert isinstance(got, lamina.nn.Parameter) and got.tag == "x" and got.requires_grad
    ordered = OrderedDict(a=lamina.ones(1))
    ordered._metadata = {"": {"version": 1}}
    assert round_trip(ordered)._metadata == {"": {"version": 1}}
    counts = round_trip({"c": Counter("aab"), "d": defaultdict(list, {1: [2]})})
    assert counts["c"]["a"] == 2 and counts["d"][5] == []


def test_results_of_operators_are_saved_as_leaves():
    x = lamina.ones(2, requires_grad=True)
    y = round_trip(x * 2)
    assert y.is_leaf and y.tolist() == [2.0, 2.0]


def test_module_and_optimizer_states_go_on():
    nn = lamina.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = lamina.optim.Adam(model.parameters(), lr=0.1)
    for p in model.parameters():
        p.grad = lamina.ones_like(p)
    optimizer.step()
    checkpoint = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    other = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    other.load_state_dict(checkpoint["model"])
    again = lamina.optim.Adam(other.parameters())
    again.load_state_dict(checkpoint["optimizer"])
    for o, m in ((optimizer, model), (again, other)):
        for p in m.parameters():
            p.grad = lamina.ones_like(p)
        o.step()
    assert all(lamina.equal(p, q) for p, q in zip(model.parameters(), other.parameters()))


# ---- arguments ----


def test_map_location(tmp_path):
    x = lamina.arange(3.0)
    seen = []

    def keep(storage, location):
        seen.append(location)
        return storage

    for place in ("cpu", lamina.device("cpu"), {"cpu": "cpu"}, keep, lambda s, l: None):
        assert lamina.equal(round_trip(x, {"map_location": place}), x)
    assert seen == ["cpu"]
    assert round_trip(x, {"map_location": "meta"}).is_meta
    elsewhere = saved(x).replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
    file = io.BytesIO(rezipped(saved(x), lambda d: elsewhere_pickle(d)))
    assert elsewhere is not None
    with pytest.raises(RuntimeError, match="map_location=torch.device"):
        lamina.load(file)
    file.seek(0)
    assert lamina.equal(lamina.load(file, map_location="cpu"), x)
    file.seek(0)
    assert lamina.equal(lamina.load(file, map_location={"cuda:0": "cpu"}), x)


def elsewhere_pickle(data):
    return data.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")


def rezipped(data, change):
    """The archive with another data.pkl, its checksums right."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            new.writestr(
                info.filename, change(content) if info.filename.endswith(".pkl") else content
            )
    return out.getvalue()


def test_own_packages():
    tags = []
    before = list(serialization._locations._registry)
    try:
        serialization.register_package(
            5, lambda s: "here", lambda s, tag: tags.append(tag) or s if tag == "here" else None
        )
        assert lamina.equal(round_trip(lamina.ones(2)), lamina.ones(2))
        assert tags == ["here"]
    finally:
        serialization._locations._registry[:] = before


def test_mapped_files(tmp_path):
    path = tmp_path / "x.pt"
    lamina.save({"x": lamina.arange(4.0)}, path)
    mapped = lamina.load(path, mmap=True)["x"]
    mapped[0] = 9
    assert lamina.load(path)["x"][0].item() == 0
    with serialization.set_default_mmap_options(serialization.MAP_SHARED):
        lamina.load(path, mmap=True)["x"][0] = 7
    assert serialization.get_default_mmap_options() == serialization.MAP_PRIVATE
    raw = path.read_bytes()
    assert struct.pack("<f", 7.0) in raw
    with pytest.raises(ValueError, match="path in order to use the mmap"):
        lamina.load(io.BytesIO(raw), mmap=True)
    lamina.save(lamina.ones(1), path, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        lamina.load(path, mmap=True)
    with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE"):
        serialization.set_default_mmap_options(17)


def test_skipped_data(tmp_path):
    path = tmp_path / "x.pt"
    with serialization.skip_data():
        lamina.save({"x": lamina.arange(1000.0)}, path)
    assert lamina.load(path)["x"].shape == (1000,)
    lamina.save({"x": lamina.arange(1000.0)}, path)
    with serialization.skip_data():
        assert lamina.load(path)["x"].shape == (1000,)


def test_byte_order():
    data = saved(lamina.arange(3.0))
    swapped = data.replace(b"little", b"bigbig")
    assert swapped != data
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename.endswith("byteorder"):
                content = b"big"
            if info.filename.endswith("data/0"):
                content = struct.pack(">3f", 0, 1, 2)
            new.writestr(info.filename, content)
    out.seek(0)
    assert lamina.load(out).tolist() == [0.0, 1.0, 2.0]
    plain = io.BytesIO(saved(lamina.arange(3.0), _disable_byteorder_record=True))
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    try:
        assert lamina.load(plain).tolist() != [0.0, 1.0, 2.0]
    finally:
        serialization.set_default_load_endianness(None)


def test_several_objects_in_one_file():
    file = io.BytesIO()
    lamina.save(lamina.ones(2), file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert lamina.load(file).tolist() == [1.0, 1.0]


def test_odd_files(tmp_path):
    with pytest.raises(EOFError):
        lamina.load(io.BytesIO(b""))
    with pytest.raises(FileNotFoundError):
        lamina.load(tmp_path / "none.pt")
    with pytest.raises(AttributeError, match="seekable"):
        lamina.load(object())
    with pytest.raises(AttributeError, match="write"):
        lamina.save(1, object())
    with pytest.raises(RuntimeError, match="does not exist"):
        lamina.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        lamina.load(io.BytesIO(saved(1)), pickle_module=pickle, weights_only=True)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("m/data.pkl", b"\x80\x02N.")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/code/a.py", b"")
    with pytest.raises(RuntimeError, match="TorchScript"):
        lamina.load(io.BytesIO(out.getvalue()))


def test_compressed_archives():
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(lamina.arange(3.0)))) as old:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info))
    out.seek(0)
    assert lamina.load(out).tolist() == [0.0, 1.0, 2.0]


# ---- what is refused ----


class Custom:
    def __init__(self, x=1):
        self.x = x


class Evil:
    def __reduce__(self):
        return os.system, ("echo pwned > /tmp/lamina_pwned",)


def test_classes_are_refused_by_name():
    data = saved(Custom())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed") as error:
        lamina.load(io.BytesIO(data))
    assert f"{__name__}.Custom" in str(error.value)
    assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == [
        f"{__name__}.Custom"
    ]
    assert lamina.load(io.BytesIO(data), weights_only=False).x == 1
    with serialization.safe_globals([Custom]):
        assert lamina.load(io.BytesIO(data)).x == 1
        assert serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data)) == []
    assert serialization.get_safe_globals() == []
    serialization.add_safe_globals([(Custom, f"{__name__}.Custom")])
    assert lamina.load(io.BytesIO(data)).x == 1
    serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        lamina.load(io.BytesIO(data))


def test_no_code_runs():
    marker = Path("/tmp/lamina_pwned")
    marker.unlink(missing_ok=True)
    for protocol in (2, 4):
        for old in (True, False):
            data = saved(
                {"x": Evil()}, pickle_protocol=protocol, _use_new_zipfile_serialization=old
            )
            with pytest.raises(pickle.UnpicklingError):
                lamina.load(io.BytesIO(data))
    with serialization.safe_globals([os.system]):
        with pytest.raises(pickle.UnpicklingError, match="blocked"):
            lamina.load(io.BytesIO(saved(Evil())))
    assert not marker.exists()


def test_numpy_needs_permission():
    np = pytest.importorskip("numpy")
    data = saved({"a": np.arange(3), "s": np.float64(1.5)})
    with pytest.raises(pickle.UnpicklingError, match="numpy"):
        lamina.load(io.BytesIO(data))
    names = serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
    allowed = [np.ndarray, np.dtype, type(np.dtype("float64")), type(np.dtype("int64"))]
    from numpy._core import multiarray

    allowed += [(multiarray._reconstruct, n) for n in names if n.endswith("_reconstruct")]
    allowed += [(multiarray.scalar, n) for n in names if n.endswith("scalar")]
    with serialization.safe_globals(allowed):
        loaded = lamina.load(io.BytesIO(data))
    assert loaded["a"].tolist() == [0, 1, 2] and loaded["s"] == 1.5


def hostile(pickled):
    """An archive whose data.pkl is that."""
    out = io.BytesIO()
    writer = _archive.Writer(out, "archive")
    writer.write_record("data.pkl", pickled)
    writer.write_record("data/0", bytes(16))
    writer.finish()
    return io.BytesIO(out.getvalue())


def persistent(count=b"K\x04", kind=b"FloatStorage"):
    return (b"(X\x07\x00\x00\x00storagectorch\n" + kind + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
            + count + b"tQ")  # fmt: skip


def tensor(size=b"K\x02\x85", stride=b"K\x01\x85", offset=b"K\x00", **storage):
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + persistent(**storage) + offset + size + stride
            + b"\x89ccollections\nOrderedDict\n)RtR.")  # fmt: skip


def big(n, width=8):
    return b"\x8a" + bytes([width]) + n.to_bytes(width, "little", signed=True)


HOSTILE = {
    "storage of a petabyte": b"\x80\x02" + tensor(count=big(2**47)),
    "negative count": b"\x80\x02" + tensor(count=big(-4)),
    "count is text": b"\x80\x02" + tensor(count=b"X\x01\x00\x00\x004"),
    "window too large": b"\x80\x02" + tensor(size=b"K\x05\x85"),
    "window overflows": b"\x80\x02" + tensor(size=big(2**62) + big(4) + b"\x86", stride=big(2**61) + big(2**61) + b"\x86"),
    "numel overflows": b"\x80\x02" + tensor(size=big(2**62) + big(2**62) + b"\x86", stride=b"K\x00K\x00\x86"),
    "negative offset": b"\x80\x02" + tensor(offset=big(-1)),
    "negative stride": b"\x80\x02" + tensor(stride=big(-1) + b"\x85"),
    "negative size": b"\x80\x02" + tensor(size=big(-2) + b"\x85"),
    "no storage": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(NK\x00)))\x89NtR.",
    "tensor by size": b"\x80\x02ctorch\nTensor\n" + big(2**40) + b"\x85R.",
    "new tensor by size": b"\x80\x02ctorch\nTensor\n" + big(2**40) + b"\x85\x81.",
    "storage by size": b"\x80\x02ctorch\nFloatStorage\n" + big(2**40) + b"\x85R.",
    "untyped by size": b"\x80\x02ctorch.storage\nUntypedStorage\n" + big(2**40) + b"\x85R.",
    "bytes by size": b"\x80\x02c__builtin__\nbytearray\n" + big(2**40) + b"\x85R.",
    "long text": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "long bytes": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
    "long number": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
    "memo far away": b"\x80\x02Nr\xff\xff\xff\xff\x7f.",
    "memo of nothing": b"\x80\x02h\x05.",
    "put without value": b"\x80\x02q\x00.",
    "no mark": b"\x80\x02t.",
    "stack empty": b"\x80\x02.",
    "no stop": b"\x80\x02N",
    "append to text": b"\x80\x02X\x01\x00\x00\x00aNa.",
    "unhashable key": b"\x80\x02}](K\x01K\x02eK\x03s.",
    "call a number": b"\x80\x02K\x01)R.",
    "call a dtype": b"\x80\x02ctorch\nfloat32\n)R.",
    "call a class": b"\x80\x02cbuiltins\ndict\n)R.",
    "eval": b"\x80\x02cbuiltins\neval\nX\x03\x00\x00\x001+1\x85R.",
    "getattr": b"\x80\x02cbuiltins\ngetattr\nNN\x86R.",
    "attribute path": b"\x80\x04\x8c\x05torch\x8c\x0fos.system.hello\x93.",
    "build a number": b"\x80\x02K\x01}b.",
    "build a class": b"\x80\x02ctorch\nTensor\n}X\x01\x00\x00\x00aNsb.",
    "inst": b"\x80\x02(ios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "protocol 9": b"\x80\x09N.",
    "rebuild calls eval": b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nOrderedDict\nctorch\nTensor\n)NtR.",
    "frozen codec": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00bz2\x86R.",
    "other persistent id": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "storage is a module": b"\x80\x02(X\x07\x00\x00\x00storagectorch\nTensor\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ.",
    "missing record": b"\x80\x02" + tensor().replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x007"),
    "surrogate": b"\x80\x02X\x01\x00\x00\x00\xff.",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_pickles(name):
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
        lamina.load(hostile(HOSTILE[name]))


def test_good_pickle_of_the_same_kind():
    assert lamina.load(hostile(b"\x80\x02" + tensor())).tolist() == [0.0, 0.0]


def test_deep_and_cyclic():
    deep = b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b"."
    value, depth = lamina.load(hostile(deep)), 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 49_999
    cyclic = lamina.load(hostile(b"\x80\x02]q\x00h\x00a."))
    assert cyclic[0] is cyclic
    doubled = b"\x80\x02K\x01" + b"2\x86" * 60 + b"q\x00}h\x00K\x01s."
    began = time.monotonic()
    with pytest.raises(pickle.UnpicklingError, match="too many parts"):
        lamina.load(hostile(doubled))
    assert time.monotonic() - began < 10


def test_hostile_archives():
    data = saved({"x": lamina.arange(100.0)})
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"\x80\x02N." + bytes(10_000_000))
    with pytest.raises(RuntimeError, match="would take"):
        lamina.load(io.BytesIO(bomb.getvalue()))
    for cut in (5, 100, len(data) // 2, len(data) - 1):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            lamina.load(io.BytesIO(data[:cut]))
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"PK\x01\x02"))
    claims = bytearray(data)
    struct.pack_into("<I", claims, at + 42, 0)  # two records at one place
    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        lamina.load(io.BytesIO(bytes(claims)))
    flipped = bytearray(data)
    flipped[data.index(struct.pack("<f", 37.0))] ^= 1
    with pytest.raises(RuntimeError, match="CRC32"):
        lamina.load(io.BytesIO(bytes(flipped)))


def mutated(data, rng):
    data = bytearray(data)
    kind = rng.randrange(6 if len(data) > 8 else 5)
    if kind == 0:
        return bytes(data[: rng.randrange(len(data))])
    if kind == 1:
        for _ in range(rng.randrange(1, 8)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
    elif kind == 3:
        at = rng.randrange(len(data))
        data[at:at] = rng.randbytes(rng.randrange(1, 20))
    elif kind == 4:
        at = rng.randrange(len(data))
        del data[at : at + rng.randrange(1, 20)]
    else:
        at = rng.randrange(max(1, len(data) - 8))
        struct.pack_into("<Q", data, at, rng.choice((2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1)))
    return bytes(data)


def test_mutated_files():
    """Every damaged file gives a value or an error, quickly and without a large allocation."""
    rng = random.Random(7)
    names = [n for n in sorted(EXPECTED) if n not in ("protocol5.pt",)]
    rounds = 2000 if NIGHTLY else 400
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    errors = 0
    for i in range(rounds):
        original = (FILES / names[i % len(names)]).read_bytes()
        if (
            i % 2 and b"without_crc" not in original and original[:2] == b"PK"
        ):  # with checksums that are right
            data = rezipped(original, lambda content: mutated(content, rng))
        else:
            data = mutated(original, rng)
        held = lamina._C._memory_stats()["allocated"]
        lamina._C._memory_reset_peak()
        try:
            lamina.load(io.BytesIO(data))
        except (EOFError, RuntimeError, pickle.UnpicklingError):
            errors += 1
        taken = lamina._C._memory_stats()["peak_allocated"] - held
        assert taken <= 2 * len(data) + 65536, (names[i % len(names)], taken)
    assert errors > rounds // 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes


# ---- atomic writes ----


class Failing:
    def __reduce__(self):
        raise ValueError("not to be pickled")


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    lamina.save(lamina.ones(3), path)
    before = path.read_bytes()
    with pytest.raises(ValueError):
        lamina.save([lamina.zeros(3), Failing()], path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.pt"]


def test_permissions_and_links(tmp_path):
    path, link = tmp_path / "x.pt", tmp_path / "link.pt"
    lamina.save(1, path)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    lamina.save(2, link)
    assert link.is_symlink() and lamina.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640
    lamina.save(3, "/dev/null")


def test_a_killed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.pt"
    lamina.save({"step": 0}, path)
    program = textwrap.dedent(
        """
        import sys, lamina
        print("ready", flush=True)
        big = [lamina.zeros(200_000) for _ in range(20)]
        step = 0
        while True:
            step += 1
            lamina.save({"step": step, "big": big}, sys.argv[1])
        """
    )
    for delay in (0.05, 0.11, 0.2):
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert lamina.load(path)["step"] >= 0


def test_signatures():
    import inspect

    assert "weights_only" in inspect.signature(lamina.load).parameters
    assert list(inspect.signature(lamina.save).parameters)[:3] == ["obj", "f", "pickle_module"]


def test_weights_from_a_url(tmp_path, monkeypatch):
    import hashlib

    from lamina import hub

    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    source = tmp_path / "x.pth"
    lamina.save({"w": lamina.ones(2)}, source)
    digits = hashlib.sha256(source.read_bytes()).hexdigest()[:8]
    named = source.rename(tmp_path / f"x-{digits}.pth")
    loaded = hub.load_state_dict_from_url(named.as_uri(), check_hash=True)
    assert loaded["w"].tolist() == [1.0, 1.0]
    assert os.listdir(os.path.join(hub.get_dir(), "checkpoints")) == [named.name]
    wrong = source.with_name("x-00000000.pth")
    wrong.write_bytes(named.read_bytes())
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(wrong.as_uri(), check_hash=True)
    assert os.listdir(os.path.join(hub.get_dir(), "checkpoints")) == [named.name]


# ---- storages ----


def test_storage_of_a_file(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    private = lamina.UntypedStorage.from_file(str(path), shared=False, nbytes=8)
    assert private.tolist() == list(range(8))
    private[0] = 50
    assert path.read_bytes()[0] == 0
    shared = lamina.UntypedStorage.from_file(str(path), True, 8)
    shared[0] = 50
    del shared
    assert path.read_bytes()[0] == 50
    with pytest.raises(RuntimeError, match="too short"):
        lamina.UntypedStorage.from_file(str(path), nbytes=100)
    fresh = lamina.UntypedStorage.from_file(str(tmp_path / "new"), True, 16)
    assert fresh.nbytes() == 16 and (tmp_path / "new").stat().st_size == 16


def test_storage_methods():
    s = lamina.arange(2, dtype=lamina.int16).untyped_storage()
    s.byteswap(lamina.int16)
    assert s.tolist() == [0, 0, 0, 1]
    twin = copy.deepcopy(s)
    twin[0] = 9
    assert s[0] == 0 and copy.copy(s).tolist() == s.tolist()
    assert s.untyped() is s and s.to("cpu") is s and not s.is_pinned()
    assert collections.Counter([s, s])[s] == 2


# ---- safetensors ----


def some_tensors():
    return {
        "a": lamina.arange(6.0).view(2, 3),
        "half": lamina.ones(3, dtype=lamina.bfloat16),
        "long": lamina.arange(2),
        "scalar": lamina.tensor(5.0),
        "float8": lamina.ones(4).to(lamina.float8_e4m3fn),
        "flags": lamina.tensor([True, False, True]),
        "empty": lamina.empty(0, 2),
        "turned": lamina.arange(6.0).view(2, 3).t(),
    }


def test_safetensors_round_trip(tmp_path):
    from lamina.utils import safetensors as st

    tensors, path = some_tensors(), tmp_path / "x.safetensors"
    st.save_file(tensors, path, metadata={"format": "pt"})
    for loaded in (st.load_file(path), st.load(path.read_bytes()), st.load(st.save(tensors))):
        assert sorted(loaded) == sorted(tensors)
        for name, t in tensors.items():
            got = loaded[name]
            assert got.dtype == t.dtype and got.shape == t.shape
            assert got.double().tolist() == t.double().tolist()
    with st.safe_open(path) as file:
        assert file.keys() == sorted(tensors) and file.metadata() == {"format": "pt"}
        assert lamina.equal(file.get_tensor("a"), tensors["a"])
        with pytest.raises(st.SafetensorError, match="does not contain"):
            file.get_tensor("none")
    mapped = st.load_file(path)["a"]
    mapped[0, 0] = 50
    assert st.load_file(path)["a"][0, 0].item() == 0


def test_safetensors_of_the_published_package():
    """A file that the package wrote."""
    from lamina.utils import safetensors as st

    loaded = st.load_file(FILES / "published.safetensors")
    assert loaded["a"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert loaded["half"].dtype == lamina.bfloat16 and loaded["long"].tolist() == [0, 1]


def test_safetensors_errors(tmp_path):
    from lamina.utils import safetensors as st

    x = lamina.ones(4)
    with pytest.raises(RuntimeError, match="share memory"):
        st.save({"a": x, "b": x[1:]})
    with pytest.raises(ValueError, match="expected a Tensor"):
        st.save({"a": 1})
    good = st.save({"a": x})

    def header(text, data=bytes(16)):
        text = json.dumps(text).encode() if not isinstance(text, bytes) else text
        return struct.pack("<Q", len(text)) + text + data

    entry = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
    assert st.load(header({"a": entry}))["a"].shape == (4,)
    for bad in (
        b"", good[:7], good[:-1], good + b"x", struct.pack("<Q", 2**63) + good[8:],
        header(b"{"), header([1]), header({"a": 1}), header({"a": {**entry, "dtype": "X"}}),
        header({"a": {**entry, "shape": [2**61]}}), header({"a": {**entry, "shape": [-4]}}),
        header({"a": {**entry, "shape": [4.0]}}), header({"a": {**entry, "data_offsets": [4, 20]}}),
        header({"a": {**entry, "data_offsets": [0, 12]}}), header({"a": entry, "b": entry}),
        header(b'{"a":1,"a":2}'), header({"a": {**entry, "shape": [2**40, 2**40, 2**40]}}),
        header(b"[" * 5000 + b"]" * 5000),
    ):  # fmt: skip
        with pytest.raises(st.SafetensorError):
            st.load(bad)


def test_mutated_safetensors():
    from lamina.utils import safetensors as st

    rng = random.Random(3)
    original = st.save(some_tensors())
    for _ in range(2000 if NIGHTLY else 300):
        data = mutated(original, rng)
        held = lamina._C._memory_stats()["allocated"]
        lamina._C._memory_reset_peak()
        try:
            st.load(data)
        except st.SafetensorError:
            pass
        assert lamina._C._memory_stats()["peak_allocated"] - held <= 2 * len(data) + 65536


def test_a_whole_module_of_pytorch():
    """Pickles that name modules, which only weights_only=False reads."""
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.modules.container.Sequential"):
        lamina.load(FILES / "whole_module.pt")
    model = lamina.load(FILES / "whole_module.pt", weights_only=False)
    state = lamina.load(FILES / "module_state.pt")
    assert type(model) is lamina.nn.Sequential and list(model.state_dict()) == list(state)
    assert all(lamina.equal(v, state[k]) for k, v in model.state_dict().items())
    again = round_trip(model, {"weights_only": False})
    assert str(again) == str(model)
    assert model[1](model[0](lamina.ones(1, 3))).shape == (1, 4)


def test_the_oldest_format():
    """A tar archive, as PyTorch's first releases wrote it."""
    with pytest.raises(pickle.UnpicklingError, match="legacy .tar format"):
        lamina.load(FILES / "oldest.tar")
    loaded = lamina.load(FILES / "oldest.tar", weights_only=False)
    assert loaded["whole"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    loaded["whole"][1, 0] = 50
    assert loaded["row"].tolist() == [50.0, 4.0, 5.0]


def test_streams_inside_of_pickles():
    """A storage's own pickle is read by the machine, too: a far memo takes no memory."""
    storage = lamina.arange(3.0).storage()
    inner = pickle.loads(pickle.dumps(storage))
    assert inner.tolist() == [0.0, 1.0, 2.0]
    far = b"\x80\x02Nr\xff\xff\xff\xff."
    with pytest.raises(pickle.UnpicklingError):
        lamina.storage._load_from_bytes(far)
    with pytest.raises(pickle.UnpicklingError):
        lamina.load(hostile(pickle.dumps([storage], 2).replace(b"storageq", b"stOrageq")))
