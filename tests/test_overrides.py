"""__torch_function__ and __torch_dispatch__: subclasses, foreign objects, modes."""

import copy

import pytest
from lamina.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    get_overridable_functions,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    resolve_name,
    wrap_torch_function,
)
from lamina.utils._python_dispatch import TorchDispatchMode

import lamina


class Plain(lamina.Tensor):
    pass


class Logged(lamina.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs)


@pytest.fixture
def logged():
    Logged.calls.clear()
    return lamina.tensor([1.0, 2.0, 3.0]).as_subclass(Logged)


def test_results_of_a_subclass_are_of_the_subclass():
    x = lamina.arange(6.0).reshape(2, 3).as_subclass(Plain)
    for result in (
        x + 1, 1 - x, x @ x.t(), -x, x[0], x[x > 1], x.T, x.sum(), lamina.add(x, x), lamina.cat([x, x]),
        lamina.nn.functional.relu(x), x.max(0).values, x.to(lamina.float64), x.data, 2**x, x == x,
    ):  # fmt: skip
        assert type(result) is Plain
    assert all(type(part) is Plain for part in x.split(1))
    assert type(x.max(0)).__name__ == "max"
    assert type(x.shape) is lamina.Size
    assert type(x.sum().item()) is float
    y = x.clone()
    y += 1
    assert type(y) is Plain
    assert type(x.as_subclass(lamina.Tensor)) is lamina.Tensor


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: x + 1, lamina.Tensor.add),
        (lambda x: 1 + x, lamina.Tensor.add),
        (lambda x: 1 - x, lamina.Tensor.__rsub__),
        (lambda x: lamina.ones(3) * x, lamina.Tensor.mul),
        (lambda x: x / 2, lamina.Tensor.div),
        (lambda x: lamina.add(x, 1), lamina.add),
        (lambda x: lamina.cat([lamina.ones(1), x]), lamina.cat),
        (lambda x: lamina.nn.functional.linear(x, lamina.ones(2, 3)), lamina.nn.functional.linear),
        (lambda x: x[0], lamina.Tensor.__getitem__),
        (lambda x: x.__setitem__(0, 5.0), lamina.Tensor.__setitem__),
        (
            lambda x: lamina.ones(3).__setitem__(0, x.as_subclass(Logged)[0]),
            lamina.Tensor.__getitem__,
        ),
        (lambda x: x.shape, lamina.Tensor.shape.__get__),
        (lambda x: x.requires_grad, lamina.Tensor.requires_grad.__get__),
        (lambda x: setattr(x, "requires_grad", False), lamina.Tensor.requires_grad.__set__),
        (lambda x: x.dim(), lamina.Tensor.dim),
        (lambda x: x.size(0), lamina.Tensor.size),
        (lambda x: x.tolist(), lamina.Tensor.tolist),
        (lambda x: len(x), lamina.Tensor.__len__),
        (lambda x: 1.0 in x, lamina.Tensor.__contains__),
        (lambda x: repr(x), lamina.Tensor.__repr__),
        (lambda x: x.float(), lamina.Tensor.float),
        (lambda x: lamina.numel(x), lamina.numel),
        (lambda x: lamina.is_floating_point(x), lamina.is_floating_point),
        (lambda x: lamina.result_type(x, 1), lamina.result_type),
        (lambda x: lamina.meshgrid(x, x, indexing="ij"), lamina.meshgrid),
        (lambda x: lamina.softmax(x, 0), lamina.softmax),
    ],
)
def test_the_function_that_a_handler_sees(logged, call, expected):
    call(logged)
    assert Logged.calls[0] == expected


def test_numbers_of_a_subclass(logged):
    one = logged[0]
    Logged.calls.clear()
    assert (bool(one), int(one), float(one)) == (True, 1, 1.0)
    assert Logged.calls == [
        lamina.Tensor.__bool__, lamina.Tensor.__int__, lamina.Tensor.__float__
    ]  # fmt: skip


