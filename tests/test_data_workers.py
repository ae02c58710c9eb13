"""Loaders whose batches are made by worker processes: values, orders and seeds as PyTorch's, and how workers end."""

import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import pytest
from lamina.utils import data
from lamina.utils.data import DataLoader, Dataset
from test_data import Count, Squares, lists

import lamina

pytestmark = pytest.mark.skipif(
    "LAMINA_SANITIZED" in os.environ,
    reason="GCC's AddressSanitizer forks with the locks of its allocator as they are: where another thread "
    "allocates at that moment (a queue's), the worker waits for ever",
)
quietly = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@quietly
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_give_the_same_batches(workers):
    expected = lists(DataLoader(range(11), batch_size=2))
    assert lists(DataLoader(range(11), batch_size=2, num_workers=workers)) == expected
    out_of_order = DataLoader(range(11), batch_size=2, num_workers=workers, in_order=False)
    assert sorted(lists(out_of_order)) == expected
    values = [b[0].tolist() for b in DataLoader(Squares(5), batch_size=2, num_workers=workers)]
    assert values == [[0.0, 1.0], [4.0, 9.0], [16.0]]


@quietly
def test_iterable_datasets_in_workers():
    assert lists(DataLoader(Count(), batch_size=2, num_workers=2)) == [
        [0, 1], [0, 1], [2, 3], [2, 3], [4], [4]
    ]  # fmt: skip
    loader = DataLoader(Count(3), num_workers=2, batch_size=None, persistent_workers=True)
    assert list(loader) == list(loader) == [0, 0, 1, 1, 2, 2]


def test_shuffled_orders_of_workers_are_those_of_the_peer():
    lamina.manual_seed(9)
    loader = DataLoader(range(11), num_workers=2, batch_size=2, shuffle=True)
    assert lists(loader) == [[9, 2], [0, 3], [5, 4], [1, 7], [10, 6], [8]]


def test_persistent_workers_stay():
    lamina.manual_seed(1)
    loader = DataLoader(range(6), num_workers=2, persistent_workers=True, shuffle=True)
    assert [x.item() for x in loader] == [0, 1, 4, 3, 2, 5]
    pids = [w.pid for w in loader._iterator._workers]
    assert [x.item() for x in loader] == [3, 5, 4, 1, 0, 2]
    assert pids == [w.pid for w in loader._iterator._workers]


