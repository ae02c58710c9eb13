"""What explain, the profiler and the memory timeline tell, and that they leave a program as it was."""

import gzip
import json
from html.parser import HTMLParser

import pytest
from lamina.nn import functional as F

import lamina
from lamina import nn


def matrix(*sizes, grad=True):
    lamina.manual_seed(0)
    return lamina.randn(*sizes, requires_grad=grad)


def product(x, w):
    return (x @ w).relu().sum()


def test_a_call_falls_through_its_layers():
    x, w = matrix(4, 3), matrix(3, 2)
    e = lamina.explain(product, x, w)
    assert e.result.item() == product(x, w).item()
    matmul = e.roots[0]
    assert matmul.name == "aten::matmul" and matmul.rule == "math kernel"
    assert matmul.line[0] == __file__ and matmul.line[2] == "product"
    (recorded,) = matmul.children
    assert recorded.name == "aten::mm" and recorded.key == "AutogradCPU"
    assert recorded.rule == "autograd kernel" and recorded.node == "MmBackward0"
    assert {name: t.nbytes for name, t in recorded.saved} == {"self": 48, "mat2": 24}
    (kernel,) = recorded.children
    assert kernel.key == "CPU" and kernel.where.startswith("ops/linalg.yaml:")
    assert [k[0] for k in kernel.kernels] == ["gemm"] and kernel.kernels[0][3] == 24
    assert [str(a) for a in kernel.arguments] == ["float32[4, 3]", "float32[3, 2]"]
    assert [str(r) for r in kernel.results] == ["float32[4, 2]"]
    assert kernel.allocated > 0 and kernel.begin <= kernel.end
    assert sum(e.floors().values()) > 0


def test_backward_is_told_node_by_node():
    x, w = matrix(4, 3), matrix(3, 2)
    with lamina.explain() as e:
        product(x, w).backward()
    nodes = [c.name for c in e.calls if c.kind == "backward"]
    assert nodes == [
        "SumBackward0",
        "ReluBackward0",
        "MmBackward0",
        "AccumulateGrad",
        "AccumulateGrad",
    ]
    (mm,) = (c for c in e.calls if c.name == "MmBackward0")
    assert [c.name for c in mm.children if c.name == "aten::mm"] == ["aten::mm"] * 2


def test_other_overloads_say_why_they_were_not_chosen():
    x = matrix(3, grad=False)
    e = lamina.explain(lambda: x + 1)
    (call,) = e.roots
    assert call.name == "aten::add.Scalar"
    reasons = dict(e.other_overloads(call))
    assert reasons["add.Tensor"] == "'other' must be Tensor; got number 1"
    e = lamina.explain(lambda: x.sum(0))
    # The border says what it found.
    assert (
        dict(e.other_overloads(e.roots[0]))["sum"] == "takes 0 positional arguments but 1 was given"
    )
    e = lamina.explain(x.sum)
    reason = dict(e.other_overloads(e.roots[0]))["sum.dim_IntList"]
    assert reason == 'missing 1 required positional arguments: "dim"'


def test_refused_kernels_give_their_reason():
    x = lamina.ones(40, 40, dtype=lamina.int64)
    calls = lamina.explain(lambda: x @ x).find("mm")
    refusals = [r for c in calls for r in c.refusals]
    assert ("blas", "BLAS computes float32, float64, complex64 and complex128 only") in refusals


def test_ways_over_memory_and_why_others_did_not_serve():
    x = lamina.ones(4, 100)

    def ways(f):
        calls = lamina.explain(f).calls
        return [(k[0], k[1]) for c in calls for k in c.kernels], dict(
            r for c in calls for r in c.refusals
        )

    assert ways(lambda: x + x) == ([("direct loop", "add")], {})
    ran, refused = ways(lambda: x + x[0])
    assert ran[-1] == ("tile operation", "add") and "broadcast" in refused["direct loop"]
    ran, refused = ways(lambda: x + x.double())
    assert "converted" in refused["direct loop"]
    assert ways(lambda: x.sum(0)) == ([("tile reduction", "rows into a row")], {})
    ran, refused = ways(lambda: x.sum(1))
    assert ran == [("tile reduction", "row by row")] and list(refused) == ["rows into a row"]
    ran, refused = ways(lambda: x.var(1))
    assert ran == [("tile reduction", "tree of leaves")] and len(refused) == 2


