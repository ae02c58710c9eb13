"""Operators and kernels made in Python."""

import pytest
from lamina.library import Library, custom_op, infer_schema, opcheck

import lamina
from lamina import library


@pytest.fixture
def lib():
    made = Library("testlib", "DEF")
    yield made
    made._destroy()


def test_define_and_implement(lib):
    lib.define("scaled(Tensor x, int n=2, *, float shift=0.5) -> Tensor")
    lib.impl("scaled", lambda x, n=2, shift=0.5: x * n + shift, "CPU")
    op = lamina.ops.testlib.scaled
    assert op(lamina.ones(2)).tolist() == [2.5, 2.5]
    assert op(lamina.ones(2), 3, shift=0.0).tolist() == [3.0, 3.0]
    assert (
        str(op.default._schema)
        == "testlib::scaled(Tensor x, int n=2, *, float shift=0.5) -> Tensor"
    )
    assert [a.name for a in op.default._schema.arguments] == ["x", "n", "shift"]
    assert op.default._schema.arguments[1].default_value == 2
    assert op.default is op.default and op.overloads() == ["default"]
    with pytest.raises(NotImplementedError):
        op(lamina.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"):
        op(1)
    with pytest.raises(RuntimeError):
        lib.define("scaled(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError):
        lib.impl("scaled", lambda x: x, "CPU")
    lib._destroy()
    with pytest.raises(AttributeError):
        lamina.ops.testlib.scaled  # noqa: B018


def test_several_results_lists_and_overloads(lib):
    lib.define("pair(Tensor[] xs, Tensor? bias) -> (Tensor, Tensor)")
    lib.define("pair.number(Tensor x, int n) -> Tensor[]")
    lib.impl("pair", lambda xs, bias: (xs[0] + 1, xs[1] if bias is None else bias), "CPU")
    lib.impl("pair.number", lambda x, n: [x] * n, "CompositeExplicitAutograd")
    a, b = lamina.ops.testlib.pair([lamina.ones(1), lamina.zeros(1)], None)
    assert (a.item(), b.item()) == (2.0, 0.0)
    assert len(lamina.ops.testlib.pair.number(lamina.ones(1), 3)) == 3
    lib.define("bad(Tensor x) -> (Tensor, Tensor)")
    lib.impl("bad", lambda x: x, "CPU")
    with pytest.raises((TypeError, RuntimeError)):
        lamina.ops.testlib.bad(lamina.ones(1))
    lib.define("raises(Tensor x) -> Tensor")
    lib.impl("raises", lambda x: 1 / 0, "CPU")
    with pytest.raises(ZeroDivisionError):
        lamina.ops.testlib.raises(lamina.ones(1))
    for malformed in ("noarrow(Tensor x)", "(Tensor x) -> Tensor", "open(Tensor x -> Tensor"):
        with pytest.raises(RuntimeError):
            lib.define(malformed)


def test_kernels_of_existing_operators_come_and_go():
    seen = []
    with Library("aten", "IMPL") as patch:

        def neg(x):
            seen.append(1)
            return x.mul(-1)

        patch.impl("neg", neg, "CPU")
        assert lamina.ones(1).neg().item() == -1.0
        assert seen == [1]
    lamina.ones(1).neg()
    assert seen == [1]
    with pytest.raises(ValueError):
        Library("aten", "DEF")
    with pytest.raises(ValueError):
        Library("x", "NONSENSE")


def test_fallthrough(lib):
    lib.define("through(Tensor x) -> Tensor")
    lib.impl("through", lambda x: x + 1, "CPU")
    lib.impl("through", library.fallthrough_kernel, "AutogradCPU")
    assert lamina.ops.testlib.through(lamina.ones(1, requires_grad=True)).item() == 2.0


def test_custom_op_with_gradient_and_fake():
    @custom_op("testcustom::sine", mutates_args=())
    def sine(x: lamina.Tensor, scale: float = 1.0) -> lamina.Tensor:
        return lamina.from_numpy(__import__("numpy").sin(x.detach().numpy()) * scale)

    x = lamina.tensor([0.0, 1.0], dtype=lamina.float64, requires_grad=True)
    assert sine(x.detach()).tolist() == pytest.approx([0.0, 0.8414709848])
    with pytest.raises(RuntimeError, match="no autograd formula"):
        sine(x).sum().backward()

    @sine.register_fake
    def _(x, scale=1.0):
        return lamina.empty_like(x)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.scale = inputs[1]

    sine.register_autograd(
        lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.scale, None), setup_context=setup
    )
    sine(x, 2.0).sum().backward()
    assert x.grad.tolist() == pytest.approx([2.0, 1.0806046117])
    assert lamina.ops.testcustom.sine(lamina.ones(3, device="meta")).shape == (3,)
    assert opcheck(sine, (x.detach(),)) == dict.fromkeys(library._UTILS, "SUCCESS")
    sine._lib._destroy()


def test_opcheck_catches_lying_schemas(lib):
    lib.define("writes(Tensor x) -> Tensor")
    lib.impl("writes", lambda x: x.add_(1) * 1, "CPU")
    with pytest.raises(library.OpCheckError, match="mutated"):
        opcheck(lamina.ops.testlib.writes.default, (lamina.ones(2),), test_utils="test_schema")
    lib.define("aliases(Tensor x) -> Tensor")
    lib.impl("aliases", lambda x: x[:1], "CPU")
    with pytest.raises(library.OpCheckError, match="aliasing"):
        opcheck(lamina.ops.testlib.aliases.default, (lamina.ones(2),), test_utils="test_schema")
    lib.define("honest(Tensor(a!) x) -> ()")
    lib.impl("honest", lambda x: (x.add_(1), None)[1], "CPU")
    x = lamina.ones(2)
    opcheck(lamina.ops.testlib.honest.default, (x,), test_utils="test_schema")
    lamina.ops.testlib.honest(x)
    assert x.tolist() == [2.0, 2.0]
    lib.define("shapes(Tensor x) -> Tensor")
    lib.impl("shapes", lambda x: x.repeat(2), "CPU")
    lib.impl("shapes", lambda x: lamina.empty_like(x), "Meta")
    with pytest.raises(library.OpCheckError, match="fake kernel"):
        opcheck(lamina.ops.testlib.shapes.default, (lamina.ones(2),), test_utils="test_faketensor")
    assert opcheck(lamina.ops.aten.add.Tensor, (lamina.ones(2), lamina.ones(2)))


def test_infer_schema():
    def f(
        x: lamina.Tensor, n: int = 3, *, flags: list[bool], y: lamina.Tensor | None = None
    ) -> tuple[lamina.Tensor, lamina.Tensor]: ...

    assert infer_schema(f, mutates_args={"x"}) == (
        "(Tensor(a!) x, SymInt n=3, *, bool[] flags, Tensor? y=None) -> (Tensor, Tensor)"
    )
    for bad in (lambda x: x, lambda *args: None):
        with pytest.raises(ValueError):
            infer_schema(bad, mutates_args=())


def test_functions_of_the_module():
    library.define("testlib2::twice", "(Tensor x) -> Tensor")

    @library.impl("testlib2::twice", "cpu")
    def _(x):
        return x * 2

    @library.register_fake("testlib2::twice")
    def _(x):
        return lamina.empty_like(x)

    library.register_autograd("testlib2::twice", lambda ctx, g: g * 2)
    x = lamina.ones(2, requires_grad=True)
    lamina.ops.testlib2.twice(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(ValueError):
        library.define("noname", "(Tensor x) -> Tensor")
    with pytest.raises(OSError):
        lamina.ops.load_library("x.so")


def test_fallback_serves_every_operator_at_a_key():
    seen = []

    def plain(op, *args, **kwargs):
        seen.append(op._full_name)
        return op(*[a.resolve_neg() if isinstance(a, lamina.Tensor) else a for a in args], **kwargs)

    x = lamina._C._neg_view(lamina.tensor([1.0, 4.0]))
    every = Library("_", "IMPL", "Negative")
    every.fallback(plain)
    try:
        assert (x + 1).tolist() == [0.0, -3.0]
        assert x.abs().sqrt().tolist() == [1.0, 2.0]
        assert {"aten::add.Tensor", "aten::abs"} & set(seen)
        with pytest.raises(RuntimeError, match="already"):
            every.fallback(plain)
    finally:
        every._destroy()
    count = len(seen)
    assert (x + 1).tolist() == [0.0, -3.0] and len(seen) == count
    with pytest.raises(RuntimeError, match="'_'"):
        Library("testlib3", "FRAGMENT").fallback(plain, "CPU")
    with pytest.raises(TypeError):
        Library("_", "IMPL").fallback(1, "CPU")
    with Library("_", "IMPL") as through:
        through.fallback(library.fallthrough_kernel, "TESTING_ONLY_GenericMode")


def test_rules_of_one_operator_for_one_class():
    from lamina.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Held(lamina.Tensor):
        @staticmethod
        def __torch_dispatch__(func, types, args=(), kwargs=None):
            raise NotImplementedError(str(func))

    with Library("testlib4", "DEF") as lib:
        lib.define("half(Tensor x) -> Tensor")
        lib.impl("half", lambda x: x / 2, "CPU")
        op = lamina.ops.testlib4.half

        @library.register_torch_dispatch("testlib4::half", Mode, lib=lib)
        def _(mode, func, types, args, kwargs):
            assert isinstance(mode, Mode) and func is op.default
            return func(*args, **kwargs) + 100

        @library.register_torch_dispatch("testlib4::half", Held, lib=lib)
        def _(cls, func, types, args, kwargs):
            assert cls is Held and types == (Held,)
            return lamina.zeros(1)

        with Mode():
            assert op(lamina.ones(1)).item() == 100.5
            assert (lamina.ones(1) + 1).item() == 2
        assert op(lamina.ones(1)).item() == 0.5
        held = lamina.Tensor._make_subclass(Held, lamina.ones(1))
        assert op(held).item() == 0
        with pytest.raises(NotImplementedError):
            held + 1  # noqa: B018
        with pytest.raises(RuntimeError, match="already"):
            library.register_torch_dispatch("testlib4::half", Mode, lambda *a: None)
        with pytest.raises(ValueError):
            library.register_torch_dispatch("testlib4::half", 1, lambda *a: None)
    assert not lamina._C._torch_dispatch_rules


def test_overloads_are_found_again_and_numbers_come_last():
    add = lamina.ops.aten.add
    assert add.overloads()[0] == "Tensor"
    # A tensor of one element would fit a number, whose sum has another size.
    assert add(lamina.ones(1), lamina.ones(1, 1)).shape == (1, 1)
    assert add.Tensor is add.Tensor
    before = lamina._C._dispatch_operator_generation()
    with lamina.library._scoped_library("lamina_test_again", "DEF") as library:
        library.define("again(Tensor x) -> Tensor")
        assert lamina._C._dispatch_operator_generation() > before
        assert lamina.ops.lamina_test_again.again.overloads() == ["default"]
    for wrong in ("aten::ad", "aten::add.", "aten::add.Tenso", "aten::add.Tensors", ""):
        assert not lamina._C._dispatch_has_kernel_for_dispatch_key(wrong)
