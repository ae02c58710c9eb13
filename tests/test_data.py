"""Datasets, samplers, collating and loaders: values, orders as PyTorch's, workers and how they end."""

import collections
import inspect
import pickle

import pytest
from lamina.utils import data
from lamina.utils.data import DataLoader, Dataset, IterableDataset

import lamina


class Squares(Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return lamina.tensor(float(i * i)), i


class Count(IterableDataset):
    def __init__(self, n=5):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))


class CountWithLength(Count):
    def __len__(self):
        return 3


def lists(loader):
    return [batch.tolist() for batch in loader]


# ---- datasets ----


def test_datasets():
    x, y = lamina.arange(6.0).view(3, 2), lamina.arange(3)
    pairs = data.TensorDataset(x, y)
    assert len(pairs) == 3 and pairs[1][0].tolist() == [2.0, 3.0] and pairs[-1][1].item() == 2
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(x, lamina.ones(2))
    stacked = data.StackDataset(a=[1, 2], b=[3, 4])
    assert stacked[1] == {"a": 2, "b": 4} and len(stacked) == 2
    assert stacked.__getitems__([0, 1]) == [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert data.StackDataset([1, 2], [3, 4])[0] == (1, 3)
    for wrong in (lambda: data.StackDataset(), lambda: data.StackDataset([1, 2], [1])):
        with pytest.raises(ValueError):
            wrong()
    joined = Squares(2) + Squares(3)
    assert len(joined) == 5 and joined[4][1] == 2 and joined[-1][1] == 2
    with pytest.raises(ValueError, match="absolute value"):
        joined[-6]
    assert list(Count(2) + Count(3)) == [0, 1, 0, 1, 2]
    assert len(data.ChainDataset([CountWithLength(), CountWithLength()])) == 6
    with pytest.raises(AssertionError, match="IterableDataset"):
        data.ConcatDataset([Count()])
    part = data.Subset(lamina.arange(10), [3, 5, 7])
    assert part[1].item() == 5 and part[[0, 2]].tolist() == [3, 7] and len(part) == 3
    with pytest.raises(NotImplementedError):
        Dataset()[0]
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()


def test_random_split():
    def parts(lengths):
        split = data.random_split(range(10), lengths, lamina.Generator().manual_seed(1))
        return [list(p.indices) for p in split]

    # The order that PyTorch gives for this seed.
    assert parts([0.33, 0.33, 0.34]) == [[5, 6, 1, 2], [0, 8, 9], [3, 7, 4]]
    assert parts([7, 3]) == [[5, 6, 1, 2, 0, 8, 9], [3, 7, 4]]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        parts([1, 2])
    with pytest.raises(ValueError, match="not between 0 and 1"):
        parts([-0.5, 1.5])
    with pytest.warns(UserWarning, match="is 0"):
        data.random_split(range(1), [0.5, 0.5])


# ---- samplers ----


def test_orders_are_those_of_the_peer():
    lamina.manual_seed(5)
    assert lists(DataLoader(range(10), shuffle=True, batch_size=4)) == [
        [8, 3, 0, 5], [9, 1, 6, 2], [4, 7]
    ]  # fmt: skip
    loader = DataLoader(
        range(10), shuffle=True, batch_size=4, generator=lamina.Generator().manual_seed(2)
    )
    assert lists(loader) == [[1, 0, 8, 3], [4, 5, 6, 7], [2, 9]]
    assert lists(loader) == [[3, 0, 5, 7], [8, 9, 2, 4], [6, 1]]
    lamina.manual_seed(5)
    drawn = list(data.RandomSampler(range(100), replacement=True, num_samples=40))
    assert drawn[:4] == [57, 64, 79, 34] and drawn[-4:] == [16, 9, 17, 0]
    assert list(data.RandomSampler(range(5), num_samples=12))[:5] == [3, 0, 1, 4, 2]
    g = lamina.Generator().manual_seed(1)
    assert list(data.SubsetRandomSampler([3, 1, 7], g)) == [1, 7, 3]
    lamina.manual_seed(5)
    weights = [0.1, 0.9, 0.4, 0.7, 3.0]
    assert list(data.WeightedRandomSampler(weights, 12)) == [4, 2, 3, 3, 2, 4, 4, 4, 4, 4, 3, 3]
    assert sorted(data.WeightedRandomSampler(weights, 5, False)) == [0, 1, 2, 3, 4]
    sampler = data.DistributedSampler(list(range(7)), 3, 1)
    assert list(sampler) == [0, 2, 4]
    sampler.set_epoch(1)
    assert list(sampler) != [0, 2, 4]
    parts = [list(data.DistributedSampler(range(7), 3, r, shuffle=False)) for r in range(3)]
    assert parts == [[0, 3, 6], [1, 4, 0], [2, 5, 1]]
    last = data.DistributedSampler(range(7), 3, 1, shuffle=False, drop_last=True)
    assert list(last) == [1, 4] and len(last) == 2


def test_batches_of_numbers():
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: data.RandomSampler([1], replacement=5), TypeError, "replacement"),
        (lambda: data.RandomSampler([]), ValueError, "num_samples"),
        (lambda: data.WeightedRandomSampler([1.0], 0), ValueError, "num_samples"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
        (lambda: data.BatchSampler([1], True, False), ValueError, "batch_size"),
        (lambda: data.BatchSampler([1], 1, 3), ValueError, "drop_last"),
        (lambda: data.DistributedSampler([1], 2, 5), ValueError, "Invalid rank 5"),
        (lambda: DataLoader([1], num_workers=-1), ValueError, "num_workers"),
        (lambda: DataLoader([1], timeout=-1), ValueError, "timeout"),
        (lambda: DataLoader([1], prefetch_factor=2), ValueError, "prefetch_factor"),
        (lambda: DataLoader([1], persistent_workers=True), ValueError, "persistent_workers"),
        (lambda: DataLoader(Count(), shuffle=True), ValueError, "unspecified shuffle"),
        (lambda: DataLoader(Count(), sampler=[1]), ValueError, "unspecified sampler"),
        (lambda: DataLoader([1], sampler=[0], shuffle=True), ValueError, "mutually exclusive"),
        (lambda: DataLoader([1], batch_sampler=[[0]], batch_size=2), ValueError, "exclusive"),
        (lambda: DataLoader([1], batch_size=None, drop_last=True), ValueError, "auto-batching"),
        (lambda: DataLoader([1], batch_size=0), ValueError, "batch_size"),
        (lambda: DataLoader([1], multiprocessing_context="fork"), ValueError, "num_workers"),
        (
            lambda: DataLoader([1], num_workers=1, multiprocessing_context="no"),
            ValueError,
            "valid start method",
        ),
        (
            lambda: DataLoader([1], num_workers=1, multiprocessing_context=5),
            TypeError,
            "valid context object",
        ),
        (lambda: setattr(DataLoader([1]), "batch_size", 3), ValueError, "should not be set"),
        (lambda: len(DataLoader(Count())), TypeError, "has no len"),
        (lambda: pickle.dumps(iter(DataLoader([1]))), NotImplementedError, "pickled"),
    ],
)
def test_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