class Info(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = data.get_worker_info()
        return (info.id, info.num_workers, info.seed, lamina.initial_seed(),
                lamina.get_num_threads(), lamina.rand(1).item(), random.random())  # fmt: skip


def test_seeds_are_those_of_the_peer():
    lamina.manual_seed(5)
    got = list(DataLoader(Info(), num_workers=2, batch_size=None))
    base = 4095051218741643470
    assert [g[0] for g in got] == [0, 1, 0, 1] and got[0][1] == 2
    assert [g[2] for g in got] == [g[3] for g in got] == [base, base + 1] * 2
    assert all(g[4] == 1 for g in got)
    assert [g[5] for g in got] == pytest.approx(
        [0.7106006741523743, 0.2905186414718628, 0.34830594062805176, 0.5857152342796326]
    )
    assert [g[6] for g in got] == pytest.approx(
        [0.9732059885921714, 0.7347412016282042, 0.09916814881074121, 0.421098279900221]
    )
    assert data.get_worker_info() is None


class Broken(Dataset):
    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 4

    def __getitem__(self, i):
        if i != 1:
            return i
        if self.what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.what == "exit":
            os._exit(3)
        if self.what == "sleep":
            time.sleep(20)
        if self.what == "lambda":
            return lambda: 0
        raise self.what


def test_errors_of_workers_arrive_with_their_traceback():
    loader = DataLoader(Broken(ValueError("boom")), num_workers=2)
    with pytest.raises(ValueError, match="Caught ValueError in DataLoader worker process 1") as e:
        list(loader)
    assert "in __getitem__" in str(e.value) and "boom" in str(e.value)
    with pytest.raises(KeyError) as e:
        list(DataLoader(Broken(KeyError("k")), num_workers=1))
    assert "\nOriginal Traceback" in str(e.value)

    def fails(worker_id):
        raise ZeroDivisionError("init")

    with pytest.raises(ZeroDivisionError, match="Caught"):
        list(DataLoader([1], num_workers=1, worker_init_fn=fails))
    iterator = iter(DataLoader(Broken(ValueError("boom")), num_workers=1))
    assert next(iterator).item() == 0
    with pytest.raises(ValueError):
        next(iterator)
    assert [x.item() for x in iterator] == [2, 3]  # the others still come
    with pytest.raises((AttributeError, pickle.PicklingError), match="Caught"):
        list(DataLoader(Broken("lambda"), num_workers=1, collate_fn=lambda b: b[0]))


@pytest.mark.parametrize(
    "what, text", [("kill", r"pid \d+\) is killed by signal: Killed"), ("exit", "with status 3")]
)
def test_workers_that_die(what, text):
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader worker .*exited unexpectedly.*" + text):
        list(DataLoader(Broken(what), num_workers=2))
    assert time.monotonic() - began < 20


def test_timeout():
    loader = DataLoader(Broken("sleep"), num_workers=1, timeout=0.3)
    iterator = iter(loader)
    assert next(iterator).item() == 0
    with pytest.raises(RuntimeError, match="timed out after 0.3 seconds"):
        next(iterator)
    iterator._workers[0].kill()


def test_worker_init_and_context():
    def note(worker_id):
        os.environ["LAMINA_TEST_WORKER"] = str(worker_id)

    class Asks(Squares):
        def __getitem__(self, i):
            return int(os.environ.get("LAMINA_TEST_WORKER", -1))

    assert lists(DataLoader(Asks(3), num_workers=1, worker_init_fn=note)) == [[0]] * 3


def test_spawned_workers(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import lamina
            from lamina.utils.data import DataLoader, TensorDataset

            if __name__ == "__main__":
                loader = DataLoader(
                    TensorDataset(lamina.arange(5)), batch_size=2, num_workers=1,
                    multiprocessing_context="spawn",
                )
                print([b[0].tolist() for b in loader])
            """
        )
    )
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)
    assert result.stdout.strip() == "[[0, 1], [2, 3], [4]]" and not result.stderr


def run_program(text, **options):
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    return process


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def test_an_unfinished_loader_ends_with_the_program():
    process = run_program(
        """
        from lamina.utils.data import DataLoader
        iterator = iter(DataLoader(range(1000), num_workers=2))
        next(iterator)
        kept = iter(DataLoader(range(10), num_workers=1, persistent_workers=True))
        print(*[w.pid for w in iterator._workers + kept._workers])
        """
    )
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and err == ""
    assert wait_until(lambda: not any(alive(pid) for pid in out.split()))


WAITING = """
    import time
    from lamina.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 1000
        def __getitem__(self, i):
            time.sleep(0.05)
            return i

    iterator = iter(DataLoader(Slow(), num_workers=2))
    print(*[w.pid for w in iterator._workers], flush=True)
    for x in iterator:
        pass
"""


def test_interrupt_ends_everything():
    process = run_program(WAITING, start_new_session=True)
    pids = process.stdout.readline().split()
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and err.count("KeyboardInterrupt") == 1
    assert "Exception ignored" not in err
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_workers_end_when_their_parent_is_killed():
    process = run_program(WAITING)
    pids = process.stdout.readline().split()
    time.sleep(0.2)
    process.kill()
    process.communicate(timeout=60)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))


def test_too_many_workers_warn():
    with pytest.warns(UserWarning, match="will create 10000 worker processes"):
        DataLoader([1], num_workers=10000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DataLoader([1], num_workers=0)


def test_memory_is_shared_not_copied():
    loader = DataLoader([lamina.ones(4)] * 4, batch_size=2, num_workers=1)
    for batch in loader:
        assert batch.is_shared() and batch.shape == (2, 4)
