"""lamina.fx: tracing, graphs, generated code, graph edits, interpreters, pattern replacement."""

import collections
import copy
import io
import math
import operator
import pickle

import pytest
from lamina.fx.passes.shape_prop import ShapeProp
from lamina.fx.proxy import TraceError
from lamina.nn import functional as F
from lamina.nn.functional import silu

import lamina
from lamina import fx, nn


@fx.wrap
def positive_part(x):
    return x.clamp(min=0) if x.sum() > 0 else x * 0


fx.wrap("len")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.scale = nn.Parameter(lamina.full((4,), 2.0))
        self.register_buffer("shift", lamina.ones(4))
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def forward(self, x, y=2.5, *, z: int = 3):
        a = F.relu(self.linear(x) + self.scale * self.shift)
        b = lamina.cat([a, a], dim=-1)
        c = b.view(b.shape[0], -1)[:, 1:3]
        d = -(2 * self.layers(a) + 1)
        return {"sum": d.sum(dim=1, keepdim=True).to(lamina.float64), "rest": (c, y)}, z


BLOCK = """


def forward(self, x, y = 2.5, z : int = 3):
    linear = self.linear(x);  x = None
    scale = self.scale
    shift = self.shift
    mul = scale * shift;  scale = shift = None
    add = linear + mul;  linear = mul = None
    relu = torch.nn.functional.relu(add, inplace = False);  add = None
    cat = torch.cat([relu, relu], dim = -1)
    getattr_1 = cat.shape
    getitem = getattr_1[0];  getattr_1 = None
    view = cat.view(getitem, -1);  cat = getitem = None
    getitem_1 = view[(slice(None, None, None), slice(1, 3, None))];  view = None
    layers_0 = getattr(self.layers, "0")(relu);  relu = None
    layers_1 = getattr(self.layers, "1")(layers_0);  layers_0 = None
    mul_1 = 2 * layers_1;  layers_1 = None
    add_1 = mul_1 + 1;  mul_1 = None
    neg = -add_1;  add_1 = None
    sum_1 = neg.sum(dim = 1, keepdim = True);  neg = None
    to = sum_1.to(torch.float64);  sum_1 = None
    return ({'sum': to, 'rest': (getitem_1, y)}, z)
    """


def code_of(fn, **kwargs):
    """The statements that a traced function becomes."""
    lines = fx.symbolic_trace(fn, **kwargs).code.strip().splitlines()
    return [line.strip() for line in lines if line.strip()]


def test_code_of_a_module():
    block = Block()
    traced = fx.symbolic_trace(block)
    assert traced.code == BLOCK
    assert type(traced).__name__ == "Block" and isinstance(traced, fx.GraphModule)
    x = lamina.randn(2, 3)
    (want, z), (got, z2) = block(x), traced(x)
    assert z == z2 == 3
    assert lamina.equal(want["sum"], got["sum"]) and lamina.equal(want["rest"][0], got["rest"][0])
    assert dict(traced.named_parameters()).keys() == dict(block.named_parameters()).keys()
    assert "(layers): Module(" in str(traced) and str(traced).count("def forward") == 1


def test_lines_of_a_graph():
    def f(x, n: int = 2):
        return F.softmax(x * n, dim=-1)

    graph = fx.symbolic_trace(f).graph
    assert str(graph).splitlines()[:4] == [
        "graph():",
        "    %x : [num_users=1] = placeholder[target=x]",
        "    %n : int [num_users=1] = placeholder[target=n](default=2)",
        "    %mul : [num_users=1] = call_function[target=operator.mul](args = (%x, %n), kwargs = {})",
    ]
    assert str(graph).splitlines()[-1] == "    return softmax"
    assert [n.op for n in graph.nodes] == ["placeholder"] * 2 + ["call_function"] * 2 + ["output"]
    assert [n.name for n in reversed(graph.nodes)][0] == "output" and len(graph.nodes) == 5


@pytest.mark.parametrize(
    "fn, line",
    [
        (lambda x: x**2, "pow_1 = x ** 2;  x = None"),
        (lambda x: (-2) ** x, "pow_1 = (-2) ** x;  x = None"),
        (lambda x: 1 / x, "truediv = 1 / x;  x = None"),
        (lambda x: ~x, "invert = ~x;  x = None"),
        (lambda x: x[..., None], "getitem = x[(Ellipsis, None)];  x = None"),
        (lambda x: x.T, "getattr_1 = x.T;  x = None"),
        (lambda x: x.view([1, 2]), "view = x.view([1, 2]);  x = None"),
        (lambda x: x + float("inf"), "add = x + inf;  x = None"),
        (lambda x: x.to(lamina.device("cpu")), "to = x.to(device(type='cpu'));  x = None"),
        (lambda x: math.sqrt(x), "sqrt = math_sqrt(x);  x = None"),
        (lambda x: len(x), "len_1 = len(x);  x = None"),
        (lambda x: positive_part(x), "positive_part = test_fx_positive_part(x);  x = None"),
        (lambda x: silu(x), "silu = torch.nn.functional.silu(x, inplace = False);  x = None"),
        (lambda x: lamina.add(x, 1, alpha=2), "add = torch.add(x, 1, alpha = 2);  x = None"),
        (lambda x: lamina.special.erf(x), "erf = torch.special.erf(x);  x = None"),
    ],
)
def test_statements(fn, line):
    text = "\n".join(code_of(fn)).replace("tests_test_fx", "test_fx")
    assert line in text


