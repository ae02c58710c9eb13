"""DataLoader: batches of a dataset, made here or by worker processes."""

import atexit
import itertools
import multiprocessing as python_multiprocessing
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from multiprocessing import connection
from typing import Any, Generic, TypeVar

import lamina
from lamina._utils import ExceptionWrapper  # noqa: F401

from . import _utils
from ._utils.collate import default_collate, default_convert
from ._utils.worker import (
    _IterableDatasetStopIteration,
    _ResumeIteration,
    _worker_loop,
    get_worker_info,
)
from .datapipes.datapipe import IterDataPipe, MapDataPipe  # noqa: F401
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[_T]], Any]


class _DatasetKind:
    """The two kinds of datasets and who fetches from them."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        """What reads batches of a dataset of that kind."""
        fetch = _utils.fetch
        cls = (
            fetch._MapDatasetFetcher if kind == _DatasetKind.Map else fetch._IterableDatasetFetcher
        )
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None for ever: an iterable dataset needs no numbers."""

    def __iter__(self):
        while True:
            yield None


# What may not change once a loader has been made: other attributes follow from it.
_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[_T_co]):
    """Batches of a dataset, in order or shuffled, by this process or by workers.

    Parameters
    ----------
    dataset
        With ``__getitem__`` and ``__len__``, or an IterableDataset.
    batch_size, shuffle, sampler, batch_sampler, drop_last
        Which samples make a batch; ``batch_size=None`` gives single samples.
    num_workers
        Worker processes; 0: this process does it.
    collate_fn
        From a list of samples to a batch.
    pin_memory, pin_memory_device
        Accepted; without an accelerator there is nothing to pin memory for.
    timeout
        Seconds to wait for a batch of a worker; 0: as long as the workers live.
    worker_init_fn
        Called in each worker with its number, after seeding.
    multiprocessing_context
        How workers start: "fork", "spawn", "forkserver" or a context.
    generator
        Draws the order and the workers' base seed.
    prefetch_factor
        Batches each worker prepares ahead (2).
    persistent_workers
        Keep the workers from one iteration to the next.
    in_order
        False gives batches as they come.

    Raises ValueError and TypeError for arguments that do not go together. An exception of a worker is raised
    here with its traceback; RuntimeError where a worker dies or does not answer in time.
    """

    dataset: Dataset[_T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler | Iterable
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: "_BaseDataLoaderIter | None"
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: _collate_fn_t | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: _worker_init_fn_t | None = None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; "
                "use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        elif prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, "
                        f"but got {name}={value}"
                    )
            if batch_sampler is not None:
                raise ValueError(
                    "DataLoader with IterableDataset: expected unspecified batch_sampler option, "
                    f"but got batch_sampler={batch_sampler}"
                )
        else:
            shuffle = bool(shuffle)
            self._dataset_kind = _DatasetKind.Map

        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called = None
        self._iterator = None
        self.check_worker_number_rationality()

    def _get_iterator(self) -> "_BaseDataLoaderIter":
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def multiprocessing_context(self):
        """How workers start; None: as Python does it by default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, multiprocessing_context):
        if multiprocessing_context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(multiprocessing_context, str):
                methods = python_multiprocessing.get_all_start_methods()
                if multiprocessing_context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={multiprocessing_context!r}"
                    )
                multiprocessing_context = python_multiprocessing.get_context(
                    multiprocessing_context
                )
            if not isinstance(multiprocessing_context, python_multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string "
                    "specifying the start method, but got "
                    f"multiprocessing_context={multiprocessing_context}"
                )
        self.__multiprocessing_context = multiprocessing_context

    def __setattr__(self, attr, val):
        if self.__initialized and attr in _FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    def __iter__(self) -> "_BaseDataLoaderIter":
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        """What gives the numbers of one fetch: of a batch, or of a single sample."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Iterable:
            # The dataset says it; iterators warn where it said too little.
            length = self._IterableDataset_len_called = len(self.dataset)
            if self.batch_size is not None:
                whole, rest = divmod(length, self.batch_size)
                length = whole + (1 if rest and not self.drop_last else 0)
            return length
        return len(self._index_sampler)

    def check_worker_number_rationality(self):
        """Warn where there are more workers than processors to run them."""
        if not self.num_workers:
            return
        try:
            count = len(os.sched_getaffinity(0))
        except (AttributeError, OSError):
            count = os.cpu_count()
        if count is not None and self.num_workers > count:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {count}, which is smaller "
                "than what this DataLoader is going to create. Please be aware that excessive "
                "worker creation might get DataLoader running slow or even freeze, lower the worker "
                "number to avoid potential slowness/freeze if necessary.",
                stacklevel=2,
            )