# ---- collating ----


Pair = collections.namedtuple("Pair", "a b")


def test_collating():
    collate = data.default_collate
    assert collate([1, 2]).dtype == lamina.int64
    assert collate([1.5, 2]).dtype == lamina.float64
    assert collate(["a", "b"]) == ["a", "b"] and collate([b"a"]) == [b"a"]
    assert collate([True, False]).dtype == lamina.bool
    pair = collate([Pair(1, 2), Pair(3, 4)])
    assert type(pair) is Pair and pair.a.tolist() == [1, 3]
    assert collate([{"a": 1}, {"a": 2}])["a"].tolist() == [1, 2]
    ordered = collate([collections.OrderedDict(a=1)])
    assert type(ordered) is collections.OrderedDict
    numbers, texts = collate([(1, "x"), (2, "y")])
    assert numbers.tolist() == [1, 2] and texts == ("x", "y")
    assert [c.tolist() for c in collate([[1, 2], [3, 4]])] == [[1, 3], [2, 4]]
    assert collate([lamina.ones(2), lamina.zeros(2)]).shape == (2, 2)
    with pytest.raises(RuntimeError, match="equal size"):
        collate([[1], [1, 2]])
    for wrong in (object(), None):
        with pytest.raises(TypeError, match="batch must contain tensors"):
            collate([wrong])
    table = {str: lambda batch, *, collate_fn_map=None: "".join(batch)}
    from lamina.utils.data._utils.collate import collate as collate_with

    assert collate_with(["a", "b"], collate_fn_map=table) == "ab"


