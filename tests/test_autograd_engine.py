"""Views and writes in place, modes, anomaly mode, and the engine: depth, threads, edges, errors."""

import asyncio
import os
import signal
import threading
import time
import warnings

import pytest
from lamina.autograd.graph import Node, get_gradient_edge

import lamina


def leaf(*values, **kwargs):
    return lamina.tensor(values, requires_grad=True, **kwargs)


# ---- views and writes in place ------------------------------------------------------------------


def test_names_of_histories():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    assert y.grad_fn.name() == "MulBackward0" and isinstance(y.grad_fn, Node)
    y.add_(1)
    assert y.grad_fn.name() == "AddBackward0"
    y[0] = 9
    assert y.grad_fn.name() == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 2.0]


def test_siblings_and_views_of_views_follow_a_write():
    x = leaf(*range(6), dtype=lamina.float64)
    y = (x * 2).view(2, 3)
    row, column = y[0], y[:, 1]
    inner = row[1:]
    inner.mul_(10)
    assert column.grad_fn.name() == "AsStridedBackward0"
    assert column.grad_fn.next_functions[0][0].name() == "CopySlices"
    (column * lamina.tensor([1.0, 3.0], dtype=lamina.float64)).sum().backward()
    assert x.grad.tolist() == [0.0, 20.0, 0.0, 0.0, 6.0, 0.0]


def test_a_write_gives_the_base_a_history():
    w = leaf(2.0, 3.0)
    base = lamina.zeros(4)
    view = base[1:3]
    view.add_(w)
    assert base.requires_grad and base.grad_fn.name() == "CopySlices" and view.requires_grad
    base.sum().backward()
    assert w.grad.tolist() == [1.0, 1.0]


def test_views_of_other_types_and_lazy_marks():
    w = leaf(1.0, 2.0)
    c = lamina.ones(2, dtype=lamina.complex64)
    real = lamina.view_as_real(c)
    real[:, 1].mul_(w)
    assert c.grad_fn.name() == "CopySlices"
    (c.imag * 3).sum().backward(retain_graph=True)
    assert w.grad.tolist() == [0.0, 0.0]
    real[:, 0].copy_(w)
    (c.conj().real * 3).sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_detach_shares_versions_and_data_does_not():
    x = lamina.ones(2)
    x.detach().add_(1)
    assert x._version == 1 and x.tolist() == [2.0, 2.0]
    x.data.add_(1)
    assert x._version == 1 and x.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda x: x.mul_(2), "a leaf Variable that requires grad"),
        (lambda x: x[:1].mul_(2), "a view of a leaf Variable"),
        (lambda x: (x * 1).expand(3, 2).mul_(2), "single memory location"),
        (lambda x: (x * 1).detach_().unsqueeze(0).detach_(), "views in-place"),
    ],
)
def test_refused_writes_say_why(write, words):
    with pytest.raises(RuntimeError, match=words):
        write(leaf(1.0, 2.0))


def test_views_made_without_recording():
    x = leaf(1.0, 2.0)
    y = x * 1
    with lamina.no_grad():
        view = y[:1]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(2)
    with lamina.no_grad():
        view.mul_(2)
    with lamina.inference_mode():
        view = y[:1]
        fresh = lamina.ones(2)
        assert not view.is_inference() and fresh.is_inference()
    with pytest.raises(RuntimeError, match="created in inference mode"):
        view.mul_(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        fresh.mul_(2)
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        fresh * x


def test_in_place_view_operators():
    x = lamina.arange(6.0).reshape(2, 3).requires_grad_()
    y = x * 1
    part = y[:, 1:]
    part.t_()
    part.mul_(2)
    y.t_()
    assert y.shape == (3, 2)
    (y * lamina.arange(6.0).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 4.0, 8.0], [1.0, 6.0, 10.0]]


def test_a_written_saved_tensor_is_refused_with_its_story():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError) as error:
        y.sum().backward()
    text = str(error.value)
    for words in ("float32[2]", "ExpBackward0", "version 1", "expected version 0"):
        assert words in text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lamina.autograd.detect_anomaly(check_nan=False):
            y = x.exp()
            y.mul_(3)  # the line that is named
            with pytest.raises(RuntimeError, match="the line that is named"):
                y.sum().backward()


def test_an_operand_that_is_the_target():
    x = leaf(3.0)
    y = x * 1
    y.mul_(y)
    y.backward(lamina.ones(1))
    assert x.grad.item() == 6.0


def test_overwritten_values_get_no_gradient():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.bernoulli_(0.5) if hasattr(y, "bernoulli_") else y.zero_()
    y.sum().backward()
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0]


# ---- the engine ---------------------------------------------------------------------------------