def test_attributes_of_tensors_and_constants():
    constant = lamina.tensor([1.0, 2.0])
    traced = fx.symbolic_trace(lambda x: x * constant + constant)
    assert [n.target for n in traced.graph.find_nodes(op="get_attr")] == ["_tensor_constant0"] * 2
    assert lamina.equal(traced(lamina.ones(2)), lamina.tensor([2.0, 4.0]))
    assert list(traced.state_dict()) == ["_tensor_constant0"]


def test_arguments_with_stars_and_unpacking():
    def f(*xs, k=2, **named):
        a, b = xs[0].split(1)
        return a * k + b + named["z"]

    traced = fx.symbolic_trace(f)
    assert [n.target for n in traced.graph.find_nodes(op="placeholder")] == ["k", "*xs", "**named"]
    unpack = fx.symbolic_trace(lambda x: operator.sub(*_two(x)))
    assert unpack(lamina.tensor([3.0, 1.0])).item() == 2.0


def _two(x):
    a, b = x
    return a, b


@pytest.mark.parametrize(
    "fn, error",
    [
        (lambda x: 1 if x else 2, TraceError),
        (lambda x: [e for e in x], TraceError),
        (lambda x: 1 in x, TraceError),
        (lambda x: x.__len__(), RuntimeError),
        (lambda x: int(x), TypeError),
        (lambda x: (x, object()), NotImplementedError),
        (lambda x: {x: 1}, RuntimeError),
    ],
)
def test_what_cannot_be_traced(fn, error):
    with pytest.raises(error):
        fx.symbolic_trace(fn)
    # What tracing changed is taken back.
    assert not fx._symbolic_trace.is_fx_symbolic_tracing()
    assert F.relu(lamina.tensor([-1.0])).item() == 0 and len([1]) == 1


def test_concrete_arguments():
    def f(x, flag):
        return x + 1 if flag else x - 1

    traced = fx.symbolic_trace(f, concrete_args={"flag": True})
    assert traced(lamina.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="flag has been specialized to have value True"):
        traced(lamina.ones(1), False)
    assert fx.symbolic_trace(f, (fx.PH, False))(lamina.ones(1), False).item() == 0
    assert code_of(f, concrete_args=(fx.PH, True))[0] == "def forward(self, x_1, flag_1):"


def test_assertions_are_recorded():
    def f(x):
        lamina._assert(x.shape[0] == 2, "two rows")
        return x

    traced = fx.symbolic_trace(f)
    traced.graph.eliminate_dead_code()
    traced.recompile()
    with pytest.raises(AssertionError, match="two rows"):
        traced(lamina.ones(3))


def test_tracers_decide_about_leaves():
    class Whole(fx.Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return False

    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.ReLU())
    tracer = Whole()
    traced = fx.GraphModule(net, tracer.trace(net))
    assert not traced.graph.find_nodes(op="call_module")
    assert {"0.weight", "0.bias", "1.weight"} <= {n.target for n in traced.graph.nodes}
    x = lamina.randn(1, 1, 5, 5)
    assert lamina.equal(traced(x), net(x))


def test_scopes_are_recorded():
    traced = fx.symbolic_trace(nn.Sequential(nn.Sequential(nn.ReLU())))
    stack = traced.graph.find_nodes(op="call_module")[0].meta["nn_module_stack"]
    assert list(stack) == ["0", "0.0"] and stack["0.0"][1] is nn.ReLU


def test_graphs_by_hand():
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=2)
    total = graph.call_function(operator.add, (x, y))
    graph.output((total, {"k": [x]}))
    graph.lint()
    module = fx.GraphModule({}, graph, "Sum")
    assert type(module).__name__ == "Sum" and module(1) == (3, {"k": [1]})
    assert x.users == {total: None, graph.output_node(): None} and total.all_input_nodes == [x, y]
    total.args = (x, x)
    assert y.users == {} and list(x.users) == [graph.output_node(), total]
    with pytest.raises(TypeError):
        graph.output_node().args[0][1]["k"].append(1)
    for wrong in (
        lambda: graph.call_function("add"),
        lambda: graph.create_node("jump", "x"),
        lambda: fx.GraphModule({}, _reading("missing")),
        lambda: fx.GraphModule(3, graph),
    ):
        with pytest.raises((ValueError, RuntimeError, AssertionError)):
            wrong()


