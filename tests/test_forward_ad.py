"""Forward mode as users see it: levels, dual tensors, views, writes in place, custom functions."""

import gc
import threading
import weakref

import lamina.autograd.forward_ad as fw
import pytest

import lamina

F64 = lamina.float64


def t(*values):
    return lamina.tensor(values, dtype=F64)


def tangent(x):
    return fw.unpack_dual(x).tangent


def test_dual_and_its_parts():
    x, d = t(1.0, 2.0), t(0.5, -1.0)
    with fw.dual_level() as level:
        assert level == 0 and fw._current_level == 0
        dual = fw.make_dual(x, d)
        primal, back = fw.unpack_dual(dual)
        assert back is d and primal.data_ptr() == x.data_ptr()
        assert tangent(primal) is None and tangent(x) is None
        assert tangent(dual * dual).tolist() == [1.0, -4.0]
        assert "tangent=tensor([ 0.5000, -1.0000]" in repr(dual)
    assert fw.unpack_dual(dual).tangent is None
    assert fw._current_level == -1


def test_errors():
    x = t(1.0, 2.0)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, x)
    with pytest.raises(RuntimeError, match="Dual level must be"):
        fw.exit_dual_level()
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, t(1.0))
        with pytest.raises(RuntimeError, match="real tangent"):
            fw.make_dual(x, lamina.zeros(2, dtype=lamina.complex128))
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            fw.make_dual(lamina.tensor([1, 2]), x)
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex"):
            fw.make_dual(x, lamina.tensor([1, 2]))
        with pytest.raises(TypeError):
            fw.make_dual(3, x)
        dual = fw.make_dual(x, x)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level"):
            fw.make_dual(dual, x)
        with pytest.raises(RuntimeError, match="itself has a forward gradient"):
            fw.make_dual(x, dual)
        with pytest.raises(NotImplementedError, match="out= function"):
            lamina.mul(dual, 2, out=lamina.empty(2, dtype=F64))
        with pytest.raises(RuntimeError, match="not the last one"):
            fw.exit_dual_level(level=3)
        for level in (1, -1, 64, 10**30):
            with pytest.raises((RuntimeError, OverflowError)):
                lamina._C._unpack_dual(dual, level)
    entered = [fw.enter_dual_level() for _ in range(64)]
    with pytest.raises(RuntimeError, match="too many nested levels"):
        fw.enter_dual_level()
    for level in reversed(entered):
        fw.exit_dual_level(level=level)


def test_level_is_left_on_error_and_as_decorator():
    with pytest.raises(ZeroDivisionError):
        with fw.dual_level():
            raise ZeroDivisionError
    assert fw._current_level == -1

    @fw.dual_level()
    def slope(x):
        return tangent(fw.make_dual(x, lamina.ones_like(x)).sin())

    assert lamina.allclose(slope(t(0.3)), t(0.3).cos())
    assert fw._current_level == -1


def test_tangents_die_with_their_level():
    x = t(1.0, 2.0)
    with fw.dual_level():
        d = t(1.0, 1.0)
        alive = weakref.ref(d)
        kept = fw.make_dual(x, d).exp()
        dual = fw.make_dual(x, d)
        del d
        gc.collect()
        assert alive() is not None
    gc.collect()
    assert alive() is None
    with fw.dual_level():
        assert tangent(kept) is None and tangent(dual) is None


def test_recorded_tangents_leave_no_cycle():
    for _ in range(3):
        w = t(1.0, 2.0).requires_grad_()
        with fw.dual_level():
            y = fw.make_dual(w, t(1.0, 1.0)).exp()
            grown = tangent(y) * tangent(y)
            alive = weakref.ref(grown)
            del grown
        del y
        gc.collect()
        assert alive() is None


def test_levels_nest():
    x = t(2.0)
    with fw.dual_level() as outer:
        a = fw.make_dual(x, t(1.0))
        with fw.dual_level() as inner:
            assert (outer, inner) == (0, 1)
            b = fw.make_dual(a, t(1.0))
            y = b**3
            primal, first = fw.unpack_dual(y)
            assert first.item() == 12.0
            assert tangent(first) is None
            assert fw.unpack_dual(first, level=outer).tangent.item() == 12.0
            assert fw.unpack_dual(primal, level=outer).tangent.item() == 12.0
            with fw.dual_level():
                c = fw.make_dual(b, t(1.0))
                third = tangent(c**4)
                third = fw.unpack_dual(fw.unpack_dual(third, level=1).tangent, level=0).tangent
                assert third.item() == 4 * 3 * 2 * 2.0
        assert tangent(y).item() == 12.0


def test_perturbations_are_not_confused():
    """d/dx (x * d/dy (x + y)) is 1 wherever y is."""
    x = t(3.0)
    with fw.dual_level():
        a = fw.make_dual(x, t(1.0))
        with fw.dual_level():
            b = fw.make_dual(t(5.0), t(1.0))
            inner = tangent(a + b)
        assert tangent(a * inner).item() == 1.0