class _BaseDataLoaderIter:
    """What both iterators share."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._shared_seed = None
        self._pg = None
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._world_size, self._rank = 1, 0
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=4,
            )
        self._pin_memory = False
        self._pin_memory_device = None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = (
            lamina.empty((), dtype=lamina.int64).random_(generator=loader.generator).item()
        )
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0
        self._profile_name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"

    def __iter__(self) -> "_BaseDataLoaderIter":
        return self

    def _reset(self, loader, first_iter=False):
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self):
        return next(self._sampler_iter)

    def _next_data(self):
        raise NotImplementedError

    def __next__(self) -> Any:
        if lamina._C._trace_running():
            from lamina.autograd.profiler import record_function

            with record_function(self._profile_name):
                data = self._next_data()
        else:
            data = self._next_data()
        self._num_yielded += 1
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and self._IterableDataset_len_called is not None
            and self._num_yielded > self._IterableDataset_len_called
        ):
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be "
                f"{self._IterableDataset_len_called}(when accessing len(dataloader)), but "
                f"{self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly "
                    "configuring the IterableDataset replica at each worker."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self):
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches here."""

    def __init__(self, loader):
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("timeout must be 0 without workers")
        if self._num_workers != 0:
            raise AssertionError("num_workers must be 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Sends numbers to worker processes and gives their batches in order.

    Each worker has a pipe of its own in both directions. A pipe ends when its worker dies, whatever it was doing,
    and this process waits for pipes and for the ends of processes at once: so a worker that is
    killed is noticed, and nobody waits for it.
    """

    def __init__(self, loader):
        super().__init__(loader)
        import lamina.multiprocessing  # noqa: F401  tensors travel as shared memory

        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        context = loader.multiprocessing_context or python_multiprocessing
        self._worker_init_fn = loader.worker_init_fn
        self._shutdown = False
        self._owner = os.getpid()
        self._done_pipe = context.Pipe(duplex=False)  # ends when this side is closed, or gone
        self._index_queues: list = []
        self._data_queues: list = []
        self._workers: list = []
        if self._num_workers <= 0 or self._prefetch_factor <= 0:
            raise AssertionError("num_workers and prefetch_factor must be greater than 0")
        for i in range(self._num_workers):
            index_queue, data_queue = context.Queue(), context.Queue()
            index_queue.cancel_join_thread()
            worker = context.Process(
                target=_worker_loop,
                args=(
                    self._dataset_kind,
                    self._dataset,
                    index_queue,
                    data_queue,
                    self._done_pipe,
                    self._auto_collation,
                    self._collate_fn,
                    self._drop_last,
                    self._base_seed,
                    self._worker_init_fn,
                    i,
                    self._num_workers,
                    self._persistent_workers,
                    self._shared_seed,
                ),
            )
            worker.daemon = True
            try:
                worker.start()
            except BaseException:
                self._shutdown_workers()
                raise
            # The worker alone may write: then its end is the end of the pipe. Workers that are
            # started later must not hold it open either.
            data_queue._writer.close()
            self._index_queues.append(index_queue)
            self._data_queues.append(data_queue)
            self._workers.append(worker)
        if self._persistent_workers:
            atexit.register(_clean_up, weakref.ref(self))
        self._reset(loader, first_iter=True)

    def _reset(self, loader, first_iter=False):
        super()._reset(loader, first_iter)
        self._send_idx = 0  # of the next task that is sent
        self._rcvd_idx = 0  # of the next one that is given out
        # By index: (worker,) while it is under way, (worker, data) once it has come out of order.
        self._task_info: dict = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers  # False: its dataset has ended
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        if not first_iter:
            for index_queue in self._index_queues:
                index_queue.put(_ResumeIteration(self._shared_seed))
            resumed = 0
            while resumed < self._num_workers:
                answer, data = self._get_data()
                resumed += isinstance(answer, _ResumeIteration)
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    # ---- waiting ----

    def _receive(self, timeout):
        """(index, data) of the next message; None where none comes in time.

        Raises RuntimeError where a worker ended that was not told to.
        """
        alive = [i for i, there in enumerate(self._workers_status) if there]
        readers = {self._data_queues[i]._reader: i for i in alive}
        sentinels = {self._workers[i].sentinel: i for i in alive}
        ready = connection.wait([*readers, *sentinels], timeout)
        for item in ready:  # messages first: a worker may have sent its last one
            if item in readers:
                return self._take(readers[item])
        dead = [self._workers[sentinels[item]] for item in ready]
        if dead:
            self._raise_dead(dead)
        return None

    def _take(self, i):
        from multiprocessing.reduction import ForkingPickler

        queue = self._data_queues[i]
        try:
            packed = ForkingPickler.loads(queue._reader.recv_bytes())
            return ForkingPickler.loads(packed)
        except (EOFError, OSError) as error:
            # Its pipe has ended, or the memory it shared is gone with it.
            self._workers[i].join(_utils.MP_STATUS_CHECK_INTERVAL)
            if not self._workers[i].is_alive():
                self._raise_dead([self._workers[i]])
            raise RuntimeError(
                f"DataLoader worker (pid {self._workers[i].pid}): {error}"
            ) from error

    def _raise_dead(self, workers):
        for worker in workers:
            worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
        pids = ", ".join(str(worker.pid) for worker in workers)
        how = " ".join(map(_utils.signal_handling.how_it_ended, workers))
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly. {how}")

    def _try_get_data(self, timeout=_utils.MP_STATUS_CHECK_INTERVAL):
        """(whether something came, it)."""
        got = self._receive(timeout)
        return got is not None, got

    def _get_data(self):
        if self._timeout > 0:
            end = time.monotonic() + self._timeout
            while (left := end - time.monotonic()) > 0:
                success, data = self._try_get_data(left)
                if success:
                    return data
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        while True:
            success, data = self._try_get_data()
            if success:
                return data

    # ---- tasks ----

    def _next_data(self):
        while True:
            # Tasks of workers whose dataset has ended will not come.
            while self._rcvd_idx < self._send_idx:
                info = self._task_info.get(self._rcvd_idx)
                if info is not None:
                    if len(info) == 2 or self._workers_status[info[0]]:
                        break
                    del self._task_info[self._rcvd_idx]
                self._rcvd_idx += 1
            else:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if len(self._task_info[self._rcvd_idx]) == 2:
                worker, data = self._task_info.pop(self._rcvd_idx)
                self._rcvd_idx += 1
                return self._process_data(data, worker)
            if self._shutdown:
                raise RuntimeError("DataLoader: the workers have ended")
            index, data = self._get_data()
            self._tasks_outstanding -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                if self._persistent_workers:
                    self._workers_status[data.worker_id] = False
                else:
                    self._mark_worker_as_unavailable(data.worker_id)
                self._task_info.pop(index, None)
                self._try_put_index()
                continue
            if index == self._rcvd_idx or not self._in_order:
                worker = self._task_info.pop(index)[0]
                if index == self._rcvd_idx:
                    self._rcvd_idx += 1
                return self._process_data(data, worker)
            self._task_info[index] += (data,)

    def _try_put_index(self):
        limit = self._prefetch_factor * self._num_workers
        if self._tasks_outstanding >= limit:
            return
        most = max(1, limit // max(1, sum(self._workers_status)))
        for _ in range(self._num_workers):
            worker = next(self._worker_queue_idx_cycle)
            if not self._workers_status[worker]:
                continue
            if self._in_order or self._workers_num_tasks[worker] < most:
                break
        else:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._index_queues[worker].put((self._send_idx, index))
        self._task_info[self._send_idx] = (worker,)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _process_data(self, data, worker_idx):
        self._workers_num_tasks[worker_idx] -= 1
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    # ---- the end ----

    def _mark_worker_as_unavailable(self, worker_id, shutdown=False):
        if not self._workers_status[worker_id] and not (self._persistent_workers and shutdown):
            return
        self._index_queues[worker_id].put(None)
        self._workers_status[worker_id] = False

    def _shutdown_workers(self):
        if self._shutdown or self._owner != os.getpid():
            return  # a forked child holds a copy of this object, not the workers
        self._shutdown = True
        self._done_pipe[1].close()
        try:
            end = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
            for worker in self._workers:
                worker.join(max(0.0, end - time.monotonic()))
        finally:
            for worker in self._workers:
                if worker.is_alive():
                    worker.terminate()
            for worker in self._workers:
                worker.join(_utils.MP_STATUS_CHECK_INTERVAL)
                if worker.is_alive():
                    worker.kill()
                    worker.join()
            self._done_pipe[0].close()
            for queue in (*self._index_queues, *self._data_queues):
                queue.cancel_join_thread()
                queue.close()

    def __del__(self):
        if not getattr(self, "_shutdown", True):
            self._shutdown_workers()


def _clean_up(reference):
    iterator = reference()
    if iterator is not None:
        iterator._shutdown_workers()