def _reading(name):
    graph = fx.Graph()
    graph.output(graph.get_attr(name))
    return graph


def test_edits():
    traced = fx.symbolic_trace(lambda x: F.relu(x + 1) * 2)
    graph = traced.graph
    relu = graph.find_nodes(op="call_function", target=F.relu)[0]
    with pytest.raises(RuntimeError, match="other nodes read it"):
        graph.erase_node(relu)
    with graph.inserting_after(relu):
        new = graph.call_function(lamina.neg, relu.args[:1])
    assert relu.next is new and new.prev is relu
    assert relu.replace_all_uses_with(new) == [new.next]
    graph.erase_node(relu)
    traced.recompile()
    assert traced(lamina.tensor([1.0])).item() == -4
    with graph.inserting_before(new):
        late = graph.call_method("exp", (new,))
    with pytest.raises(RuntimeError, match="before it has been defined"):
        graph.lint()
    new.append(late)
    graph.lint()
    other = fx.Graph()
    values = {}
    result = other.graph_copy(graph, values)
    assert [n.name for n in other.nodes] == [n.name for n in graph.nodes][:-1]
    assert result.graph is other


def test_dead_code():
    def f(x):
        x * 3
        y = x + 0
        y.add_(1)
        lamina.relu(y)
        return y

    traced = fx.symbolic_trace(f)
    assert traced.graph.eliminate_dead_code() and not traced.graph.eliminate_dead_code()
    traced.recompile()
    assert [n.name for n in traced.graph.nodes] == ["x", "add", "add_", "output"]
    assert traced(lamina.ones(1)).item() == 2


def test_dead_writes():
    """What is written in place stays where somebody sees it, and goes with a value that nobody reads."""
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True), nn.Linear(2, 2))
    traced = fx.symbolic_trace(net)
    first = traced.graph.find_nodes(op="call_module")[0]
    traced.graph.output_node().args = (first,)
    traced.graph.eliminate_dead_code()
    assert [n.target for n in traced.graph.find_nodes(op="call_module")] == ["0"]
    unread = fx.symbolic_trace(lambda x: (lambda y: x)((x * 2).sum(0).mul_(3)))
    assert len(unread.graph.nodes) == 5
    unread.graph.eliminate_dead_code()
    assert len(unread.graph.nodes) == 2

    def through_a_view(x):
        y = x * 2
        y.view(-1).add_(1)
        return y

    viewed = fx.symbolic_trace(through_a_view)
    viewed.graph.eliminate_dead_code()
    viewed.recompile()
    assert viewed(lamina.ones(1)).item() == 3


def test_copies_and_pickles():
    block = Block()
    traced = fx.symbolic_trace(block)
    x = lamina.randn(2, 3)
    want = traced(x)[0]["sum"]
    copied = copy.deepcopy(traced)
    assert copied.code == traced.code and copied.graph is not traced.graph
    assert copied.scale is not traced.scale and lamina.equal(copied(x)[0]["sum"], want)
    with lamina.no_grad():
        copied.scale.zero_()
    assert lamina.equal(traced(x)[0]["sum"], want)
    again = pickle.loads(pickle.dumps(traced))
    assert again.code == traced.code and lamina.equal(again(x)[0]["sum"], want)
    file = io.BytesIO()
    lamina.save(traced, file)
    file.seek(0)
    assert lamina.equal(lamina.load(file, weights_only=False)(x)[0]["sum"], want)
    again.load_state_dict(block.state_dict())


