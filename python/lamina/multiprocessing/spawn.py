"""Several processes that run one function, and whose errors come back."""

import multiprocessing
import signal
import traceback


class ProcessException(Exception):
    """A process failed."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """A process raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended with a status other than zero, or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def _wrap(fn, index, args, errors):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The running processes."""

    def __init__(self, processes, errors):
        self.processes, self.error_queues = processes, errors

    def pids(self):
        """Their numbers."""
        return [p.pid for p in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait for all; True when all have ended well. The first failure ends the others and is raised."""
        for index, process in enumerate(self.processes):
            process.join(timeout)
            if process.exitcode is None:
                return False
            if process.exitcode == 0:
                continue
            for other in self.processes:
                if other.is_alive():
                    other.terminate()
                other.join(grace_period)
            if not self.error_queues[index].empty():
                text = self.error_queues[index].get()
                raise ProcessRaisedException(
                    f"\n\n-- Process {index} terminated with the following error:\n{text}",
                    index,
                    process.pid,
                )
            code = process.exitcode
            name = signal.Signals(-code).name if code < 0 else None
            what = f"signal {name}" if name else f"exit code {code}"
            raise ProcessExitedException(
                f"process {index} terminated with {what}", index, process.pid, code, name
            )
        return True


SpawnContext = ProcessContext


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn", **_):
    """Run ``fn(i, *args)`` in `nprocs` processes; returns their context unless `join`."""
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(target=_wrap, args=(fn, i, args, queue), daemon=daemon)
        process.start()
        processes.append(process)
        errors.append(queue)
    result = ProcessContext(processes, errors)
    if not join:
        return result
    while not result.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run ``fn(i, *args)`` in `nprocs` processes that start afresh."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
