"""The default generator inside a block that leaves it as it was."""

from contextlib import contextmanager

from lamina.random import get_rng_state, set_rng_state


@contextmanager
def fork_rng(devices=None, enabled=True, **_):
    """Leave the default generator as it was at the end of the block."""
    state = get_rng_state() if enabled else None
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