class Foreign:
    """No tensor, but it answers for itself."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (lamina.sum, lamina.Tensor.sub):
            return NotImplemented
        return func, types, args, kwargs


def test_foreign_objects_take_calls_over():
    f, x = Foreign(), lamina.ones(2)
    assert lamina.add(x, f) == (lamina.add, (Foreign,), (x, f), None)
    assert lamina.add(f, x, alpha=2) == (lamina.add, (Foreign,), (f, x), {"alpha": 2})
    assert lamina.cat([x, f])[0] is lamina.cat
    assert (x * f)[0] == lamina.Tensor.mul
    assert (x @ f)[0] == lamina.Tensor.matmul
    assert (x < f)[0] == lamina.Tensor.lt
    assert lamina.nn.functional.linear(f, x)[0] is lamina.nn.functional.linear
    assert lamina.meshgrid(f, f)[0] is lamina.meshgrid
    with pytest.raises(TypeError, match="no implementation found for 'sum'.*Foreign"):
        lamina.sum(f)
    with pytest.raises(TypeError, match="unsupported operand"):
        x - f
    with pytest.raises(TypeError):
        lamina.add(x, object())
    with pytest.raises(ZeroDivisionError):

        class Raises:
            def __torch_function__(self, *_):
                raise ZeroDivisionError

        lamina.exp(Raises())


def test_subclasses_are_asked_before_their_bases():
    order = []

    class Base(lamina.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    class Other(Base):
        pass

    make = lamina.ones(1).as_subclass
    with pytest.raises(TypeError, match="no implementation"):
        lamina.stack([make(Base), make(Other), make(Derived), make(Base)])
    assert sorted(order[:2]) == ["Derived", "Other"]
    assert order[2:] == ["Base"]


def test_switches():
    x = lamina.ones(2).as_subclass(Plain)
    with lamina.DisableTorchFunctionSubclass():
        assert type(x + 1) is lamina.Tensor
        assert not has_torch_function((x,))
    assert has_torch_function((1, x))
    assert type(x + 1) is Plain

    class Off(lamina.Tensor):
        __torch_function__ = lamina._C._disabled_torch_function_impl

    off = lamina.ones(2).as_subclass(Off)
    assert type(off + 1) is lamina.Tensor
    assert type(off + x) is Plain
    assert not has_torch_function((off,))


class Recording(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def test_modes_see_every_call():
    x = lamina.ones(3)
    with Recording() as mode:
        y = x + x
        y[0] = lamina.zeros(())
        y.sum().item()
        lamina.tensor([1.0])
        x.shape  # noqa: B018
        lamina.is_floating_point(x)
        lamina.nn.functional.softmax(x, 0)
    x.exp()
    assert mode.names == [
        "add", "zeros", "__setitem__", "sum", "item", "tensor", "__get__", "is_floating_point", "softmax"
    ]  # fmt: skip


def test_modes_nest_and_may_refuse():
    log = []

    class Named(TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer"), BaseTorchFunctionMode(), Named("inner"):
        lamina.ones(1)
    assert log == ["inner", "outer"]

    class Refusing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Refusing(), pytest.raises(TypeError, match="no implementation found"):
        lamina.ones(1)
    with pytest.raises(ZeroDivisionError), Named("x"):
        lamina.ones(1)
        1 / 0  # noqa: B018
    log.clear()
    lamina.ones(1)
    assert log == []


def test_functions_of_python_can_take_part():
    @wrap_torch_function(lambda a, b=None: (a, b))
    def mine(a, b=None):
        return "mine"

    assert mine(1) == "mine"
    assert mine(Foreign()) == (mine, (Foreign,), mine_args(mine), {})
    assert handle_torch_function(mine, (Foreign(),), 1, b=2)[2:] == ((1,), {"b": 2})
    assert is_tensor_like(Foreign()) and is_tensor_like(lamina.ones(1)) and not is_tensor_like(1)
    table = get_overridable_functions()
    assert lamina.add in table[lamina] and lamina.Tensor.add in table[lamina.Tensor]
    assert resolve_name(lamina.add) == "torch.add"
    assert resolve_name(lamina.Tensor.add) == "torch.Tensor.add"


def mine_args(_):
    class Any:
        def __eq__(self, other):
            return True

    return Any()


def test_copies_and_attributes_of_subclasses():
    x = lamina.ones(2).as_subclass(Plain)
    x.label = "mine"
    y = copy.deepcopy(x)
    assert type(y) is Plain and y.label == "mine"
    z = lamina.Tensor._make_subclass(Plain, lamina.ones(2), True)
    assert type(z) is Plain and z.requires_grad
    (z * 2).sum().backward()
    assert z.grad.tolist() == [2.0, 2.0]


# ---- __torch_dispatch__ -------------------------------------------------------------------------


class Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_dispatch_modes_see_operators_below_autograd():
    x = lamina.ones(2, 2, requires_grad=True)
    with Names() as mode:
        y = (lamina.matmul(x, x) * 2).sum()
        y.backward()
    assert mode.names[:3] == ["aten.mm.default", "aten.mul.Scalar", "aten.sum.default"]
    assert len(mode.names) > 5
    assert x.grad.tolist() == [[8.0, 8.0], [8.0, 8.0]]
    count = len(mode.names)
    x.exp()
    assert len(mode.names) == count


def test_dispatch_modes_get_arguments_as_written():
    seen = []

    class See(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), args, kwargs))
            return func(*args, **(kwargs or {}))

    x = lamina.ones(2)
    with See():
        lamina.add(x, x)
        lamina.add(x, x, alpha=2)
        lamina.cat([x, x], 0)
        x.add_(1)
    assert seen[0][1:] == ((x, x), {}) or seen[0][1][0] is x
    assert seen[0][2] == {} and seen[1][2] == {"alpha": 2}
    assert isinstance(seen[2][1][0], list) and len(seen[2][1]) == 1
    assert seen[3][0] == "aten.add_.Scalar"


class Wrapper(lamina.Tensor):
    """A tensor that holds another; what reaches the dispatcher is done on that one."""

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        self = lamina.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            dtype=inner.dtype,
            requires_grad=requires_grad,
        )
        self.inner = inner
        return self

    __torch_function__ = lamina._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from lamina.utils._pytree import tree_map

        def unwrap(t):
            return t.inner if isinstance(t, Wrapper) else t

        def wrap(t):
            return Wrapper(t) if type(t) is lamina.Tensor else t

        result = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
        return tree_map(wrap, result)


def test_wrapper_subclasses():
    a = Wrapper(lamina.tensor([1.0, 2.0]))
    b = a + lamina.tensor([10.0, 20.0])
    assert type(b) is Wrapper and b.inner.tolist() == [11.0, 22.0]
    assert type(b.shape) is lamina.Size and b.shape == (2,)
    assert [p.inner.item() for p in (a * 2).unbind()] == [2.0, 4.0]
    values, places = a.max(0)
    assert values.inner.item() == 2.0 and places.inner.item() == 1
    assert lamina.cat([a, a]).inner.tolist() == [1.0, 2.0, 1.0, 2.0]


def test_wrapper_subclasses_have_gradients():
    a = Wrapper(lamina.tensor([1.0, 2.0]), requires_grad=True)
    loss = (a * a).sum()
    assert loss.grad_fn is not None
    loss.backward()
    assert type(a.grad) is Wrapper
    assert a.grad.inner.tolist() == [2.0, 4.0]


def test_wrapper_without_answer_and_without_memory():
    class Mute(lamina.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    m = lamina.Tensor._make_wrapper_subclass(Mute, (2,))
    with pytest.raises(TypeError, match="no implementation found for 'aten::exp'"):
        m.exp()
    with pytest.raises(RuntimeError):
        lamina.Tensor._make_wrapper_subclass(Plain, (2,))

    class Raises(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"), Raises():
        lamina.ones(2).exp()
    assert lamina.ones(1).exp() is not None
