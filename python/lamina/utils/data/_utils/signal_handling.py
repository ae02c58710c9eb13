"""What is said of worker processes that ended on their own.

Main processes wait for workers and for their data at once, so that no handler of signals is needed.
"""

import signal


def how_it_ended(worker) -> str:
    """A worker process that has ended, in words."""
    code = worker.exitcode
    if code is None:
        return f"pid {worker.pid} does not answer"
    if code < 0:
        try:
            name = signal.strsignal(-code) or str(-code)
        except ValueError:
            name = str(-code)
        text = f"DataLoader worker (pid {worker.pid}) is killed by signal: {name}."
        if -code == signal.SIGBUS:
            text += " It is possible that dataloader's workers are out of shared memory."
        return text
    return f"DataLoader worker (pid {worker.pid}) exited with status {code}."
