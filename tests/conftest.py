"""Shared set-up of the Python tests."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Sanitizers, and machines with other work, make examples slow without making them wrong.
settings.register_profile("lamina", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lamina")

# What is started in the background by a shell ignores interrupts, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def planted_fault():
    """Read past the end of a buffer when the sanitizer job asks for it (it has to turn red)."""
    if os.environ.get("LAMINA_PLANTED_FAULT"):
        import lamina

        lamina._C._planted_fault()
