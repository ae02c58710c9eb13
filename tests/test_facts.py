"""Facts about one product through every floor."""

import pytest

import lamina


@pytest.fixture
def operands():
    a = lamina.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True)
    b = lamina.tensor([[7.0, 8], [9, 10], [11, 12]], requires_grad=True)
    return a, b


def test_product_and_its_gradients(operands):
    a, b = operands
    c = a @ b
    assert c.tolist() == [[58, 64], [139, 154]]
    assert c.grad_fn.name() == "MmBackward0"
    c.sum().backward()
    assert a.grad.tolist() == [[15, 19, 23]] * 2
    assert b.grad.tolist() == [[5, 5], [7, 7], [9, 9]]


def test_mean_gives_a_quarter(operands):
    a, b = operands
    (a @ b).mean().backward()
    assert a.grad.tolist() == [[15 / 4, 19 / 4, 23 / 4]] * 2
    assert b.grad.tolist() == [[5 / 4] * 2, [7 / 4] * 2, [9 / 4] * 2]


def test_nothing_is_recorded_under_no_grad(operands):
    a, b = operands
    with lamina.no_grad():
        c = a @ b
    assert c.grad_fn is None
    assert not c.requires_grad


def test_two_vectors_call_dot():
    v = lamina.tensor([1.0, 2, 3], requires_grad=True)
    assert (v @ v).grad_fn.name() == "DotBackward0"


def test_dispatch_tables():
    matmul = lamina._C._dispatch_dump_table("aten::matmul")
    lines = dict(line.split(": ", 1) for line in matmul.splitlines())
    assert lines["CPU"].endswith("[math kernel]")
    assert lines["AutogradCPU"].endswith("[math kernel]")
    mm = lamina._C._dispatch_dump_table("aten::mm")
    lines = dict(line.split(": ", 1) for line in mm.splitlines())
    assert lines["CPU"].endswith("[kernel]")
    assert lines["AutogradCPU"].endswith("[autograd kernel]")
    assert "aten::add.Tensor" in lamina._C._dispatch_get_all_op_names()


def test_views_share_bytes_and_know_their_strides():
    x = lamina.arange(6.0)
    v = x.view(2, 3)
    assert v.data_ptr() == x.data_ptr()
    assert v.stride() == (3, 1)
    assert v.t().stride() == (1, 3)
    with pytest.raises(
        RuntimeError, match="view size is not compatible with input tensor's size and stride"
    ):
        v.t().view(-1)
    assert v.t().reshape(-1).tolist() == [0, 3, 1, 4, 2, 5]


def test_float32_absorbs_one():
    assert ((lamina.tensor(1e8) + 1) - 1e8).item() == 0.0


def test_wrong_inner_dimension_is_named():
    with pytest.raises(RuntimeError) as e:
        lamina.ones(2, 3) @ lamina.ones(4, 5)
    text = str(e.value)
    for part in ("matmul", "[2, 3]", "[4, 5]", "3", "4"):
        assert part in text


def test_missing_kernel_names_operator_and_backends():
    with pytest.raises(NotImplementedError) as e:
        lamina.ones(3, device="meta").nonzero()
    text = str(e.value)
    assert "aten::nonzero" in text and "Meta" in text and "CPU" in text


def test_meta_runs_the_shape_rule_only():
    a, b = lamina.empty(100000, 50000, device="meta"), lamina.empty(50000, 70000, device="meta")
    c = a @ b
    assert c.shape == (100000, 70000) and c.device.type == "meta"
    assert (a + 1).sum(0).shape == (50000,)
