"""Pointwise work on rows that are longer than a block, with operands that are the same in each row."""

import pytest

np = pytest.importorskip("numpy")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import lamina  # noqa: E402

# Around the sizes where blocks change, up to results that are written around the caches.
LENGTHS = (1, 7, 64, 511, 512, 513, 700, 1023, 1024, 1025, 2047, 2048, 2050, 5000, 16384, 16400)


@settings(max_examples=120)
@given(
    st.sampled_from(LENGTHS),
    st.sampled_from((1, 2, 3, 17, 64)),
    st.sampled_from(("row", "column", "number", "same", "every other", "turned")),
    st.sampled_from(("float32", "float64", "int64")),
    st.integers(0, 2**31),
)
def test_rows(n, m, kind, dtype, seed):
    rng = np.random.RandomState(seed)
    a = (rng.standard_normal((m, n)) * 10).astype(dtype)
    b = (rng.standard_normal((m, 2 * n)) * 10).astype(dtype)
    x, y = lamina.from_numpy(a), lamina.from_numpy(b)
    b, y = {
        "row": (b[0, :n], y[0, :n]),
        "column": (b[:, :1], y[:, :1]),
        "number": (b[:1, :1], y[:1, :1]),
        "same": (b[:, :n].copy(), y[:, :n].contiguous()),
        "every other": (b[:, ::2], y[:, ::2]),
        "turned": (b[:, :n].T.copy().T, y[:, :n].t().contiguous().t()),
    }[kind]
    for got, expected in ((x + y, a + b), (y * x, b * a), (x - y, a - b)):
        np.testing.assert_array_equal(got.numpy(), expected)
    target = x.clone()
    target.add_(y)
    np.testing.assert_array_equal(target.numpy(), a + b)


def test_large_results():
    a = np.arange(3000 * 1500, dtype="float32").reshape(3000, 1500)
    x = lamina.from_numpy(a)
    np.testing.assert_array_equal((x + x[0]).numpy(), a + a[0])
    np.testing.assert_array_equal((x + x[:, :1]).numpy(), a + a[:, :1])
    y = lamina.from_numpy(a.reshape(3, 1000, 1500))
    np.testing.assert_array_equal((y * y[0, 0]).numpy(), a.reshape(3, 1000, 1500) * a[0])