def test_collating_numpy():
    np = pytest.importorskip("numpy")
    collate = data.default_collate
    assert collate([np.float32(1), np.float32(2)]).dtype == lamina.float32
    assert collate([np.float64(1)]).dtype == lamina.float64
    assert collate([np.arange(2), np.arange(2)]).tolist() == [[0, 1], [0, 1]]
    with pytest.raises(TypeError, match="found <U1"):
        collate([np.array(["a"])])
    converted = data.default_convert([np.array([1]), Pair(1, 2), {"a": np.float64(1)}, "s"])
    assert converted[0].tolist() == [1] and converted[1] == Pair(1, 2)
    assert converted[2]["a"].dtype == lamina.float64 and converted[3] == "s"


# ---- one process ----


def test_single_process():
    loader = DataLoader(Squares(5), batch_size=2)
    assert [b[1].tolist() for b in loader] == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3 and len(iter(loader)) == 3
    assert [b[1].tolist() for b in DataLoader(Squares(5), batch_size=2, drop_last=True)] == [
        [0, 1], [2, 3]
    ]  # fmt: skip
    single = list(DataLoader(Squares(2), batch_size=None))
    assert single[1][1] == 1 and single[1][0].dim() == 0
    assert lists(DataLoader(range(4), batch_sampler=[[0, 3], [1]])) == [[0, 3], [1]]
    assert lists(DataLoader(Count(), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert list(DataLoader([[1, 2]], collate_fn=lambda b: b)) == [[[1, 2]]]
    whole = DataLoader(CountWithLength(), batch_size=2)
    assert len(whole) == 2
    with pytest.warns(UserWarning, match="reported to be 3"):
        loader = DataLoader(CountWithLength())
        len(loader)
        list(loader)
    with pytest.warns(UserWarning, match="no accelerator"):
        assert lists(DataLoader([1], pin_memory=True)) == [[1]]


class Batched(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        raise AssertionError("not asked one by one")

    def __getitems__(self, indices):
        return [10 * i for i in indices]


def test_batches_at_once():
    assert lists(DataLoader(Batched(), batch_size=3)) == [[0, 10, 20], [30]]
    assert lists(DataLoader(data.Subset(Batched(), [3, 1]), batch_size=2)) == [[30, 10]]


def test_names_that_packages_use():
    from lamina.utils.data._utils.collate import default_collate, default_convert  # noqa: F401
    from lamina.utils.data._utils.pin_memory import pin_memory
    from lamina.utils.data._utils.worker import _generate_state
    from lamina.utils.data.dataloader import (  # noqa: F401
        _BaseDataLoaderIter,
        _MultiProcessingDataLoaderIter,
        _SingleProcessDataLoaderIter,
    )

    assert isinstance(iter(DataLoader([1])), _BaseDataLoaderIter)
    assert _generate_state(12345678901234567, 3) == [
        2377215042, 2522568625, 962964186, 3121645664
    ]  # fmt: skip
    names = list(inspect.signature(DataLoader.__init__).parameters)
    assert names[:6] == ["self", "dataset", "batch_size", "shuffle", "sampler", "batch_sampler"]
    assert names[-4:] == ["prefetch_factor", "persistent_workers", "pin_memory_device", "in_order"]
    assert pin_memory({"a": [1, "x"]}) == {"a": [1, "x"]}


def test_functional_pipes():
    @data.functional_datapipe("times_for_test")
    class Times(data.IterDataPipe):
        def __init__(self, source, factor=1):
            self.source, self.factor = source, factor

        def __iter__(self):
            return (x * self.factor for x in self.source)

    class Source(data.IterDataPipe):
        def __iter__(self):
            return iter([1, 2])

    assert list(Source().times_for_test(factor=3)) == [3, 6]
    with pytest.raises(AttributeError):
        _ = Source().nothing
    with pytest.raises(Exception, match="already taken"):
        data.functional_datapipe("times_for_test")(Times)