def test_a_million_nodes_are_built_run_and_freed():
    x, one = leaf(1.0), lamina.ones(1)
    y = x
    for _ in range(1_000_000):
        y = y * one
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_selected_inputs():
    a, b = leaf(1.0), leaf(2.0)
    product = a * b
    (product * 3).backward(inputs=[b])
    assert a.grad is None and b.grad.item() == 3.0
    middle = a * b
    (g,) = lamina.autograd.grad(middle * 3, middle)
    assert g.item() == 3.0
    with pytest.raises(RuntimeError, match="index 1"):
        lamina.autograd.grad((a * 2).sum(), [a, b])
    zero = lamina.autograd.grad((a * 2).sum(), [a, b], materialize_grads=True)[1]
    assert zero.tolist() == [0.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        lamina.autograd.grad(a * 2, [])


def test_batches_of_gradients():
    x = leaf(1.0, 2.0, 3.0)
    (jacobian,) = lamina.autograd.grad(x**2, x, lamina.eye(3), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0, 0], [0, 4.0, 0], [0, 0, 6.0]]
    with pytest.raises(RuntimeError, match="first dimension"):
        lamina.autograd.grad(x**2, x, lamina.ones(3), is_grads_batched=True)


def test_edges_stand_for_tensors():
    x = leaf(1.0, 2.0)
    y = x**2
    edge = get_gradient_edge(y)
    loss = (y * 3).sum()
    del y
    assert lamina.autograd.grad(loss, edge, retain_graph=True)[0].tolist() == [3.0, 3.0]
    assert lamina.autograd.grad(get_gradient_edge(loss), x)[0].tolist() == [6.0, 12.0]


def test_what_a_pass_records_serves_other_passes():
    # The first pass wants the gradient of x alone; what it records must serve w too.
    x, w = leaf(2.0), leaf(3.0)
    (g,) = lamina.autograd.grad((x * w * w).sum(), x, create_graph=True)
    (gw,) = lamina.autograd.grad(g.sum(), w)
    assert gw.item() == 6.0


def test_gradients_that_meet_are_summed_without_touching_what_others_hold():
    x = leaf(1.0)
    y = x * 1
    a, b = y * 2, y * 3
    a.retain_grad()
    y.retain_grad()
    (a + b + y).backward(lamina.ones(1))
    assert y.grad.item() == 6.0 and a.grad.item() == 1.0 and x.grad.item() == 6.0


def test_several_threads_share_leaves_and_graphs():
    x = lamina.ones(64, requires_grad=True)
    shared = (x * 2).sum()
    errors = []

    def work():
        try:
            for _ in range(50):
                (x * 3).sum().backward()
                shared.backward(retain_graph=True)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    assert x.grad.tolist() == [4 * 50 * 5.0] * 64


def test_a_forked_child_runs_backward():
    x = lamina.ones(256, 256, requires_grad=True)
    loss = (x @ x).sum()
    loss.backward(retain_graph=True)
    child = os.fork()
    if child == 0:
        x.grad = None
        loss.backward()
        os._exit(0 if x.grad[0, 0].item() == 512.0 else 1)
    deadline = time.monotonic() + 60
    done = 0
    while not done and time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done and status == 0


def test_accumulated_gradients_take_the_leafs_layout():
    x = lamina.ones(2, 3).t().requires_grad_()
    (x * lamina.ones(3, 2)).sum().backward()
    assert x.grad.stride() == x.stride()


# ---- modes --------------------------------------------------------------------------------------


def test_modes_decorate_functions_generators_and_coroutines():
    @lamina.no_grad()
    def function():
        return lamina.is_grad_enabled()

    @lamina.no_grad()
    def generator():
        yield lamina.is_grad_enabled()
        yield lamina.is_grad_enabled()

    @lamina.no_grad()
    async def coroutine():
        before = lamina.is_grad_enabled()
        await asyncio.sleep(0)
        return before, lamina.is_grad_enabled()

    @lamina.inference_mode()
    async def items():
        for _ in range(2):
            await asyncio.sleep(0)
            yield lamina.is_inference_mode_enabled()

    async def read():
        return [(inside, lamina.is_inference_mode_enabled()) async for inside in items()]

    assert function() is False
    steps = generator()
    assert next(steps) is False and lamina.is_grad_enabled() and next(steps) is False
    assert asyncio.run(coroutine()) == (False, False)
    assert asyncio.run(read()) == [(True, False), (True, False)]
    assert lamina.is_grad_enabled()


def test_anomaly_mode_names_the_forward_line_and_nan():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lamina.autograd.set_detect_anomaly(True):
            x = leaf(-1.0)
            y = x.sqrt()  # the line that makes it
            with pytest.raises(RuntimeError, match="SqrtBackward0' returned nan values in its 0th"):
                y.backward(lamina.ones(1))
    assert any("the line that makes it" in str(w.message) for w in caught)
    assert not lamina.is_anomaly_enabled()


# ---- looking at nodes ---------------------------------------------------------------------------


def test_nodes_show_what_they_keep():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    node = (x * w).grad_fn
    assert node is not None and node._saved_self.equal(x) and node._saved_other.equal(w)
    assert [n.name() for n, _ in node.next_functions] == ["AccumulateGrad", "AccumulateGrad"]
    assert node.next_functions[0][0].variable is x
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}
    z = x.sum(0)
    assert z.grad_fn is z.grad_fn
    later = x * 2
    assert later.grad_fn._sequence_nr() > node._sequence_nr()
    z.backward()
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        _ = y.grad_fn._saved_result
    with pytest.raises(AttributeError):
        _ = y.grad_fn._saved_nothing