def test_a_call_that_raises_is_told_and_leaves_nothing_behind():
    x = matrix(3, grad=False)
    with pytest.raises(RuntimeError), lamina.explain() as e:
        x @ lamina.ones(4)
    assert any(c.failed for c in e.calls) and "raised" in str(e)
    assert not lamina._C._trace_running()
    with (
        pytest.raises(RuntimeError, match="being read already"),
        lamina.explain(),
        lamina.explain(),
    ):
        pass
    assert not lamina._C._trace_running()


def test_difference_of_two_runs():
    x, w = matrix(4, 3, grad=False), matrix(3, 2, grad=False)
    first, same = lamina.explain(product, x, w), lamina.explain(product, x, w)
    assert not first.diff(same) and str(first.diff(same)) == "no difference"
    column_major = x.t().contiguous().t()
    changes = str(first.diff(lamina.explain(product, column_major, w)))
    assert "strides (1, 4)" in changes
    wider = str(first.diff(lamina.explain(lambda: product(x, w) + 1)))
    assert "+ " in wider and "aten::add.Scalar" in wider


class Checker(HTMLParser):
    """Every element is closed in order, and nothing comes from outside."""

    VOID = {"meta", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        assert not {"src", "href"} & {name for name, _ in attributes}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_pages_are_whole(tmp_path):
    x, w = matrix(4, 3), matrix(3, 2)
    with lamina.explain() as e:
        product(x, w).backward()
    e.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == [] and checker.seen.count("details") == len(e.calls)
    assert "prefers-color-scheme" in page and "<svg" in page
    for floor in (
        "1 program",
        "2 Python",
        "3 border",
        "4 dispatch",
        "5 kernels",
        "6 memory",
        "8 machine",
    ):
        assert floor in page


def test_json_holds_what_the_calls_hold(tmp_path):
    x, w = matrix(4, 3), matrix(3, 2)
    e = lamina.explain(product, x, w)
    data = json.loads(e.to_json(tmp_path / "e.json"))
    assert data == json.loads((tmp_path / "e.json").read_text())
    matmul = data["calls"][0]
    assert matmul["name"] == "aten::matmul" and matmul["calls"][0]["node"] == "MmBackward0"
    assert matmul["arguments"][0]["shape"] == [4, 3] and matmul["arguments"][0]["requires_grad"]


# ---- profiler


def test_profile_of_a_product():
    x, w = matrix(2, 3, grad=False), matrix(3, 2, grad=False)
    with lamina.profiler.profile(record_shapes=True) as p:
        x @ w
    matmul, mm = p.events()
    assert (matmul.name, matmul.input_shapes) == ("aten::matmul", [[2, 3], [3, 2]])
    assert matmul.cpu_children == [mm] and mm.cpu_parent is matmul
    assert (mm.name, mm.input_shapes) == ("aten::mm", [[2, 3], [3, 2]])
    assert 0 <= matmul.self_cpu_time_total <= matmul.cpu_time_total
    assert mm.time_range.start >= matmul.time_range.start


def test_averages_and_table():
    x = matrix(2, 3, grad=False)
    with lamina.profiler.profile(record_shapes=True, profile_memory=True) as p:
        for _ in range(3):
            x + x
        lamina.zeros(1024)
    averages = {a.key: a for a in p.key_averages()}
    assert averages["aten::add"].count == 3
    assert averages["aten::zeros"].cpu_memory_usage >= 4096
    table = p.key_averages().table(sort_by="count", row_limit=1)
    assert "aten::add" in table and "aten::zeros" not in table and "CPU Mem" in table
    assert "Self CPU time total" in table and "Input Shapes" not in table
    assert "[[2, 3], [2, 3], []]" in p.key_averages(group_by_input_shape=True).table()
    with pytest.raises(AttributeError):
        p.key_averages().table(sort_by="nonsense")


def test_blocks_of_the_users_and_backward_nodes():
    x, w = matrix(4, 3), matrix(3, 2)

    @lamina.profiler.record_function("decorated")
    def decorated():
        product(x, w).backward()

    with lamina.profiler.profile() as p:
        with lamina.profiler.record_function("block"):
            decorated()
    block, inner = p.events()[:2]
    assert (block.name, inner.name) == ("block", "decorated") and inner.cpu_parent is block
    names = [e.name for e in p.events()]
    assert "autograd::engine::evaluate_function: MmBackward0" in names
    evaluate = p.events()[names.index("autograd::engine::evaluate_function: MmBackward0")]
    assert evaluate.cpu_children[0].name == "MmBackward0"
    with lamina.profiler.record_function("nobody listens"):
        pass


def test_schedule_and_traces(tmp_path):
    schedule = lamina.profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    action = lamina.profiler.ProfilerAction
    wanted = [action.NONE, action.NONE, action.WARMUP, action.RECORD, action.RECORD_AND_SAVE]
    assert [schedule(i) for i in range(5)] == wanted
    assert schedule(9) is action.NONE
    ready = []
    x = matrix(3, grad=False)
    with lamina.profiler.profile(
        schedule=schedule, on_trace_ready=ready.append, with_stack=True
    ) as p:
        for _ in range(12):
            x + x
            p.step()
    assert ready == [p, p]
    assert [e.name for e in p.events()] == [
        "ProfilerStep#7",
        "aten::add",
        "ProfilerStep#8",
        "aten::add",
    ]
    assert p.events()[1].stack[0].startswith(__file__)
    p.add_metadata("who", "a test")
    p.export_chrome_trace(str(tmp_path / "t.json.gz"))
    with gzip.open(tmp_path / "t.json.gz", "rt") as file:
        trace = json.load(file)
    assert trace["who"] == "a test"
    assert [e["name"] for e in trace["traceEvents"] if e["ph"] == "X"][1] == "aten::add"
    handler = lamina.profiler.tensorboard_trace_handler(str(tmp_path / "traces"))
    with lamina.profiler.profile(on_trace_ready=handler):
        x + x
    (file,) = (tmp_path / "traces").iterdir()
    assert json.loads(file.read_text())["traceEvents"]
    p.export_stacks(str(tmp_path / "stacks"))


def test_the_older_profiler():
    with lamina.autograd.profiler.profile(record_shapes=True) as p:
        lamina.ones(2) + 1
    assert "aten::add" in p.table() and len(p) == len(list(p))
    with lamina.autograd.profiler.profile(enabled=False) as p:
        lamina.ones(2)
    assert p is None


# ---- memory


def test_timeline_tells_kinds_apart(tmp_path):
    lamina.manual_seed(0)
    with lamina.memory.timeline(tmp_path / "before.html") as before:
        lamina.ones(1)
    others = before.samples[0][1]  # what lives beside this test
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = lamina.optim.AdamW(model.parameters())
    x, y = lamina.randn(128, 64), lamina.randint(0, 8, (128,))
    parameters = sum(p.numel() * 4 for p in model.parameters())
    with lamina.memory.timeline(tmp_path / "t.html") as timeline:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    first, last = timeline.samples[0][1], timeline.samples[-1][1]
    for kind, nbytes in others.items():
        first[kind] -= nbytes
        last[kind] -= nbytes
    assert parameters <= first["parameters"] <= parameters * 1.1
    assert first["gradients"] == first["optimizer"] == 0
    assert parameters <= last["gradients"] <= parameters * 1.1
    assert 2 * parameters <= last["optimizer"] <= 2.2 * parameters
    # The hidden layer's result is kept for backward, once, and gone after it.
    saved = max(s["saved"] for _, s in timeline.samples)
    assert 128 * 256 * 4 <= saved <= 128 * 256 * 4 * 1.3
    assert last["saved"] < 128 * 256 * 4
    assert timeline.peak == sum(timeline.peak_by_kind.values())
    checker = Checker()
    checker.feed((tmp_path / "t.html").read_text())
    assert checker.open == []
    timeline.write(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["peak"] == timeline.peak
    timeline.write(tmp_path / "t.svg")
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
