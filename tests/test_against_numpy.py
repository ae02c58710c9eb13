"""Against NumPy, on random shapes, strides, indices and types."""

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, assume, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402

QUICK = settings(
    max_examples=120,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def array_of(shape, dtype="int64", seed=0):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        return (random.integers(-4, 5, shape) + 1j * random.integers(-4, 5, shape)).astype(dtype)
    return random.integers(0 if dtype in ("uint8", "bool") else -4, 5, shape).astype(dtype)


def tensor_of(array):
    return lamina.tensor(np.ascontiguousarray(array)).reshape(array.shape)


def same(tensor, array, exact=True):
    array = np.asarray(array)
    assert tuple(tensor.shape) == array.shape
    got = tensor.numpy() if tensor.dim() else np.asarray(tensor.item())
    if exact:
        np.testing.assert_array_equal(got, array)
    else:
        np.testing.assert_allclose(got, array, rtol=1e-5, atol=1e-6)


@st.composite
def views(draw, dtype="int64"):
    """A tensor and an array that are the same strided window of equal bytes."""
    shape = draw(SHAPES)
    array = array_of(shape, dtype, draw(st.integers(0, 9)))
    tensor = tensor_of(array)
    for _ in range(draw(st.integers(0, 3))):
        if not array.ndim:
            break
        kind = draw(st.sampled_from(["permute", "step", "cut", "select", "new", "expand"]))
        if kind == "permute":
            order = draw(st.permutations(range(array.ndim)))
            array, tensor = array.transpose(order), tensor.permute(*order)
        elif kind == "step":
            index = tuple(
                slice(draw(st.integers(0, 2)), None, draw(st.integers(1, 3))) for _ in array.shape
            )
            array, tensor = array[index], tensor[index]
        elif kind == "cut":
            dim = draw(st.integers(0, array.ndim - 1))
            start = draw(st.integers(0, array.shape[dim]))
            length = draw(st.integers(0, array.shape[dim] - start))
            index = (slice(None),) * dim + (slice(start, start + length),)
            array, tensor = array[index], tensor.narrow(dim, start, length)
        elif kind == "select" and array.shape[0]:
            i = draw(st.integers(-array.shape[0], array.shape[0] - 1))
            array, tensor = array[i], tensor.select(0, i)
            array = np.asarray(array)
        elif kind == "new":
            dim = draw(st.integers(0, array.ndim))
            array, tensor = np.expand_dims(array, dim), tensor.unsqueeze(dim)
        elif kind == "expand":
            array = np.broadcast_to(array, (2, *array.shape))
            tensor = tensor.expand(2, *tensor.shape)
    return tensor, array


@st.composite
def broadcastable(draw):
    """Two shapes that broadcast."""
    shape = draw(SHAPES)
    a = [n if draw(st.integers(0, 3)) else 1 for n in shape]
    b = [n if draw(st.integers(0, 3)) else 1 for n in shape]
    return tuple(a[draw(st.integers(0, len(a))) :]), tuple(b)


@QUICK
@given(views())
def test_views_and_strides(pair):
    tensor, array = pair
    same(tensor, array)
    if array.size:
        expected = tuple(s // array.itemsize for s in array.strides)
        wanted = [(n, s) for n, s in zip(array.shape, expected) if n > 1]
        assert [(n, s) for n, s in zip(tensor.shape, tensor.stride()) if n > 1] == wanted
    same(tensor.contiguous(), array)
    same(tensor.clone(), array)


@QUICK
@given(broadcastable(), st.sampled_from(["add", "mul", "sub", "maximum", "lt", "eq", "where"]))
def test_broadcasting(shapes, op):
    a, b = (array_of(s, seed=i) for i, s in enumerate(shapes))
    x, y = tensor_of(a), tensor_of(b)
    if op == "where":
        same(lamina.where(x > 0, x, y), np.where(a > 0, a, b))
        return
    names = {"mul": "multiply", "sub": "subtract", "lt": "less", "eq": "equal"}
    same(getattr(lamina, op)(x, y), getattr(np, names.get(op, op))(a, b))
    expected = np.broadcast_shapes(*shapes)
    same(x.expand(expected), np.broadcast_to(a, expected))


@QUICK
@given(SHAPES, SHAPES)
def test_shapes_that_do_not_broadcast_raise(a, b):
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(RuntimeError, match="size"):
            lamina.zeros(a) + lamina.zeros(b)
    else:
        assert (lamina.zeros(a) + lamina.zeros(b)).shape == expected


def index_item(size):
    ints = st.integers(-size, size - 1) if size else st.just(slice(None))
    bound = st.none() | st.integers(-size - 2, size + 2)
    slices = st.builds(slice, bound, bound, st.none() | st.integers(1, 3))
    return st.one_of(slices, slices, ints, st.none(), st.just(Ellipsis))


@st.composite
def indexed(draw):
    tensor, array = draw(views())
    index, dims, dots = [], 0, False
    for _ in range(draw(st.integers(0, array.ndim + 1))):
        item = draw(index_item(array.shape[dims] if dims < array.ndim else 0))
        if item is Ellipsis:
            if dots:
                continue
            dots = True
        elif item is not None:
            if dots or dims >= array.ndim:
                continue
            dims += 1
        index.append(item)
    return tensor, array, tuple(index)


@QUICK
@given(indexed())
def test_reading_by_index(case):
    tensor, array, index = case
    same(tensor[index], array[index])


@QUICK
@given(indexed(), st.integers(-9, 9))
def test_writing_by_index(case, value):
    tensor, array, index = case
    tensor, array = tensor.clone(), array.copy()
    tensor[index] = value
    array[index] = value
    same(tensor, array)
    part = array_of(array[index].shape, seed=3)
    tensor[index] = tensor_of(part)
    array[index] = part
    same(tensor, array)


@QUICK
@given(views(), st.data())
def test_reading_by_lists_and_masks(pair, data):
    tensor, array = pair
    assume(array.ndim and array.shape[0])
    n = array.shape[0]
    rows = data.draw(st.lists(st.integers(-n, n - 1), max_size=5))
    if rows:
        same(tensor[rows], array[rows])
        same(tensor[lamina.tensor(rows)], array[np.array(rows)])
        if array.ndim > 1 and array.shape[1]:
            columns = data.draw(
                st.lists(st.integers(0, array.shape[1] - 1), min_size=len(rows), max_size=len(rows))
            )
            same(tensor[rows, columns], array[rows, columns])
            same(tensor[:, columns], array[:, columns])
    same(tensor[tensor > 0], array[array > 0])
    changed, expected = tensor.clone(), array.copy()
    changed[changed > 0] = -7
    expected[expected > 0] = -7
    same(changed, expected)


@QUICK
@given(
    views("float64"),
    st.sampled_from(
        [
            "sum",
            "mean",
            "amax",
            "amin",
            "prod",
            "var",
            "any",
            "all",
            "argmax",
            "cumsum",
            "count_nonzero",
        ]
    ),
    st.data(),
)
def test_reductions(pair, op, data):
    tensor, array = pair
    dims = (
        tuple(sorted(data.draw(st.sets(st.integers(0, max(array.ndim - 1, 0)), min_size=1))))
        if array.ndim
        else ()
    )
    keep = data.draw(st.booleans())
    signed = tuple(d - array.ndim if data.draw(st.booleans()) else d for d in dims)
    if op in ("argmax", "cumsum", "prod"):
        if not dims:
            return
        dim, d = signed[0], dims[0]
        if op == "cumsum":
            same(tensor.cumsum(dim), array.cumsum(d), exact=False)
        elif op == "prod":
            same(tensor.prod(dim, keepdim=keep), array.prod(d, keepdims=keep), exact=False)
        elif array.shape[d]:
            same(tensor.argmax(dim, keepdim=keep), array.argmax(d, keepdims=keep))
        return
    if op == "count_nonzero":
        if hasattr(lamina, op) and dims:
            same(lamina.count_nonzero(tensor, signed), np.count_nonzero(array, axis=dims))
        return
    count = int(np.prod([array.shape[d] for d in dims])) if dims else 1
    if op in ("mean", "amax", "amin") and not count or op == "var" and count < 2:
        return
    if op in ("any", "all"):
        if dims:
            same(
                getattr(tensor > 0, op)(signed[0], keepdim=keep),
                getattr(array > 0, op)(dims[0], keepdims=keep),
            )
        return
    if op == "var":
        same(
            tensor.var(signed or None, correction=1, keepdim=keep),
            array.var(dims or None, ddof=1, keepdims=keep),
            exact=False,
        )
        return
    kwargs = {"keepdim": keep} if dims else {}
    result = getattr(tensor, op)(signed, **kwargs) if dims else getattr(tensor, op)()
    name = {"amax": "max", "amin": "min"}.get(op, op)
    same(
        result,
        getattr(array, name)(axis=dims or None, keepdims=keep and bool(dims)),
        exact=op in ("amax", "amin"),
    )


def category(dtype):
    return {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}[np.dtype(dtype).kind]


def promoted(a, b):
    """The type of a result: NumPy's, but integers never widen floating types."""
    if category(a) == category(b) or (category(a) < 2 and category(b) < 2):
        return np.promote_types(a, b).name
    wide, other = (a, b) if category(a) > category(b) else (b, a)
    if category(other) < 2:
        return np.dtype(wide).name
    # complex beside floating
    return "complex128" if "complex128" in (a, b) or other == "float64" else "complex64"


@QUICK
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 99))
def test_promotion_of_two_tensors(a, b, seed):
    x, y = array_of((2, 3), a, seed), array_of((3,), b, seed + 1)
    result = tensor_of(x) + tensor_of(y)
    expected = promoted(a, b)
    assert str(result.dtype) == f"lamina.{expected}" or str(result.dtype) == f"torch.{expected}"
    with np.errstate(all="ignore"):
        same(result, x.astype(expected) + y.astype(expected))
    assert (
        str(lamina.promote_types(getattr(lamina, a), getattr(lamina, b))).split(".")[-1] == expected
    )