def test_training():
    lamina.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    traced = fx.symbolic_trace(net)
    x = lamina.randn(32, 2)
    y = x.prod(1, keepdim=True)
    optimizer = lamina.optim.Adam(traced.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = F.mse_loss(traced(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert net[0].weight is getattr(traced, "0").weight


def test_submodules_of_a_graph_module():
    traced = fx.symbolic_trace(Block())
    assert traced.add_submodule("extra.inner", nn.ReLU())
    assert traced.get_submodule("extra.inner") is not None
    traced.delete_all_unused_submodules()
    assert [n for n, _ in traced.named_children()] == ["linear", "layers"]
    assert traced.delete_submodule("layers.1") and not traced.delete_submodule("layers.1")
    with pytest.raises(RuntimeError, match="no such attribute"):
        traced.graph.lint()


def test_folder(tmp_path, monkeypatch):
    traced = fx.symbolic_trace(Block())
    traced.to_folder(tmp_path / "written", "Written")
    monkeypatch.syspath_prepend(tmp_path)
    from written import Written

    x = lamina.randn(2, 3)
    assert lamina.equal(Written()(x)[0]["sum"], traced(x)[0]["sum"])


def test_what_is_made_in_the_graph():
    Pair = collections.namedtuple("Pair", "left right")
    traced = fx.symbolic_trace(lambda x: Pair(x, [x, 1]))
    assert [n.op for n in traced.graph.nodes] == ["placeholder", "call_function", "output"]
    assert isinstance(traced(2), Pair) and traced(2) == Pair(2, [2, 1])

    class Scaled(metaclass=fx.ProxyableClassMeta):
        def __init__(self, x, factor):
            self.x, self.factor = x, factor

        def value(self):
            return self.x * self.factor

    assert fx.symbolic_trace(lambda x: Scaled(x, 3).value())(lamina.ones(1)).item() == 3
    node = traced.graph.find_nodes(op="placeholder")[0]
    twin = copy.deepcopy(node)
    assert twin.name == "x" and twin.graph is not node.graph


def test_trees_of_arguments():
    arguments = fx.immutable_collections.immutable_list([1, {"a": 2}])
    assert lamina.utils._pytree.tree_map(lambda v: v + 1, arguments) == [2, {"a": 3}]
    inner = fx.immutable_collections.immutable_dict(a=2)
    assert lamina.utils._pytree.tree_map(lambda v: v + 1, inner) == {"a": 3}


def test_interpreter_and_transformer():
    class Counting(fx.Interpreter):
        calls = 0

        def call_function(self, target, args, kwargs):
            self.calls += 1
            return super().call_function(target, args, kwargs)

    class Subtracting(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(
                lamina.sub if target is operator.add else target, args, kwargs
            )

    block = Block()
    traced = fx.symbolic_trace(block)
    x = lamina.randn(2, 3)
    counting = Counting(traced)
    assert lamina.equal(counting.run(x)[0]["sum"], block(x)[0]["sum"])
    assert counting.calls == len(traced.graph.find_nodes(op="call_function"))
    changed = Subtracting(fx.symbolic_trace(lambda x: (x + 1) * 2)).transform()
    assert changed(lamina.ones(1)).item() == 0
    with pytest.raises(RuntimeError, match="While executing %matmul"):
        fx.Interpreter(fx.symbolic_trace(lambda a: lamina.matmul(a, a))).run(lamina.ones(2, 3))
    with pytest.raises(RuntimeError, match="expected a positional argument"):
        fx.Interpreter(traced).run()


def test_patterns():
    def program(x, w):
        return lamina.relu(x + 1) + lamina.relu(lamina.relu(x + w) + 1)

    traced = fx.symbolic_trace(program)
    found = fx.replace_pattern(traced, lambda a: lamina.relu(a + 1), lambda a: lamina.sigmoid(a))
    traced.graph.lint()
    assert len(found) == 2 and "torch.relu(add_1)" in traced.code
    x, w = lamina.randn(3), lamina.randn(3)
    want = lamina.sigmoid(x) + lamina.sigmoid(lamina.relu(x + w))
    assert lamina.allclose(traced(x, w), want)
    # What is read from outside the place stays.
    shared = fx.symbolic_trace(lambda x: (lamina.relu(x + 1), (x + 1)))
    assert len(fx.replace_pattern(shared, lambda a: lamina.relu(a + 1), lambda a: a * 2)) == 1
    read = fx.symbolic_trace(lambda x: (lambda s: (lamina.relu(s), s))(x + 1))
    assert fx.replace_pattern(read, lambda a: lamina.relu(a + 1), lambda a: a * 2) == []
    two = fx.symbolic_trace(lambda x: lamina.exp(x) - lamina.log(x))
    pairs = fx.replace_pattern(
        two, lambda a: (lamina.exp(a), lamina.log(a)), lambda a: (a * 3, a * 2)
    )
    assert len(pairs) == 1 and two(lamina.ones(1)).item() == 1
    with pytest.raises(ValueError):
        fx.replace_pattern(two, lambda a: a + 1, lambda a, b: a + b)


def test_shapes():
    traced = fx.symbolic_trace(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()))
    ShapeProp(traced).propagate(lamina.randn(2, 1, 4, 4))
    shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes}
    assert shapes == {"input_1": (2, 1, 4, 4), "_0": (2, 2, 2, 2), "_1": (2, 8), "output": (2, 8)}


def test_printing(capsys):
    traced = fx.symbolic_trace(nn.Sequential(nn.ReLU()))
    assert traced.print_readable(print_output=False).startswith(
        "class Sequential(torch.nn.Module):"
    )
    traced.graph.print_tabular()
    assert capsys.readouterr().out.splitlines()[2].split() == ["placeholder", "input_1", "input", "()", "{}"]  # fmt: skip


def test_wrap_refuses():
    with pytest.raises(RuntimeError):
        fx.wrap(3)
    with pytest.raises(NotImplementedError):
        fx.wrap("len")