def test_every_nesting_with_reverse_mode():
    x = t(0.7, -0.3)
    want = -x.sin()
    leaf = x.clone().requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(leaf, lamina.ones_like(x))
        (g,) = lamina.autograd.grad(dual.sin().sum(), dual)
        assert lamina.allclose(tangent(g), want)
        (g,) = lamina.autograd.grad(dual.sin().sum(), leaf)
        assert lamina.allclose(tangent(g), want)
        rf = tangent(dual.sin())
    (g,) = lamina.autograd.grad(rf.sum(), leaf)
    assert lamina.allclose(g, want)


def test_grad_attribute_keeps_the_tangent():
    leaf = t(0.7, -0.3).requires_grad_()
    with fw.dual_level():
        dual = fw.make_dual(leaf, t(1.0, 1.0))
        dual.sin().sum().backward()
        assert lamina.allclose(tangent(leaf.grad), -leaf.detach().sin())
        dual.sin().sum().backward()
        assert lamina.allclose(tangent(leaf.grad), -2 * leaf.detach().sin())


def test_modes():
    with fw.dual_level():
        dual = fw.make_dual(t(1.0), t(1.0))
        with lamina.no_grad():
            assert tangent(dual * 2).item() == 2.0
        with lamina.inference_mode():
            assert tangent(dual * 2) is None
        with fw._set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled()
            assert tangent(dual * 2) is None
            with fw.dual_level():
                assert tangent(fw.make_dual(t(1.0), t(1.0)) * 2) is None
        assert fw._is_fwd_grad_enabled()
        assert tangent(dual * 2).item() == 2.0
        assert tangent(dual.detach()) is None
        assert tangent(dual > 0) is None
        assert tangent(dual.long()) is None
        assert tangent(dual.float()).dtype == lamina.float32
        assert fw.make_dual(t(1.0), lamina.tensor([1.0])).dtype == F64


def test_views_share_the_tangent_of_their_base():
    with fw.dual_level():
        x = fw.make_dual(t(1.0, 2.0, 3.0, 4.0), t(1.0, 1.0, 1.0, 1.0)) * 1
        m = x.view(2, 2)
        row, column = m[0], m.t()[1]
        row.mul_(3)
        assert tangent(x).tolist() == [3.0, 3.0, 1.0, 1.0]
        assert tangent(m).tolist() == [[3.0, 3.0], [1.0, 1.0]]
        assert tangent(column).tolist() == [3.0, 1.0]
        x.zero_()
        assert tangent(m).tolist() == [[0.0, 0.0], [0.0, 0.0]]
        column.copy_(fw.make_dual(t(7.0, 8.0), t(5.0, 6.0)))
        assert tangent(x).tolist() == [0.0, 5.0, 0.0, 6.0]