@QUICK
@given(st.sampled_from(DTYPES), st.sampled_from([True, 3, 1.5, 2 + 1j]))
def test_promotion_with_numbers(dtype, number):
    tensor = tensor_of(array_of((3,), dtype, 1))
    result = str((tensor * number).dtype).split(".")[-1]
    kind = (
        3
        if isinstance(number, complex)
        else 2
        if isinstance(number, float)
        else 0
        if number is True
        else 1
    )
    if kind <= category(dtype):
        expected = dtype
    elif kind == 3:
        expected = "complex128" if dtype == "float64" else "complex64"
    else:
        expected = "float32" if kind == 2 else "int64"
    if not (kind == 3 and dtype == "float16"):  # complex32 is not among the types here
        assert result == expected


@QUICK
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 99))
def test_conversions(a, b, seed):
    array = array_of((4,), a, seed)
    with np.errstate(all="ignore"):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if category(a) >= 2 and np.dtype(b).kind == "u":
                array = np.abs(array).astype(a)
            same(tensor_of(array).to(getattr(lamina, b)), array.astype(b))


def factorizations(n):
    """Some shapes of n elements."""
    out = [(n,), (1, n), (n, 1)]
    for a in range(1, n + 1):
        if n % a == 0:
            out.append((a, n // a))
            for b in range(1, n // a + 1):
                if (n // a) % b == 0:
                    out.append((a, b, n // a // b))
    return out


def viewable(array, shape):
    try:
        view = array.view()
        view.shape = shape
        return True
    except AttributeError:
        return False


@QUICK
@given(views(), st.data())
def test_view_and_reshape(pair, data):
    tensor, array = pair
    shape = data.draw(
        st.sampled_from(factorizations(array.size) if array.size else [(0,), (0, 5), (3, 0)])
    )
    reshaped = tensor.reshape(shape)
    same(reshaped, array.reshape(shape))
    if array.size:
        asked = list(shape)
        asked[data.draw(st.integers(0, len(shape) - 1))] = -1
        assert tensor.reshape(asked).shape == shape
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            possible = viewable(array, shape)
        if possible:
            viewed = tensor.view(shape)
            same(viewed, array.reshape(shape))
            assert viewed.data_ptr() == tensor.data_ptr()
            assert reshaped.data_ptr() == tensor.data_ptr()
        else:
            with pytest.raises(RuntimeError, match="not compatible"):
                tensor.view(shape)
        with pytest.raises(RuntimeError):
            tensor.reshape(*shape, 7)


@QUICK
@given(views("float64"), st.data())
def test_products(pair, data):
    tensor, array = pair
    assume(array.ndim >= 1)
    n = array.shape[-1]
    shape = data.draw(st.sampled_from([(n,), (n, 2), (1, n, 3), (2, 1, n, 2)]))
    other = array_of(shape, "float64", 5)
    try:
        expected = array @ other
    except ValueError:
        with pytest.raises(RuntimeError):
            tensor @ tensor_of(other)
        return
    same(tensor @ tensor_of(other), expected, exact=False)


@QUICK
@given(views(), st.data())
def test_joining_and_rearranging(pair, data):
    tensor, array = pair
    if not array.ndim:
        return
    dim = data.draw(st.integers(0, array.ndim - 1))
    same(lamina.cat([tensor, tensor, tensor], dim), np.concatenate([array] * 3, dim))
    same(lamina.stack([tensor, tensor], dim), np.stack([array] * 2, dim))
    same(tensor.sort(dim)[0], np.sort(array, dim))
    same(tensor.sort(dim=dim, stable=True)[1], np.argsort(array, dim, kind="stable"))
    if array.ndim > 1:
        same(tensor.diagonal(1), np.diagonal(array, 1))
        same(tensor.movedim(0, -1), np.moveaxis(array, 0, -1))


@QUICK
@given(views("float32"))
def test_numpy_both_ways(pair):
    tensor, array = pair
    back = lamina.from_numpy(np.array(array))
    same(back, array)
    shared = tensor.numpy()
    assert shared.shape == array.shape
    if array.size:
        assert shared.__array_interface__["data"][0] == tensor.data_ptr()
