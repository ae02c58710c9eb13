"""Worker processes of data loaders."""

import queue
import random
import sys
from dataclasses import dataclass
from multiprocessing import connection

import lamina
from lamina._utils import ExceptionWrapper

from . import MP_STATUS_CHECK_INTERVAL

_worker_info = None


class WorkerInfo:
    """What a worker knows of itself: id, num_workers, seed, dataset."""

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)
        self.__keys = tuple(kwargs)
        self.__initialized = True

    def __setattr__(self, key, value):
        if "_WorkerInfo__initialized" in self.__dict__:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(key, value)

    def __repr__(self):
        parts = ", ".join(f"{key}={getattr(self, key)}" for key in self.__keys)
        return f"{type(self).__name__}({parts})"


def get_worker_info():
    """In a worker process: what it knows of itself. None in the main process."""
    return _worker_info


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's iterable dataset has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """A worker that stays shall begin again."""

    seed: int | None = None


_MASK = 0xFFFFFFFF


def _generate_state(base_seed, worker_id):
    """Four words for NumPy's generator, from a seed and a number.

    These are the words that ``numpy.random.SeedSequence`` (by M. O'Neill's design) makes of the same
    four numbers.
    """

    def hasher(constant, multiplier):
        def scramble(value):
            nonlocal constant
            value = (value ^ constant) & _MASK
            constant = (constant * multiplier) & _MASK
            value = (value * constant) & _MASK
            return value ^ (value >> 16)

        return scramble

    def mix(x, y):
        result = (0xCA01F9DD * x - 0x4973F715 * y) & _MASK
        return result ^ (result >> 16)

    scramble = hasher(0x43B0D7E5, 0x931E8875)
    pool = [scramble(v) for v in (worker_id, base_seed & _MASK, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = mix(pool[target], scramble(pool[source]))
    draw = hasher(0x8B51F9DD, 0x58F38DED)
    return [draw(value) for value in pool]


def _seed_everything(base_seed, worker_id):
    seed = base_seed + worker_id
    random.seed(seed)
    lamina.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_generate_state(base_seed, worker_id))


class _Inbox:
    """Takes what the main process sends.

    `done` is the reading end of a pipe that nobody writes to: it ends when the main process closes its side, or
    is gone.
    """

    def __init__(self, index_queue, done):
        self._queue, self._done = index_queue, done

    def is_done(self):
        """Whether the main process wants nothing more."""
        return bool(connection.wait([self._done], 0))

    def get(self):
        """The next message; None when there will be none."""
        reader = self._queue._reader
        while True:
            ready = connection.wait([reader, self._done])
            if self._done in ready:
                return None
            try:
                return self._queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
            except queue.Empty:
                continue
            except (EOFError, OSError):
                return None


def _worker_loop(
    dataset_kind,
    dataset,
    index_queue,
    data_queue,
    done_pipe,
    auto_collation,
    collate_fn,
    drop_last,
    base_seed,
    init_fn,
    worker_id,
    num_workers,
    persistent_workers,
    shared_seed=None,
):
    """What a worker process runs: takes numbers, sends batches, until it is told that all is done."""
    global _worker_info
    done, others_side = done_pipe
    others_side.close()  # so that the main process alone keeps the pipe open
    inbox = _Inbox(index_queue, done)
    try:
        import lamina.multiprocessing  # noqa: F401  tensors travel as shared memory

        from ..dataloader import _DatasetKind

        lamina.set_num_threads(1)
        _seed_everything(base_seed, worker_id)
        _worker_info = WorkerInfo(
            id=worker_id,
            num_workers=num_workers,
            seed=base_seed + worker_id,
            dataset=dataset,
            worker_id=worker_id,
        )
        init_exception = None
        fetcher = None
        try:
            if init_fn is not None:
                init_fn(worker_id)
            fetcher = _DatasetKind.create_fetcher(
                dataset_kind, dataset, auto_collation, collate_fn, drop_last
            )
        except Exception:
            init_exception = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")

        iteration_end = False
        while True:
            task = inbox.get()
            if task is None:
                break  # told to end, or nobody is there any more
            if isinstance(task, _ResumeIteration):
                _send(data_queue, task, None, worker_id)
                iteration_end = False
                if init_exception is None:
                    try:
                        fetcher = _DatasetKind.create_fetcher(
                            dataset_kind, dataset, auto_collation, collate_fn, drop_last
                        )
                    except Exception:
                        init_exception = ExceptionWrapper(
                            where=f"in DataLoader worker process {worker_id}"
                        )
                continue
            if iteration_end:
                continue
            idx, index = task
            if init_exception is not None:
                data, init_exception = init_exception, None
            else:
                try:
                    data = fetcher.fetch(index)
                except Exception as error:
                    if isinstance(error, StopIteration) and dataset_kind == _DatasetKind.Iterable:
                        data = _IterableDatasetStopIteration(worker_id)
                        iteration_end = True
                    else:
                        data = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
            _send(data_queue, idx, data, worker_id)
            del data, idx, index, task
    except KeyboardInterrupt:
        pass  # the main process gets it, too
    if inbox.is_done():
        data_queue.cancel_join_thread()
        data_queue.close()


def _send(data_queue, idx, data, worker_id):
    """Pickle here rather than in the queue's thread, so that what cannot be sent is an error of its own."""
    from multiprocessing.reduction import ForkingPickler

    try:
        packed = bytes(ForkingPickler.dumps((idx, data)))
    except Exception:
        error = ExceptionWrapper(where=f"in DataLoader worker process {worker_id}")
        packed = bytes(ForkingPickler.dumps((idx, error)))
    data_queue.put(packed)
