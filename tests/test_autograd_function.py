"""autograd.Function: custom operators with a backward of their own."""

import pytest
from lamina.autograd.function import once_differentiable

import lamina
from lamina.autograd import Function


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


class ScaledProduct(Function):
    @staticmethod
    def forward(a, b, k=3):
        return a * b * k, a + b

    @staticmethod
    def setup_context(ctx, inputs, output):
        a, b, ctx.k = inputs
        ctx.save_for_backward(a, b)

    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * ctx.k + h, g * a * ctx.k + h, None


def test_a_result_saved_can_be_differentiated_any_number_of_times():
    x = lamina.tensor([0.5, 1.0], dtype=lamina.float64, requires_grad=True)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "ExpBackward" and y.grad_fn.saved_tensors[0].equal(y)
    g = y
    for _ in range(3):
        (g,) = lamina.autograd.grad(g.sum(), x, create_graph=True)
        assert lamina.allclose(g, x.exp())
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_setup_context_defaults_and_several_results():
    a = lamina.tensor(2.0, requires_grad=True)
    b = lamina.tensor(3.0, requires_grad=True)
    product, total = ScaledProduct.apply(a, b)
    (product + total).backward()
    assert (a.grad.item(), b.grad.item()) == (10.0, 7.0)
    a.grad = b.grad = None
    product, _ = ScaledProduct.apply(a, b, 1)
    product.backward()
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


def test_gradients_that_do_not_arrive_come_as_zeros_or_none():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g, h))
            return h * 2, None

    x = lamina.ones(2, requires_grad=True)
    for materialize in (True, False):
        _, second = Two.apply(x, materialize)
        second.sum().backward()
    assert seen[0][0].tolist() == [0.0, 0.0] and seen[1][0] is None


def test_dirty_inputs_are_the_results():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = lamina.ones(4, requires_grad=True)
    y = x * 1
    version = y._version
    assert Double.apply(y) is y and y._version > version
    assert y.grad_fn.name() == "DoubleBackward"
    base = x * 1
    Double.apply(base[1:3])
    assert base.grad_fn.name() == "CopySlices"
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 2.0, 2.0, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        Double.apply(x)


def test_an_input_given_back_is_a_view_that_must_not_be_written():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = lamina.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and y._is_view() and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]
    with pytest.raises(RuntimeError, match="custom Function"):
        y.mul_(2)


def test_non_differentiable_results_and_what_is_no_tensor():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            order = lamina.arange(2).flip(0) if hasattr(lamina, "flip") else lamina.tensor([1, 0])
            ctx.mark_non_differentiable(order)
            return x * 2, order, "text", None

        @staticmethod
        def backward(ctx, g, *rest):
            assert rest[1:] == (None, None)
            return g * 2

    x = lamina.ones(2, requires_grad=True)
    value, order, text, nothing = Sort.apply(x)
    assert value.requires_grad and not order.requires_grad
    assert (text, nothing) == ("text", None)
    value.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_wrong_numbers_and_kinds_of_gradients():
    def function(gives):
        class Wrong(Function):
            @staticmethod
            def forward(ctx, x, k):
                return x * k

            @staticmethod
            def backward(ctx, g):
                return gives(g)

        return Wrong.apply(lamina.ones(2, requires_grad=True), 2.0).sum()

    with pytest.raises(RuntimeError, match="incorrect number of gradients"):
        function(lambda g: g).backward()
    with pytest.raises(RuntimeError, match="not a Variable"):
        function(lambda g: (g, g)).backward()
    with pytest.raises(RuntimeError, match="invalid gradient at index 0"):
        function(lambda g: (lamina.ones(3), None)).backward()
    with pytest.raises(TypeError, match="expected Variable or None"):
        function(lambda g: (1.5, None)).backward()
    # Superfluous Nones do no harm, a broadcast gradient is summed, another type converted.
    function(lambda g: (g, None, None, None)).backward()
    function(lambda g: (lamina.ones(4, 2, dtype=lamina.float64), None)).backward()


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = lamina.tensor(3.0, requires_grad=True)
    (g,) = lamina.autograd.grad(
        Once.apply(x), x, lamina.ones(()).requires_grad_(), create_graph=True
    )
    assert g.item() == 6.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_backward_that_runs_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with lamina.enable_grad():
                inner = x.detach().requires_grad_()
                (inner * inner).sum().backward()
            return g * inner.grad

    x = lamina.tensor([1.0, 2.0], requires_grad=True)
    Inner.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_needs_input_grad_and_no_grad():
    seen = []

    class Look(Function):
        @staticmethod
        def forward(ctx, a, b, k):
            seen.append(ctx.needs_input_grad)
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g, g, None

    Look.apply(lamina.ones(1, requires_grad=True), lamina.ones(1), 3)
    assert seen == [(True, False, False)]
    with lamina.no_grad():
        assert not Look.apply(lamina.ones(1, requires_grad=True), lamina.ones(1), 3).requires_grad
    with pytest.raises(RuntimeError, match="should not be instantiated"):
        Look()


def test_a_saved_input_written_since_is_refused():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = lamina.ones(2, requires_grad=True) * 1
    y = Square.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()