def test_a_dual_written_into_a_tensor_without_tangent():
    z = lamina.zeros(2, 3, dtype=F64)
    before = z.view(6)
    with fw.dual_level():
        d = fw.make_dual(t(1.0, 2.0, 3.0), t(4.0, 5.0, 6.0))
        z[1] = d
        assert tangent(z).tolist() == [[0.0, 0.0, 0.0], [4.0, 5.0, 6.0]]
        assert tangent(before).tolist() == [0.0, 0.0, 0.0, 4.0, 5.0, 6.0]
        before[0] = d[2]
        assert tangent(z)[0, 0].item() == 6.0
        z[1] = 0.0
        assert tangent(z).tolist() == [[6.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert before.tolist() == [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_complex_views():
    with fw.dual_level():
        z = lamina.zeros(2, dtype=lamina.complex128)
        z.imag.copy_(fw.make_dual(t(1.0, 2.0), t(3.0, 4.0)))
        assert tangent(z).tolist() == [3j, 4j]
        assert tangent(z.conj()).resolve_conj().tolist() == [-3j, -4j]
        z.conj().mul_(2j)
        assert tangent(z).resolve_conj().tolist() == [(-2j * 1j * 3), (-2j * 1j * 4)]


def test_writes_to_a_dual_stay_with_it():
    x, d = t(1.0, 2.0), t(1.0, 1.0)
    with fw.dual_level():
        dual = fw.make_dual(x, d)
        dual.mul_(2)
        assert x.tolist() == [2.0, 4.0] and d.tolist() == [1.0, 1.0]
        assert tangent(dual).tolist() == [2.0, 2.0] and tangent(x) is None
        dual[0].mul_(5)
        assert tangent(dual).tolist() == [10.0, 2.0] and d.tolist() == [1.0, 1.0]


def test_results_do_not_share_tangents():
    with fw.dual_level():
        x = fw.make_dual(t(1.0, 2.0), t(1.0, 1.0)) * 1
        y = x + 1
        x[0] = 0.0
        assert tangent(x).tolist() == [0.0, 1.0]
        assert tangent(y).tolist() == [1.0, 1.0]


def test_in_place_with_itself_and_in_place_views():
    with fw.dual_level():
        x = fw.make_dual(t(2.0, 3.0), t(1.0, 1.0)) * 1
        x.mul_(x)
        assert tangent(x).tolist() == [4.0, 6.0]
        m = fw.make_dual(lamina.ones(2, 3, dtype=F64), lamina.arange(6, dtype=F64).view(2, 3)) * 1
        m.t_()
        assert tangent(m).tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
        m.unsqueeze_(0)
        assert tangent(m).shape == (1, 3, 2)
        x.ge_(3.0)
        assert tangent(x) is None or not tangent(x).any()


def test_reverse_through_tangents_written_in_place():
    w = t(2.0, 3.0).requires_grad_()
    with fw.dual_level():
        x = fw.make_dual(w, t(1.0, 1.0)) * 1
        v = x[0]
        v.mul_(v.detach() * 0 + 4)
        x.mul_(w)
        s = tangent(x).sum()
    # x = (4 w0^2, w1^2); its tangent, w itself fixed, is (4 w0, w1)
    (g,) = lamina.autograd.grad(s, w)
    assert g.tolist() == [4.0, 1.0]


def test_reshape_expand_and_strange_layouts():
    base = lamina.arange(12, dtype=F64).view(3, 4)
    with fw.dual_level():
        x = fw.make_dual(base[:, ::2], lamina.ones(3, 2, dtype=F64))
        assert tangent(x.reshape(-1)).tolist() == [1.0] * 6
        assert tangent(x.t()).shape == (2, 3)
        e = fw.make_dual(t(1.0).expand(3), t(1.0, 2.0, 3.0))
        assert tangent(e.view(3, 1) * 2).flatten().tolist() == [2.0, 4.0, 6.0]
        y = fw.make_dual(t(1.0, 2.0, 3.0), t(1.0).expand(3)) * 1
        assert tangent(y.view(3, 1)).flatten().tolist() == [1.0] * 3
        y.view(3, 1)[0] = 5.0
        assert tangent(y).tolist() == [0.0, 1.0, 1.0]
        s = lamina.as_strided(x, (2, 2), (4, 1), 1)
        assert tangent(s).tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_threads_have_levels_of_their_own():
    x = t(1.0)
    seen = []
    with fw.dual_level():
        dual = fw.make_dual(x, t(1.0))

        def work():
            seen.append(fw._current_level)
            with fw.dual_level():
                seen.append(tangent(dual * 2))
                seen.append(tangent(fw.make_dual(dual, t(3.0)) * 2).item())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tangent(dual * 2).item() == 2.0
    assert sorted(map(str, seen)) == sorted(["-1", "None", "6.0"] * 4)


class Cube(lamina.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.scale = scale
        return x**3 * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g * ctx.scale, None

    @staticmethod
    def jvp(ctx, x_t, scale_t):
        assert scale_t is None
        (x,) = ctx.saved_tensors
        return 3 * x * x * x_t * ctx.scale


def test_custom_function():
    x = t(2.0).requires_grad_()
    with fw.dual_level():
        a = fw.make_dual(x, t(1.0))
        y = Cube.apply(a, 2.0)
        assert tangent(y).item() == 24.0
        (g,) = lamina.autograd.grad(tangent(y), x, retain_graph=True)
        assert g.item() == 24.0
        (g,) = lamina.autograd.grad(y, a)
        assert tangent(g).item() == 24.0
        with fw.dual_level():
            b = fw.make_dual(a, t(1.0))
            first = tangent(Cube.apply(b, 2.0))
            assert fw.unpack_dual(first, level=0).tangent.item() == 24.0
    assert lamina.autograd.gradcheck(lambda x: Cube.apply(x, 2.0), (x,), check_forward_ad=True)
    assert lamina.autograd.gradgradcheck(
        lambda x: Cube.apply(x, 2.0), (x,), check_fwd_over_rev=True
    )


def test_custom_function_without_jvp_and_with_wrong_ones():
    class Plain(lamina.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Two(Plain):
        @staticmethod
        def jvp(ctx, x_t):
            return x_t, x_t

    class Short(Plain):
        @staticmethod
        def jvp(ctx, x_t):
            return x_t.sum()

    class Number(Plain):
        @staticmethod
        def jvp(ctx, x_t):
            return 3.0

    with fw.dual_level():
        dual = fw.make_dual(t(1.0, 2.0), t(1.0, 1.0))
        with pytest.raises(NotImplementedError, match="jvp"):
            Plain.apply(dual)
        with pytest.raises(RuntimeError, match="one tangent is expected"):
            Two.apply(dual)
        with pytest.raises(RuntimeError, match="has its sizes"):
            Short.apply(dual)
        with pytest.raises(TypeError, match="a Tensor or None"):
            Number.apply(dual)
        assert tangent(Plain.apply(t(1.0))) is None


def test_custom_function_in_place():
    class Double(lamina.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, x_t):
            return x_t * 2

    with fw.dual_level():
        x = fw.make_dual(t(1.0, 2.0), t(1.0, 3.0)) * 1
        y = Double.apply(x)
        assert y is x and tangent(x).tolist() == [2.0, 6.0]
